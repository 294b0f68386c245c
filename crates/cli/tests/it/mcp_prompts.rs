//! Resources, prompts and completions: what a client offers to a person, read through the gate by the profile's own tools.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, TempWorkspace};

use crate::room::program;

const ERAS: [Era; 2] = [Era::Session, Era::Stateless];

fn with_ticket() -> TempWorkspace {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
    let ticket = json!({ "title": "Mend the gate", "acceptanceCriteria": ["it closes"] }).to_string();
    let made = program(&workspace).run(&["call", "ticket.create", &ticket]);
    assert_eq!(made.code, Some(0), "{made:?}");
    workspace
}

fn field<'a>(items: &'a Value, name: &str) -> Vec<&'a str> {
    items.as_array().unwrap().iter().map(|item| item[name].as_str().unwrap()).collect()
}

async fn prompt(host: &mut McpProcess, name: &str, arguments: Value) -> String {
    let answer = host.request("prompts/get", json!({ "name": name, "arguments": arguments })).await;
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
}

async fn completed(host: &mut McpProcess, reference: Value, argument: &str, value: &str) -> Value {
    let argument = json!({ "name": argument, "value": value });
    let answer = host.request("completion/complete", json!({ "ref": reference, "argument": argument })).await;
    answer["result"]["completion"]["values"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_tickets_and_documents_are_resources_of_whoever_has_their_tools() {
    let workspace = with_ticket();
    for era in ERAS {
        let mut host = McpProcess::open(&program(&workspace), &["--profile", "planner"], era).await;
        let listed = host.request("resources/list", json!({})).await;
        assert_eq!(field(&listed["result"]["resources"], "uri"), ["toolhost://plan"]);
        let listed = host.request("resources/templates/list", json!({})).await;
        let templates = field(&listed["result"]["resourceTemplates"], "uriTemplate");
        assert_eq!(templates, ["toolhost://ticket/{ticketId}", "toolhost://document/{kind}", "toolhost://record/{id}"]);
        for (uri, has) in [
            ("toolhost://plan", ""),
            ("toolhost://ticket/TKT-001", "Mend the gate"),
            ("toolhost://record/TKT-001", "Mend the gate"),
        ] {
            let read = host.request("resources/read", json!({ "uri": uri })).await;
            let contents = &read["result"]["contents"][0];
            assert_eq!(contents["uri"], uri, "{read}");
            assert!(contents["text"].as_str().unwrap().contains(has), "{read}");
        }
        for uri in ["toolhost://ticket/", "toolhost://plan/x", "toolhost://ticket/TKT-999", "file:///etc/passwd", ""] {
            let read = host.request("resources/read", json!({ "uri": uri })).await;
            assert!(read["error"]["message"].is_string(), "{uri}: {read}");
        }
        let ticket = json!({ "type": "ref/resource", "uri": "toolhost://ticket/{ticketId}" });
        assert_eq!(completed(&mut host, ticket, "ticketId", "tkt").await, json!(["TKT-001"]));
        let document = json!({ "type": "ref/resource", "uri": "toolhost://document/{kind}" });
        assert_eq!(completed(&mut host, document, "kind", "p").await, json!(["prd", "plan"]));
    }
    // What the profile does not have is read by nobody.
    let mut host = McpProcess::open(&program(&workspace), &["--profile", "builder"], Era::Session).await;
    let read = host.request("resources/read", json!({ "uri": "toolhost://ticket/TKT-001" })).await;
    assert_eq!(read["error"]["data"]["code"], "AI_TOOL_NOT_ALLOWED", "{read}");
}

/// What a profile has does not change while a host runs, and the lists follow from it.
#[tokio::test(flavor = "multi_thread")]
async fn no_change_of_a_list_is_promised() {
    let workspace = with_ticket();
    for era in ERAS {
        for options in [&["--profile", "all"][..], &["--profile", "all", "--tools", "search"]] {
            let mut host = McpProcess::start(&program(&workspace), options, era);
            let answer = match era {
                Era::Session => host.initialize().await,
                Era::Stateless => host.request("server/discover", json!({})).await,
            };
            let offered = &answer["result"]["capabilities"];
            assert!(offered["tools"].is_object() && offered["resources"].is_object(), "{offered}");
            assert!(!offered.to_string().contains("listChanged\":true"), "{offered}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_has_what_it_is_about_and_names_only_tools_that_the_profile_has() {
    let workspace = with_ticket();
    for era in ERAS {
        let mut host = McpProcess::open(&program(&workspace), &["--profile", "planner"], era).await;
        let listed = host.request("prompts/list", json!({})).await;
        assert_eq!(field(&listed["result"]["prompts"], "name"), ["start-ticket"]);
        let text = prompt(&mut host, "start-ticket", json!({ "ticketId": "TKT-001" })).await;
        assert!(text.contains("Mend the gate") && text.contains("it closes"), "{text}");
        assert!(text.contains("`comment_post`") && !text.contains("git_commit"), "{text}");
        let reference = json!({ "type": "ref/prompt", "name": "start-ticket" });
        assert_eq!(completed(&mut host, reference.clone(), "ticketId", "TKT-0").await, json!(["TKT-001"]));
        assert_eq!(completed(&mut host, reference, "ticketId", "X").await, json!([]));
        for (name, arguments) in [
            ("start-ticket", json!({})),
            ("start-ticket", json!({ "ticketId": " " })),
            ("start-ticket", json!({ "ticketId": 5 })),
            ("start-ticket", json!({ "ticketId": "x".repeat(5000) })),
            ("start-work", json!({})),
        ] {
            let answer = host.request("prompts/get", json!({ "name": name, "arguments": arguments })).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        let unknown = json!({ "name": "start-ticket", "arguments": { "ticketId": "TKT-999" } });
        let answer = host.request("prompts/get", unknown).await;
        assert!(answer["error"]["message"].as_str().unwrap().contains("TKT-999"), "{answer}");
    }
    workspace.write("a.txt", "one\ntwo\n");
    let mut host = McpProcess::open(&program(&workspace), &["--profile", "developer"], Era::Session).await;
    let text = prompt(&mut host, "review-change", json!({})).await;
    assert!(text.contains("+two") && text.contains("`file_read`"), "{text}");
    assert!(prompt(&mut host, "review-change", json!({ "base": "HEAD" })).await.contains("+two"));
    // Who cannot list tickets is offered none.
    let reference = json!({ "type": "ref/prompt", "name": "start-ticket" });
    assert_eq!(completed(&mut host, reference, "ticketId", "").await, json!([]));
    let mut host = McpProcess::open(&program(&workspace), &["--profile", "builder"], Era::Session).await;
    let text = prompt(&mut host, "create-workflow", json!({ "goal": "sort the mail" })).await;
    assert!(text.contains("The goal: sort the mail") && text.contains("## Example: "), "{text}");
}
