//! The builder's pages of change sets: what one makes of the package, and what a person does with it.

use serde_json::{Value, json};
use toolhost_store::Role;
use toolhost_testkit::House;
use toolhost_testkit::sample::{FLOW, in_session, person, sample};

use crate::builder_pages::{HOSTILE, rig_with, shown};
use crate::pages::{Browser, USER_NAME, form};
use crate::rig::Rig;

const CHANGES: &str = "/projects/p0/builder/changes";
const HISTORY: &str = "/projects/p0/builder/history";
const ASSET: &str = "assets/style-guide.md";

/// The value of a hidden field of a page.
pub(crate) fn hidden(body: &str, name: &str) -> String {
    let begin = format!("name=\"{name}\" value=\"");
    assert!(body.contains(&begin), "no field {name}: {body}");
    let (_, rest) = body.split_once(&begin).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// Stages operations as a model does.
async fn staged(house: &House, session: &str, operations: Value, renew: Value) -> String {
    let set = json!({
        "schemaVersion": "1.1", "targetType": operations[0]["targetType"], "mode": "optimize",
        "operations": operations, "revisions": renew,
    });
    let outcome = in_session(house, session, "builder.change.stage", json!({ "changeSet": set })).await;
    assert!(outcome.ok, "{outcome:?}");
    outcome.data["changeSetId"].as_str().unwrap().to_owned()
}

fn asset(path: &str, content: &str) -> Value {
    json!({ "op": "upsert", "targetType": "asset", "target": { "path": path }, "payload": { "content": content } })
}

async fn revisions(house: &House) -> Value {
    person(house, "builder.asset.read", json!({ "path": ASSET })).await.data["revisions"].clone()
}

/// Two operations: an asset that is changed, and one that is made.
async fn two(rig: &Rig) -> String {
    let house = &rig.houses[0];
    let operations = json!([asset(ASSET, "Be brief.\n"), asset("assets/new.md", "New.\n")]);
    staged(house, "s1", operations, revisions(house).await).await
}

#[tokio::test]
async fn a_set_is_seen_applied_as_it_was_seen_and_taken_back() {
    let rig = rig_with(sample()).await;
    let id = two(&rig).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("{CHANGES}/{id}");
    assert!(shown(&browser, CHANGES).await.contains(&format!("href=\"{path}\"")));
    let body = shown(&browser, &path).await;
    for part in ["+Be brief.", "asset:assets/new.md", "class=\"new\"", "Choose operations", "Discard it"] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let split = shown(&browser, &format!("{path}?view=split")).await;
    assert!(split.contains("<td class=\"new\"><code>+Be brief.</code></td>"), "{split}");
    assert_eq!(hidden(&split, "digest"), hidden(&body, "digest"));
    let stale = browser.post(&path, &form(&[("decision", "apply"), ("digest", &"0".repeat(64))])).await;
    assert_eq!(stale.status, 409, "{stale:?}");
    assert!(stale.body.contains("would now do something else"), "{}", stale.body);
    let applied = browser.post(&path, &form(&[("decision", "apply"), ("digest", &hidden(&body, "digest"))])).await;
    assert_eq!((applied.status, applied.header("location")), (303, Some(&*path)), "{applied:?}");
    let body = shown(&browser, &path).await;
    assert!(body.contains(">applied<") && !body.contains("Your decision"), "{body}");
    let history = shown(&browser, HISTORY).await;
    assert!(shown(&browser, "/search?q=history").await.contains(&format!("href=\"{HISTORY}\"")));
    let undo = format!("{HISTORY}/2/undo");
    assert!(history.contains("Change 2: applied") && history.contains(&format!("href=\"{undo}\"")), "{history}");
    assert!(!history.contains("<button>Undo"), "an undo is looked at first: {history}");
    let preview = shown(&browser, &undo).await;
    assert!(preview.contains("Undo it") && preview.contains("class=\"old\""), "{preview}");
    let blind = browser.post(&undo, &form(&[("digest", "0")])).await;
    assert!(blind.status == 409 && blind.body.contains("something else than the page"), "{blind:?}");
    let undone = browser.post(&undo, &form(&[("digest", &hidden(&preview, "digest"))])).await;
    assert_eq!((undone.status, undone.header("location")), (303, Some(HISTORY)), "{undone:?}");
    let history = shown(&browser, HISTORY).await;
    assert!(
        history.contains("Change 3: took change 2 back") && history.contains("taken back by change 3"),
        "{history}"
    );
    let list = shown(&browser, "/projects/p0/builder/changes?state=applied").await;
    assert!(list.contains(">applied, taken back by change 3<"), "{list}");
    let again = browser.get(&undo).await;
    assert!(again.status == 409 && again.body.contains("change 3 has done so already"), "{again:?}");
    let redo = format!("{HISTORY}/3/undo");
    let digest = hidden(&shown(&browser, &redo).await, "digest");
    assert_eq!(browser.post(&redo, &form(&[("digest", &digest)])).await.status, 303);
    let body = shown(&browser, &path).await;
    assert!(body.contains("Change 3 took it back, and change 4 brought it back again."), "{body}");
    let list = shown(&browser, "/projects/p0/builder/changes?state=applied").await;
    assert!(list.contains(">applied<"), "what is there again is not taken back: {list}");
    let row = rig.houses[0].rows().await.into_iter().find(|row| row["tool"] == "builder.change.apply").unwrap();
    assert!(row.to_string().contains("workbench"), "{row}");
}

#[tokio::test]
async fn a_set_that_is_applied_in_part_says_which_and_what_is_left() {
    let rig = rig_with(sample()).await;
    let path = format!("{CHANGES}/{}", two(&rig).await);
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let none = browser.get(&format!("{path}?chosen=1")).await;
    assert!(none.status == 400 && none.body.contains("Choose at least one operation."), "{none:?}");
    let first = shown(&browser, &format!("{path}?chosen=1&op.0=1")).await;
    assert!(first.contains("This is a preview of the chosen operations"), "{first}");
    let all = hidden(&shown(&browser, &path).await, "digest");
    let digest = hidden(&first, "digest");
    let some = form(&[("decision", "apply"), ("chosen", "1"), ("op.0", "1"), ("digest", &digest)]);
    assert_eq!(browser.post(&path, &some).await.status, 303);
    let part = shown(&browser, &path).await;
    assert!(part.contains("<small>operation 0 · applied as change 2</small>"), "{part}");
    assert!(!part.contains("name=\"op.0\"") && part.contains("name=\"op.1\""), "{part}");
    assert!(part.contains("Operation 0 applied by") && part.contains("/history/2/undo"), "{part}");
    let stale = browser.post(&path, &form(&[("decision", "discard"), ("digest", &all)])).await;
    assert!(stale.status == 409 && stale.body.contains("The set has changed since the page"), "{stale:?}");
    let undo = format!("{HISTORY}/2/undo");
    let digest = hidden(&shown(&browser, &undo).await, "digest");
    assert_eq!(browser.post(&undo, &form(&[("digest", &digest)])).await.status, 303);
    let back = shown(&browser, &path).await;
    assert!(back.contains("applied as change 2, taken back by change 3"), "{back}");
    assert!(back.contains("Change 3 took it back; an undo of change 3 brings it back."), "{back}");
    let rest = form(&[("decision", "apply"), ("digest", &hidden(&back, "digest"))]);
    assert_eq!(browser.post(&path, &rest).await.status, 303);
    let whole = shown(&browser, &path).await;
    assert!(whole.contains("Operation 1 applied by") && whole.contains("Operation 0 applied by"), "{whole}");
}

/// What the preview of an undo shows as possible, the undo does.
#[tokio::test]
async fn an_undo_that_would_break_the_package_is_refused_where_it_is_previewed() {
    let rig = rig_with(sample()).await;
    let (house, browser) = (&rig.houses[0], Browser::signed_in(&rig, USER_NAME).await);
    let apply = async |id: &str| {
        let path = format!("{CHANGES}/{id}");
        let digest = hidden(&shown(&browser, &path).await, "digest");
        assert_eq!(browser.post(&path, &form(&[("decision", "apply"), ("digest", &digest)])).await.status, 303);
    };
    apply(&staged(house, "s1", json!([asset("assets/new.md", "New.\n")]), json!({})).await).await;
    let target = json!({ "workflowId": FLOW, "nodeId": "draft" });
    let read = person(house, "builder.step.read", target.clone()).await.data;
    let text = format!("{}\nSee `assets/new.md`.\n", read["step_markdown"].as_str().unwrap());
    let step = json!({ "op": "upsert", "targetType": "step", "target": target, "payload": { "step_markdown": text } });
    apply(&staged(house, "s2", json!([step]), read["revisions"].clone()).await).await;
    let refused = browser.get(&format!("{HISTORY}/2/undo")).await;
    assert!((400..500).contains(&refused.status) && refused.body.contains("assets/new.md"), "{refused:?}");
    assert!(!refused.body.contains("Undo it"), "{}", refused.body);
    // Nothing of it was written.
    assert!(person(house, "builder.asset.read", json!({ "path": "assets/new.md" })).await.ok);
    assert!(shown(&browser, &format!("{HISTORY}/3/undo")).await.contains("Undo it"));
}

#[tokio::test]
async fn operations_are_chosen_previewed_again_and_only_they_are_applied() {
    let rig = rig_with(sample()).await;
    let id = two(&rig).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("{CHANGES}/{id}");
    let all = hidden(&shown(&browser, &path).await, "digest");
    let body = shown(&browser, &format!("{path}?chosen=1&op.1=1")).await;
    assert!(body.contains("preview of the chosen operations, and") && !body.contains("+Be brief."), "{body}");
    let wrong =
        browser.post(&path, &form(&[("decision", "apply"), ("digest", &all), ("chosen", "1"), ("op.1", "1")])).await;
    assert_eq!(wrong.status, 409, "the digest of all is not that of some");
    // What cannot be chosen stays chosen, and nothing else can be applied by mistake.
    let refused = browser.get(&format!("{path}?chosen=1&op.1=1&op.9=1")).await;
    assert!((400..500).contains(&refused.status), "{refused:?}");
    assert!(refused.body.contains("name=\"op.1\" value=\"1\" checked"), "{}", refused.body);
    assert!(refused.body.contains("name=\"op.0\" value=\"1\">"), "{}", refused.body);
    assert!(!refused.body.contains("value=\"apply\""), "{}", refused.body);
    let digest = hidden(&body, "digest");
    let none = browser.post(&path, &form(&[("decision", "apply"), ("digest", &digest), ("chosen", "1")])).await;
    assert_eq!(none.status, 400, "{none:?}");
    let applied = form(&[("decision", "apply"), ("digest", &digest), ("chosen", "1"), ("op.1", "1")]);
    assert_eq!(browser.post(&path, &applied).await.status, 303);
    let house = &rig.houses[0];
    assert!(person(house, "builder.asset.read", json!({ "path": "assets/new.md" })).await.ok);
    let other = person(house, "builder.asset.read", json!({ "path": ASSET })).await;
    assert_ne!(other.data["content"], "Be brief.\n");
}

#[tokio::test]
async fn each_delete_is_named_and_confirmed() {
    let rig = rig_with(sample()).await;
    let house = &rig.houses[0];
    let made = staged(house, "s1", json!([asset("assets/gone.md", "x\n")]), json!({})).await;
    assert!(toolhost_testkit::sample::apply(house, &made).await.ok);
    let delete = json!([{ "op": "delete", "targetType": "asset", "target": { "path": "assets/gone.md" } }]);
    let id = staged(house, "s2", delete, revisions(house).await).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("{CHANGES}/{id}");
    let body = shown(&browser, &path).await;
    assert!(body.contains("name=\"delete.asset:assets/gone.md\""), "{body}");
    let digest = hidden(&body, "digest");
    let missing = browser.post(&path, &form(&[("decision", "apply"), ("digest", &digest)])).await;
    assert!(missing.status == 400 && missing.body.contains("Not every object"), "{missing:?}");
    let all = form(&[("decision", "apply"), ("digest", &digest), ("delete.asset:assets/gone.md", "1")]);
    assert_eq!(browser.post(&path, &all).await.status, 303);
}

#[tokio::test]
async fn a_clash_is_shown_with_its_three_sides_and_cannot_be_applied() {
    let rig = rig_with(sample()).await;
    let house = &rig.houses[0];
    let read = revisions(house).await;
    let mine = staged(house, "s1", json!([asset(ASSET, "Ours.\n")]), read.clone()).await;
    let theirs = staged(house, "s2", json!([asset(ASSET, "Theirs.\n")]), read).await;
    assert!(toolhost_testkit::sample::apply(house, &theirs).await.ok);
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("{CHANGES}/{mine}");
    let body = shown(&browser, &path).await;
    for part in ["Before both", "<pre>Theirs.", "<pre>Ours."] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert!(!body.contains("value=\"apply\"") && body.contains("value=\"discard\""), "{body}");
    let forced = browser.post(&path, &form(&[("decision", "apply"), ("digest", &hidden(&body, "digest"))])).await;
    assert_eq!(forced.status, 409, "{forced:?}");
    assert_eq!(browser.post(&path, "decision=discard").await.status, 409, "it says nothing of what was seen");
    let discarded = form(&[("decision", "discard"), ("digest", &hidden(&body, "digest"))]);
    assert_eq!(browser.post(&path, &discarded).await.status, 303);
    let given_up = shown(&browser, &path).await;
    let late = browser.post(&path, &form(&[("decision", "apply"), ("digest", "x")])).await;
    assert!(late.status == 409 && late.body.contains("another state by now: discarded"), "{late:?}");
    assert!(given_up.contains("<dt>Discarded</dt>") && given_up.contains("local (workbench)</a>"), "{given_up}");
    assert!(shown(&browser, &format!("{CHANGES}?state=rejected")).await.contains(&mine));
}

#[tokio::test]
async fn a_person_takes_a_side_at_each_clash_and_applies_what_is_shown_then() {
    let rig = rig_with(sample()).await;
    let house = &rig.houses[0];
    let lines = |first: &str, last: &str| format!("{first}\n1\n2\n3\n{last}\n");
    let base = staged(house, "s0", json!([asset(ASSET, &lines("a", "b"))]), revisions(house).await).await;
    assert!(toolhost_testkit::sample::apply(house, &base).await.ok);
    let read = revisions(house).await;
    let mine = staged(house, "s1", json!([asset(ASSET, &lines("Ours", "ours"))]), read.clone()).await;
    let theirs = staged(house, "s2", json!([asset(ASSET, &lines("Theirs", "theirs"))]), read).await;
    assert!(toolhost_testkit::sample::apply(house, &theirs).await.ok);
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("{CHANGES}/{mine}");
    let body = shown(&browser, &path).await;
    let digest = hidden(&body, "digest");
    assert!(body.contains("name=\"side.1\" value=\"ours\"") && !body.contains("value=\"apply\""), "{body}");
    let half = browser.post(&path, &form(&[("decision", "sides"), ("digest", &digest), ("side.0", "ours")])).await;
    assert!(half.status == 400 && half.body.contains("value=\"ours\" checked"), "what was chosen stays: {half:?}");
    let sides =
        |digest: &str| form(&[("decision", "sides"), ("digest", digest), ("side.0", "ours"), ("side.1", "theirs")]);
    assert_eq!(browser.post(&path, &sides("other")).await.status, 409);
    house.store.people().add_user("vic").await.unwrap();
    let vic = house.store.people().user("vic").await.unwrap().unwrap();
    house.store.people().set_member(house.project.id, vic, Role::Viewer, None).await.unwrap();
    let viewer = Browser::signed_in(&rig, "vic").await;
    assert!(!shown(&viewer, &path).await.contains("name=\"side.0\""));
    assert_eq!(browser.post(&path, &sides(&digest)).await.status, 303);
    // Nothing is applied by it: the page shows what an apply would do now.
    let body = shown(&browser, &path).await;
    assert!(!body.contains("Clashes") && body.contains("-Theirs") && body.contains("+Ours"), "{body}");
    assert!(!body.contains("-theirs") && !body.contains("+ours"), "{body}");
    assert_ne!(hidden(&body, "digest"), digest);
    let again = browser.post(&path, &sides(&hidden(&body, "digest"))).await;
    assert_eq!(again.status, 409, "it clashes no more: {again:?}");
    let applied = form(&[("decision", "apply"), ("digest", &hidden(&body, "digest"))]);
    assert_eq!(browser.post(&path, &applied).await.status, 303);
    let now = person(house, "builder.asset.read", json!({ "path": ASSET })).await.data;
    assert_eq!(now["content"], lines("Ours", "theirs"), "{now}");
}

#[tokio::test]
async fn sets_that_stand_on_each_other_are_a_chain_and_a_graph_is_seen_before_and_after() {
    let rig = rig_with(sample()).await;
    let house = &rig.houses[0];
    let read = person(house, "builder.workflow.read", json!({ "workflowId": FLOW })).await.data;
    let change = |title: &str| {
        json!([{ "op": "upsert", "targetType": "workflow", "target": { "workflowId": FLOW },
            "payload": { "nodes": [{ "id": "scope", "title": title }] } }])
    };
    let first = staged(house, "s1", change(HOSTILE), read["revisions"].clone()).await;
    let seen = in_session(house, "s1", "builder.workflow.read", json!({ "workflowId": FLOW })).await.data;
    let second = staged(house, "s1", change("Again"), seen["revisions"].clone()).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let body = shown(&browser, &format!("{CHANGES}/{first}")).await;
    assert!(body.contains("Graph before") && body.contains("Graph after") && body.contains("~ changed"), "{body}");
    for wrong in ["<script>", "<img", "\u{202e}", "\u{1b}"] {
        assert!(!body.contains(wrong), "{wrong}: {body}");
    }
    let chain = shown(&browser, &format!("{CHANGES}/{second}")).await;
    assert!(chain.contains(&format!("href=\"{CHANGES}/{first}\">{first}</a> (will be applied with it)")), "{chain}");
    assert!(body.contains(&format!("{second}</a> (builds on it)")), "{body}");
    let decided = form(&[("decision", "discard"), ("digest", &hidden(&body, "digest"))]);
    assert_eq!(browser.post(&format!("{CHANGES}/{first}"), &decided).await.status, 303);
    let given_up = shown(&browser, &format!("{CHANGES}/{first}")).await;
    for part in ["What it would have made different", "Graph before", "Graph after", "write workflow:"] {
        assert!(given_up.contains(part), "{part}: {given_up}");
    }
    assert!(!given_up.contains("Your decision"), "{given_up}");
    let blocked = shown(&browser, &format!("{CHANGES}/{second}")).await;
    assert!(
        blocked.contains(&format!("made on <a href=\"{CHANGES}/{first}\">{first}</a>, which was discarded")),
        "{blocked}"
    );
    assert!(!blocked.contains("builder.change") && !blocked.contains(">Apply"), "{blocked}");
}

#[tokio::test]
async fn a_set_tells_its_own_part_from_what_the_sets_below_bring_and_the_history_names_them() {
    let rig = rig_with(sample()).await;
    let (house, browser) = (&rig.houses[0], Browser::signed_in(&rig, USER_NAME).await);
    let first = two(&rig).await;
    let seen = in_session(house, "s1", "builder.asset.read", json!({ "path": "assets/new.md" })).await.data;
    let more = json!([asset("assets/new.md", "Newer.\n"), asset("assets/own.md", "Own.\n")]);
    let second = staged(house, "s1", more, seen["revisions"].clone()).await;
    let alone = staged(house, "s1", json!([asset("assets/alone.md", "Alone.\n")]), json!({})).await;
    let path = format!("{CHANGES}/{second}");
    let link = format!("<a href=\"{CHANGES}/{first}\">{first}</a>");
    let body = shown(&browser, &path).await;
    assert_eq!(body.matches(&format!("Not from this set: it comes with {link}.")).count(), 1, "{body}");
    let at = |name: &str| body.find(&format!("aria-label=\"asset:assets/{name}\"")).unwrap();
    assert!(at("own.md") < at("style-guide.md") && at("new.md") < at("style-guide.md"), "{body}");
    assert_eq!(body.matches(&format!("This difference also contains the changes of {link}.")).count(), 1, "{body}");
    let line = |name: &str| body.lines().find(|line| line.contains("class=\"tree\"") && line.contains(name)).unwrap();
    assert!(line("own.md").contains(&format!("also changed by {first}")), "{body}");
    let free = shown(&browser, &format!("{CHANGES}/{alone}")).await;
    assert!(!free.contains("also changed by") && !free.contains("will be applied with it"), "{free}");
    let digest = hidden(&body, "digest");
    assert_eq!(browser.post(&path, &form(&[("decision", "apply"), ("digest", &digest)])).await.status, 303);
    let history = shown(&browser, HISTORY).await;
    let applied = format!("Change 2: applied <a href=\"{path}\">{second}</a> with {link}</strong>");
    assert!(history.contains(&applied), "{history}");
    let body = shown(&browser, &path).await;
    assert!(body.contains(&format!("as change 2, with {link}.")), "{body}");
    assert!(body.contains("Applied by <a href=\"/projects/p0/audit/calls/"), "{body}");
    assert!(body.contains(&format!("This difference also contains the changes of {link}.")), "{body}");
    let first = shown(&browser, &format!("{CHANGES}/{first}")).await;
    assert!(first.contains(&format!("as change 2, with <a href=\"{path}\">{second}</a>.")), "{first}");
    assert!(history.contains("3 files: assets/new.md, assets/own.md, assets/style-guide.md"), "{history}");
}

#[tokio::test]
async fn no_page_of_the_package_shows_a_secret() {
    let rig = rig_with(sample()).await;
    let (house, browser) = (&rig.houses[0], Browser::signed_in(&rig, USER_NAME).await);
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let read = person(house, "builder.workflow.read", json!({ "workflowId": FLOW })).await.data;
    let change = json!([{ "op": "upsert", "targetType": "workflow", "target": { "workflowId": FLOW }, "payload": {
        "nodes": [{ "id": "scope", "title": format!("Scope {secret}") }],
        "edges": [{ "from": "scope", "to": "draft", "label": format!("with {secret}"), "conditionText": "x" }] } },
        asset(&format!("assets/{secret}.md"), "Named so.\n")]);
    let id = staged(house, "s1", change, read["revisions"].clone()).await;
    let set = format!("{CHANGES}/{id}");
    let preview = shown(&browser, &set).await;
    let decided = form(&[("decision", "apply"), ("digest", &hidden(&preview, "digest"))]);
    let applied = browser.post(&set, &decided).await;
    assert_eq!(applied.status, 303, "{applied:?}");
    let object =
        |name: &str| format!("/projects/p0/builder/object?name={}", name.replace(':', "%3A").replace('/', "%2F"));
    let (workflow, step) = (object(&format!("workflow:{FLOW}")), object(&format!("step:{FLOW}/scope")));
    let mut told = vec![preview];
    told.push(shown(&browser, CHANGES).await);
    let token = rig.token(&["read"]).await;
    for path in ["changes?all=true", &format!("changes/{id}"), "history"] {
        let reply = rig.send(&token, ("GET", &format!("/api/v1/projects/p0/{path}")), "").await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        told.push(reply.body);
    }
    for page in [
        &*set,
        &format!("{CHANGES}?state=applied"),
        HISTORY,
        &format!("{HISTORY}/2/undo"),
        &workflow,
        &step,
        "/search?q=scope",
    ] {
        told.push(browser.get(page).await.body);
    }
    let token = rig.token(&["read"]).await;
    told.push(rig.send(&token, ("GET", &format!("/api/v1/projects/p0/changes/{id}")), "").await.body);
    // Who only looks finds it nowhere on a page, in the name of a file or in an address either.
    let people = &house.store.people();
    let vera = people.add_user("vera").await.unwrap();
    people.set_role(house.project.id, vera, Role::Viewer).await.unwrap();
    let vera = Browser::signed_in(&rig, "vera").await;
    let asset = object(&format!("asset:assets/{secret}.md"));
    let pages =
        [&*set, HISTORY, CHANGES, "/projects/p0/builder", &asset, &workflow, "/search?q=assets", "/search?q=cs-1"];
    for page in pages {
        told.push(vera.get(page).await.body);
    }
    for body in told {
        assert!(!body.contains(secret), "{body}");
    }
    assert!(shown(&browser, &workflow).await.contains("Scope [redacted]"));
}

#[tokio::test]
async fn the_history_says_what_was_done_and_an_undo_shows_the_graph() {
    let rig = rig_with(sample()).await;
    let (house, browser) = (&rig.houses[0], Browser::signed_in(&rig, USER_NAME).await);
    let applied = async |id: &str| {
        let path = format!("{CHANGES}/{id}");
        let digest = hidden(&shown(&browser, &path).await, "digest");
        assert_eq!(browser.post(&path, &form(&[("decision", "apply"), ("digest", &digest)])).await.status, 303);
    };
    for title in ["One", "Two"] {
        let read = person(house, "builder.workflow.read", json!({ "workflowId": FLOW })).await.data;
        let change = json!([{ "op": "upsert", "targetType": "workflow", "target": { "workflowId": FLOW },
            "payload": { "nodes": [{ "id": "scope", "title": title }] } }]);
        applied(&staged(house, title, change, read["revisions"].clone()).await).await;
    }
    applied(&two(&rig).await).await;
    let history = shown(&browser, HISTORY).await;
    let object = "/projects/p0/builder/object?name=asset%3Aassets%2Fnew.md";
    assert!(history.contains(&format!("added <a href=\"{object}\">asset:assets/new.md</a>")), "{history}");
    assert!(history.contains("changed <a href=") && history.contains("the package begins"), "{history}");
    assert_eq!(history.matches("Changed again by change 3").count(), 1, "{history}");
    let undo = shown(&browser, &format!("{HISTORY}/3/undo")).await;
    assert!(undo.contains("Graph before") && undo.contains("Graph after") && undo.contains("Two"), "{undo}");
    let done = browser.post(&format!("{HISTORY}/3/undo"), &form(&[("digest", &hidden(&undo, "digest"))])).await;
    assert_eq!(done.status, 303, "{done:?}");
    let history = shown(&browser, HISTORY).await;
    assert!(history.contains("<span class=\"badge\">taken back by change 5</span>"), "{history}");
    assert!(!history.contains("Changed again"), "nothing later stands in the way of an undo of change 2: {history}");
}

#[tokio::test]
async fn a_viewer_applies_discards_and_undoes_nothing() {
    let rig = rig_with(sample()).await;
    let id = two(&rig).await;
    let people = rig.houses[0].store.people();
    let vera = people.add_user("vera").await.unwrap();
    people.set_role(rig.houses[0].project.id, vera, Role::Viewer).await.unwrap();
    people.add_user("eve").await.unwrap();
    let (vera, eve) = (Browser::signed_in(&rig, "vera").await, Browser::signed_in(&rig, "eve").await);
    let local = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("{CHANGES}/{id}");
    let digest = hidden(&shown(&local, &path).await, "digest");
    let body = shown(&vera, &path).await;
    assert!(!body.contains("Your decision") && body.contains("You are a viewer"), "{body}");
    for decision in ["apply", "discard"] {
        let reply = vera.post(&path, &form(&[("decision", decision), ("digest", &digest)])).await;
        assert_eq!(reply.status, 403, "{decision}: {reply:?}");
        assert_eq!(eve.post(&path, &form(&[("decision", decision), ("digest", &digest)])).await.status, 404);
    }
    assert!(shown(&local, &path).await.contains("Your decision"), "it is open as before");
    assert_eq!(eve.get(&format!("{HISTORY}/1/undo")).await.status, 404);
    assert_eq!(vera.post(&format!("{HISTORY}/1/undo"), "digest=x").await.status / 100, 4);
    for nothing in [format!("{CHANGES}/cs-99"), format!("{HISTORY}/99/undo"), format!("{HISTORY}/-1/undo")] {
        assert_eq!(local.get(&nothing).await.status, 404, "{nothing}");
    }
    assert_eq!(local.get(&format!("{CHANGES}/x")).await.status, 404);
}
