//! The inbox and its asks by keyboard alone, in a real browser.

use serde_json::json;
use toolhost_testkit::{Browser, keys};

use crate::browser::{ask, ask_to_write, asking, browser, url};
use crate::rig::Rig;

/// Which ask has the focus in the list.
async fn focused(browser: &Browser) -> String {
    let href = browser.run("return document.activeElement.getAttribute('href') || ''").await;
    href.as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

async fn answer_of(rig: &Rig, id: &str) -> serde_json::Value {
    let house = &rig.houses[0];
    let asks = house.gate.queue().asks();
    asks.get(house.project.id, toolhost_host::ask_number(id).unwrap()).await.unwrap().unwrap().answer.unwrap()
}

#[tokio::test]
async fn asks_are_allowed_and_denied_by_keyboard_alone() {
    let (rig, token) = asking().await;
    let (first, second) = (ask_to_write(&rig, &token, "1.txt").await, ask_to_write(&rig, &token, "2.txt").await);
    let Some(page) = browser(&rig, "local").await else { return };
    page.keys("j").await;
    assert_eq!(focused(&page).await, first);
    page.keys("jj").await;
    assert_eq!(focused(&page).await, second, "the last one is the end");
    // In the list no key decides anything, and none leads to a decision.
    page.keys("ade").await;
    assert_eq!(focused(&page).await, second);
    page.keys("k").await;
    page.keys(keys::ENTER).await;
    page.until("document.querySelector('button[value=allow]')").await;
    page.keys("a").await;
    page.until("document.activeElement.value === 'allow'").await;
    assert!(page.has("button[value=allow]").await, "one key allows nothing");
    page.keys(keys::ENTER).await;
    page.until_says("local allowed it").await;
    assert_eq!(answer_of(&rig, &first).await["say"], "allow");

    page.keys("n").await;
    page.until(&format!("location.pathname.endsWith('{second}')")).await;
    page.until("document.activeElement && document.querySelector('#text')").await;
    page.keys("d").await;
    page.keys("a jackdaw").await;
    page.keys(keys::TAB).await;
    page.keys(keys::ENTER).await;
    page.until_says("local denied it").await;
    let denied = answer_of(&rig, &second).await;
    assert_eq!(
        (&denied["say"], &denied["comment"]),
        (&json!("deny"), &json!("a jackdaw")),
        "letters are text in a field"
    );
    assert_eq!(page.messages().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_text_is_reviewed_with_feedback_and_with_an_edit_by_keyboard_alone() {
    let (rig, token) = asking().await;
    let review = |title: &str| json!({ "title": title, "content": "# Plan", "feedback": true });
    let first = ask(&rig, &token, "review.content", review("one")).await;
    let second = ask(&rig, &token, "review.content", review("two")).await;
    let Some(page) = browser(&rig, "local").await else { return };
    page.keys("j").await;
    page.keys(keys::ENTER).await;
    page.until("document.querySelector('#text')").await;
    page.keys("d").await;
    page.keys("say why").await;
    page.keys(keys::TAB).await;
    page.keys(keys::ENTER).await;
    page.until_says("local gave feedback").await;
    assert_eq!(answer_of(&rig, &first).await, json!({ "say": "feedback", "text": "say why" }));

    page.keys("i").await;
    page.until("location.pathname === '/' && document.querySelector('[data-ask]')").await;
    page.keys("j").await;
    page.keys(keys::ENTER).await;
    page.until("document.querySelector('#edited')").await;
    page.keys("e").await;
    page.until("document.activeElement.id === 'edited'").await;
    page.chord(keys::CONTROL, "a").await;
    page.keys("# Better").await;
    page.keys(keys::TAB).await;
    page.keys(keys::ENTER).await;
    page.until_says("local sent another text").await;
    assert_eq!(answer_of(&rig, &second).await, json!({ "say": "edit", "text": "# Better" }));
}

#[tokio::test]
async fn no_key_leads_to_a_yes_before_the_last_part_of_an_effect() {
    let (rig, token) = asking().await;
    let content = (0..4500).map(|number| format!("line {number}\n")).collect::<String>();
    let id = ask(&rig, &token, "file.write", json!({ "path": "long.txt", "content": content })).await;
    let Some(page) = browser(&rig, "local").await else { return };
    page.open(&url(&rig, &format!("/asks/p0/{id}"))).await;
    for part in 1..=3 {
        page.until_says(&format!("Part {part} of 3")).await;
        page.keys("a").await;
        let is_there = page.run("return document.activeElement.value === 'allow'").await;
        assert_eq!(is_there, part == 3, "part {part}");
        if part < 3 {
            page.keys("n").await;
        }
    }
}

#[tokio::test]
async fn help_and_the_palette_open_and_close_by_keyboard() {
    let (rig, token) = asking().await;
    ask_to_write(&rig, &token, "needle.txt").await;
    let Some(page) = browser(&rig, "local").await else { return };
    page.keys("?").await;
    page.until("document.querySelector('#help').open").await;
    page.keys(keys::ESCAPE).await;
    page.until("!document.querySelector('#help').open").await;
    page.chord(keys::CONTROL, "k").await;
    page.until("document.querySelector('#palette').open").await;
    page.keys("needle").await;
    page.until("document.querySelectorAll('#palette .found a').length === 1").await;
    assert_eq!(page.findings().await, Vec::<String>::new());
    page.messages().await;
    page.keys(keys::ENTER).await;
    page.until("location.pathname.startsWith('/asks/')").await;
    page.chord(keys::CONTROL, "k").await;
    page.keys("projects").await;
    page.until("document.querySelector('#palette .found a')?.getAttribute('href') === '/projects'").await;
    page.keys(keys::DOWN).await;
    page.keys(keys::ENTER).await;
    page.until("location.pathname === '/projects'").await;
    assert_eq!(page.messages().await, Vec::<String>::new());
}
