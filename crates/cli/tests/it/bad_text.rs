//! Text that is none, over MCP and on standard input: it is answered with what is wrong, nothing is changed, and the next call is
//! served.

use serde_json::json;
use toolhost_testkit::engines::engines;
use toolhost_testkit::{Era, McpProcess, TempWorkspace};

use crate::room::program;

#[tokio::test(flavor = "multi_thread")]
async fn half_a_character_over_mcp_is_answered_and_the_connection_lives_on() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let mut host = McpProcess::open(&program, &["--profile", "all"], Era::Session).await;
        let made = host.call("ticket_create", json!({ "title": "there before" })).await;
        assert_eq!(made["isError"], false, "{made}");
        let before = program.run(&["export"]).stdout;
        for (id, title) in [(901, r"\ud800"), (902, r"\udc00\ud800"), (903, r"a\ud83dz"), (904, r"\ud83d\ud83d")] {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ticket_create","arguments":{{"title":"{title}"}}}}}}"#
            );
            assert!(host.try_send_line(line.as_bytes()).await);
            let answer = host.answer_to(id).await;
            assert_eq!(answer["error"]["code"], -32700, "{title}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("surrogate") || message.contains("JSON"), "{message}");
            let after = host.call("ticket_list", json!({})).await;
            assert_eq!(after["structuredContent"]["data"]["items"].as_array().unwrap().len(), 1, "{after}");
        }
        assert_eq!(program.run(&["export"]).stdout, before);
        let whole = host.call("ticket_create", json!({ "title": "\u{1f600}" })).await;
        assert_eq!(whole["structuredContent"]["data"]["title"], "\u{1f600}");
        assert!(host.close().await.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_tool_with_an_impossible_name_keeps_nobody_from_writing() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let mut host = McpProcess::open(&program, &["--profile", "all"], Era::Session).await;
        for name in ["ticket\u{0}create", "\u{0}", "\u{feff}", "\u{10ffff}", "ticket_create\n"] {
            let answer = host.call(name, json!({ "title": "x" })).await;
            assert_eq!(answer["structuredContent"]["error"]["code"], "AI_TOOL_NOT_ALLOWED", "{name:?}: {answer}");
            let made = host.call("ticket_create", json!({ "title": format!("after {name:?}") })).await;
            assert_eq!(made["isError"], false, "after {name:?}: {made}");
        }
        assert!(host.close().await.success());
        let verified = program.run(&["--json", "audit", "verify"]).json();
        assert_eq!(verified["ok"], true, "{verified}");
        let rows = program.run(&["--json", "audit", "show", "--failed"]).stdout;
        assert_eq!(rows.lines().count(), 5, "each of them is in the audit: {rows}");
    }
}

#[test]
fn bad_text_on_standard_input_changes_nothing() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert_eq!(program.run(&["ticket", "create", "there before"]).code, Some(0));
    let before = program.run(&["export"]).stdout;
    let deep = format!(r#"{{"title":{}"x"{}}}"#, "[".repeat(5000), "]".repeat(5000));
    for (input, code, said) in [
        (&br#"{"title":"\ud800"}"#[..], 2, "not JSON"),
        (br#"{"title":"x"} {"title":"y"}"#, 2, "trailing"),
        (br#"{"title":"x""#, 2, "not JSON"),
        (b"", 2, "not JSON"),
        (br#"["x"]"#, 2, "JSON object"),
        (b"{\"title\":\"\xff\"}", 1, "UTF-8"),
        (b"\xef\xbb\xbf{\"title\":\"x\"}", 2, "not JSON"),
        (deep.as_bytes(), 2, "recursion"),
        (br#"{"title":"x","title":"y","no":1}"#, 1, "no such argument"),
    ] {
        let ran = program.run_with_input(&["call", "ticket.create", "-"], input);
        let shown = String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned();
        assert!(ran.code == Some(code) && ran.stdout.is_empty() && ran.stderr.contains(said), "{shown}: {ran:?}");
        assert_eq!(program.run(&["export"]).stdout, before, "{shown}");
    }
}
