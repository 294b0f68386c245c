//! The names of tools in what a caller is told are those of tools that it has, as its door spells them.

use serde_json::{Value, json};
use toolhost_contract::ToolError;
use toolhost_records::{Kind, RecordError, RecordId};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace};

use crate::room::program;

async fn host(program: &Program, profile: &str, more: &[&str]) -> McpProcess {
    McpProcess::open(program, &[&["--profile", profile], more].concat(), Era::Session).await
}

async fn hint(host: &mut McpProcess, tool: &str, arguments: Value) -> String {
    let result = host.call(tool, arguments).await;
    let outcome = &result["structuredContent"];
    assert_eq!(outcome["ok"], false, "{outcome}");
    let hint = outcome["error"]["hint"].as_str().unwrap_or_default().to_owned();
    // What a model reads says the same.
    assert!(result["content"][0]["text"].as_str().unwrap().ends_with(&hint), "{result}");
    hint
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_not_there_is_told_by_one_of_the_caller_s_own() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let mut developer = host(&program, "developer", &[]).await;
    for (asked, meant) in [
        ("ask_user", "did you mean `human_ask`?"),
        ("askUser", "did you mean `human_ask`?"),
        ("ask_human", "did you mean `human_ask`?"),
        ("file.raed", "did you mean `file_read`?"),
        ("edit_file", "did you mean `file_edit`?"),
        // What other hosts call it is a name of it.
        ("execute_command", "`bash` takes: command, cwd, timeoutMs, stdin, background; nothing was changed"),
        ("quux", "`tool_list` shows the tools you have"),
        // The developer has neither `file.move` nor `task.create`.
        ("file.mov", "did you mean `file_list` or `file_read` or `file_search`?"),
        ("create_tasks", "`tool_list` shows the tools you have"),
    ] {
        assert_eq!(hint(&mut developer, asked, json!({})).await, meant, "{asked}");
    }
    let mut dotted = host(&program, "developer", &["--dotted-names"]).await;
    assert_eq!(hint(&mut dotted, "ask_user", json!({})).await, "did you mean `human.ask`?");
    let mut researcher = host(&program, "researcher", &[]).await;
    assert!(!hint(&mut researcher, "ask_user", json!({})).await.contains("human"));
    // A model is not told of what only a person may run.
    let mut all = host(&program, "all", &[]).await;
    assert!(!hint(&mut all, "builder_change_aply", json!({})).await.contains("apply"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_names_tools_that_the_caller_has_as_it_calls_them() {
    let workspace = TempWorkspace::new();
    workspace.write("picture.bin", "\0\0\0");
    let program = program(&workspace);
    let (missing, vim) = (json!({ "path": "none.txt" }), json!({ "command": "env vim x" }));
    let mut developer = host(&program, "developer", &[]).await;
    assert_eq!(hint(&mut developer, "file_read", missing.clone()).await, "`file_list` shows what is there");
    let change = "change files with `file_edit`, `file_write` or `sed -i`";
    assert_eq!(hint(&mut developer, "bash", vim.clone()).await, change);
    let ticket = hint(&mut developer, "ticket_read", json!({})).await;
    assert_eq!(ticket, "pass `ticketId`", "it has no `ticket.list`");
    let mut planner = host(&program, "planner", &[]).await;
    let ticket = hint(&mut planner, "ticket_read", json!({})).await;
    assert_eq!(ticket, "pass `ticketId`; `ticket_list` shows the tickets");
    let binary = hint(&mut planner, "file_read", json!({ "path": "picture.bin" })).await;
    assert_eq!(binary, "only text can be read", "it has no `bash`");
    let mut dotted = host(&program, "developer", &["--dotted-names"]).await;
    assert_eq!(hint(&mut dotted, "file.read", missing).await, "`file.list` shows what is there");
    let mut researcher = host(&program, "researcher", &[]).await;
    assert_eq!(hint(&mut researcher, "bash", vim).await, "", "it changes no files");
    // What is added to the output of a command is a hint, too.
    let commit = json!({ "command": "git commit -m x" });
    for (host, named) in
        [(&mut developer, "`git commit` is git_commit]"), (&mut researcher, "is for the person: ask them]")]
    {
        let ran = host.call("bash", commit.clone()).await;
        let said = ran["structuredContent"]["data"]["stderr"].as_str().unwrap();
        assert!(said.contains(named), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_person_says_with_which_tool_to_wait() {
    let workspace = TempWorkspace::new();
    workspace.write_beside("operator.toml", "[approvals]\nhold_seconds = 0\n");
    let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    for (more, tool, name) in
        [(&[][..], "human_ask", "`approval_wait`"), (&["--dotted-names"], "human.ask", "`approval.wait`")]
    {
        let asked = host(&program, "developer", more).await.call(tool, json!({ "question": "Well?" })).await;
        assert!(asked["content"][0]["text"].as_str().unwrap().contains(name), "{asked}");
    }
    // A file's text is nobody's to change.
    workspace.write("names.txt", "`file.read` and `approval.wait`\n");
    let read = host(&program, "developer", &[]).await.call("file_read", json!({ "path": "names.txt" })).await;
    assert_eq!(read["content"][0]["text"], "`file.read` and `approval.wait`\n");
}

#[test]
fn a_record_that_is_not_there_is_looked_for_with_a_tool_that_there_is() {
    let tools: Vec<String> = toolhost_testkit::every_tool().iter().map(|tool| tool.info().name.to_string()).collect();
    for kind in Kind::ALL {
        let told = ToolError::from(RecordError::NotFound { id: RecordId { kind, number: 1 } });
        let hint = told.hint.unwrap();
        let named = hint.split('`').nth(1).unwrap().to_owned();
        assert!(tools.contains(&named), "{hint}");
    }
}
