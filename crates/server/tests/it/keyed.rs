//! Calls whose number their caller chose.

use std::time::Duration;

use serde_json::json;
use toolhost_server::http::HttpLimits;

use crate::rig::{Rig, house};

const CALLS: (&str, &str) = ("POST", "/api/v1/projects/p0/calls");
const KEY: &str = "7fdab023-1123-49c5-b4a5-8f5fb71c7a14";

fn append() -> String {
    json!({ "tool": "file.edit", "arguments": { "path": "a.txt", "find": "one", "replace": "one one" } }).to_string()
}

#[tokio::test]
async fn a_call_with_a_key_is_made_once_however_often_it_is_asked_for() {
    let rig = Rig::one().await;
    rig.houses[0].workspace.write("a.txt", b"one\n");
    let token = rig.token(&["call", "read"]).await;
    let body = append();
    let key = [("idempotency-key", KEY)];
    let asking = (0..8).map(|_| rig.send_with(&token, CALLS, &key, &body));
    let replies = futures::future::join_all(asking).await;
    let made = &replies;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.body == made[0].body), "{replies:?}");
    let later = rig.send_with(&token, CALLS, &key, &body).await;
    assert_eq!((later.status, &later.body), (200, &made[0].body), "{later:?}");
    assert_eq!(later.json()["meta"]["callId"], KEY);
    assert_eq!(rig.houses[0].workspace.read("a.txt"), "one one\n");
    let rows = rig.houses[0].rows().await;
    let begun = rows.iter().filter(|row| row["callId"] == KEY && row["event"] == "started").count();
    assert_eq!(begun, 1, "{rows:?}");
}

#[tokio::test]
async fn a_key_is_that_of_one_call_of_one_caller() {
    let rig = Rig::one().await;
    let (token, other) = (rig.token(&["call"]).await, rig.token_of(0, "other", &["all"], &["call"]).await);
    let key = [("idempotency-key", KEY)];
    let body = json!({ "tool": "file.write", "arguments": { "path": "a", "content": "x" } }).to_string();
    assert_eq!(rig.send_with(&token, CALLS, &key, &body).await.status, 200);
    let changed = json!({ "tool": "file.write", "arguments": { "path": "b", "content": "x" } }).to_string();
    assert_eq!(rig.send_with(&token, CALLS, &key, &changed).await.status, 409);
    let of_other = rig.send_with(&other, CALLS, &key, &body).await;
    assert_eq!(of_other.status, 409, "{of_other:?}");
    assert!(!rig.houses[0].workspace.root().join("b").exists());
    // The number of a call that was made without a key is taken, too.
    let made = rig.call(&token, "file.write", json!({ "path": "c", "content": "x" })).await.json();
    let taken = made["meta"]["callId"].as_str().unwrap().to_owned();
    let reply = rig.send_with(&token, CALLS, &[("idempotency-key", &taken)], &changed).await;
    assert_eq!(reply.status, 409, "{reply:?}");
    for wrong in ["1", "", &KEY.to_uppercase(), "7fdab023112349c5b4a58f5fb71c7a14"] {
        let reply = rig.send_with(&token, CALLS, &[("idempotency-key", wrong)], &changed).await;
        assert_eq!(reply.status, 400, "{wrong}: {reply:?}");
    }
}

#[tokio::test]
async fn a_call_whose_host_ended_without_an_answer_is_not_made_again() {
    let limits = HttpLimits { keyed_wait: Duration::ZERO, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let token = rig.token(&["call"]).await;
    let house = &rig.houses[0];
    let secret = toolhost_server::http::Secret::parse(&token).unwrap().hash();
    let asked_for = json!({
        "token": format!("tok-{}", &secret[..8]), "tool": "file.write", "arguments": { "path": "a", "content": "x" },
        "profile": "all", "ticket": null,
    });
    let digest = sha256(&toolhost_contract::canonical_json(&asked_for).unwrap());
    let claimed = toolhost_store::KeyedCall { project_id: house.project.id, call_id: KEY.to_owned(), digest };
    // As a host that is killed now leaves it.
    assert_eq!(house.store.keyed_calls().claim(&claimed).await.unwrap(), toolhost_store::Claim::First);
    let body = json!({ "tool": "file.write", "arguments": { "path": "a", "content": "x" } }).to_string();
    let reply = rig.send_with(&token, CALLS, &[("idempotency-key", KEY)], &body).await;
    assert_eq!(reply.status, 409, "{reply:?}");
    assert!(reply.body.contains("under way"), "{reply:?}");
    assert!(!house.workspace.root().join("a").exists());
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    hex::encode(sha2::Sha256::digest(text))
}
