//! Every example of every tool does what it says.

use serde_json::Value;
use toolhost_contract::{Answer, CallerKind, Example, Expect, Outcome};
use toolhost_host::{Presented, Shown};
use toolhost_store::AskKind;
use toolhost_testkit::{TempWorkspace, said};

use crate::room::house;

/// Allows every call, and is not there for anything else.
fn allows_calls(shown: &Shown) -> Presented {
    if shown.kind == AskKind::Approval { said(Answer::Allow) } else { Presented::Gone }
}

/// Rules: 002.15, 002.16, 002.17, 002.18, 002.19, 002.21, 002.22, 002.30.
#[tokio::test(flavor = "multi_thread")]
async fn every_example_comes_to_what_it_says() {
    for tool in toolhost_tools::all(&toolhost_store::Records::nowhere()) {
        let facts = tool.facts();
        assert!(!facts.examples.is_empty(), "{} has no example", facts.name);
        for example in &facts.examples {
            let workspace = TempWorkspace::new();
            for (path, content) in example.files {
                workspace.write(path, content);
            }
            let house = house(workspace).person(allows_calls).build().await;
            for (tool, arguments) in example.before {
                let mut call = house.request(tool, serde_json::from_str(arguments).unwrap());
                call.caller.kind = CallerKind::Person;
                let outcome = house.run(call).await;
                assert!(outcome.ok, "{}: {}: before it, {tool}: {outcome:?}", facts.name, example.says);
            }
            let outcome = house.call_rightly(&facts, example.arguments.clone()).await;
            check(&facts.name, example, &outcome);
            if outcome.ok {
                let validator = jsonschema::draft202012::new(&facts.output_schema.value()).unwrap();
                let errors: Vec<String> = validator.iter_errors(&outcome.data).map(|e| e.to_string()).collect();
                assert!(errors.is_empty(), "{}: {}: {errors:?}", facts.name, example.says);
            }
        }
    }
}

fn check(tool: &str, example: &Example, outcome: &Outcome) {
    let place = format!("{tool}: {}", example.says);
    match &example.expect {
        Expect::Fails(kind) => {
            assert_eq!(outcome.error.as_ref().map(|error| error.kind), Some(*kind), "{place}: {outcome:?}");
        }
        Expect::Data(facts) => {
            assert!(outcome.ok, "{place}: {outcome:?}");
            assert!(!facts.is_empty(), "{place} expects nothing");
            for (pointer, expected) in *facts {
                let expected: Value = serde_json::from_str(expected).unwrap();
                assert_eq!(outcome.data.pointer(pointer), Some(&expected), "{place}: {pointer} of {}", outcome.data);
            }
        }
    }
}
