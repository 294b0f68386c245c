//! The quota of a project: who sets it, at a terminal and over the API, and that it holds behind every door.

use serde_json::json;
use toolhost_testkit::TempWorkspace;

use crate::room::program;
use crate::served::{ALL_RIGHTS, Served, token};

#[tokio::test]
async fn an_owner_sets_a_quota_that_holds_behind_every_door() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "hello");
    let program = program(&workspace);
    let shown = program.run(&["quota", "show"]);
    assert_eq!(shown.stdout, "calls a minute: no limit\ncalls open: no limit\n", "{shown:?}");
    let (secret, key) = token(&program, &ALL_RIGHTS);
    let server = Served::start(&program, &[]);
    let address = format!("/api/v1/projects/{key}/quota");
    let free = server.send(&secret, ("GET", &address), "").await.json();
    assert_eq!(free["data"], json!({ "callsPerMinute": null, "callsOpen": null }), "{free}");
    for wrong in [json!({ "callsPerMinute": 0 }), json!({ "callsOpen": 1025 }), json!({ "calls": 1 })] {
        assert_eq!(server.send(&secret, ("PUT", &address), &wrong.to_string()).await.status, 400, "{wrong}");
    }
    let set = server.send(&secret, ("PUT", &address), &json!({ "callsOpen": 5 }).to_string()).await;
    assert_eq!((set.status, &set.json()["data"]["callsOpen"]), (200, &json!(5)), "{set:?}");
    // The calls of this minute are counted with those to come: the server's, and those of commands.
    let read = json!({ "path": "a.txt" });
    assert_eq!(server.call(&secret, &key, "file.read", read.clone()).await.status, 200);
    let set = program.run(&["--json", "quota", "set", "--calls-per-minute", "1"]);
    assert_eq!(set.json(), json!({ "callsPerMinute": 1, "callsOpen": 5 }), "{set:?}");
    // A quota is believed for a second.
    let refused = loop {
        let reply = server.call(&secret, &key, "file.read", read.clone()).await;
        if reply.status != 200 {
            break reply;
        }
    };
    let said = refused.json();
    let seconds = said["error"]["details"]["retryAfterSeconds"].as_u64().unwrap();
    assert_eq!((refused.status, &said["error"]["kind"]), (429, &json!("limit")), "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some(&*seconds.to_string()), "{refused:?}");
    assert!((1..=60).contains(&seconds) && said["error"]["hint"].as_str().unwrap().contains("try again"), "{said}");
    let called = program.run(&["call", "file.read", &read.to_string()]);
    assert!(called.code != Some(0) && called.stderr.contains("quota"), "{called:?}");
    let free = program.run(&["--json", "quota", "set", "--calls-per-minute", "none"]);
    assert_eq!(free.json(), json!({ "callsPerMinute": null, "callsOpen": 5 }), "{free:?}");
    let audit = program.run(&["--json", "audit", "show", "--tool", "quota.set"]);
    assert!(audit.stdout.contains("callsPerMinute"), "{audit:?}");
}

#[tokio::test]
async fn only_an_owner_changes_a_quota() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert_eq!(program.run(&["member", "add", "eve", "editor"]).code, Some(0));
    let (secret, key) = token(&program, &["--for", "eve", "--right", "read", "--right", "manage"]);
    let server = Served::start(&program, &[]);
    let address = format!("/api/v1/projects/{key}/quota");
    assert_eq!(server.send(&secret, ("GET", &address), "").await.status, 200);
    let set = server.send(&secret, ("PUT", &address), "{}").await;
    assert_eq!(set.status, 403, "{set:?}");
    let set = program.run(&["--user", "eve", "quota", "set", "--calls-open", "9"]);
    assert_ne!(set.code, Some(0), "{set:?}");
    assert!(program.run(&["quota", "show"]).stdout.contains("calls open: no limit"));
    let wrong = program.run(&["quota", "set", "--calls-open", "many"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
