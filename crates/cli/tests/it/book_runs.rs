//! README and the book, typed: each command that they show runs at a terminal as it stands there, page by page, in a small
//! project. What does not run here says why.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::json;
use toolhost_testkit::{Era, McpProcess, Postgres, Program, TempWorkspace};

use crate::readme::{PAGES, README, shell_lines};
use crate::room::{TOOLHOST, program};

/// How a line is typed.
enum Typed {
    /// It ends well.
    Runs,
    /// It ends well with this typed at its prompts.
    Answered(&'static str),
    /// It goes on until Ctrl-C, after it has shown this; meanwhile another command runs.
    Until { shows: &'static str, meanwhile: &'static str },
    /// Not here, and why.
    Skipped(&'static str),
}

/// A project with a terminal in it.
struct BookProject {
    workspace: TempWorkspace,
    program: Program,
    /// What earlier lines have exported.
    exports: Vec<String>,
}

impl BookProject {
    fn new() -> Self {
        let workspace = TempWorkspace::repository(&[("README.md", "A project.\n")]);
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report");
        workspace.make_folder("examples");
        assert!(workspace.shell(&format!("cp -r '{}' examples/", examples.display())));
        let program = program(&workspace).bare();
        std::fs::create_dir_all(workspace.beside("home/site")).unwrap();
        std::fs::create_dir_all(workspace.beside("bin")).unwrap();
        for name in ["toolhost", "toolhost-fence"] {
            let there = Path::new(TOOLHOST).with_file_name(name);
            std::os::unix::fs::symlink(there, workspace.beside("bin").join(name)).unwrap();
        }
        Self { workspace, program, exports: Vec::new() }
    }

    /// Settings of the person.
    fn configure(&self, toml: &str) {
        let folder = self.workspace.beside("home/.config/toolhost");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), toml).unwrap();
    }

    /// The line at a terminal of its own, whose keys are what is written to it.
    #[expect(clippy::disallowed_methods, reason = "a person's shell")]
    fn terminal(&self, line: &str) -> Command {
        let mut terminal = Command::new("script");
        let line = self.exports.iter().map(String::as_str).chain([line]).collect::<Vec<_>>().join("\n");
        terminal.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(self.workspace.root()).env_clear();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.workspace.beside("bin").display());
        terminal.env("PATH", path).env("HOME", self.workspace.beside("home"));
        terminal.envs([("TERM", "xterm"), ("NO_COLOR", "1"), ("SHELL", "/bin/bash")]);
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        terminal
    }

    fn types(&self, line: &str, answer: &str) -> (Option<i32>, String) {
        let mut child = self.terminal(line).spawn().unwrap();
        let (mut keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut shown = Vec::new();
            // A terminal that breaks has shown what it has.
            let _ = output.read_to_end(&mut shown);
            let _ = tell.send(shown);
        });
        let shown = loop {
            // Who has ended by then needs no answer. Keys that come before the question are thrown away, so a person types again.
            let _ = keys.write_all(answer.as_bytes());
            match told.recv_timeout(Duration::from_secs(2)) {
                Err(RecvTimeoutError::Timeout) => {}
                shown => break shown.unwrap(),
            }
        };
        drop(keys);
        (child.wait().unwrap().code(), String::from_utf8_lossy(&shown).into_owned())
    }

    fn follows(&self, line: &str, shows: &str, meanwhile: &str) -> (Option<i32>, String) {
        let mut child = self.terminal(line).spawn().unwrap();
        let (mut keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        let reading = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                // The receiver may be gone.
                let _ = tell.send(String::from_utf8_lossy(&buffer[..read]).into_owned());
            }
        });
        let mut shown = String::new();
        // Nothing shows that it listens already, so the other command runs until it is seen.
        while !shown.contains(shows) {
            self.types(meanwhile, "");
            let part = told.recv_timeout(Duration::from_millis(100));
            assert_ne!(part, Err(RecvTimeoutError::Disconnected), "it ended: {shown}");
            shown.push_str(&part.unwrap_or_default());
        }
        keys.write_all(b"\x03").unwrap();
        reading.join().unwrap();
        (child.wait().unwrap().code(), shown)
    }

    /// Types the lines of a page. `change` makes of a line what is typed, where it names what only this project has.
    #[track_caller]
    fn play(&mut self, page: &str, how: impl Fn(&str) -> Typed, change: impl Fn(&Self, &str) -> String) {
        let text = PAGES.iter().chain([&README]).find(|(name, _)| *name == page).unwrap().1;
        let mut ran = 0;
        for line in shell_lines(text) {
            if line.starts_with("export ") {
                let line = change(self, &line);
                self.exports.push(line);
                continue;
            }
            let how = how(&line);
            if let Typed::Skipped(why) = how {
                assert!(!why.is_empty());
                continue;
            }
            let typed = change(self, &line);
            let (code, shown) = match how {
                Typed::Answered(answer) => self.types(&typed, answer),
                Typed::Until { shows, meanwhile } => self.follows(&typed, shows, meanwhile),
                _ => self.types(&typed, ""),
            };
            // A shell says 130 of what Ctrl-C has ended.
            let well = code == Some(0) || (code == Some(130) && matches!(how, Typed::Until { .. }));
            assert!(well, "{page}: {typed}\n{code:?}\n{shown}");
            ran += 1;
        }
        assert!(ran > 0, "{page}: nothing ran");
    }

    fn call(&self, tool: &str, arguments: &serde_json::Value) -> serde_json::Value {
        let root = self.workspace.root();
        let ran = self.program.run(&["--root", root.to_str().unwrap(), "--json", "call", tool, &arguments.to_string()]);
        ran.json()
    }

    /// Asks a person something new; the id of the ask.
    fn asked(&self, command: &str) -> String {
        let said = self.call("bash", &json!({ "command": command }));
        said["data"]["approvalId"].as_str().unwrap().to_owned()
    }
}

fn as_it_stands(_: &BookProject, line: &str) -> String {
    line.to_owned()
}

const ASKS_FOR_COMMANDS: &str =
    "[[profiles.all.rules]]\ntool = \"bash\"\nwhen = { command = \"echo*\" }\ndecide = \"ask\"\nwhy = \"a test\"\n";

#[test]
fn the_readme() {
    let mut project = BookProject::new();
    project.configure(ASKS_FOR_COMMANDS);
    project.call("file.write", &json!({ "path": "a.txt", "content": "a" }));
    assert_eq!(project.asked("echo one"), "ask-1");
    let how = |line: &str| match line {
        line if line.starts_with("cargo ") => Typed::Skipped("it builds the program, or runs these tests"),
        line if line.starts_with("claude ") => {
            Typed::Skipped("another program; the server it starts is tested with clients")
        }
        line if line.starts_with("toolhost audit follow") => {
            Typed::Until { shows: "file.read", meanwhile: "toolhost call file.read '{\"path\": \"README.md\"}'" }
        }
        line if line.starts_with("toolhost review decide") => Typed::Answered("a\n"),
        line if line.starts_with("toolhost undo") => Typed::Answered("y\n"),
        _ => Typed::Runs,
    };
    project.play("README.md", how, as_it_stands);
    assert!(!project.workspace.has("a.txt"), "it was taken back");
}

#[test]
fn audit() {
    let mut project = BookProject::new();
    project.call("bash", &json!({ "command": "exit 1" }));
    let how = |line: &str| match line {
        line if line.starts_with("toolhost audit follow") => {
            Typed::Until { shows: "file.read", meanwhile: "toolhost call file.read '{\"path\": \"README.md\"}'" }
        }
        _ => Typed::Runs,
    };
    project.play("audit.md", how, as_it_stands);
}

#[test]
fn commands() {
    BookProject::new().play("bash.md", |_| Typed::Runs, as_it_stands);
}

#[test]
fn command_line() {
    BookProject::new().play("command-line.md", |_| Typed::Runs, as_it_stands);
}

#[test]
fn a_shared_database() {
    // A machine without a server says so elsewhere.
    let Some(server) = Postgres::shared() else { return };
    let url = server.fresh_database();
    let change = |_: &BookProject, line: &str| match line.split_once("'postgres://") {
        Some(_) => format!("export TOOLHOST_DATABASE='{url}'"),
        None => line.to_owned(),
    };
    BookProject::new().play("database.md", |_| Typed::Runs, change);
}

#[test]
fn a_server() {
    let how = |line: &str| match line {
        line if line.starts_with("toolhost serve") => {
            Typed::Until { shows: "serving at http://127.0.0.1:", meanwhile: "toolhost token list" }
        }
        line if line.starts_with("toolhost mcp --server") => {
            Typed::Skipped("for a client; it has tests of its own, with a server at a free port")
        }
        line if line.starts_with("docker run") => {
            Typed::Skipped("another program; what is sent to a collector is tested with one of the tests' own")
        }
        _ => Typed::Runs,
    };
    // Others of this machine may have the usual port.
    let change = |_: &BookProject, line: &str| match line.starts_with("toolhost serve") {
        true => "toolhost serve --listen 127.0.0.1:0".to_owned(),
        false => line.to_owned(),
    };
    BookProject::new().play("server.md", how, change);
}

#[test]
fn deploys() {
    let mut project = BookProject::new();
    project.workspace.write("index.html", "one\n");
    let how = |line: &str| match line {
        line if line.contains("deploy run") || line.contains("deploy undo") => Typed::Answered("y\n"),
        _ => Typed::Runs,
    };
    project.play("deploy.md", how, as_it_stands);
}

#[test]
fn imports() {
    let mut project = BookProject::new();
    let iterations = project.workspace.beside("home/project/.cowork-v2/iterations");
    std::fs::create_dir_all(&iterations).unwrap();
    let iteration = json!({ "id": "iter-1-1767225600", "number": 1, "title": "MVP", "description": "", "inheritance": "none",
        "status": "completed", "started_at": "2026-01-01T00:00:00Z" });
    std::fs::write(iterations.join("iter-1-1767225600.json"), iteration.to_string()).unwrap();
    let issue = json!({ "id": "bd-1", "title": "One", "status": "open", "priority": 1, "issue_type": "task",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z" });
    project.workspace.write(".beads/issues.jsonl", format!("{issue}\n"));
    // An export of another project, and none of what is imported before it.
    let other = TempWorkspace::new();
    let elsewhere = program(&other);
    elsewhere.run(&["requirement", "create", "One", "--acceptance-criteria", "it is"]);
    let file = project.workspace.path("records.jsonl");
    assert_eq!(elsewhere.run(&["export", "-o", file.to_str().unwrap()]).code, Some(0));
    project.play("imports.md", |_| Typed::Runs, as_it_stands);
}

#[test]
fn records() {
    let how = |line: &str| match line {
        line if line.contains("import cowork") || line.contains("import beads") => {
            Typed::Skipped("as on the page of imports")
        }
        _ => Typed::Runs,
    };
    BookProject::new().play("records.md", how, as_it_stands);
}

#[test]
fn policy() {
    let mut project = BookProject::new();
    let page = PAGES.iter().find(|(name, _)| *name == "policy.md").unwrap().1;
    let profile = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    project.configure(profile);
    let test = "[[tests]]\nprofile = \"careful\"\ntool = \"bash\"\narguments = { command = \"cargo publish\" }\nexpect = \"deny\"\n";
    project.workspace.write("policy.toml", format!("{profile}\n{test}"));
    project.play("policy.md", |_| Typed::Runs, as_it_stands);
}

#[test]
fn people() {
    let mut project = BookProject::new();
    project.configure(ASKS_FOR_COMMANDS);
    let how = |line: &str| match line {
        line if line.ends_with("$EDITOR for edits") => Typed::Answered("a\n"),
        line if line.starts_with("toolhost review watch") => Typed::Skipped("it asks for ever"),
        _ => Typed::Runs,
    };
    // Each ask is answered once, so each line has one of its own; the number of the rule is that of this project.
    let change = |project: &BookProject, line: &str| {
        let mut line = line.replace(r#"{"remote": "backup"}"#, r#"{"command": "echo edited"}"#);
        for id in ["ask-7", "ask-8"] {
            if line.split('#').next().unwrap().contains(id) {
                line = line.replace(id, &project.asked(&format!("echo {id} {}", line.len())));
            }
        }
        let root = project.workspace.root();
        let rules = project.program.run(&["--root", root.to_str().unwrap(), "approvals", "list"]).stdout;
        match rules.split_whitespace().find(|word| word.starts_with("rule-")) {
            Some(rule) => line.replace("rule-9", rule),
            None => line,
        }
    };
    project.play("people.md", how, change);
}

#[tokio::test(flavor = "multi_thread")]
async fn packages() {
    let mut project = BookProject::new();
    let how = |line: &str| match line {
        line if line.starts_with("toolhost mcp ") => {
            Typed::Skipped("it speaks MCP: what stands below was staged through it")
        }
        line if line.contains("change apply") || line.contains("change undo") => Typed::Answered("y\n"),
        _ => Typed::Runs,
    };
    let staged = |project: &BookProject| {
        let root = project.workspace.root().to_str().unwrap().to_owned();
        let program = project.program.clone().argument("--root").argument(root);
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let mut agent =
                    McpProcess::open(&program, &["--profile", "builder", "--session", "docs"], Era::Session).await;
                let step = json!({ "workflowId": "research-report", "nodeId": "draft" });
                let read = agent.call("builder_step_read", step.clone()).await["structuredContent"]["data"].clone();
                let text = read["step_markdown"].as_str().unwrap().replace("## Goal\n", "## Goal\n\nBe brief.\n");
                let operation = json!({ "op": "upsert", "targetType": "step", "target": step,
                    "payload": { "step_markdown": text }, "reason": "shorter drafts" });
                let set = json!({ "changeSet": { "schemaVersion": "1.0", "targetType": "step", "mode": "optimize",
                    "operations": [operation], "revisions": read["revisions"] } });
                let result = agent.call("builder_change_stage", set).await;
                assert_eq!(result["isError"], false, "{result}");
            });
        });
    };
    // The agent works between the import and the list of what it staged; the change that is undone is the newest.
    let change = |project: &BookProject, line: &str| {
        if line.starts_with("toolhost change list") {
            staged(project);
        }
        line.replace("change undo 2 ", "change undo ")
    };
    project.play("packages.md", how, change);
}

#[test]
fn sessions_of_a_model() {
    let mut project = BookProject::new();
    let turns = json!([{ "text": "I look.", "calls": [{ "tool": "file.read", "arguments": { "path": "README.md" } }] },
        { "text": "And?" }, { "text": "done" }, { "text": "done again" }]);
    project.workspace.write("story.json", json!({ "turns": turns }).to_string());
    let how = |line: &str| match line {
        line if line.contains("script:") || line.starts_with("toolhost key list") => Typed::Runs,
        line if line.starts_with("toolhost run ") => Typed::Skipped("its model is on the network"),
        line if line.starts_with("toolhost key set") => Typed::Answered("sk-123456\n"),
        line if line.contains("session list") || line.contains("session show") || line.contains("session replay") => {
            Typed::Runs
        }
        line if line.contains("session watch") => Typed::Runs,
        _ => Typed::Skipped("it takes a session that is under way, or one more turn of its model"),
    };
    let change = |project: &BookProject, line: &str| {
        let root = project.workspace.root();
        let listed = project.program.run(&["--root", root.to_str().unwrap(), "session", "list"]).stdout;
        match listed.split_whitespace().find(|word| word.starts_with("as_")) {
            Some(id) => line.replace("as_0f3b…", id),
            None => line.to_owned(),
        }
    };
    project.play("run.md", how, change);
}

/// Each is saved as its page says.
#[test]
fn scripts() {
    let mut project = BookProject::new();
    let page = PAGES.iter().find(|(name, _)| *name == "scripts.md").unwrap().1;
    let mut saved = 0;
    let mut name = None;
    for part in page.split("```") {
        match part.strip_prefix("json\n") {
            Some(script) => {
                project.workspace.write(name.take().unwrap(), script);
                saved += 1;
            }
            None => name = part.split('`').rfind(|word| word.ends_with(".json")),
        }
    }
    assert_eq!(saved, 5);
    project.play("scripts.md", |_| Typed::Runs, |_, line| line.to_owned());
}

#[test]
fn undo() {
    let mut project = BookProject::new();
    let change = |project: &BookProject, line: &str| {
        project.call("file.write", &json!({ "path": format!("{}.txt", line.len()), "content": "a" }));
        line.replace("--session ID", "--since 30m")
    };
    project.play("undo.md", |_| Typed::Answered("y\n"), change);
}

/// A page with commands that no test plays fails this one.
#[test]
fn every_page_with_commands_is_played() {
    let this = include_str!("book_runs.rs");
    let elsewhere = [("connect.md", "other programs"), ("fence.md", "a user's systemd"), ("remotes.md", "a server")];
    for (page, text) in PAGES.iter().chain([&README]) {
        let is_played = this.contains(&format!("play(\"{page}\"")) || elsewhere.iter().any(|(name, _)| name == page);
        assert!(is_played || shell_lines(text).is_empty(), "{page}");
    }
}
