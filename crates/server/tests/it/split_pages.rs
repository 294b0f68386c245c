//! Diffs side by side: on asks, in sessions and in change sets; and that a decision stays what it was.

use serde_json::json;
use toolhost_store::SessionState;

use crate::browser::{ask, asking};
use crate::pages::{Browser, form};
use crate::rig::Rig;
use crate::session_pages::{ID, borrowed, session, turn};

/// The value of a hidden field of a page.
fn digest(page: &str) -> &str {
    page.split("name=\"digest\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default()
}

#[tokio::test]
async fn an_ask_shows_old_and_new_beside_each_other_where_the_link_says_so() {
    let (rig, token) = asking().await;
    rig.houses[0].workspace.write("a.txt", "one\ntwo words\nthree\n");
    let content = "one\ntwo <b>signs</b>\u{202e}\nthree\nfour\n";
    rig.call(&token, "file.read", json!({ "path": "a.txt" })).await;
    let id = ask(&rig, &token, "file.write", json!({ "path": "a.txt", "content": content })).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/asks/p0/{id}");
    let plain = browser.get(&path).await.body;
    assert!(!plain.contains("<table") && plain.contains("view=split\">Side by side</a>"), "{plain}");
    let split = browser.get(&format!("{path}?view=split")).await.body;
    for shown in [
        "<th scope=\"col\">Old</th><th scope=\"col\">Line</th><th scope=\"col\">New</th>",
        "<td class=\"number\">2</td><td class=\"old\"><code>-two <del>words</del></code></td>",
        "<ins>&#60;b&#62;signs&#60;/b&#62;\\u{202e}</ins>",
        "<td></td><td></td><td class=\"number\">4</td><td class=\"new\"><code>+four</code></td>",
        "One below the other",
    ] {
        assert!(split.contains(shown), "{shown}: {split}");
    }
    assert!(!digest(&plain).is_empty() && digest(&plain) == digest(&split), "both bind the same effect");
    let allowed = browser.post(&path, &form(&[("decision", "allow"), ("digest", digest(&split))])).await;
    assert_eq!(allowed.status, 303, "{allowed:?}");
}

#[tokio::test]
async fn a_review_of_a_diff_can_be_read_side_by_side() {
    let (rig, token) = asking().await;
    let diff = "Please look:\n@@ -7 +7 @@\n-old words\n+new words\n";
    let id = ask(&rig, &token, "review.content", json!({ "title": "Words", "content": diff, "feedback": true })).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let page = browser.get(&format!("/asks/p0/{id}?view=split")).await.body;
    for shown in [
        "<code>Please look:</code>",
        "<td class=\"number\">7</td><td class=\"new\"><code>+<ins>new</ins> words</code></td>",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
}

#[tokio::test]
async fn a_long_diff_comes_in_parts_and_is_allowed_on_the_last_alone() {
    let (rig, token) = asking().await;
    let lines = |word: &str| (1..=2500).map(|number| format!("{word} {number}\n")).collect::<String>();
    rig.houses[0].workspace.write("a.txt", lines("old"));
    rig.call(&token, "file.read", json!({ "path": "a.txt" })).await;
    let id = ask(&rig, &token, "file.write", json!({ "path": "a.txt", "content": lines("new") })).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let (mut seen, mut part) = (String::new(), 1);
    loop {
        let page = browser.get(&format!("/asks/p0/{id}?part={part}&view=split")).await.body;
        let is_last = !page.contains("Next part");
        assert_eq!(page.contains("value=\"allow\""), is_last, "part {part}");
        assert!(is_last || page.contains(&format!("part={}&amp;view=split", part + 1)), "part {part}");
        seen.push_str(&page);
        if is_last {
            break;
        }
        part += 1;
    }
    assert!(part >= 3, "{part}");
    for number in 1..=2500 {
        for (class, sign, word) in [("old", '-', "old"), ("new", '+', "new")] {
            let own = format!("<td class=\"number\">{number}</td><td class=\"{class}\"><code>{sign}");
            let (_, line) = seen.split_once(&own).unwrap_or_else(|| unreachable!("{class} {number}"));
            let line = line.split("</code>").next().unwrap().replace("<del>", "").replace("</del>", "");
            let line = line.replace("<ins>", "").replace("</ins>", "");
            assert_eq!(line, format!("{word} {number}"));
        }
    }
}

#[tokio::test]
async fn a_session_shows_its_changes_side_by_side() {
    let rig = Rig::one().await;
    session(&rig, ID, "goal", &borrowed(&turn(0, "done", "c")), SessionState::Done).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/projects/p0/sessions/{ID}");
    let own = "<td class=\"old\"><code>-<del>old</del> line</code></td>";
    for (address, is_split) in [
        (path.clone(), false),
        (format!("{path}?view=split"), true),
        (format!("{path}/steps/call_0_0"), false),
        (format!("{path}/steps/call_0_0?view=split"), true),
    ] {
        let page = browser.get(&address).await.body;
        assert_eq!(page.contains(own), is_split, "{address}: {page}");
        assert_eq!(page.contains("view=split"), !is_split, "{address}: {page}");
    }
}
