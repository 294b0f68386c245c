//! One thread that starts every command, one after the other, and waits for nothing else.
//!
//! What was started ends with a pipe: only this host has its writing end, so it is closed when nobody waits for the command any
//! more and when the host dies, in whatever way and at whatever moment. The helper looks at it before it starts anything.

use std::ffi::{CStr, CString};
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::mpsc;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use tokio::sync::oneshot;

use crate::child::{Child, Program};
use crate::fence::{HANDED_DOWN, HandedDown, Plan};

/// The file in which a process tells the kernel how early to end it when the machine has no memory left, and the value for "first".
const OOM_SCORE: &CStr = c"/proc/self/oom_score_adj";
const OOM_SCORE_OF_COMMANDS: &[u8] = b"1000";

pub(crate) struct Spawner {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    plan: Arc<Plan>,
    runtime: tokio::runtime::Handle,
    answer: oneshot::Sender<std::io::Result<Started>>,
}

/// A started process and the pipe on which its helper says that the fence stands. Dropping it ends the command.
pub(crate) struct Started {
    pub(crate) child: Child,
    /// None where a file is the standard input.
    pub(crate) stdin: Option<tokio::process::ChildStdin>,
    pub(crate) stdout: Option<tokio::process::ChildStdout>,
    pub(crate) stderr: Option<tokio::process::ChildStderr>,
    pub(crate) ready: PipeReader,
    /// What the supervisor watches: a byte asks it to end, the close says that this host has died.
    host: Option<PipeWriter>,
}

impl Started {
    /// Asks the supervisor to end the command with all it has started; `false` if it was asked before, or has ended.
    pub(crate) fn ask_to_end(&mut self) -> bool {
        use std::io::Write;
        self.host.take().is_some_and(|mut host| host.write_all(&[1]).is_ok())
    }

    /// Kills what was started together: `bwrap` with the namespace's first process, or a supervisor. Where there is no
    /// namespace the command goes on, so this is for what does not answer.
    pub(crate) fn kill_group(&self) {
        if let Some(pid) = self.child.pid() {
            // Already gone is as good.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // In `drop`, because the call that asked for the command may be cancelled before it receives this value.
        self.ask_to_end();
    }
}

impl Spawner {
    pub(crate) fn start() -> std::io::Result<Self> {
        crate::child::expect_children();
        let (jobs, inbox) = mpsc::channel::<Job>();
        std::thread::Builder::new().name("toolhost-spawner".to_owned()).spawn(move || {
            // Ends when the executor, and with it the sender, is dropped.
            for job in inbox {
                let _context = job.runtime.enter();
                // If nobody waits any more, dropping the child ends it.
                let _ = job.answer.send(spawn(&job.plan));
            }
        })?;
        Ok(Self { jobs })
    }

    pub(crate) async fn spawn(&self, plan: Arc<Plan>) -> std::io::Result<Started> {
        let gone = || std::io::Error::other("the spawner thread has ended");
        let (answer, answered) = oneshot::channel();
        let job = Job { plan, runtime: tokio::runtime::Handle::current(), answer };
        self.jobs.send(job).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

fn spawn(plan: &Plan) -> std::io::Result<Started> {
    let (ready, ready_writer) = std::io::pipe()?;
    let (watched, host) = std::io::pipe()?;
    let handed =
        Handed { ready: ready_writer, host: watched, lock: plan.lock.as_ref().map(OwnedFd::try_clone).transpose()? };
    let numbers = handed.numbers().to_text();
    let environment = plan.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let environment = environment.chain([(HANDED_DOWN, numbers.as_str())]);
    let program = Program::new(plan.program.as_os_str(), plan.args.iter().map(AsRef::as_ref), environment)?;
    let cwd = CString::new(plan.cwd.as_os_str().as_bytes())?;
    let (stdin_reader, stdin) = match &plan.stdin {
        Some(file) => (OwnedFd::from(file.try_clone()?), None),
        None => std::io::pipe().map(|(reader, writer)| (reader.into(), Some(OwnedFd::from(writer))))?,
    };
    let (stdout, stdout_writer) = std::io::pipe()?;
    let (stderr, stderr_writer) = std::io::pipe()?;
    if let Some((uid, gid)) = plan.streams_of {
        let own = |pipe: BorrowedFd<'_>| rustix::fs::fchown(pipe, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        if plan.stdin.is_none() {
            own(stdin_reader.as_fd())?;
        }
        own(stdout_writer.as_fd())?;
        own(stderr_writer.as_fd())?;
    }
    let streams = [stdin_reader.as_fd(), stdout_writer.as_fd(), stderr_writer.as_fd()];
    #[expect(unsafe_code, reason = "what runs before the program begins has rules that no type holds")]
    // SAFETY: `before_exec` allocates nothing and takes no lock: writes, setsid, the mounts of `IdMap::enter`, chdir, fcntl.
    let child = unsafe { Child::start(&program, streams, &|| before_exec(plan, &cwd, &handed)) }?;
    let stdin = stdin.map(|stdin| tokio::process::ChildStdin::from_std(ChildStdin::from(stdin))).transpose()?;
    let stdout = tokio::process::ChildStdout::from_std(ChildStdout::from(OwnedFd::from(stdout)))?;
    let stderr = tokio::process::ChildStderr::from_std(ChildStderr::from(OwnedFd::from(stderr)))?;
    Ok(Started { child, stdin, stdout: Some(stdout), stderr: Some(stderr), ready, host: Some(host) })
}

/// What a helper is handed. Each is the host's own until the child between `fork` and `exec` lets it through.
struct Handed {
    ready: PipeWriter,
    host: PipeReader,
    lock: Option<OwnedFd>,
}

impl Handed {
    fn numbers(&self) -> HandedDown {
        let lock = self.lock.as_ref().map(AsRawFd::as_raw_fd);
        HandedDown { ready: self.ready.as_raw_fd(), host: self.host.as_raw_fd(), lock }
    }

    fn let_through(&self) -> std::io::Result<()> {
        let lock = self.lock.as_ref().map(AsFd::as_fd);
        for descriptor in [self.ready.as_fd(), self.host.as_fd()].into_iter().chain(lock) {
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    }
}

/// Tells the kernel to end this process first when the machine has no memory left, before the host and other programs. A process
/// may always raise its own value; a system without the file runs commands, too. System calls only.
pub(crate) fn be_ended_first() -> std::io::Result<()> {
    if let Ok(score) = rustix::fs::open(OOM_SCORE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        rustix::io::write(score, OOM_SCORE_OF_COMMANDS)?;
    }
    Ok(())
}

/// What happens in the child before its program begins: system calls only, on memory prepared before.
fn before_exec(plan: &Plan, cwd: &CStr, handed: &Handed) -> std::io::Result<()> {
    // First of all, so that nothing of it is counted elsewhere.
    if let Some(cgroup) = &plan.cgroup {
        rustix::io::write(cgroup, b"0")?;
    }
    // A command with a mark would lose its supervisor with that, so there the helper does it for the command alone.
    if plan.mark.is_none() {
        be_ended_first()?;
    }
    rustix::process::setsid()?;
    if let Some(id_map) = &plan.id_map {
        id_map.enter()?;
    }
    // After the mounts: entered before, the folder would be the one without mapped ids.
    rustix::process::chdir(cwd)?;
    handed.let_through()
}
