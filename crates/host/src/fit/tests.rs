//! What is taken as it was meant, and what stays as it was sent.

use serde_json::json;
use toolhost_contract::{CommandArgument, Effect, Facts, Meaning, OtherName, Packed};

use super::*;

const NAMES: &[OtherName] = &[
    OtherName::argument("file_path", "path"),
    OtherName::argument("start_line", "offset"),
    OtherName::means("end_line", Meaning::LastLine { first: "offset", count: "limit" }),
    OtherName::means("view_range", Meaning::Lines { first: "offset", count: "limit" }),
    OtherName::means("timeout", Meaning::Time("timeoutMs")),
    OtherName::means("timeout_seconds", Meaning::Seconds("timeoutMs")),
    OtherName::means("case_sensitive", Meaning::Not("ignoreCase")),
    OtherName::anyway("encoding", "utf-8"),
    OtherName::field("old_string", "edits", "search"),
    OtherName::field("new_string", "edits", "replace"),
    OtherName::field("replace_all", "edits", "all"),
];

fn tool() -> ToolInfo {
    let facts = Facts {
        effect: Effect::Executes,
        paths: &["path", "files"],
        command: Some(CommandArgument { name: "command", input: "stdin" }),
        dry_run: Some("dryRun"),
        ..toolhost_testkit::facts::WRITES
    };
    let input_schema = json!({
        "$defs": { "Edit": { "type": "object", "properties": {
            "search": { "type": "string" }, "replace": { "type": "string" }, "all": { "type": "boolean" },
        } } },
        "type": "object",
        "properties": {
            "path": { "type": "string" }, "command": { "type": "string" }, "stdin": { "type": "string" },
            "files": { "type": "array", "items": { "type": "string" } },
            "offset": { "type": "integer" }, "limit": { "type": "integer" }, "share": { "type": "number" },
            "timeoutMs": { "type": "integer" }, "ignoreCase": { "type": "boolean" }, "dryRun": { "type": "boolean" },
            "view": { "enum": ["full", "headTail"] }, "mode": { "oneOf": [{ "const": "create" }, { "const": "optimize" }] },
            "more": { "type": "object", "properties": { "deep": { "type": "integer" } } },
            "edits": { "type": "array", "items": { "$ref": "#/$defs/Edit" } },
        },
    });
    ToolInfo {
        name: "t".into(),
        title: "T".into(),
        description: String::new(),
        facts,
        version: 1,
        aliases: Vec::new(),
        other_names: &[NAMES],
        called_elsewhere: &[],
        input_schema,
        output_schema: Packed::new(&Value::Null),
        examples: Vec::new(),
    }
}

fn fitted(arguments: Value) -> Value {
    let mut fitted = arguments;
    fit(&mut fitted, &tool());
    fitted
}

#[test]
fn what_other_hosts_call_an_argument_is_that_argument() {
    let cases = [
        (json!({ "file_path": "a" }), json!({ "path": "a" })),
        (json!({ "timeout_ms": 5 }), json!({ "timeoutMs": 5 })),
        (json!({ "Ignore-Case": true }), json!({ "ignoreCase": true })),
        (json!({ "start_line": 4, "end_line": 6 }), json!({ "offset": 4, "limit": 3 })),
        (json!({ "end_line": "6", "start_line": "4" }), json!({ "offset": 4, "limit": 3 })),
        (json!({ "end_line": 6 }), json!({ "offset": 1, "limit": 6 })),
        (json!({ "view_range": [2, 5] }), json!({ "offset": 2, "limit": 4 })),
        (json!({ "view_range": [2, -1] }), json!({ "offset": 2 })),
        (json!({ "timeout": 60_000 }), json!({ "timeoutMs": 60_000 })),
        (json!({ "timeout": "30" }), json!({ "timeoutMs": 30_000 })),
        (json!({ "timeout_seconds": 1200 }), json!({ "timeoutMs": 1_200_000 })),
        (json!({ "case_sensitive": "false" }), json!({ "ignoreCase": true })),
        (json!({ "encoding": "utf-8", "explanation": "to see" }), json!({})),
        (
            json!({ "old_string": "a", "new_string": "b", "replace_all": "true" }),
            json!({ "edits": [{ "search": "a", "replace": "b", "all": true }] }),
        ),
        (
            json!({ "edits": [{ "oldString": "a", "New-String": "b" }] }),
            json!({ "edits": [{ "search": "a", "replace": "b" }] }),
        ),
    ];
    for (sent, meant) in cases {
        assert_eq!(fitted(sent.clone()), meant, "{sent}");
    }
}

#[test]
fn a_value_in_another_form_is_that_value() {
    let cases = [
        (
            json!({ "offset": "4", "share": "0.5", "ignoreCase": "True" }),
            json!({ "offset": 4, "share": 0.5, "ignoreCase": true }),
        ),
        (json!({ "files": "a.txt" }), json!({ "files": ["a.txt"] })),
        (json!({ "files": "[\"a\", \"b\"]" }), json!({ "files": ["a", "b"] })),
        (json!({ "edits": { "search": "a" } }), json!({ "edits": [{ "search": "a" }] })),
        (
            json!({ "edits": "[{\"old_string\": \"a\", \"all\": \"true\"}]" }),
            json!({ "edits": [{ "search": "a", "all": true }] }),
        ),
        (json!({ "more": "{\"deep\": \"7\"}" }), json!({ "more": { "deep": 7 } })),
        (json!({ "view": "head_tail", "mode": "Create" }), json!({ "view": "headTail", "mode": "create" })),
        (json!("{\"path\": \"a\"}"), json!({ "path": "a" })),
    ];
    for (sent, meant) in cases {
        assert_eq!(fitted(sent.clone()), meant, "{sent}");
    }
}

#[test]
fn what_could_be_meant_in_two_ways_or_decides_what_a_call_may_do_stays() {
    let kept = [
        json!({ "file_path": "a", "path": "b" }),
        json!({ "dryRun": "true" }),
        json!({ "command": ["rm", "-rf", "a"] }),
        json!({ "command": 1, "stdin": ["a"] }),
        json!({ "files": "a.txt, b.txt" }),
        json!({ "edits": [{ "search": "a" }, { "search": "b" }], "replace_all": true }),
        json!({ "edits": [{ "search": "a", "old_string": "b" }] }),
        json!({ "edits": { "wrong": 1 } }),
        json!({ "end_line": 3, "start_line": 9 }),
        json!({ "end_line": 3, "limit": 9 }),
        json!({ "view_range": [3] }),
        json!({ "timeout": -5 }),
        json!({ "timeout": 5, "timeoutMs": 7 }),
        json!({ "encoding": "latin-1" }),
        json!({ "explanation": { "not": "a text" } }),
        json!({ "offset": "four", "ignoreCase": "yes", "view": "both", "more": "{" }),
        json!({ "sudo": true }),
        json!(["a"]),
        json!("path"),
    ];
    for sent in kept {
        let expected = match sent.get("end_line").is_some() && sent.get("start_line").is_some() {
            // The first line is certain; that the last one comes before it is refused.
            true => json!({ "end_line": 3, "offset": 9 }),
            false => sent.clone(),
        };
        assert_eq!(fitted(sent.clone()), expected, "{sent}");
    }
}

#[test]
fn a_path_of_the_workspace_is_relative_and_every_other_stays() {
    let names = ["/home/me/project", "/tmp/link", "~/project", "/home/me/project/inner/deep"].map(str::to_owned);
    let inside = [
        ("/home/me/project/a.txt", "a.txt"),
        ("/home/me/project", "."),
        ("/home/me/project/", "."),
        ("/home/me/project//a", "a"),
        ("/tmp/link/src/a", "src/a"),
        ("~/project/a", "a"),
        ("file:///home/me/project/with%20space", "with space"),
        ("file://localhost/home/me/project/a", "a"),
        ("/home/me/project/inner/deep/a", "a"),
    ];
    let outside = [
        "/",
        "/home/me",
        "/home/me/project2/a",
        "/home/me/projec",
        "~",
        "~/other",
        "~root/project/a",
        "file://",
        "a/home/me/project",
        "/home/me/project/../other",
        "/home/me/project/a/../../../etc",
        "file:///etc/passwd",
        "file:///home/me/project/%2e%2e/x",
        "file://elsewhere/home/me/project/a",
        "a.txt",
        "./a",
        "../a",
        "",
    ];
    let read = |path: &str| {
        let mut arguments = json!({ "path": path, "files": ["b", path], "command": path });
        let notes = fit_paths(&mut arguments, &tool(), &names);
        assert_eq!(arguments["command"], path, "no path is looked for in a command");
        notes.map(|notes| {
            assert_eq!(arguments["path"], arguments["files"][1]);
            (arguments["path"].as_str().unwrap_or_default().to_owned(), notes.len())
        })
    };
    for (path, below) in inside {
        assert_eq!(read(path).ok(), Some((below.to_owned(), 2)), "{path}");
    }
    for path in outside {
        // Taken for the name of a file, it would be one in the workspace.
        let is_refused = path.starts_with("file:/") || path == "~" || path.starts_with("~/");
        assert_eq!(read(path).ok(), (!is_refused).then(|| (path.to_owned(), 0)), "{path}");
    }
    assert!(read("FILE:///home/me/x").is_err() && read("file:/home/me/x").is_err());
}

#[test]
fn the_answer_says_what_was_read_how() {
    let mut arguments = json!({ "file_path": "a", "offset": "4", "reason": "y", "edits": { "old_string": "x" } });
    let notes = fit(&mut arguments, &tool());
    assert_eq!(
        note(&notes),
        "[toolhost read `file_path` as `path`, nothing in `reason`, `edits` as a list of one, `offset` as 4, `old_string` as `search`]"
    );
    let many: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    assert_eq!(note(&shortened(many)), "[toolhost read 0, 1, 2, 3, 4, 5, 6, 7, and 2 more]");
}
