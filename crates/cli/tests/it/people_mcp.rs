//! People asked through a real MCP client: by a form that the host sends, by one that it returns, and where the client
//! cannot ask, from another process. Nothing but a clear yes lets a call run, and it lets it run once.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace};

use crate::room::program;

/// Every command needs a person, and nobody is waited for unless the client asks them.
const ASKING: &str = "[approvals]\nhold_seconds = 0\n[[profiles.developer.rules]]\ntool = 'bash'\ndecide = 'ask'\n";
const FORMS: &str = r#"{ "elicitation": { "form": {} } }"#;

/// A workspace whose commands need a person.
fn asking(workspace: &TempWorkspace) -> Program {
    configured(workspace, ASKING)
}

fn configured(workspace: &TempWorkspace, config: &str) -> Program {
    workspace.write_beside("operator.toml", config);
    program(workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
}

/// A host whose client can show forms.
async fn able(program: &Program, era: Era) -> McpProcess {
    McpProcess::open_with(program, &["--client-approvals"], era, serde_json::from_str(FORMS).unwrap()).await
}

/// Its effect is a line in a file: how often it ran can be counted.
fn mark(line: &str) -> Value {
    json!({ "command": format!("echo {line} >> ran.txt") })
}

fn lines(workspace: &TempWorkspace) -> Vec<String> {
    if !workspace.has("ran.txt") {
        return Vec::new();
    }
    workspace.read("ran.txt").lines().map(str::to_owned).collect()
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// Calls, answers the form the host sends, and gives the outcome.
async fn answered(host: &mut McpProcess, tool: &str, arguments: Value, form: Value) -> Value {
    let id = host.begin_call(tool, arguments).await;
    let request = host.until_asked().await;
    assert_eq!(request["method"], "elicitation/create", "{request}");
    host.respond(&request, form).await;
    host.answer_to(id).await["result"]["structuredContent"].clone()
}

/// The approval of a call that waits for one.
#[track_caller]
fn pending(outcome: &Value) -> String {
    assert_eq!((&outcome["ok"], &outcome["data"]["status"]), (&json!(true), &json!("pending_approval")), "{outcome}");
    assert!(outcome["data"]["expiresAt"].is_i64(), "{outcome}");
    outcome["data"]["approvalId"].as_str().unwrap().to_owned()
}

/// What `toolhost review` says of an ask.
fn state(program: &Program, id: &str) -> Value {
    program.run(&["--json", "review", "show", id]).json()["state"].clone()
}

fn decide(program: &Program, id: &str, answer: &[&str]) {
    let ran = program.run(&[&["review", "decide", id], answer].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

async fn wait(host: &mut McpProcess, id: &str) -> Value {
    let result = host.call("approval_wait", json!({ "approvalId": id, "timeoutMs": 50 })).await;
    result["structuredContent"]["data"].clone()
}

/// The events of the audit, each with the ask that it is about.
fn started(program: &Program) -> Vec<Value> {
    let export = program.run(&["audit", "export"]).stdout;
    let rows = export.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["event"] == "started").map(|row| row["decision"]["ask"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_shows_the_effect_and_a_yes_runs_the_call_once() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Session).await;
    let id = host.begin_call("bash", mark("yes")).await;
    let request = host.until_asked().await;
    let (message, schema) = (request["params"]["message"].as_str().unwrap(), &request["params"]["requestedSchema"]);
    assert!(message.contains("runs: echo yes") && message.contains("network: none"), "{message}");
    assert_eq!(schema["properties"]["decision"]["enum"], json!(["allow", "edit", "deny"]), "{request}");
    assert!(lines(&workspace).is_empty(), "it ran before anybody said yes");
    host.respond(&request, accept(json!({ "decision": "allow" }))).await;
    let answer = host.answer_to(id).await;
    assert_eq!(answer["result"]["structuredContent"]["data"]["exitCode"], 0, "{answer}");
    assert_eq!(lines(&workspace), ["yes"]);
    assert!(host.close().await.success());
    assert_eq!(started(&program), [json!("ask-1")]);
    let decision = program.run(&["--json", "audit", "show"]).stdout;
    assert!(decision.contains("mcp-client"), "the audit says where it was said: {decision}");
    let by = "the client testkit for local";
    assert!(decision.contains(&format!(r#""persona":"{by}""#)), "and by whom: {decision}");
    assert_eq!(program.run(&["--json", "review", "show", "ask-1"]).json()["answeredBy"], by);
    let shown = program.run(&["review", "show", "ask-1"]).stdout;
    assert!(shown.starts_with(&format!("ask-1 was answered before by {by}: allow, 20")), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_run_instead_of_those_that_were_asked_for() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Session).await;
    let form = accept(json!({ "decision": "edit", "text": mark("edited").to_string() }));
    let outcome = answered(&mut host, "bash", mark("asked"), form).await;
    assert_eq!((&outcome["ok"], lines(&workspace)), (&json!(true), vec!["edited".to_owned()]), "{outcome}");
    let shown = program.run(&["review", "show", "ask-1"]).stdout;
    let (before, after) = shown.split_once("allowed with these arguments instead:").unwrap();
    assert!(before.contains("asked") && after.contains("edited"), "{shown}");
    assert!(after.ends_with("the call ran and succeeded\n"), "{shown}");
    // What a person types passes the same checks as what a model sends, and a slip does not stand in the way for good.
    for text in [r#"{"command":5}"#, r#"{"command":"ls","more":1}"#, "[]"] {
        let form = accept(json!({ "decision": "edit", "text": text }));
        let outcome = answered(&mut host, "bash", mark("slip"), form).await;
        assert_eq!((&outcome["ok"], &outcome["error"]["kind"]), (&json!(false), &json!("validation")), "{outcome}");
    }
    assert_eq!(lines(&workspace), ["edited"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_no_clear_yes_runs_nothing() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Session).await;
    let noes = [
        accept(json!({ "decision": "deny", "text": "not on a Friday" })),
        json!({ "action": "decline" }),
        accept(json!({ "decision": "yes" })),
        accept(json!({ "decision": "ALLOW" })),
        accept(json!({ "decision": " allow" })),
        accept(json!({ "decision": true })),
        accept(json!({ "decision": ["allow"] })),
        accept(json!({ "allow": true })),
        accept(json!({ "decision": "edit" })),
        accept(json!({ "decision": "edit", "text": "{ no JSON" })),
        accept(json!({})),
        accept(json!("allow")),
        json!({ "action": "accept" }),
    ];
    for (n, form) in noes.into_iter().enumerate() {
        let outcome = answered(&mut host, "bash", mark(&format!("no{n}")), form.clone()).await;
        assert_eq!((&outcome["ok"], &outcome["error"]["kind"]), (&json!(false), &json!("denied")), "{form}: {outcome}");
        let told = outcome["error"]["message"].as_str().unwrap();
        assert_eq!(n == 0, told.contains("not on a Friday"), "{told}");
        assert_eq!(state(&program, &format!("ask-{}", n + 1)), "used");
    }
    let unsaid = [
        json!({ "action": "cancel" }),
        json!({ "action": "allow" }),
        json!({ "action": 7 }),
        json!({ "decision": "allow" }),
        json!({}),
    ];
    for (n, form) in unsaid.into_iter().enumerate() {
        let outcome = answered(&mut host, "bash", mark(&format!("unsaid{n}")), form.clone()).await;
        let id = pending(&outcome);
        assert_eq!(state(&program, &id), "open", "{form}: it can still be answered elsewhere");
    }
    let id = host.begin_call("bash", mark("error")).await;
    let request = host.until_asked().await;
    let error = json!({ "code": -32603, "message": "allow" });
    host.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    pending(&host.answer_to(id).await["result"]["structuredContent"]);
    assert!(lines(&workspace).is_empty() && started(&program).is_empty(), "{:?}", lines(&workspace));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_first_in_the_client_or_elsewhere_is_who_answered() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Session).await;
    let id = host.begin_call("bash", mark("elsewhere")).await;
    let late = host.until_asked().await;
    decide(&program, "ask-1", &["--allow"]);
    let answer = host.answer_to(id).await;
    assert_eq!(answer["result"]["structuredContent"]["data"]["exitCode"], 0, "{answer}");
    // The form is still on the screen; what it says now changes nothing.
    host.respond(&late, accept(json!({ "decision": "deny" }))).await;
    let dismissed = answered(&mut host, "bash", mark("later"), json!({ "action": "cancel" })).await;
    let id = pending(&dismissed);
    let late = program.run(&["review", "decide", "ask-1", "--deny=too late"]);
    assert!(late.code == Some(1) && late.stderr.contains("used"), "{late:?}");
    decide(&program, &id, &["--allow"]);
    assert_eq!(wait(&mut host, &id).await["status"], "finished");
    assert_eq!(lines(&workspace), ["elsewhere", "later"]);
}

/// A call of the era that returns its form.
async fn stateless(host: &mut McpProcess, arguments: Value, retry: Option<(&str, Value)>) -> Value {
    let mut params = json!({ "name": "bash", "arguments": arguments });
    if let Some((state, form)) = retry {
        params["requestState"] = json!(state);
        params["inputResponses"] = json!({ "decision": form });
    }
    host.request("tools/call", params).await["result"].clone()
}

/// The state that a call wants back with its input.
#[track_caller]
fn required(result: &Value) -> String {
    assert_eq!(result["resultType"], "input_required", "{result}");
    assert_eq!(result["inputRequests"]["decision"]["method"], "elicitation/create", "{result}");
    result["requestState"].as_str().unwrap().to_owned()
}

fn allow() -> Value {
    accept(json!({ "decision": "allow" }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_returned_form_comes_back_with_the_call_which_then_runs_once() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Stateless).await;
    let first = stateless(&mut host, mark("once"), None).await;
    let form = &first["inputRequests"]["decision"]["params"];
    assert!(form["message"].as_str().unwrap().contains("runs: echo once"), "{first}");
    let state = required(&first);
    assert!(lines(&workspace).is_empty());
    let done = stateless(&mut host, mark("once"), Some((&state, allow()))).await;
    assert_eq!(done["structuredContent"]["data"]["exitCode"], 0, "{done}");
    for _ in 0..3 {
        let replayed = stateless(&mut host, mark("once"), Some((&state, allow()))).await;
        pending(&replayed["structuredContent"]);
    }
    assert_eq!((lines(&workspace), started(&program)), (vec!["once".to_owned()], vec![json!("ask-1")]));
    // Many at once, with an answer nobody has used yet.
    let state = required(&stateless(&mut host, mark("twice"), None).await);
    let mut begun = Vec::new();
    for _ in 0..8 {
        let params = json!({
            "name": "bash", "arguments": mark("twice"), "requestState": state, "inputResponses": { "decision": allow() },
        });
        begun.push(host.begin("tools/call", params).await);
    }
    let mut ran = 0;
    for id in begun {
        let answer = host.answer_to(id).await;
        ran += usize::from(answer["result"]["structuredContent"]["data"]["exitCode"] == 0);
    }
    assert_eq!((ran, lines(&workspace)), (1, vec!["once".to_owned(), "twice".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_arguments_on_the_way_back_need_a_yes_of_their_own() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Stateless).await;
    let state = required(&stateless(&mut host, mark("shown"), None).await);
    let changed = stateless(&mut host, mark("changed"), Some((&state, allow()))).await;
    assert_eq!(required(&changed), "ask-2");
    assert!(lines(&workspace).is_empty(), "{:?}", lines(&workspace));
    // The yes came beside another call than the one that was shown, and decided nothing.
    assert_eq!(self::state(&program, "ask-1"), json!("open"));
    let shown = stateless(&mut host, mark("shown"), Some((&state, allow()))).await;
    assert_eq!(shown["structuredContent"]["data"]["exitCode"], 0, "{shown}");
    assert_eq!(lines(&workspace), ["shown"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_denied_dismissed_or_garbled_runs_nothing() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Stateless).await;
    let said = [
        (accept(json!({ "decision": "deny", "text": "never" })), true),
        (json!({ "action": "decline" }), true),
        (accept(json!({ "decision": "ok" })), true),
        (accept(json!({})), true),
        (json!({ "action": "cancel" }), false),
        (json!({ "action": "sure" }), false),
        (json!("allow"), false),
        (json!(null), false),
    ];
    for (n, (form, denies)) in said.into_iter().enumerate() {
        let arguments = mark(&format!("no{n}"));
        let state = required(&stateless(&mut host, arguments.clone(), None).await);
        let result = stateless(&mut host, arguments, Some((&state, form.clone()))).await;
        let outcome = &result["structuredContent"];
        if denies {
            assert_eq!(outcome["error"]["kind"], "denied", "{form}: {result}");
        } else {
            // A whole message that is no answer may be refused as such.
            assert!(outcome.is_null() || pending(outcome) == state, "{form}: {result}");
        }
    }
    assert!(lines(&workspace).is_empty() && started(&program).is_empty());
}

/// A state that the client was not given is an error of the protocol, and the call is not made.
async fn refused(host: &mut McpProcess, arguments: Value, state: &str) {
    let responses = json!({ "decision": allow() });
    let params = json!({ "name": "bash", "arguments": arguments, "requestState": state, "inputResponses": responses });
    let answer = host.request("tools/call", params).await;
    assert_eq!(answer["error"]["code"], -32602, "{state:?}: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_names_somebody_else_s_ask_changes_nothing() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut theirs = able(&program, Era::Stateless).await;
    let state = required(&stateless(&mut theirs, mark("theirs"), None).await);
    let mut mine = able(&program, Era::Stateless).await;
    let forged = ["ask-999", "ask-0", "ask--1", "ask-1 ", "", "no", "ask-99999999999999999999", "ask-\u{0}", &state];
    for (n, forged) in forged.into_iter().enumerate() {
        refused(&mut mine, mark(&format!("mine{n}")), forged).await;
        assert_eq!(self::state(&program, &state), "open", "{forged:?}");
    }
    // The very same call of another session is another call.
    refused(&mut mine, mark("theirs"), &state).await;
    assert_ne!(required(&stateless(&mut mine, mark("theirs"), None).await), state);
    assert!(lines(&workspace).is_empty() && started(&program).is_empty(), "{:?}", lines(&workspace));
    let done = stateless(&mut theirs, mark("theirs"), Some((&state, allow()))).await;
    assert_eq!((&done["structuredContent"]["ok"], lines(&workspace)), (&json!(true), vec!["theirs".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_may_not_or_cannot_ask_decides_nothing() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let forms: Value = serde_json::from_str(FORMS).unwrap();
    for (arguments, capabilities) in [
        (&["--client-approvals", "--no-client-approvals"][..], forms.clone()),
        (&[], forms),
        (&["--client-approvals"], json!({})),
        (&["--client-approvals"], json!({ "elicitation": { "url": {} } })),
    ] {
        for era in [Era::Session, Era::Stateless] {
            let mut host = McpProcess::open_with(&program, arguments, era, capabilities.clone()).await;
            let id = pending(&host.call("bash", mark("no")).await["structuredContent"]);
            let result = stateless(&mut host, mark("no"), Some((&id, allow()))).await;
            assert_eq!(pending(&result["structuredContent"]), id, "{capabilities}");
            assert_eq!(state(&program, &id), "open", "{capabilities}");
        }
    }
    assert!(lines(&workspace).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_client_cannot_ask_another_process_decides_and_the_call_runs_when_it_is_waited_for() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    for era in [Era::Session, Era::Stateless] {
        let mut host = McpProcess::open(&program, &[], era).await;
        let id = pending(&host.call("bash", mark("allowed")).await["structuredContent"]);
        assert_eq!(wait(&mut host, &id).await["status"], "pending");
        let listed = program.run(&["review", "list"]).stdout;
        assert!(listed.contains(&id) && listed.contains("run echo allowed >> ran.txt"), "{listed}");
        let before = lines(&workspace).len();
        decide(&program, &id, &["--allow"]);
        assert_eq!(lines(&workspace).len(), before, "nobody has waited for it yet");
        let first = wait(&mut host, &id).await;
        assert_eq!(
            (&first["status"], &first["outcome"]["data"]["exitCode"]),
            (&json!("finished"), &json!(0)),
            "{first}"
        );
        assert_eq!(wait(&mut host, &id).await, first, "whoever waits again is told the same");
        assert_eq!(lines(&workspace).len(), before + 1);

        let id = pending(&host.call("bash", mark("denied")).await["structuredContent"]);
        decide(&program, &id, &["--deny=use the other\nfile"]);
        let denied = wait(&mut host, &id).await;
        assert_eq!(denied["outcome"]["error"]["kind"], "denied", "{denied}");
        assert!(denied["outcome"]["error"]["message"].as_str().unwrap().contains("use the other\nfile"), "{denied}");
        let id = pending(&host.call("bash", mark("revoked")).await["structuredContent"]);
        decide(&program, &id, &["--allow"]);
        assert_eq!(program.run(&["review", "revoke", &id]).code, Some(0));
        assert_eq!(wait(&mut host, &id).await["status"], "withdrawn");
    }
    assert_eq!(lines(&workspace), ["allowed", "allowed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_answers_in_time_expires_and_is_never_a_yes() {
    let workspace = TempWorkspace::new();
    let program = configured(&workspace, &ASKING.replace("[approvals]", "[approvals]\nexpire_seconds = 1"));
    let mut host = McpProcess::open(&program, &[], Era::Session).await;
    let id = pending(&host.call("bash", mark("late")).await["structuredContent"]);
    while wait(&mut host, &id).await["status"] == "pending" {}
    assert_eq!(wait(&mut host, &id).await["status"], "expired");
    let late = program.run(&["review", "decide", &id, "--allow"]);
    assert!(late.code == Some(1) && late.stderr.contains("expired"), "{late:?}");
    // An answer, too, has to be used in time.
    let id = pending(&host.call("bash", mark("late")).await["structuredContent"]);
    let said = program.run(&["review", "decide", &id, "--allow"]);
    while state(&program, &id) != "expired" {}
    assert_eq!(wait(&mut host, &id).await["status"], "expired", "{said:?}");
    assert!(lines(&workspace).is_empty() && started(&program).is_empty());
}

/// What a request of the stateless era says of its client.
fn stateless_meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "the person", "version": "1" },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_gains_no_forms_by_what_a_request_of_it_declares() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = McpProcess::open_with(&program, &["--client-approvals"], Era::Session, json!({})).await;
    let id = pending(&host.call("bash", mark("no")).await["structuredContent"]);
    let forms: Value = serde_json::from_str(FORMS).unwrap();
    let params = json!({
        "name": "bash", "arguments": mark("no"), "_meta": stateless_meta(forms), "requestState": id,
        "inputResponses": { "decision": allow() },
    });
    let result = host.request("tools/call", params).await["result"].clone();
    assert_eq!(pending(&result["structuredContent"]), id, "{result}");
    assert_eq!((state(&program, &id), lines(&workspace)), (json!("open"), Vec::new()));
    // Nor does it lose those that it has.
    let mut host = able(&program, Era::Session).await;
    let params = json!({ "name": "bash", "arguments": mark("yes"), "_meta": { "progressToken": 1 } });
    let id = host.begin("tools/call", params).await;
    let request = host.until_asked().await;
    host.respond(&request, allow()).await;
    assert_eq!(host.answer_to(id).await["result"]["structuredContent"]["ok"], true);
    assert_eq!(lines(&workspace), ["yes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_begins_again_declares_nothing_more() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = McpProcess::open_with(&program, &["--client-approvals"], Era::Session, json!({})).await;
    let forms: Value = serde_json::from_str(FORMS).unwrap();
    let again = json!({
        "protocolVersion": "2025-11-25", "capabilities": forms, "clientInfo": { "name": "again", "version": "1" },
    });
    let refused = host.request("initialize", again).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains("initialized already")), "{refused}");
    let waiting = host.call("bash", mark("no")).await;
    assert_eq!(pending(&waiting["structuredContent"]), "ask-1", "{waiting}");
    assert!(lines(&workspace).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_its_own_era_declares_for_itself_alone() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Stateless).await;
    let id = required(&stateless(&mut host, mark("no"), None).await);
    let params = json!({
        "name": "bash", "arguments": mark("no"), "_meta": stateless_meta(json!({})), "requestState": id,
        "inputResponses": { "decision": allow() },
    });
    host.send(&json!({ "jsonrpc": "2.0", "id": "bare", "method": "tools/call", "params": params })).await;
    let answer = host.next_message().await.unwrap();
    assert_eq!(answer["id"], "bare");
    assert_eq!(pending(&answer["result"]["structuredContent"]), id, "{answer}");
    assert_eq!((state(&program, &id), lines(&workspace)), (json!("open"), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_form_that_the_client_was_never_given_is_none() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut host = able(&program, Era::Stateless).await;
    // A number that is only guessed, for the very call that makes the ask and for one that repeats it.
    refused(&mut host, mark("guessed"), "ask-1").await;
    assert_eq!(required(&stateless(&mut host, mark("guessed"), None).await), "ask-1");
    // An ask of this session that waits, and that no form was returned for.
    let params = json!({ "name": "bash", "arguments": mark("unseen"), "_meta": stateless_meta(json!({})) });
    host.send(&json!({ "jsonrpc": "2.0", "id": "bare", "method": "tools/call", "params": params })).await;
    let answer = host.next_message().await.unwrap();
    assert_eq!(pending(&answer["result"]["structuredContent"]), "ask-2", "{answer}");
    let unseen = stateless(&mut host, mark("unseen"), Some(("ask-2", allow()))).await;
    assert_eq!(required(&unseen), "ask-2");
    assert_eq!((state(&program, "ask-2"), lines(&workspace)), (json!("open"), Vec::new()));
    // Now it was given.
    let done = stateless(&mut host, mark("unseen"), Some(("ask-2", allow()))).await;
    assert_eq!(done["structuredContent"]["data"]["exitCode"], 0, "{done}");
    assert_eq!(lines(&workspace), ["unseen"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_switches_approvals_in_the_client_on_and_off() {
    let workspace = TempWorkspace::new();
    let forms: Value = serde_json::from_str(FORMS).unwrap();
    let on = ASKING.replace("[approvals]", "[approvals]\nclient = true");
    for (config, variable, arguments, asks) in [
        (ASKING, "false", &[][..], false),
        (&on, "false", &[], true),
        (&on, "true", &["--no-client-approvals"], false),
        (ASKING, "true", &[], true),
    ] {
        let program = configured(&workspace, config).variable("TOOLHOST_CLIENT_APPROVALS", variable);
        let mut host = McpProcess::open_with(&program, arguments, Era::Stateless, forms.clone()).await;
        let result = stateless(&mut host, mark("x"), None).await;
        assert_eq!(result["resultType"] == "input_required", asks, "{variable:?} {arguments:?}: {result}");
    }
}
