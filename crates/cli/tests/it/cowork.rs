//! A project of Cowork Forge, as its folder holds it, read in whole; and what is none, refused whole.

use std::path::Path;

use serde_json::{Value, json};
use toolhost_testkit::engines::engines;
use toolhost_testkit::{Program, TempWorkspace};

use crate::room::program;

const FIRST: &str = "iter-1-1767225600";
const SECOND: &str = "iter-2-1769904000";

/// Writes a file of the project.
fn put(project: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = project.join(".cowork-v2").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn put_json(project: &Path, path: &str, content: &Value) {
    put(project, path, serde_json::to_string_pretty(content).unwrap());
}

/// Two iterations with all that the program writes, and what its bugs leave behind.
fn forge(project: &Path) {
    put_json(
        project,
        "project.json",
        &json!({
            "id": "proj-1767225600", "name": "todo app", "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-02-01T00:00:00Z", "current_iteration_id": SECOND,
            "metadata": { "tech_stack": ["Rust"], "project_type": "web", "language": "en" },
            "iterations": [{ "id": FIRST, "number": 1, "title": "MVP", "status": "completed" }],
        }),
    );
    put_json(
        project,
        &format!("iterations/{FIRST}.json"),
        &json!({
            "id": FIRST, "number": 1, "title": "MVP", "description": "a first version", "base_iteration_id": null,
            "inheritance": "none", "status": "completed", "started_at": "2026-01-01T00:00:00.123456789Z",
            "completed_at": "2026-01-02T08:00:00+08:00", "completed_stages": ["idea", "prd"], "artifacts": {},
        }),
    );
    put_json(
        project,
        &format!("iterations/{SECOND}.json"),
        &json!({
            "id": SECOND, "number": 2, "title": "Sharing", "description": "", "base_iteration_id": FIRST,
            "inheritance": "Partial", "status": "Running", "started_at": "2026-02-01T00:00:00Z",
        }),
    );
    first_data(project);
    second_data(project);
    documents(project);
    memories(project);
    // Generated code and logs are no records.
    put(project, &format!("iterations/{FIRST}/workspace/package.json"), "{ not for us");
    put(project, &format!("iterations/{FIRST}/logs/run.json"), "{ not for us");
    put(project, &format!("iterations/{FIRST}/session_history.jsonl"), "{}\n");
    put_json(project, &format!("iterations/{FIRST}/session/meta.json"), &json!({ "session_id": "s" }));
    put_json(project, &format!("iterations/{FIRST}/data/code_metadata.json"), &json!({ "files": [] }));
}

fn requirement(id: &str, title: &str, priority: &str, category: &str) -> Value {
    json!({
        "id": id, "title": title, "description": format!("about {title}"), "priority": priority, "category": category,
        "acceptance_criteria": ["one sees it"], "related_features": [],
    })
}

/// REQ-002 was deleted and REQ-003 created anew: two have that id. Names of what is not there, and odd spellings.
fn first_data(project: &Path) {
    let data = format!("iterations/{FIRST}/data");
    let requirements = json!([
        requirement("REQ-001", "Todo List", "high", "functional"),
        requirement("REQ-003", "Keep items", "High", "NonFunctional"),
        requirement("REQ-003", "Tick items", "urgent", "functional"),
    ]);
    let requirements = json!({ "schema_version": "1.0", "requirements": requirements });
    put_json(project, &format!("{data}/requirements.json"), &requirements);
    let feature = |id: &str, name: &str, status: &str, requirements: Value| {
        json!({
            "id": id, "name": name, "description": "", "requirement_ids": requirements, "status": status,
            "assigned_to_tasks": [], "completion_criteria": ["works"], "created_at": "2026-01-01T01:00:00Z",
            "completed_at": null, "metadata": { "estimated_effort": "2 days", "dependencies": [] },
        })
    };
    let features = json!({ "schema_version": "1.0", "features": [
        feature("FEAT-001", "List", "Completed", json!(["REQ-001", "REQ-003", "REQ-077"])),
        feature("FEAT-002", "Ticks", "in-progress", json!(["REQ-003"])),
    ] });
    put_json(project, &format!("{data}/feature_list.json"), &features);
    let component = |id: &str, name: &str, kind: Value| {
        json!({
            "id": id, "name": name, "component_type": kind, "responsibilities": ["does it"], "technology": "Rust",
            "interfaces": [{ "name": "get", "inputs": ["id"], "outputs": ["item"] }], "related_features": ["FEAT-001", "FEAT-9"],
        })
    };
    let design = json!({ "schema_version": "1.0", "architecture": {
            "style": "layered",
            "components": [component("COMP-001", "api", json!("backend_service")),
                component("COMP-002", "cron", json!({ "other": "scheduler" })), component("COMP-003", "ui", json!("FrontendComponent"))],
            "data_models": [{ "name": "Item", "fields": [{ "name": "id", "field_type": "int" }, "done: bool"] }],
        },
        "technology_stack": { "backend": "Rust", "frontend": null, "database": "SQLite" },
        "deployment": { "architecture": "one box" } });
    put_json(project, &format!("{data}/design_spec.json"), &design);
    let task = |id: &str, title: &str, status: &str, dependencies: Value| {
        json!({
            "id": id, "title": title, "description": "", "feature_id": "FEAT-001", "component_id": "COMP-001",
            "status": status, "dependencies": dependencies, "estimated_effort": "3h", "files_to_create": ["src/a.rs"],
            "acceptance_criteria": ["it is there"], "created_at": "2026-01-01T02:00:00Z", "started_at": null,
            "completed_at": null,
        })
    };
    let mut lost = task("TASK-003", "Lost", "todo", json!(["TASK-002", "TASK-404"]));
    lost["component_id"] = json!("COMP-404");
    let plan = json!({ "schema_version": "1.0",
        "milestones": [{ "id": "M1", "name": "Alpha", "features": ["FEAT-001"], "deadline": "2026-03-01" }],
        "tasks": [task("TASK-001", "Store", "completed", json!([])), task("TASK-002", "Serve", "Pending", json!(["TASK-001"])), lost] });
    put_json(project, &format!("{data}/implementation_plan.json"), &plan);
}

/// Each iteration counts from 001 again.
fn second_data(project: &Path) {
    let data = format!("iterations/{SECOND}/data");
    let requirements = json!({ "requirements": [requirement("REQ-001", "Share lists", "LOW", "non-functional")] });
    put_json(project, &format!("{data}/requirements.json"), &requirements);
    let feature = json!({ "id": "FEAT-001", "name": "Sharing", "description": "", "requirement_ids": ["REQ-001"],
        "status": "pending", "completion_criteria": [], "created_at": "2026-02-01T01:00:00Z" });
    put_json(project, &format!("{data}/feature_list.json"), &json!({ "features": [feature] }));
}

fn documents(project: &Path) {
    for (file, text) in [
        ("idea.md", "# Idea\nA TODO app."),
        ("prd.md", "# Todo List\nTODO: nothing"),
        ("design.md", "# Design"),
        ("plan.md", "# Plan"),
        ("check_report.md", "# Checked"),
        ("delivery_report.md", "# Delivered"),
    ] {
        put(project, &format!("iterations/{FIRST}/artifacts/{file}"), text);
    }
    put(project, &format!("iterations/{SECOND}/artifacts/idea.md"), "# Sharing");
    put(project, &format!("iterations/{FIRST}/summaries/idea.md"), "a list of things");
    put(project, &format!("iterations/{FIRST}/summaries/prd.md"), "three requirements");
    let feedback = json!({ "feedbacks": [
        { "stage": "prd", "feedback_type": "missing_requirement", "severity": "major", "details": "sorting is missing",
          "suggested_fix": "add it", "timestamp": "2026-01-01T05:00:00Z" },
        { "stage": "coding", "feedback_type": "build_error", "severity": "critical", "details": "does not build", "timestamp": "2026-01-01T06:00:00Z" },
    ] });
    put_json(project, &format!("iterations/{FIRST}/session/feedback.json"), &feedback);
}

fn memories(project: &Path) {
    let at = "2026-01-01T03:00:00Z";
    let of_first = json!({ "iteration_id": FIRST,
        "insights": [{ "stage": "design", "content": "SQLite is fast enough", "importance": "critical", "created_at": at },
            { "stage": "plan", "content": "two weeks", "importance": "meh", "created_at": at }],
        "issues": [{ "stage": "coding", "content": "the build is slow", "resolved": false, "created_at": at, "resolved_at": null },
            { "stage": "check", "content": "a flaky test", "resolved": true, "created_at": at, "resolved_at": "2026-01-01T04:00:00Z" }],
        "learnings": [{ "content": "write the test first", "created_at": at }] });
    put_json(project, &format!("memory/iterations/{FIRST}.json"), &of_first);
    let knowledge = json!({ FIRST: { "iteration_id": FIRST, "iteration_number": 1, "idea_summary": "todo", "tech_stack": ["Rust"],
        "key_decisions": ["one file"], "known_issues": [], "created_at": at } });
    let of_project = json!({
        "decisions": [{ "id": "dec-1", "title": "Database", "context": "one machine", "decision": "SQLite in WAL mode",
            "consequences": ["one writer"], "iteration_id": FIRST, "created_at": at }],
        "patterns": [{ "id": "pat-1", "name": "One writer", "description": "write through one connection", "usage": ["always"],
            "tags": ["sqlite"], "code_example": "fn write() {}", "iteration_id": "iter-9-gone", "created_at": at }],
        "context": { "tech_stack": [], "architecture_style": "", "key_dependencies": [] },
        "iteration_knowledge": knowledge });
    put_json(project, "memory/project/memory.json", &of_project);
}

#[track_caller]
fn data(program: &Program, arguments: &[&str]) -> Value {
    let ran = program.run(&[&["--json"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran.json()["data"].clone()
}

fn field<'a>(items: &'a Value, name: &str) -> Vec<&'a Value> {
    items.as_array().unwrap().iter().map(|one| &one[name]).collect()
}

/// Rules: 002.67.
#[test]
fn a_project_of_cowork_forge_is_read_with_all_that_it_has() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let project = workspace.beside("forge");
        forge(&project);
        let program = engine.under(program(&workspace));
        let ran = program.run(&["--json", "import", "cowork", &project.display().to_string()]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let told = ran.json();
        assert_eq!(
            told["imported"]["records"],
            json!({
                "artifact": 7, "component": 3, "decision": 1, "design": 1, "feature": 3, "insight": 2, "issue": 4,
                "iteration": 2, "learning": 4, "milestone": 1, "pattern": 1, "requirement": 4, "task": 3,
            })
        );
        let notes = told["notes"].to_string();
        for said in [
            "REQ-003 is there twice",
            "REQ-077",
            "FEAT-9",
            "COMP-404",
            "`urgent` of REQ-003",
            "`todo` of TASK-003",
            "`meh` of an insight",
            "`todo app`",
            "code_metadata.json",
            "session/meta.json",
        ] {
            assert!(notes.contains(said), "{said} is not in {notes}");
        }
        assert!(
            !notes.contains("`high`") && !notes.contains("`low`") && !notes.contains("running"),
            "known words: {notes}"
        );
        planned(&program);
        documented(&program);
        remembered(&program);
        let second = data(&program, &["requirement", "list"]);
        assert_eq!(field(&second["requirements"], "title"), ["Share lists"], "tools work in the last iteration");
        assert_eq!(
            (&second["requirements"][0]["priority"], &second["requirements"][0]["category"]),
            (&json!("low"), &json!("non_functional"))
        );
        assert_eq!(second["features"][0]["requirementIds"], json!(["REQ-004"]), "ids are the new ones: {second}");
    }
}

/// The first iteration's plan.
fn planned(program: &Program) {
    let iterations = data(program, &["iteration", "list"]);
    assert_eq!(iterations["current"], 2);
    let (first, second) = (&iterations["items"][0], &iterations["items"][1]);
    assert_eq!(
        (&first["status"], &first["completedAtMs"]),
        (&json!("completed"), &json!(1_767_312_000_000_i64)),
        "{first}"
    );
    assert_eq!((&second["status"], &second["inheritance"]), (&json!("running"), &json!("partial")), "{second}");
    assert_eq!(second["baseIterationId"], "ITER-001");
    let wanted = data(program, &["requirement", "list", "--iteration", "1"]);
    assert_eq!(
        field(&wanted["requirements"], "title"),
        ["Todo List", "Keep items", "Tick items"],
        "both of one id are kept"
    );
    assert_eq!(field(&wanted["requirements"], "priority"), ["high", "high", "medium"]);
    assert_eq!(field(&wanted["requirements"], "category"), ["functional", "non_functional", "functional"]);
    let features = data(program, &["feature", "list", "--iteration", "1"]);
    assert_eq!(field(&features["items"], "status"), ["completed", "in_progress"]);
    assert_eq!(features["items"][0]["requirementIds"], json!(["REQ-001", "REQ-002"]), "what is there, by its new id");
    assert_eq!(features["items"][0]["createdAtMs"], 1_767_229_200_000_i64);
    let design = data(program, &["design", "get", "--iteration", "1"]);
    assert_eq!(design["design"]["dataModels"], json!([{ "name": "Item", "fields": ["id: int", "done: bool"] }]));
    assert_eq!(design["design"]["technologyStack"], json!({ "backend": "Rust", "database": "SQLite" }));
    assert_eq!(field(&design["components"], "componentType"), ["backend_service", "other", "frontend_component"]);
    assert_eq!(
        (&design["components"][1]["otherType"], &design["components"][0]["relatedFeatures"]),
        (&json!("scheduler"), &json!(["FEAT-001"]))
    );
    let plan = data(program, &["plan", "get", "--iteration", "1"]);
    assert_eq!(field(&plan["tasks"], "status"), ["completed", "pending", "pending"]);
    assert_eq!(field(&plan["tasks"], "externalId"), ["TASK-001", "TASK-002", "TASK-003"]);
    let lost = &plan["tasks"][2];
    assert_eq!(
        (&lost["dependencies"], &lost["unknownDependencies"]),
        (&json!(["TASK-002"]), &json!(["TASK-404"])),
        "{lost}"
    );
    assert!(lost["componentId"].is_null() && lost["featureId"] == "FEAT-001", "{lost}");
    assert_eq!(
        (&plan["milestones"][0]["deadline"], &plan["milestones"][0]["features"]),
        (&json!("2026-03-01"), &json!(["FEAT-001"]))
    );
    let checked = data(program, &["check", "task-dependencies", "--iteration", "1"]);
    assert_eq!(checked["unknownReferences"], json!([{ "task": "TASK-003", "names": "TASK-404" }]), "{checked}");
    assert_eq!(data(program, &["task", "ready", "--iteration", "1"])["items"][0]["title"], "Serve");
}

fn documented(program: &Program) {
    let listed = data(program, &["artifact", "list", "--iteration", "1"]);
    assert_eq!(field(&listed["items"], "kind"), ["idea", "prd", "design", "plan", "check_report", "delivery_report"]);
    let prd = data(program, &["artifact", "load", "prd", "--iteration", "1"]);
    assert_eq!(prd["content"], "# Todo List\nTODO: nothing");
    assert_eq!(data(program, &["artifact", "load", "idea"])["content"], "# Sharing");
}

fn remembered(program: &Program) {
    let found = |words: &[&str]| -> Vec<String> {
        let answer = data(program, &[&["memory", "query"], words].concat());
        answer["items"].as_array().unwrap().iter().map(|one| one["content"].to_string()).collect()
    };
    for (word, said) in [
        ("WAL", "Database"),
        ("connection", "One writer"),
        ("sorting", "sorting is missing"),
        ("flaky", "a flaky test"),
        ("weeks", "two weeks"),
        ("requirements", "Summary of the prd"),
        ("knowledge", ""),
        ("test", "write the test first"),
    ] {
        let all = found(&[word]);
        assert!(said.is_empty() || all.iter().any(|one| one.contains(said)), "{word}: {all:?}");
    }
    let issues = data(program, &["memory", "query", "--category", "issues", "--scope", "project"]);
    let resolved = issues["items"].as_array().unwrap().iter().filter(|one| one["content"]["resolved"] == true).count();
    assert_eq!((issues["items"].as_array().unwrap().len(), resolved), (4, 1));
    let insights = data(program, &["memory", "query", "--category", "insights", "--scope", "project"]);
    assert!(
        insights["items"].as_array().unwrap().iter().all(|one| one["createdAtMs"] == 1_767_236_400_000_i64),
        "{insights}"
    );
}

#[test]
fn what_is_no_project_of_cowork_forge_is_named_and_nothing_is_read() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        assert_eq!(program.run(&["init"]).code, Some(0));
        let before = program.run(&["export"]).stdout;
        for (n, (path, content, said)) in [
            (format!("iterations/{FIRST}/data/requirements.json"), "{\n  \"requirements\": [\n    oops", "line 3"),
            (format!("iterations/{FIRST}/data/requirements.json"), r#"{"requirements": "none"}"#, "`requirements`"),
            (format!("iterations/{FIRST}/data/feature_list.json"), "[1, 2]", "objects"),
            (format!("iterations/{FIRST}/data/design_spec.json"), "[]", "an object"),
            (format!("iterations/{FIRST}/data/implementation_plan.json"), r#"{"tasks": {"TASK-001": {}}}"#, "`tasks`"),
            (format!("iterations/{FIRST}/data/implementation_plan.json"), "", "line 1"),
            (format!("iterations/{SECOND}.json"), "42", "an object"),
            (format!("memory/iterations/{FIRST}.json"), "{\"insights\": [", "line 1"),
            ("memory/project/memory.json".to_owned(), r#"{"decisions": 7}"#, "`decisions`"),
            ("project.json".to_owned(), "not JSON", "line 1"),
        ]
        .into_iter()
        .enumerate()
        {
            let project = workspace.beside(&format!("forge-{n}"));
            forge(&project);
            put(&project, &path, content);
            let ran = program.run(&["import", "cowork", &project.display().to_string()]);
            assert!(ran.code == Some(1) && ran.stdout.is_empty(), "{path}: {ran:?}");
            for part in [path.as_str(), said, "nothing was imported from", &project.display().to_string()] {
                assert!(ran.stderr.contains(part), "{part} is not in {}", ran.stderr);
            }
        }
        let latin = workspace.beside("latin");
        forge(&latin);
        put(&latin, &format!("iterations/{FIRST}/artifacts/prd.md"), b"caf\xe9");
        let ran = program.run(&["import", "cowork", &latin.display().to_string()]);
        assert!(ran.code == Some(1) && ran.stderr.contains("artifacts/prd.md cannot be read as text"), "{ran:?}");
        for none in [workspace.root(), workspace.beside("nowhere"), workspace.beside("latin/.cowork-v2/memory/project")]
        {
            let ran = program.run(&["import", "cowork", &none.display().to_string()]);
            assert!(ran.code == Some(2) && ran.stderr.contains("is not a Cowork Forge project"), "{ran:?}");
            let missing =
                "it has no `.cowork-v2/` folder, and no `project.json`, `iterations/` or `memory/` of its own";
            assert!(ran.stderr.contains(missing), "{}", ran.stderr);
        }
        let empty = workspace.beside("empty");
        put(&empty, "notes.md", "none");
        let ran = program.run(&["import", "cowork", &empty.display().to_string()]);
        let missing = "its `.cowork-v2/` folder has no `project.json`, `iterations/` or `memory/`";
        assert!(ran.code == Some(2) && ran.stderr.contains(missing), "{ran:?}");
        assert_eq!(program.run(&["export"]).stdout, before, "nothing was read");
    }
}

#[test]
fn a_folder_that_holds_only_memory_is_read() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let project = workspace.beside("memory-only");
        let decision = json!({ "id": "d-1", "title": "Use SQLite", "decision": "one file", "iteration_id": FIRST });
        put_json(&project, "memory/project/memory.json", &json!({ "decisions": [decision] }));
        for name in [FIRST, SECOND] {
            let learnings = json!([{ "content": format!("learned in {name}") }]);
            put_json(&project, &format!("memory/iterations/{name}.json"), &json!({ "learnings": learnings }));
        }
        let ran = program.run(&["--json", "import", "cowork", &project.display().to_string()]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let told: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(told["imported"]["records"], json!({ "decision": 1, "learning": 2 }), "{told}");
        assert_eq!(told["notes"], json!([]), "{told}");
    }
}
