//! Which git tool does what a command tried with `git`.
//!
//! Commands cannot write `.git` in the full tier, and have no git identity in any tier. An agent that runs `git commit` in
//! `bash` gets git's error, which says nothing about the tools; the hint adds the tool's name.

use toolhost_contract::shell::{Analyzed, SimpleCommand};
use toolhost_contract::workspace::{CommandResult, Tier};

/// All tools that write the repository.
const WRITERS: [&str; 6] = ["git.commit", "git.branch", "git.switch", "git.restore", "git.stash", "git.init"];

/// How the caller calls a tool, by its canonical name; `None` if it does not have it.
type Called<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What to add to the answer of a command; nothing if no git command that writes has failed.
///
/// A command line fails for many reasons, and git itself has many words for each. So a failed command line that contains
/// a writing git command gets the hint whatever git said. Where the exit code hides the failure (`git commit || true`), or
/// the command line is not analyzable, git's own error lines decide.
pub(crate) fn for_command(command: Option<&Analyzed>, result: &CommandResult, called: Called<'_>) -> Option<String> {
    if result.tier == Tier::Off {
        return None;
    }
    hint_for(command, result.exit_code != 0, &[&result.stderr.text, &result.stdout.text], called)
}

fn hint_for(command: Option<&Analyzed>, failed: bool, said: &[&str], called: Called<'_>) -> Option<String> {
    let refused = said.iter().flat_map(|text| text.lines()).find_map(refusal);
    let why = refused.or(failed.then_some("git commands that write are tools here"))?;
    let commands = match command {
        Some(Analyzed::Commands(commands)) => commands.as_slice(),
        Some(Analyzed::NotAnalyzable { .. }) | None => &[],
    };
    let mut tools: Vec<String> = Vec::new();
    for (verb, tool) in
        commands.iter().filter_map(of_git).filter_map(|(verb, rest)| Some((verb, tool_for(verb, &rest)?)))
    {
        let tool = spelled(tool, called);
        let line = format!("`git {verb}` is {}", tool.as_deref().unwrap_or("for the person: ask them"));
        if !tools.contains(&line) {
            tools.push(line);
        }
    }
    match (tools.is_empty(), refused) {
        (false, _) => Some(format!("{why}: {}", tools.join("; "))),
        (true, Some(why)) => Some(format!("{why}: {}ask the person", writers(called))),
        (true, None) => None,
    }
}

/// A text with each tool in it as the caller calls it; `None` if it does not have one of them.
fn spelled(text: &str, called: Called<'_>) -> Option<String> {
    let word = |word: &str| match word.trim_end_matches(',') {
        tool if tool.starts_with("git.") => Some(format!("{}{}", called(tool)?, &word[tool.len()..])),
        _ => Some(word.to_owned()),
    };
    text.split(' ').map(word).collect::<Option<Vec<String>>>().map(|words| words.join(" "))
}

/// `use git.commit or git.branch, or `: those that the caller has.
fn writers(called: Called<'_>) -> String {
    let mut names: Vec<String> = WRITERS.iter().filter_map(|tool| called(tool)).collect();
    match (names.pop(), names.join(", ")) {
        (None, _) => String::new(),
        (Some(last), rest) if rest.is_empty() => format!("use {last}, or "),
        (Some(last), rest) => format!("use {rest} or {last}, or "),
    }
}

/// Why git refused to write, if this line says so.
fn refusal(line: &str) -> Option<&'static str> {
    // The second is all that `git stash` prints.
    let read_only = line.contains("Read-only file system") && line.contains(".git");
    if read_only || line == "error: could not write index" {
        return Some(".git is read-only for commands");
    }
    const NO_IDENTITY: [&str; 4] = [
        "Author identity unknown",
        "Committer identity unknown",
        "unable to auto-detect email address",
        "empty ident name",
    ];
    NO_IDENTITY.iter().any(|words| line.contains(words)).then_some("commands have no git identity")
}

/// What git is asked to do, with the words after it: the first word that is neither an option nor the value of one.
fn of_git(command: &SimpleCommand) -> Option<(&str, Vec<&str>)> {
    let mut words = command.words.iter().map(|word| word.text.as_str());
    let program = words.next()?;
    if program.rsplit('/').next() != Some("git") {
        return None;
    }
    while let Some(word) = words.next() {
        match word {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" => {
                words.next();
            }
            option if option.starts_with('-') => {}
            verb => return Some((verb, words.collect())),
        }
    }
    None
}

/// The tool for a git command that writes; `None` for one that only reads.
fn tool_for(verb: &str, rest: &[&str]) -> Option<&'static str> {
    let first = rest.first().copied();
    let starts = |options: &[&str]| rest.iter().any(|word| options.iter().any(|option| word.starts_with(option)));
    let reads = match verb {
        "stash" => matches!(first, Some("list" | "show")),
        "worktree" => first == Some("list"),
        "submodule" => matches!(first, None | Some("status" | "summary" | "foreach" | "--quiet")),
        "remote" => matches!(first, None | Some("-v" | "--verbose" | "show" | "get-url")),
        // One name is looked up, two are a name and its value.
        "config" => {
            starts(&["--get", "--list", "-l"])
                || matches!(first, Some("get" | "list"))
                || rest.iter().filter(|word| !word.starts_with('-')).count() < 2
                    && !starts(&["--unset", "-e", "--edit"])
        }
        "branch" | "tag" => {
            rest.is_empty()
                || starts(&[
                    "-l",
                    "--list",
                    "-a",
                    "--all",
                    "-r",
                    "--remotes",
                    "-v",
                    "--show",
                    "--contains",
                    "--no-contains",
                ])
                || starts(&["--merged", "--no-merged", "--points-at", "--sort", "--format", "-n"])
        }
        _ => false,
    };
    if reads {
        return None;
    }
    Some(match verb {
        "commit" => "git.commit",
        "add" | "rm" | "mv" => "git.commit, which stages as well; first change the files themselves",
        "checkout" => "git.switch for a branch, git.restore for files",
        "switch" => "git.switch",
        "restore" | "reset" => "git.restore",
        "branch" => "git.branch",
        "stash" => "git.stash",
        "init" => "git.init",
        "push" => "git.push",
        "config" | "remote" | "submodule" | "worktree" | "tag" | "merge" | "rebase" | "pull" | "fetch"
        | "cherry-pick" | "revert" | "am" | "clean" | "gc" | "clone" => "for the person: ask them",
        _ => return None,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "no call is under way")]
    fn hint(command: &str, failed: bool, said: &[&str]) -> Option<String> {
        hint_for(Some(&toolhost_host::analyze(command)), failed, said, &|tool| Some(tool.to_owned()))
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "no call is under way")]
    fn a_hint_names_the_tools_that_the_caller_has_as_it_calls_them() {
        let check = |command: &str, called: Called<'_>, expected: &str| {
            let hint = hint_for(Some(&toolhost_host::analyze(command)), true, &[READ_ONLY], called);
            assert_eq!(hint.unwrap(), format!(".git is read-only for commands: {expected}"));
        };
        let wire = |tool: &str| Some(tool.replace('.', "_"));
        check("git checkout x", &wire, "`git checkout` is git_switch for a branch, git_restore for files");
        check("git add x", &wire, "`git add` is git_commit, which stages as well; first change the files themselves");
        let all = "use git_commit, git_branch, git_switch, git_restore, git_stash or git_init, or ask the person";
        check("make", &wire, all);
        check("git add x", &|_| None, "`git add` is for the person: ask them");
        check("make", &|_| None, "ask the person");
        check("make", &|tool| (tool == "git.init").then(|| tool.to_owned()), "use git.init, or ask the person");
    }

    const READ_ONLY: &str = "fatal: Unable to create './.git/index.lock': Read-only file system\n";
    const NOBODY: &str =
        "Author identity unknown\n\n*** Please tell me who you are.\n\nfatal: unable to auto-detect email address\n";

    #[test]
    fn a_failed_command_line_with_a_writing_git_command_names_the_tool_whatever_git_said() {
        let check = |command: &str, part: &str| {
            for said in ["", "error: pathspec 'x' did not match any file(s) known to git\n", READ_ONLY, NOBODY] {
                let hint = hint(command, true, &[said, ""]).unwrap_or_default();
                assert!(hint.contains(part), "{command} with {said}: {hint}");
            }
        };
        check("git commit -m x", "`git commit` is git.commit");
        check("cd a && GIT_EDITOR=true git -c user.name=x -C . commit -am x", "`git commit` is git.commit");
        check("git add -A && git commit -m 'two words'", "`git add` is git.commit, which");
        check("make && git checkout -b y", "git.switch");
        check("/usr/bin/git --no-pager init", "git.init");
        check("git config user.name x", "ask");
        check("git branch -D x", "git.branch");
        check("git stash", "git.stash");
        check("git stash pop; git reset --hard", "`git reset` is git.restore");
        let twice = hint("git add a; git add b", true, &[]).unwrap();
        assert_eq!(twice.matches("`git add`").count(), 1, "{twice}");
    }

    #[test]
    fn what_only_reads_or_succeeded_gets_no_hint() {
        for command in [
            "git log nowhere",
            "git diff --exit-code",
            "git stash list && false",
            "git branch --contains nowhere",
            "git branch && false",
            "git tag -l && false",
            "git config --get user.name",
            "git config user.name",
            "git remote -v && false",
            "git worktree list && false",
            "echo git commit && false",
            "cargo test",
            "for f in",
        ] {
            assert_eq!(hint(command, true, &["error: something else\n"]), None, "{command}");
        }
        assert_eq!(hint("git commit -m x", false, &["[main 1234567] x\n"]), None);
        assert_eq!(hint("git status", true, &["touch: /etc/x: Read-only file system"]), None);
    }

    #[test]
    fn git_s_own_words_are_enough_where_the_command_line_or_its_exit_code_tells_nothing() {
        for said in [READ_ONLY, NOBODY, "error: could not write index\n"] {
            for command in ["make release", "for f in", "git status", "git commit -m x"] {
                for failed in [false, true] {
                    let hint = hint(command, failed, &["", said]).unwrap();
                    assert!(hint.contains("git.commit"), "{command}: {hint}");
                }
            }
        }
        assert!(hint("x", true, &[READ_ONLY]).unwrap().starts_with(".git is read-only for commands: "));
        assert!(hint("x", true, &[NOBODY]).unwrap().starts_with("commands have no git identity: "));
    }
}
