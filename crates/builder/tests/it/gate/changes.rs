//! Change sets of a workflow package from a model's stage to a person's apply and undo, on both engines.

use serde_json::{Value, json};
use toolhost_builder::packages::WorkflowName;
use toolhost_builder::{Files, Package};
use toolhost_contract::Outcome;
use toolhost_testkit::House;
use toolhost_testkit::engines::{Engine, engines};
use toolhost_testkit::sample::{
    FLOW, STEP, apply, call, data, files, house_with_sample, in_session, person, refused, sample, set, shelf_of,
    step_operation,
};

const STEP_PATH: &str = "steps/check-claims.md";

fn text(files: &Files, path: &str) -> String {
    String::from_utf8(files[path].clone()).unwrap()
}

/// Reads a step in a session, changes its text and stages it.
async fn stage_step(house: &House, session: &str, node: &str, change: impl Fn(&str) -> String) -> Outcome {
    let read = in_session(house, session, "builder.step.read", json!({"workflowId": FLOW, "nodeId": node})).await;
    let text = change(read.data["step_markdown"].as_str().unwrap());
    let revisions = read.data["revisions"].clone();
    in_session(house, session, "builder.change.stage", set(json!([step_operation(node, &text)]), revisions)).await
}

async fn staged_step(engine: &Engine) -> House {
    let house = house_with_sample(engine).await;
    let staged = stage_step(&house, "s1", STEP, |text| text.replace("Copy each claim", "Write each claim")).await;
    assert_eq!(data(&staged)["changeSetId"], "cs-1");
    house
}

/// Rules: 001.1.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_staged_is_seen_by_its_session_alone_until_a_person_applies_it() {
    for engine in engines() {
        let house = staged_step(&engine).await;
        let read = json!({"workflowId": FLOW, "nodeId": STEP});
        let ours = in_session(&house, "s1", "builder.step.read", read.clone()).await;
        let theirs = in_session(&house, "s2", "builder.step.read", read.clone()).await;
        assert!(data(&ours)["step_markdown"].as_str().unwrap().contains("Write each claim"));
        assert_eq!((&ours.data["drafted"], &theirs.data["drafted"]), (&json!(true), &json!(false)));
        assert!(data(&theirs)["step_markdown"].as_str().unwrap().contains("Copy each claim"));
        assert_ne!(ours.meta.revision, theirs.meta.revision);
        assert_eq!(files(&house).await, sample(), "nothing is written by staging");
        let valid = in_session(&house, "s1", "builder.change.validate", json!({"changeSetId": "cs-1"})).await;
        assert_eq!((&data(&valid)["valid"], &valid.data["schemaFailed"]), (&json!(true), &json!(false)));
        let applied = apply(&house, "cs-1").await;
        assert_eq!((&data(&applied)["status"], &applied.data["moment"]), (&json!("applied"), &json!(2)));
        let mut expected = sample();
        let changed = text(&expected, STEP_PATH).replace("Copy each claim", "Write each claim");
        expected.insert(STEP_PATH.to_owned(), changed.into_bytes());
        assert_eq!(files(&house).await, expected, "what was not changed is the same, byte for byte");
        let theirs = in_session(&house, "s2", "builder.step.read", read).await;
        assert_eq!(theirs.meta.revision, ours.meta.revision, "both see the same now");
        // The same set is not applied twice.
        assert_eq!(refused(&apply(&house, "cs-1").await).1, "conflict");
    }
}

/// Rules: 001.1, 001.32, 001.47.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_never_applies_whatever_its_profile_and_the_audit_says_so() {
    for engine in engines() {
        let house = staged_step(&engine).await;
        for profile in ["builder", "all", "developer", "builder-read"] {
            for tool in
                ["builder.change.apply", "builder_change_apply", "builder.change.undo", "builder.package.import"]
            {
                let arguments = json!({"changeSetId": "cs-1", "confirmSource": "ui_manual_apply"});
                let outcome = house.call_as(profile, tool, arguments).await;
                assert_eq!(refused(&outcome), ("AI_TOOL_FORBIDDEN", "permission"), "{tool} as {profile}");
                let rows = house.rows().await;
                let row = rows.iter().rev().find(|row| row["callId"] == outcome.meta.call_id.as_str()).unwrap();
                assert_eq!(row["event"], "finished");
                assert_eq!(row["outcome"]["code"], "AI_TOOL_FORBIDDEN", "{row:#}");
            }
        }
        assert_eq!(files(&house).await, sample());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_needs_the_source_that_only_a_person_sends() {
    let engine = engines().next().unwrap();
    let house = staged_step(&engine).await;
    for source in [json!({}), json!({"confirmSource": "auto"}), json!({"confirmSource": ""})] {
        let mut arguments = json!({"changeSetId": "cs-1"});
        arguments.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        let outcome = person(&house, "builder.change.apply", arguments).await;
        assert_eq!(refused(&outcome), ("AI_APPLY_REQUIRES_CONFIRMATION", "validation"));
    }
    assert_eq!(files(&house).await, sample());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_that_change_different_lines_of_one_step_both_win() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let first = |text: &str| text.replace("Copy each claim", "Write each claim");
        let second = |text: &str| text.replace("counts the unsupported ones", "lists the unsupported ones");
        data(&stage_step(&house, "s1", STEP, first).await);
        data(&stage_step(&house, "s2", STEP, second).await);
        data(&apply(&house, "cs-1").await);
        let validated = in_session(&house, "s2", "builder.change.validate", json!({})).await;
        let codes: Vec<&Value> = data(&validated)["warnings"].as_array().unwrap().iter().map(|w| &w["code"]).collect();
        assert!(codes.contains(&&json!("AI_REVISION_BASE_MISMATCH")), "it is told before: {codes:?}");
        let applied = apply(&house, "cs-2").await;
        let mut warnings = validated.data["warnings"].as_array().unwrap().clone();
        warnings.retain(|warning| warning["code"] != "AI_REVISION_BASE_MISMATCH");
        assert_eq!(data(&applied)["warnings"], json!(warnings), "both look at the merged package");
        assert_eq!(data(&applied)["merged"], json!([format!("step:{FLOW}/{STEP}")]));
        let text = text(&files(&house).await, STEP_PATH);
        assert!(text.contains("Write each claim") && text.contains("lists the unsupported ones"), "{text}");
    }
}

/// Rules: 001.66.
#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_that_change_the_same_line_never_lose_one_silently() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        data(&stage_step(&house, "s1", STEP, |text| text.replace("Copy each claim", "Write each claim")).await);
        data(&stage_step(&house, "s2", STEP, |text| text.replace("Copy each claim", "Note each claim")).await);
        data(&apply(&house, "cs-1").await);
        let before = files(&house).await;
        let validated = in_session(&house, "s2", "builder.change.validate", json!({})).await;
        let verdict = (&data(&validated)["valid"], &validated.data["status"], &validated.data["stages"]);
        assert_eq!(verdict, (&json!(false), &json!("staged"), &json!([])), "validate says what apply does");
        let error = &validated.data["errors"][0];
        let (code, object) = (json!("AI_REVISION_BASE_MISMATCH"), json!(format!("step:{FLOW}/{STEP}")));
        assert_eq!((&error["code"], &error["path"]), (&code, &object), "{error:#}");
        let shown = shelf_of(&house, house.project.id).preview(2).await.unwrap().report.unwrap();
        assert_eq!(json!(shown.errors), validated.data["errors"], "so does what a person is shown");
        let blocked = apply(&house, "cs-2").await;
        assert_eq!(refused(&blocked), ("AI_REVISION_BASE_MISMATCH", "conflict"));
        let details = blocked.error.unwrap().details.unwrap();
        assert_eq!(details["blocking"], true);
        let clash = &details["conflicts"][0]["clashes"][0];
        for (side, word) in [("base", "Copy each"), ("current", "Write each"), ("ours", "Note each")] {
            assert!(clash[side].as_str().unwrap().contains(word), "{side}: {clash:#}");
        }
        assert_eq!(files(&house).await, before, "nothing is half applied");
        // Read again and decided anew, it goes.
        let read = json!({"changeSetId": "cs-2"});
        data(&in_session(&house, "s2", "builder.change.discard", read).await);
        data(&stage_step(&house, "s2", STEP, |text| text.replace("Write each claim", "Note each claim")).await);
        data(&apply(&house, "cs-3").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_what_was_read_long_ago_is_merged_with_what_happened_since() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        // Read by one session before anybody changes anything, staged by it after somebody else has applied.
        let old = in_session(&house, "s2", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
        data(&stage_step(&house, "s1", STEP, |text| text.replace("Copy each claim", "Write each claim")).await);
        data(&apply(&house, "cs-1").await);
        let wanted = old.data["step_markdown"].as_str().unwrap().replace("counts the", "lists the");
        let staged = set(json!([step_operation(STEP, &wanted)]), old.data["revisions"].clone());
        data(&in_session(&house, "s2", "builder.change.stage", staged).await);
        data(&apply(&house, "cs-2").await);
        let text = text(&files(&house).await, STEP_PATH);
        assert!(text.contains("Write each claim") && text.contains("lists the"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_says_which_revision_was_read() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let operation = json!([step_operation(STEP, "---\n---\nall new\n")]);
        let stage =
            |revisions: Value| in_session(&house, "s1", "builder.change.stage", set(operation.clone(), revisions));
        assert_eq!(refused(&stage(json!({})).await), ("AI_CHANGESET_CONTRACT_VIOLATION", "validation"));
        let unknown = json!({"workflowRevision": "0".repeat(64)});
        assert_eq!(refused(&stage(unknown).await), ("AI_REVISION_BASE_MISMATCH", "conflict"));
        assert_eq!(refused(&stage(json!({"workflowRevision": 12})).await), ("AI_REVISION_BASE_MISMATCH", "conflict"));
        // The revision of the step itself is taken at no time, not only as long as it is the present one.
        let read = json!({"workflowId": FLOW, "nodeId": STEP});
        let read = in_session(&house, "s1", "builder.step.read", read).await;
        let own = read.meta.revision.as_ref().unwrap().target.as_ref().unwrap();
        let staged = stage(json!({ "workflowRevision": own })).await;
        assert_eq!(refused(&staged), ("AI_CHANGESET_CONTRACT_VIOLATION", "validation"));
        let error = staged.error.unwrap();
        assert!(error.message.contains("`revisions.workflowRevision` has the revision of step:"), "{}", error.message);
        assert!(error.hint.unwrap().contains("send `data.revisions` of the read"));
        let listed = shelf_of(&house, house.project.id).change_sets(None, false).await.unwrap();
        assert_eq!(listed, [], "what is refused is not staged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_graph_alone_is_seen_in_the_diff() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = in_session(&house, "s1", "builder.workflow.read", json!({"workflowId": FLOW})).await;
        let mut graph = data(&read)["graph_json"].clone();
        graph["nodes"][0]["title"] = json!("Agree on what is asked");
        let operation = json!([{
            "op": "upsert", "targetType": "workflow", "target": {"workflowId": FLOW}, "payload": {"graph_json": graph},
        }]);
        let staged =
            in_session(&house, "s1", "builder.change.stage", set(operation, read.data["revisions"].clone())).await;
        data(&staged);
        let preview = shelf_of(&house, house.project.id).preview(1).await.unwrap();
        let shown = toolhost_builder::change::render(&preview.diff);
        assert!(shown.contains("Agree on what is asked") && shown.contains("Agree on the question"), "{shown}");
        assert_eq!(preview.diff.len(), 1);
        data(&apply(&house, "cs-1").await);
        let mut now = files(&house).await;
        assert!(text(&now, "workflow.graph.json").contains("Agree on what is asked"));
        now.remove("workflow.graph.json");
        let mut before = sample();
        before.remove("workflow.graph.json");
        assert_eq!(now, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chosen_operations_are_applied_and_the_others_stay_staged() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let operations = json!([
            {"op": "upsert", "targetType": "asset", "target": {"path": "assets/a.md"}, "payload": {"content": "a\n"}},
            {"op": "upsert", "targetType": "asset", "target": {"path": "assets/b.md"}, "payload": {"content": "b\n"}},
        ]);
        data(&in_session(&house, "s1", "builder.change.stage", set(operations, json!({}))).await);
        let some = json!({"changeSetId": "cs-1", "confirmSource": "ui_manual_apply", "operations": [1]});
        let applied = person(&house, "builder.change.apply", some.clone()).await;
        assert_eq!((&data(&applied)["status"], &applied.data["left"]), (&json!("staged"), &json!(1)));
        let now = files(&house).await;
        assert!(!now.contains_key("assets/a.md") && now.contains_key("assets/b.md"));
        assert_eq!(refused(&person(&house, "builder.change.apply", some).await).1, "validation");
        assert_eq!(data(&apply(&house, "cs-1").await)["status"], "applied");
        assert!(files(&house).await.contains_key("assets/a.md"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_is_confirmed_by_its_name() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let new = json!([{"op": "upsert", "targetType": "asset", "target": {"path": "assets/a.md"}, "payload": {"content": "a"}}]);
        data(&in_session(&house, "s1", "builder.change.stage", set(new, json!({}))).await);
        data(&apply(&house, "cs-1").await);
        let read = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/a.md"})).await;
        let gone = json!([{"op": "delete", "targetType": "asset", "target": {"path": "assets/a.md"}}]);
        data(&in_session(&house, "s1", "builder.change.stage", set(gone, data(&read)["revisions"].clone())).await);
        let refusal = apply(&house, "cs-2").await;
        assert_eq!(refused(&refusal), ("AI_APPLY_REQUIRES_CONFIRMATION", "validation"));
        assert_eq!(refusal.error.unwrap().details.unwrap()["deletes"], json!(["asset:assets/a.md"]));
        let arguments = json!({
            "changeSetId": "cs-2", "confirmSource": "ui_manual_apply", "confirmDeletes": ["asset:assets/a.md"],
        });
        data(&person(&house, "builder.change.apply", arguments).await);
        assert_eq!(files(&house).await, sample());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_refer_to_does_not_go() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let path = "assets/review-checklist.md";
        let read = in_session(&house, "s1", "builder.asset.read", json!({"path": path})).await;
        let gone = json!([{"op": "delete", "targetType": "asset", "target": {"path": path}}]);
        data(&in_session(&house, "s1", "builder.change.stage", set(gone, data(&read)["revisions"].clone())).await);
        let validated = in_session(&house, "s1", "builder.change.validate", json!({})).await;
        assert_eq!((&data(&validated)["valid"], &validated.data["status"]), (&json!(false), &json!("staged")));
        let errors = validated.data["errors"].as_array().unwrap();
        assert!(errors.iter().any(|error| error["file"] == STEP_PATH), "{errors:#?}");
        let arguments = json!({
            "changeSetId": "cs-1", "confirmSource": "ui_manual_apply", "confirmDeletes": [format!("asset:{path}")],
        });
        let refusal = person(&house, "builder.change.apply", arguments).await;
        assert_eq!(refused(&refusal), ("AI_VALIDATION_FAILED", "validation"));
        assert_eq!(files(&house).await, sample());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_takes_the_references_along_if_it_is_asked_to() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let (from, to) = ("assets/review-checklist.md", "assets/checks.md");
        let read = in_session(&house, "s1", "builder.asset.read", json!({"path": from})).await;
        let flow = in_session(&house, "s1", "builder.workflow.read", json!({"workflowId": FLOW})).await;
        let mut arguments = set(
            json!([
                {"op": "delete", "targetType": "asset", "target": {"path": from}},
                {"op": "upsert", "targetType": "asset", "target": {"path": to}, "payload": {"content": read.data["content"]}},
            ]),
            flow.data["revisions"].clone(),
        );
        arguments["changeSet"]["extensions"] = json!({
            "rewriteReferences": true,
            "renames": [{"from": format!("asset:{from}"), "to": format!("asset:{to}")}],
        });
        let staged = in_session(&house, "s1", "builder.change.stage", arguments).await;
        let objects = data(&staged)["objects"].as_array().unwrap().clone();
        assert!(objects.contains(&json!(format!("step:{FLOW}/{STEP}"))), "{objects:?}");
        let arguments = json!({
            "changeSetId": "cs-1", "confirmSource": "ui_manual_apply", "confirmDeletes": [format!("asset:{from}")],
        });
        data(&person(&house, "builder.change.apply", arguments).await);
        let now = files(&house).await;
        for (path, bytes) in &now {
            assert!(!String::from_utf8_lossy(bytes).contains(from), "{path} still names it");
        }
        assert!(text(&now, STEP_PATH).contains(to));
        assert_eq!(toolhost_builder::validate(&Package::read(now)), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_later_change_has_changed_again_is_not_taken_back_below_it() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        for (set, from, to) in
            [("cs-1", "Copy each claim", "Write each claim"), ("cs-2", "Write each claim", "Note each claim")]
        {
            data(&stage_step(&house, "s1", STEP, |text| text.replace(from, to)).await);
            data(&apply(&house, set).await);
        }
        let undone = person(&house, "builder.change.undo", json!({"moment": 2})).await;
        assert_eq!(refused(&undone).1, "conflict");
        let error = undone.error.as_ref().unwrap();
        assert!(error.message.contains("change 3 has changed the same places since"), "{error:?}");
        assert!(error.hint.as_ref().unwrap().contains("take the later changes back first"), "{error:?}");
        data(&person(&house, "builder.change.undo", json!({"moment": 3})).await);
        data(&person(&house, "builder.change.undo", json!({"moment": 2})).await);
        assert_eq!(files(&house).await, sample());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_applied_set_is_taken_back_byte_for_byte_also_over_what_came_later() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        data(&stage_step(&house, "s1", STEP, |text| text.replace("Copy each claim", "Write each claim")).await);
        data(&apply(&house, "cs-1").await);
        data(&stage_step(&house, "s1", STEP, |text| text.replace("counts the", "lists the")).await);
        data(&apply(&house, "cs-2").await);
        // The first one, from below the second.
        data(&person(&house, "builder.change.undo", json!({"moment": 2})).await);
        let now = text(&files(&house).await, STEP_PATH);
        assert!(now.contains("Copy each claim") && now.contains("lists the"), "{now}");
        data(&person(&house, "builder.change.undo", json!({"moment": 3})).await);
        assert_eq!(files(&house).await, sample());
        assert_eq!(refused(&person(&house, "builder.change.undo", json!({"moment": 2})).await).1, "conflict");
        // An undo is a change like any other.
        data(&person(&house, "builder.change.undo", json!({"moment": 5})).await);
        assert!(text(&files(&house).await, STEP_PATH).contains("lists the"));
        let deeds = shelf_of(&house, house.project.id).history().await.unwrap();
        let kinds: Vec<&str> = deeds.iter().map(|deed| deed.kind.as_str()).collect();
        assert_eq!(kinds, ["undo", "undo", "undo", "apply", "apply", "import"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overlay_survives_a_restart_and_other_sessions_of_the_same_user() {
    for engine in engines() {
        let house = staged_step(&engine).await;
        // A second session of the same user comes, works and gives up all it has.
        data(&stage_step(&house, "s2", STEP, |text| text.replace("Copy each claim", "Note each claim")).await);
        data(&in_session(&house, "s2", "builder.change.discard", json!({})).await);
        let again = toolhost_testkit::HouseBuilder::of(toolhost::tools);
        let (project, rows) = (house.project.id, house.rows().await.len());
        let (url, workspace) = (engine.url.clone(), house.workspace);
        house.store.close().await.unwrap();
        let house = again.database(url).workspace(workspace).build().await;
        assert_eq!(house.project.id, project);
        assert!(house.rows().await.len() >= rows);
        let read = in_session(&house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
        assert!(data(&read)["step_markdown"].as_str().unwrap().contains("Write each claim"));
        data(&apply(&house, "cs-1").await);
        assert!(text(&files(&house).await, STEP_PATH).contains("Write each claim"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn later_turns_of_a_session_build_on_earlier_ones() {
    for engine in engines() {
        let house = staged_step(&engine).await;
        data(&stage_step(&house, "s1", STEP, |text| text.replace("counts the", "lists the")).await);
        let preview = shelf_of(&house, house.project.id).preview(2).await.unwrap();
        let shown = toolhost_builder::change::render(&preview.diff);
        assert!(shown.contains("Write each claim") && shown.contains("lists the"), "against the base: {shown}");
        // The second is the first and more: with it, both are applied.
        data(&apply(&house, "cs-2").await);
        let now = text(&files(&house).await, STEP_PATH);
        assert!(now.contains("Write each claim") && now.contains("lists the"));
        assert_eq!(refused(&apply(&house, "cs-1").await).1, "conflict");
        let listed = shelf_of(&house, house.project.id).change_sets(None, true).await.unwrap();
        assert_eq!(listed, []);
    }
}

/// A model goes on with what it read before its own first set: both changes are kept where they do not touch.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_turn_on_the_revision_of_the_first_is_laid_over_what_is_staged() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = in_session(&house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
        let markdown = data(&read)["step_markdown"].as_str().unwrap();
        let revisions = &data(&read)["revisions"];
        let stage = async |from: &str, to: &str| {
            let operations = json!([step_operation(STEP, &markdown.replace(from, to))]);
            in_session(&house, "s1", "builder.change.stage", set(operations, revisions.clone())).await
        };
        data(&stage("Copy each claim", "Write each claim").await);
        data(&stage("counts the unsupported ones", "lists the unsupported ones").await);
        let both = |text: &str| text.contains("Write each claim") && text.contains("lists the unsupported ones");
        let seen = in_session(&house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
        assert!(both(data(&seen)["step_markdown"].as_str().unwrap()), "{seen:?}");
        // The same place is another matter: nobody says which of the two is meant.
        let refusal = stage("Copy each claim", "Note each claim").await;
        assert_eq!(refused(&refusal), ("AI_REVISION_BASE_MISMATCH", "conflict"));
        let error = refusal.error.unwrap();
        assert!(error.message.contains("cs-1 of this session changes the same places"), "{}", error.message);
        assert_eq!(
            error.details.unwrap()["changeSets"],
            json!(["cs-1"]),
            "cs-2 contains it, and changes another place"
        );
        data(&apply(&house, "cs-2").await);
        assert!(both(&text(&files(&house).await, STEP_PATH)));
    }
}

/// What a session saw between its turns is known: also before a set that is staged by now, and on one that was given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_revision_of_any_read_of_the_session_is_one_to_go_on_from() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = async || {
            let read = in_session(&house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
            let data = data(&read);
            (data["step_markdown"].as_str().unwrap().to_owned(), data["revisions"].clone())
        };
        let stage = async |markdown: &str, revisions: &Value| {
            let operations = json!([step_operation(STEP, markdown)]);
            in_session(&house, "s1", "builder.change.stage", set(operations, revisions.clone())).await
        };
        let (first, at_first) = read().await;
        data(&stage(&first.replace("Copy each claim", "Write each claim"), &at_first).await);
        let (second, at_second) = read().await;
        data(&stage(&second.replace("counts the unsupported", "lists the unsupported"), &at_second).await);
        // The text that was read between them, with another change.
        data(&stage(&second.replace("## Instructions\n", "## Instructions\n\nBegin.\n"), &at_second).await);
        let (third, at_third) = read().await;
        for said in ["Write each claim", "lists the unsupported", "Begin."] {
            assert!(third.contains(said), "{third}");
        }
        // Of a set that is given up nothing comes back with what was read on it.
        data(&in_session(&house, "s1", "builder.change.discard", json!({"changeSetId": "cs-3"})).await);
        data(&stage(&third.replace("## Goal\n", "## Goal\n\nFirst.\n"), &at_third).await);
        let (fourth, _) = read().await;
        assert!(fourth.contains("First.") && fourth.contains("lists the unsupported"), "{fourth}");
        assert!(!fourth.contains("Begin."), "{fourth}");
        let unknown = stage(&fourth, &json!({"workflowRevision": "0".repeat(64)})).await;
        assert_eq!(refused(&unknown).1, "conflict");
    }
}

/// A passage is found in what the session sees, so that other sets of the session are in no passage's way.
#[tokio::test(flavor = "multi_thread")]
async fn passages_of_one_line_are_replaced_in_several_turns_on_one_revision() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = in_session(&house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
        let revisions = data(&read)["revisions"].clone();
        let markdown = data(&read)["step_markdown"].as_str().unwrap().to_owned();
        let line = markdown.lines().find(|line| line.contains("Copy each claim")).unwrap();
        let last = line.trim_end_matches('.').rsplit(' ').next().unwrap();
        let stage = async |find: &str, replace: &str| {
            let mut small = set(
                json!([{
                    "op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": STEP},
                    "payload": {"textEdits": [{"find": find, "replace": replace}]},
                }]),
                revisions.clone(),
            );
            small["changeSet"]["schemaVersion"] = json!("1.1");
            in_session(&house, "s1", "builder.change.stage", small).await
        };
        data(&stage("Copy each claim", "Write each claim").await);
        data(&stage(&line.replace("Copy", "Write"), &line.replace("Copy", "Write").replace(last, "END")).await);
        data(&apply(&house, "cs-2").await);
        let now = text(&files(&house).await, STEP_PATH);
        assert!(now.contains("Write each claim") && now.contains("END"), "{now}");
    }
}

/// A workflow `tea` of two steps.
pub(crate) fn tea() -> Value {
    let front = |more: &str| format!("---\nschemaVersion: \"1.1\"\n{more}---\n");
    let body = "\n## Goal\n\nG.\n\n## Instructions\n\nI.\n\n## Completion (Document-as-State)\n\nC.\n";
    let step = |node: &str, kind: &str| {
        json!({
            "op": "upsert", "targetType": "step", "target": {"workflowId": "tea", "nodeId": node},
            "payload": {"step_markdown": format!("{}{body}", front(&format!("nodeId: {node}\ntype: {kind}\n")))},
        })
    };
    json!([
        step("boil", "step"),
        step("pour", "end"),
        {"op": "upsert", "targetType": "workflow", "target": {"workflowId": "tea"}, "payload": {
            "workflow_md": format!("{}\n# Tea\n", front("workflowType: tea\nstepsCompleted: []\ncurrentNodeId: \"\"\n")),
            "graph_json": {"schemaVersion": "1.1", "entryNodeId": "boil", "nodes": [
                {"id": "boil", "type": "step", "file": "steps/boil.md", "agentId": "lead"},
                {"id": "pour", "type": "end", "file": "steps/pour.md"},
            ], "edges": [{"from": "boil", "to": "pour", "label": "hot"}]},
        }},
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_made_with_its_steps_in_one_set_and_goes_with_them() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let operations = tea();
        data(&in_session(&house, "s1", "builder.change.stage", set(operations, json!({}))).await);
        let drafted =
            in_session(&house, "s1", "builder.step.read", json!({"workflowId": "tea", "nodeId": "pour"})).await;
        assert_eq!(data(&drafted)["step_path"], "workflows/tea/steps/pour.md");
        let validated = in_session(&house, "s1", "builder.change.validate", json!({})).await;
        assert_eq!(data(&validated)["valid"], true, "{:#}", validated.data);
        assert_eq!(validated.data["impact"]["riskFlags"], json!(["cross-object", "graph-change"]));
        data(&apply(&house, "cs-1").await);
        let read = call(&house, "builder.step.read", json!({"workflowId": 2, "nodeId": "boil"})).await;
        assert_eq!(
            (data(&read)["step_path"].as_str(), read.meta.workflow_id),
            (Some("workflows/tea/steps/boil.md"), Some(2))
        );
        let refs = call(&house, "builder.refs.find", json!({"locator": {"type": "id", "value": "lead"}})).await;
        let from: Vec<&Value> = data(&refs)["inbound"].as_array().unwrap().iter().map(|one| &one["from"]).collect();
        assert!(from.contains(&&json!("step:tea/boil")), "{from:?}");
        assert_eq!(toolhost_builder::validate(&Package::read(files(&house).await)), []);
        let flow = in_session(&house, "s1", "builder.workflow.read", json!({"workflowId": "tea"})).await;
        let gone = json!([{"op": "delete", "targetType": "workflow", "target": {"workflowId": "tea"}}]);
        data(&in_session(&house, "s1", "builder.change.stage", set(gone, flow.data["revisions"].clone())).await);
        let arguments =
            json!({"changeSetId": "cs-2", "confirmSource": "ui_manual_apply", "confirmDeletes": ["workflow:tea"]});
        data(&person(&house, "builder.change.apply", arguments).await);
        assert_eq!(files(&house).await, sample());
        let shelf = shelf_of(&house, house.project.id);
        let gone = shelf.read(toolhost_builder::envelope::TargetType::Workflow, "tea", None, None).await;
        assert!(gone.is_err());
        let number = WorkflowName::Number(2);
        let step = shelf.read(toolhost_builder::envelope::TargetType::Step, "boil", Some(&number), None).await;
        assert!(step.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_changed_and_the_bytes_of_the_others_stay() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = in_session(&house, "s1", "builder.agent.read", json!({"agentId": "critic"})).await;
        let mut agent = data(&read)["agent_definition"].clone();
        agent["metadata"]["title"] = json!("Reader of claims");
        let operation = json!([{
            "op": "upsert", "targetType": "agent", "target": {"agentId": "critic"}, "payload": {"agent_definition": agent},
        }]);
        data(&in_session(&house, "s1", "builder.change.stage", set(operation, read.data["revisions"].clone())).await);
        data(&apply(&house, "cs-1").await);
        let (before, now) = (text(&sample(), "agents.json"), text(&files(&house).await, "agents.json"));
        let others: Vec<&str> = before.lines().filter(|line| !now.lines().any(|other| other == *line)).collect();
        assert!(now.contains("Reader of claims"));
        assert_eq!(others.len(), 1, "only one line is another one: {others:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_racing_applies_of_one_set_have_one_winner() {
    for engine in engines() {
        let house = staged_step(&engine).await;
        let validate = || in_session(&house, "s1", "builder.change.validate", json!({"changeSetId": "cs-1"}));
        data(&validate().await);
        let calls = (0..20).map(|_| apply(&house, "cs-1"));
        // Those who validate it meanwhile never bring back what is applied.
        let (outcomes, _) =
            tokio::join!(futures::future::join_all(calls), futures::future::join_all([validate(), validate()]));
        let (won, lost): (Vec<&Outcome>, Vec<&Outcome>) = outcomes.iter().partition(|outcome| outcome.ok);
        assert_eq!(won.len(), 1);
        assert!(lost.iter().all(|outcome| refused(outcome).1 == "conflict"), "{lost:?}");
        let shelf = shelf_of(&house, house.project.id);
        assert_eq!(shelf.history().await.unwrap().len(), 2);
        assert_eq!(shelf.preview(1).await.unwrap().line.status, "applied");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_is_open_is_not_staged_twice() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let arguments = json!({"workflowId": FLOW, "nodeId": STEP});
        let read = in_session(&house, "s1", "builder.step.read", arguments.clone()).await;
        let change = |read: &Outcome, words: &str| {
            let text = format!("{}\n{words}\n", data(read)["step_markdown"].as_str().unwrap());
            set(json!([step_operation(STEP, &text)]), data(read)["revisions"].clone())
        };
        let first = change(&read, "Once.");
        let stage = async |set: &Value| in_session(&house, "s1", "builder.change.stage", set.clone()).await;
        assert_eq!(data(&stage(&first).await)["changeSetId"], "cs-1");
        assert_eq!(data(&stage(&first).await), data(&stage(&first).await));
        data(&in_session(&house, "s1", "builder.change.validate", json!({})).await);
        assert_eq!(data(&stage(&first).await)["changeSetId"], "cs-1", "{engine}");
        // Another session has an overlay of its own, and what came later is not taken away.
        let other = in_session(&house, "s2", "builder.change.stage", first.clone()).await;
        assert_eq!(data(&other)["changeSetId"], "cs-2");
        let read = in_session(&house, "s1", "builder.step.read", arguments).await;
        assert_eq!(data(&stage(&change(&read, "Twice.")).await)["changeSetId"], "cs-3");
        assert_eq!(refused(&stage(&first).await).0, "AI_REVISION_BASE_MISMATCH");
        data(&in_session(&house, "s1", "builder.change.discard", json!({})).await);
        assert_eq!(data(&stage(&first).await)["changeSetId"], "cs-4", "what was discarded is staged anew");
    }
}
