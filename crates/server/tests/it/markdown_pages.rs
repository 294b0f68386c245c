//! Markdown on pages: what becomes an element, what stays text, and that what is decided is the source.

use serde_json::json;

use crate::browser::{ask, asking};
use crate::pages::Browser;
use crate::rig::Rig;
use crate::session_pages::{assert_is_text, hostile};

/// A document with one of each.
pub(crate) const DOCUMENT: &str = "# Goals\n\nRead *fast*, see [the plan](https://example.org/plan) and [this](javascript:alert(1)).\n\n\
                                   ### Deep\n\n- one\n  - two\n\n1. first\n\n> said\n\n```rust\nfn main() {}\n```\n\n\
                                   | who | what |\n|---|---|\n| eva | `x` |\n\n![a cat](https://example.org/cat.png)\n\n<b>bold</b>\n\n---\n";

#[tokio::test]
async fn a_text_of_a_record_is_shown_by_its_markdown_and_as_it_was_written() {
    let rig = Rig::one().await;
    for (tool, arguments) in [
        ("ticket.create", json!({ "title": "# no heading", "description": DOCUMENT })),
        ("comment.post", json!({ "ticketId": "TKT-001", "content": "**yes**\nor no" })),
        ("artifact.save", json!({ "kind": "prd", "content": DOCUMENT })),
    ] {
        rig.houses[0].data(tool, arguments).await;
    }
    let browser = Browser::signed_in(&rig, "local").await;
    let record = browser.get("/projects/p0/records/TKT-001").await.body;
    for shown in [
        "<h1># no heading</h1>",
        "<h3>Goals</h3>",
        "<h4>Deep</h4>",
        "<a href=\"https://example.org/plan\" rel=\"noopener noreferrer nofollow\">the plan</a> (https://example.org/plan)",
        "this (javascript:alert(1))",
        "a cat (image: https://example.org/cat.png)",
        "&#60;b&#62;bold&#60;/b&#62;",
        "<strong>yes</strong><br>or no",
        "/records/TKT-001?field=description&#38;view=text\">As text</a>",
    ] {
        assert!(record.contains(shown), "{shown}: {record}");
    }
    let source = browser.get("/projects/p0/records/TKT-001?field=description&view=text").await.body;
    assert!(
        source.contains("<code>### Deep\n") && source.contains("![a cat](https://example.org/cat.png)"),
        "{source}"
    );
    assert!(source.contains("href=\"?field=description\">As Markdown</a>"), "{source}");
    let artifact = browser.get("/projects/p0/plan/artifacts/prd").await.body;
    assert!(artifact.contains("<h2>Goals</h2>") && artifact.contains("href=\"?view=text\">As text</a>"), "{artifact}");
    for page in [record, source, artifact] {
        assert_eq!(page.matches("<h1").count(), 1, "{page}");
        assert!(!page.contains("href=\"javascript:") && !page.contains("<b>") && !page.contains("<img"), "{page}");
    }
}

#[tokio::test]
async fn what_is_decided_is_the_source_and_approvals_show_nothing_else() {
    let (rig, token) = asking().await;
    let write = ask(&rig, &token, "file.write", json!({ "path": "a.md", "content": DOCUMENT })).await;
    let review = json!({ "title": "Goals", "content": DOCUMENT, "feedback": true });
    let review = ask(&rig, &token, "review.content", review).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let approval = browser.get(&format!("/asks/p0/{write}")).await.body;
    assert!(approval.contains("### Deep") && !approval.contains("class=\"markdown\""), "{approval}");
    let page = browser.get(&format!("/asks/p0/{review}")).await.body;
    let (source, below) = page.split_once("How it reads as Markdown").unwrap();
    assert!(source.contains("</button>### Deep\n") && source.contains("(javascript:alert(1))"), "{source}");
    assert!(below.contains("<h3>Goals</h3>") && below.contains("name=\"digest\""), "{below}");
}

#[tokio::test]
async fn markdown_that_is_hostile_is_text_everywhere() {
    let rig = Rig::one().await;
    // No record takes a zero character.
    let tricks = hostile().replace('\0', "");
    let marked = format!("# {}\n\n[x](javascript:a) ![y](data:b) {}", &tricks[..300], &tricks[..300]);
    let quotes = ">".repeat(10_000);
    for (number, content) in [(1, marked), (2, quotes), (3, tricks)] {
        rig.houses[0].data("ticket.create", json!({ "title": "t", "description": "d" })).await;
        let comment = json!({ "ticketId": format!("TKT-00{number}"), "content": content });
        let posted = rig.houses[0].call("comment.post", comment).await;
        // The longest is no comment.
        assert!(posted.error.is_none() || number == 3, "{posted:?}");
    }
    let browser = Browser::signed_in(&rig, "local").await;
    for id in ["TKT-001", "TKT-002", "CMT-001", "CMT-002"] {
        let page = browser.get(&format!("/projects/p0/records/{id}")).await;
        assert_is_text(&page, id);
        assert!(!page.body.contains("href=\"javascript:") && !page.body.contains("href=\"data:"), "{id}");
    }
    let quoted = browser.get("/projects/p0/records/TKT-002").await.body;
    assert!(!quoted.contains("<blockquote>"), "what is nested too deep is shown as it is");
}
