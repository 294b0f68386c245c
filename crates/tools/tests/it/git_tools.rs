//! The git tools in real repositories.

use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, OutcomeError};
use toolhost_testkit::{House, SaysYes, TempWorkspace};

use crate::room::fenced;

async fn repository(files: &[(&str, &str)]) -> House {
    fenced(TempWorkspace::repository(files)).persona("Ada Agent").build().await
}

async fn error(house: &House, tool: &str, arguments: Value) -> OutcomeError {
    let outcome = house.call(tool, arguments.clone()).await;
    assert!(!outcome.ok, "{tool} {arguments}: {outcome:?}");
    outcome.error.unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_each_kind_of_change() {
    let house =
        repository(&[("changed.txt", "1\n"), ("gone.txt", "1\n"), ("old name.txt", "a long enough text\n")]).await;
    let clean = house.data("git.status", json!({})).await;
    assert_eq!((&clean["clean"], &clean["branch"]), (&json!(true), &json!("main")));
    assert_eq!(clean["commit"].as_str().unwrap(), house.workspace.git(&["rev-parse", "HEAD"]).trim());
    house.workspace.write("changed.txt", "2\n");
    house.workspace.remove("gone.txt");
    house.workspace.write("new\nline ü.txt", "n\n");
    house.workspace.git(&["mv", "old name.txt", "new name.txt"]);
    let data = house.data("git.status", json!({})).await;
    let files: Vec<String> = data["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| {
            let text = |name: &str| f[name].as_str().unwrap_or_default().to_owned();
            format!("{}{} {} <{}>", text("staged"), text("unstaged"), text("path"), text("from"))
        })
        .collect();
    let expected = [".M changed.txt <>", ".D gone.txt <>", "R. new name.txt <old name.txt>", "?? new\nline ü.txt <>"];
    assert_eq!(files, expected);
    assert_eq!(data["clean"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_a_conflict_and_a_branch_ahead() {
    let house = repository(&[("a.txt", "1\n")]).await;
    for (branch, text) in [("other", "2\n"), ("main", "3\n")] {
        let exists = branch == "main";
        house.workspace.git(if exists { &["checkout", "-q", "main"] } else { &["checkout", "-q", "-b", "other"] });
        house.workspace.write("a.txt", text);
        house.workspace.git(&["commit", "-q", "-a", "-m", branch]);
    }
    house.workspace.git(&["branch", "-q", "--set-upstream-to", "other"]);
    let ahead = house.data("git.status", json!({})).await;
    assert_eq!((&ahead["upstream"], &ahead["ahead"], &ahead["behind"]), (&json!("other"), &json!(1), &json!(1)));
    assert!(!house.workspace.git_succeeds(&["merge", "other"]), "it conflicts");
    let data = house.data("git.status", json!({})).await;
    assert_eq!((&data["files"][0]["staged"], &data["files"][0]["unstaged"]), (&json!("U"), &json!("U")), "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_diff_is_of_the_files_the_index_or_a_commit() {
    let house = repository(&[("a.txt", "1\n"), ("b.txt", "1\n")]).await;
    assert_eq!(house.call("git.diff", json!({})).await.text, "no changes");
    house.workspace.write("a.txt", "2\n");
    house.workspace.write("b.txt", "2\n");
    house.workspace.git(&["add", "b.txt"]);
    let diff = async |arguments: Value| house.data("git.diff", arguments).await["diff"].as_str().unwrap().to_owned();
    let (plain, staged) = (diff(json!({})).await, diff(json!({ "staged": true })).await);
    assert!(plain.contains("a/a.txt") && !plain.contains("b.txt") && plain.contains("-1\n+2\n"), "{plain}");
    assert!(staged.contains("a/b.txt") && !staged.contains("a.txt"), "{staged}");
    let base = diff(json!({ "base": "HEAD" })).await;
    assert!(base.contains("a/a.txt") && base.contains("a/b.txt"), "{base}");
    let one = diff(json!({ "base": "main", "path": "b.txt" })).await;
    assert!(!one.contains("a.txt") && one.contains("b.txt"), "{one}");
    let none = error(&house, "git.diff", json!({ "base": "nowhere" })).await;
    assert!(none.message.contains("`nowhere`"), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_tells_commits_newest_first() {
    let house = fenced(TempWorkspace::new()).build().await;
    house.workspace.git(&["init", "-q", "-b", "main"]);
    assert_eq!(house.call("git.log", json!({})).await.text, "no commits");
    for n in 1..=3 {
        house.workspace.write(&format!("f{n}.txt"), "x");
        house.workspace.git(&["add", "-A"]);
        house.workspace.git(&["commit", "-q", "-m", &format!("subject {n}"), "-m", "body\n\nof two parts"]);
    }
    let data = house.data("git.log", json!({ "limit": 2 })).await;
    let commits = data["commits"].as_array().unwrap();
    assert_eq!(commits.iter().map(|c| c["subject"].as_str().unwrap()).collect::<Vec<_>>(), ["subject 3", "subject 2"]);
    assert_eq!((&commits[0]["author"], &commits[0]["body"]), (&json!("Person"), &json!("body\n\nof two parts\n")));
    let one = house.data("git.log", json!({ "path": "f1.txt" })).await;
    assert_eq!((one["commits"].as_array().unwrap().len(), &one["commits"][0]["subject"]), (1, &json!("subject 1")));
}

/// Git takes a word for a revision or for a file, and fails where it could be both.
#[tokio::test(flavor = "multi_thread")]
async fn files_with_the_names_of_revisions_are_in_nobodys_way() {
    let house = repository(&[("a.txt", "1\n")]).await;
    for name in ["HEAD", "main", "master", "@", "stash", "FETCH_HEAD"] {
        house.workspace.write(name, "x\n");
    }
    let first = house.data("git.commit", json!({ "message": "names" })).await;
    assert_eq!(first["hash"].as_str().unwrap(), house.workspace.git(&["rev-parse", "--verify", "HEAD"]).trim());
    let hash = first["hash"].as_str().unwrap();
    house.workspace.write(hash, "x\n");
    house.data("git.commit", json!({ "message": "a hash" })).await;
    for (tool, arguments) in [
        ("git.log", json!({})),
        ("git.diff", json!({})),
        ("git.show", json!({ "revision": hash })),
        ("git.branch", json!({ "create": "other" })),
        ("git.switch", json!({ "branch": "other" })),
        ("git.branch", json!({ "delete": "main" })),
    ] {
        house.data(tool, arguments).await;
    }
}

/// Rules: 004.20.
#[tokio::test(flavor = "multi_thread")]
async fn everything_is_committed_deletions_and_new_files_too() {
    let house = repository(&[("a.txt", "1\n"), ("gone.txt", "1\n"), (".gitignore", "*.log\n")]).await;
    house.workspace.write("a.txt", "2\n");
    house.workspace.remove("gone.txt");
    house.workspace.write("dir/new ü.txt", "n\n");
    house.workspace.write("x.log", "ignored");
    let data = house.data("git.commit", json!({ "message": "feat: all\n\nwith a body" })).await;
    assert_eq!(strings(&data["files"]), ["a.txt", "dir/new ü.txt", "gone.txt"]);
    assert_eq!((&data["subject"], &data["branch"]), (&json!("feat: all"), &json!("main")));
    assert_eq!(data["hash"].as_str().unwrap(), house.workspace.git(&["rev-parse", "HEAD"]).trim());
    assert_eq!(house.workspace.git(&["status", "--porcelain"]), "");
    let said = house.workspace.git(&["log", "-1", "--format=%an <%ae>|%cn|%B"]);
    assert_eq!(said.trim(), "Ada Agent <ada-agent@toolhost.invalid>|Ada Agent|feat: all\n\nwith a body");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_named_files_are_committed() {
    let house = repository(&[("a.txt", "1\n"), ("b.txt", "1\n"), ("gone.txt", "1\n"), ("dir/c.txt", "1\n")]).await;
    for path in ["a.txt", "b.txt", "dir/c.txt"] {
        house.workspace.write(path, "2\n");
    }
    house.workspace.git(&["add", "b.txt"]);
    house.workspace.remove("gone.txt");
    let data = house.data("git.commit", json!({ "message": "two", "files": ["a.txt", "gone.txt", "dir"] })).await;
    assert_eq!(strings(&data["files"]), ["a.txt", "dir/c.txt", "gone.txt"]);
    assert_eq!(house.workspace.git(&["status", "--porcelain"]), "M  b.txt\n", "what a person has staged stays staged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_does_not_happen_says_why() {
    let house = repository(&[("a.txt", "1\n"), ("b.txt", "1\n")]).await;
    let head = house.workspace.git(&["rev-parse", "HEAD"]);
    let nothing = error(&house, "git.commit", json!({ "message": "x" })).await;
    assert_eq!((nothing.kind, nothing.message.as_str()), (ErrorKind::Conflict, "there is nothing to commit"));
    house.workspace.write("b.txt", "2\n");
    let unchanged = error(&house, "git.commit", json!({ "message": "x", "files": ["a.txt"] })).await;
    assert_eq!(unchanged.message, "there is nothing to commit");
    let missing = error(&house, "git.commit", json!({ "message": "x", "files": ["none.txt"] })).await;
    assert!(missing.message.contains("none.txt"), "{missing:?}");
    for files in [json!([":(top)"]), json!([":/"]), json!(["*"])] {
        let magic = error(&house, "git.commit", json!({ "message": "x", "files": files })).await;
        assert!(matches!(magic.kind, ErrorKind::Conflict | ErrorKind::Validation), "{files}: {magic:?}");
    }
    for message in ["   ", "\n", "\n\t\n"] {
        let empty = error(&house, "git.commit", json!({ "message": message })).await;
        assert!(!empty.message.is_empty(), "{empty:?}");
    }
    house.workspace.write(".git/index.lock", "");
    let locked = error(&house, "git.commit", json!({ "message": "x" })).await;
    assert!(locked.message.contains("index.lock"), "{locked:?}");
    house.workspace.remove(".git/index.lock");
    assert_eq!(house.workspace.git(&["diff", "--cached", "--name-only"]), "", "a refused commit leaves nothing staged");
    assert_eq!(house.workspace.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(house.workspace.git(&["diff", "--name-only", "HEAD"]), "b.txt\n", "and the change is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persona_cannot_pretend_to_be_a_header() {
    let workspace = TempWorkspace::repository(&[]);
    workspace.write("a.txt", "1");
    let house = fenced(workspace).persona("Eve <root@example.org>\nCo-authored-by: X").build().await;
    house.data("git.commit", json!({ "message": "x" })).await;
    let said = house.workspace.git(&["log", "-1", "--format=%an|%ae"]);
    assert!(said.trim().ends_with("@toolhost.invalid") && !said.contains('<') && said.lines().count() == 1, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_no_revisions_remotes_or_files() {
    let house = fenced(TempWorkspace::repository(&[("a.txt", "1\n")])).person(SaysYes).build().await;
    house.workspace.write("-rf.txt", "dash\n");
    let before = house.workspace.snapshot();
    for base in ["--output=x", "-p", "HEAD..main", "@{1}; touch x", "HEAD --output=x", "", ":a.txt", "+main"] {
        let refused = error(&house, "git.diff", json!({ "base": base })).await;
        assert_eq!(refused.kind, ErrorKind::Validation, "{base}: {refused:?}");
    }
    for (field, text) in [
        ("remote", "--upload-pack=x"),
        ("remote", "../other"),
        ("branch", "+main"),
        ("branch", "main:other"),
        ("branch", "-f"),
        ("remote", "ext::sh -c x"),
    ] {
        let refused = error(&house, "git.push", json!({ field: text })).await;
        assert_eq!(refused.kind, ErrorKind::Validation, "{text}: {refused:?}");
    }
    for path in ["../x", "/etc/passwd"] {
        assert_eq!(error(&house, "git.log", json!({ "path": path })).await.kind, ErrorKind::Security);
    }
    assert_eq!(house.workspace.snapshot(), before);
    let dashed = house.data("git.commit", json!({ "message": "dash", "files": ["-rf.txt"] })).await;
    assert_eq!(strings(&dashed["files"]), ["-rf.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_needs_a_person() {
    let house = repository(&[("a.txt", "1\n")]).await;
    house.workspace.git(&["init", "-q", "--bare", "-b", "main", "remote.git"]);
    house.workspace.git(&["remote", "add", "origin", "./remote.git"]);
    let asked = error(&house, "git.push", json!({})).await;
    assert_eq!((asked.kind, asked.code.as_str()), (ErrorKind::Denied, "AI_TOOL_FORBIDDEN"));
    assert_eq!(house.call_as("developer", "git.push", json!({})).await.error.unwrap().kind, ErrorKind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_push_arrives_and_is_never_forced() {
    let house = fenced(TempWorkspace::repository(&[("a.txt", "1\n")])).person(SaysYes).build().await;
    let none = error(&house, "git.push", json!({})).await;
    assert!(none.message.contains("there is no remote origin"), "{none:?}");
    house.workspace.git(&["init", "-q", "--bare", "-b", "main", "remote.git"]);
    house.workspace.git(&["remote", "add", "origin", "./remote.git"]);
    let pushed = house.data("git.push", json!({})).await;
    assert_eq!((&pushed["remote"], &pushed["branch"]), (&json!("origin"), &json!("main")));
    let first = house.workspace.git(&["rev-parse", "HEAD"]);
    assert_eq!(house.workspace.git(&["--git-dir", "remote.git", "rev-parse", "main"]), first);
    house.workspace.git(&["commit", "-q", "--amend", "-m", "rewritten"]);
    let behind = error(&house, "git.push", json!({ "remote": "origin", "branch": "main" })).await;
    assert_eq!(behind.kind, ErrorKind::Conflict, "{behind:?}");
    assert_eq!(house.workspace.git(&["--git-dir", "remote.git", "rev-parse", "main"]), first, "not forced");
    let nobody = error(&house, "git.push", json!({ "remote": "elsewhere" })).await;
    assert!(nobody.message.contains("there is no remote elsewhere"), "{nobody:?}");
    let branch = error(&house, "git.push", json!({ "branch": "nowhere" })).await;
    assert!(branch.message.contains("there is no branch nowhere"), "{branch:?}");
}

/// What makes the status quick where the host is root: files are not read anew because they belong to another user in the fence.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_goes_by_size_and_time_and_a_commit_does_not() {
    let workspace = TempWorkspace::new();
    let age = |time: std::time::SystemTime| {
        std::fs::File::open(workspace.path("a.txt")).unwrap().set_modified(time).unwrap();
    };
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    workspace.git(&["init", "-q"]);
    workspace.write("a.txt", "one\n");
    age(long_ago);
    workspace.git(&["add", "-A"]);
    workspace.git(&["commit", "-qm", "first"]);
    workspace.write("a.txt", "two\n");
    age(long_ago);
    let house = fenced(workspace).build().await;
    let status = house.call("git.status", json!({})).await;
    assert_eq!(status.data["clean"], true, "{status:?}");
    let committed = house.call("git.commit", json!({ "message": "second" })).await;
    assert!(committed.ok, "{committed:?}");
    assert_eq!(house.workspace.git(&["show", "HEAD:a.txt"]), "two\n");
}
