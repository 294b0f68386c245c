//! The published schemas.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolhost_builder::schema;

#[test]
fn each_schema_compiles_and_has_an_id_of_its_own() {
    let mut ids = BTreeSet::new();
    for published in schema::ALL {
        let value = published.value();
        drop(published.compiled());
        assert_eq!(value["$schema"], "https://json-schema.org/draft/2020-12/schema", "{}", published.name);
        assert!(ids.insert(value["$id"].as_str().unwrap().to_owned()), "{}", published.name);
    }
}

#[test]
fn each_field_is_described_and_objects_are_closed_unless_said() {
    fn walk(name: &str, value: &Value) {
        for (field, schema) in value.get("properties").and_then(Value::as_object).into_iter().flatten() {
            // Conditions name fields again, to narrow them.
            if schema.get("const").is_none() && schema.as_object().is_some_and(|s| s.keys().ne(["required"].iter())) {
                assert!(schema["description"].is_string(), "{name}: `{field}` is not described");
            }
            if schema["type"] == "object" {
                assert!(schema["additionalProperties"].is_boolean(), "{name}: `{field}` does not say if it is closed");
            }
            walk(name, schema);
        }
        if let Some(items) = value.get("items") {
            walk(name, items);
        }
    }
    for published in schema::ALL {
        walk(published.name, &published.value());
    }
}

#[test]
fn a_change_set_follows_its_contract() {
    let set = |operation: Value| json!({ "schemaVersion": "1.0", "targetType": "step", "mode": "optimize", "operations": [operation] });
    let compiled = schema::CHANGE_SET.compiled();
    let check = |operation: Value, expected: &[&str]| {
        let found = compiled.findings("set", &set(operation.clone()));
        assert_eq!(found.iter().map(|f| f.pointer.as_str()).collect::<Vec<_>>(), expected, "{operation} {found:#?}");
    };
    let step = json!({ "workflowId": "main", "nodeId": "a" });
    check(json!({ "op": "upsert", "targetType": "step", "target": step, "payload": { "step_markdown": "" } }), &[]);
    check(
        json!({ "op": "upsert", "targetType": "step", "target": step, "payload": {} }),
        &["/operations/0/payload/step_markdown"],
    );
    check(json!({ "op": "delete", "targetType": "asset", "target": { "path": "assets/a.md" } }), &[]);
    check(json!({ "op": "upsert", "targetType": "step", "target": step }), &["/operations/0/payload"]);
    check(
        json!({ "op": "delete", "targetType": "step", "target": step, "payload": { "step_markdown": "" } }),
        &["/operations/0/payload"],
    );
    check(
        json!({ "op": "delete", "targetType": "agent", "target": { "agentId": "a", "path": "assets/a.md" } }),
        &["/operations/0/target/path"],
    );
    check(json!({ "op": "move", "targetType": "step", "target": step }), &["/operations/0/op"]);
    check(
        json!({ "op": "delete", "targetType": "step", "target": { "workflowId": "main" } }),
        &["/operations/0/target/nodeId"],
    );
    check(
        json!({ "op": "delete", "targetType": "agent", "target": { "agentId": 7 } }),
        &["/operations/0/target/agentId"],
    );
    let mut old = set(json!({ "op": "delete", "targetType": "step", "target": step }));
    old["schemaVersion"] = json!("2.0");
    assert_eq!(compiled.findings("set", &old)[0].code, "SCHEMA_VERSION");
}

#[test]
fn an_asset_follows_its_schema_as_it_follows_the_rules() {
    let compiled = schema::ASSET.compiled();
    for path in
        ["assets/a.md", "assets/b/c-1.yml", "assets/a.sh", "assets/../a.md", "assets//a.md", "x/a.md", "assets/a b.md"]
    {
        let by_schema = compiled.findings("asset", &json!({ "path": path, "content": "" })).is_empty();
        assert_eq!(by_schema, toolhost_builder::asset_path_problem(path).is_none(), "{path}");
    }
}
