//! Change sets of one session that are based on each other: one story for reads, validation, preview, apply and discard.

use serde_json::{Value, json};
use toolhost_builder::Package;
use toolhost_builder::limits::Size;
use toolhost_contract::Outcome;
use toolhost_testkit::House;
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{
    FLOW, STEP, apply, data, files, house_with_sample, in_session, person, refused, sample, set, shelf_of,
    step_operation,
};

use crate::gate::changes::tea;

const PATH: &str = "steps/check-claims.md";

/// Stages operations on what the session reads now.
pub(crate) async fn stage(house: &House, operations: Value) -> Value {
    stage_with(house, operations, Value::Null).await
}

async fn stage_with(house: &House, operations: Value, extensions: Value) -> Value {
    let read = in_session(
        house,
        "s1",
        "builder.context.get",
        json!({"targetType": "workflow", "targetId": FLOW, "mode": "optimize"}),
    )
    .await;
    let revisions = data(&read)["revision_info"]["revisions"].clone();
    let mut whole = set(operations, revisions);
    if extensions.is_object() {
        whole["changeSet"]["extensions"] = extensions;
    }
    data(&in_session(house, "s1", "builder.change.stage", whole).await).clone()
}

async fn step_text(house: &House) -> String {
    let read = json!({"workflowId": FLOW, "nodeId": STEP});
    let read = in_session(house, "s1", "builder.step.read", read).await;
    data(&read)["step_markdown"].as_str().unwrap().to_owned()
}

pub(crate) async fn stage_text(house: &House, from: &str, to: &str) -> Value {
    let text = step_text(house).await;
    assert!(text.contains(from), "{text}");
    stage(house, json!([step_operation(STEP, &text.replace(from, to))])).await
}

pub(crate) fn asset(path: &str, content: &str) -> Value {
    json!({"op": "upsert", "targetType": "asset", "target": {"path": path}, "payload": {"content": content}})
}

pub(crate) async fn validate(house: &House, id: &str) -> Value {
    data(&in_session(house, "s1", "builder.change.validate", json!({"changeSetId": id})).await).clone()
}

async fn status(house: &House, number: i64) -> String {
    shelf_of(house, house.project.id).preview(number).await.unwrap().line.status
}

fn names(ids: &[&str]) -> Value {
    json!(ids)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_refers_to_what_another_one_makes_is_applied_with_it() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage(&house, json!([asset("assets/alone.md", "alone\n")])).await;
        assert_eq!(stage(&house, json!([asset("assets/new.md", "new\n")])).await["basedOn"], names(&[]));
        let staged = stage_text(&house, "Copy each claim", "See assets/new.md. Copy each claim").await;
        assert_eq!(staged["basedOn"], names(&["cs-2"]), "{staged}");
        let report = validate(&house, "cs-3").await;
        assert_eq!((&report["valid"], &report["basedOn"]), (&json!(true), &names(&["cs-2"])), "{report}");
        let preview = shelf_of(&house, house.project.id).preview(3).await.unwrap();
        let shown: Vec<String> = preview.diff.iter().map(|diff| diff.object.to_string()).collect();
        assert_eq!(shown, ["asset:assets/new.md", &format!("step:{FLOW}/{STEP}")]);
        let listed = shelf_of(&house, house.project.id).change_sets(Some("s1"), true).await.unwrap();
        let listed: Vec<_> = listed.iter().map(|line| (line.change_set_id.as_str(), line.based_on.join(","))).collect();
        assert_eq!(listed, [("cs-3", "cs-2".to_owned()), ("cs-2", String::new()), ("cs-1", String::new())]);
        let applied = apply(&house, "cs-3").await;
        assert_eq!(data(&applied)["basedOn"], names(&["cs-2"]));
        let now = files(&house).await;
        assert_eq!(now["assets/new.md"], b"new\n");
        assert!(!now.contains_key("assets/alone.md"), "what it does not need stays staged");
        assert_eq!(
            [status(&house, 1).await, status(&house, 2).await, status(&house, 3).await],
            ["staged", "applied", "applied"]
        );
        // What was applied with it is shown as what it did, and both are taken back together.
        let preview = shelf_of(&house, house.project.id).preview(2).await.unwrap();
        assert_eq!(
            preview.diff.iter().map(|diff| diff.object.to_string()).collect::<Vec<_>>(),
            ["asset:assets/new.md"]
        );
        let moment = applied.data["moment"].clone();
        data(&person(&house, "builder.change.undo", json!({"moment": moment})).await);
        assert_eq!(files(&house).await, sample());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_later_set_supplies_is_taken_along_too() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let staged = stage_text(&house, "Copy each claim", "See assets/new.md. Copy each claim").await;
        assert_eq!(staged["basedOn"], names(&[]));
        assert_eq!(validate(&house, "cs-1").await["valid"], json!(false));
        stage(&house, json!([asset("assets/new.md", "new\n")])).await;
        let report = validate(&house, "cs-1").await;
        assert_eq!(
            (&report["valid"], &report["basedOn"]),
            (&json!(true), &names(&["cs-2"])),
            "as the session reads it"
        );
        data(&apply(&house, "cs-1").await);
        assert!(files(&house).await.contains_key("assets/new.md"));
        assert_eq!(status(&house, 2).await, "applied");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_rejected_set_is_ever_applied() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage(&house, json!([asset("assets/new.md", "new\n")])).await;
        stage_text(&house, "Copy each claim", "Reject me. Copy each claim").await;
        let third = stage_text(&house, "Copy each claim", "Keep me. Copy each claim").await;
        assert_eq!(third["basedOn"], names(&["cs-2"]));
        assert_eq!(validate(&house, "cs-3").await["status"], "validated");
        let discarded = person(&house, "builder.change.discard", json!({"changeSetId": "cs-2"})).await;
        assert_eq!(data(&discarded), &json!({"discarded": ["cs-2"], "blocked": ["cs-3"], "unvalidated": []}));
        assert_eq!(
            [status(&house, 1).await, status(&house, 2).await, status(&house, 3).await],
            ["staged", "rejected", "blocked"]
        );
        let refusal = apply(&house, "cs-3").await;
        assert_eq!(refused(&refusal).1, "conflict");
        assert!(refusal.error.as_ref().unwrap().message.contains("made on cs-2"), "{refusal:?}");
        assert!(!in_session(&house, "s1", "builder.change.validate", json!({"changeSetId": "cs-3"})).await.ok);
        let shown = shelf_of(&house, house.project.id).preview(3).await.unwrap().report.unwrap();
        assert!(!shown.valid && shown.errors[0].message.contains("made on cs-2"), "{shown:?}");
        let text = step_text(&house).await;
        assert!(!text.contains("Reject me") && !text.contains("Keep me"), "reads show what may be applied");
        data(&apply(&house, "cs-1").await);
        assert_eq!(files(&house).await[PATH], sample()[PATH]);
        // It is staged again on what is there, or given up.
        stage_text(&house, "Copy each claim", "Keep me. Copy each claim").await;
        data(&apply(&house, "cs-4").await);
        let now = String::from_utf8(files(&house).await[PATH].clone()).unwrap();
        assert!(now.contains("Keep me") && !now.contains("Reject me"));
        let given_up = in_session(&house, "s1", "builder.change.discard", json!({})).await;
        assert_eq!(data(&given_up)["discarded"], names(&["cs-3"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_refers_to_a_rejected_object_is_validated_again() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage(&house, json!([asset("assets/new.md", "new\n")])).await;
        stage_text(&house, "Copy each claim", "See assets/new.md. Copy each claim").await;
        assert_eq!(validate(&house, "cs-2").await["status"], "validated");
        let discarded = person(&house, "builder.change.discard", json!({"changeSetId": "cs-1"})).await;
        assert_eq!(data(&discarded), &json!({"discarded": ["cs-1"], "blocked": [], "unvalidated": ["cs-2"]}));
        assert_eq!(status(&house, 2).await, "staged");
        assert_eq!(refused(&apply(&house, "cs-2").await).0, "AI_VALIDATION_FAILED", "the asset is missing now");
        stage(&house, json!([asset("assets/new.md", "another\n")])).await;
        data(&apply(&house, "cs-2").await);
        assert_eq!(files(&house).await["assets/new.md"], b"another\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_takes_the_place_of_the_one_it_supersedes() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage_text(&house, "Copy each claim", "First. Copy each claim").await;
        // Made on what the session reads, the first set included.
        let text = step_text(&house).await.replace("First. ", "Second. ");
        let staged = stage_with(&house, json!([step_operation(STEP, &text)]), json!({"supersedes": "cs-1"})).await;
        assert_eq!((&staged["superseded"], &staged["basedOn"]), (&names(&["cs-1"]), &names(&[])), "{staged}");
        assert_eq!([status(&house, 1).await, status(&house, 2).await], ["rejected", "staged"]);
        assert!(step_text(&house).await.contains("Second. ") && !step_text(&house).await.contains("First. "));
        data(&apply(&house, "cs-2").await);
        let expected =
            String::from_utf8(sample()[PATH].clone()).unwrap().replace("Copy each claim", "Second. Copy each claim");
        assert_eq!(String::from_utf8(files(&house).await[PATH].clone()).unwrap(), expected);
        // Of another session, of none, and what is no id.
        for (wrong, code) in [(json!("cs-2"), "conflict"), (json!("cs-9"), "not_found"), (json!(7), "validation")] {
            let operations = json!([step_operation(STEP, "---\n---\n")]);
            let mut whole = set(operations, json!({}));
            whole["changeSet"]["extensions"] = json!({"supersedes": wrong});
            let refusal = in_session(&house, "s1", "builder.change.stage", whole).await;
            assert_eq!(refused(&refusal).1, code, "{refusal:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_of_what_is_applied_along_are_confirmed_too() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage(&house, json!([asset("assets/old.md", "old\n")])).await;
        data(&apply(&house, "cs-1").await);
        stage_text(&house, "Copy each claim", "Copy every claim").await;
        let text = step_text(&house).await.replace("every", "any");
        let gone = json!({"op": "delete", "targetType": "asset", "target": {"path": "assets/old.md"}});
        stage(&house, json!([step_operation(STEP, &text), gone])).await;
        stage_text(&house, "Copy any claim", "Copy some claim").await;
        let refusal = apply(&house, "cs-4").await;
        assert_eq!(refused(&refusal).0, "AI_APPLY_REQUIRES_CONFIRMATION", "{refusal:?}");
        assert_eq!(
            refusal.error.as_ref().unwrap().details.as_ref().unwrap()["deletes"],
            json!(["asset:assets/old.md"])
        );
        // Some operations of a set cannot be had without those of a later one that contains them, nor left out of it.
        let arguments = json!({"changeSetId": "cs-4", "confirmSource": "ui_manual_apply", "confirmDeletes": ["asset:assets/old.md"]});
        let applied = person(&house, "builder.change.apply", arguments).await;
        assert_eq!(data(&applied)["basedOn"], names(&["cs-2", "cs-3"]));
        assert!(!files(&house).await.contains_key("assets/old.md"));
    }
}

const TOKEN: &str = "ghp_0123456789abcdef0123456789abcdef0123";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_read_masks_is_never_written_back() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let call = format!("Call it with Bearer {TOKEN} (fake).\n");
        stage(&house, json!([asset("assets/api.md", &call)])).await;
        let report = validate(&house, "cs-1").await;
        let codes: Vec<&str> =
            report["warnings"].as_array().unwrap().iter().filter_map(|w| w["code"].as_str()).collect();
        assert_eq!((&report["valid"], codes.contains(&"SECRET_ADDED")), (&json!(true), true), "{report}");
        data(&apply(&house, "cs-1").await);
        let read = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/api.md"})).await;
        let shown = data(&read)["content"].as_str().unwrap().to_owned();
        assert!(shown.contains("[redacted]") && !shown.contains(TOKEN), "{shown}");
        // Whole, with the mask in it.
        let whole = shown.replace("Call it", "Please call it");
        let revisions = read.data["revisions"].clone();
        let refusal = in_session(
            &house,
            "s1",
            "builder.change.stage",
            set(json!([asset("assets/api.md", &whole)]), revisions.clone()),
        )
        .await;
        let error = refusal.error.as_ref().unwrap();
        assert_eq!(error.details.as_ref().unwrap()["findings"][0]["code"], "REDACTED_WRITTEN_BACK", "{error:?}");
        // With another text beside the secret, which stays as it is.
        let kept = call.replace("Call it", "Please call it");
        data(
            &in_session(&house, "s1", "builder.change.stage", set(json!([asset("assets/api.md", &kept)]), revisions))
                .await,
        );
        let report = validate(&house, "cs-2").await;
        assert!(!report["warnings"].to_string().contains("SECRET_ADDED"), "it was there before: {report}");
        data(&apply(&house, "cs-2").await);
        assert_eq!(files(&house).await["assets/api.md"], kept.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_was_discarded_may_still_be_named_as_superseded() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let first = stage(&house, json!([asset("assets/new.md", "First.\n")])).await;
        let id = first["changeSetId"].as_str().unwrap();
        data(&in_session(&house, "s1", "builder.change.discard", json!({"changeSetId": id})).await);
        let second = stage_with(&house, json!([asset("assets/new.md", "Second.\n")]), json!({"supersedes": id})).await;
        assert_eq!(status(&house, 2).await, "staged", "{second}");
        assert_eq!(validate(&house, "cs-2").await["valid"], true);
    }
}

/// The way that an agent takes by itself: it is told of the conflict, reads again, and writes both texts into one.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_told_of_a_conflict_takes_its_place_with_the_revisions_of_the_last_read() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage_text(&house, "Copy each claim", "Ours: copy each claim").await;
        stage(&house, json!([step_operation("outline", &step_of(&house, "outline").await)])).await;
        stage_text(&house, "Ours: copy", "Ours, later: copy").await;
        let mut theirs = files(&house).await;
        let text = String::from_utf8(theirs[PATH].clone())
            .unwrap()
            .replace("Copy each claim", "Theirs: copy each claim")
            .replace("counts the", "lists the");
        theirs.insert(PATH.to_owned(), text.into_bytes());
        shelf_of(&house, house.project.id).import(&Package::read(theirs), true, Size::default()).await.unwrap();
        // Without having been told, who supersedes has not seen the other text, and it is not lost.
        let merged = |text: String| text.replace("Ours, later: copy", "Theirs and ours: copy");
        let report = validate(&house, "cs-3").await;
        assert_eq!(
            (&report["valid"], &report["errors"][0]["code"]),
            (&json!(false), &json!("AI_REVISION_BASE_MISMATCH"))
        );
        assert_eq!(report["errors"][0]["changeSetId"], "cs-1", "it is that one's text that clashes: {report:#}");
        let text = merged(step_text(&house).await);
        let operations = json!([step_operation(STEP, &text)]);
        let last = stage_with(&house, operations, json!({"supersedes": ["cs-1", "cs-3"]})).await;
        assert_eq!(last["superseded"], names(&["cs-1", "cs-3"]), "{last}");
        let report = validate(&house, "cs-4").await;
        assert_eq!(report["valid"], json!(true), "{report:#}");
        // Somebody else's text that was not told is still in the way.
        let mut theirs = files(&house).await;
        let text = String::from_utf8(theirs[PATH].clone()).unwrap().replace("Theirs: copy", "Theirs, again: copy");
        theirs.insert(PATH.to_owned(), text.into_bytes());
        shelf_of(&house, house.project.id).import(&Package::read(theirs), true, Size::default()).await.unwrap();
        let text = step_text(&house).await.replace("Theirs and ours", "All of them");
        let last = stage_with(&house, json!([step_operation(STEP, &text)]), json!({"supersedes": "cs-4"})).await;
        assert_eq!(validate(&house, "cs-5").await["valid"], json!(false), "{last}");
        let text = step_text(&house).await;
        stage_with(&house, json!([step_operation(STEP, &text)]), json!({"supersedes": "cs-5"})).await;
        data(&apply(&house, "cs-6").await);
        let now = String::from_utf8(files(&house).await[PATH].clone()).unwrap();
        assert!(now.contains("All of them: copy each claim"), "{now}");
        assert!(now.contains("lists the unsupported ones"), "what was not told is not taken back: {now}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_on_top_of_a_superseded_one_are_named() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage_text(&house, "Copy each claim", "Copy every claim").await;
        stage_text(&house, "Copy every claim", "Copy every single claim").await;
        let text = step_text(&house).await;
        let staged = stage_with(&house, json!([step_operation(STEP, &text)]), json!({"supersedes": "cs-1"})).await;
        assert_eq!((&staged["superseded"], &staged["blocked"]), (&names(&["cs-1"]), &names(&["cs-2"])), "{staged}");
    }
}

async fn step_of(house: &House, node: &str) -> String {
    let read = in_session(house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": node})).await;
    format!("{}\n", data(&read)["step_markdown"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_earlier_sets_the_one_that_is_in_the_way_is_named_and_the_diff_of_a_conflict_is_the_own_change() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage(&house, json!([asset("assets/list.md", "one\n\ntwo\n\nthree\n")])).await;
        data(&apply(&house, "cs-1").await);
        let read = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/list.md"})).await;
        let revisions = data(&read)["revisions"].clone();
        stage(&house, json!([asset("assets/list.md", "ONE\n\ntwo\n\nthree\n")])).await;
        stage(&house, json!([asset("assets/list.md", "ONE\n\ntwo\n\nTHREE\n")])).await;
        // Made of the text that was read first.
        let late = set(json!([asset("assets/list.md", "uno\n\ntwo\n\nthree\n")]), revisions);
        let refusal = in_session(&house, "s1", "builder.change.stage", late).await;
        let details = refusal.error.as_ref().unwrap().details.as_ref().unwrap();
        assert_eq!(details["changeSets"], names(&["cs-2"]), "{refusal:?}");
        // Somebody else changes the first line and the second: the set shows what it changes, and takes nothing back.
        let mut theirs = files(&house).await;
        theirs.insert("assets/list.md".to_owned(), b"1\n\nzwei\n\nthree\n".to_vec());
        shelf_of(&house, house.project.id).import(&Package::read(theirs), true, Size::default()).await.unwrap();
        let preview = shelf_of(&house, house.project.id).preview(3).await.unwrap();
        assert!(!preview.report.as_ref().unwrap().valid);
        let diff = toolhost_builder::change::render(&preview.diff);
        assert!(diff.contains("-one") && diff.contains("+ONE") && diff.contains("+THREE"), "{diff}");
        assert!(!diff.contains("zwei") && !diff.contains("\n-1\n"), "{diff}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_doubtful_in_an_earlier_set_is_told_of_those_on_top_of_it() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let outline = step_of(&house, "outline").await.replace("## Goal", "Before `check-claims`.\n\n## Goal");
        let read = json!({"workflowId": FLOW, "nodeId": "outline"});
        let read = in_session(&house, "s1", "builder.step.read", read).await;
        let mut whole = set(json!([step_operation("outline", &outline)]), data(&read)["revisions"].clone());
        whole["changeSet"]["schemaVersion"] = json!("1.1");
        let from_to = json!({"from": format!("step:{FLOW}/{STEP}"), "to": format!("step:{FLOW}/check-all")});
        whole["changeSet"]["extensions"] = json!({"rewriteReferences": true, "renames": [from_to]});
        let staged = in_session(&house, "s1", "builder.change.stage", whole).await;
        let staged = data(&staged);
        let doubtful = |report: &Value| report["warnings"].to_string().contains("FORMER_NAME_KEPT");
        assert!(doubtful(&validate(&house, "cs-1").await), "{staged}");
        let text = step_of(&house, "check-all").await.replace("Copy each claim", "Copy every claim");
        let staged = stage(&house, json!([step_operation("check-all", &text)])).await;
        assert_eq!(staged["basedOn"], names(&["cs-1"]));
        let report = validate(&house, "cs-2").await;
        assert!(doubtful(&report), "{report:#}");
    }
}

/// A session reads its draft merged with what somebody else has applied since, as an apply would merge it.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_apply_is_in_what_a_session_reads_of_its_draft() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage_text(&house, "Copy each claim", "Write each claim").await;
        let (before, revisions) = read_step(&house).await;
        put(&house, PATH, |text| format!("{text}\nTheir last line.\n")).await;
        let (both, _) = read_step(&house).await;
        assert_eq!(both, format!("{before}\nTheir last line.\n"), "both changes");

        // Made on what was read before their change: that is kept.
        let late = before.replace("Write each claim", "Note each claim");
        let staged = stage_at(&house, json!([step_operation(STEP, &late)]), revisions).await;
        assert_eq!(data(&staged)["basedOn"], names(&["cs-1"]), "{staged:?}");
        assert_eq!(step_text(&house).await, both.replace("Write each claim", "Note each claim"));

        // Made on what was read with it: what is taken out of theirs goes.
        stage_text(&house, "Their last line.", "Our last line.").await;
        data(&apply(&house, "cs-1").await);
        assert_eq!(String::from_utf8(files(&house).await[PATH].clone()).unwrap(), both);
        data(&apply(&house, "cs-3").await);
        let expected = both.replace("Write each claim", "Note each claim").replace("Their last", "Our last");
        assert_eq!(String::from_utf8(files(&house).await[PATH].clone()).unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_says_where_somebody_else_has_changed_the_same_places() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage_text(&house, "Copy each claim", "Write each claim").await;
        let read = json!({"workflowId": FLOW, "nodeId": STEP});
        assert!(data(&in_session(&house, "s1", "builder.step.read", read.clone()).await).get("problems").is_none());
        put(&house, PATH, |text| text.replace("Copy each claim", "Mark each claim")).await;
        let seen = in_session(&house, "s1", "builder.step.read", read).await;
        assert!(data(&seen)["step_markdown"].as_str().unwrap().contains("Write each claim"), "{seen:?}");
        let problem = seen.data["problems"][0].as_str().unwrap();
        assert!(problem.contains("somebody else has changed the same places of step:"), "{problem}");
        let about = json!({"targetType": "step", "targetId": STEP, "mode": "optimize", "workflowId": FLOW});
        let seen = in_session(&house, "s1", "builder.context.get", about).await;
        assert_eq!(data(&seen)["session_meta"]["problems"], json!([problem]));
    }
}

/// An asset that the session has taken out is not there for it, and may be made anew.
#[tokio::test(flavor = "multi_thread")]
async fn an_asset_that_was_taken_out_can_be_made_anew_in_the_same_session() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage(&house, json!([asset("assets/new.md", "old\n")])).await;
        data(&apply(&house, "cs-1").await);
        stage(&house, json!([{"op": "delete", "targetType": "asset", "target": {"path": "assets/new.md"}}])).await;
        stage(&house, json!([asset("assets/new.md", "new\n")])).await;
        data(&apply(&house, "cs-3").await);
        assert_eq!(files(&house).await["assets/new.md"], b"new\n");
    }
}

/// Somebody else's change of a file.
async fn put(house: &House, path: &str, change: impl Fn(&str) -> String) {
    let mut theirs = files(house).await;
    let text = change(std::str::from_utf8(&theirs[path]).unwrap());
    theirs.insert(path.to_owned(), text.into_bytes());
    shelf_of(house, house.project.id).import(&Package::read(theirs), true, Size::default()).await.unwrap();
}

async fn read_step(house: &House) -> (String, Value) {
    let read = in_session(house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
    (data(&read)["step_markdown"].as_str().unwrap().to_owned(), read.data["revisions"].clone())
}

async fn stage_at(house: &House, operations: Value, revisions: Value) -> Outcome {
    in_session(house, "s1", "builder.change.stage", set(operations, revisions)).await
}

/// As any other reference: by an id or by a file, made or taken out.
#[tokio::test(flavor = "multi_thread")]
async fn a_menu_that_leads_to_a_workflow_is_based_on_the_set_that_makes_it() {
    for engine in engines() {
        for named in ["tea", "workflows/tea/workflow.md"] {
            let house = house_with_sample(&engine).await;
            let menu = |named: &str| json!([{"trigger": "tea", "description": "Tea", "workflow": named}]);
            let alone = stage(&house, json!([with_menu(&house, menu(named)).await])).await;
            let id = alone["changeSetId"].as_str().unwrap();
            let report = validate(&house, id).await;
            assert_eq!(report["errors"][0]["code"], "WORKFLOW_NOT_FOUND", "{named}: {report}");
            in_session(&house, "s1", "builder.change.discard", json!({"changeSetId": id})).await;

            stage(&house, tea()).await;
            let staged = stage(&house, json!([with_menu(&house, menu(named)).await])).await;
            assert_eq!(staged["basedOn"], names(&["cs-2"]), "{named}: {staged}");
            assert_eq!(validate(&house, "cs-3").await["valid"], json!(true), "{named}");
            data(&apply(&house, "cs-3").await);
            assert!(is_valid(&house).await, "{named}");

            // And out again, in another order.
            let gone = without_tea(&house).await;
            let id = gone["changeSetId"].as_str().unwrap();
            assert_eq!(validate(&house, id).await["valid"], json!(false), "{named}: the menu still leads there");
            in_session(&house, "s1", "builder.change.discard", json!({"changeSetId": id})).await;
            stage(&house, json!([with_menu(&house, json!([])).await])).await;
            let gone = without_tea(&house).await;
            assert_eq!(gone["basedOn"], names(&["cs-5"]), "{named}: {gone}");
            let report = validate(&house, "cs-6").await;
            assert_eq!(report["valid"], json!(true), "{named}: {report}");
        }
    }
}

async fn is_valid(house: &House) -> bool {
    let found = toolhost_builder::validate(&Package::read(files(house).await));
    found.iter().all(|finding| finding.severity != toolhost_builder::Severity::Error)
}

/// An agent of the sample's with this menu.
async fn with_menu(house: &House, menu: Value) -> Value {
    let read = in_session(house, "s1", "builder.agent.read", json!({"agentId": "writer"})).await;
    let mut definition = data(&read)["agent_definition"].clone();
    definition["menu"] = menu;
    json!({"op": "upsert", "targetType": "agent", "target": {"agentId": "writer"}, "payload": {"agent_definition": definition}})
}

async fn without_tea(house: &House) -> Value {
    let read = in_session(house, "s1", "builder.workflow.read", json!({"workflowId": "tea"})).await;
    let gone = json!([{"op": "delete", "targetType": "workflow", "target": {"workflowId": "tea"}}]);
    data(&stage_at(house, gone, data(&read)["revisions"].clone()).await).clone()
}

/// The session stages a set, then another one, and then sends the first again with its old revisions.
#[tokio::test(flavor = "multi_thread")]
async fn what_takes_the_place_of_a_set_may_be_made_on_an_earlier_read() {
    for engine in engines() {
        for by in ["supersede", "discard"] {
            let house = house_with_sample(&engine).await;
            stage(&house, json!([asset("assets/new.md", "first\n")])).await;
            let (text, revisions) = read_step(&house).await;
            stage(&house, json!([asset("assets/other.md", "other\n")])).await;
            let step = step_operation(STEP, &text.replace("Copy each claim", "Write each claim"));
            stage(&house, json!([step])).await;
            let mut again = set(json!([asset("assets/new.md", "second\n")]), revisions);
            match by {
                "supersede" => again["changeSet"]["extensions"] = json!({"supersedes": "cs-1"}),
                _ => drop(in_session(&house, "s1", "builder.change.discard", json!({"changeSetId": "cs-1"})).await),
            }
            let staged = in_session(&house, "s1", "builder.change.stage", again).await;
            let id = data(&staged)["changeSetId"].as_str().unwrap().to_owned();
            assert_eq!(validate(&house, &id).await["valid"], json!(true), "{by}");
            data(&apply(&house, &id).await);
            assert_eq!(files(&house).await["assets/new.md"], b"second\n", "{by}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_is_only_staged_is_among_those_that_there_are() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage(&house, tea()).await;
        let context = json!({"targetType": "workflow", "targetId": FLOW, "mode": "optimize"});
        let ours = in_session(&house, "s1", "builder.context.get", context.clone()).await;
        assert!(data(&ours).to_string().contains("\"tea\""), "{ours:?}");
        let theirs = in_session(&house, "s2", "builder.context.get", context).await;
        assert!(!data(&theirs).to_string().contains("\"tea\""), "{theirs:?}");
        let near = in_session(&house, "s1", "builder.workflow.read", json!({"workflowId": "tee"})).await;
        assert!(near.text.contains("`tea`"), "{near:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_set_of_a_chain_brings_is_told_with_its_id() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage_text(&house, "Copy each claim", "See assets/never.md. Copy each claim").await;
        stage_text(&house, "See assets/never.md.", "First see assets/never.md.").await;
        stage_text(&house, "Copy each claim", "See assets/neither.md. Copy each claim").await;
        let of_sets = |report: &Value| {
            let errors = report["errors"].as_array().unwrap();
            let said: Vec<(String, String)> = errors
                .iter()
                .map(|found| {
                    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
                    assert_eq!(
                        text("hint").contains("a set that supersedes cs-1"),
                        found["changeSetId"] == "cs-1",
                        "{found}"
                    );
                    (text("actual"), text("changeSetId"))
                })
                .collect();
            said
        };
        let (first, last) = (validate(&house, "cs-1").await, validate(&house, "cs-3").await);
        let said = |name: &str, set: &str| (name.to_owned(), set.to_owned());
        assert_eq!(of_sets(&first), [said("assets/never.md", "")], "{first}");
        assert_eq!(of_sets(&last), [said("assets/never.md", "cs-1"), said("assets/neither.md", "")], "{last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_names_open_sets_first_and_counts_those_that_it_leaves_out() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        for number in 1..=13 {
            stage(&house, json!([asset(&format!("assets/n{number}.md"), "new\n")])).await;
            if number > 2 {
                data(&apply(&house, &format!("cs-{number}")).await);
            }
        }
        let read = in_session(
            &house,
            "s1",
            "builder.context.get",
            json!({"targetType": "workflow", "targetId": FLOW, "mode": "optimize"}),
        )
        .await;
        let meta = &data(&read)["session_meta"];
        let named: Vec<&str> =
            meta["change_sets"].as_array().unwrap().iter().map(|set| set["changeSetId"].as_str().unwrap()).collect();
        let expected = ["cs-1", "cs-2", "cs-6", "cs-7", "cs-8", "cs-9", "cs-10", "cs-11", "cs-12", "cs-13"];
        assert_eq!((named, &meta["change_sets_left_out"]), (expected.to_vec(), &json!(3)), "{meta}");
        assert_eq!((meta["changes_since"].as_array().unwrap().len(), &meta["changes_left_out"]), (10, &json!(2)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_no_secret() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let secret = format!("ghp_{}", "a1B2c3D4".repeat(5));
        stage_text(&house, "Copy each claim", &format!("Use {secret}. Copy each claim")).await;
        let preview = shelf_of(&house, house.project.id).preview(1).await.unwrap();
        let shown = serde_json::to_string(&(&preview.body, &preview.diff)).unwrap();
        assert!(shown.contains("Use [redacted]. Copy each claim") && !shown.contains(&secret), "{shown}");
        data(&apply(&house, "cs-1").await);
        let preview = shelf_of(&house, house.project.id).preview(1).await.unwrap();
        let shown = serde_json::to_string(&(&preview.body, &preview.diff)).unwrap();
        assert!(shown.contains("Use [redacted]. Copy each claim") && !shown.contains(&secret), "{shown}");
        // A change beside a key shows lines of it, and not the one by which a key is known.
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
        let key = |end: &str| {
            format!("# K\n\n-----BEGIN PRIVATE KEY-----\n{line}\n{line}\nshort=\n-----END PRIVATE KEY-----\n\n{end}\n")
        };
        stage(&house, json!([asset("assets/key.md", &key("End."))])).await;
        data(&apply(&house, "cs-2").await);
        stage(&house, json!([asset("assets/key.md", &key("The end."))])).await;
        for number in [2, 3] {
            let preview = shelf_of(&house, house.project.id).preview(number).await.unwrap();
            let shown = serde_json::to_string(&(&preview.body, &preview.diff)).unwrap();
            assert!(!shown.contains(line) && !shown.contains("short="), "cs-{number}: {shown}");
        }
        let preview = shelf_of(&house, house.project.id).preview(3).await.unwrap();
        assert!(preview.diff[0].files[0].unified.contains("+The end."), "{:?}", preview.diff);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_delete_of_what_the_package_does_not_have_needs_no_confirmation() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        stage(&house, json!([asset("assets/new.md", "new\n")])).await;
        let delete = |path: &str| json!([{ "op": "delete", "targetType": "asset", "target": { "path": path } }]);
        assert_eq!(stage(&house, delete("assets/new.md")).await["basedOn"], names(&["cs-1"]));
        data(&apply(&house, "cs-2").await);
        assert_eq!(files(&house).await, sample());
    }
}
