//! Several asks that are decided at once, and a login that comes back to the page that it began at.

use serde_json::json;
use toolhost_server::http::HttpLimits;
use toolhost_store::{AskState, Role};
use toolhost_testkit::TempWorkspace;

use crate::browser::{ask, ask_to_write, asking, browser};
use crate::pages::{Browser, form};
use crate::rig::{Rig, house};

/// The fields of the form that names these asks, as the page has them.
fn fields(page: &str) -> Vec<(String, String)> {
    let hidden = page.split("<input type=\"hidden\" name=\"").skip(1);
    let value = |rest: &str| {
        let (name, rest) = rest.split_once('"').unwrap();
        (name.to_owned(), rest.split('"').nth(1).unwrap().to_owned())
    };
    hidden.map(value).collect()
}

fn answered(fields: &[(String, String)], more: &[(&str, &str)]) -> String {
    let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    form(&fields.chain(more.iter().copied()).collect::<Vec<_>>())
}

fn wanted(ids: &[&str]) -> String {
    let fields: Vec<String> = ids.iter().map(|id| format!("ask:p0/{id}")).collect();
    format!("/batch?{}", form(&fields.iter().map(|field| (field.as_str(), "on")).collect::<Vec<_>>()))
}

async fn state(rig: &Rig, id: &str) -> AskState {
    let house = &rig.houses[0];
    let number = toolhost_host::ask_number(id).unwrap();
    house.gate.queue().asks().state(house.project.id, number).await.unwrap().unwrap()
}

#[tokio::test]
async fn several_asks_are_decided_exactly_as_they_were_shown() {
    let (rig, token) = asking().await;
    let mut ids = Vec::new();
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        ids.push(ask_to_write(&rig, &token, name).await);
    }
    let local = Browser::signed_in(&rig, "local").await;
    let page = local.get(&wanted(&[&ids[0], &ids[1], &ids[2]])).await;
    for shown in ["a.txt", "b.txt", "c.txt", "class=\"new\">+two", "Allow these 3 once"] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    assert!(!page.body.contains("d.txt"));
    let mut fields = fields(&page.body);
    assert_eq!(fields.len(), 3);
    // Another one shows something else by now, and one was answered meanwhile.
    fields[1].1 = "0".repeat(64);
    let denied = answered(&fields[2..], &[("decision", "deny"), ("text", "not this one")]);
    assert_eq!(local.post("/batch", &denied).await.status, 303);
    let allowed = local.post("/batch", &answered(&fields, &[("decision", "allow")])).await;
    assert_eq!(allowed.status, 409, "{allowed:?}");
    for said in ["1 was decided", "Left out", &ids[1], &ids[2], "shows something else", "not open any more"] {
        assert!(allowed.body.contains(said), "{said}: {}", allowed.body);
    }
    let states = [state(&rig, &ids[0]).await, state(&rig, &ids[1]).await, state(&rig, &ids[3]).await];
    assert_eq!(states, [AskState::Answered, AskState::Open, AskState::Open]);
    let rows = rig.houses[0].rows().await;
    let decided: Vec<_> =
        rows.iter().filter(|row| row["event"] == "decision").map(|row| &row["decision"]["say"]).collect();
    assert_eq!(decided, [&json!("deny"), &json!("allow")], "each has a row of its own");
}

#[tokio::test]
async fn denying_several_needs_a_reason_and_keeps_what_was_chosen() {
    let (rig, token) = asking().await;
    let id = ask_to_write(&rig, &token, "a.txt").await;
    let local = Browser::signed_in(&rig, "local").await;
    let fields = fields(&local.get(&wanted(&[&id])).await.body);
    for decision in [&[("decision", "deny"), ("text", " ")][..], &[("decision", "perhaps")], &[]] {
        let refused = local.post("/batch", &answered(&fields, decision)).await;
        assert_eq!(refused.status, 409, "{refused:?}");
        assert!(refused.body.contains(&fields[0].1), "the ask is there again: {}", refused.body);
    }
    assert_eq!(state(&rig, &id).await, AskState::Open);
}

#[tokio::test]
async fn what_has_to_be_looked_at_by_itself_is_no_part_of_several() {
    let (rig, token) = asking().await;
    let long = (0..4500).map(|number| format!("line {number}\n")).collect::<String>();
    let long = ask(&rig, &token, "file.write", json!({ "path": "long.txt", "content": long })).await;
    let review = ask(&rig, &token, "review.content", json!({ "title": "Plan", "content": "x" })).await;
    let short = ask_to_write(&rig, &token, "a.txt").await;
    let local = Browser::signed_in(&rig, "local").await;
    let page = local.get(&wanted(&[&long, &review, &short, "ask-999"])).await;
    for said in ["its effect is long", "it is no approval", "there is no such ask"] {
        assert!(page.body.contains(said), "{said}: {}", page.body);
    }
    assert_eq!(fields(&page.body).len(), 1);
    // Who knows the digest of a long one still has not seen it.
    let (_, shown) = rig.houses[0].gate.queue().get(rig.houses[0].project.id, 1).await.unwrap();
    let forged = [(format!("ask:p0/{long}"), shown.digest())];
    assert_eq!(local.post("/batch", &answered(&forged, &[("decision", "allow")])).await.status, 409);
    assert_eq!(state(&rig, &long).await, AskState::Open);

    let people = rig.houses[0].store.people();
    let viewer = people.add_user("ann").await.unwrap();
    people.set_role(rig.houses[0].project.id, viewer, Role::Viewer).await.unwrap();
    let viewer = Browser::signed_in(&rig, "ann").await;
    let page = viewer.get(&wanted(&[&short])).await;
    assert!(page.body.contains("you may look at it only") && fields(&page.body).is_empty(), "{}", page.body);
    rig.houses[0].store.people().add_user("eve").await.unwrap();
    let stranger = Browser::signed_in(&rig, "eve").await;
    let [theirs, none] = [wanted(&[&short]), wanted(&["ask-999"])];
    let [theirs, none] = [stranger.get(&theirs).await.body, stranger.get(&none).await.body];
    assert_eq!(theirs.replace(&short, ""), none.replace("ask-999", ""), "what is not theirs does not exist");
}

#[tokio::test]
async fn what_a_person_allows_each_time_anew_is_no_part_of_several() {
    let workspace = TempWorkspace::new();
    workspace.write("index.html", "x");
    let site = TempWorkspace::new();
    let deploys = house().workspace(workspace).deploy(site.root(), toolhost::deploy::DeployRules::default());
    let rig = Rig::start(vec![deploys], HttpLimits::default()).await;
    let token = rig.token(&["call"]).await;
    let id = ask(&rig, &token, "deploy.copy", json!({})).await;
    let local = Browser::signed_in(&rig, "local").await;
    assert!(!local.get("/").await.body.contains("type=\"checkbox\""), "it cannot be selected");
    let page = local.get(&wanted(&[&id])).await;
    assert!(page.body.contains("each time anew") && fields(&page.body).is_empty(), "{}", page.body);
    let (_, shown) = rig.houses[0].gate.queue().get(rig.houses[0].project.id, 1).await.unwrap();
    let forged = [(format!("ask:p0/{id}"), shown.digest())];
    assert_eq!(local.post("/batch", &answered(&forged, &[("decision", "allow")])).await.status, 409);
    assert_eq!(state(&rig, &id).await, AskState::Open);
}

#[tokio::test]
async fn asks_are_selected_and_allowed_by_keyboard_alone() {
    let (rig, token) = asking().await;
    let ids = [ask_to_write(&rig, &token, "a.txt").await, ask_to_write(&rig, &token, "b.txt").await];
    let Some(page) = browser(&rig, "local").await else { return };
    page.keys("jxjx").await;
    page.until("document.querySelectorAll(':checked').length === 2").await;
    page.click("button[form=several]").await;
    page.until("document.querySelectorAll('section.part').length === 2").await;
    assert_eq!(page.findings().await, Vec::<String>::new());
    page.messages().await;
    page.keys("a").await;
    page.keys(toolhost_testkit::keys::ENTER).await;
    page.until("location.pathname === '/' && !document.querySelector('[data-ask]')").await;
    assert_eq!([state(&rig, &ids[0]).await, state(&rig, &ids[1]).await], [AskState::Answered; 2]);
    assert_eq!(page.messages().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_rule_shows_what_it_would_have_allowed_before_it_is_made() {
    let (rig, token) = asking().await;
    let write = |path: &str| json!({ "path": path, "content": "one\ntwo\n" });
    ask(&rig, &token, "file.write", write("same.txt")).await;
    ask(&rig, &token, "file.write", write("other.txt")).await;
    // Rows of calls that change nothing are written a moment later.
    rig.houses[0].rows().await;
    rig.advance(8 * 24 * 3_600_000);
    let token = rig.token(&["call"]).await;
    let id = ask(&rig, &token, "file.write", write("same.txt")).await;
    let local = Browser::signed_in(&rig, "local").await;
    let page = local.get(&format!("/asks/p0/{id}")).await;
    assert!(page.body.contains("What would it have allowed in the last week?"), "{}", page.body);
    rig.houses[0].rows().await;
    let page = local.get(&format!("/asks/p0/{id}?part=1&past=week")).await;
    assert!(page.body.contains("In the last week there was no other call of file.write"), "{}", page.body);
    // The same call, asked about once more after it was denied.
    let path = format!("/asks/p0/{id}");
    let digest = crate::pages::digest(&local.get(&path).await);
    let denied = form(&[("decision", "deny"), ("digest", &digest), ("text", "no")]);
    assert_eq!(local.post(&path, &denied).await.status, 303);
    rig.call(&token, "file.write", write("same.txt")).await;
    let id = ask(&rig, &token, "file.write", write("same.txt")).await;
    ask(&rig, &token, "file.write", write("third.txt")).await;
    rig.houses[0].rows().await;
    let page = local.get(&format!("/asks/p0/{id}?part=1&past=week")).await;
    assert!(page.body.contains("In the last week: 2 of 3 other calls"), "{}", page.body);
    assert!(page.body.contains("same.txt") && !page.body.contains("third.txt"), "{}", page.body);
}

#[tokio::test]
async fn who_signs_in_comes_back_to_the_page_that_was_opened() {
    let (rig, token) = asking().await;
    let id = ask_to_write(&rig, &token, "a.txt").await;
    let mut browser = Browser::fresh(&rig);
    let wanted = format!("/asks/p0/{id}?part=1");
    let refused = browser.get(&wanted).await;
    assert_eq!(refused.status, 401);
    browser.keep(&refused);
    let path = crate::pages::link(&rig.houses[0], "local", 10).await;
    let signed_in = browser.post(&path, "").await;
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some(wanted.as_str())), "{signed_in:?}");
    // A cookie that another server of this host has set leads nowhere else.
    let name = browser.cookie.split('=').next().unwrap().to_owned();
    for elsewhere in ["//evil.example", "https://evil.example", "/\\evil.example"] {
        browser.cookie = format!("{name}={elsewhere}");
        let path = crate::pages::link(&rig.houses[0], "local", 10).await;
        assert_eq!(browser.post(&path, "").await.header("location"), Some("/"), "{elsewhere}");
    }
}
