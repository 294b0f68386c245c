//! No answer names a place on the host: whatever goes wrong, in whatever tool.

use serde_json::{Value, json};
use toolhost_testkit::{House, SaysYes, TempWorkspace};

use crate::room::fenced;

/// The call's answer, and that neither the workspace's place nor the state's is in it.
async fn check(house: &House, tool: &str, arguments: Value) {
    let outcome = house.call(tool, arguments.clone()).await;
    let said = format!("{} {}", serde_json::to_string(&outcome).unwrap(), outcome.text);
    let folder = house.workspace.beside("");
    let place = folder.display().to_string();
    assert!(!said.contains(place.trim_end_matches('/')), "{tool} {arguments}: {said}");
    assert!(
        !said.contains("/proc/self") && !said.contains(&*crate::room::fence_helper().to_string_lossy()),
        "{tool} {arguments}: {said}"
    );
}

/// Paths that fail in every way there is.
const PATHS: [&str; 16] = [
    "missing",
    "folder",
    "file.txt/below",
    "out",
    "loop",
    "dangling",
    "../up",
    "/etc/passwd",
    "",
    ".",
    "a\u{0}b",
    ".git/config",
    "folder/../../x",
    "socket",
    "link-to-git/x",
    "\\\\?\\C:\\x",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_failure_of_a_file_tool_names_the_host_s_folders() {
    let workspace = TempWorkspace::repository(&[("file.txt", "one\n"), ("folder/x.txt", "x\n")]);
    workspace.link("/etc", "out");
    workspace.link("loop", "loop");
    workspace.link("nowhere", "dangling");
    workspace.link(".git", "link-to-git");
    let _socket = std::os::unix::net::UnixListener::bind(workspace.path("socket")).unwrap();
    let house = fenced(workspace).build().await;
    let long = "x/".repeat(3000);
    let name = "n".repeat(300);
    for path in PATHS.iter().copied().chain([long.as_str(), name.as_str()]) {
        check(&house, "file.read", json!({ "path": path })).await;
        check(&house, "file.list", json!({ "path": path })).await;
        check(&house, "file.search", json!({ "path": path, "pattern": "one" })).await;
        check(&house, "file.edit", json!({ "path": path, "edits": [{ "search": "one", "replace": "two" }] })).await;
        check(&house, "file.write", json!({ "path": path, "content": "x", "createOnly": true })).await;
        check(&house, "file.move", json!({ "from": path, "to": "folder" })).await;
        check(&house, "file.move", json!({ "from": "file.txt", "to": path })).await;
        check(&house, "file.delete", json!({ "path": path })).await;
        check(&house, "bash", json!({ "command": "true", "cwd": path })).await;
        check(&house, "git.diff", json!({ "path": path })).await;
        check(&house, "git.log", json!({ "path": path })).await;
        check(&house, "git.commit", json!({ "message": "x", "files": [path] })).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_failure_of_git_names_the_host_s_folders() {
    for (file, content) in [
        (".git/HEAD", "nonsense"),
        (".git/config", "[broken"),
        (".git/index", "nonsense"),
        (".git/index.lock", ""),
        (".git/refs/heads/main", "nonsense"),
        (".git/objects/info/alternates", "/nonexistent/objects\n"),
        (".git/commondir", "/nonexistent\n"),
        (".gitattributes", "* filter=x\n"),
    ] {
        let workspace = TempWorkspace::repository(&[("file.txt", "one\n")]);
        workspace.git(&["remote", "add", "origin", "./none.git"]);
        workspace.git(&["config", "filter.x.clean", "false"]);
        workspace.write("file.txt", "two\n");
        workspace.write(file, content);
        let house = fenced(workspace).person(SaysYes).build().await;
        for (tool, arguments) in [
            ("git.status", json!({})),
            ("git.diff", json!({})),
            ("git.log", json!({})),
            ("git.commit", json!({ "message": "x" })),
            ("git.push", json!({})),
        ] {
            check(&house, tool, arguments).await;
        }
    }
}
