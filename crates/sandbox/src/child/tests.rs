//! Starting a process that borrows this one's memory, on real programs.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{ErrorKind, Read};

use super::*;

/// Runs `sh -c script` after `prepare`; answers what it printed and the child.
fn shell(script: &str, prepare: &dyn Fn() -> std::io::Result<()>) -> std::io::Result<(String, Child)> {
    let args = ["-c", script].map(OsStr::new);
    start("/bin/sh", &args, &[("WORD", "said")], prepare)
}

fn start(
    path: &str,
    args: &[&OsStr],
    environment: &[(&str, &str)],
    prepare: &dyn Fn() -> std::io::Result<()>,
) -> std::io::Result<(String, Child)> {
    let program = Program::new(OsStr::new(path), args.iter().copied(), environment.iter().copied())?;
    let null = std::fs::File::open("/dev/null").unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    #[expect(unsafe_code, reason = "a test of it")]
    // SAFETY: each `prepare` here makes one system call.
    let child = unsafe { Child::start(&program, [null.as_fd(), writer.as_fd(), null.as_fd()], prepare) }?;
    drop(writer);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    Ok((said, child))
}

#[tokio::test]
async fn a_program_gets_its_arguments_its_environment_and_nothing_else() {
    let own = tempfile::Builder::new().prefix("not-handed-down-").tempfile().unwrap();
    let (said, mut child) = shell("echo $0 $WORD; ls -l /proc/self/fd; echo; env; exit 7", &|| Ok(())).unwrap();
    assert!(said.starts_with("/bin/sh said\n"), "{said}");
    assert!(!said.contains("not-handed-down"), "{said}: {:?}", own.path());
    let (_, environment) = said.split_once("\n\n").unwrap();
    // Those two are the shell's own.
    let environment: Vec<_> =
        environment.lines().filter(|line| !line.starts_with("PWD=") && !line.starts_with("_=")).collect();
    assert_eq!(environment, ["WORD=said"]);
    assert_eq!(child.wait().await.unwrap(), 7);
    assert_eq!(child.wait().await.unwrap(), 7, "once known, it stays");
    assert!(child.pid().is_none(), "the number may be another's by now");
}

#[tokio::test]
async fn what_keeps_a_program_from_beginning_is_the_error() {
    let missing = start("/no/such/program", &[], &[], &|| Ok(())).err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let refused = shell("echo ran", &|| Err(std::io::Error::from_raw_os_error(libc::ENOSPC))).err().unwrap();
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC));
    let long = "x".repeat(200 * 1024);
    assert_eq!(shell(&long, &|| Ok(())).err().unwrap().raw_os_error(), Some(libc::E2BIG));
    assert_eq!(shell("a\0b", &|| Ok(())).err().unwrap().kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn a_signal_that_ends_it_is_told_as_a_shell_tells_it() {
    let (_, mut child) = shell("kill -TERM $$", &|| Ok(())).unwrap();
    assert_eq!(child.wait().await.unwrap(), 128 + libc::SIGTERM);
    let (_, mut child) = shell("exec >&-; exec sleep 1000", &|| Ok(())).unwrap();
    assert_eq!(child.kill().await.unwrap(), 128 + libc::SIGKILL);
}

/// A line of signals in `/proc/PID/status`.
fn signals(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

#[tokio::test]
async fn signals_are_as_a_program_expects_them_and_stay_as_they_were_here() {
    let of_this_thread = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let bit = |signal: i32| 1_u64 << (signal - 1);
    let before = of_this_thread();
    assert_ne!(signals(&before, "SigIgn:") & bit(libc::SIGPIPE), 0, "as each program in Rust");
    let (said, mut child) = start("/bin/cat", &[OsStr::new("/proc/self/status")], &[], &|| Ok(())).unwrap();
    assert_eq!(child.wait().await.unwrap(), 0);
    assert_eq!((signals(&said, "SigBlk:"), signals(&said, "SigIgn:") & bit(libc::SIGPIPE)), (0, 0), "{said}");
    for name in ["SigBlk:", "SigIgn:", "SigCgt:"] {
        assert_eq!(signals(&of_this_thread(), name), signals(&before, name), "{name}");
    }
}

/// It has this process's memory, and nothing else of it.
#[tokio::test]
async fn what_a_child_opens_and_enters_is_its_own() {
    let here = std::fs::read_link("/proc/self/cwd").unwrap();
    let enter = || {
        rustix::process::chdir(c"/usr")?;
        rustix::process::setsid()?;
        Ok(())
    };
    let (said, mut child) = shell("pwd", &enter).unwrap();
    assert_eq!(child.wait().await.unwrap(), 0);
    assert_eq!(said, "/usr\n");
    assert_eq!(std::fs::read_link("/proc/self/cwd").unwrap(), here);
}

#[tokio::test]
async fn a_child_that_nobody_waits_for_leaves_no_zombie() {
    let (_, child) = shell("exec >&-; read -r line < /dev/null; exit 3", &|| Ok(())).unwrap();
    let stat = format!("/proc/{}/stat", child.pid().unwrap().as_raw_pid());
    drop(child);
    let gone = async {
        while std::fs::exists(&stat).unwrap() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), gone).await.expect("it is still there");
}
