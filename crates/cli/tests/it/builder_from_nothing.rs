//! From an empty folder: a package is begun, sessions make its first workflow, a step, an agent and an asset, a person applies
//! what they made.

use serde_json::{Value, json};
use toolhost_testkit::engines::engines;
use toolhost_testkit::{Program, TempWorkspace};

use crate::room::program;

fn run(program: &Program, arguments: &[&str]) -> toolhost_testkit::Ran {
    let ran = program.run(arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran
}

fn agent(id: &str) -> Value {
    let definition = json!({
        "id": id,
        "metadata": { "name": id, "title": "Ward nurse", "icon": "N" },
        "persona": {
            "role": "Plans discharges.", "identity": "Twenty years on the ward.",
            "communication_style": "Plain.", "principles": ["The patient reads it."],
        },
    });
    json!({ "op": "upsert", "targetType": "agent", "target": { "agentId": id }, "payload": { "agent_definition": definition } })
}

fn asset(path: &str) -> Value {
    json!({ "op": "upsert", "targetType": "asset", "target": { "path": path }, "payload": { "content": "# Letter\n\nDear ...\n" } })
}

/// A graph of steps in a line, each with its agent; the last is the end.
fn graph(nodes: &[(&str, &str)]) -> Value {
    let last = nodes.len() - 1;
    let node = |(index, (id, agent)): (usize, &(&str, &str))| {
        let kind = if index == last { "end" } else { "step" };
        json!({ "id": id, "type": kind, "file": format!("steps/{id}.md"), "title": id, "agentId": agent })
    };
    let edges = nodes.windows(2).map(|two| {
        let id = format!("{}-{}", two[0].0, two[1].0);
        json!({ "id": id, "from": two[0].0, "to": two[1].0, "label": "done" })
    });
    json!({
        "schemaVersion": "1.1", "entryNodeId": nodes[0].0,
        "nodes": nodes.iter().enumerate().map(node).collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>(),
    })
}

fn workflow(payload: Value) -> Value {
    json!({ "op": "upsert", "targetType": "workflow", "target": { "workflowId": "main" }, "payload": payload })
}

fn step(nodes: &[(&str, &str)], id: &str, reads: &str) -> Value {
    let index = nodes.iter().position(|(node, _)| *node == id).unwrap();
    let transitions = match nodes.get(index + 1) {
        Some((next, _)) => format!("transitions:\n  - to: {next}\n    label: done\n"),
        None => String::new(),
    };
    let kind = if index + 1 == nodes.len() { "end" } else { "step" };
    let text = format!(
        "---\nschemaVersion: \"1.1\"\nnodeId: {id}\ntype: {kind}\ntitle: {id}\nagentId: {}\n{transitions}---\n\n# {id}\n\n## Goal\n\n\
         A letter.\n\n## Instructions\n\n1. Read {reads}.\n\n## Completion (Document-as-State)\n\nAdd it to `stepsCompleted`.\n",
        nodes[index].1,
    );
    let target = json!({ "workflowId": "main", "nodeId": id });
    json!({ "op": "upsert", "targetType": "step", "target": target, "payload": { "step_markdown": text } })
}

/// A session whose model looks at the context, stages this, has it validated and says so; then a person applies it.
fn make(program: &Program, workspace: &TempWorkspace, target: &str, operations: &[Value], revisions: &Value) -> Value {
    let (kind, id) = target.split_once(':').unwrap();
    let set = json!({
        "schemaVersion": "1.0", "targetType": kind, "mode": "create", "operations": operations, "revisions": revisions,
    });
    let context = json!({ "targetType": kind, "targetId": id, "mode": "create" });
    let answer = json!({ "responseType": "change", "assistantSummary": format!("I made {id}."), "changeSet": set });
    let call = |tool: &str, arguments: Value| json!({ "calls": [{ "tool": tool, "arguments": arguments }] });
    let turns = [
        call("builder_context_get", context.clone()),
        call("builder_change_stage", json!({ "changeSet": set })),
        call("builder_change_validate", json!({})),
        json!({ "expect": { "at": { "/data/valid": true } }, "text": answer.to_string() }),
    ];
    workspace.write_beside("story.json", &json!({ "turns": turns }).to_string());
    let model = format!("script:{}", workspace.beside("story.json").display());
    let told = run(program, &["call", "builder.context.get", &context.to_string(), "--json"]).json();
    let said = run(program, &["run", "make it", "--target", target, "--mode", "create", "--model", &model]);
    assert!(format!("{}{}", said.stdout, said.stderr).contains(&format!("I made {id}.")), "{said:?}");
    let sets = run(program, &["change", "list", "--json"]).json();
    let staged = sets.as_array().unwrap().iter().find(|set| set["status"] == "validated").unwrap();
    run(program, &["change", "apply", staged["changeSetId"].as_str().unwrap(), "--yes"]);
    told["data"].clone()
}

/// Rules: 001.2, 001.52, 001.57.
#[test]
fn a_package_is_begun_and_its_first_workflow_step_agent_and_asset_are_made() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        run(&program, &["init"]);
        run(&program, &["package", "new", "discharge", "--description", "hospital discharge planning"]);
        let again = program.run(&["package", "new", "other"]);
        assert!(again.code == Some(1) && again.stderr.contains("already"), "{again:?}");

        let nodes = [("collect", "nurse"), ("write", "nurse"), ("check", "doctor")];
        let document = "---\nschemaVersion: \"1.1\"\nworkflowType: discharge\nstepsCompleted: []\ncurrentNodeId: \"\"\n---\n\n# Discharge\n";
        let whole = workflow(json!({ "workflow_md": document, "graph_json": graph(&nodes) }));
        let steps = nodes.map(|(id, _)| step(&nodes, id, "`assets/letter.md`"));
        let mut operations = vec![agent("nurse"), agent("doctor"), asset("assets/letter.md"), whole];
        operations.extend(steps);
        let told = make(&program, &workspace, "workflow:main", &operations, &json!({}));
        assert_eq!(told["target_snapshot"]["graph_json"], Value::Null);
        assert_eq!(told["domain_profile"]["industry_domain"], "hospital discharge planning");
        assert!(told["normative_baseline"]["naming"].is_string());

        let out = workspace.beside("out");
        run(&program, &["package", "export", out.to_str().unwrap()]);
        run(&program, &["package", "validate", out.to_str().unwrap(), "--strict"]);
        let manifest: Value = serde_json::from_str(&std::fs::read_to_string(out.join("bmad.json")).unwrap()).unwrap();
        assert_eq!(manifest["entry"]["workflow"], "workflows/main/workflow.md", "the first workflow is the entry");
        assert_eq!(manifest["workflows"][0]["id"], "main");

        // One of each kind into what is there now.
        let revisions = |tool: &str, arguments: Value| {
            let read = run(&program, &["call", tool, &arguments.to_string(), "--json"]).json();
            read["data"]["revisions"].clone()
        };
        let of_main = || revisions("builder.workflow.read", json!({ "workflowId": "main" }));
        let told = make(&program, &workspace, "agent:clerk", &[agent("clerk")], &of_main());
        assert_eq!(told["target_snapshot"]["agent_definition"], Value::Null);
        assert_eq!(told["dependency_digest"]["other_agents"].as_array().unwrap().len(), 2);
        make(&program, &workspace, "asset:assets/rules.md", &[asset("assets/rules.md")], &of_main());
        let nodes = [("collect", "nurse"), ("write", "nurse"), ("send", "clerk"), ("check", "doctor")];
        let longer = [
            workflow(json!({ "graph_json": graph(&nodes) })),
            step(&nodes, "write", "`assets/letter.md`"),
            step(&nodes, "send", "`assets/rules.md`"),
        ];
        let told = make(&program, &workspace, "step:send", &longer, &of_main());
        // As lists of changes name it.
        let fine = json!({ "responseType": "chat", "assistantSummary": "Fine." });
        workspace.write_beside("fine.json", &json!({ "turns": [{ "text": fine.to_string() }] }).to_string());
        let model = format!("script:{}", workspace.beside("fine.json").display());
        run(&program, &["run", "look", "--target", "step:main/send", "--model", &model]);
        assert_eq!(told["session_meta"]["workflow_id"], "main");
        assert_eq!(told["target_snapshot"]["step_path"], "workflows/main/steps/send.md");
        assert_eq!(told["dependency_digest"]["neighbors"].as_array().unwrap().len(), 3);
        let read = json!({ "workflowId": "main", "nodeId": "send" }).to_string();
        let made = run(&program, &["call", "builder.step.read", &read, "--json"]).json();
        assert!(made["data"]["step_markdown"].as_str().unwrap().contains("assets/rules.md"), "{made}");
        let last = workspace.beside("last");
        run(&program, &["package", "export", last.to_str().unwrap()]);
        run(&program, &["package", "validate", last.to_str().unwrap(), "--strict"]);
    }
}

#[test]
fn an_empty_package_takes_an_agent_before_its_first_workflow_and_a_step_waits_for_one() {
    let workspace = TempWorkspace::new();
    let engine = engines().next().unwrap();
    let program = engine.under(program(&workspace));
    run(&program, &["init"]);
    let none = json!({ "targetType": "agent", "targetId": "nurse", "mode": "create" }).to_string();
    let refused = program.run(&["call", "builder.context.get", &none]);
    assert!(refused.code != Some(0) && refused.stderr.contains("toolhost package new"), "{refused:?}");
    run(&program, &["package", "new", "discharge"]);
    let step = json!({ "targetType": "step", "targetId": "send", "mode": "create" }).to_string();
    let refused = program.run(&["call", "builder.context.get", &step]);
    assert!(refused.code != Some(0) && refused.stderr.contains("has none yet"), "{refused:?}");
    make(&program, &workspace, "agent:nurse", &[agent("nurse")], &json!({}));
    let read = run(&program, &["call", "builder.agent.read", r#"{"agentId":"nurse"}"#, "--json"]).json();
    assert_eq!(read["data"]["agent_definition"]["id"], "nurse");
    run(&program, &["change", "undo", "--yes"]);
    assert_ne!(program.run(&["call", "builder.agent.read", r#"{"agentId":"nurse"}"#]).code, Some(0));
    let out = workspace.beside("out");
    run(&program, &["package", "export", out.to_str().unwrap()]);
    run(&program, &["package", "import", "--replace", out.to_str().unwrap()]);
    let checked = program.run(&["package", "validate", "--strict", out.to_str().unwrap()]);
    assert!(
        checked.code == Some(1) && checked.stdout.contains("`workflow` is missing in `bmad.json` at `/entry`"),
        "{checked:?}"
    );
}

/// A session with `--mode create` replaces no existing object, and its change set makes the target of the session, in its mode.
#[test]
fn a_session_that_creates_makes_its_own_target_and_replaces_nothing() {
    let workspace = TempWorkspace::new();
    let program = engines().next().unwrap().under(program(&workspace));
    run(&program, &["init"]);
    run(&program, &["package", "new", "discharge"]);
    make(&program, &workspace, "agent:nurse", &[agent("nurse")], &json!({}));
    let set = |target: &str, mode: &str, made: Value| json!({ "schemaVersion": "1.0", "targetType": target, "mode": mode, "operations": [made] });
    let answer = |set: Value| json!({ "text": json!({ "responseType": "change", "assistantSummary": "I made it.", "changeSet": set }).to_string() });
    let told = |text: &str, mut turn: Value| {
        turn["expect"] = json!({ "user": text });
        turn
    };
    let stage =
        |set: Value| json!({ "calls": [{ "tool": "builder_change_stage", "arguments": { "changeSet": set } }] });
    let create = |target: &str, turns: &[Value]| {
        workspace.write_beside("story.json", &json!({ "turns": turns }).to_string());
        let model = format!("script:{}", workspace.beside("story.json").display());
        program.run(&["run", "make it", "--target", target, "--mode", "create", "--model", &model])
    };
    let refused = create("agent:nurse", &[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("the agent `nurse` is there already"), "{refused:?}");
    let nowhere =
        program.run(&["run", "x", "--target", "step:main/a", "--workflow", "other", "--model", "script:none"]);
    assert!(nowhere.code == Some(2) && nowhere.stderr.contains("`main`, and --workflow says `other`"), "{nowhere:?}");
    let made = create(
        "agent:clerk",
        &[
            answer(set("agent", "optimize", agent("clerk"))),
            told("`mode: optimize`, and this session is for `create`", answer(set("asset", "create", agent("clerk")))),
            told(
                "`targetType: asset`, and this session is for `agent`",
                answer(set("agent", "create", agent("clerk"))),
            ),
        ],
    );
    // A set that is taken too early ends the session before the turns that expect its refusal.
    let all_said = |made: &toolhost_testkit::Ran, texts: [&str; 2]| {
        assert!(made.code == Some(0) && texts.iter().all(|text| made.stderr.contains(text)), "{made:?}");
    };
    all_said(&made, ["`mode: optimize`", "`targetType: asset`"]);
    // A set that the model has staged itself is looked at, too.
    let other = told("does not make `agent:cook`", stage(set("asset", "create", asset("assets/menu.md"))));
    let made = create(
        "agent:cook",
        &[
            answer(set("agent", "create", agent("waiter"))),
            other,
            answer(json!({ "changeSetId": "cs-4" })),
            told("`targetType: asset`, and this session is for `agent`", answer(set("agent", "create", agent("cook")))),
        ],
    );
    all_said(&made, ["does not make `agent:cook`", "`targetType: asset`"]);
    let open = run(&program, &["change", "list", "--json"]).json();
    let objects: Vec<&Value> = open.as_array().unwrap().iter().map(|set| &set["objects"]).collect();
    assert_eq!(objects, [&json!(["agent:cook"]), &json!(["agent:clerk"])], "what was not taken is discarded");
}

#[test]
fn the_change_set_of_the_book_is_taken_as_it_stands() {
    let page = include_str!("../../../../docs/book/src/packages.md");
    let (_, rest) = page.split_once("```json\n{\n  \"schemaVersion\"").unwrap();
    let set: Value =
        serde_json::from_str(&format!("{{\"schemaVersion\"{}", rest.split_once("```").unwrap().0)).unwrap();
    let workspace = TempWorkspace::new();
    let program = engines().next().unwrap().under(program(&workspace));
    run(&program, &["init"]);
    run(&program, &["package", "new", "claims"]);
    make(&program, &workspace, "agent:clerk", set["operations"].as_array().unwrap(), &json!({}));
}
