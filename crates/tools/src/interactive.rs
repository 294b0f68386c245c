//! Programs that wait for a person, and the way to do it without one.
//!
//! The command's simple commands are looked at, and those that they run in their turn (`env vim`, `bash -c 'vim x'`), never
//! its text: `echo vim` and `npx vitest run` are fine. What is not analyzable is let through: it finds no terminal, and
//! what would wait for one all the same is ended by the sandbox.

use toolhost_contract::shell::{Analyzed, SimpleCommand, Word};
use toolhost_contract::{ErrorKind, ToolError};

const EDITORS: &[&str] = &["vi", "vim", "nvim", "nano", "emacs", "pico", "ed", "joe", "micro", "hx"];
const PAGERS: &[&str] = &["less", "more", "most"];
const MONITORS: &[&str] = &["top", "htop", "btop", "watch"];
const SHELLS: &[&str] = &[
    "python", "python3", "node", "irb", "ghci", "php", "lua", "R", "julia", "scala", "erl", "iex", "bc", "gdb",
    "sqlite3", "psql", "mysql", "bash", "sh", "zsh", "fish",
];

/// Refuses a command of which some part would wait for somebody to type.
pub(crate) fn check(command: Option<&Analyzed>, has_stdin: bool) -> Result<(), ToolError> {
    let Some(Analyzed::Commands(commands)) = command else { return Ok(()) };
    match commands.iter().find_map(|simple| waiting(simple, has_stdin)) {
        None => Ok(()),
        Some((program, hint)) => {
            Err(ToolError::new(ErrorKind::Validation, format!("`{program}` waits for a person here")).hint(hint))
        }
    }
}

/// The program that would wait, in a command or in one that it runs, and what to do instead.
fn waiting(simple: &SimpleCommand, has_stdin: bool) -> Option<(&str, &'static str)> {
    let own = advice(simple, has_stdin).and_then(|hint| Some((simple.words.first()?.text.as_str(), hint)));
    own.or_else(|| simple.handed.iter().find_map(|inner| waiting(inner, has_stdin)))
}

fn advice(simple: &SimpleCommand, has_stdin: bool) -> Option<&'static str> {
    let program = simple.words.first()?.text.rsplit('/').next()?;
    let arguments = &simple.words[1..];
    let bare = arguments.is_empty() && !simple.fed && !has_stdin;
    let only_asks = arguments.iter().any(|a| matches!(a.text.as_str(), "--version" | "--help" | "-h" | "-V" | "-v"));
    match program {
        _ if only_asks => None,
        p if EDITORS.contains(&p) && !batch_editor(p, arguments) => {
            Some("change files with `file.edit`, `file.write` or `sed -i`")
        }
        p if PAGERS.contains(&p) => Some("read files with `file.read` or `cat`; output is cut to fit by itself"),
        p if MONITORS.contains(&p)
            && !arguments.iter().any(|a| a.text.starts_with("-b") || a.text.starts_with("-n")) =>
        {
            Some("use `ps aux`, or `top -b -n 1`")
        }
        "ssh" if ssh_has_no_command(arguments) => {
            Some("give ssh the command to run; note that commands have no network unless it is granted")
        }
        p if SHELLS.contains(&p) && bare => Some("pass the code with `-c` or `-e`, in a file, or as `stdin`"),
        _ => None,
    }
}

/// `vim -es`, `emacs --batch` and `ed -s script` work without anybody.
fn batch_editor(program: &str, arguments: &[Word]) -> bool {
    let has = |flags: &[&str]| arguments.iter().any(|a| flags.contains(&a.text.as_str()));
    match program {
        "vi" | "vim" | "nvim" => has(&["-es", "-Es", "--headless"]),
        "emacs" => has(&["--batch", "-batch", "--script"]),
        "ed" => has(&["-s"]),
        _ => false,
    }
}

fn ssh_has_no_command(arguments: &[Word]) -> bool {
    /// Options of ssh that take a value.
    const WITH_VALUE: &str = "BbcDEeFIiJLlmOoPpQRSWw";
    let mut words = 0;
    let mut skip = false;
    for argument in arguments {
        if skip {
            skip = false;
        } else if let Some(option) = argument.text.strip_prefix('-') {
            skip = option.len() == 1 && WITH_VALUE.contains(option);
        } else {
            words += 1;
        }
    }
    words < 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "no call is under way")]
    fn check(command: &str, has_stdin: bool) -> Result<(), ToolError> {
        super::check(Some(&toolhost_host::analyze(command)), has_stdin)
    }

    /// Rules: 002.14.
    #[test]
    fn what_waits_for_a_person_is_refused() {
        for no in [
            "vim a.txt",
            "git log | less",
            "ssh host",
            "ssh -p 22 host",
            "python",
            "python3",
            "cd x && nano y",
            "top",
            "/usr/bin/vim",
            "env vim a.txt",
            "env -u HOME TERM=xterm /usr/bin/vim a.txt",
            "/usr/bin/env -i vim",
            "bash -c vim",
            "bash -c 'vim a.txt'",
            "bash -lc 'cd x && less y'",
            "bash -euo pipefail -c 'vim x'",
            "/bin/sh -e -c \"nano y\"",
            "sudo vim /etc/hosts",
            "sudo -u root env EDITOR=vi vim x",
            "nohup top",
            "nohup vim x &",
            "timeout 5 vim x",
            "timeout -k 1 -s KILL 5s less x",
            "ls | xargs vim",
            "find . | xargs -n 1 -I{} less {}",
            "nice -n 5 setsid vim",
            "env bash -c 'timeout 9 python3'",
            "script -qc 'vim x' /dev/null",
            "env python3",
            "timeout 3 ssh host",
            "for f in a b; do env vim $f; done",
            "if env vim x; then :; fi",
        ] {
            assert!(check(no, false).is_err(), "{no}");
        }
    }

    #[test]
    fn nothing_else_is() {
        for yes in [
            "npx vitest run",
            "cargo test --bin server",
            "cargo run --example x",
            "echo vim",
            "python script.py",
            "python -c 'print(1)'",
            "python3 < x.py",
            "echo 1 | python3",
            "python3 <<E\nprint(1)\nE",
            "ssh host ls",
            "ssh -p 22 host ls",
            "vim --version",
            "vim -es -c 'q' x",
            "grep -r less .",
            "bash -c 'echo 1'",
            "bash script.sh",
            "watch -n 1 ls",
            "cat serve/dashboard.log | tee x",
            "node -e 1",
            "ls -la | wc -l",
            "env FOO=1 npx vitest run",
            "env -u vim ls",
            "timeout 5 python3 script.py",
            "echo 1 | env python3",
            "echo x | xargs python3",
            "ls | xargs -I vim echo vim",
            "bash script.sh -c vim",
            "bash -c 'echo vim'",
            "sudo cat vim",
            "nohup ./server &",
            "timeout 5 bash -c 'python3 < x.py'",
            "env env env env env env env env env env vim",
        ] {
            assert!(check(yes, false).is_ok(), "{yes}");
        }
        assert!(check("python3", true).is_ok());
    }
}
