//! What a token opens, and for how long.

use toolhost_server::http::{HttpLimits, Secret};
use toolhost_testkit::{HttpStream, http, request};

use crate::rig::{HOUR_MS, Rig, house};

const ASKED: (&str, &str) = ("GET", "/api/v1/projects");

#[tokio::test]
async fn without_a_token_that_holds_nobody_is_told_anything() {
    let rig = Rig::one().await;
    let token = rig.token(&["call", "read"]).await;
    let missing = http(rig.address, ASKED, &[], "").await;
    assert_eq!((missing.status, missing.header("www-authenticate")), (401, Some("Bearer")), "{missing:?}");
    let unknown = Secret::new("p0").unwrap();
    let elsewhere = Secret::new("no such project").unwrap();
    for wrong in [unknown.as_str(), elsewhere.as_str(), "thp_x", "", &token[..token.len() - 1], &token.to_uppercase()] {
        let reply = rig.send(wrong, ASKED, "").await;
        assert_eq!(reply.status, 401, "{wrong}: {reply:?}");
        assert_eq!(reply.json()["ok"], false);
        assert_eq!(rig.send(wrong, ("POST", "/mcp"), "{}").await.status, 401, "{wrong}");
    }
    let basic = http(rig.address, ASKED, &[("authorization", &format!("Basic {token}"))], "").await;
    assert_eq!(basic.status, 401);
    assert_eq!(rig.send(&token, ASKED, "").await.status, 200);
}

#[tokio::test]
async fn a_token_ends_when_it_is_revoked_and_when_its_time_has_come() {
    let rig = Rig::one().await;
    let (first, second) = (rig.token(&["read"]).await, rig.token(&["read", "manage"]).await);
    assert_eq!(rig.send(&first, ASKED, "").await.status, 200);
    let listed = rig.send(&second, ("GET", "/api/v1/projects/p0/tokens"), "").await.json();
    let of_first = Secret::parse(&first).unwrap().hash();
    let id = format!("tok-{}", &of_first[..8]);
    assert!(listed["data"].as_array().unwrap().iter().any(|token| token["id"] == id.as_str()), "{listed}");
    assert!(!listed.to_string().contains(&of_first), "{listed}");
    let revoked = rig.send(&second, ("DELETE", &format!("/api/v1/projects/p0/tokens/{id}")), "").await;
    assert_eq!(revoked.status, 200, "{revoked:?}");
    // What is believed of a token is a second old at most.
    rig.advance(1001);
    assert_eq!(rig.send(&first, ASKED, "").await.status, 401);
    assert_eq!(rig.send(&second, ASKED, "").await.status, 200);
    rig.advance(HOUR_MS);
    assert_eq!(rig.send(&second, ASKED, "").await.status, 401);
}

#[tokio::test]
async fn a_token_of_somebody_who_is_no_member_any_more_opens_nothing() {
    let rig = Rig::one().await;
    let (token, house) = (rig.token(&["read"]).await, &rig.houses[0]);
    let bearer = format!("Bearer {token}");
    let listening = request(("GET", "/api/v1/projects/p0/events"), &[("authorization", &bearer)], "");
    let mut events = HttpStream::open(rig.address, listening.as_bytes()).await;
    assert!(events.until("text/event-stream").await.1);
    let people = house.store.people();
    let other = people.add_user("another owner").await.unwrap();
    people.set_role(house.project.id, other, toolhost_store::Role::Owner).await.unwrap();
    assert!(people.remove(house.project.id, toolhost_testkit::USER).await.unwrap());
    rig.advance(1001);
    assert_eq!(rig.send(&token, ASKED, "").await.status, 401);
    // Within five seconds its streams end, too.
    assert!(!events.until("\0 never").await.1);
}

#[tokio::test]
async fn a_token_is_for_what_its_rights_say_and_for_its_own_profiles() {
    let rig = Rig::one().await;
    let rights = ["call", "read", "run", "approve", "manage"];
    let paths = [
        ("GET", "/api/v1/projects/p0/tools", "call"),
        ("POST", "/api/v1/projects/p0/calls", "call"),
        ("GET", "/api/v1/projects/p0/audit", "read"),
        ("GET", "/api/v1/projects/p0/asks", "read"),
        ("GET", "/api/v1/projects/p0/events", "read"),
        ("POST", "/api/v1/projects/p0/asks/ask-1/decision", "approve"),
        ("GET", "/api/v1/projects/p0/tokens", "manage"),
        ("DELETE", "/api/v1/projects/p0/tokens/tok-1", "manage"),
        ("POST", "/api/v1/projects/p0/changes", "call"),
        ("GET", "/api/v1/projects/p0/changes", "read"),
        ("GET", "/api/v1/projects/p0/changes/cs-1", "read"),
        ("GET", "/api/v1/projects/p0/history", "read"),
        ("GET", "/api/v1/projects/p0/package", "read"),
        ("POST", "/api/v1/projects/p0/sessions", "run"),
        ("POST", "/api/v1/projects/p0/sessions/as_1/messages", "run"),
        ("POST", "/api/v1/projects/p0/sessions/as_1/pause", "run"),
        ("POST", "/api/v1/projects/p0/sessions/as_1/cancel", "run"),
        ("POST", "/api/v1/projects/p0/sessions/as_1/fork", "run"),
        ("POST", "/api/v1/projects/p0/changes/cs-1/application", "approve"),
        ("DELETE", "/api/v1/projects/p0/changes/cs-1", "approve"),
        ("POST", "/api/v1/projects/p0/history/1/undo", "approve"),
        ("PUT", "/api/v1/projects/p0/package", "manage"),
        ("PUT", "/api/v1/projects/p0/members/x", "manage"),
        ("DELETE", "/api/v1/projects/p0/members/x", "manage"),
    ];
    for right in rights {
        let others: Vec<&str> = rights.into_iter().filter(|other| *other != right).collect();
        let token = rig.token(&others).await;
        for (method, path, _) in paths.iter().filter(|(_, _, needed)| *needed == right) {
            let reply = rig.send(&token, (method, path), "{}").await;
            assert_eq!(reply.status, 403, "{method} {path} without {right}: {reply:?}");
        }
    }
    let narrow = rig.token_of(0, "reader", &["researcher"], &["call"]).await;
    assert_eq!(rig.send(&narrow, ("GET", "/api/v1/projects/p0/tools?profile=all"), "").await.status, 403);
    assert_eq!(rig.send(&narrow, ("POST", "/mcp/p0/all"), "{}").await.status, 404);
    let body = r#"{"tool":"file.write","arguments":{"path":"a","content":"b"},"profile":"all"}"#;
    assert_eq!(rig.send(&narrow, ("POST", "/api/v1/projects/p0/calls"), body).await.status, 403);
    let body = r#"{"tool":"file.write","arguments":{"path":"a","content":"b"}}"#;
    let refused = rig.send(&narrow, ("POST", "/api/v1/projects/p0/calls"), body).await;
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].as_str()),
        (403, Some("AI_TOOL_NOT_ALLOWED")),
        "{refused:?}"
    );
    assert!(!rig.houses[0].workspace.root().join("a").exists());
}

#[tokio::test]
async fn a_project_of_somebody_else_answers_as_one_that_does_not_exist() {
    let rig = Rig::start(vec![house(), house()], HttpLimits::default()).await;
    let token = rig.token(&["call", "read", "approve", "manage"]).await;
    for (method, path) in [
        ("GET", "/api/v1/projects/{}"),
        ("GET", "/api/v1/projects/{}/tools"),
        ("POST", "/api/v1/projects/{}/calls"),
        ("GET", "/api/v1/projects/{}/asks"),
        ("GET", "/api/v1/projects/{}/asks/ask-1"),
        ("GET", "/api/v1/projects/{}/audit"),
        ("GET", "/api/v1/projects/{}/events"),
        ("GET", "/api/v1/projects/{}/sessions"),
        ("GET", "/api/v1/projects/{}/members"),
        ("GET", "/api/v1/projects/{}/tokens"),
        ("POST", "/mcp/{}"),
        ("POST", "/mcp/{}/all"),
    ] {
        let theirs = rig.send(&token, (method, &path.replace("{}", "p1")), "{}").await;
        let nowhere = rig.send(&token, (method, &path.replace("{}", "p9")), "{}").await;
        assert_eq!(theirs.status, 404, "{path}: {theirs:?}");
        assert_eq!((theirs.status, &theirs.body), (nowhere.status, &nowhere.body), "{path}");
    }
    let seen = rig.send(&token, ASKED, "").await.json();
    assert_eq!(seen["data"].as_array().unwrap().len(), 1, "{seen}");
}

#[tokio::test]
async fn an_address_whose_logins_fail_is_told_to_wait() {
    let limits = HttpLimits { failed_logins: 3, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let token = rig.token(&["read"]).await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(rig.send("thp_wrong", ASKED, "").await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 429, 429]);
    assert_eq!(rig.send(&token, ASKED, "").await.status, 200, "who has a token is not kept out by others");
}
