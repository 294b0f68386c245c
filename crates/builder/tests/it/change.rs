//! The contract of a set of changes: what it takes, and what it says of what it does not.

use serde_json::{Value, json};
use toolhost_builder::change::{
    ChangeSet, LEGACY, Op, Operation, Payload, Revision, SCHEMA_UNSUPPORTED, VIOLATION, impact, parse,
};
use toolhost_builder::limits::{FILE_BYTES_MAX, OPERATIONS_MAX};
use toolhost_builder::refs::Object;

/// A set of these operations.
pub(crate) fn set(operations: Value) -> Value {
    json!({ "schemaVersion": "1.0", "targetType": "step", "mode": "optimize", "operations": operations })
}

pub(crate) fn upsert(kind: &str, target: Value, payload: Value) -> Value {
    json!({ "op": "upsert", "targetType": kind, "target": target, "payload": payload })
}

pub(crate) fn delete(kind: &str, target: Value) -> Value {
    json!({ "op": "delete", "targetType": kind, "target": target })
}

pub(crate) fn asset(path: &str, content: &str) -> Value {
    upsert("asset", json!({ "path": path }), json!({ "content": content }))
}

pub(crate) fn step(node: &str, text: &str) -> Value {
    upsert("step", json!({ "workflowId": "main", "nodeId": node }), json!({ "step_markdown": text }))
}

pub(crate) fn graph(graph: Value) -> Value {
    upsert("workflow", json!({ "workflowId": "main" }), json!({ "graph_json": graph }))
}

pub(crate) fn agent(id: &str, definition: Value) -> Value {
    upsert("agent", json!({ "agentId": id }), json!({ "agent_definition": definition }))
}

pub(crate) fn parsed(operations: Value) -> ChangeSet {
    parse(&set(operations)).unwrap().set
}

pub(crate) fn operation(value: Value) -> Operation {
    parsed(json!([value])).operations.remove(0)
}

/// Each kind of object, both ways.
fn all() -> Value {
    set(json!([
        upsert(
            "workflow",
            json!({ "workflowId": "w" }),
            json!({ "workflow_md": "a", "graph_json": {}, "path": "w/a.md",
            "graphPath": "w/g.json", "displayName": "W", "description": "d", "tags": ["t"] })
        ),
        upsert(
            "step",
            json!({ "workflowId": "w", "nodeId": "n" }),
            json!({ "step_markdown": "", "path": "w/steps/n.md" })
        ),
        agent("a", json!({ "id": "a", "x": [1.5, null] })),
        asset("assets/a.md", "text"),
        delete("workflow", json!({ "workflowId": "v" })),
        delete("step", json!({ "workflowId": "w", "nodeId": "m" })),
        delete("agent", json!({ "agentId": "b" })),
        delete("asset", json!({ "path": "assets/b.md" })),
    ]))
}

/// Rules: 001.63.
#[test]
fn a_set_comes_back_as_it_was_written() {
    let mut value = all();
    value["operations"][3]["reason"] = json!("because");
    value["extensions"] = json!({ "any": [{}] });
    value["revisions"] = json!({ "workflowRevision": "a".repeat(64) });
    value["impact"] = json!({ "objects": ["step:n"] });
    let parsed = parse(&value).unwrap();
    assert_eq!(parsed.warnings, []);
    assert_eq!(parsed.set.to_value(), value);
    let last = &parsed.set.operations[3];
    assert_eq!((last.op, &last.object), (Op::Upsert, &Object::Asset("assets/a.md".to_owned())));
    assert_eq!(last.payload, Some(Payload::Asset("text".to_owned())));
}

/// The whole set with one value changed, or without it, is refused at this place among others.
fn check(pointer: &str, value: Option<Value>, expected: &str) {
    let mut broken = all();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match (broken.pointer_mut(parent).unwrap(), value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(name.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(name)),
        (Value::Array(items), Some(value)) => items[name.parse::<usize>().unwrap()] = value,
        _ => unreachable!(),
    }
    let refused = parse(&broken).unwrap_err();
    assert_eq!(refused.code, VIOLATION, "{pointer}");
    let paths: Vec<&str> = refused.errors.iter().map(|error| error.path.as_str()).collect();
    assert!(paths.contains(&expected), "{pointer}: {paths:?}");
    assert!(refused.errors.iter().all(|error| !error.message.is_empty() && !error.code.is_empty()));
}

/// Rules: 001.63.
#[test]
fn each_break_of_the_contract_is_told_at_its_place() {
    for name in ["schemaVersion", "targetType", "mode", "operations"] {
        check(&format!("/{name}"), None, name);
        check(&format!("/{name}"), Some(json!(7)), name);
    }
    check("/schemaVersion", Some(json!(1.0)), "schemaVersion");
    check("/schemaVersion", Some(json!("1")), "schemaVersion");
    check("/schemaVersion", Some(json!("new")), "schemaVersion");
    check("/targetType", Some(json!("Step")), "targetType");
    check("/mode", Some(json!("edit")), "mode");
    check("/operations", Some(json!([])), "operations");
    check(
        "/operations",
        Some(json!(vec![delete("agent", json!({ "agentId": "a" })); OPERATIONS_MAX + 1])),
        "operations",
    );
    check("/more", Some(json!(1)), "more");
    check("/impact", Some(json!({ "objects": "step" })), "impact.objects");
    check("/impact", Some(json!({ "more": 1 })), "impact.more");
    check("/revisions", Some(json!({ "workflowRevision": "1" })), "revisions.workflowRevision");
    check("/revisions", Some(json!({ "more": 1 })), "revisions.more");
    check("/extensions", Some(json!([])), "extensions");
}

#[test]
fn an_operation_that_is_none_is_told_without_what_follows_from_it() {
    let mut value = set(json!([asset("assets/a.md", "x")]));
    value["operations"][0]["op"] = json!("create");
    let refused = parse(&value).unwrap_err();
    let places: Vec<&str> = refused.errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(places, ["operations[0].op"], "{refused:#?}");
}

#[test]
fn each_break_of_an_operation_is_told_at_its_place() {
    for (index, ids) in
        [vec!["workflowId"], vec!["workflowId", "nodeId"], vec!["agentId"], vec!["path"]].iter().enumerate()
    {
        let at = format!("/operations/{index}");
        let shown = format!("operations[{index}]");
        for name in ["op", "targetType", "target", "payload"] {
            check(&format!("{at}/{name}"), None, &format!("{shown}.{name}"));
            check(&format!("{at}/{name}"), Some(json!(true)), &format!("{shown}.{name}"));
        }
        check(&format!("{at}/more"), Some(json!(1)), &format!("{shown}.more"));
        check(&format!("{at}/reason"), Some(json!(1)), &format!("{shown}.reason"));
        check(&format!("{at}/payload/more"), Some(json!(1)), &format!("{shown}.payload.more"));
        check(
            &format!("{at}/payload"),
            Some(json!({})),
            &if index == 0 {
                format!("{shown}.payload")
            } else {
                format!("{shown}.payload.{}", ["", "step_markdown", "agent_definition", "content"][index])
            },
        );
        check(&format!("{at}/target/more"), Some(json!("x")), &format!("{shown}.target.more"));
        let other = if ids.contains(&"agentId") { "path" } else { "agentId" };
        check(&format!("{at}/target/{other}"), Some(json!("x")), &format!("{shown}.target.{other}"));
        for id in ids {
            check(&format!("{at}/target/{id}"), None, &format!("{shown}.target.{id}"));
            check(&format!("{at}/target/{id}"), Some(json!(7)), &format!("{shown}.target.{id}"));
        }
        check(
            &format!("/operations/{}/payload", index + 4),
            Some(json!({})),
            &format!("operations[{}].payload", index + 4),
        );
    }
    for (pointer, shown) in [
        ("0/payload/workflow_md", "[0].payload.workflow_md"),
        ("0/payload/graph_json", "[0].payload.graph_json"),
        ("0/payload/tags", "[0].payload.tags"),
        ("1/payload/step_markdown", "[1].payload.step_markdown"),
        ("2/payload/agent_definition", "[2].payload.agent_definition"),
        ("3/payload/content", "[3].payload.content"),
    ] {
        check(&format!("/operations/{pointer}"), Some(json!(7)), &format!("operations{shown}"));
        check(&format!("/operations/{pointer}"), Some(Value::Null), &format!("operations{shown}"));
    }
    check("/operations/2/payload/agent_definition/id", Some(json!("b")), "operations[2].payload.agent_definition.id");
}

#[test]
fn another_major_version_is_not_supported_whatever_else_is_there() {
    for version in ["2.0", "0.9", "10.1", "2"] {
        let refused = parse(&json!({ "schemaVersion": version, "what": "ever" })).unwrap_err();
        assert_eq!((refused.code, refused.errors[0].path.as_str()), (SCHEMA_UNSUPPORTED, "schemaVersion"), "{version}");
    }
    let mut later = all();
    later["schemaVersion"] = json!("1.7");
    assert!(parse(&later).is_ok());
}

#[test]
fn an_object_comes_once_or_is_deleted_and_made_again() {
    let (make, drop) = (asset("assets/a.md", ""), delete("asset", json!({ "path": "assets/a.md" })));
    assert!(parse(&set(json!([drop, make]))).is_ok());
    for wrong in [json!([make, make]), json!([drop, drop]), json!([make, drop]), json!([drop, make, drop])] {
        let refused = parse(&set(wrong.clone())).unwrap_err();
        assert_eq!(refused.errors[0].code, "OPERATION_DUPLICATE", "{wrong}");
        assert_eq!(refused.errors[0].path, format!("operations[{}]", wrong.as_array().unwrap().len() - 1));
    }
}

#[test]
fn a_text_that_no_file_may_hold_is_refused_before_it_is_staged() {
    let full = "x".repeat(FILE_BYTES_MAX);
    assert!(parse(&set(json!([asset("assets/a.md", &full)]))).is_ok());
    for (operation, field) in
        [(asset("assets/a.md", &format!("{full}x")), "content"), (step("begin", &format!("{full}x")), "step_markdown")]
    {
        let refused = parse(&set(json!([asset("assets/b.md", ""), operation]))).unwrap_err();
        let found = &refused.errors[0];
        assert_eq!(
            (found.code.as_str(), found.path.as_str()),
            ("FILE_TOO_LARGE", &*format!("operations[1].payload.{field}"))
        );
    }
}

#[test]
fn the_old_shape_is_taken_with_a_warning() {
    let old = json!({
        "workflowId": "main",
        "steps": [{ "nodeId": "a", "markdown": "A" }, { "workflowId": "w", "nodeId": "b", "content": "B" }],
        "assets": [{ "path": "assets/a.md", "content": "text" }],
    });
    let parsed = parse(&old).unwrap();
    assert_eq!(parsed.warnings.iter().map(|w| w.code.as_str()).collect::<Vec<_>>(), [LEGACY]);
    let objects: Vec<String> = parsed.set.operations.iter().map(|o| o.object.to_string()).collect();
    assert_eq!(objects, ["step:main/a", "step:w/b", "asset:assets/a.md"]);
    assert_eq!(parse(&parsed.set.to_value()).unwrap().set, parsed.set);
    let place = |value: Value| parse(&value).unwrap_err().errors[0].path.clone();
    assert_eq!(place(json!({ "steps": [{ "nodeId": "a", "content": "" }] })), "operations[0].target.workflowId");
    assert_eq!(place(json!({ "steps": [], "more": 1 })), "operations");
    assert_eq!(place(json!({ "assets": [7] })), "operations[0].target.path");
}

#[test]
fn a_revision_that_is_a_number_is_taken_and_told() {
    let mut old = all();
    old["revisions"] = json!({ "workflowRevision": 3, "agentsRevision": null });
    let parsed = parse(&old).unwrap();
    assert_eq!(parsed.set.revisions.workflow_revision, Some(Revision::Number(3)));
    assert_eq!(parsed.warnings[0].code, "REVISION_UNKNOWN");
}

#[test]
fn hostile_sets_are_refused_and_not_followed() {
    let mut deep = json!("x");
    for _ in 0..1_000 {
        deep = json!([deep]);
    }
    let mut set = all();
    set["extensions"] = json!({ "deep": deep });
    assert_eq!(parse(&set).unwrap_err().errors[0].code, "TOO_DEEP");
    set["extensions"] = json!({ "long": "x".repeat(8 * 1024 * 1024) });
    assert_eq!(parse(&set).unwrap_err().errors[0].code, "SET_TOO_LARGE");
    for odd in [json!(null), json!([]), json!("{}"), json!(7), json!({ "operations": { "0": {} } })] {
        assert_eq!(parse(&odd).unwrap_err().code, VIOLATION, "{odd}");
    }
}

#[test]
fn an_impact_is_what_the_operations_are() {
    let check = |operations: Value, objects: &[&str], flags: &[&str]| {
        let found = impact(&parsed(operations).operations);
        assert_eq!(
            (found.objects, found.risk_flags),
            (objects.iter().map(|o| (*o).to_owned()).collect(), flags.iter().map(|f| (*f).to_owned()).collect())
        );
        assert_eq!(found.requires_confirmation, !flags.is_empty());
    };
    check(json!([step("a", "")]), &["step:a"], &[]);
    check(json!([step("a", ""), asset("assets/a.md", "")]), &["step:a", "asset:assets/a.md"], &["cross-object"]);
    check(json!([delete("agent", json!({ "agentId": "b" }))]), &["agent:b"], &["deletes"]);
    check(json!([graph(json!({}))]), &["workflow:main"], &["graph-change"]);
    let many: Vec<Value> = (0..5).map(|n| step(&n.to_string(), "")).collect();
    check(json!(many), &["step:0", "step:1", "step:2", "step:3", "step:4"], &["high-churn"]);
}
