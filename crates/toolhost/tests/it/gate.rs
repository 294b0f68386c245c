//! Every action of the facade is decided by role and recorded.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolhost::store::Role;
use toolhost::{ApplyOptions, Error, Host};

use crate::room::{ASSET, as_somebody, engines, rows, sample};

/// A change of an asset of the sample, as it is now.
async fn change_set(host: &Host, text: &str) -> Value {
    let read = host.call("builder.asset.read", json!({ "path": ASSET })).await;
    json!({
        "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize", "revisions": read.data["revisions"],
        "operations": [{
            "op": "upsert", "targetType": "asset", "target": { "path": ASSET }, "payload": { "content": text },
        }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_workspace_files_commands_and_git_are_refused_and_records_work() {
    for engine in engines() {
        let host = engine.host().await;
        let refused = [
            ("file.list", json!({})),
            ("file.read", json!({ "path": "a.txt" })),
            ("file.search", json!({ "pattern": "a" })),
            ("file.write", json!({ "path": "a.txt", "content": "a" })),
            ("file.edit", json!({ "path": "a.txt", "edits": [{ "search": "a", "replace": "b" }] })),
            ("file.move", json!({ "from": "a.txt", "to": "b.txt" })),
            ("file.delete", json!({ "path": "a.txt" })),
            ("bash", json!({ "command": "true" })),
            ("git.status", json!({})),
            ("git.log", json!({})),
            ("git.commit", json!({ "message": "a" })),
            ("git.init", json!({})),
        ];
        for (tool, arguments) in refused {
            let outcome = host.call(tool, arguments).await;
            let error = outcome.error.unwrap();
            assert!(error.message.contains("this project has no workspace"), "{engine} {tool}: {}", error.message);
            assert!(error.hint.is_some_and(|hint| hint.contains("records")), "{engine} {tool}");
            let ended =
                rows(&host).await.into_iter().rfind(|row| row["callId"] == json!(outcome.meta.call_id)).unwrap();
            assert_eq!((&ended["event"], &ended["outcome"]["ok"]), (&json!("finished"), &json!(false)), "{ended}");
        }
        let made = host.call("ticket.create", json!({ "title": "Tea", "description": "Make it." })).await;
        assert!(made.ok, "{engine}: {made:?}");
        assert_eq!(host.place().await, toolhost::Place::default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_leaves_its_rows() {
    for engine in engines() {
        let host = engine.host().await;
        let (packages, changes) = (host.packages(), host.changes());
        packages.import(sample(), false).await.unwrap();
        packages.export().await.unwrap();
        packages.workflows().await.unwrap();
        changes.stage("mine", change_set(&host, "Short.\n").await).await.unwrap();
        changes.validate("cs-1").await.unwrap();
        changes.preview("cs-1").await.unwrap();
        changes.list(None, true).await.unwrap();
        let applied = changes.apply("cs-1", &ApplyOptions::default()).await.unwrap();
        changes.undo(applied.data["moment"].as_i64().unwrap()).await.unwrap();
        changes.stage("mine", change_set(&host, "Shorter.\n").await).await.unwrap();
        changes.discard("2").await.unwrap();
        changes.history().await.unwrap();

        let mut events: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in rows(&host).await {
            assert_eq!(row["caller"]["kind"], "person", "{row}");
            assert_eq!(row["caller"]["door"], "embedded", "{row}");
            let (tool, event) = (row["tool"].as_str().unwrap(), row["event"].as_str().unwrap());
            events.entry(tool.to_owned()).or_default().push(event.to_owned());
        }
        let change = vec!["started", "finished"];
        let twice = vec!["started", "finished", "started", "finished"];
        let read = vec!["finished"];
        let expected = BTreeMap::from([
            ("builder.asset.read", vec!["finished", "finished"]),
            ("builder.change.apply", change.clone()),
            ("builder.change.discard", change.clone()),
            ("builder.change.stage", twice),
            ("builder.change.undo", change.clone()),
            ("builder.change.validate", change.clone()),
            ("change history", read.clone()),
            ("change list", read.clone()),
            ("change show", read.clone()),
            ("package export", read.clone()),
            ("package import", change),
            ("package list", read),
        ]);
        let events: BTreeMap<&str, Vec<&str>> =
            events.iter().map(|(tool, events)| (tool.as_str(), events.iter().map(String::as_str).collect())).collect();
        assert_eq!(events, expected, "{engine}");
    }
}

/// Whether somebody was refused, by the gate or by the facade.
fn is_refused<T>(done: toolhost::Result<T>) -> bool {
    match done {
        Err(Error::Call(outcome)) => outcome.error.is_some_and(|error| error.code.as_str() == "AI_TOOL_FORBIDDEN"),
        Err(error) => error.is_denied(),
        Ok(_) => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_not_the_role_is_refused_and_nothing_changes() {
    for engine in engines() {
        let owner = engine.host().await;
        owner.packages().import(sample(), false).await.unwrap();
        owner.changes().stage("mine", change_set(&owner, "Short.\n").await).await.unwrap();
        let applied = owner.changes().apply("cs-1", &ApplyOptions::default()).await.unwrap();
        let moment = applied.data["moment"].as_i64().unwrap();
        let set = change_set(&owner, "Shorter.\n").await;
        owner.changes().stage("mine", set.clone()).await.unwrap();
        let before = owner.packages().export().await.unwrap();

        let stranger = as_somebody(&owner, "mallory", None).await;
        let viewer = as_somebody(&owner, "vera", Some(Role::Viewer)).await;
        let editor = as_somebody(&owner, "edith", Some(Role::Editor)).await;
        for host in [&stranger, &viewer, &editor] {
            let who = &host.connection().user().name;
            assert!(is_refused(host.packages().import(sample(), true).await), "{engine} {who}");
            assert!(is_refused(host.packages().begin("tea", None, "2026-11-21T00:00:00Z").await), "{engine} {who}");
        }
        for host in [&stranger, &viewer] {
            let (who, changes) = (&host.connection().user().name, host.changes());
            assert!(is_refused(changes.stage("other", set.clone()).await), "{engine} {who}");
            assert!(is_refused(changes.apply("cs-2", &ApplyOptions::default()).await), "{engine} {who}");
            assert!(is_refused(changes.discard("cs-2").await), "{engine} {who}");
            assert!(is_refused(changes.undo(moment).await), "{engine} {who}");
        }
        let changes = stranger.changes();
        assert!(is_refused(stranger.packages().export().await), "{engine}");
        assert!(is_refused(stranger.packages().workflows().await), "{engine}");
        assert!(is_refused(changes.preview("cs-2").await), "{engine}");
        assert!(is_refused(changes.list(None, false).await), "{engine}");
        assert!(is_refused(changes.history().await), "{engine}");
        assert!(is_refused(changes.validate("cs-2").await), "{engine}");

        assert_eq!(owner.packages().export().await.unwrap(), before, "{engine}");
        assert_eq!(viewer.packages().export().await.unwrap(), before, "{engine}");
        let staged = owner.changes().list(None, true).await.unwrap();
        assert_eq!(staged.len(), 1, "{engine}: {staged:?}");
        assert!(editor.changes().apply("cs-2", &ApplyOptions::default()).await.is_ok(), "{engine}");
    }
}
