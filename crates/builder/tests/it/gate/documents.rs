//! What the documents ask for by name, and what other tests do not look at.

use serde_json::{Value, json};
use toolhost_builder::limits::Size;
use toolhost_builder::{Files, Package};
use toolhost_host::Registry;
use toolhost_testkit::House;
use toolhost_testkit::engines::{engines, refusal};
use toolhost_testkit::sample::{FLOW, call, sample, shelf_of};

/// The names that the documents give their tools.
const NAMES: [(&str, &[&str]); 8] = [
    (
        "CrewAgent Builder",
        &[
            "builder.context.get",
            "builder.workflow.read",
            "builder.step.read",
            "builder.agent.read",
            "builder.asset.read",
            "builder.refs.find",
            "builder.change.stage",
            "builder.change.validate",
            "builder.change.discard",
            "builder.change.apply",
        ],
    ),
    ("files", &["list_files", "read_file", "read_file_truncated", "read_file_with_limit", "write_file", "run_command"]),
    (
        "data",
        &[
            "create_requirement",
            "get_requirements",
            "add_feature",
            "update_feature_status",
            "get_design_document",
            "create_task",
            "update_task_status",
            "add_component",
            "get_implementation_plan",
        ],
    ),
    (
        "people",
        &[
            "review_and_edit_file",
            "review_with_feedback_file",
            "review_and_edit_content",
            "review_with_feedback_content",
        ],
    ),
    ("checks", &["check_data_format", "check_feature_coverage", "check_task_dependencies"]),
    ("deploys", &["copy_workspace_to_project"]),
    (
        "memory",
        &["query_memory", "save_insight", "save_issue", "save_learning", "promote_to_decision", "promote_to_pattern"],
    ),
    (
        "Bonsai",
        &[
            "file_read",
            "file_list",
            "bash",
            "git_status",
            "git_diff",
            "ticket_read",
            "comment_post",
            "file_write",
            "file_edit",
            "git_commit",
            "git_push",
            "ticket_update_state",
        ],
    ),
];

/// Rules: 002.1, 002.6.
#[test]
fn the_tools_of_the_documents_answer_to_their_names() {
    let registry = Registry::new(toolhost_testkit::every_tool()).unwrap();
    assert!(registry.tools().len() >= 30);
    for (family, names) in NAMES {
        for name in names {
            assert!(registry.get(name).is_some(), "{family}: {name}");
        }
    }
}

/// The sample with this in the front matter of its workflow.
fn sample_with(front: &str) -> Files {
    let mut files = sample();
    let text = String::from_utf8(files["workflow.md"].clone()).unwrap();
    files.insert("workflow.md".to_owned(), text.replacen("---\n", &format!("---\n{front}\n"), 1).into_bytes());
    files
}

async fn house_with(engine: &toolhost_testkit::engines::Engine, files: Files) -> House {
    let house = engine.house().await;
    shelf_of(&house, house.project.id).import(&Package::read(files), false, Size::default()).await.unwrap();
    house
}

/// A context for each kind of target, of what is there and of what is to be made, with and without its workflow.
fn contexts() -> Vec<Value> {
    let there =
        [("workflow", FLOW), ("step", "check-claims"), ("agent", "critic"), ("asset", "assets/review-checklist.md")];
    let new = [("workflow", "new"), ("step", "new"), ("agent", "new"), ("asset", "assets/new.md")];
    let targets = there.map(|target| (target, "optimize")).into_iter().chain(new.map(|target| (target, "create")));
    let mut contexts = Vec::new();
    for ((kind, id), mode) in targets {
        let context = json!({ "targetType": kind, "targetId": id, "mode": mode });
        if kind != "workflow" {
            let mut within = context.clone();
            within["workflowId"] = json!(FLOW);
            contexts.push(within);
        }
        contexts.push(context);
    }
    contexts
}

/// Rules: 001.11, 001.13.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_owner_says_of_the_domain_is_told_for_every_target() {
    for engine in engines() {
        let said = "domain_profile:\n  industry_domain: hospital discharge planning\n  target_users: [ward nurses]";
        let house = house_with(&engine, sample_with(said)).await;
        for context in contexts() {
            let outcome = call(&house, "builder.context.get", context.clone()).await;
            let profile = &outcome.data["domain_profile"];
            let told = (&profile["industry_domain"], &profile["target_users"], &profile["source"]);
            let expected = (&json!("hospital discharge planning"), &json!(["ward nurses"]), &json!("project_meta"));
            assert_eq!(told, expected, "{engine}: {context}: {outcome:?}");
        }
    }
}

/// One workflow of a package says it for all that say nothing.
///
/// Rules: 001.11.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_of_another_workflow_is_found_where_none_is_nearer() {
    let of_second = |said: &str| {
        let mut files = sample();
        let of_workflow = |path: &str| path.starts_with("steps/") || path.starts_with("workflow.");
        let second = sample_with(said).into_iter().filter(|(path, _)| of_workflow(path));
        files.extend(second.map(|(path, bytes)| (format!("workflows/second/{path}"), bytes)));
        let mut manifest: Value = serde_json::from_slice(&files["bmad.json"]).unwrap();
        let second = json!({
            "id": "second", "workflow": "workflows/second/workflow.md", "graph": "workflows/second/workflow.graph.json",
        });
        manifest["workflows"].as_array_mut().unwrap().push(second);
        files.insert("bmad.json".to_owned(), manifest.to_string().into_bytes());
        files
    };
    // A step of this name is in both, so its workflow has to be named.
    let clear = |context: &Value| context["targetType"] != "step" || context["workflowId"].is_string();
    for engine in engines() {
        let said = "domain_profile:\n  industry_domain: hospital discharge planning";
        let house = house_with(&engine, of_second(said)).await;
        for context in contexts().into_iter().filter(clear) {
            let outcome = call(&house, "builder.context.get", context.clone()).await;
            let told = &outcome.data["domain_profile"]["industry_domain"];
            assert_eq!(told, "hospital discharge planning", "{engine}: {context}: {outcome:?}");
        }
        let house = house_with(&engine, of_second("domain_profile: 7")).await;
        for context in contexts().into_iter().filter(clear) {
            let error = call(&house, "builder.context.get", context.clone()).await.error.unwrap();
            assert_eq!(error.code.as_str(), "AI_DOMAIN_PROFILE_INCOMPLETE", "{engine}: {context}: {error:?}");
        }
    }
}

/// Rules: 001.11, 001.44.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_profile_is_named_for_every_target() {
    for engine in engines() {
        let house = house_with(&engine, sample_with("domain_profile:\n  target_users: 7")).await;
        for context in contexts() {
            let error = call(&house, "builder.context.get", context.clone()).await.error.unwrap();
            assert_eq!(error.code.as_str(), "AI_DOMAIN_PROFILE_INCOMPLETE", "{engine}: {context}: {error:?}");
            assert!(error.message.contains("domain_profile.target_users"), "{error:?}");
        }
    }
}

/// Rules: 004.11.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_about_a_ticket_need_not_name_it() {
    for engine in engines() {
        let house = engine.house().await;
        house.data("ticket.create", json!({ "title": "one" })).await;
        house.data("ticket.create", json!({ "title": "two" })).await;
        let mut read = house.request("ticket.read", json!({}));
        read.scope.ticket_id = Some("TKT-002".to_owned());
        let outcome = house.run(read).await;
        assert_eq!(
            (&outcome.data["id"], outcome.meta.project_id),
            (&json!("TKT-002"), house.project.id),
            "{outcome:?}"
        );
        let mut step = house.request("ticket.update_state", json!({ "newState": "research" }));
        step.scope.ticket_id = Some("TKT-002".to_owned());
        assert!(house.run(step).await.ok);
        let first = house.data("ticket.read", json!({ "ticketId": "TKT-001" })).await;
        assert_eq!(first["state"], "backlog", "the other one is as it was");
        let outside = house.call("ticket.read", json!({})).await;
        assert_eq!(refusal(&outside).1, "validation", "{outside:?}");
    }
}

/// Rules: 000.8.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_names_its_steps_the_same_whether_its_workflow_is_named_or_not() {
    for engine in engines() {
        let house = house_with(&engine, sample()).await;
        let alone = call(&house, "builder.agent.read", json!({ "agentId": "critic" })).await;
        let within = call(&house, "builder.agent.read", json!({ "agentId": "critic", "workflowId": FLOW })).await;
        assert_eq!(alone.data["referenced_steps"], within.data["referenced_steps"], "{engine}");
        assert!(!alone.data["referenced_steps"].as_array().unwrap().is_empty(), "{alone:?}");
    }
}
