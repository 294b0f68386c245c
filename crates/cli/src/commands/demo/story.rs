//! What happens on the tour, as data.

use toolhost_contract::ErrorKind;

/// The project's files. The test fails until the greeting is put right.
pub(super) const FILES: &[(&str, &str)] = &[
    ("README.md", "# Greeter\n\n`greet.sh NAME` says hello.\n"),
    ("greet.sh", "#!/bin/sh\n# Says hello to whoever is named.\nname=\"$1\"\necho \"Hello, $nmae!\"\n"),
    (
        "test.sh",
        "#!/bin/sh\nactual=$(sh greet.sh World)\nif [ \"$actual\" = \"Hello, World!\" ]; then\n    echo \"1 passed\"\nelse\n    echo \"FAILED: expected 'Hello, World!', got '$actual'\"\n    exit 1\nfi\n",
    ),
];

/// The project's repository, as a person's `git init` and `git remote add` leave it: no command of an agent's adds a remote.
/// The remote is beside the files, because the tour needs no network.
pub(super) const GIT_FOLDERS: &[&str] =
    &[".git/info", ".git/objects", ".git/refs/heads", "greeter.git/objects", "greeter.git/refs/heads"];
pub(super) const GIT_FILES: &[(&str, &str)] = &[
    (".git/HEAD", "ref: refs/heads/main\n"),
    (
        ".git/config",
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = ./greeter.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
    ),
    (".git/info/exclude", "/greeter.git/\n"),
    ("greeter.git/HEAD", "ref: refs/heads/main\n"),
    ("greeter.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"),
];

/// Beside the project; no tool may see it.
pub(super) const SECRET_FILE: &str = "secret.txt";
pub(super) const SECRET: &str = "the key under the mat\n";
/// What an escape would leave outside.
pub(super) const PLANTED_FILE: &str = "planted.txt";

/// One call and how it must end.
pub(super) struct Step {
    pub(super) chapter: Option<&'static str>,
    pub(super) says: &'static str,
    pub(super) tool: &'static str,
    /// JSON; `{outside}` is the folder that holds the project.
    pub(super) arguments: &'static str,
    pub(super) wanted: Wanted,
}

pub(super) enum Wanted {
    Ok,
    Exit(i32),
    /// The command ran and the kernel refused what it tried.
    ExitNonZero,
    /// The host refused the call.
    Refused(ErrorKind),
    /// The call waits for a person, and has not run.
    Waits,
}

const fn step(says: &'static str, tool: &'static str, arguments: &'static str, wanted: Wanted) -> Step {
    Step { chapter: None, says, tool, arguments, wanted }
}

const fn chapter(chapter: &'static str, step: Step) -> Step {
    Step { chapter: Some(chapter), ..step }
}

pub(super) const STEPS: &[Step] = &[
    chapter("The agent finds its way", step("look at the repository", "git_status", "{}", Wanted::Ok)),
    step("commit what is there", "git_commit", r#"{"message": "greeter: first version"}"#, Wanted::Ok),
    step("list the files", "file_list", "{}", Wanted::Ok),
    step("run the tests: one fails", "bash", r#"{"command": "sh test.sh"}"#, Wanted::Exit(1)),
    chapter(
        "It finds and fixes the mistake",
        step("search for the greeting", "file_search", r#"{"pattern": "Hello", "glob": "*.sh"}"#, Wanted::Ok),
    ),
    step("read the script", "file_read", r#"{"path": "greet.sh"}"#, Wanted::Ok),
    step(
        "fix the misspelt variable",
        "file_edit",
        r#"{"path": "greet.sh", "edits": [{"search": "$nmae", "replace": "$name"}]}"#,
        Wanted::Ok,
    ),
    step("run the tests again", "bash", r#"{"command": "sh test.sh"}"#, Wanted::Ok),
    step("look at the change", "git_diff", "{}", Wanted::Ok),
    step("commit it", "git_commit", r#"{"message": "greeter: say the name", "files": ["greet.sh"]}"#, Wanted::Ok),
    chapter(
        "It tries to get out",
        step("read a file outside", "file_read", r#"{"path": "../secret.txt"}"#, Wanted::Refused(ErrorKind::Security)),
    ),
    step(
        "read it with a command, and plant one beside it",
        "bash",
        r#"{"command": "cat {outside}/secret.txt; echo mine > {outside}/planted.txt"}"#,
        Wanted::ExitNonZero,
    ),
    step(
        "open a connection",
        "bash",
        r#"{"command": "exec 3<>/dev/tcp/192.0.2.1/80 && echo connected >&3"}"#,
        Wanted::ExitNonZero,
    ),
    chapter(
        "It asks for what a person must allow",
        step("push: it leaves this machine, so it waits until a person says yes", "git_push", "{}", Wanted::Waits),
    ),
];
