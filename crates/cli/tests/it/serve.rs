//! `toolhost serve` and `toolhost token`: the program, its projects and its end.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toolhost_testkit::{HttpReply, Program, TempWorkspace, http};

use crate::room::program;

/// A server, started as a person starts it. It is killed if a test forgets it.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(program: &Program, arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["--json", "serve", "--listen", "127.0.0.1:0"].iter().chain(arguments).copied().collect();
        let mut child = program.command(&all).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        let told: Value = loop {
            assert_ne!(output.read_line(&mut text).unwrap(), 0, "it ended: {text}");
            if let Ok(told) = serde_json::from_str(&text) {
                break told;
            }
        };
        Self { child, address: told["address"].as_str().unwrap().parse().unwrap() }
    }

    async fn send(&self, token: &str, asked: (&str, &str), body: &str) -> HttpReply {
        http(self.address, asked, &[("authorization", &format!("Bearer {token}"))], body).await
    }

    async fn call(&self, token: &str, project: &str, tool: &str, arguments: Value) -> HttpReply {
        let body = json!({ "tool": tool, "arguments": arguments }).to_string();
        self.send(token, ("POST", &format!("/api/v1/projects/{project}/calls")), &body).await
    }

    /// Ends it as an operator does; how it ended.
    #[expect(clippy::disallowed_methods, reason = "an operator's shell")]
    fn end(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A token for the program's project, and the project's key.
fn token(program: &Program, arguments: &[&str]) -> (String, String) {
    let all: Vec<&str> = ["--json", "token", "create", "agent"].iter().chain(arguments).copied().collect();
    let made = program.run(&all);
    assert_eq!(made.code, Some(0), "{made:?}");
    let made = made.json();
    (made["token"].as_str().unwrap().to_owned(), made["project"].as_str().unwrap().to_owned())
}

/// Two projects of one user, each found by its folder.
fn two_projects() -> (TempWorkspace, TempWorkspace, Program, Program) {
    let (first, second) = (TempWorkspace::new(), TempWorkspace::new());
    let of = |workspace: &TempWorkspace| program(&first).bare().argument("--root").argument(workspace.root());
    let (of_first, of_second) = (of(&first), of(&second));
    (first, second, of_first, of_second)
}

#[tokio::test]
async fn all_projects_of_a_user_are_served_and_each_token_opens_its_own() {
    let (first, second, of_first, of_second) = two_projects();
    first.write("a.txt", "first");
    second.write("a.txt", "second");
    let ((one, key_one), (two, key_two)) = (token(&of_first, &[]), token(&of_second, &[]));
    let server = Server::start(&program(&first).bare(), &[]);
    for (token, key, content) in [(&one, &key_one, "first"), (&two, &key_two, "second")] {
        let reply = server.call(token, key, "file.read", json!({ "path": "a.txt" })).await;
        assert_eq!((reply.status, &reply.json()["data"]["content"]), (200, &json!(content)), "{reply:?}");
    }
    assert_eq!(server.call(&one, &key_two, "file.read", json!({ "path": "a.txt" })).await.status, 404);
    let ran = server.call(&one, &key_one, "bash", json!({ "command": "cat a.txt" })).await;
    assert!(ran.body.contains("first"), "{ran:?}");
    // A project that comes while the server runs is served, too.
    let third = TempWorkspace::new();
    let of_third = program(&first).bare().argument("--root").argument(third.root());
    let (three, key_three) = token(&of_third, &[]);
    assert_eq!(server.call(&three, &key_three, "file.list", json!({})).await.status, 200);
    assert_eq!(server.end(), Some(0));
    let audit = of_first.run(&["--json", "audit", "verify"]);
    assert_eq!(audit.code, Some(0), "{audit:?}");
}

#[tokio::test]
async fn a_project_whose_folder_is_gone_still_has_its_records() {
    let (first, second, _, of_second) = two_projects();
    let (token, key) = token(&of_second, &["--profile", "planner"]);
    let made = of_second.run(&["ticket", "create", "Still here"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    std::fs::rename(second.root(), second.beside("elsewhere")).unwrap();
    let server = Server::start(&program(&first).bare(), &[]);
    let listed = server.call(&token, &key, "ticket.list", json!({})).await;
    assert!(listed.status == 200 && listed.body.contains("Still here"), "{listed:?}");
    let file = server.call(&token, &key, "file.list", json!({})).await;
    assert_ne!(file.status, 200, "{file:?}");
}

#[tokio::test]
async fn a_revoked_token_opens_nothing_within_a_second() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let (secret, key) = token(&program, &[]);
    let server = Server::start(&program, &[]);
    let path = format!("/api/v1/projects/{key}");
    assert_eq!(server.send(&secret, ("GET", &path), "").await.status, 200);
    let listed = program.run(&["--json", "token", "list"]).json();
    assert!(!listed.to_string().contains(&secret), "{listed}");
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(program.run(&["token", "revoke", id]).code, Some(0));
    while server.send(&secret, ("GET", &path), "").await.status != 401 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let again = program.run(&["token", "revoke", id]);
    assert_eq!(again.code, Some(2), "{again:?}");
}

#[test]
fn a_server_that_others_reach_needs_tls_before_it() {
    let workspace = TempWorkspace::new();
    let refused = program(&workspace).run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--behind-tls-proxy"), "{refused:?}");
}

#[test]
fn a_token_is_for_a_profile_and_a_member_that_are_there() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    for (arguments, said) in [
        (["--profile", "no-such"], "no-such"),
        (["--for", "nobody"], "has no member `nobody`"),
        (["--expires", "0s"], "ten years"),
        (["--right", "everything"], "approve"),
    ] {
        let all: Vec<&str> = ["token", "create", "x"].iter().chain(&arguments).copied().collect();
        let ran = program.run(&all);
        assert!(ran.code != Some(0) && ran.stderr.contains(said), "{arguments:?}: {ran:?}");
    }
    assert_eq!(program.run(&["member", "add", "vera", "viewer"]).code, Some(0));
    let by_viewer = program.run(&["--user", "vera", "token", "create", "x"]);
    assert_ne!(by_viewer.code, Some(0), "{by_viewer:?}");
}

#[tokio::test]
async fn a_viewer_s_token_reads_and_changes_nothing() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "hello");
    let program = program(&workspace);
    assert_eq!(program.run(&["member", "add", "vera", "viewer"]).code, Some(0));
    let (secret, key) = token(&program, &["--for", "vera", "--right", "call", "--right", "approve"]);
    let server = Server::start(&program, &[]);
    let read = server.call(&secret, &key, "file.read", json!({ "path": "a.txt" })).await;
    assert_eq!(read.status, 200, "{read:?}");
    let written = server.call(&secret, &key, "file.write", json!({ "path": "b.txt", "content": "x" })).await;
    assert_eq!((written.status, written.json()["error"]["kind"].as_str()), (403, Some("permission")), "{written:?}");
    assert!(!workspace.has("b.txt"));
}

#[tokio::test]
async fn two_servers_of_one_database_make_a_call_with_a_key_once() {
    // A machine without a server says so elsewhere.
    let Some(postgres) = toolhost_testkit::Postgres::shared() else { return };
    let url = postgres.fresh_database();
    let workspace = TempWorkspace::new();
    let program = program(&workspace).bare().argument("--database").argument(&url);
    let named = program.clone().argument("--project").argument("shop");
    let root = workspace.root();
    let made = named.run(&["--root", root.to_str().unwrap(), "--json", "token", "create", "agent", "--profile", "all"]);
    let made = made.json();
    let (secret, key) = (made["token"].as_str().unwrap(), made["project"].as_str().unwrap());
    assert_eq!(key, "shop");
    let servers = [Server::start(&program, &[]), Server::start(&program, &[])];
    let body = json!({ "tool": "ticket.create", "arguments": { "title": "Once" } }).to_string();
    let number = "7fdab023-1123-49c5-b4a5-8f5fb71c7a14";
    let bearer = format!("Bearer {secret}");
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", number)];
    let asking = (0..10).map(|turn| {
        let address = servers[turn % 2].address;
        http(address, ("POST", "/api/v1/projects/shop/calls"), &headers, &body)
    });
    let replies = futures::future::join_all(asking).await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.body == replies[0].body), "{replies:?}");
    let listed = servers[1].call(secret, "shop", "ticket.list", json!({})).await.json();
    assert_eq!(listed["data"]["items"].as_array().unwrap().len(), 1, "{listed}");
    let [first, second] = servers;
    let one = http(first.address, ("POST", "/api/v1/projects/shop/calls"), &headers, &body).await;
    let two = http(second.address, ("POST", "/api/v1/projects/shop/calls"), &headers, &body).await;
    assert_eq!((one.status, &one.body), (200, &two.body), "{one:?}");
}
