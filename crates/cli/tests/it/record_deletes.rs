//! A person who allows the delete of a record sees what goes with it, and nothing else goes.

use serde_json::json;
use toolhost_testkit::TempWorkspace;

use crate::room::program;

const RULES: &str = "[[profiles.all.rules]]\ntool = '*.delete'\ndecide = 'ask'\nwhy = 'test'\n";

#[test]
fn only_what_a_person_saw_is_deleted() {
    let workspace = TempWorkspace::new();
    workspace.write_beside("operator.toml", RULES);
    let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    let call = |tool: &str, arguments: serde_json::Value| {
        program.run(&["--json", "call", tool, &arguments.to_string(), "--profile", "all"])
    };
    let (delete, arguments) = ("ticket.delete", json!({ "id": "TKT-001", "cascade": true }));
    assert_eq!(call("ticket.create", json!({ "title": "Pay the bill", "description": "soon" })).code, Some(0));
    assert_eq!(call("comment.post", json!({ "ticketId": "TKT-001", "content": "first" })).code, Some(0));

    assert_eq!(call(delete, arguments.clone()).code, Some(3));
    let shown = program.run(&["review", "show", "ask-1"]).stdout;
    for told in
        ["delete TKT-001 (Pay the bill), and 1 more that cannot be without it", "goes: TKT-001, version 1", "first"]
    {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let changes: [(&str, serde_json::Value); 2] = [
        ("ticket.update", json!({ "ticketId": "TKT-001", "description": "it is paid: keep the number 4711" })),
        ("comment.post", json!({ "ticketId": "TKT-001", "content": "second" })),
    ];
    for (n, (tool, change)) in changes.into_iter().enumerate() {
        let ask = format!("ask-{}", n + 1);
        assert_eq!(program.run(&["review", "decide", &ask, "--allow"]).code, Some(0));
        assert_eq!(call(tool, change).code, Some(0));
        let asked = call(delete, arguments.clone());
        assert_eq!(asked.code, Some(3), "after {tool}: {asked:?}");
        assert_eq!(asked.json()["data"]["approvalId"], format!("ask-{}", n + 2), "after {tool}: {asked:?}");
    }
    assert_eq!(program.run(&["review", "decide", "ask-3", "--allow"]).code, Some(0));
    let done = call(delete, arguments).json();
    assert_eq!(done["ok"], true, "{done}");
    assert_eq!(done["data"]["deleted"].as_array().map(Vec::len), Some(3), "{done}");
}

/// What cannot be deleted is refused before anybody is asked.
#[test]
fn nobody_is_asked_about_a_delete_that_cannot_be() {
    let workspace = TempWorkspace::new();
    workspace.write_beside("operator.toml", RULES);
    let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    for tool in ["ticket", "requirement", "feature", "task", "component", "milestone", "persona"] {
        let arguments = match tool {
            "ticket" => r#"{"id":"TKT-007"}"#,
            "requirement" => r#"{"id":"REQ-007"}"#,
            "feature" => r#"{"id":"FEAT-007"}"#,
            "task" => r#"{"id":"TASK-007"}"#,
            "component" => r#"{"id":"COMP-007"}"#,
            "milestone" => r#"{"id":"MILE-007"}"#,
            _ => r#"{"id":"nobody"}"#,
        };
        let refused = program.run(&["--json", "call", &format!("{tool}.delete"), arguments, "--profile", "all"]);
        assert_eq!(refused.code, Some(1), "{tool}: {refused:?}");
    }
    let asked = program.run(&["--json", "review", "list"]).stdout;
    assert!(!asked.contains("ask-1"), "{asked}");
}
