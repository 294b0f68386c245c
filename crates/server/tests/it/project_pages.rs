//! Pages about one project: its files, its audit, its policy and who has access.

use serde_json::json;
use toolhost_server::http::HttpLimits;
use toolhost_store::Role;
use toolhost_testkit::TempWorkspace;

use crate::pages::{Browser, USER_NAME, form};
use crate::rig::{BROKEN, Rig, house};
use crate::working::PackageWork;

const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7 * 7 }}\u{1b}[2J\u{202e}gpj";

/// Every page of a project that is looked at.
const PAGES: &[&str] = &[
    "files",
    "files/changes",
    "audit",
    "audit/export",
    "policy",
    "policy/profiles/developer",
    "access",
    "access/clients",
];

async fn viewer(rig: &Rig, name: &str, role: Role) {
    let people = rig.houses[0].store.people();
    let id = people.add_user(name).await.unwrap();
    people.set_role(rig.houses[0].project.id, id, role).await.unwrap();
}

#[tokio::test]
async fn strangers_cannot_tell_a_project_from_none() {
    let rig = Rig::one().await;
    rig.houses[0].store.people().add_user("eve").await.unwrap();
    let (eve, member) = (Browser::signed_in(&rig, "eve").await, Browser::signed_in(&rig, USER_NAME).await);
    for path in PAGES {
        let (theirs, none) =
            (eve.get(&format!("/projects/p0/{path}")).await, eve.get(&format!("/projects/p9/{path}")).await);
        assert_eq!((theirs.status, &theirs.body), (404, &none.body), "{path}");
        assert_eq!(member.get(&format!("/projects/p0/{path}")).await.status, 200, "{path}");
    }
    for path in ["policy", "access/members", "access/tokens", "audit/verification"] {
        let sent = eve.post(&format!("/projects/p0/{path}"), &form(&[("revoke", "rule-1")])).await;
        assert_eq!(sent.status, 404, "{path}: {sent:?}");
    }
}

#[tokio::test]
async fn the_audit_shows_what_was_done_the_newest_first_and_page_by_page() {
    let rig = Rig::one().await;
    let token = rig.token(&["call"]).await;
    for number in 0..60 {
        rig.call(&token, "file.write", json!({ "path": format!("f{number}.txt"), "content": "x" })).await;
    }
    let missing = rig.call(&token, "file.read", json!({ "path": "missing.txt" })).await;
    assert!(!missing.json()["ok"].as_bool().unwrap());
    // Rows of reads are written a moment after their answers.
    rig.houses[0].rows().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let by_default = browser.get("/projects/p0/audit").await.body;
    assert!(by_default.contains("f59.txt") && !by_default.contains("missing.txt"), "{by_default}");
    let all = by_default.split(" <a href=\"").find(|rest| rest.contains(">All calls</a>")).unwrap().split('"').next();
    let first = browser.get(&all.unwrap().replace("&#38;", "&")).await.body;
    assert!(first.contains("missing.txt") && first.contains("f59.txt") && !first.contains("f0.txt"), "{first}");
    assert!(first.find("f59.txt") < first.find("f58.txt"), "{first}");
    assert!(first.contains("done, ") && !first.contains(">started<"), "a call that has ended is one line: {first}");
    let (mut page, mut seen) = (first, 0);
    while let Some(at) = page.find("\">Earlier rows") {
        let begins = page[..at].rfind("href=\"").unwrap() + "href=\"".len();
        let next = page[begins..at].replace("&#38;", "&");
        seen += 1;
        page = browser.get(&next).await.body;
        assert!(!page.contains(">started<"), "its end is on the page before: {page}");
    }
    assert!(seen >= 1 && page.contains("f0.txt"), "{page}");
    let failed = browser.get("/projects/p0/audit?failed=on").await.body;
    assert!(failed.contains("missing.txt") && !failed.contains("f59.txt"), "{failed}");
    // The row that says with what it began is no failure, and stands on another page.
    assert!(failed.contains(": missing.txt</strong>"), "{failed}");
    let reads = browser.get("/projects/p0/audit?tool=file_read").await.body;
    assert!(reads.contains("missing.txt") && !reads.contains("f59.txt"), "{reads}");
    let mine = browser.get(&format!("/projects/p0/audit?by={USER_NAME}")).await.body;
    assert!(mine.contains("<strong>Write a file: f59.txt"), "{mine}");
    assert!(mine.contains("f59.txt") && mine.contains(&format!("for {USER_NAME} (")), "{mine}");
    viewer(&rig, "edda", Role::Viewer).await;
    let of_another = browser.get("/projects/p0/audit?by=edda").await.body;
    assert!(of_another.contains("No row fits"), "{of_another}");
    let of_nobody = browser.get("/projects/p0/audit?by=olaf").await.body;
    assert!(of_nobody.contains("Nobody in this project has this name"), "{of_nobody}");
    let typed = browser.get("/projects/p0/audit?hours=many").await.body;
    let misspelt = browser.get("/projects/p0/audit?tool=file.raed").await.body;
    assert!(misspelt.contains("There is no tool with the name file.raed. Did you mean file.read"), "{misspelt}");
    assert!(typed.contains("The hours are a number above 0.") && typed.contains("value=\"many\""), "{typed}");
    let both = browser.get("/projects/p0/audit?hours=0&by=nobody").await.body;
    assert!(both.contains("id=\"hours-error\"") && both.contains("id=\"by-error\""), "each beside its field: {both}");
}

#[tokio::test]
async fn one_call_is_shown_with_all_its_rows_and_the_record_can_be_verified_and_taken_away() {
    let rig = Rig::one().await;
    let token = rig.token(&["call"]).await;
    rig.call(&token, "file.write", json!({ "path": "a.txt", "content": "x" })).await;
    let row = rig.houses[0].rows().await.pop().unwrap();
    let id = row["callId"].as_str().unwrap();
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let page = browser.get(&format!("/projects/p0/audit/calls/{id}")).await.body;
    assert!(page.contains("file.write") && page.contains("a.txt") && page.contains("prevHash"), "{page}");
    assert!(page.contains("<h1>Write a file: a.txt"), "a sentence: {page}");
    assert_eq!(browser.get("/projects/p0/audit/calls/none").await.status, 404);
    let looked = browser.get("/projects/p0/audit/verification").await;
    assert_eq!((looked.status, looked.header("location")), (303, Some("/projects/p0/audit")));
    let verified = browser.post("/projects/p0/audit/verification", &form(&[("verify", "on")])).await.body;
    assert!(verified.contains("The record is whole"), "{verified}");
    let export = browser.get("/projects/p0/audit/export").await;
    let lines: Vec<&str> = export.body.lines().collect();
    let end: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!((end["line"].as_str(), end["rows"].as_u64()), (Some("end"), Some(lines.len() as u64 - 1)), "{end}");
}

#[tokio::test]
async fn files_are_looked_at_as_agents_may_and_no_further() {
    let rig = Rig::one().await;
    let workspace = &rig.houses[0].workspace;
    workspace.write("src/deep/main.rs", "fn main() {\n    hello();\n}\n");
    workspace.write("hostile.txt", HOSTILE);
    let outside = TempWorkspace::new();
    outside.write("secret", "outside");
    workspace.link(outside.path("secret"), "link");
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let top = browser.get("/projects/p0/files").await.body;
    assert!(top.contains("?path=src\">src/</a>") && top.contains("hostile.txt"), "{top}");
    let deep = browser.get("/projects/p0/files?path=src%2Fdeep").await.body;
    let of_file = "/projects/p0/files?path=src%2Fdeep%2Fmain%2Ers&line=1";
    assert!(deep.contains(&of_file.replace('&', "&#38;")), "{deep}");
    let file = browser.get(of_file).await.body;
    let failed = rig.houses[0].rows().await.iter().filter(|row| row["outcome"]["ok"] == false).count();
    assert_eq!(failed, 0, "opening a file tries nothing that fails");
    assert_eq!(
        browser.get("/projects/p0/files?path=src%2Fdeep%2Fmain%2Ers").await.body,
        file,
        "a typed path leads there, too"
    );
    assert!(file.contains("fn main()") && file.contains("?path=src%2Fdeep\">deep</a>"), "{file}");
    let found = browser.get("/projects/p0/files?q=HELLO").await.body;
    assert!(found.contains("src/deep/main.rs, line 2") && found.contains("Lines: 1. Files: 1."), "{found}");
    for path in ["..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "link", "none.txt"] {
        let refused = browser.get(&format!("/projects/p0/files?path={path}")).await;
        assert!(refused.status == 404 && refused.body.contains("role=\"alert\""), "{path}: {refused:?}");
        assert!(!refused.body.contains("root:") && !refused.body.contains("outside"), "{path}: {refused:?}");
    }
    let rows = rig.houses[0].rows().await;
    let read = rows.iter().find(|row| row["tool"] == "file.read").unwrap();
    assert_eq!((read["caller"]["door"].as_str(), read["caller"]["kind"].as_str()), (Some("workbench"), Some("person")));
}

#[tokio::test]
async fn with_a_quota_used_up_people_still_look_and_what_they_read_uses_none_of_it() {
    let rig = Rig::one().await;
    let (house, token) = (&rig.houses[0], rig.token(&["call"]).await);
    let quota = toolhost_store::Quota::new(Some(2), None).unwrap();
    house.store.quotas().set(house.project.id, quota).await.unwrap();
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    for _ in 0..4 {
        assert_eq!(browser.get("/projects/p0/files").await.status, 200);
    }
    house.rows().await;
    for is_let_through in [true, true, false] {
        let called = rig.call(&token, "file.list", json!({})).await.json();
        assert_eq!(called["ok"], is_let_through, "the pages have used none of it: {called}");
        house.rows().await;
    }
    for path in ["files", "board", "plan"] {
        assert_eq!(browser.get(&format!("/projects/p0/{path}")).await.status, 200, "{path}");
    }
    // What changes something counts, whoever does it.
    let saved = browser.post("/projects/p0/board/new", &form(&[("title", "one more")])).await;
    assert!(saved.status == 404 || saved.status == 429, "{saved:?}");
}

#[tokio::test]
async fn what_agents_write_is_text_on_pages_of_a_project() {
    let rig = Rig::one().await;
    let token = rig.token(&["call"]).await;
    rig.houses[0].workspace.write("hostile.txt", HOSTILE);
    rig.call(&token, "file.write", json!({ "path": "<b>x</b>.txt", "content": HOSTILE })).await;
    rig.call(&token, HOSTILE, json!({ "path": HOSTILE })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let rows = rig.houses[0].rows().await;
    let calls = rows.iter().map(|row| format!("audit/calls/{}", row["callId"].as_str().unwrap()));
    let query =
        form(&[("path", HOSTILE), ("q", HOSTILE), ("tool", HOSTILE), ("arguments", HOSTILE), ("session", HOSTILE)]);
    let asked = PAGES.iter().map(|path| format!("{path}?{query}"));
    let plain = PAGES.iter().map(|path| (*path).to_owned());
    let others = ["files?path=hostile.txt".to_owned(), "files?q=alert".to_owned()];
    for path in plain.chain(asked).chain(calls).chain(others).filter(|path| !path.starts_with("audit/export")) {
        let page = browser.get(&format!("/projects/p0/{path}")).await;
        for forbidden in ["<script>", "<img", "<b>", "\u{1b}", "\u{202e}", "\"'>"] {
            assert!(!page.body.contains(forbidden), "{path} {forbidden:?}: {}", page.body);
        }
    }
}

#[tokio::test]
async fn the_policy_says_what_would_be_decided_and_editors_end_rules() {
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\nwhy = \"people look first\"\n\n\
                  [[rules]]\ntool = \"file.delete\"\ndecide = \"deny\"\n";
    let rig = Rig::start(vec![house().project_policy(policy)], HttpLimits::default()).await;
    viewer(&rig, "ann", Role::Viewer).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let ask = |tool: &str, profile: &str, arguments: &str| {
        format!("/projects/p0/policy?{}", form(&[("tool", tool), ("profile", profile), ("arguments", arguments)]))
    };
    for (tool, arguments, said) in [
        ("file_read", "{\"path\":\"a\"}", "<strong>allowed</strong>"),
        ("file.write", "{\"path\":\"a\",\"content\":\"\"}", "<strong>a person is asked</strong>"),
        ("file.delete", "{\"path\":\"a\"}", "<strong>denied</strong> (a rule of the policy denies file.delete"),
        ("none", "{}", "There is no tool with the name none."),
        ("file.read", "{", "The arguments are not JSON"),
    ] {
        let page = browser.get(&ask(tool, "all", arguments)).await;
        assert!(page.status == 200 && page.body.contains(said), "{tool}: {}", page.body);
    }
    let all = browser.get(&ask("none", "nobody", "{")).await.body;
    for field in ["tool", "profile", "arguments"] {
        assert!(all.contains(&format!("id=\"{field}-error\"")), "{field}: {all}");
    }
    assert!(browser.get(&ask("", "all", "")).await.body.contains("Name a tool."));
    let rows = rig.houses[0].rows().await;
    assert!(rows.is_empty(), "a question makes no call: {rows:?}");

    let token = rig.token(&["call"]).await;
    let reply = rig.call(&token, "file.write", json!({ "path": "a.txt", "content": "x" })).await;
    let id = reply.json()["data"]["approvalId"].as_str().unwrap().to_owned();
    let page = browser.get(&format!("/asks/p0/{id}")).await.body;
    let digest = page.split("name=\"digest\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let granted = browser.post(&format!("/asks/p0/{id}"), &form(&[("rule", "on"), ("digest", digest)])).await;
    assert_eq!(granted.status, 303, "{granted:?}");
    let page = browser.get("/projects/p0/policy").await.body;
    assert!(page.contains("rule-2") && page.contains("in force"), "{page}");
    let ann = Browser::signed_in(&rig, "ann").await;
    assert!(!ann.get("/projects/p0/policy").await.body.contains("name=\"revoke\""));
    assert_eq!(ann.post("/projects/p0/policy", "revoke=rule-2").await.status, 403);
    assert_eq!(browser.post("/projects/p0/policy", "revoke=rule-9").await.status, 404);
    assert_eq!(browser.post("/projects/p0/policy", "revoke=rule-2").await.status, 303);
    let page = browser.get("/projects/p0/policy").await.body;
    assert!(page.contains("rule-2") && !page.contains("in force"), "{page}");
}

#[tokio::test]
async fn the_clients_that_have_called_are_named_and_how_to_connect_one() {
    let rig = Rig::one().await;
    let token = rig.token_of(0, "nightly <b>", &["all"], &["call"]).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    // What a person does here is no client's.
    browser.get("/projects/p0/files").await;
    rig.houses[0].rows().await;
    let nobody = browser.get("/projects/p0/access/clients").await.body;
    assert!(nobody.contains("<p class=\"calm\">Nobody.</p>"), "{nobody}");
    rig.call(&token, "file.write", json!({ "path": "a.txt", "content": "x" })).await;
    rig.houses[0].rows().await;
    let page = browser.get("/projects/p0/access/clients").await.body;
    assert!(page.contains("profile all") && !page.contains("Nobody.") && !page.contains("workbench"), "{page}");
    // As the browser names the server.
    assert!(page.contains("toolhost http://localhost/mcp/p0 --header"), "{page}");
    assert!(!page.contains("<b>"), "{page}");
}

#[tokio::test]
async fn access_is_shown_to_members_and_tokens_to_owners_alone() {
    let rig = Rig::one().await;
    viewer(&rig, "ann", Role::Editor).await;
    rig.token_of(0, "nightly", &["all"], &["call"]).await;
    let (owner, ann) = (Browser::signed_in(&rig, USER_NAME).await, Browser::signed_in(&rig, "ann").await);
    let page = owner.get("/projects/p0/access").await.body;
    assert!(page.contains("nightly") && page.contains("ann") && page.contains("Fence"), "{page}");
    let page = ann.get("/projects/p0/access").await.body;
    assert!(!page.contains("nightly") && page.contains("ann") && !page.contains("<form class=\"filter\""), "{page}");
    let empty = [("name", ""), ("profile", "none"), ("days", "0"), ("for", "nobody")];
    let wrong = owner.post("/projects/p0/access/tokens", &form(&empty)).await;
    for field in ["name", "profile", "rights", "for", "days"] {
        assert!(wrong.body.contains(&format!("id=\"token-{field}-error\"")), "{field}: {wrong:?}");
    }
    let wrong = owner.post("/projects/p0/access/members", &form(&[("member", " "), ("role", "king")])).await;
    assert!(
        wrong.status == 400 && wrong.body.contains("id=\"member-error\"") && wrong.body.contains("id=\"role-error\"")
    );
    rig.advance(16 * 60_000);
    let late = form(&[("name", "late"), ("call", "on"), ("profile", "all")]);
    let made = owner.post("/projects/p0/access/tokens", &late).await;
    assert!(
        made.status == 403 && made.body.contains("Sign in again") && made.body.contains("value=\"late\""),
        "{made:?}"
    );
}

#[tokio::test]
async fn every_call_that_changed_files_is_found_and_a_deploy_without_a_target_says_what_to_set() {
    let rig = Rig::one().await;
    let token = rig.token(&["call"]).await;
    rig.call(&token, "file.write", json!({ "path": "a.txt", "content": "one\n" })).await;
    let edits = json!([{ "search": "one", "replace": "two" }]);
    rig.call(&token, "file.edit", json!({ "path": "a.txt", "edits": edits })).await;
    rig.call(&token, "ticket.create", json!({ "title": "no file" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let changes = browser.get("/projects/p0/files/changes").await.body;
    assert!(changes.contains("href=\"/projects/p0/audit?files=on\""), "{changes}");
    let found = browser.get("/projects/p0/audit?files=on").await.body;
    assert!(found.contains("file.write") && found.contains("file.edit") && !found.contains("ticket.create"), "{found}");
    let deploy = browser.get("/projects/p0/deploy").await.body;
    assert!(deploy.contains("[deploy]") && !deploy.contains("ask the person"), "{deploy}");
}

#[tokio::test]
async fn a_project_that_cannot_be_opened_is_answered_as_one_that_is_not_there() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    for page in ["", "/board", "/sessions", "/audit"] {
        let answers = [BROKEN, "absent"].map(|key| (key, format!("/projects/{key}{page}")));
        let mut told = Vec::new();
        for (key, path) in answers {
            let answer = browser.get(&path).await;
            told.push((answer.status, answer.body.replace(key, "KEY")));
        }
        assert_eq!(told[0].0, 404, "{page}");
        assert!(told[0].1.contains("You have no such project") && told[0].1.contains("the log"), "{told:?}");
        assert_eq!(told[0], told[1], "{page}");
    }
}

#[tokio::test]
async fn a_look_at_deploys_without_a_target_leaves_no_failed_call() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    for _ in 0..2 {
        let deploy = browser.get("/projects/p0/deploy").await.body;
        assert!(deploy.contains("[deploy]"), "{deploy}");
        let pressed = browser.post("/projects/p0/deploy", "deploy=on").await.body;
        assert!(pressed.contains("[deploy]"), "{pressed}");
    }
    let audit = browser.get("/projects/p0/audit?all=on").await.body;
    assert!(!audit.contains("/audit/calls/"), "{audit}");
}

#[tokio::test]
async fn a_search_finds_records_and_sessions_of_the_person_s_projects_alone() {
    let rig = Rig::start(vec![house(), house()], HttpLimits::default()).await;
    let token = rig.token(&["call"]).await;
    rig.call(&token, "ticket.create", json!({ "title": "Paint the quokka" })).await;
    crate::session_pages::session(
        &rig,
        crate::session_pages::ID,
        "Count quokkas",
        &[],
        toolhost_store::SessionState::Done,
    )
    .await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let found = browser.get("/search?q=quokka").await.body;
    assert!(found.contains("Paint the quokka") && found.contains("/projects/p0/records/TKT-001\""), "{found}");
    assert!(found.contains("Count quokkas") && found.contains("0123456789abcdef"), "{found}");
    // What was asked and has been answered is found, too.
    let token = rig.token(&["call"]).await;
    let ask = crate::browser::ask(&rig, &token, "human.ask", json!({ "question": "Which quokka?" })).await;
    assert!(browser.get("/search?q=quokka").await.body.contains("Which quokka?"));
    let digest = crate::pages::digest(&browser.get(&format!("/asks/p0/{ask}")).await);
    let answer = form(&[("decision", "answer"), ("text", "The small one."), ("digest", &digest)]);
    assert_eq!(browser.post(&format!("/asks/p0/{ask}"), &answer).await.status, 303);
    let found = browser.get("/search?q=quokka").await.body;
    assert!(found.contains("Which quokka?") && found.contains("local answered"), "{found}");
    rig.houses[0].store.people().add_user("eve").await.unwrap();
    let eve = Browser::signed_in(&rig, "eve").await;
    let found = eve.get("/search?q=quokka").await.body;
    assert!(!found.contains("Paint") && !found.contains("Count"), "{found}");
}
