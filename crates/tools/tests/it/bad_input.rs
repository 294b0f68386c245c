//! Arguments that do not fit, generated from each tool's own schema: each is refused whole, says what was expected, and
//! changes nothing.

use serde_json::{Map, Value, json};
use toolhost_contract::{ErrorKind, Outcome, ToolInfo};
use toolhost_testkit::{House, TempWorkspace};

use crate::room::fenced;

async fn furnished() -> House {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\ntwo\n"), ("src/b.rs", "fn b() {}\n")]);
    workspace.write("untracked.txt", "not committed");
    fenced(workspace).build().await
}

/// Arguments that fit, from the first example that gives every required one.
fn good(info: &ToolInfo) -> Map<String, Value> {
    let required = required(info);
    let fits = |arguments: &Map<String, Value>| required.iter().all(|name| arguments.contains_key(name));
    let found = info.examples.iter().map(|e| e.arguments.as_object().unwrap().clone()).find(fits);
    assert!(found.is_some(), "{} has no example with all that it requires", info.name);
    found.unwrap()
}

fn required(info: &ToolInfo) -> Vec<String> {
    let names = info.input_schema["required"].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn properties(info: &ToolInfo) -> Map<String, Value> {
    info.input_schema["properties"].as_object().cloned().unwrap_or_default()
}

/// The violations told of this pointer.
fn violations(outcome: &Outcome, pointer: &str) -> Vec<Value> {
    let error = outcome.error.as_ref().unwrap();
    let all = error.details.as_ref().and_then(|details| details["violations"].as_array().cloned()).unwrap_or_default();
    all.into_iter().filter(|violation| violation["path"] == pointer).collect()
}

fn assert_refused(outcome: &Outcome, pointer: &str, what: &str) {
    assert!(!outcome.ok, "{what} was taken: {outcome:?}");
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::Validation, "{what}: {error:?}");
    let told = violations(outcome, pointer);
    assert!(!told.is_empty(), "{what}: no violation at `{pointer}` in {error:?}");
    for violation in told {
        assert!(!violation["expected"].as_str().unwrap().is_empty(), "{what}: {violation}");
        assert!(!violation["actual"].as_str().unwrap().is_empty(), "{what}: {violation}");
    }
    assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{what}: {error:?}");
    assert!(!error.message.starts_with("the arguments do not fit:"), "{what} was not caught by the schema: {error:?}");
}

/// A value of a type that the schema does not name.
fn of_wrong_type(schema: &Value) -> Value {
    let named = schema.to_string();
    // An object fits none of the fields there are but objects, an integer no object.
    if named.contains("\"object\"") && !named.contains("\"array\"") { json!(7) } else { json!({ "wrong": true }) }
}

/// Rules: 002.44, 002.76.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_type_is_refused_wherever_it_stands() {
    let house = furnished().await;
    let before = house.workspace.snapshot();
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        for (field, schema) in properties(&info) {
            let mut arguments = good(&info);
            arguments.insert(field.clone(), of_wrong_type(&schema));
            let outcome = house.call_rightly(&info, Value::Object(arguments)).await;
            assert_refused(&outcome, &format!("/{field}"), &format!("{}: {field} of a wrong type", info.name));
        }
    }
    assert_eq!(house.workspace.snapshot(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_violation_is_told_at_once() {
    let house = furnished().await;
    let before = house.workspace.snapshot();
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        let wrong: Map<String, Value> =
            properties(&info).iter().map(|(field, schema)| (field.clone(), of_wrong_type(schema))).collect();
        if wrong.is_empty() {
            continue;
        }
        let outcome = house.call_rightly(&info, Value::Object(wrong.clone())).await;
        for field in wrong.keys() {
            assert_refused(&outcome, &format!("/{field}"), &format!("{}: all wrong", info.name));
            let message = &outcome.error.as_ref().unwrap().message;
            assert!(message.contains(field.as_str()), "{}: {field} is not in {message}", info.name);
        }
    }
    assert_eq!(house.workspace.snapshot(), before);
}

/// Rules: 002.44.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_required_must_be_there() {
    let house = furnished().await;
    let before = house.workspace.snapshot();
    let mut checked = 0;
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        for field in required(&info) {
            checked += 1;
            let mut arguments = good(&info);
            arguments.remove(&field);
            let outcome = house.call_rightly(&info, Value::Object(arguments)).await;
            assert_refused(&outcome, &format!("/{field}"), &format!("{} without {field}", info.name));
            let outcome = house.call_rightly(&info, Value::Null).await;
            assert_refused(&outcome, &format!("/{field}"), &format!("{} with null", info.name));
        }
    }
    assert!(checked >= 10, "{checked}");
    assert_eq!(house.workspace.snapshot(), before);
}

/// Rules: 002.44.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_the_schema_does_not_name_is_taken() {
    let house = furnished().await;
    let before = house.workspace.snapshot();
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        let mut arguments = good(&info);
        arguments.insert("zzzzzz".to_owned(), json!(1));
        let outcome = house.call_rightly(&info, Value::Object(arguments)).await;
        assert_refused(&outcome, "/zzzzzz", &format!("{} with another field", info.name));
        assert!(violations(&outcome, "/zzzzzz")[0]["nearest"].is_null(), "{outcome:?}");
    }
    assert_eq!(house.workspace.snapshot(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_field_is_told_its_nearest_name() {
    let house = furnished().await;
    let before = house.workspace.snapshot();
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        for field in properties(&info).keys() {
            // The last two letters change places; in a short name the last one is doubled.
            let (head, tail) = field.split_at(field.len() - 2);
            let swapped: String = tail.chars().rev().collect();
            let double = swapped == tail || field.len() < 4;
            let misspelt = if double { format!("{field}{}", &tail[1..]) } else { format!("{head}{swapped}") };
            let mut arguments = good(&info);
            let value = arguments.remove(field).unwrap_or(json!("x"));
            arguments.insert(misspelt.clone(), value);
            let outcome = house.call_rightly(&info, Value::Object(arguments)).await;
            assert_refused(&outcome, &format!("/{misspelt}"), &format!("{}: {misspelt}", info.name));
            let near = violations(&outcome, &format!("/{misspelt}"))[0]["nearest"].clone();
            let near = near.as_str().unwrap_or_default();
            let name = format!("`{field}`");
            // Of `path` and `paths` the shorter one can come first.
            let has_twin = properties(&info).keys().any(|other| other != field && field.starts_with(other.as_str()));
            let is_told = if has_twin { near.contains(&name) } else { near.starts_with(&name) };
            assert!(is_told, "{}: {misspelt} is near {near}", info.name);
            assert!(outcome.text.contains(&format!("did you mean {near}")), "{}", outcome.text);
        }
    }
    assert_eq!(house.workspace.snapshot(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_an_object() {
    let house = furnished().await;
    let before = house.workspace.snapshot();
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        for wrong in [json!([]), json!([{"path": "a.txt"}]), json!("a.txt"), json!(7), json!(true)] {
            let outcome = house.call_rightly(&info, wrong.clone()).await;
            assert_refused(&outcome, "", &format!("{} with {wrong}", info.name));
        }
    }
    assert_eq!(house.workspace.snapshot(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_objects_are_closed_too() {
    let house = furnished().await;
    let before = house.workspace.snapshot();
    let edit =
        |replacement: Value| json!({ "path": "a.txt", "edits": [{"search": "one", "replace": "1"}, replacement] });
    for (replacement, pointer) in [
        (json!({"search": "two"}), "/edits/1/replace"),
        (json!({"search": "two", "replace": 2}), "/edits/1/replace"),
        (json!({"search": "two", "replace": "2", "al": true}), "/edits/1/al"),
        (json!({"search": "", "replace": "2"}), "/edits/1/search"),
        (json!("two"), "/edits/1"),
    ] {
        let outcome = house.call("file.edit", edit(replacement.clone())).await;
        assert_refused(&outcome, pointer, &replacement.to_string());
    }
    let near = house.call("file.edit", edit(json!({"search": "two", "replace": "2", "al": true}))).await;
    assert_eq!(violations(&near, "/edits/1/al")[0]["nearest"], "`all`", "{near:?}");
    assert_eq!(house.workspace.snapshot(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_beyond_a_bound_is_told_the_bound() {
    let house = furnished().await;
    for (tool, arguments, pointer, expected) in [
        ("file.read", json!({"path": "a.txt", "offset": -1}), "/offset", "at least 0"),
        ("file.search", json!({"pattern": "x", "limit": 1001}), "/limit", "at most 1000"),
        ("file.search", json!({"pattern": ""}), "/pattern", "at least 1 characters"),
        ("file.edit", json!({"path": "a.txt", "edits": []}), "/edits", "at least 1 items"),
        ("git.log", json!({"limit": 501}), "/limit", "at most 500"),
        ("bash", json!({"command": "true", "timeoutMs": 0}), "/timeoutMs", "at least 1"),
        ("file.read", json!({"path": "a.txt", "view": "headtale"}), "/view", "one of full, headTail, outline, fit"),
    ] {
        let outcome = house.call(tool, arguments.clone()).await;
        assert_refused(&outcome, pointer, &format!("{tool} {arguments}"));
        assert_eq!(violations(&outcome, pointer)[0]["expected"], expected, "{outcome:?}");
    }
    let view = house.call("file.read", json!({"path": "a.txt", "view": "headtale"})).await;
    assert_eq!(violations(&view, "/view")[0]["nearest"], "`headTail`", "{view:?}");
}

/// JSON Schema takes 1.0 for an integer, and some clients write every number so.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_number_that_is_written_as_a_float_is_taken() {
    let house = furnished().await;
    let read = |limit: Value| house.call("file.read", json!({ "path": "a.txt", "limit": limit }));
    let (float, whole) = (read(json!(1.0)).await, read(json!(1)).await);
    assert!(float.ok, "{float:?}");
    assert_eq!(float.data, whole.data);
    assert_refused(&read(json!(1.5)).await, "/limit", "half a line");
}
