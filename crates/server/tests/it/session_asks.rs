//! What sessions ask people: which call waits, what became of each ask, and whether a session waits or works.

use serde_json::{Value, json};
use toolhost_contract::Journal;
use toolhost_server::http::HttpLimits;
use toolhost_store::SessionState;
use toolhost_testkit::engines::engines;

use crate::pages::{Browser, form};
use crate::rig::{Rig, asking_nobody, house};
use crate::session_pages::{ID, borrowed, session, turn, working_with};

#[tokio::test]
async fn what_a_session_waits_for_is_named_with_its_ask() {
    for engine in engines() {
        let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
        let house = asking_nobody(engine.builder()).project_policy(policy);
        let rig = Rig::start(vec![house], HttpLimits::default()).await;
        session(&rig, ID, "goal", &[], SessionState::Paused).await;
        let mut call = rig.houses[0].request("file.write", json!({ "path": "asked.txt", "content": "x" }));
        call.scope.session_id = Some(ID.to_owned());
        let waits = rig.houses[0].run(call).await;
        let ask = waits.data["approvalId"].as_str().unwrap();
        let browser = Browser::signed_in(&rig, "local").await;
        let page = browser.get(&format!("/projects/p0/sessions/{ID}")).await;
        assert!(page.body.contains(&format!("href=\"/asks/p0/{ask}\"")), "{}", page.body);
    }
}

#[tokio::test]
async fn a_call_that_was_asked_about_leads_to_its_ask_and_says_who_answered() {
    for engine in engines() {
        let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
        let rig = Rig::start(vec![asking_nobody(engine.builder()).project_policy(policy)], HttpLimits::default()).await;
        let (house, browser) = (&rig.houses[0], Browser::signed_in(&rig, "local").await);
        let request = || {
            let mut call = house.request("file.write", json!({ "path": "asked.txt", "content": "x" }));
            call.scope.session_id = Some(ID.to_owned());
            call
        };
        // One call that asks, and one that uses the answer.
        let (asks, uses) = (request(), request());
        let ids = [asks.id.to_string(), uses.id.to_string()];
        let ask = house.run(asks).await.data["approvalId"].as_str().unwrap().to_owned();
        let mut steps: Vec<_> = [turn(0, "x", &ids[0]), turn(1, "y", &ids[1]), turn(2, "z", "never asked")].concat();
        // A call that waits for the answer, and one that has not ended.
        let mut waits = turn(3, "w", "waited");
        waits[0].1["reply"]["calls"][0]["arguments"] = json!({ "json": { "approvalId": ask } });
        let mut unended = turn(4, "v", &ids[0]).swap_remove(0);
        unended.1["callIds"] = json!([ids[0]]);
        steps.extend(waits);
        steps.push(unended);
        session(&rig, ID, "goal", &borrowed(&steps), SessionState::Paused).await;
        let (page, link) = (format!("/projects/p0/sessions/{ID}"), format!("href=\"/asks/p0/{ask}\">{ask}</a>: "));
        let open = browser.get(&page).await.body;
        assert_eq!(open.matches(&format!("{link}waits for an answer")).count(), 3, "{open}");
        let unended = open.split("Not ended:").nth(1).unwrap().split("</ul>").next().unwrap();
        assert!(unended.contains("Edit a file: a.txt") && unended.contains(&link), "{unended}");
        assert!(open.contains(&format!("href=\"/projects/p0/audit/calls/{}\">In the audit", ids[1])), "{open}");
        let by_begin = browser.get("/projects/p0/audit?all=on&session=0123").await.body;
        let row = by_begin.contains(&format!("href=\"/projects/p0/sessions/{ID}\">{ID}</a>"));
        assert!(row, "the beginning of an id is enough: {by_begin}");
        let shown = browser.get(&format!("/asks/p0/{ask}")).await.body;
        let answer = form(&[
            ("decision", "allow"),
            ("digest", &crate::builder_changes::hidden(&shown, "digest")),
            ("part", "1"),
        ]);
        let answered = browser.post(&format!("/asks/p0/{ask}"), &answer).await;
        assert_eq!(answered.status, 303, "{answered:?}");
        let unused = browser.get(&page).await.body;
        assert!(unused.contains(&format!("{link}local allowed it; not used yet")), "{unused}");
        assert!(
            unused.contains("1 answer of people waits for its agent, which may use it when the session goes on."),
            "{unused}"
        );
        let outcome = house.run(uses).await;
        assert!(outcome.ok && outcome.data.get("approvalId").is_none(), "{outcome:?}");
        house.rows().await;
        // The replay shows the last few steps.
        for (path, count) in [(page.clone(), 4), (format!("{page}/replay?step=99"), 2)] {
            let used = browser.get(&path).await.body;
            assert_eq!(used.matches(&format!("{link}local allowed it<")).count(), count, "{path}: {used}");
            assert!(!used.contains("not used yet"), "{path}: {used}");
        }
        let call = browser.get(&format!("/projects/p0/audit/calls/{}", ids[0])).await.body;
        assert!(call.contains(&format!("href=\"/asks/p0/{ask}\">{ask}</a>")), "{call}");
        assert!(call.contains(&format!("<dt>Session</dt><dd><a href=\"/projects/p0/sessions/{ID}\">")), "{call}");
        assert!(!call.contains("/files/undo/"), "it has only asked: {call}");
        let done = browser.get(&format!("/projects/p0/audit/calls/{}", ids[1])).await.body;
        assert!(done.contains("/files/undo/"), "{done}");
    }
}

#[tokio::test]
async fn an_answered_ask_of_a_paused_session_has_a_button_that_lets_it_go_on() {
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
    let (rig, told) = working_with(asking_nobody(house()).project_policy(policy)).await;
    session(&rig, ID, "goal", &[], SessionState::Paused).await;
    let mut call = rig.houses[0].request("file.write", json!({ "path": "asked.txt", "content": "x" }));
    call.scope.session_id = Some(ID.to_owned());
    let waits = rig.houses[0].run(call).await;
    let path = format!("/asks/p0/{}", waits.data["approvalId"].as_str().unwrap());
    let browser = Browser::signed_in(&rig, "local").await;
    let session = format!("/projects/p0/sessions/{ID}");
    let goes_on = "<button name=\"do\" value=\"resume\">Let the agent go on";
    let open = browser.get(&path).await;
    assert!(open.body.contains("which is paused") && !open.body.contains(goes_on), "{}", open.body);
    assert!(open.body.contains("<h1>create asked.txt, 1 byte</h1>"), "{}", open.body);
    assert!(open.body.contains("a rule of the policy asks a person about"), "{}", open.body);
    let answer = [("decision", "allow"), ("digest", &crate::pages::digest(&open)), ("part", "1")];
    assert_eq!(browser.post(&path, &form(&answer)).await.status, 303);
    let answered = browser.get(&path).await.body;
    assert!(answered.contains(goes_on), "{answered}");
    assert_eq!(browser.post(&session, &form(&[("do", "resume")])).await.status, 303);
    assert_eq!(told.said().len(), 1);
    let inbox = browser.get("/").await.body;
    let start = "Nobody waits for you. <a href=\"/projects/p0/sessions/new\">Start a session</a>";
    assert!(inbox.contains(start), "{inbox}");
}

#[tokio::test]
async fn an_ask_of_a_session_whose_server_has_died_says_that_it_was_interrupted() {
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
    let rig = Rig::start(vec![house().project_policy(policy)], HttpLimits::default()).await;
    let (house, browser) = (&rig.houses[0], Browser::signed_in(&rig, "local").await);
    // As a crash leaves it: at work, and held by nobody.
    session(&rig, ID, "goal", &[], SessionState::Active).await;
    let mut call = house.request("file.write", json!({ "path": "a.txt", "content": "x" }));
    call.scope.session_id = Some(ID.to_owned());
    let ask = house.run(call).await.data["approvalId"].as_str().unwrap().to_owned();
    let page = browser.get(&format!("/asks/p0/{ask}")).await.body;
    assert!(page.contains(", which was interrupted: its agent may use the answer when the session goes on"), "{page}");
}

/// A turn whose one call has not ended.
fn call_under_way(number: u32, call: &str) -> (String, Value) {
    let mut turn = turn(number, "I do it.", call).swap_remove(0);
    turn.1["callIds"] = json!([call]);
    turn
}

#[tokio::test]
async fn a_session_that_goes_on_beside_an_open_ask_is_at_work() {
    for engine in engines() {
        let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
        let rig = Rig::start(vec![asking_nobody(engine.builder()).project_policy(policy)], HttpLimits::default()).await;
        let (house, browser) = (&rig.houses[0], Browser::signed_in(&rig, "local").await);
        let mut asks = house.request("file.write", json!({ "path": "a.txt", "content": "x" }));
        asks.scope.session_id = Some(ID.to_owned());
        // The call that asked has ended, and another is under way.
        let steps = [turn(0, "I ask.", asks.id.as_str()), vec![call_under_way(1, "other")]].concat();
        session(&rig, ID, "goal", &borrowed(&steps), SessionState::Paused).await;
        let held = house.store.sessions().hold(house.project.id, ID).await.unwrap();
        let ask = house.run(asks).await.data["approvalId"].as_str().unwrap().to_owned();
        let page = format!("/projects/p0/sessions/{ID}");
        for path in [&page, "/projects/p0/sessions"] {
            let shown = browser.get(path).await.body;
            assert!(shown.contains("working</span>") && !shown.contains("waiting for an answer</span>"), "{shown}");
        }
        let waiting = browser.get("/projects/p0/sessions?state=waiting").await.body;
        assert!(waiting.contains("There is no session in this state."), "{waiting}");
        assert!(browser.get("/projects/p0/sessions?state=working").await.body.contains(ID));
        let shown = browser.get(&page).await.body;
        assert!(shown.contains(&format!("href=\"/asks/p0/{ask}\">Answer {ask}</a>")), "{shown}");
        assert!(shown.contains("Under way:"), "{shown}");
        // One that was told to wait for the answer.
        let mut waits = call_under_way(2, "waits");
        waits.1["reply"]["calls"][0]["arguments"] = json!({ "json": { "approvalId": ask } });
        for (step, body) in [turn(1, "", "other").swap_remove(1), waits] {
            held.keep(&step, body, None).await.unwrap();
        }
        held.settle().await.unwrap();
        for path in [&page, "/projects/p0/sessions", "/projects/p0/sessions?state=waiting"] {
            let shown = browser.get(path).await.body;
            assert!(shown.contains("waiting for an answer</span>"), "{path}: {shown}");
        }
        // One that is held until somebody answers: the audit has no row of it before.
        let mut is_held = call_under_way(3, "held");
        is_held.1["reply"]["calls"][0]["name"] = json!("file_write");
        for (step, body) in [turn(2, "", "waits").swap_remove(1), is_held] {
            held.keep(&step, body, None).await.unwrap();
        }
        held.settle().await.unwrap();
        let shown = browser.get(&page).await.body;
        assert!(shown.contains("waiting for an answer</span>"), "{shown}");
        let working = browser.get("/projects/p0/sessions?state=working").await.body;
        assert!(!working.contains(ID), "{working}");
        held.release(SessionState::Paused, None).await.unwrap();
    }
}

#[tokio::test]
async fn an_ask_says_how_its_session_has_stopped_and_goes_only_with_one_that_was_cancelled() {
    for engine in engines() {
        let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
        let rig = Rig::start(vec![asking_nobody(engine.builder()).project_policy(policy)], HttpLimits::default()).await;
        let (house, browser) = (&rig.houses[0], Browser::signed_in(&rig, "local").await);
        let ends = [
            (SessionState::Done, false, "has finished"),
            (SessionState::Failed, false, "has failed"),
            (SessionState::Limited, false, "was stopped by a limit"),
            (SessionState::Paused, false, "is paused"),
            (SessionState::Cancelled, true, ""),
        ];
        for (number, (state, is_withdrawn, why)) in ends.into_iter().enumerate() {
            let id = format!("as_{number:016}");
            let mut call = house.request("file.write", json!({ "path": format!("{number}.txt"), "content": "x" }));
            call.scope.session_id = Some(id.clone());
            let under_way = call_under_way(0, call.id.as_str());
            session(&rig, &id, "goal", &borrowed(&[under_way]), SessionState::Paused).await;
            let held = house.store.sessions().hold(house.project.id, &id).await.unwrap();
            let ask = house.run(call).await.data["approvalId"].as_str().unwrap().to_owned();
            let at_work = browser.get(&format!("/projects/p0/sessions/{id}")).await.body;
            assert!(
                at_work.contains("waiting for an answer</span>") && !at_work.contains("working</span>"),
                "{at_work}"
            );
            assert!(at_work.contains(&format!("href=\"/asks/p0/{ask}\">Answer {ask}</a>")), "{at_work}");
            let list = browser.get("/projects/p0/sessions").await.body;
            assert!(list.contains("waiting for an answer</span>"), "{list}");
            let other = format!("as_1{number:015}");
            session(&rig, &other, "works", &[], SessionState::Paused).await;
            let at_work = house.store.sessions().hold(house.project.id, &other).await.unwrap();
            let waiting = "/projects/p0/sessions?state=waiting";
            let shown = browser.get(waiting).await.body;
            assert!(shown.matches("class=\"badge").count() == 1 && shown.contains(&id), "{shown}");
            at_work.release(SessionState::Done, None).await.unwrap();
            held.release(state, None).await.unwrap();
            assert!(browser.get(waiting).await.body.contains("There is no session in this state."));
            let page = browser.get(&format!("/asks/p0/{ask}")).await.body;
            let said = match is_withdrawn {
                true => "Withdrawn: the session that asked was cancelled.".to_owned(),
                false => format!(", which {why}: its agent may use the answer when the session goes on"),
            };
            assert!(page.contains(&said), "{state:?}: {page}");
            assert_eq!(page.contains("Allow once"), !is_withdrawn, "{state:?}: {page}");
        }
    }
}
