//! `toolhost serve` and `toolhost token`: the program, its projects and its end.

use serde_json::json;
use toolhost_testkit::{Program, TempWorkspace, http};

use crate::room::program;
use crate::served::{ALL_RIGHTS, Served, token};

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
    let server = Served::start(&program(&first).bare(), &[]);
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
async fn a_project_of_another_user_is_served_by_a_server_that_names_none() {
    let workspace = TempWorkspace::new();
    let of_ann = program(&workspace).argument("--user").argument("ann");
    let (token, key) = token(&of_ann, &[]);
    workspace.write("a.txt", "hers");
    let server = Served::start(&program(&workspace), &[]);
    let read = server.call(&token, &key, "file.read", json!({ "path": "a.txt" })).await;
    assert_eq!((read.status, &read.json()["data"]["content"]), (200, &json!("hers")), "{read:?}");
}

#[tokio::test]
async fn a_project_whose_folder_is_gone_still_has_its_records() {
    let (first, second, _, of_second) = two_projects();
    let (token, key) = token(&of_second, &["--profile", "planner"]);
    let made = of_second.run(&["ticket", "create", "Still here"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    std::fs::rename(second.root(), second.beside("elsewhere")).unwrap();
    let server = Served::start(&program(&first).bare(), &[]);
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
    let server = Served::start(&program, &[]);
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
    let server = Served::start(&program, &[]);
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
    let servers = [Served::start(&program, &[]), Served::start(&program, &[])];
    let body = json!({ "tool": "ticket.create", "arguments": { "title": "Once" } }).to_string();
    let number = "7fdab023-1123-49c5-b4a5-8f5fb71c7a14";
    let bearer = format!("Bearer {secret}");
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", number)];
    let asking = (0..10).map(|turn| {
        let address = servers[turn % 2].address("address");
        http(address, ("POST", "/api/v1/projects/shop/calls"), &headers, &body)
    });
    let replies = futures::future::join_all(asking).await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.body == replies[0].body), "{replies:?}");
    let listed = servers[1].call(secret, "shop", "ticket.list", json!({})).await.json();
    assert_eq!(listed["data"]["items"].as_array().unwrap().len(), 1, "{listed}");
    let [first, second] = servers;
    let one = http(first.address("address"), ("POST", "/api/v1/projects/shop/calls"), &headers, &body).await;
    let two = http(second.address("address"), ("POST", "/api/v1/projects/shop/calls"), &headers, &body).await;
    assert_eq!((one.status, &one.body), (200, &two.body), "{one:?}");
}

#[tokio::test]
async fn a_token_gives_no_right_that_it_does_not_have_and_approve_in_no_other_name() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert_eq!(program.run(&["member", "add", "anna", "editor"]).code, Some(0));
    let (managing, key) = token(&program, &["--right", "manage", "--right", "read"]);
    let (all, _) = token(&program, &ALL_RIGHTS);
    let server = Served::start(&program, &[]);
    let address = format!("/api/v1/projects/{key}/tokens");
    let make = |secret: &str, rights: &[&str], acts_for: &str| {
        let wish = json!({ "name": "x", "profiles": ["researcher"], "rights": rights, "for": acts_for }).to_string();
        let (secret, server, address) = (secret.to_owned(), &server, &address);
        async move { server.send(&secret, ("POST", address), &wish).await.status }
    };
    for right in ["call", "run", "approve"] {
        assert_eq!(make(&managing, &["read", right], "local").await, 403, "{right}");
    }
    assert_eq!(make(&managing, &["read", "manage"], "anna").await, 200);
    // One person must not be able to ask and to answer as somebody else.
    assert_eq!(make(&all, &["approve"], "anna").await, 403);
    assert_eq!(make(&all, &["approve"], "local").await, 200);
    assert_eq!(make(&all, &["call", "read"], "anna").await, 200);
}
