//! What people do over the API: packages, changes, sessions, members.

use serde_json::{Value, json};
use toolhost_testkit::{HttpReply, Program, TempWorkspace};

use crate::room::program;
use crate::served::{ALL_RIGHTS, Served, token};

/// A served project with a token that may do everything, and its address.
struct Room {
    workspace: TempWorkspace,
    program: Program,
    server: Served,
    token: String,
    at: String,
}

impl Room {
    fn new(config: &str) -> Self {
        let workspace = TempWorkspace::new();
        let mut program = program(&workspace);
        if !config.is_empty() {
            let file = workspace.beside("config.toml");
            std::fs::write(&file, config).unwrap();
            program = program.variable("TOOLHOST_CONFIG", &file);
        }
        let (token, key) = token(&program, &ALL_RIGHTS);
        let server = Served::start(&program, &[]);
        Self { workspace, program, server, token, at: format!("/api/v1/projects/{key}") }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> HttpReply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.server.send(&self.token, (method, &format!("{}{path}", self.at)), &body).await
    }

    async fn data(&self, method: &str, path: &str, body: Value) -> Value {
        let reply = self.send(method, path, body).await;
        assert_eq!(reply.status, 200, "{method} {path}: {reply:?}");
        reply.json()["data"].clone()
    }
}

#[tokio::test]
async fn a_package_is_begun_changed_previewed_applied_and_taken_back() {
    let room = Room::new("");
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/research-report");
    assert_eq!(room.program.run(&["package", "import", package]).code, Some(0));
    let asset = json!({ "path": "assets/review-checklist.md" });
    let read = room.program.run(&["--json", "call", "builder.asset.read", &asset.to_string()]).json();
    let set = json!({
        "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize", "revisions": read["data"]["revisions"],
        "operations": [{ "op": "upsert", "targetType": "asset", "target": asset, "payload": { "content": "Be brief.\n" } }],
    });
    let staged = room.send("POST", "/changes", json!({ "changeSet": set })).await;
    assert_eq!(staged.status, 200, "{staged:?}");
    let id = staged.json()["data"]["changeSetId"].as_str().unwrap().to_owned();
    let validated = room.send("POST", &format!("/changes/{id}/validation"), Value::Null).await;
    assert_eq!((validated.status, &validated.json()["data"]["valid"]), (200, &json!(true)), "{validated:?}");
    assert_eq!(room.data("GET", "/changes", Value::Null).await[0]["changeSetId"], id.as_str());
    let shown = room.data("GET", &format!("/changes/{id}"), Value::Null).await;
    assert!(shown["preview"]["diff"].as_array().is_some_and(|diff| !diff.is_empty()), "{shown}");
    let apply = format!("/changes/{id}/application");
    let other = room.send("POST", &apply, json!({ "digest": "0".repeat(64) })).await;
    assert_eq!(other.status, 409, "{other:?}");
    assert_eq!(room.data("GET", "/history", Value::Null).await.as_array().unwrap().len(), 1);
    let applied = room.send("POST", &apply, json!({ "digest": shown["digest"] })).await;
    assert_eq!(applied.status, 200, "{applied:?}");
    let history = room.data("GET", "/history", Value::Null).await;
    let moment = &history[0]["moment"];
    assert_eq!(history[0]["changeSetId"], id.as_str(), "{history}");
    let undone = room.send("POST", &format!("/history/{moment}/undo"), Value::Null).await;
    assert_eq!(undone.status, 200, "{undone:?}");
    let rows = room.program.run(&["--json", "audit", "show", "--tool", "builder.change.apply"]);
    assert!(rows.stdout.contains("\"http\"") && rows.stdout.contains("\"person\""), "{rows:?}");
}

#[tokio::test]
async fn a_package_goes_out_and_in_as_one_file_and_replaces_only_what_was_read() {
    let room = Room::new("");
    assert_eq!(room.program.run(&["package", "new", "notes"]).code, Some(0));
    let out = room.send("GET", "/package", Value::Null).await;
    assert_eq!((out.status, out.header("content-type")), (200, Some("application/zip")), "{out:?}");
    let tag = out.header("etag").unwrap().to_owned();
    let file = room.workspace.beside("package.zip");
    assert_eq!(room.program.run(&["package", "export", file.to_str().unwrap()]).code, Some(0));
    let zip = std::fs::read(&file).unwrap();
    let put = async |tag: Option<&str>| {
        let path = format!("{}/package", room.at);
        let mut headers = vec![("content-type", "application/zip")];
        headers.extend(tag.map(|tag| ("if-match", tag)));
        let bearer = format!("Bearer {}", room.token);
        headers.push(("authorization", &bearer));
        toolhost_testkit::http_bytes(room.server.address("address"), ("PUT", &path), &headers, &zip).await
    };
    assert_eq!(put(None).await.status, 409);
    assert_eq!(put(Some("\"0000\"")).await.status, 409);
    assert_eq!(put(Some("0000")).await.status, 400);
    let brought = put(Some(&tag)).await;
    assert_eq!(brought.status, 200, "{brought:?}");
    assert_eq!(format!("\"{}\"", brought.json()["data"]["revision"].as_str().unwrap()), tag);
    let json = room.send("POST", "/package/validation", json!({})).await;
    assert_eq!(json.status, 415, "{json:?}");
}

#[tokio::test]
async fn members_are_managed_by_an_owner_with_the_right_to_it() {
    let room = Room::new("");
    room.data("PUT", "/members/anna", json!({ "role": "editor" })).await;
    let members = room.data("GET", "/members", Value::Null).await;
    assert!(members.to_string().contains("anna"), "{members}");
    assert_eq!(room.send("PUT", "/members/anna", json!({ "role": "king" })).await.status, 400);
    // Her token has the right, and she is no owner.
    let (of_anna, _) = token(&room.program, &["--for", "anna", "--right", "manage"]);
    let by_anna = room.server.send(&of_anna, ("DELETE", &format!("{}/members/local", room.at)), "").await;
    assert_eq!(by_anna.status, 403, "{by_anna:?}");
    room.data("DELETE", "/members/anna", Value::Null).await;
    assert_eq!(room.send("DELETE", "/members/anna", Value::Null).await.status, 404);
}

/// A model of this machine that reads a file and answers.
fn script(workspace: &TempWorkspace) -> String {
    let file = workspace.beside("script.json");
    let text = json!({ "turns": [
        { "calls": [{ "tool": "file_read", "arguments": { "path": "a.txt" } }] },
        { "text": "It says hello." },
        { "text": "And hello again." },
    ] });
    std::fs::write(&file, text.to_string()).unwrap();
    format!("script:{}", file.to_str().unwrap())
}

async fn ended(room: &Room, id: &str) -> Value {
    loop {
        let standing = room.data("GET", &format!("/sessions/{id}"), Value::Null).await;
        if standing["running"] == false && standing["state"] != "active" {
            return standing;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_session_is_started_on_the_server_and_told_more() {
    let workspace = TempWorkspace::new();
    let room = Room::new(&format!("model = \"{}\"\n", script(&workspace)));
    room.workspace.write("a.txt", "hello");
    let started = room.data("POST", "/sessions", json!({ "goal": "What does it say?", "files": ["./a.txt"] })).await;
    let id = started["id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&room, &id).await["state"], "done");
    let steps = room.data("GET", &format!("/sessions/{id}/steps"), Value::Null).await;
    assert!(steps.to_string().contains("It says hello."), "{steps}");
    assert_eq!(steps[0]["body"]["goal"], "What does it say?\n\nLook at these first:\n- a.txt");
    for wrong in [json!({ "goal": "x", "files": ["none"] }), json!({ "goal": "x", "files": vec!["a.txt"; 51] })] {
        let refused = room.send("POST", "/sessions", wrong).await;
        assert_eq!(refused.status, 400, "{refused:?}");
    }
    // What an agent does is told by its name: it is not a member's, and a short one that can be seen.
    for persona in ["local", " LOCAL ", &*"p".repeat(101), "a\u{202e}b", "a\nb"] {
        let refused = room.send("POST", "/sessions", json!({ "goal": "x", "persona": persona })).await;
        assert_eq!(refused.status, 400, "{persona}: {refused:?}");
    }
    let bad = room.send("POST", "/sessions", json!({ "goal": "x", "model": "script:/etc/passwd" })).await;
    assert_eq!(bad.status, 400, "{bad:?}");
    let said = room.send("POST", &format!("/sessions/{id}/messages"), json!({ "text": "Again?" })).await;
    assert_eq!(said.status, 200, "{said:?}");
    let forked = room.data("POST", &format!("/sessions/{id}/fork"), json!({ "turns": 1 })).await;
    assert_eq!(forked["turns"], 1, "{forked}");
    assert_eq!(room.server.end(), Some(0));
}

#[tokio::test]
async fn a_token_cannot_make_sessions_with_a_profile_that_it_has_not() {
    let workspace = TempWorkspace::new();
    let room = Room::new(&format!("model = \"{}\"\n", script(&workspace)));
    let (small, _) = token(&room.program, &["--profile", "researcher", "--right", "run"]);
    let path = format!("{}/sessions", room.at);
    let body = json!({ "goal": "x", "profile": "developer" }).to_string();
    let refused = room.server.send(&small, ("POST", &path), &body).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let own = room.data("POST", "/sessions", json!({ "goal": "What does a.txt say?" })).await;
    let id = own["id"].as_str().unwrap();
    ended(&room, id).await;
    for (path, body) in [("messages", "{}"), ("pause", ""), ("cancel", ""), ("fork", "{}")] {
        let reply = room.server.send(&small, ("POST", &format!("{}/sessions/{id}/{path}", room.at)), body).await;
        assert_eq!(reply.status, 403, "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn what_is_said_to_an_agent_at_work_is_heard_after_a_kill_of_the_server() {
    let workspace = TempWorkspace::new();
    let file = workspace.beside("script.json");
    let turns = json!({ "turns": [
        { "calls": [{ "tool": "human_ask", "arguments": { "question": "Which name?" } }] },
        { "text": "Ada.", "expect": { "user": "In capitals, please." } },
    ] });
    std::fs::write(&file, turns.to_string()).unwrap();
    let mut room = Room::new(&format!("model = \"script:{}\"\n", file.to_str().unwrap()));
    let started = room.data("POST", "/sessions", json!({ "goal": "Ask for a name." })).await;
    let id = started["id"].as_str().unwrap().to_owned();
    while room.data("GET", "/asks", Value::Null).await["asks"].as_array().is_none_or(Vec::is_empty) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let said = room.data("POST", &format!("/sessions/{id}/messages"), json!({ "text": "In capitals, please." })).await;
    assert_eq!(said["running"], true, "{said}");
    let empty = room.send("POST", &format!("/sessions/{id}/resume"), Value::Null).await;
    assert_eq!(empty.status, 409, "it is at work: {empty:?}");
    room.server.kill();
    room.server = Served::start(&room.program, &[]);
    let steps = room.data("GET", &format!("/sessions/{id}/steps"), Value::Null).await;
    assert!(!steps.to_string().contains("In capitals"), "it has not heard it: {steps}");
    room.data("POST", &format!("/sessions/{id}/resume"), Value::Null).await;
    // The call may take up the ask of before, or ask anew.
    while room.data("GET", &format!("/sessions/{id}"), Value::Null).await["running"] == true {
        room.program.run(&["review", "decide", "--everything", "--answer", "Ada"]);
    }
    assert_eq!(ended(&room, &id).await["state"], "done");
    let steps = room.data("GET", &format!("/sessions/{id}/steps"), Value::Null).await;
    assert_eq!(steps.to_string().matches("In capitals").count(), 1, "it heard it once: {steps}");
    let rows = room.program.run(&["--json", "audit", "show", "--tool", "session.say"]);
    assert_eq!(rows.stdout.matches("In capitals").count(), 2, "its two rows: {rows:?}");
}
