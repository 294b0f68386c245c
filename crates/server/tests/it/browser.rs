//! Every page in a real browser: both themes, a phone and a desk, and nothing that the browser complains of.

use serde_json::{Value, json};
use toolhost_server::http::{HttpLimits, SignIn};
use toolhost_store::LoginLife;
use toolhost_testkit::Browser;
use toolhost_testkit::sample::sample;

use crate::builder_pages::rig_with;
use crate::markdown_pages::DOCUMENT;
use crate::pages::{Browser as Visitor, form};
use crate::rig::{Rig, house};

/// The pages that are looked at: a name, and the path. A new page has a line of its own here.
const PAGES: &[(&str, &str)] = &[
    ("inbox", "/"),
    ("ask", "/asks/p0/ask-1"),
    ("ask-split", "/asks/p0/ask-1?view=split"),
    ("ask-rule", "/asks/p0/ask-1?past=week"),
    ("ask-review", "/asks/p0/ask-2"),
    ("ask-question", "/asks/p0/ask-3"),
    ("ask-ended", "/asks/p0/ask-4"),
    ("batch", "/batch?ask%3Ap0%2Fask-1=on&ask%3Ap0%2Fask-2=on"),
    ("projects", "/projects"),
    ("search", "/search?q=file"),
    ("login", "/login"),
];
/// The pages of a project, below it.
pub(crate) const PROJECT_PAGES: &[(&str, &str)] = &[
    ("sessions", "sessions"),
    ("session-new", "sessions/new"),
    ("session", "sessions/as-1"),
    ("trace", "sessions/as-1/trace"),
    ("replay", "sessions/as-1/replay?step=3"),
    ("session-step", "sessions/as-1/steps/turn_0"),
    ("board", "board"),
    ("ticket-new", "board/new"),
    ("ticket", "records/TKT-001"),
    ("ticket-edit", "records/TKT-001/edit"),
    ("ticket-markdown", "records/TKT-002"),
    ("artifact", "plan/artifacts/prd"),
    ("artifact-text", "plan/artifacts/prd?view=text"),
    ("plan", "plan"),
    ("features", "plan/features"),
    ("requirement-edit", "records/REQ-001/edit"),
    ("tasks", "plan/tasks"),
    ("artifacts", "plan/artifacts"),
    ("iterations", "plan/iterations"),
    ("memory", "plan/memory"),
    ("personas", "plan/personas"),
    ("builder", "builder"),
    ("workflow", "builder/object?name=workflow%3Aresearch-report"),
    ("step", "builder/object?name=step%3Aresearch-report%2Fcheck-claims"),
    ("findings", "builder/findings"),
    ("agent", "builder/object?name=agent%3Alead"),
    ("asset", "builder/object?name=asset%3Aassets%2Fstyle-guide.md"),
    ("edit-text", "builder/edit?name=asset%3Aassets%2Fstyle-guide.md"),
    ("builder-list", "builder/list"),
    ("import", "builder/import"),
    ("domain-profile", "builder/profile"),
    ("change-sets", "builder/changes"),
    ("change", "builder/changes/cs-1"),
    ("chat", "builder/sessions/as-1"),
    ("history", "builder/history"),
    ("workflow-new", "builder/new/workflow"),
    ("step-new", "builder/new/step"),
    ("decision-new", "builder/new/decision"),
    ("edge-removal", "builder/new/edge-removal"),
    ("step-removal", "builder/new/step-removal"),
    ("agent-edit", "builder/agents/lead/edit"),
    ("requirement-new", "plan/new/requirement"),
    ("assistant", "builder/assistant"),
    ("files", "files"),
    ("file", "files?path=notes.md"),
    ("search-in-files", "files?q=notes"),
    ("file-changes", "files/changes"),
    ("deploy", "deploy"),
    ("deploy-undo", "deploy/undo"),
    ("audit", "audit"),
    ("verification", "audit/verification"),
    ("policy", "policy?tool=file.write&profile=all&arguments=%7B%7D"),
    ("models", "policy/models"),
    ("profile", "policy/profiles/developer"),
    ("access", "access"),
    ("clients", "access/clients"),
];
const WIDTHS: [u32; 2] = [375, 1280];
const SCHEMES: [&str; 2] = ["light", "dark"];
/// No page scrolls sideways on the narrowest screen.
const NARROWEST: u32 = 320;
const HEIGHT: u32 = 800;

/// A server of `p0`, whose agent is asked about each file that it writes.
pub(crate) async fn asking() -> (Rig, String) {
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
    let rig = Rig::start(vec![house().project_policy(policy)], HttpLimits::default()).await;
    let token = rig.token(&["call"]).await;
    (rig, token)
}

/// The agent calls a tool that waits for a person: the id of the ask.
pub(crate) async fn ask(rig: &Rig, token: &str, tool: &str, arguments: Value) -> String {
    let reply = rig.call(token, tool, arguments).await;
    reply.json()["data"]["approvalId"].as_str().unwrap_or_else(|| unreachable!("{reply:?}")).to_owned()
}

/// The agent wants to write a file.
pub(crate) async fn ask_to_write(rig: &Rig, token: &str, path: &str) -> String {
    ask(rig, token, "file.write", json!({ "path": path, "content": "one\ntwo\n" })).await
}

/// An address of the server, as a browser opens it.
pub(crate) fn url(rig: &Rig, path: &str) -> String {
    format!("http://{}{path}", rig.address)
}

/// Signs a browser in as somebody, as people do: with a link and a button.
pub(crate) async fn sign_in(browser: &Browser, rig: &Rig, user: &str) {
    let (path, hash) = SignIn::new_link().unwrap();
    let lives = std::time::Duration::from_secs(600);
    rig.houses[0].store.logins(LoginLife::default()).add_link(&hash, user, lives).await.unwrap();
    browser.open(&url(rig, &path)).await;
    browser.click("main form button").await;
    browser.until("document.querySelector('.who')").await;
}

/// A browser in which somebody has signed in; `None` where there is none.
pub(crate) async fn browser(rig: &Rig, user: &str) -> Option<Browser> {
    let browser = Browser::start().await?;
    browser.size(1280, HEIGHT).await;
    sign_in(&browser, rig, user).await;
    Some(browser)
}

/// A server with one ask of each kind, and one that has ended.
async fn with_asks() -> Rig {
    let (rig, token) = asking().await;
    let path = "crates/billing/src/reconciliation/statement_import_of_foreign_banks.rs";
    let code = |limit: &str| {
        format!(
            "//! Reads the statements that banks send.\n\nuse std::time::Duration;\n\n/// How long a bank may take to answer.\n\
             const ANSWER_MAX: Duration = Duration::from_secs({limit});\n\npub fn import(statement: &str) -> Result<Vec<Entry>, Error> {{\n    \
             statement.lines().map(Entry::parse).collect()\n}}\n"
        )
    };
    rig.houses[0].workspace.write(path, code("5"));
    let write = json!({ "path": path, "content": code("30") });
    ask(&rig, &token, "file.write", write).await;
    let content = "# Import of statements\n\n- A file of 10,000 entries is read within a second.\n- An entry that is \
        not understood is named with its line.\n- Nothing is imported twice.\n";
    let review = json!({ "title": "Requirements of the import", "content": content, "feedback": true });
    ask(&rig, &token, "review.content", review).await;
    ask(&rig, &token, "human.ask", json!({ "question": "May the old API go?", "kind": "yes_no" })).await;
    let ended = ask_to_write(&rig, &token, "ended.txt").await;
    let queue = rig.houses[0].gate.queue();
    let person = rig.houses[0].owner();
    let number = toolhost_host::ask_number(&ended).unwrap();
    let answer = toolhost_contract::Answer::Deny { comment: Some("not this one".to_owned()) };
    let decision = toolhost_host::Decision { answer, rule: None };
    queue.decide(&person, number, decision, "test").await.unwrap();
    rig
}

#[tokio::test]
async fn each_page_is_sound_in_both_themes_and_widths() {
    let rig = with_asks().await;
    let pages = PAGES.iter().map(|(name, path)| (*name, (*path).to_owned())).collect();
    are_sound(&rig, pages).await;
}

/// A server of a project with some of everything.
async fn with_work() -> Rig {
    let rig = rig_with(sample()).await;
    let token = rig.token(&["call"]).await;
    for (tool, arguments) in [
        ("file.write", json!({ "path": "notes.md", "content": "# Notes\n\nSome notes on the way.\n" })),
        ("ticket.create", json!({ "title": "A dark theme for people who read at night", "priority": "high" })),
        ("file.read", json!({ "path": "missing.md" })),
        ("ticket.create", json!({ "title": "With Markdown", "description": DOCUMENT })),
        ("comment.post", json!({ "ticketId": "TKT-002", "content": DOCUMENT })),
        ("artifact.save", json!({ "kind": "prd", "content": DOCUMENT })),
        (
            "ticket.create",
            json!({ "title": "Statements of foreign banks are read, too", "priority": "high", "type": "feature" }),
        ),
        ("ticket.update_state", json!({ "ticketId": "TKT-003", "newState": "research" })),
        ("ticket.create", json!({ "title": "An entry without a date stops the import", "type": "bug" })),
        ("ticket.update_state", json!({ "ticketId": "TKT-004", "newState": "research" })),
        ("ticket.update_state", json!({ "ticketId": "TKT-004", "newState": "plan_approval" })),
        (
            "requirement.create",
            json!({
                "title": "Statements are imported", "description": "A clerk sees the entries of a bank the same day.",
                "priority": "high", "category": "functional", "acceptanceCriteria": ["10,000 entries within a second"],
            }),
        ),
        (
            "feature.add",
            json!({
                "name": "Import of statements", "description": "Reads what banks send.", "requirementIds": ["REQ-001"],
                "completionCriteria": ["the file of each bank is read"], "estimatedEffort": "3 days",
            }),
        ),
        (
            "component.add",
            json!({
                "name": "Parser", "componentType": "backend_service", "responsibilities": ["reads a statement"],
                "technology": "Rust", "relatedFeatures": ["FEAT-001"],
            }),
        ),
        ("milestone.add", json!({ "name": "Beta", "deadline": "2027-01-15", "features": ["FEAT-001"] })),
        ("task.create", json!({ "title": "Read the format of statements", "filesToCreate": ["src/statement.rs"] })),
        ("task.create", json!({ "title": "Import them", "dependencies": ["TASK-001"] })),
    ] {
        rig.call(&token, tool, arguments).await;
    }
    let person = Visitor::signed_in(&rig, "local").await;
    let goal = form(&[("goal", "Shorten the first step"), ("profile", "builder")]);
    let started = person.post("/projects/p0/sessions/new", &goal).await;
    assert_eq!(started.status, 303, "{started:?}");
    worked(&rig).await;
    let step = form(&[
        ("workflow", "research-report"),
        ("id", "check-scope"),
        ("title", "Check the scope"),
        ("agent", "lead"),
        ("after", "scope"),
        ("label", "done"),
        ("next", "plan"),
        ("goal", "The scope is one that can be met in the time."),
        ("instructions", "Compare the scope with the days that are left."),
    ]);
    let staged = person.post("/projects/p0/builder/new/step", &step).await;
    assert_eq!(staged.header("location"), Some("/projects/p0/builder/changes/cs-1"), "{staged:?}");
    rig.houses[0].rows().await;
    rig
}

/// What the agent of the first session has done.
async fn worked(rig: &Rig) {
    let said = "The first step says **everything twice**. I shorten it:\n\n| Part | Before | After |\n|---|---|---|\n| Goal | 9 lines | 2 lines |\n\n```\nsh test.sh\n```\n";
    let asked = json!([
        { "id": "call_0_0", "name": "file_edit", "arguments": { "json": { "path": "notes.md", "edits": [{ "search": "a", "replace": "b" }] } } },
        { "id": "call_0_1", "name": "bash", "arguments": { "json": { "command": "sh test.sh" } } },
        { "id": "call_0_2", "name": "git_push", "arguments": { "json": {} } },
    ]);
    let reply = json!({ "text": said, "calls": asked, "stop": "calls", "usage": { "inputTokens": 12_400, "outputTokens": 310 } });
    let diff = "edited notes.md\n@@ -1,3 +1,3 @@\n # Notes\n \n-Some notes on the way.\n+Notes on the way.";
    let held = rig.houses[0].store.sessions().hold(rig.houses[0].project.id, "as-1").await.unwrap();
    for (step, body) in [
        (
            "turn_0",
            json!({ "reply": reply, "callIds": ["c1", "c2", "c3"], "cost": 0.0412, "ms": 2300, "elapsedMs": 2300 }),
        ),
        (
            "call_0_0",
            json!({ "callId": "c1", "tool": "file.edit", "ok": true, "content": diff, "brief": "edited notes.md (1 place)", "ms": 4 }),
        ),
        (
            "call_0_1",
            json!({ "callId": "c2", "tool": "bash", "ok": true, "exitCode": 1, "content": "3 of 4 passed\n", "brief": "3 of 4 passed", "ms": 840 }),
        ),
        (
            "call_0_2",
            json!({ "callId": "c3", "tool": "git.push", "ok": true, "waits": true, "content": "ask-9", "brief": "it waits for a person as ask-9", "ms": 5000 }),
        ),
    ] {
        held.say(step, body).await.unwrap();
    }
    held.release(toolhost_store::SessionState::Paused, None).await.unwrap();
}

#[tokio::test]
async fn each_page_of_a_project_is_sound_in_both_themes_and_widths() {
    let rig = with_work().await;
    let mut pages: Vec<_> = PROJECT_PAGES.iter().map(|(name, path)| (*name, format!("/projects/p0/{path}"))).collect();
    // Pages whose addresses have numbers that are drawn by chance.
    let person = Visitor::signed_in(&rig, "local").await;
    let writes = person.get("/projects/p0/audit?tool=file.write").await.body;
    let call = writes.split("/audit/calls/").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    pages.push(("audit-call", format!("/projects/p0/audit/calls/{call}")));
    pages.push(("terminal", "/login/terminal".to_owned()));
    are_sound(&rig, pages).await;
}

async fn are_sound(rig: &Rig, pages: Vec<(&str, String)>) {
    let Some(browser) = browser(rig, "local").await else { return };
    browser.messages().await;
    let mut wrong = Vec::new();
    for (name, path) in &pages {
        for scheme in SCHEMES {
            browser.scheme(scheme).await;
            for width in WIDTHS.into_iter().chain([NARROWEST]) {
                browser.size(width, HEIGHT).await;
                browser.open(&url(rig, path)).await;
                let at = format!("{name}, {scheme}, {width} px");
                // Not `innerWidth`: on a phone the browser makes it as wide as what is too wide.
                let wide = browser.run("return document.scrollingElement.scrollWidth").await;
                if wide.as_u64().unwrap() > width.into() {
                    wrong.push(format!("{at}: is {wide} px wide"));
                }
                let headings = browser.run("return document.querySelectorAll('h1').length").await;
                assert_eq!(headings, 1, "{at}");
                if width == NARROWEST {
                    continue;
                }
                let image = Browser::screenshots().join(format!("{name}-{scheme}-{width}.png"));
                browser.screenshot(&image).await;
                wrong.extend(browser.messages().await.into_iter().map(|message| format!("{at}: {message}")));
                wrong.extend(browser.findings().await.into_iter().map(|finding| format!("{at}: {finding}")));
                // What axe-core itself makes the browser say is not the page's.
                browser.messages().await;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
