//! A session on a workflow package as a person sees it at the terminal: the summary, the list of changes, their diff; and no
//! object as the model wrote it.

use serde_json::{Value, json};
use toolhost_testkit::{Program, Ran, TempWorkspace};

use crate::room::program;

const ASSET: &str = "assets/review-checklist.md";
const SUMMARY: &str = "The checklist has sixty points.";

fn run(program: &Program, arguments: &[&str]) -> Ran {
    let ran = program.run(arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran
}

fn points(word: &str) -> String {
    (1..=60).map(|n| format!("- {word} {n}\n")).collect()
}

fn upsert(content: &str) -> Value {
    json!({
        "op": "upsert", "targetType": "asset", "target": { "path": ASSET }, "payload": { "content": content },
        "reason": "reviewers asked for it",
    })
}

fn answer(operations: &Value, revisions: &Value) -> Value {
    json!({ "responseType": "change", "assistantSummary": SUMMARY, "changeSet": {
        "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize", "operations": operations,
        "revisions": revisions,
    } })
}

/// A program with the example's package, and a model that looks at an asset, gives an answer that is refused and then one
/// that is right.
fn opened(workspace: &TempWorkspace) -> (Program, String) {
    let program = program(workspace);
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report");
    run(&program, &["init"]);
    run(&program, &["package", "import", package.to_str().unwrap()]);
    let asset = json!({ "path": ASSET });
    let read = run(&program, &["call", "builder.asset.read", &asset.to_string(), "--json"]).json();
    let revisions = &read["data"]["revisions"];
    let gone = json!([{ "op": "delete", "targetType": "asset", "target": { "path": ASSET } }, {
        "op": "upsert", "targetType": "asset", "target": { "path": "assets/other.md" },
        "payload": { "content": points("other") },
    }]);
    let aside = format!("This is what I want to write:\n{}", points("aside"));
    let turns = json!([
        { "text": aside, "calls": [{ "tool": "builder_asset_read", "arguments": asset }] },
        { "text": answer(&gone, revisions).to_string() },
        { "expect": { "user": "is not valid and was discarded" }, "text": answer(&json!([upsert(&points("point"))]), revisions).to_string() },
    ]);
    workspace.write_beside("story.json", &json!({ "turns": turns }).to_string());
    (program, format!("script:{}", workspace.beside("story.json").display()))
}

/// Neither the model's JSON nor the end of anything it wrote.
#[track_caller]
fn holds_no_object(shown: &str) {
    for piece in ["responseType", "schemaVersion", "payload", "\\n- ", "point 60", "other 60", "aside 60"] {
        assert!(!shown.contains(piece), "`{piece}`: {shown}");
    }
}

/// Rules: 001.61.
#[test]
fn the_summary_comes_first_then_the_changes_as_a_diff() {
    let workspace = TempWorkspace::new();
    let (program, model) = opened(&workspace);
    let ran = run(&program, &["run", "more points", "--target", &format!("asset:{ASSET}"), "--model", &model]);
    holds_no_object(&ran.stdout);
    holds_no_object(&ran.stderr);
    let place = |text: &str| ran.stdout.rfind(text).unwrap_or_else(|| unreachable!("`{text}`: {ran:?}"));
    let order = [
        place(SUMMARY),
        place("cs-2 validated by"),
        place(&format!("  0 modified asset:{ASSET} (+60 -")),
        place("valid, 0 errors"),
        place("\n+- point 1\n"),
        place("more lines of asset:"),
    ];
    assert!(order.is_sorted(), "{order:?}: {}", ran.stdout);
    assert!(
        ran.stdout.contains("reviewers asked for it") && ran.stderr.contains("toolhost change apply cs-2"),
        "{ran:?}"
    );
    // The same of a session that is over, and of the set by itself, which is shown whole to whoever decides.
    let id = run(&program, &["session", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let replayed = run(&program, &["session", "replay", &id]);
    holds_no_object(&replayed.stdout);
    holds_no_object(&replayed.stderr);
    for told in [&ran, &replayed] {
        assert_eq!(
            told.stdout.matches(SUMMARY).count(),
            1,
            "of the answer that was taken, not of the one sent back: {told:?}"
        );
    }
    let shown = run(&program, &["change", "show", "cs-2"]).stdout;
    let places = ["  0 modified asset:", "valid, 0 errors", "+- point 1\n", "+- point 60\n"]
        .map(|text| shown.find(text).unwrap());
    assert!(places.is_sorted() && !shown.contains("payload"), "{shown}");
    let whole = run(&program, &["change", "show", "cs-2", "--json"]).json();
    assert_eq!((&whole["report"]["valid"], &whole["changeSet"]["status"]), (&json!(true), &json!("validated")));
}

#[test]
fn json_has_the_whole_answer() {
    let workspace = TempWorkspace::new();
    let (program, model) = opened(&workspace);
    let target = format!("asset:{ASSET}");
    let ran = run(&program, &["run", "more points", "--target", &target, "--model", &model, "--json"]);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = events.iter().rfind(|event| event["event"] == "said").unwrap();
    let answer: Value = serde_json::from_str(said["text"].as_str().unwrap()).unwrap();
    assert_eq!(answer["changeSet"]["operations"][0]["payload"]["content"], points("point"));
    let ended = &events.last().unwrap()["result"];
    assert_eq!((&ended["status"], &ended["answer"]["assistantSummary"]), (&json!("completed"), &json!(SUMMARY)));
    assert_eq!(ended["answer"]["changeSetId"], "cs-2");
    // The set as it is staged, and what it makes different.
    let staged = events.iter().find(|event| event["event"] == "change_set").unwrap();
    assert_eq!((&staged["changeSet"]["changeSetId"], &staged["report"]["valid"]), (&json!("cs-2"), &json!(true)));
    assert_eq!(staged["body"]["operations"][0]["payload"]["content"], points("point"));
    let diff = staged["diff"].to_string();
    assert!(diff.contains("point"), "{staged}");
}

#[test]
fn an_apply_that_is_refused_says_what_was_found_and_where() {
    let workspace = TempWorkspace::new();
    let (program, _) = opened(&workspace);
    let step = json!({ "workflowId": "research-report", "nodeId": "draft" });
    let read = run(&program, &["call", "builder.step.read", &step.to_string(), "--json"]).json();
    let text = read["data"]["step_markdown"].as_str().unwrap().replace("## Goal", "## Aim");
    let text = format!("{text}\nSee `assets/nowhere.md`.\n");
    let set = json!({ "sessionId": "s1", "changeSet": {
        "schemaVersion": "1.0", "targetType": "step", "mode": "optimize", "revisions": read["data"]["revisions"],
        "operations": [{ "op": "upsert", "targetType": "step", "target": step, "payload": { "step_markdown": text } }],
    } });
    run(&program, &["call", "builder.change.stage", &set.to_string()]);
    let refused = program.run(&["change", "apply", "cs-1", "--yes"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.stdout, "", "nobody needs to read the diff of what cannot be applied");
    let lines: Vec<&str> = refused.stderr.lines().map(str::trim).collect();
    let place = |code: &str, stage: &str| lines.iter().position(|line| line.starts_with(&format!("{code} {stage}: ")));
    let (bmad, reference) = (place("SECTION_MISSING", "bmad"), place("ASSET_NOT_FOUND", "reference"));
    assert!(bmad.is_some() && bmad < reference, "{refused:?}");
    let shown = run(&program, &["change", "show", "cs-1"]).stdout;
    assert!(shown.contains("cs-1 staged by") && shown.contains("not valid, 2 errors"), "{shown}");
}

#[test]
fn a_set_that_a_session_leaves_unvalidated_is_told_to_the_person() {
    let workspace = TempWorkspace::new();
    let set = json!({
        "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize",
        "operations": [{ "op": "upsert", "targetType": "asset", "target": { "path": "assets/new.md" },
                         "payload": { "content": "New.\n" } }],
    });
    let done = json!({ "responseType": "chat", "assistantSummary": "Done." }).to_string();
    let stage = json!({ "calls": [{ "tool": "builder_change_stage", "arguments": { "changeSet": set } }] });
    let story = json!({ "turns": [stage, { "text": done }] });
    workspace.write_beside("story.json", &story.to_string());
    let model = format!("script:{}", workspace.beside("story.json").display());
    let program = program(&workspace);
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report");
    assert_eq!(program.run(&["package", "import", package.to_str().unwrap()]).code, Some(0));
    let run =
        |more: &[&str]| program.run(&[&["run", "look", "--target", "agent:scout", "--model", &model], more].concat());
    let ran = run(&[]);
    assert!(
        ran.stderr.contains("cs-1 is staged but not validated; validate it with: toolhost change validate cs-1"),
        "{ran:?}"
    );
    let events = run(&["--json"]);
    let ended: Value = serde_json::from_str(events.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(ended["result"]["unvalidated"], json!(["cs-2"]), "{events:?}");
}
