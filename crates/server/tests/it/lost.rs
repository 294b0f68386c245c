//! An address that nothing is at, and a request that an address does not take: a page for a browser, the envelope for a program.

use serde_json::json;

use crate::pages::{Browser, OWN_PAGE, USER_NAME};
use crate::rig::Rig;

/// What browsers send for a page that a person opens.
const PAGE: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

#[tokio::test]
async fn a_browser_gets_a_page_and_a_program_the_envelope() {
    let rig = Rig::one().await;
    let browsers = [(Browser::signed_in(&rig, USER_NAME).await, true), (Browser::fresh(&rig), false)];
    // A page of a later version, a typing mistake, what is no UTF-8, and an address that takes nothing but GET.
    for (asked, status) in [
        (("GET", "/projects/p0/nothing"), 404),
        (("GET", "/invox"), 404),
        (("POST", "/invox"), 404),
        (("GET", "/api/v2/projects"), 404),
        (("GET", "/projects/%ff/board"), 404),
        (("POST", "/search"), 405),
        (("DELETE", "/projects"), 405),
        (("GET", "/logout"), 405),
    ] {
        for (browser, is_signed_in) in &browsers {
            let page = browser.send(asked, &[PAGE, OWN_PAGE], "").await;
            assert_eq!(page.status, status, "{asked:?}: {page:?}");
            assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{asked:?}: {page:?}");
            assert!(page.header("content-security-policy").is_some(), "{asked:?}: {page:?}");
            assert_eq!(page.body.contains(">Inbox</a>"), *is_signed_in, "{asked:?}: {page:?}");
            assert_eq!(page.header("allow").is_some(), status == 405, "{asked:?}: {page:?}");
        }
        if asked.1.contains("%ff") {
            continue;
        }
        for accept in [&[][..], &[("accept", "application/json")], &[("accept", "*/*")]] {
            let reply = browsers[0].0.send(asked, accept, "").await;
            assert_eq!((reply.status, reply.header("content-type")), (status, Some("application/json")), "{reply:?}");
            assert_eq!(reply.json()["ok"], json!(false), "{reply:?}");
            // Whoever makes a browser show it, nothing of it runs, and no page frames it.
            let policy = Some("default-src 'none'; frame-ancestors 'none'");
            assert_eq!(reply.header("content-security-policy"), policy, "{reply:?}");
            assert_eq!(reply.header("x-frame-options"), Some("DENY"), "{reply:?}");
            assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{reply:?}");
        }
    }
}

#[tokio::test]
async fn a_browser_that_is_refused_at_the_door_is_told_on_a_page() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let elsewhere = [("host", "evil.example"), PAGE];
    let refused = browser.send(("GET", "/"), &elsewhere, "").await;
    assert!(refused.status == 403 && refused.body.contains("<h1>") && !refused.body.contains("Inbox"), "{refused:?}");
    let refused = browser.send(("GET", "/"), &elsewhere[..1], "").await;
    assert_eq!((refused.status, &refused.json()["ok"]), (403, &json!(false)), "{refused:?}");
}
