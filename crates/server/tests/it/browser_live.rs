//! Open pages that hear of changes: in a real browser, in two at once, without script, and over a restart of the server.

use serde_json::json;
use toolhost_contract::Answer;
use toolhost_host::{Decision, Person, ask_number};
use toolhost_server::http::HttpLimits;
use toolhost_store::{LoginLife, Role};
use toolhost_testkit::sample::{FLOW, STEP, sample};
use toolhost_testkit::{Browser, HttpStream, request};

use crate::browser::{ask, ask_to_write, asking, browser, url};
use crate::builder_pages::rig_with;
use crate::pages::form;
use crate::rig::{Rig, house};

/// Another person of the project.
async fn eva(rig: &Rig) -> Person {
    let house = &rig.houses[0];
    let user_id = house.store.people().add_user("eva").await.unwrap();
    house.store.people().set_role(house.project.id, user_id, Role::Editor).await.unwrap();
    Person { user_id, project_id: house.project.id, name: "eva".to_owned() }
}

/// A person answers somewhere else.
async fn denies(rig: &Rig, person: &Person, id: &str) {
    let answer = Answer::Deny { comment: Some("not now".to_owned()) };
    let decision = Decision { answer, rule: None };
    rig.houses[0].gate.queue().decide(person, ask_number(id).unwrap(), decision, "test").await.unwrap();
}

/// The page is connected.
async fn is_live(browser: &Browser) {
    browser.until("document.documentElement.dataset.stream === 'open'").await;
}

/// How often a page has fetched itself.
async fn fetches(browser: &Browser) -> serde_json::Value {
    let count =
        "return performance.getEntriesByType('resource').filter((of) => of.initiatorType === 'xmlhttprequest').length";
    browser.run(count).await
}

#[tokio::test]
async fn a_page_is_loaded_once_though_it_reads_by_calls_and_misses_nothing_meanwhile() {
    let (rig, token) = asking().await;
    let Some(page) = browser(&rig, "local").await else { return };
    for path in ["/projects/p0/board", "/projects/p0/plan", "/projects/p0/sessions", "/"] {
        page.open(&url(&rig, path)).await;
        is_live(&page).await;
        // An event that every page hears of comes after whatever the page's own calls might have told.
        assert_eq!(fetches(&page).await, 0, "{path}");
    }
    let reads = rig.houses[0].rows().await.iter().filter(|row| row["tool"] == "ticket.list").count();
    assert!(reads > 0, "the board reads by calls");
    // A stream that begins later than what happened after its page was made tells of it all the same.
    let shown = crate::pages::Browser::signed_in(&rig, "local").await;
    let made = shown.get("/").await.body;
    let heard = made.split("data-heard=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    ask_to_write(&rig, &token, "between.txt").await;
    let headers = [("cookie", &*shown.cookie), ("connection", "keep-alive")];
    let asked = request(("GET", &format!("/live?heard={heard}")), &headers, "");
    let mut live = HttpStream::open(rig.address, asked.as_bytes()).await;
    let (told, is_told) = live.until("event: changed").await;
    assert!(is_told, "{told}");
}

#[tokio::test]
async fn a_page_that_cannot_be_refreshed_keeps_what_it_shows_and_says_so() {
    let (rig, token) = asking().await;
    let id = ask_to_write(&rig, &token, "one.txt").await;
    let eva = eva(&rig).await;
    let Some(page) = browser(&rig, "eva").await else { return };
    page.open(&url(&rig, &format!("/asks/p0/{id}"))).await;
    is_live(&page).await;
    // The project is hers no more: the page that she looks at ends in an error now.
    rig.houses[0].store.people().remove(rig.houses[0].project.id, eva.user_id).await.unwrap();
    page.run("window.dispatchEvent(new Event('online'))").await;
    page.until_says("This page could not be refreshed").await;
    assert!(page.text().await.contains("one.txt"), "what was there stays");
}

#[tokio::test]
async fn an_ask_appears_in_an_open_inbox_and_leaves_it_when_another_answers() {
    let (rig, token) = asking().await;
    let Some(first) = browser(&rig, "local").await else { return };
    let eva = eva(&rig).await;
    first.until_says("Nobody waits for you.").await;
    is_live(&first).await;
    first.run("window.same = true").await;
    let id = ask_to_write(&rig, &token, "one.txt").await;
    first.until_says("one.txt").await;
    first.until_says("1 new approval").await;
    assert_eq!(first.title().await, "(1) Inbox · Toolhost");
    denies(&rig, &eva, &id).await;
    first.until_says(&format!("{id}: eva denied it")).await;
    first.until("!document.querySelector('[data-ask]')").await;
    assert_eq!(first.title().await, "Inbox · Toolhost");
    assert_eq!(first.run("return window.same").await, true, "the page was never loaded anew");
    assert_eq!(first.messages().await, Vec::<String>::new());
}

#[tokio::test]
async fn what_one_browser_decides_leaves_the_other_and_its_stale_form_is_refused() {
    let (rig, token) = asking().await;
    let id = ask_to_write(&rig, &token, "one.txt").await;
    let Some(first) = browser(&rig, "local").await else { return };
    eva(&rig).await;
    let Some(second) = browser(&rig, "eva").await else { return };
    let page = format!("/asks/p0/{id}");
    first.open(&url(&rig, &page)).await;
    is_live(&first).await;
    first.type_into("#text", "half a rea").await;
    second.open(&url(&rig, &page)).await;
    second.type_into("#text", "never").await;
    second.click("button[value=deny]").await;
    second.until_says("eva denied it").await;
    first.until_says("eva denied it").await;
    let said = first.run("return document.querySelector('#said').textContent").await;
    assert!(said.as_str().unwrap().contains("eva denied it"), "{said}");
    assert_eq!(first.run("return document.querySelector('#text').value").await, "half a rea", "what was typed stays");
    first.click("button[value=deny]").await;
    first.until_says("What you have written").await;
    let text = first.text().await;
    assert!(text.contains("half a rea") && text.contains("eva denied it"), "{text}");
    assert!(!first.has("button[value=deny]").await);
}

#[tokio::test]
async fn focus_typed_text_and_opened_parts_stay_when_a_page_changes() {
    let (rig, token) = asking().await;
    let id = ask_to_write(&rig, &token, "one.txt").await;
    let Some(page) = browser(&rig, "local").await else { return };
    is_live(&page).await;
    page.keys("j").await;
    page.until("document.activeElement.closest('[data-ask]')").await;
    let other = ask_to_write(&rig, &token, "two.txt").await;
    page.until_says("two.txt").await;
    let focused = page.run("return document.activeElement.getAttribute('href')").await;
    assert_eq!(focused, json!(format!("/asks/p0/{id}")));

    page.open(&url(&rig, &format!("/asks/p0/{other}"))).await;
    is_live(&page).await;
    page.run("document.querySelector('details').open = true").await;
    page.type_into("#text", "because").await;
    page.run("window.seen = 0; new MutationObserver(() => { window.seen += 1 }).observe(document.querySelector('title'), { childList: true })").await;
    let third = ask_to_write(&rig, &token, "three.txt").await;
    // The page says nothing of the third: only its title is written again.
    page.until("window.seen > 0").await;
    let state = "return [document.activeElement.id, document.querySelector('#text').value, document.querySelector('details').open]";
    assert_eq!(page.run(state).await, json!(["text", "because", true]), "{third}");
}

#[tokio::test]
async fn a_talk_with_the_assistant_grows_while_somebody_looks_and_types() {
    let rig = rig_with(sample()).await;
    let person = crate::pages::Browser::signed_in(&rig, "local").await;
    let asked = form(&[("name", &*format!("step:{FLOW}/{STEP}")), ("mode", "modify"), ("goal", "Check twice.")]);
    let started = person.post("/projects/p0/builder/assistant", &asked).await;
    let talk = started.header("location").unwrap().to_owned();
    let Some(page) = browser(&rig, "local").await else { return };
    page.open(&url(&rig, &talk)).await;
    is_live(&page).await;
    page.type_into("#text", "and the title").await;
    let held = rig.houses[0].store.sessions().hold(rig.houses[0].project.id, "as-1").await.unwrap();
    let reply = json!({ "responseType": "chat", "assistantSummary": "It is checked twice now." });
    held.say("turn_0", json!({ "reply": { "text": reply.to_string() } })).await.unwrap();
    page.until_says("It is checked twice now.").await;
    assert_eq!(page.run("return document.querySelector('#text').value").await, "and the title");
    assert!(!page.text().await.contains("This is as of now"), "only a page without script is");
    held.release(toolhost_store::SessionState::Done, None).await.unwrap();
}

#[tokio::test]
async fn a_page_without_script_is_answered_and_is_as_of_now() {
    let (rig, token) = asking().await;
    let id = ask_to_write(&rig, &token, "one.txt").await;
    let Some(page) = browser(&rig, "local").await else { return };
    page.script_off().await;
    page.open(&url(&rig, "/")).await;
    page.click("[data-ask] a").await;
    page.type_into("#text", "not this one").await;
    page.click("button[value=deny]").await;
    page.until("!document.querySelector('button[value=deny]')").await;
    page.open(&url(&rig, "/search?q=inbox")).await;
    page.click(".found a").await;
    page.until_at(&url(&rig, "/")).await;
    page.click(&format!("[data-ended='/asks/p0/{id}'] a")).await;
    page.until_at(&url(&rig, &format!("/asks/p0/{id}"))).await;
    page.click("form.who button").await;
    page.until_at(&url(&rig, "/login")).await;
}

#[tokio::test]
async fn a_page_whose_login_has_ended_says_so() {
    let (rig, token) = asking().await;
    let Some(page) = browser(&rig, "local").await else { return };
    is_live(&page).await;
    rig.houses[0].store.logins(LoginLife::default()).end_all("local").await.unwrap();
    ask_to_write(&rig, &token, "one.txt").await;
    page.until_says("You are signed out.").await;
    assert!(!page.text().await.contains("one.txt"));
    assert!(page.has("#said a[href^='/login']").await);
}

#[tokio::test]
async fn a_page_without_a_network_misses_nothing() {
    let (rig, token) = asking().await;
    let Some(page) = browser(&rig, "local").await else { return };
    is_live(&page).await;
    page.online(false).await;
    page.until("!navigator.onLine").await;
    ask(&rig, &token, "human.ask", json!({ "question": "Are you there?" })).await;
    page.online(true).await;
    page.until_says("Are you there?").await;
}

#[tokio::test]
async fn a_page_goes_on_after_a_restart_of_the_server() {
    let (mut rig, token) = asking().await;
    let Some(page) = browser(&rig, "local").await else { return };
    is_live(&page).await;
    rig.end().await;
    page.until_says("The connection is lost").await;
    rig.begin_again().await;
    ask_to_write(&rig, &token, "after.txt").await;
    page.until_says("after.txt").await;
    page.until("!document.body.innerText.includes('The connection is lost')").await;
}

#[tokio::test]
async fn streams_of_one_person_and_of_all_are_limited() {
    let limits = HttpLimits { streams_of_person: 2, streams: 3, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    rig.houses[0].store.people().add_user("eva").await.unwrap();
    let [local, eva] = [
        crate::pages::Browser::signed_in(&rig, "local").await.cookie,
        crate::pages::Browser::signed_in(&rig, "eva").await.cookie,
    ];
    let mut open = Vec::new();
    for (cookie, is_taken) in [(&local, true), (&local, true), (&local, false), (&eva, true), (&eva, false)] {
        let mut stream = stream(&rig, cookie, &[]).await;
        let (head, _) = stream.until("\r\n\r\n").await;
        assert_eq!(head.starts_with("HTTP/1.1 200"), is_taken, "{head}");
        open.push(stream);
    }
}

/// A stream of pages, by hand.
async fn stream(rig: &Rig, cookie: &str, headers: &[(&str, &str)]) -> HttpStream {
    let headers = [&[("cookie", cookie), ("connection", "keep-alive")], headers].concat();
    HttpStream::open(rig.address, request(("GET", "/live"), &headers, "").as_bytes()).await
}

#[tokio::test]
async fn a_stream_says_what_has_changed_and_goes_on_after_its_last_event() {
    let (rig, token) = asking().await;
    let browser = crate::pages::Browser::signed_in(&rig, "local").await;
    let mut live = stream(&rig, &browser.cookie, &[]).await;
    assert!(live.until("retry: ").await.1);
    let id = ask_to_write(&rig, &token, "secret-name.txt").await;
    let (told, is_told) = live.until("event: changed").await;
    assert!(is_told, "{told}");
    let (told, _) = live.until("\"asks\"").await;
    assert!(told.contains("\"project\":\"p0\"") && !told.contains("secret-name"), "{told}");
    let last = told.split("id: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    drop(live);
    denies(&rig, &rig.houses[0].owner(), &id).await;
    let mut again = stream(&rig, &browser.cookie, &[("last-event-id", &last)]).await;
    assert!(again.until("event: changed").await.1, "what was missed is told at once");
}

#[tokio::test]
async fn nobody_hears_of_a_project_that_is_not_theirs_and_nobody_without_a_login_hears_anything() {
    let (rig, token) = asking().await;
    rig.houses[0].store.people().add_user("mallory").await.unwrap();
    let mallory = crate::pages::Browser::signed_in(&rig, "mallory").await;
    let owner = crate::pages::Browser::signed_in(&rig, "local").await;
    let (mut theirs, mut ours) = (stream(&rig, &mallory.cookie, &[]).await, stream(&rig, &owner.cookie, &[]).await);
    assert!(theirs.until("retry: ").await.1 && ours.until("retry: ").await.1);
    ask_to_write(&rig, &token, "one.txt").await;
    assert!(ours.until("event: changed").await.1);
    // What keeps the connection comes after it.
    let (told, _) = theirs.until("\n:\n").await;
    assert!(!told.contains("changed"), "{told}");
    assert_eq!(crate::pages::Browser::fresh(&rig).get("/live").await.status, 401);
}

#[tokio::test]
async fn whoever_signs_out_hears_nothing_of_what_happens_then() {
    let (rig, token) = asking().await;
    let [ours, other] =
        [crate::pages::Browser::signed_in(&rig, "local").await, crate::pages::Browser::signed_in(&rig, "local").await];
    let (mut live, mut stays) = (stream(&rig, &ours.cookie, &[]).await, stream(&rig, &other.cookie, &[]).await);
    assert!(live.until("retry: ").await.1 && stays.until("retry: ").await.1);
    assert_eq!(ours.post("/logout", "").await.status, 303);
    ask_to_write(&rig, &token, "after.txt").await;
    let (told, is_told) = live.until("event: changed").await;
    assert!(!is_told, "{told}");
    assert!(stays.until("event: changed").await.1);
}
