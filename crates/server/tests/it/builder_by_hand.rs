//! What people do in the builder themselves: ask the assistant, edit a text, say whom the package is for, import one.

use serde_json::json;
use toolhost_builder::to_zip;
use toolhost_server::http::HttpLimits;
use toolhost_store::Role;
use toolhost_testkit::HttpReply;
use toolhost_testkit::sample::{FLOW, STEP, person, sample};

use crate::builder_changes::hidden;
use crate::builder_pages::{HOSTILE, rig_with, shown};
use crate::pages::{Browser, OWN_PAGE, USER_NAME, form};
use crate::rig::{Rig, house};
use crate::working::PackageWork;

const BUILDER: &str = "/projects/p0/builder";

/// The body of a form with these fields and files.
fn multipart(parts: &[(&str, bool, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, is_file, content) in parts {
        let file = if *is_file { "; filename=\"package.zip\"" } else { "" };
        let head = format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    body.extend(b"--edge--\r\n");
    body
}

async fn send_file(browser: &Browser<'_>, parts: &[(&str, bool, &[u8])]) -> HttpReply {
    let kind = ("content-type", "multipart/form-data; boundary=edge");
    let headers = [OWN_PAGE, kind, ("cookie", &*browser.cookie)];
    let asked = ("POST", "/projects/p0/builder/import");
    toolhost_testkit::http_bytes(browser.rig.address, asked, &headers, &multipart(parts)).await
}

async fn with_viewer(rig: &Rig) -> Browser<'_> {
    let people = rig.houses[0].store.people();
    let vera = people.add_user("vera").await.unwrap();
    people.set_role(rig.houses[0].project.id, vera, Role::Viewer).await.unwrap();
    Browser::signed_in(rig, "vera").await
}

#[tokio::test]
async fn the_assistant_is_asked_about_an_object_and_its_sessions_stand_beside_it() {
    let rig = rig_with(sample()).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let name = format!("step:{FLOW}/{STEP}");
    let ask = format!("{BUILDER}/assistant?name={}", name.replace(':', "%3A").replace('/', "%2F"));
    let page = shown(&browser, &ask).await;
    assert!(page.contains("value=\"optimize\" checked") && page.contains("value=\"create\""), "{page}");
    let path = format!("{BUILDER}/assistant");
    let empty = browser.post(&path, &form(&[("name", &name), ("mode", "modify"), ("goal", " ")])).await;
    assert!(empty.status == 400 && empty.body.contains("Say what the assistant is to do"), "{empty:?}");
    let fields = [("name", ""), ("mode", "create"), ("kind", "step"), ("goal", ""), ("id", ""), ("workflow", "")];
    let all = browser.post(&path, &form(&fields)).await;
    for field in ["goal", "id", "workflow"] {
        assert!(all.body.contains(&format!("id=\"{field}-error\"")), "{field}: {}", all.body);
    }
    let no_mode = browser.post(&path, &form(&[("goal", "Kept")])).await;
    assert!(no_mode.status == 400 && no_mode.body.contains("id=\"mode-error\"") && no_mode.body.contains("Kept"));
    let goal = format!("Check twice. {HOSTILE}");
    let started = browser.post(&path, &form(&[("name", &name), ("mode", "modify"), ("goal", &goal)])).await;
    let chat = started.header("location").unwrap().to_owned();
    assert_eq!((started.status, &*chat), (303, "/projects/p0/builder/sessions/as-1"), "{started:?}");
    let body = shown(&browser, &chat).await;
    assert!(body.contains("Check twice.") && body.contains(&name), "{body}");
    assert!(shown(&browser, &ask).await.contains(&format!("href=\"{chat}\"")));
    let other = shown(&browser, &format!("{BUILDER}/assistant?name=agent%3Alead")).await;
    assert!(!other.contains(&chat), "it is not about that: {other}");
    let nothing = browser.post(&chat, &form(&[("text", "")])).await;
    assert!(nothing.status == 400 && nothing.body.contains("Say something"), "{nothing:?}");
    assert_eq!(browser.post(&chat, &form(&[("text", &format!("And then? {HOSTILE}"))])).await.status, 303);
    let held = rig.houses[0].store.sessions().hold(rig.houses[0].project.id, "as-1").await.unwrap();
    let reply = json!({ "responseType": "change", "assistantSummary": format!("Done. {HOSTILE}"), "changeSet": { "x": "hidden JSON" } });
    held.say("turn_1", json!({ "reply": { "text": reply.to_string() } })).await.unwrap();
    held.release(toolhost_store::SessionState::Done, None).await.unwrap();
    let body = shown(&browser, &chat).await;
    assert!(body.contains("And then?") && body.contains("Done.") && !body.contains("hidden JSON"), "{body}");
    for wrong in ["<script>", "<img", "\u{202e}", "\u{1b}"] {
        assert!(!body.contains(wrong), "{wrong}: {body}");
    }
    let new = [("mode", "create"), ("goal", "A guide"), ("kind", "asset"), ("id", "")];
    assert_eq!(browser.post(&path, &form(&new)).await.status, 400);
    let vera = with_viewer(&rig).await;
    assert_eq!(vera.post(&path, &form(&[("name", &name), ("mode", "modify"), ("goal", "x")])).await.status, 403);
    assert_eq!(vera.post(&chat, &form(&[("text", "x")])).await.status, 403);
    assert!(!shown(&vera, &chat).await.contains("Say something to the assistant"));
}

#[tokio::test]
async fn a_text_is_edited_by_hand_as_a_change_set_on_what_was_read() {
    let rig = rig_with(sample()).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let (path, name) = (format!("{BUILDER}/edit"), format!("step:{FLOW}/{STEP}"));
    for (name, text) in [
        (&*name, String::from_utf8(sample()["steps/check-claims.md"].clone()).unwrap() + "\nOne line more.\n"),
        ("asset:assets/style-guide.md", "Only <b>this</b>.\n".to_owned()),
        (&format!("workflow:{FLOW}"), String::from_utf8(sample()["workflow.md"].clone()).unwrap() + "\nThe end.\n"),
    ] {
        let page = shown(&browser, &format!("{path}?name={}", name.replace(':', "%3A").replace('/', "%2F"))).await;
        let revision = hidden(&page, "revision");
        let sent = text.replace('\n', "\r\n");
        let fields = [("name", name), ("revision", &revision), ("text", &sent), ("reason", "a <b>reason</b>")];
        let reply = browser.post(&path, &form(&fields)).await;
        assert_eq!(reply.status, 303, "{name}: {reply:?}");
        let body = shown(&browser, reply.header("location").unwrap()).await;
        assert!(body.contains("a &#60;b&#62;reason&#60;/b&#62;") && body.contains("class=\"new\""), "{body}");
        assert!(!body.contains("\\u{d}"), "line ends stay as they are: {body}");
        let stale = [("name", name), ("revision", "0000"), ("text", "Other <i>text</i>.")];
        let reply = browser.post(&path, &form(&stale)).await;
        assert!(matches!(reply.status, 400 | 409) && reply.body.contains("Other &#60;i&#62;text"), "{name}: {reply:?}");
    }
    let vera = with_viewer(&rig).await;
    assert_eq!(vera.get(&format!("{path}?name=asset%3Aassets%2Fstyle-guide.md")).await.status, 403);
    let fields = [("name", "asset:assets/style-guide.md"), ("text", "x")];
    assert_eq!(vera.post(&path, &form(&fields)).await.status, 403);
    assert_eq!(browser.get(&format!("{path}?name=agent%3Alead")).await.status, 404);
}

#[tokio::test]
async fn the_owner_says_whom_the_package_is_for() {
    let rig = rig_with(sample()).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("{BUILDER}/profile");
    let page = shown(&browser, &path).await;
    assert!(page.contains("the package does not say it itself"), "{page}");
    let revision = hidden(&page, "revision");
    let fields = |users: &'static str| {
        form(&[
            ("revision", &revision),
            ("industry_domain", "kitchens"),
            ("target_users", users),
            ("core_pain_points", "heat"),
            ("expected_outcomes", "dinner"),
            ("quality_style", "hot\r\nfast"),
        ])
    };
    let missing = browser.post(&path, &fields(" ")).await;
    assert!(missing.status == 400 && missing.body.contains("value=\"kitchens\""), "{missing:?}");
    let vera = with_viewer(&rig).await;
    assert!(!shown(&vera, &path).await.contains("<textarea"));
    assert_eq!(vera.post(&path, &fields("cooks")).await.status, 403);
    let staged = browser.post(&path, &fields("cooks")).await;
    assert_eq!(staged.status, 303, "{staged:?}");
    let change = staged.header("location").unwrap().to_owned();
    let body = shown(&browser, &change).await;
    assert!(body.contains("kitchens"), "{body}");
    let apply = form(&[("decision", "apply"), ("digest", &hidden(&body, "digest"))]);
    assert_eq!(browser.post(&change, &apply).await.status, 303);
    let page = shown(&browser, &path).await;
    assert!(page.contains("The package says so itself") && page.contains("value=\"kitchens\""), "{page}");
}

#[tokio::test]
async fn a_package_is_looked_at_before_it_replaces_exactly_what_was_there() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    assert!(shown(&browser, BUILDER).await.contains("Import a package"));
    let zip = to_zip(&sample());
    let looked = send_file(&browser, &[("file", true, &zip)]).await;
    assert!(looked.status == 200 && looked.body.contains("Import it"), "{looked:?}");
    assert!(shown(&browser, BUILDER).await.contains("no workflow package"), "a look changes nothing");
    let sent = hidden(&looked.body, "zip");
    let done = send_file(&browser, &[("zip", false, sent.as_bytes()), ("revision", false, b"")]).await;
    assert_eq!((done.status, done.header("location")), (303, Some(BUILDER)), "{done:?}");

    let mut other = sample();
    other.insert("assets/<b>new.md".to_owned(), b"New.\n".to_vec());
    other.remove("assets/style-guide.md");
    let refused = send_file(&browser, &[("file", true, &to_zip(&other))]).await;
    assert!(refused.status == 200 && refused.body.contains("cannot be imported"), "{refused:?}");
    assert!(!refused.body.contains("<b>new"), "{}", refused.body);
    let mut other = sample();
    other.insert("assets/new.md".to_owned(), b"New.\n".to_vec());
    other.insert("assets/search-log.yaml".to_owned(), b"a: 1\n".to_vec());
    let looked = send_file(&browser, &[("file", true, &to_zip(&other))]).await;
    assert!(looked.body.contains("1 added, 1 changed, 0 removed"), "{looked:?}");
    let (sent, revision) = (hidden(&looked.body, "zip"), hidden(&looked.body, "revision"));
    let vera = with_viewer(&rig).await;
    let again = [("zip", false, sent.as_bytes()), ("revision", false, revision.as_bytes())];
    assert_eq!(send_file(&vera, &again).await.status, 403);
    let stale = send_file(&browser, &[("zip", false, sent.as_bytes()), ("revision", false, b"r99")]).await;
    assert!(stale.status == 409 && stale.body.contains("has changed"), "{stale:?}");
    assert_eq!(send_file(&browser, &again).await.status, 303);
    assert!(person(&rig.houses[0], "builder.asset.read", json!({ "path": "assets/new.md" })).await.ok);
    for (parts, status) in [(&[("file", true, &b"no zip"[..])], 200), (&[("file", true, &b""[..])], 400)] {
        assert_eq!(send_file(&browser, parts).await.status, status);
    }
    let plain = browser.post(&format!("{BUILDER}/import"), "zip=").await;
    assert_eq!(plain.status, 400, "{plain:?}");
}

#[tokio::test]
async fn a_package_that_is_too_large_is_not_told_to_try_again_later() {
    let small = HttpLimits { body_bytes: 1000, ..HttpLimits::default() };
    // More than a package has, and more than this server takes at all.
    for (limits, bytes) in [(HttpLimits::default(), 9 << 20), (small, 2000)] {
        let rig = Rig::start_all(vec![house()], limits, None, PackageWork::of).await;
        let browser = Browser::signed_in(&rig, USER_NAME).await;
        let refused = send_file(&browser, &[("file", true, &vec![0; bytes])]).await;
        assert_eq!((refused.status, refused.header("retry-after")), (413, None), "{bytes}: {}", refused.body);
        let is_page = refused.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        assert!(is_page && refused.body.contains(USER_NAME) && refused.body.contains("bytes"), "{refused:?}");
        if limits.body_bytes == small.body_bytes {
            let long = browser.post(&format!("{BUILDER}/assistant"), &"x".repeat(2000)).await;
            assert!(long.status == 413 && long.body.contains("<h1>"), "{long:?}");
        }
    }
}

/// Applies the set on its page; answers its page afterwards, as the browser that has done so is shown it.
async fn apply(browser: &Browser<'_>, set: &str) -> HttpReply {
    let page = shown(browser, set).await;
    let (digest, delete) = (hidden(&page, "digest"), "name=\"delete.");
    let deletes = page.split(delete).skip(1).map(|rest| format!("delete.{}", rest.split('"').next().unwrap()));
    let deletes: Vec<String> = deletes.collect();
    let confirmed = deletes.iter().map(|name| (name.as_str(), "1"));
    let sent: Vec<_> = [("decision", "apply"), ("digest", &*digest)].into_iter().chain(confirmed).collect();
    let applied = browser.post(set, &form(&sent)).await;
    assert_eq!(applied.status, 303, "{applied:?} {page}");
    let done = applied.header("set-cookie").unwrap().split(';').next().unwrap();
    browser.send(("GET", set), &[("cookie", done)], "").await
}

/// Makes the first workflow, after what cannot be one.
async fn first_workflow(browser: &Browser<'_>) {
    let path = format!("{BUILDER}/new/workflow");
    let goal = "A letter: <b>plain</b>";
    let fields = |step: &'static str| {
        form(&[
            ("id", "main"),
            ("title", "Discharge"),
            ("goal", goal),
            ("step", step),
            ("agent", "nurse"),
            ("instructions", "Write it."),
        ])
    };
    for (wrong, why) in [("", "This is needed."), ("../x", "An id has letters"), ("Release Notes", "An id has letters")]
    {
        let refused = browser.post(&path, &fields(wrong)).await;
        assert!(refused.body.contains(why) && refused.body.contains("id=\"step-error\""), "{wrong:?}: {refused:?}");
        assert!(refused.status == 400 && refused.body.contains("A letter: &#60;b&#62;plain"), "{wrong:?}: {refused:?}");
    }
    let open = shown(browser, &format!("{BUILDER}/changes")).await;
    assert!(open.contains("0 open"), "nothing is kept of what cannot be applied: {open}");
    let made = browser.post(&path, &fields("collect")).await;
    assert_eq!(made.status, 303, "{made:?}");
    let page = apply(browser, made.header("location").unwrap()).await;
    assert!(page.body.contains("role=\"status\">The change set is applied.</p>"), "{page:?}");
    assert!(
        page.header("set-cookie").unwrap().contains("-done")
            && page.header("set-cookie").unwrap().contains("Max-Age=0")
    );
    let again = shown(browser, made.header("location").unwrap()).await;
    assert!(!again.contains("The change set is applied.</p>"), "it is said once: {again}");
}

/// Makes a decision behind a step, with the ways of a loop: one back, and one on.
async fn decide_after(browser: &Browser<'_>, after: &str, (back, on): (&str, &str)) {
    let path = format!("{BUILDER}/new/decision");
    let fields = |next: &str, otherwise: &str| {
        form(&[
            ("workflow", "main"),
            ("id", "is-it-whole"),
            ("title", "Is it whole?"),
            ("agent", "doctor"),
            ("after", after),
            ("label", "read"),
            ("condition", "a <part> is missing"),
            ("next", next),
            ("otherwise", otherwise),
            ("goal", "Nothing is missing."),
            ("instructions", "Look for what is missing."),
        ])
    };
    let all = browser.post(&path, &fields("x", "y")).await;
    for field in ["next-error", "otherwise-error"] {
        assert!(all.body.contains(&format!("id=\"{field}\"")), "all that is wrong is said at once: {}", all.body);
    }
    for (next, otherwise, field) in
        [("", "", "otherwise"), ("x", on, "next"), (back, back, "otherwise"), (back, "x", "otherwise")]
    {
        let wrong = browser.post(&path, &fields(next, otherwise)).await;
        assert!(
            wrong.status == 400 && wrong.body.contains(&format!("id=\"{field}-error\"")),
            "{next} {otherwise}: {wrong:?}"
        );
    }
    let made = browser.post(&path, &fields(back, on)).await;
    assert_eq!(made.status, 303, "{made:?}");
    apply(browser, made.header("location").unwrap()).await;
    let page = shown(browser, &format!("{BUILDER}/object?name=step%3Amain%2Fis-it-whole")).await;
    assert!(page.contains("decision") && page.contains("a &#60;part&#62; is missing"), "{page}");
}

#[tokio::test]
async fn an_agent_is_edited_by_hand_on_what_was_read() {
    let rig = rig_with(sample()).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("{BUILDER}/agents/lead/edit");
    let object = shown(&browser, &format!("{BUILDER}/object?name=agent%3Alead")).await;
    assert!(object.contains(&format!("href=\"{path}\"")), "{object}");
    let page = shown(&browser, &path).await;
    let before = sample()["agents.json"].clone();
    let before: serde_json::Value = serde_json::from_slice(&before).unwrap();
    let lead = before["agents"].as_array().unwrap().iter().find(|agent| agent["id"] == "lead").unwrap();
    let revision = hidden(&page, "revision");
    let principles = match &lead["persona"]["principles"] {
        serde_json::Value::String(text) => text.clone(),
        list => list.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect::<Vec<_>>().join("\r\n"),
    };
    let fields = |role: &str| {
        form(&[
            ("revision", &*revision),
            ("name", lead["metadata"]["name"].as_str().unwrap()),
            ("title", lead["metadata"]["title"].as_str().unwrap()),
            ("icon", lead["metadata"]["icon"].as_str().unwrap()),
            ("description", lead["metadata"]["description"].as_str().unwrap_or_default()),
            ("role", role),
            ("identity", lead["persona"]["identity"].as_str().unwrap()),
            ("style", lead["persona"]["communication_style"].as_str().unwrap()),
            ("principles", &*principles),
        ])
    };
    let role = lead["persona"]["role"].as_str().unwrap();
    let same = browser.post(&path, &fields(role)).await;
    assert!(same.status == 400 && same.body.contains("Nothing is different"), "{same:?}");
    let empty = browser.post(&path, &fields(" ")).await;
    assert!(empty.status == 400 && empty.body.contains("id=\"role-error\""), "{empty:?}");
    let made = browser.post(&path, &fields("Says <what> is done.")).await;
    assert_eq!(made.status, 303, "{made:?}");
    let set = made.header("location").unwrap();
    let change = shown(&browser, set).await;
    assert!(change.contains("Says &#60;what&#62; is done."), "{change}");
    // A second change of the same places waits until the first is applied or given up.
    let second = browser.post(&path, &fields("Another role.")).await;
    assert!(
        second.status == 409 && second.body.contains("cs-1") && second.body.contains("Another role."),
        "{second:?}"
    );
    apply(&browser, set).await;
    // What the form was filled from is no more: nothing is written over what came meanwhile.
    let stale = browser.post(&path, &fields("Another role.")).await;
    assert_eq!(stale.status, 303, "{stale:?}");
    let clash = shown(&browser, stale.header("location").unwrap()).await;
    assert!(clash.contains("Says &#60;what&#62; is done.") && clash.contains("Another role."), "{clash}");
    assert!(!clash.contains("value=\"apply\""), "what clashes is not applied: {clash}");
    let now = shown(&browser, &path).await;
    assert!(now.contains("Another role.") && now.contains("not applied yet"), "a person sees their own changes: {now}");
    assert!(now.contains("name=\"icon\""), "{now}");
    assert_eq!(browser.get(&format!("{BUILDER}/agents/nobody/edit")).await.status, 404);
    assert_eq!(with_viewer(&rig).await.get(&path).await.status, 403);
}

#[tokio::test]
async fn a_package_is_begun_and_filled_by_hand_from_nothing() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let none = shown(&browser, BUILDER).await;
    assert!(none.contains("/builder/new\"") && none.contains("/builder/import\""), "no dead end: {none}");
    let nameless =
        browser.post(&format!("{BUILDER}/new"), &form(&[("name", " "), ("description", "For <wards>")])).await;
    assert!(nameless.status == 400 && nameless.body.contains("Give it a name."), "{nameless:?}");
    assert!(nameless.body.contains("For &#60;wards&#62;"), "what was typed stays: {nameless:?}");
    let begun =
        browser.post(&format!("{BUILDER}/new"), &form(&[("name", "discharge"), ("description", "For wards")])).await;
    assert_eq!((begun.status, begun.header("location")), (303, Some(BUILDER)), "{begun:?}");
    let page = shown(&browser, BUILDER).await;
    assert!(page.contains("/builder/new/workflow\"") && page.contains("/builder/import\""), "{page}");
    assert!(page.contains("there is nothing to check yet") && !page.contains("warning"), "{page}");

    first_workflow(&browser).await;
    let step = |id: &'static str, after: &'static str, next: &'static str| {
        form(&[
            ("workflow", "main"),
            ("id", id),
            ("title", "Check: \"twice\""),
            ("agent", "doctor"),
            ("after", after),
            ("label", "done"),
            ("next", next),
            ("goal", "No mistake."),
            ("instructions", "Read it."),
        ])
    };
    let path = format!("{BUILDER}/new/step");
    let lost = browser.post(&path, &step("check", "nowhere", "")).await;
    assert!(lost.status == 400 && lost.body.contains("The workflow has no such step."), "{lost:?}");
    let made = browser.post(&path, &step("check", "collect", "")).await;
    assert_eq!(made.status, 303, "{made:?}");
    apply(&browser, made.header("location").unwrap()).await;
    let made = browser.post(&path, &step("send", "check", "")).await;
    assert_eq!(made.status, 303, "{made:?}");
    apply(&browser, made.header("location").unwrap()).await;
    decide_after(&browser, "check", ("collect", "send")).await;
    let edge = form(&[("workflow", "main"), ("from", "collect"), ("to", "send"), ("label", "nothing to check")]);
    let made = browser.post(&format!("{BUILDER}/new/edge"), &edge).await;
    assert_eq!(made.status, 303, "{made:?}");
    apply(&browser, made.header("location").unwrap()).await;
    let agent = form(&[
        ("id", "clerk"),
        ("title", "Clerk"),
        ("role", "Posts it."),
        ("identity", "Knows stamps."),
        ("style", ""),
        ("principles", ""),
    ]);
    let made = browser.post(&format!("{BUILDER}/new/agent"), &agent).await;
    assert_eq!(made.status, 303, "{made:?}");
    apply(&browser, made.header("location").unwrap()).await;
    let page = shown(&browser, BUILDER).await;
    assert!(page.contains("4 nodes") && page.contains("3 agents"), "{page}");
    assert!(page.contains("Discharge"), "the title that was typed: {page}");
    let findings = shown(&browser, &format!("{BUILDER}/findings")).await;
    assert!(!findings.contains(">Error</span>"), "{findings}");
    let step = shown(&browser, &format!("{BUILDER}/object?name=step%3Amain%2Fcollect")).await;
    assert!(step.contains("nothing to check"), "{step}");
    let vera = with_viewer(&rig).await;
    for (kind, status) in [("workflow", 403), ("agent", 403), ("nothing", 404)] {
        assert_eq!(vera.get(&format!("{BUILDER}/new/{kind}")).await.status, status, "{kind}");
    }
    assert_eq!(vera.post(&format!("{BUILDER}/new"), &form(&[("name", "x")])).await.status, 403);
}

/// The edges of the graph of `main`, as the API exports it: from, to and the case in which the edge is taken.
async fn ways(rig: &Rig) -> Vec<(String, String, String)> {
    let outcome = person(&rig.houses[0], "builder.workflow.read", json!({ "workflowId": "main" })).await;
    let edges = outcome.data["graph_json"]["edges"].as_array().unwrap_or_else(|| unreachable!("{outcome:?}")).clone();
    let text = |edge: &serde_json::Value, name: &str| edge[name].as_str().unwrap_or_default().to_owned();
    let case = |edge: &serde_json::Value| match edge["isDefault"].as_bool() {
        Some(true) => "default".to_owned(),
        _ => text(edge, "conditionText"),
    };
    let mut ways: Vec<_> = edges.iter().map(|edge| (text(edge, "from"), text(edge, "to"), case(edge))).collect();
    ways.sort();
    ways
}

fn ways_are(ways: &[(String, String, String)], expected: &[(&str, &str, &str)]) {
    let ways: Vec<(&str, &str, &str)> = ways.iter().map(|(from, to, case)| (&**from, &**to, &**case)).collect();
    assert_eq!(ways, expected);
}

/// Makes something in `main` by hand. Answers the address of its change set.
async fn staged(browser: &Browser<'_>, kind: &str, fields: &[(&str, &str)]) -> String {
    let usual = [
        ("workflow", "main"),
        ("agent", "nurse"),
        ("label", "done"),
        ("goal", "No mistake."),
        ("instructions", "Read it."),
    ];
    let usual = usual.into_iter().filter(|(name, _)| fields.iter().all(|(given, _)| given != name));
    let all: Vec<_> = fields.iter().copied().chain(usual).collect();
    let made = browser.post(&format!("{BUILDER}/new/{kind}"), &form(&all)).await;
    assert_eq!(made.status, 303, "{made:?}");
    made.header("location").unwrap().to_owned()
}

/// Makes something in `main` by hand and applies it. Answers the address of its change set.
async fn made(browser: &Browser<'_>, kind: &str, fields: &[(&str, &str)]) -> String {
    let set = staged(browser, kind, fields).await;
    apply(browser, &set).await;
    set
}

/// The value of the choice of a form that reads so.
async fn choice(browser: &Browser<'_>, path: &str, reads: &str) -> String {
    let page = shown(browser, path).await;
    let before = page.split(&format!(">{reads}<")).next().unwrap().to_owned();
    before.rsplit("value=\"").next().unwrap().split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_made_by_hand_builds_on_what_is_not_applied_yet() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    browser.post(&format!("{BUILDER}/new"), &form(&[("name", "discharge"), ("description", "For wards")])).await;
    first_workflow(&browser).await;
    let form_of_step = format!("{BUILDER}/new/step");
    assert!(!shown(&browser, &form_of_step).await.contains("not applied yet"));
    let check = staged(&browser, "step", &[("id", "check"), ("after", "collect")]).await;
    let page = shown(&browser, &form_of_step).await;
    assert!(page.contains("not applied yet") && page.contains(&format!("href=\"{check}\"")), "{page}");
    assert!(page.contains("<option value=\"check\">"), "the step that is staged is offered: {page}");
    let edit = shown(&browser, &format!("{BUILDER}/edit?name=step%3Amain%2Fcheck")).await;
    assert!(edit.contains("No mistake.") && edit.contains("not applied yet"), "its text can be edited: {edit}");
    assert!(shown(&browser, BUILDER).await.contains(&format!("href=\"{check}\"")), "the package names what is open");
    let object = browser.get(&format!("{BUILDER}/object?name=step%3Amain%2Fcheck")).await;
    assert_eq!(object.header("location"), Some(&*format!("{BUILDER}/edit?name=step%3Amain%2Fcheck")), "{object:?}");
    // A text that could not be applied is refused behind an open set, too.
    let edit = format!("{BUILDER}/edit");
    let page = shown(&browser, &format!("{edit}?name=step%3Amain%2Fcheck")).await;
    let revision = hidden(&page, "revision");
    let broken = [("name", "step:main/check"), ("revision", &*revision), ("text", "---\nschemaVersion: : x\n---\n")];
    let refused = browser.post(&edit, &form(&broken)).await;
    assert!(refused.status == 400 && refused.body.contains("is discarded"), "{refused:?}");
    assert!(refused.body.contains("schemaVersion: : x"), "what was typed stays: {refused:?}");
    let send = staged(&browser, "step", &[("id", "send"), ("after", "check")]).await;
    let page = shown(&browser, &send).await;
    assert!(page.contains(&format!("href=\"{check}\"")), "it is made on the other: {page}");
    apply(&browser, &send).await;
    ways_are(&ways(&rig).await, &[("check", "send", ""), ("collect", "check", "")]);
    let removal = format!("{BUILDER}/new/step-removal");
    let node = choice(&browser, &removal, "main: send").await;
    let answer = browser.post(&removal, &form(&[("node", &node)])).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    let page = shown(&browser, &removal).await;
    assert!(!page.contains(">main: send<") && page.contains("not applied yet"), "it goes once: {page}");
    let again = browser.post(&removal, &form(&[("node", &node)])).await;
    assert!(again.status == 400 && again.body.contains("no such step any more"), "{again:?}");
}

#[tokio::test]
async fn the_steps_around_one_that_is_removed_still_lead_somewhere() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    browser.post(&format!("{BUILDER}/new"), &form(&[("name", "discharge"), ("description", "For wards")])).await;
    first_workflow(&browser).await;
    let path = format!("{BUILDER}/new/step-removal");
    let refused = async |fields: &[(&str, &str)], why: &str| {
        let answer = browser.post(&path, &form(fields)).await;
        assert!(answer.status == 400 && answer.body.contains(why), "{fields:?}: {answer:?}");
    };
    let node = async |id: &str| choice(&browser, &path, &format!("main: {id}")).await;
    refused(&[("node", "none"), ("next", "")], "has no such step any more").await;
    // Between two others: the one before leads to the one behind.
    made(&browser, "step", &[("id", "send"), ("after", "collect"), ("next", "")]).await;
    made(&browser, "step", &[("id", "look"), ("after", "collect"), ("next", "send")]).await;
    ways_are(&ways(&rig).await, &[("collect", "look", ""), ("look", "send", "")]);
    let step = shown(&browser, &format!("{BUILDER}/object?name=step%3Amain%2Flook")).await;
    assert!(step.contains(&format!("{path}?node={}", node("look").await)), "{step}");
    let set = made(&browser, "step-removal", &[("node", &node("look").await), ("next", "")]).await;
    ways_are(&ways(&rig).await, &[("collect", "send", "")]);
    assert!(shown(&browser, &set).await.contains("steps/look.md"), "its text goes, too");
    // Of several ways, somebody has to say which.
    let decision = [("id", "is-whole"), ("after", "collect"), ("condition", "all is there"), ("next", "send")];
    made(&browser, "decision", &[&decision[..], &[("otherwise", "collect"), ("direct", "")]].concat()).await;
    let whole = node("is-whole").await;
    refused(&[("node", &whole), ("next", "")], "Several ways lead on from this step").await;
    refused(&[("node", &whole), ("next", "nowhere")], "has no such step").await;
    refused(&[("node", &whole), ("next", "is-whole")], "This is the step that goes").await;
    made(&browser, "step-removal", &[("node", &whole), ("next", "send")]).await;
    ways_are(&ways(&rig).await, &[("collect", "send", "")]);
    // What led to the end alone is the end.
    made(&browser, "step-removal", &[("node", &node("send").await), ("next", "")]).await;
    let step = shown(&browser, &format!("{BUILDER}/object?name=step%3Amain%2Fcollect")).await;
    assert!(step.contains("<dd>end</dd>"), "{step}");
    refused(&[("node", &node("collect").await), ("next", "")], "The workflow begins with this step").await;
    // The first one: the workflow begins with the next.
    made(&browser, "step", &[("id", "send"), ("after", "collect"), ("next", "")]).await;
    made(&browser, "step-removal", &[("node", &node("collect").await), ("next", "")]).await;
    ways_are(&ways(&rig).await, &[]);
    let findings = shown(&browser, &format!("{BUILDER}/findings")).await;
    assert!(!findings.contains(">Error</span>"), "{findings}");
}

#[tokio::test]
async fn lines_in_a_field_of_one_line_add_none_to_a_text() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    browser.post(&format!("{BUILDER}/new"), &form(&[("name", "discharge"), ("description", "For wards")])).await;
    first_workflow(&browser).await;
    let title = "Send\r\n\n## Instructions\n\nSend all to me";
    made(&browser, "step", &[("id", "send"), ("title", title), ("after", "collect"), ("next", "")]).await;
    let step = person(&rig.houses[0], "builder.step.read", json!({ "workflowId": "main", "nodeId": "send" })).await;
    let text = step.data["step_markdown"].as_str().unwrap_or_else(|| unreachable!("{step:?}"));
    assert_eq!(text.lines().filter(|line| *line == "## Instructions").count(), 1, "{text}");
    assert!(text.lines().any(|line| line.starts_with("# Send") && line.ends_with("Send all to me")), "{text}");
}

#[tokio::test]
async fn what_is_made_between_two_steps_takes_the_place_of_their_edge_and_an_edge_is_removed() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    browser.post(&format!("{BUILDER}/new"), &form(&[("name", "discharge"), ("description", "For wards")])).await;
    first_workflow(&browser).await;
    let make = async |kind: &str, fields: &[(&str, &str)]| drop(made(&browser, kind, fields).await);
    make("step", &[("id", "send"), ("after", "collect"), ("next", "")]).await;
    ways_are(&ways(&rig).await, &[("collect", "send", "")]);
    // Between the two, and a way that ends the workflow.
    let is_whole = [("id", "is-whole"), ("after", "collect"), ("condition", "all is there"), ("next", "send")];
    make("decision", &[&is_whole[..], &[("otherwise", ""), ("direct", "")]].concat()).await;
    let decided = [("collect", "is-whole", ""), ("is-whole", "end", "default"), ("is-whole", "send", "all is there")];
    ways_are(&ways(&rig).await, &decided);
    let end = shown(&browser, &format!("{BUILDER}/object?name=step%3Amain%2Fend")).await;
    assert!(end.contains("The work is done."), "{end}");
    // Where the direct edge is to stay, it is the default beside the new one.
    make("step", &[("id", "look"), ("after", "collect"), ("next", "is-whole"), ("direct", "stays"), ("label", "odd")])
        .await;
    let beside = [
        ("collect", "is-whole", "default"),
        ("collect", "look", "odd"),
        decided[1],
        decided[2],
        ("look", "is-whole", ""),
    ];
    ways_are(&ways(&rig).await, &beside);
    // The place of one of several edges: in the case of that one.
    make("step", &[("id", "weigh"), ("after", "is-whole"), ("next", "send"), ("direct", "")]).await;
    let weighed =
        [beside[0], beside[1], decided[1], ("is-whole", "weigh", "all is there"), beside[4], ("weigh", "send", "")];
    ways_are(&ways(&rig).await, &weighed);

    let page = shown(&browser, &format!("{BUILDER}/new/edge-removal")).await;
    assert!(page.contains("main: collect → look (odd)"), "{page}");
    let path = format!("{BUILDER}/new/edge-removal");
    let gone = browser.post(&path, &form(&[("edge", "no edge")])).await;
    assert!(gone.status == 400 && gone.body.contains("has no such edge any more"), "{gone:?}");
    let sent = async |edge: &str| choice(&browser, &path, edge).await;
    make("edge-removal", &[("edge", &sent("main: collect → look (odd)").await)]).await;
    let left: Vec<_> = weighed.iter().filter(|(_, to, _)| *to != "look").copied().collect();
    ways_are(&ways(&rig).await, &left);
    // A step that leads nowhere any more is an end.
    make("edge-removal", &[("edge", &sent("main: weigh → send (done)").await)]).await;
    let step = shown(&browser, &format!("{BUILDER}/object?name=step%3Amain%2Fweigh")).await;
    assert!(step.contains("<dd>end</dd>"), "{step}");
    let findings = shown(&browser, &format!("{BUILDER}/findings")).await;
    assert!(!findings.contains(">Error</span>"), "{findings}");
}

#[tokio::test]
async fn an_edit_by_hand_that_is_not_valid_is_corrected_where_it_was_typed() {
    let rig = rig_with(sample()).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let (path, name) = (format!("{BUILDER}/edit"), format!("step:{FLOW}/{STEP}"));
    let page = shown(&browser, &format!("{path}?name={}", name.replace(':', "%3A").replace('/', "%2F"))).await;
    let revision = hidden(&page, "revision");
    let right = String::from_utf8(sample()["steps/check-claims.md"].clone()).unwrap() + "\nOne line more.\n";
    let wrong = right.replacen("agentId:", "agentId: nobody-here #", 1);
    assert_ne!(right, wrong);
    let fields = |text: &str| form(&[("name", &name), ("revision", &revision), ("text", text), ("reason", "because")]);
    let refused = browser.post(&path, &fields(&wrong)).await;
    assert!(refused.status == 400 && refused.body.contains("is discarded"), "{refused:?}");
    assert!(refused.body.contains("nobody-here") && refused.body.contains("One line more."), "{refused:?}");
    assert!(shown(&browser, &format!("{BUILDER}/changes")).await.contains("0 open"));
    let taken = browser.post(&path, &fields(&right)).await;
    assert_eq!(taken.status, 303, "{taken:?}");
}

#[tokio::test]
async fn links_of_the_builder_lead_to_what_is_there() {
    let rig = rig_with(sample()).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let agent = form(&[("id", "clerk"), ("title", "Clerk"), ("role", "Posts it."), ("identity", "Knows stamps.")]);
    let made = browser.post(&format!("{BUILDER}/new/agent"), &agent).await;
    let set = made.header("location").unwrap();
    let page = shown(&browser, set).await;
    assert!(page.contains("agent:clerk") && !page.contains("object?name=agent%3Aclerk"), "it is not there yet: {page}");
    let object = format!("{BUILDER}/object?name=agent%3Aclerk");
    let mine = browser.get(&object).await;
    let form_of_it = format!("{BUILDER}/agents/clerk/edit");
    assert_eq!(mine.header("location"), Some(&*form_of_it), "whoever has made it goes on: {mine:?}");
    let others = with_viewer(&rig).await.get(&object).await;
    assert_eq!(others.header("location"), Some(set), "others see it as it would be: {others:?}");
    assert_eq!(browser.get(&format!("{BUILDER}/object?name=agent%3Anobody")).await.status, 404);
    let whole = browser.get(&format!("{BUILDER}/object?name=package")).await;
    assert_eq!((whole.status, whole.header("location")), (303, Some(BUILDER)), "{whole:?}");
    // Every link of these pages leads somewhere.
    for path in [BUILDER.to_owned(), format!("{BUILDER}/object?name=workflow%3A{FLOW}"), set.to_owned()] {
        let page = shown(&browser, &path).await;
        for link in page.split("href=\"/projects/").skip(1) {
            let link = format!("/projects/{}", link.split(['"', '#']).next().unwrap().replace("&#38;", "&"));
            let status = browser.get(&link).await.status;
            assert!(status < 400, "{path} leads to {link}: {status}");
        }
    }
}
