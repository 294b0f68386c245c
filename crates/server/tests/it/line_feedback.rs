//! What a person writes about one line of what is shown: it is quoted, what was typed stays, and nothing is decided by it.

use serde_json::json;
use toolhost_store::Role;

use crate::browser::{ask, asking};
use crate::pages::{Browser, form};

fn digest(page: &str) -> &str {
    page.split("name=\"digest\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

/// What stands in the field for an answer, as the page has it.
fn written(page: &str) -> &str {
    let field = page.split("name=\"text\"").nth(1).unwrap_or_default();
    field.split(">\n").nth(1).and_then(|rest| rest.split("</textarea>").next()).unwrap_or_default()
}

#[tokio::test]
async fn a_line_is_quoted_below_what_was_typed_and_nothing_is_decided() {
    let (rig, token) = asking().await;
    let content = "# Goals\n\n- be fast\u{202e}\n- be <b>right</b>\n";
    let id =
        ask(&rig, &token, "review.content", json!({ "title": "Goals", "content": content, "feedback": true })).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/asks/p0/{id}");
    let page = browser.get(&path).await.body;
    assert!(page.contains("name=\"line\" value=\"4\""), "{page}");
    let digest = digest(&page).to_owned();
    let send = |line: &'static str, at: &'static str, text: String| {
        let fields = form(&[("digest", &digest), ("part", "1"), ("line", line), ("at", at), ("text", &text)]);
        let (browser, path) = (&browser, &path);
        async move { browser.post(path, &fields).await }
    };
    let first = send("3", "", "Mostly good.".to_owned()).await;
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(written(&first.body), "Mostly good.\n\nLine 3: - be fast\\u{202e}\n");
    // By keyboard, with the number in a field.
    let second = send("at", "4", "Line 3: - be fast\nHow fast?".to_owned()).await;
    assert_eq!(written(&second.body), "Line 3: - be fast\nHow fast?\n\nLine 4: - be &#60;b&#62;right&#60;/b&#62;\n");
    for (line, at) in [("9", ""), ("0", ""), ("at", "x"), ("at", "")] {
        let refused = send(line, at, "typed".to_owned()).await;
        assert!(refused.status == 409 && refused.body.contains("There is no line"), "{line}: {refused:?}");
        assert_eq!(written(&refused.body), "typed");
    }
    let stale = form(&[("digest", "other"), ("line", "3"), ("text", "typed")]);
    let stale = browser.post(&path, &stale).await;
    assert!(stale.status == 409 && written(&stale.body) == "typed", "{stale:?}");
    let page = browser.get(&path).await.body;
    assert!(page.contains("value=\"feedback\"") && !page.contains("data-outcome"), "it is still open: {page}");
    let sent = form(&[("digest", &digest), ("decision", "feedback"), ("text", "Line 3: - be fast\nHow fast?")]);
    assert_eq!(browser.post(&path, &sent).await.status, 303);
    assert!(browser.get(&path).await.body.contains("Line 3: - be fast\nHow fast?"));
}

#[tokio::test]
async fn the_lines_of_each_part_have_the_numbers_of_the_whole_and_a_viewer_has_none() {
    let (rig, token) = asking().await;
    let content: String = (1..=2100).map(|number| format!("line {number}\n")).collect();
    let id =
        ask(&rig, &token, "review.content", json!({ "title": "Long", "content": content, "feedback": true })).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/asks/p0/{id}");
    let last = browser.get(&format!("{path}?part=2")).await.body;
    assert!(last.contains("value=\"2100\"") && !last.contains("value=\"1999\""), "{last}");
    let fields = form(&[("digest", digest(&last)), ("part", "2"), ("line", "2077")]);
    let quoted = browser.post(&path, &fields).await.body;
    assert_eq!(written(&quoted), "Line 2077: line 2077\n");
    assert!(quoted.contains("Part 2 of 2"), "{quoted}");
    let people = rig.houses[0].store.people();
    let viewer = people.add_user("vic").await.unwrap();
    people.set_member(rig.houses[0].project.id, viewer, Role::Viewer, None).await.unwrap();
    let page = Browser::signed_in(&rig, "vic").await.get(&path).await.body;
    assert!(page.contains("line 7") && !page.contains("name=\"line\""), "{page}");
}

#[tokio::test]
async fn reviews_are_listed_beside_the_artifacts_with_what_became_of_each() {
    let (rig, token) = asking().await;
    let browser = Browser::signed_in(&rig, "local").await;
    let none = browser.get("/projects/p0/plan/artifacts").await.body;
    assert!(none.contains("Nobody was asked to review a text."), "{none}");
    let review = |title: &str| json!({ "title": title, "content": "# Plan", "feedback": true });
    let first = ask(&rig, &token, "review.content", review("The <first> plan")).await;
    let second = ask(&rig, &token, "review.content", review("The second plan")).await;
    ask(&rig, &token, "human.ask", json!({ "question": "No review?" })).await;
    let path = format!("/asks/p0/{first}");
    let page = browser.get(&path).await.body;
    let answer = form(&[("digest", digest(&page)), ("part", "1"), ("decision", "feedback"), ("text", "more")]);
    assert_eq!(browser.post(&path, &answer).await.status, 303);
    let list = browser.get("/projects/p0/plan/artifacts").await.body;
    for shown in ["The &#60;first&#62; plan", &format!("href=\"{path}\""), &format!("{first} · local gave feedback")] {
        assert!(list.contains(shown), "{shown}: {list}");
    }
    assert!(list.contains("waits for an answer") && list.contains(&second) && !list.contains("No review?"), "{list}");
}
