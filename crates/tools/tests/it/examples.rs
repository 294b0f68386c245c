//! Every example of every tool does what it says.

use serde_json::Value;
use toolhost_contract::{Answer, CallerKind, Example, Expect, Outcome};
use toolhost_host::{Presented, Shown};
use toolhost_store::AskKind;
use toolhost_testkit::{TempWorkspace, said};

use crate::room::fenced;

/// Allows every call, and is not there for anything else.
fn allows_calls(shown: &Shown) -> Presented {
    if shown.kind == AskKind::Approval { said(Answer::Allow) } else { Presented::Gone }
}

/// Rules: 002.15, 002.16, 002.17, 002.18, 002.19, 002.21, 002.22, 002.30, 004.30.
#[tokio::test(flavor = "multi_thread")]
async fn every_example_comes_to_what_it_says() {
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        assert!(!info.examples.is_empty(), "{} has no example", info.name);
        for example in &info.examples {
            let workspace = TempWorkspace::new();
            for (path, content) in example.files {
                workspace.write(path, content);
            }
            let house = fenced(workspace).person(allows_calls).build().await;
            for (tool, arguments) in example.before {
                let mut call = house.request(tool, serde_json::from_str(arguments).unwrap());
                call.caller.kind = CallerKind::Person;
                let outcome = house.run(call).await;
                assert!(outcome.ok, "{}: {}: before it, {tool}: {outcome:?}", info.name, example.says);
            }
            let outcome = house.call_rightly(&info, example.arguments.clone()).await;
            check(&info.name, example, &outcome);
            check_tool_result(&info.name, &outcome);
            if outcome.ok {
                let validator = jsonschema::draft202012::new(&info.output_schema.value()).unwrap();
                let errors: Vec<String> = validator.iter_errors(&outcome.data).map(|e| e.to_string()).collect();
                assert!(errors.is_empty(), "{}: {}: {errors:?}", info.name, example.says);
            }
        }
    }
}

/// Every outcome of every tool has Bonsai's form as well: `{output, error?, metadata?}`.
fn check_tool_result(tool: &str, outcome: &Outcome) {
    let result = serde_json::to_value(outcome.tool_result()).unwrap();
    let fields = result.as_object().unwrap();
    let metadata = fields["metadata"].as_object().unwrap();
    if let Some(error) = &outcome.error {
        assert_eq!((fields.len(), &fields["output"]), (3, &Value::from("")), "{tool}: {result}");
        let text = fields["error"].as_str().unwrap();
        assert!(text.starts_with(&error.message), "{tool}: {result}");
        assert!(error.hint.as_ref().is_none_or(|hint| text.ends_with(hint)), "{tool}: {result}");
        assert_eq!(
            (&metadata["code"], &metadata["kind"]),
            (&error.code.as_str().into(), &to_json(error.kind)),
            "{tool}"
        );
    } else {
        assert_eq!((fields.len(), &fields["output"]), (2, &Value::from(outcome.text.as_str())), "{tool}: {result}");
        assert_eq!(Some(metadata), outcome.data.as_object(), "{tool}: {result}");
    }
}

fn to_json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn check(tool: &str, example: &Example, outcome: &Outcome) {
    let place = format!("{tool}: {}", example.says);
    match &example.expect {
        Expect::Fails(kind) => {
            assert_eq!(outcome.error.as_ref().map(|error| error.kind), Some(*kind), "{place}: {outcome:?}");
        }
        Expect::Data(info) => {
            assert!(outcome.ok, "{place}: {outcome:?}");
            assert!(!info.is_empty(), "{place} expects nothing");
            for (pointer, expected) in *info {
                let expected: Value = serde_json::from_str(expected).unwrap();
                assert_eq!(outcome.data.pointer(pointer), Some(&expected), "{place}: {pointer} of {}", outcome.data);
            }
        }
    }
}
