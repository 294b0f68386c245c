//! What an agent writes is text on every page, whatever it is: nothing of it runs, covers, leads away or breaks the page, and it can be read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_builder::Files;
use toolhost_host::Asking;
use toolhost_server::http::HttpLimits;
use toolhost_store::{AskLimits, SessionState};
use toolhost_testkit::Browser;
use toolhost_testkit::corpus::{Hostile, hostile};
use toolhost_testkit::sample::{FLOW, sample};

use crate::browser::{PROJECT_PAGES, browser, url};
use crate::builder_pages::{object, rig_with};
use crate::pages::{Browser as Visitor, form};
use crate::rig::{Rig, house};

const WIDTH: u32 = 375;
const HEIGHT: u32 = 800;

/// What of a page is not as the program has made it; nothing, where all is well.
const WRONG: &str = r#"
    const wrong = [];
    const say = (what, found) => { if (found) wrong.push(what + ': ' + found); };
    say('a script has run', window.ran);
    say('scripts', [...document.scripts].filter((script) => script.src !== location.origin + '/static/toolhost.js')
        .map((script) => script.outerHTML).join());
    const all = [...document.querySelectorAll('*')];
    say('handlers', all.filter((one) => [...one.attributes].some((name) => name.name.startsWith('on')))
        .map((one) => one.outerHTML.slice(0, 200)).join());
    say('styles', all.filter((one) => one.hasAttribute('style')).map((one) => one.outerHTML.slice(0, 200)).join());
    say('elements', [...document.querySelectorAll('iframe,object,embed,img,video,audio,base,style,marquee,math,template,xmp,' +
        'plaintext,dialog[open],meta[http-equiv]')].map((one) => one.outerHTML.slice(0, 200)).join());
    const away = (address) => { try { return new URL(address, location.href).origin !== location.origin; } catch { return true; } };
    say('links', [...document.querySelectorAll('a[href]')].filter((one) => away(one.getAttribute('href')) &&
        !(one.protocol.startsWith('http') && one.rel.includes('noopener') && one.textContent.includes(one.host)))
        .map((one) => one.outerHTML.slice(0, 200)).join());
    say('forms', [...document.querySelectorAll('form,[formaction]')].filter((one) =>
        away(one.getAttribute('action') ?? one.getAttribute('formaction') ?? ''))
        .map((one) => one.outerHTML.slice(0, 200)).join());
    say('headings', document.querySelectorAll('h1').length === 1 ? '' : document.querySelectorAll('h1').length);
    say('width', document.scrollingElement.scrollWidth > innerWidth ? document.scrollingElement.scrollWidth : '');
    // What a person edits is as it is; beside it, it is written out.
    const edited = /[/]edit$|^[/]asks[/]/.test(location.pathname);
    const values = edited ? '' : [...document.querySelectorAll('input,textarea,option')].map((one) => one.value).join('\n');
    const raw = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/u;
    const shown = document.body.innerText;
    say('raw marks', (raw.exec(shown) || raw.exec(values) || raw.exec(document.title) || [''])[0] &&
        shown.slice(Math.max(0, shown.search(raw) - 40), shown.search(raw) + 40));
    return wrong;
"#;

/// Every call in which an agent writes a text that people read, with that text in each place of it.
fn written(text: &str) -> Vec<(&'static str, Value)> {
    let line = text.lines().next().unwrap_or_default();
    vec![
        (
            "ticket.create",
            json!({ "title": line, "description": text, "acceptanceCriteria": [text], "assignee": line }),
        ),
        (
            "task.create",
            json!({ "title": line, "description": text, "acceptanceCriteria": [text], "filesToCreate": [line] }),
        ),
        (
            "requirement.create",
            json!({ "title": line, "description": text, "priority": "low", "category": "functional", "acceptanceCriteria": [text] }),
        ),
        ("memory.save_insight", json!({ "stage": line, "content": text })),
        ("persona.add", json!({ "name": line, "role": line, "personality": text })),
        ("milestone.add", json!({ "name": line })),
        ("artifact.save", json!({ "kind": "prd", "content": text })),
        ("human.ask", json!({ "question": text })),
        ("review.content", json!({ "title": line, "content": text, "prompt": text, "feedback": true })),
        ("file.write", json!({ "path": "asked.txt", "content": text })),
        ("bash", json!({ "command": text })),
        ("file.read", json!({ "path": text })),
        ("no.such.tool", json!({ "argument": text })),
    ]
}

async fn complain(browser: &Browser, wrong: &mut Vec<String>, rig: &Rig, path: &str) {
    browser.open(&url(rig, path)).await;
    let short: String = path.chars().take(100).collect();
    for problem in browser.run(WRONG).await.as_array().unwrap() {
        wrong.push(format!("{short}: {}", problem.as_str().unwrap().chars().take(400).collect::<String>()));
    }
    wrong.extend(browser.messages().await.into_iter().map(|message| format!("{short}: {message}")));
}

/// A project into which an agent has written the whole corpus, wherever it may write; and the records that came of each text.
async fn written_over(corpus: &[Hostile]) -> (Rig, Vec<Vec<String>>) {
    let limits = AskLimits { open: 1000, bytes: 1 << 30 };
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n[[rules]]\ntool = \"bash\"\ndecide = \"ask\"\n";
    let asking = Asking { limits, hold: Duration::ZERO, ..Asking::default() };
    let rig = Rig::start(vec![house().project_policy(policy).asking(asking)], HttpLimits::default()).await;
    let token = rig.token(&["call"]).await;
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    let mut records = Vec::new();
    for Hostile { text, .. } in corpus {
        let mut ids = Vec::new();
        for (tool, arguments) in written(text) {
            let reply = rig.call(&token, tool, arguments).await.json();
            *kept.entry(tool).or_default() += usize::from(reply["ok"] == true);
            let data = reply["data"].to_string();
            let id = ["TKT-", "TASK-"].iter().find_map(|kind| data.find(kind)).map(|at| &data[at..]);
            ids.extend(id.map(|id| id.split('"').next().unwrap_or_default().to_owned()));
        }
        records.push(ids);
    }
    for (tool, kept) in &kept {
        // The rest is refused: a line of a million letters is no title, and some are no path.
        let all = !matches!(*tool, "file.read" | "no.such.tool" | "bash" | "file.write");
        assert!(!all || *kept * 10 >= corpus.len() * 8, "{tool}: {kept} of {}", corpus.len());
    }
    for (number, Hostile { text, .. }) in corpus.iter().enumerate() {
        rig.houses[0].workspace.write(&format!("hostile/{number}.txt"), text);
    }
    rig.houses[0].workspace.write("notes.md", "# Notes\n");
    rig.houses[0].workspace.write("hostile/invalid.txt", b"m900 \xff\xfe\xc3\x28 <script>window.ran=1</script>\n");
    (rig, records)
}

#[tokio::test]
async fn nothing_that_an_agent_writes_is_more_than_text_on_any_page() {
    let corpus = hostile();
    assert!(corpus.len() >= 100);
    let (rig, records) = written_over(&corpus).await;
    let Some(browser) = browser(&rig, "local").await else { return };
    browser.size(WIDTH, HEIGHT).await;
    let person = Visitor::signed_in(&rig, "local").await;
    for Hostile { text, .. } in corpus.iter().take(20) {
        person.post("/projects/p0/sessions/new", &form(&[("goal", text), ("profile", "developer")])).await;
    }
    rig.houses[0].rows().await;
    browser.messages().await;
    let mut wrong = Vec::new();
    for path in ["/", "/projects"] {
        complain(&browser, &mut wrong, &rig, path).await;
    }
    // Of a builder's package, and of sessions, there is none here.
    let has_none = |path: &str| path.starts_with("builder") || path.starts_with("sessions/") || path == "deploy/undo";
    for (_, path) in PROJECT_PAGES.iter().filter(|(_, path)| !has_none(path)) {
        complain(&browser, &mut wrong, &rig, &format!("/projects/p0/{path}")).await;
    }
    for (number, (Hostile { mark, text }, ids)) in corpus.iter().zip(&records).enumerate() {
        for id in ids {
            let record = format!("/projects/p0/records/{id}");
            complain(&browser, &mut wrong, &rig, &record).await;
            if !browser.text().await.contains(mark.as_str()) {
                wrong.push(format!("{id}: {mark} cannot be read"));
            }
            if id.starts_with("TKT-") {
                complain(&browser, &mut wrong, &rig, &format!("{record}/edit")).await;
                if text.contains('\u{202e}') && !browser.text().await.contains("turn its order around") {
                    wrong.push(format!("{id}: the marks of {mark} are not written out"));
                }
            }
        }
        // A file with a zero is none of text, and a million letters are no address.
        if !text.contains('\0') {
            complain(&browser, &mut wrong, &rig, &format!("/projects/p0/files?path=hostile/{number}.txt")).await;
        }
        if text.len() < 2000 {
            complain(&browser, &mut wrong, &rig, &format!("/search?{}", form(&[("q", text)]))).await;
        }
        if text.len() < 2000 && number % 4 == 0 {
            let asked = form(&[("tool", text), ("session", text), ("hours", text)]);
            complain(&browser, &mut wrong, &rig, &format!("/projects/p0/audit?{asked}")).await;
        }
    }
    assert!(records.iter().map(Vec::len).sum::<usize>() >= 2 * corpus.len() * 8 / 10);
    complain(&browser, &mut wrong, &rig, "/projects/p0/files?path=hostile/invalid.txt").await;
    let asks = rig.houses[0].gate.queue().asks().open_numbers(rig.houses[0].project.id).await.unwrap();
    assert!(asks.len() >= corpus.len(), "{}", asks.len());
    // Five kinds of asks come in turn: each text is in one that is looked at, and each kind is looked at with many texts.
    for number in asks.into_iter().step_by(7) {
        complain(&browser, &mut wrong, &rig, &format!("/asks/p0/ask-{number}")).await;
    }
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The id of what has the text of this number.
fn id(number: usize) -> String {
    format!("h{number:03}")
}

/// The sample with the corpus in it: each text is in a step, the edge to it, an agent and an asset of its own.
fn package_of(corpus: &[&Hostile]) -> Files {
    let mut files = sample();
    let read = |files: &Files, path: &str| -> Value { serde_json::from_slice(&files[path]).unwrap() };
    let (mut graph, mut agents) = (read(&files, "workflow.graph.json"), read(&files, "agents.json"));
    let entry = graph["entryNodeId"].take();
    graph["entryNodeId"] = json!(id(0));
    let add = |list: &mut Value, one: Value| list.as_array_mut().unwrap().push(one);
    for (number, Hostile { text, .. }) in corpus.iter().enumerate() {
        let (id, file) = (id(number), format!("steps/{}.md", id(number)));
        let node = json!({ "id": id, "type": "step", "file": file, "title": text, "description": text, "agentId": id });
        add(&mut graph["nodes"], node);
        let next = if number + 1 == corpus.len() { entry.clone() } else { json!(self::id(number + 1)) };
        add(&mut graph["edges"], json!({ "from": id, "to": next, "label": text, "conditionText": text }));
        let persona = json!({ "role": text, "identity": text, "communication_style": text, "principles": [text] });
        let metadata = json!({ "name": text, "title": text, "icon": text });
        add(
            &mut agents["agents"],
            json!({ "id": id, "metadata": metadata, "persona": persona, "critical_actions": [text] }),
        );
        let front = format!("schemaVersion: \"1.1\"\nnodeId: {id}\ntype: step\ntitle: {}\nagentId: {id}", json!(text));
        let step = format!("---\n{front}\n---\n\n# {text}\n\n## Goal\n\n{text}\n\n## Instructions\n\n{text}\n");
        files.insert(file, step.into_bytes());
        files.insert(format!("assets/{id}.md"), format!("# {text}\n\n{text}\n").into_bytes());
    }
    let mut manifest = read(&files, "bmad.json");
    manifest["name"] = json!(corpus[0].text);
    manifest["description"] = json!(corpus[7].text);
    for (path, value) in [("workflow.graph.json", graph), ("agents.json", agents), ("bmad.json", manifest)] {
        files.insert(path.to_owned(), value.to_string().into_bytes());
    }
    files
}

#[tokio::test]
async fn nothing_in_a_package_is_more_than_text_on_any_page_of_the_builder() {
    let corpus = hostile();
    // A package holds no million letters in one text, and no zero.
    let corpus: Vec<&Hostile> =
        corpus.iter().filter(|one| one.text.len() < 25_000 && !one.text.contains('\0')).collect();
    assert!(corpus.len() >= 100);
    let rig = rig_with(package_of(&corpus)).await;
    let Some(browser) = browser(&rig, "local").await else { return };
    browser.size(WIDTH, HEIGHT).await;
    browser.messages().await;
    // A change set with such a text, and a talk about it.
    let person = Visitor::signed_in(&rig, "local").await;
    let text = &corpus[3].text;
    let step = form(&[
        ("workflow", FLOW),
        ("id", "made"),
        ("title", text),
        ("agent", "lead"),
        ("after", &id(0)),
        ("label", text),
        ("next", &id(1)),
        ("goal", text),
        ("instructions", text),
    ]);
    let staged = person.post("/projects/p0/builder/new/step", &step).await;
    assert_eq!(staged.header("location"), Some("/projects/p0/builder/changes/cs-1"), "{staged:?}");
    let goal = form(&[("goal", text), ("profile", "builder")]);
    assert_eq!(person.post("/projects/p0/sessions/new", &goal).await.status, 303);
    let mut wrong = Vec::new();
    for path in PROJECT_PAGES.iter().map(|(_, path)| *path).filter(|path| path.starts_with("builder")) {
        complain(&browser, &mut wrong, &rig, &format!("/projects/p0/{path}")).await;
    }
    for kind in ["agents", "assets", "files"] {
        complain(&browser, &mut wrong, &rig, &format!("/projects/p0/builder/list?kind={kind}")).await;
    }
    for (number, Hostile { mark, .. }) in corpus.iter().enumerate() {
        let id = id(number);
        let name = match number % 3 {
            0 => format!("step:{FLOW}/{id}"),
            1 => format!("agent:{id}"),
            _ => format!("asset:assets/{id}.md"),
        };
        complain(&browser, &mut wrong, &rig, &object(&name)).await;
        if !browser.text().await.contains(mark.as_str()) {
            wrong.push(format!("{name}: {mark} cannot be read"));
        }
        if number % 5 == 0 {
            complain(&browser, &mut wrong, &rig, &format!("/projects/p0/builder/agents/{id}/edit")).await;
            complain(&browser, &mut wrong, &rig, &format!("/projects/p0/builder/edit?name=asset%3Aassets%2F{id}.md"))
                .await;
        }
    }
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Turns, calls, messages and ends of a session with these texts in each place that a model, or a tool that it calls, fills.
fn spoken(texts: &[Hostile]) -> Vec<(String, Value)> {
    let mut steps = Vec::new();
    for (number, Hostile { text, .. }) in texts.iter().enumerate() {
        let call = |call: usize| format!("call_{number}_{call}");
        let asked = |n: usize, arguments: Value| json!({ "id": call(n), "name": text, "arguments": arguments });
        let calls = [asked(0, json!({ "json": { "path": text } })), asked(1, json!({ "malformed": text }))];
        let reply =
            json!({ "text": text, "calls": calls, "stop": "calls", "usage": { "inputTokens": 1, "outputTokens": 1 } });
        let came = |ok: bool| json!({ "callId": text, "tool": text, "ok": ok, "code": text, "content": text, "brief": text, "ms": 1 });
        let diff = format!("{text}\n@@ -1 +1 @@\n-{text}\n+{text}\n");
        let bad = json!({ "code": text, "findings": text });
        steps.extend([
            (format!("turn_{number}"), json!({ "reply": reply, "callIds": [text, text], "ms": 1, "elapsedMs": 1 })),
            (call(0), came(false)),
            (
                call(1),
                json!({ "callId": "c", "tool": "file.edit", "ok": true, "content": diff, "brief": text, "ms": 1 }),
            ),
            (format!("check_{number}"), json!({ "bad": bad })),
            (format!("say_{number}_0"), json!({ "text": text, "since": text })),
        ]);
    }
    steps.push(("end_0_0".to_owned(), json!({ "code": texts[0].text, "message": texts[0].text })));
    steps
}

/// Texts of one session.
const SPOKEN: usize = 8;

#[tokio::test]
async fn nothing_that_a_model_says_is_more_than_text_on_any_page_of_its_session() {
    let corpus = hostile();
    let rig = rig_with(sample()).await;
    for (number, texts) in corpus.chunks(SPOKEN).enumerate() {
        let steps = spoken(texts);
        let steps: Vec<(&str, Value)> = steps.iter().map(|(name, body)| (&**name, body.clone())).collect();
        let title = &texts[0].text[..texts[0].text.floor_char_boundary(20_000)];
        crate::session_pages::session(&rig, &format!("as_{number:016}"), title, &steps, SessionState::Failed).await;
    }
    let Some(browser) = browser(&rig, "local").await else { return };
    browser.size(WIDTH, HEIGHT).await;
    browser.messages().await;
    let mut wrong = Vec::new();
    for (number, texts) in corpus.chunks(SPOKEN).enumerate() {
        let (project, id) = ("/projects/p0", format!("as_{number:016}"));
        let session = format!("{project}/sessions/{id}");
        complain(&browser, &mut wrong, &rig, &session).await;
        let read = browser.text().await;
        for Hostile { mark, .. } in texts {
            if !read.contains(mark.as_str()) {
                wrong.push(format!("{session}: {mark} cannot be read"));
            }
        }
        let talk = format!("{project}/builder/sessions/{id}");
        let split = format!("{session}?view=split");
        let others =
            ["/trace", "/replay?step=5", "/replay?step=14", "/steps/turn_0", "/steps/call_1_1", "/steps/say_2_0"];
        for path in others.iter().map(|path| format!("{session}{path}")).chain([talk, split]) {
            complain(&browser, &mut wrong, &rig, &path).await;
        }
    }
    complain(&browser, &mut wrong, &rig, "/projects/p0/sessions").await;
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
