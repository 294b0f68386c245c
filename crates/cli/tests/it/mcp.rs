//! MCP over real pipes, both eras: what is listed, what is answered, and what a client may do wrong.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, TempWorkspace, processes_named, until};

use crate::room::program;

const ERAS: [Era; 2] = [Era::Session, Era::Stateless];

async fn open(workspace: &TempWorkspace, era: Era) -> McpProcess {
    McpProcess::open(&program(workspace), &["--profile", "developer"], era).await
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// All pages of the list of tools.
pub(crate) async fn all_listed(host: &mut McpProcess) -> Vec<Value> {
    let (mut listed, mut page) = (Vec::new(), json!({}));
    loop {
        let answer = host.request("tools/list", page).await;
        listed.extend(answer["result"]["tools"].as_array().unwrap().clone());
        match &answer["result"]["nextCursor"] {
            Value::Null => return listed,
            cursor => page = json!({ "cursor": cursor }),
        }
    }
}

/// The command line of a command that a test looks for.
fn marker(workspace: &TempWorkspace) -> String {
    format!("marker-{}", workspace.root().parent().unwrap().file_name().unwrap().to_string_lossy())
}

/// A command that runs until it is ended, under a name that can be found.
fn endless(marker: &str) -> Value {
    json!({ "command": format!("echo up > up.txt; exec -a {marker} sleep 1000"), "timeoutMs": 600_000 })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_the_profile_are_listed_the_same_each_time() {
    let workspace = TempWorkspace::new();
    let mut lists = Vec::new();
    for era in ERAS {
        for _ in 0..2 {
            let mut host = open(&workspace, era).await;
            let first = host.request("tools/list", json!({})).await;
            let second = host.request("tools/list", json!({})).await;
            assert_eq!(first["result"]["tools"], second["result"]["tools"], "{era:?}");
            lists.push(first["result"]["tools"].clone());
            assert!(host.close().await.success());
        }
    }
    assert!(lists.windows(2).all(|pair| pair[0] == pair[1]), "two eras, two starts, one list");
    let listed = names(&json!({ "result": { "tools": lists[0] } }));
    assert!(listed.contains(&"file_read".to_owned()) && listed.contains(&"git_push".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"file_delete".to_owned()), "not in the profile");
}

/// Rules: 002.42, 004.4.
#[tokio::test(flavor = "multi_thread")]
async fn every_listed_tool_says_what_it_may_do() {
    let workspace = TempWorkspace::new();
    let mut host = McpProcess::open(&program(&workspace), &["--profile", "all"], Era::Session).await;
    for tool in all_listed(&mut host).await {
        let name = tool["name"].as_str().unwrap();
        // As MCP has it where nothing is said.
        let hint = |name: &str, default: bool| tool["annotations"][name].as_bool().unwrap_or(default);
        let reads = hint("readOnlyHint", false);
        let last = name.rsplit('_').next().unwrap();
        let should = matches!(
            last,
            "list"
                | "read"
                | "get"
                | "load"
                | "ready"
                | "query"
                | "history"
                | "describe"
                | "search"
                | "find"
                | "output"
        ) || name.starts_with("check_")
            || matches!(
                name,
                "git_status" | "git_diff" | "git_log" | "git_show" | "ticket_read_document" | "session_result"
            );
        // They ask a person, who changes what they like.
        let asks = name.starts_with("review_") || name == "human_ask";
        assert_eq!(reads, should, "{name}");
        assert_eq!(!reads && hint("destructiveHint", true), !reads && !asks, "{name}");
        // To wait for a person may be to run what they allow.
        assert_eq!(
            hint("openWorldHint", true),
            matches!(name, "git_push" | "git_fetch" | "git_pull" | "approval_wait"),
            "{name}"
        );
        assert!(tool["title"].is_string() && !tool["description"].as_str().unwrap().is_empty(), "{name}");
        assert_eq!((&tool["inputSchema"]["type"], tool.get("outputSchema")), (&json!("object"), None));
    }
}

/// What breaks the rules by which OpenAI, Anthropic and Gemini take a schema, by its place: one tool that does lets a whole request
/// fail.
pub(crate) fn unfit_for_models(schema: &Value, place: &str, found: &mut Vec<String>) {
    let Some(fields) = schema.as_object() else {
        found.push(format!("{place}: no object"));
        return;
    };
    let mut must = |holds: bool, what: &str| {
        if !holds {
            found.push(format!("{place}: {what}"));
        }
    };
    must(fields.get("type").is_none_or(Value::is_string), "several types");
    must(
        fields.get("type") != Some(&json!("object")) || fields.contains_key("properties"),
        "an object without properties",
    );
    must(fields.get("type") != Some(&json!("array")) || fields.contains_key("items"), "an array without items");
    for word in ["const", "$ref", "$defs", "allOf", "oneOf", "not", "if", "patternProperties", "prefixItems"] {
        must(!fields.contains_key(word), word);
    }
    let words = fields.get("enum").and_then(Value::as_array);
    must(words.is_none_or(|words| words.iter().all(Value::is_string)), "an enum of something else than words");
    for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        unfit_for_models(property, &format!("{place}/{name}"), found);
    }
    fields.get("items").into_iter().for_each(|items| unfit_for_models(items, &format!("{place}[]"), found));
    for shape in fields.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        unfit_for_models(shape, &format!("{place}|"), found);
    }
}

/// Tokens are counted as bytes of compact JSON by four.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tools_can_be_taken_by_every_models_api_and_is_short() {
    let workspace = TempWorkspace::new();
    for (profile, tokens_max) in [("researcher", 4_000), ("developer", 6_000), ("planner", 12_000), ("all", 25_000)] {
        let mut host = McpProcess::open(&program(&workspace), &["--profile", profile], Era::Session).await;
        let listed = all_listed(&mut host).await;
        let mut found = Vec::new();
        for tool in &listed {
            unfit_for_models(&tool["inputSchema"], tool["name"].as_str().unwrap(), &mut found);
        }
        assert_eq!(found, Vec::<String>::new());
        let tokens = json!(listed).to_string().len() / 4;
        assert!(tokens <= tokens_max, "{profile}: {tokens} tokens, {tokens_max} at the most");
    }
}

/// Many clients send null for what they leave out.
#[tokio::test(flavor = "multi_thread")]
async fn null_for_an_optional_argument_is_as_good_as_none() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\ntwo\n")]);
    let mut host = open(&workspace, Era::Session).await;
    let nulls = json!({ "path": "a.txt", "offset": null, "limit": null, "maxBytes": null, "view": null });
    let read = host.call("file_read", nulls).await;
    assert_eq!(read["isError"], false, "{read}");
    let refused = host.call("file_read", json!({ "path": null })).await;
    assert!(refused.to_string().contains("/path"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dotted_names_are_given_when_asked_for() {
    let workspace = TempWorkspace::new();
    let mut host = McpProcess::open(&program(&workspace), &["--dotted-names"], Era::Session).await;
    let listed = names(&host.request("tools/list", json!({})).await);
    assert!(listed.contains(&"file.read".to_owned()) && listed.contains(&"bash".to_owned()), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_somebody_else_is_refused() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace, Era::Session).await;
    for cursor in ["x", "999", "-1"] {
        let answer = host.request("tools/list", json!({ "cursor": cursor })).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(names(&host.request("tools/list", json!({ "cursor": "1" })).await)[0], "file_read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateless_client_may_ask_what_the_host_is() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace, Era::Stateless).await;
    let answer = host.request("server/discover", json!({})).await;
    let text = answer["result"].to_string();
    assert!(text.contains("2026-07-28") && text.contains("toolhost"), "{answer}");
    assert!(answer["result"]["capabilities"]["tools"].is_object(), "{answer}");
}

/// Rules: 002.45.
#[tokio::test(flavor = "multi_thread")]
async fn the_structure_of_every_answer_fits_the_published_schema() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\ntwo\n"), ("a.rs", "fn main() {}\n")]);
    for era in ERAS {
        let mut host = McpProcess::open(&program(&workspace), &["--profile", "all", "--output-schemas"], era).await;
        let listed = all_listed(&mut host).await;
        let schema_of =
            |name: &str| listed.iter().find(|tool| tool["name"] == name).expect("it is listed")["outputSchema"].clone();
        for (tool, arguments, ok) in [
            ("file_read", json!({ "path": "a.txt" }), true),
            ("file_read", json!({ "path": "a.rs", "view": "outline" }), true),
            ("file_read", json!({ "path": "missing" }), false),
            ("file_read", json!({ "path": 5, "more": 1 }), false),
            ("file_list", json!({}), true),
            ("file_search", json!({ "pattern": "o", "context": 1 }), true),
            ("file_write", json!({ "path": "b.txt", "content": "b" }), true),
            ("file_edit", json!({ "path": "b.txt", "edits": [{ "search": "b", "replace": "c" }] }), true),
            ("file_move", json!({ "from": "b.txt", "to": "c.txt" }), true),
            ("file_delete", json!({ "path": "c.txt" }), true),
            ("bash", json!({ "command": "echo out; echo err >&2; exit 3" }), true),
            ("bash", json!({ "command": "kill -SEGV $$" }), true),
            ("bash", json!({ "command": "vim" }), false),
            ("git_status", json!({}), true),
            ("git_diff", json!({ "base": "nowhere" }), false),
            ("git_log", json!({}), true),
            ("git_push", json!({}), false),
            ("tool_list", json!({}), true),
            ("tool_describe", json!({ "name": "bash" }), true),
        ] {
            let result = host.call(tool, arguments.clone()).await;
            let structured = &result["structuredContent"];
            let validator = jsonschema::draft202012::new(&schema_of(tool)).unwrap();
            let errors: Vec<String> = validator.iter_errors(structured).map(|e| e.to_string()).collect();
            assert!(errors.is_empty(), "{tool} {arguments}: {errors:?} in {structured}");
            assert_eq!((&structured["ok"], result["isError"].as_bool()), (&json!(ok), Some(!ok)), "{tool}: {result}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(!text.trim().is_empty(), "{tool} {arguments}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_alone_tells_all() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "alpha\nbeta\n");
    let mut host = open(&workspace, Era::Session).await;
    let mut text = async |tool: &str, arguments: Value| {
        host.call(tool, arguments).await["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text("file_read", json!({ "path": "a.txt" })).await, "alpha\nbeta\n");
    let part = text("file_read", json!({ "path": "a.txt", "limit": 1 })).await;
    assert!(part.contains("alpha") && part.contains("offset=2"), "{part}");
    let ran = text("bash", json!({ "command": "echo out; echo err >&2; exit 3" })).await;
    assert_eq!(ran, "out\n[stderr]\nerr\n[exit code 3]");
    let failed = text("file_read", json!({ "path": "b.txt" })).await;
    assert!(failed.contains("`b.txt`") && failed.contains("not_found") && failed.contains("hint:"), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_an_answer_and_an_unknown_method_an_error() {
    let workspace = TempWorkspace::new();
    for era in ERAS {
        let mut host = open(&workspace, era).await;
        let result = host.call("file_raed", json!({})).await;
        assert_eq!(result["structuredContent"]["error"]["code"], "AI_TOOL_NOT_ALLOWED", "{result}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains("`file_read`"), "{result}");
        let answer = host.request("no/such/method", json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        assert_eq!(host.call("file_list", json!({})).await["isError"], false);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longer_command_tells_how_it_goes() {
    let workspace = TempWorkspace::new();
    for era in ERAS {
        let mut host = open(&workspace, era).await;
        // It ends when it is told to, so that there is always time for a note.
        let command = json!({ "command": "until [ -e go ]; do sleep 0.05; done; rm go; echo done" });
        let params = json!({ "name": "bash", "arguments": command, "_meta": { "progressToken": "token-7" } });
        let id = host.begin("tools/call", params).await;
        let note = host.until_notified(|note| note["method"] == "notifications/progress").await;
        assert_eq!(note["params"]["progressToken"], "token-7", "{note}");
        assert!(note["params"]["progress"].is_number() && note["params"]["message"].is_string(), "{note}");
        workspace.write("go", "");
        let answer = host.answer_to(id).await;
        assert_eq!(answer["result"]["structuredContent"]["data"]["stdout"], "done\n", "{answer}");
        let quiet = host.begin_call("bash", json!({ "command": "sleep 0.7" })).await;
        let before = host.notifications.len();
        host.answer_to(quiet).await;
        assert_eq!(host.notifications.len(), before, "who gave no token is told nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_a_call_ends_its_command() {
    let workspace = TempWorkspace::new();
    let marker = marker(&workspace);
    for era in ERAS {
        let mut host = open(&workspace, era).await;
        let id = host.begin_call("bash", endless(&marker)).await;
        until("the command runs", || processes_named(&marker) > 0 && workspace.has("up.txt")).await;
        host.notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" })).await;
        until("the command has ended", || processes_named(&marker) == 0).await;
        assert_eq!(host.call("file_read", json!({ "path": "up.txt" })).await["isError"], false, "{era:?}");
        workspace.remove("up.txt");
        assert!(host.close().await.success());
    }
    assert_all_closed(&workspace);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_its_command_and_the_host() {
    let workspace = TempWorkspace::new();
    let marker = marker(&workspace);
    for era in ERAS {
        let mut host = open(&workspace, era).await;
        host.begin_call("bash", endless(&marker)).await;
        until("the command runs", || processes_named(&marker) > 0 && workspace.has("up.txt")).await;
        assert!(host.close().await.success(), "{era:?}");
        assert_eq!(processes_named(&marker), 0);
        workspace.remove("up.txt");
    }
    assert_all_closed(&workspace);
}

/// Every call that started has finished, and the chain holds.
fn assert_all_closed(workspace: &TempWorkspace) {
    let program = program(workspace);
    assert_eq!(program.run(&["--json", "audit", "verify"]).json()["ok"], true);
    let export = program.run(&["audit", "export"]).stdout;
    let count = |event: &str| export.lines().filter(|line| line.contains(&format!("\"event\":\"{event}\""))).count();
    assert!(count("started") > 0, "{export}");
    let started = export.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    for row in started.filter(|row| row["event"] == "started") {
        let finished = format!("\"callId\":{}", row["callId"]);
        let ends = export.lines().filter(|l| l.contains(&finished) && l.contains("\"event\":\"finished\"")).count();
        assert_eq!(ends, 1, "{row} in {export}");
    }
    assert_eq!(count("unknown"), 0, "{export}");
}

/// Rules: 002.82.
#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_once_are_all_answered() {
    let workspace = TempWorkspace::new();
    for era in ERAS {
        let mut host = open(&workspace, era).await;
        let mut ids = Vec::new();
        for n in 0..200 {
            let path = format!("f{n}.txt");
            ids.push(match n % 3 {
                0 => host.begin_call("file_write", json!({ "path": path, "content": path })).await,
                1 => host.begin_call("file_list", json!({})).await,
                _ => host.begin_call("file_read", json!({ "path": "missing" })).await,
            });
        }
        for (n, id) in ids.into_iter().enumerate() {
            let answer = host.answer_to(id).await;
            assert_eq!(answer["result"]["isError"], n % 3 == 2, "{answer}");
        }
        assert!(host.close().await.success());
    }
    assert_all_closed(&workspace);
}

/// A client that shows its model the structure wherever there is one would pay three times the text for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_holds_what_the_client_shows_or_what_was_asked_for() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "one\n");
    let read = json!({ "path": "a.txt" });
    let holds = async |client: &str, flags: &[&str]| {
        let mut host = McpProcess::start(&program(&workspace), flags, Era::Session);
        let opening = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": client, "version": "1" } });
        assert!(host.request("initialize", opening).await["result"].is_object());
        host.notify("notifications/initialized", json!({})).await;
        let result = host.call("file_read", read.clone()).await;
        let failed = host.call("file_read", json!({ "path": "none" })).await;
        assert_eq!(failed["isError"], true, "{failed}");
        let has = |result: &Value| (result["content"][0]["text"].is_string(), result["structuredContent"].is_object());
        assert_eq!(has(&result), has(&failed), "{client} {flags:?}");
        assert!(host.close().await.success());
        has(&result)
    };
    const TEXT: (bool, bool) = (true, false);
    const BOTH: (bool, bool) = (true, true);
    for client in ["claude-code", "codex-mcp-client", "Visual Studio Code", "pydantic-ai"] {
        assert_eq!(holds(client, &[]).await, TEXT, "{client}");
    }
    assert_eq!(holds("somebody", &[]).await, BOTH);
    assert_eq!(holds("somebody", &["--results", "text"]).await, TEXT);
    assert_eq!(holds("somebody", &["--results", "structured"]).await, (false, true));
    assert_eq!(holds("claude-code", &["--results", "both"]).await, BOTH);
    // A tool that lists the schema of its answers keeps to it.
    assert_eq!(holds("claude-code", &["--output-schemas"]).await, BOTH);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_told_where_it_is_and_what_holds_in_few_words() {
    let workspace = TempWorkspace::new();
    for profile in ["researcher", "developer", "planner", "all"] {
        let mut host = McpProcess::start(&program(&workspace), &["--profile", profile], Era::Session);
        let told = host.initialize().await["result"]["instructions"].as_str().unwrap().to_owned();
        let words = told.split_whitespace().count();
        assert!(words <= 300, "{profile}: {words} words");
        let root = workspace.root().canonicalize().unwrap();
        assert!(told.contains(root.to_str().unwrap()) && told.contains("`approval_wait`"), "{profile}: {told}");
        let has_commands = profile != "planner";
        for about in ["fence", "`/tmp`", "`timeoutMs`", "`.git` is read-only"] {
            assert_eq!(told.contains(about), has_commands, "{profile}: {told}");
        }
        assert_eq!(told.contains("loopback"), ["developer", "all"].contains(&profile), "{profile}: {told}");
    }
}
