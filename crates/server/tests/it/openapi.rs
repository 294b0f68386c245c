//! The document says what there is, and there is what it says.

use jsonschema::Registry;
use serde_json::{Value, json};
use toolhost_server::http::openapi;

use crate::rig::Rig;

#[tokio::test]
async fn every_operation_of_the_document_is_there_and_no_other_method() {
    let rig = Rig::one().await;
    let token = rig.token(&[]).await;
    let document = rig.send(&token, ("GET", "/api/v1/openapi.json"), "").await.json();
    assert_eq!(document, openapi("1.2.3"));
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 10, "{paths:?}");
    for (path, operations) in paths {
        let target = path.replace("{project}", "p0").replace(['{', '}'], "");
        for method in ["get", "post", "delete", "put", "patch"] {
            let reply = rig.send(&token, (&method.to_uppercase(), &target), "{}").await;
            let is_there = reply.status != 405;
            assert_eq!(is_there, operations.get(method).is_some(), "{method} {path}: {reply:?}");
            assert!(!reply.body.contains("nothing at this address"), "{method} {path}");
        }
    }
}

#[test]
fn each_operation_has_a_name_of_its_own_and_each_reference_leads_somewhere() {
    let document = openapi("1");
    let mut names = Vec::new();
    for operation in document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values())
    {
        names.push(operation["operationId"].as_str().unwrap());
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{operation}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}

/// What the OpenAPI Initiative's schema of documents of this version finds.
fn official_findings(document: &Value) -> Vec<String> {
    let file = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let base = file(include_str!("../oas-3.1/schema-base.json"));
    let others = [
        file(include_str!("../oas-3.1/schema.json")),
        file(include_str!("../oas-3.1/dialect.json")),
        file(include_str!("../oas-3.1/meta.json")),
    ];
    let mut registry = Registry::new();
    for other in others {
        let id = other["$id"].as_str().unwrap().to_owned();
        registry = registry.add(id, other).unwrap();
    }
    let registry = registry.prepare().unwrap();
    let validator = jsonschema::options().with_registry(&registry).build(&base).unwrap();
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_document_is_one_of_openapi_3_1() {
    assert_eq!(official_findings(&openapi("1.2.3")), Vec::<String>::new());
}

#[test]
fn what_is_no_document_of_openapi_3_1_is_found() {
    let at = "/paths/~1api~1v1~1projects~1{project}~1asks/get";
    let cases = [
        ("/info/version", json!(1)),
        ("/openapi", json!("4.0.0")),
        (&format!("{at}/parameters/0/in"), json!("somewhere")),
        (&format!("{at}/responses/200/description"), Value::Null),
        ("/components/securitySchemes/token/type", json!("password")),
        // In the schemas, too.
        ("/components/schemas/Problem/type", json!("map")),
        ("/components/schemas/Problem/required", json!("ok")),
    ];
    for (pointer, wrong) in cases {
        let mut document = openapi("1.2.3");
        *document.pointer_mut(pointer).unwrap() = wrong;
        assert!(!official_findings(&document).is_empty(), "{pointer}");
    }
}

#[test]
fn each_example_is_as_its_schema_says() {
    let document = openapi("1.2.3");
    let mut found = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for example in schema["examples"].as_array().into_iter().flatten() {
            let mut whole = schema.clone();
            whole["components"] = document["components"].clone();
            let validator = jsonschema::draft202012::new(&whole).unwrap();
            let problems: Vec<String> = validator.iter_errors(example).map(|error| error.to_string()).collect();
            assert_eq!(problems, Vec::<String>::new(), "{name}");
            found += 1;
        }
    }
    assert!(found >= 4, "{found}");
}

#[tokio::test]
async fn each_operation_refuses_a_token_without_its_right() {
    let rig = Rig::one().await;
    let all = ["call", "read", "run", "approve", "manage"];
    for lacking in all {
        let others: Vec<&str> = all.into_iter().filter(|right| *right != lacking).collect();
        let token = rig.token_of(0, lacking, &["all"], &others).await;
        for (path, operations) in openapi("1.2.3")["paths"].as_object().unwrap() {
            let target = path.replace("{project}", "p0").replace(['{', '}'], "");
            for (method, operation) in operations.as_object().unwrap() {
                if operation["x-right"] != lacking {
                    continue;
                }
                let reply = rig.send(&token, (&method.to_uppercase(), &target), "{}").await;
                assert_eq!(reply.status, 403, "{method} {path}: {reply:?}");
                let message = format!("no right to {lacking}");
                assert!(reply.body.contains(&message), "{method} {path}: {reply:?}");
            }
        }
    }
    // Whoever has a token sees which projects it opens and what describes the API, and nothing else.
    let free: Vec<String> = openapi("1.2.3")["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, operations)| operations.as_object().unwrap().iter().map(move |operation| (path, operation)))
        .filter(|(_, (_, operation))| operation["x-right"].is_null())
        .map(|(path, _)| path.replace("/api/v1", ""))
        .collect();
    assert_eq!(free, ["/openapi.json", "/projects", "/projects/{project}", "/schemas", "/schemas/{schema}"]);
}
