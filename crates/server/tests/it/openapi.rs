//! The document says what there is, and there is what it says.

use serde_json::Value;
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
