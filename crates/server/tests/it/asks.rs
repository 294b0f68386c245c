//! People answer over the API.

use serde_json::{Value, json};

use crate::rig::Rig;

/// A call that a person has to allow, pending; the number of its ask.
async fn pending(rig: &Rig, token: &str) -> String {
    let reply = rig.call(token, "file.write", json!({ "path": "asked.txt", "content": "x" })).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    reply.json()["data"]["approvalId"].as_str().unwrap().to_owned()
}

async fn rig() -> (Rig, String, String) {
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
    let rig = Rig::start(vec![crate::rig::house().project_policy(policy)], Default::default()).await;
    let (agent, person) = (rig.token(&["call"]).await, rig.token_of(0, "p", &["all"], &["read", "approve"]).await);
    (rig, agent, person)
}

async fn shown(rig: &Rig, person: &str, ask: &str) -> Value {
    rig.send(person, ("GET", &format!("/api/v1/projects/p0/asks/{ask}")), "").await.json()["data"].clone()
}

async fn decide(rig: &Rig, token: &str, ask: &str, body: Value) -> toolhost_testkit::HttpReply {
    rig.send(token, ("POST", &format!("/api/v1/projects/p0/asks/{ask}/decision")), &body.to_string()).await
}

#[tokio::test]
async fn a_person_allows_exactly_what_was_shown_and_the_call_runs() {
    let (rig, agent, person) = rig().await;
    let ask = pending(&rig, &agent).await;
    let listed = rig.send(&person, ("GET", "/api/v1/projects/p0/asks"), "").await.json();
    assert_eq!(listed["data"]["asks"].as_array().unwrap().len(), 1, "{listed}");
    let seen = shown(&rig, &person, &ask).await;
    assert!(seen["pages"][0].as_str().unwrap().contains("asked.txt"), "{seen}");
    let digest = seen["digest"].as_str().unwrap();
    let other = decide(&rig, &person, &ask, json!({ "decision": "allow", "digest": "0".repeat(64) })).await;
    assert_eq!(other.status, 409, "{other:?}");
    let by_agent = decide(&rig, &agent, &ask, json!({ "decision": "allow", "digest": digest })).await;
    assert_eq!(by_agent.status, 403, "{by_agent:?}");
    assert!(!rig.houses[0].workspace.root().join("asked.txt").exists());
    let allowed = decide(&rig, &person, &ask, json!({ "decision": "allow", "digest": digest })).await;
    assert_eq!((allowed.status, &allowed.json()["data"]["state"]), (200, &json!("answered")), "{allowed:?}");
    let done = rig.call(&agent, "approval.wait", json!({ "approvalId": ask })).await;
    assert_eq!((done.status, &done.json()["data"]["status"]), (200, &json!("finished")), "{done:?}");
    assert!(rig.houses[0].workspace.root().join("asked.txt").exists());
    let again = decide(&rig, &person, &ask, json!({ "decision": "deny", "digest": digest })).await;
    assert_eq!(again.status, 409, "{again:?}");
    let rows = rig.houses[0].rows().await;
    let decided = rows.iter().find(|row| row["event"] == "decision").unwrap();
    assert_eq!(decided["decision"]["place"], "http", "{decided}");
}

#[tokio::test]
async fn a_no_ends_the_call_with_its_reason() {
    let (rig, agent, person) = rig().await;
    let ask = pending(&rig, &agent).await;
    let digest = shown(&rig, &person, &ask).await["digest"].clone();
    let word = decide(&rig, &person, &ask, json!({ "decision": "perhaps", "digest": digest })).await;
    assert_eq!(word.status, 400, "{word:?}");
    let denied = decide(&rig, &person, &ask, json!({ "decision": "deny", "text": "not now", "digest": digest })).await;
    assert_eq!(denied.status, 200, "{denied:?}");
    let done = rig.call(&agent, "approval.wait", json!({ "approvalId": ask })).await;
    assert!(done.body.contains("not now"), "{done:?}");
    assert!(!rig.houses[0].workspace.root().join("asked.txt").exists());
}

#[tokio::test]
async fn a_secret_is_shown_unmasked_only_to_who_may_answer_now() {
    let (rig, agent, person) = rig().await;
    let secret = concat!("ghp_", "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3h2");
    let content = format!("k = \"{secret}\"\n");
    let reply = rig.call(&agent, "file.write", json!({ "path": "a.txt", "content": content })).await;
    let ask = reply.json()["data"]["approvalId"].as_str().unwrap().to_owned();
    assert!(shown(&rig, &person, &ask).await.to_string().contains(secret));
    let house = &rig.houses[0];
    let user = house.owner().user_id;
    let role = toolhost_store::Role::Owner;
    house.store.people().set_member(house.project.id, user, role, Some(false)).await.unwrap();
    let seen = shown(&rig, &person, &ask).await.to_string();
    assert!(seen.contains("a.txt") && !seen.contains(secret), "{seen}");
}

#[tokio::test]
async fn who_may_not_answer_sees_no_secret_of_a_review_or_a_question_on_the_page_or_in_the_api() {
    let (rig, agent, person) = rig().await;
    let secret = concat!("ghp_", "Z9y8X7w6V5u4T3s2R1q0P9o8N7m6L5k4J3h2");
    let review = json!({ "title": format!("t {secret}"), "content": format!("A line\n{secret}\nend") });
    let question = json!({ "question": format!("Which? {secret}"), "choices": [secret, "no"] });
    let mut asks = Vec::new();
    for (tool, arguments) in [("review.content", review), ("human.ask", question)] {
        let reply = rig.call(&agent, tool, arguments).await;
        asks.push(reply.json()["data"]["approvalId"].as_str().unwrap_or_else(|| unreachable!("{reply:?}")).to_owned());
    }
    let house = &rig.houses[0];
    let user = house.owner().user_id;
    let browser = crate::pages::Browser::signed_in(&rig, crate::pages::USER_NAME).await;
    for ask in &asks {
        assert!(shown(&rig, &person, ask).await.to_string().contains(secret), "who answers sees it whole");
        assert!(browser.get(&format!("/asks/p0/{ask}")).await.body.contains(secret));
    }
    let role = toolhost_store::Role::Owner;
    house.store.people().set_member(house.project.id, user, role, Some(false)).await.unwrap();
    for ask in &asks {
        for seen in [shown(&rig, &person, ask).await.to_string(), browser.get(&format!("/asks/p0/{ask}")).await.body] {
            assert!(seen.contains("[redacted]") && !seen.contains(secret), "{seen}");
        }
    }
}

#[tokio::test]
async fn a_rule_names_each_argument_that_the_ask_names() {
    let (rig, agent, person) = rig().await;
    let ask = pending(&rig, &agent).await;
    let seen = shown(&rig, &person, &ask).await;
    let answer = |conditions: Value| json!({ "decision": "allow", "digest": seen["digest"], "rule": { "conditions": conditions, "seconds": 60 } });
    let wide = decide(&rig, &person, &ask, answer(json!({}))).await;
    assert!(wide.status == 400 && wide.body.contains("so it would allow any"), "{wide:?}");
    let own = decide(&rig, &person, &ask, answer(seen["rule"].clone())).await;
    assert_eq!(own.status, 200, "{own:?}");
}
