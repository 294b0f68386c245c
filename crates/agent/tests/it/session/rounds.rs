//! The loop through the real gate, store and tools: what it does with good models, bad ones and hostile texts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolhost_agent::model::{Delta, Follow, ModelFacts, Price, Reply, Stop, Usage};
use toolhost_agent::session::{Answer, Event, Status};
use toolhost_agent::start::Task;
use toolhost_agent::{Model, ModelError, Request};
use toolhost_contract::{BoxFuture, ErrorCode, Signal};
use toolhost_store::SessionState;
use toolhost_testkit::session::{Sitting, script, work};
use toolhost_testkit::{TempWorkspace, until};

use super::house;

fn workspace() -> TempWorkspace {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "alpha\n");
    workspace.write("b.txt", "beta\n");
    workspace
}

fn read(path: &str) -> Value {
    json!({ "tool": "file_read", "arguments": { "path": path } })
}

/// Rules: 001.24, 001.27.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_reads_writes_in_order_and_answers() {
    let house = house(workspace()).build().await;
    let sitting = Sitting::new(&house, "developer");
    let write = |text: &str| json!({ "tool": "file_write", "arguments": { "path": "c.txt", "content": text } });
    let model = script(&json!([
        { "text": "I look.", "calls": [read("a.txt"), read("b.txt")] },
        { "calls": [write("one\n"), { "tool": "file_edit", "arguments":
            { "path": "c.txt", "edits": [{ "search": "one", "replace": "two" }] } }, read("c.txt")] },
        { "text": "Made `c.txt`." },
    ]));
    let result = sitting.play(&model, &work("make c")).await;
    assert_eq!(result.status, Status::Completed, "{result:?}");
    assert_eq!(result.answer, Some(Answer::Chat { assistant_summary: "Made `c.txt`.".to_owned() }));
    assert_eq!((result.iterations, result.calls.len()), (3, 5));
    assert!(result.calls.iter().all(|call| call.ok), "{:?}", result.calls);
    assert_eq!(house.workspace.read("c.txt"), "two\n");
    let contents = sitting.contents().await;
    assert!(contents[4].1["content"].as_str().unwrap().contains("two"), "the read after the writes sees them");
    // Every call is in the audit with the session's id.
    let rows = house.rows().await;
    for call in &result.calls {
        let own = rows.iter().find(|row| row["callId"] == call.call_id.as_str() && row["event"] == "finished").unwrap();
        assert_eq!(own["sessionId"], sitting.id.as_str());
        assert_eq!(own["caller"]["kind"], "model");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_errs_is_told_how_and_goes_on() {
    let house = house(workspace()).build().await;
    let mut sitting = Sitting::new(&house, "developer");
    sitting.limits.calls_per_turn = 2;
    let model = script(&json!([
        { "calls": [{ "tool": "file_raed", "arguments": { "path": "a.txt" } },
                    { "tool": "file_read", "raw": "{\"path\": \"a.t" }] },
        { "expect": { "failed": true }, "calls": [{ "tool": "file_read", "arguments": { "paht": "a.txt" } }] },
        { "calls": [read("a.txt"), read("b.txt"), read("a.txt")] },
        { "text": "Read." },
    ]));
    let result = sitting.play(&model, &work("read")).await;
    assert_eq!(result.status, Status::Completed, "{result:?}");
    let codes: Vec<Option<&str>> = result.calls.iter().map(|call| call.code.as_deref()).collect();
    let failed = Some("AI_TOOL_EXECUTION_ERROR");
    let not_allowed = Some("AI_TOOL_NOT_ALLOWED");
    let too_many = Some("AI_TOOL_LOOP_LIMIT_EXCEEDED");
    assert_eq!(codes, [not_allowed, failed, failed, None, None, too_many]);
    let contents = sitting.contents().await;
    let said = |n: usize| contents[n].1["content"].as_str().unwrap().to_owned();
    assert!(said(0).contains("file_read"), "the nearest name is told: {}", said(0));
    assert!(said(1).contains("EOF while parsing"), "{}", said(1));
    assert!(said(2).contains("paht") && said(2).contains("path"), "{}", said(2));
}

/// Rules: 001.25, 001.29, 001.49.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_has_its_code_and_the_session_goes_on_with_more() {
    let house = house(workspace()).build().await;
    let mut sitting = Sitting::new(&house, "developer");
    let usage = json!({ "inputTokens": 600, "cachedTokens": 0, "cacheWriteTokens": 0, "outputTokens": 400 });
    let mut turns: Vec<Value> = (0..9).map(|_| json!({ "calls": [read("a.txt")], "usage": usage })).collect();
    turns.push(json!({ "text": "Done.", "usage": usage }));
    let model = script(&json!(turns));
    let limited = sitting.play(&model, &work("loop")).await;
    let code = |result: &toolhost_agent::session::LoopResult| result.error.as_ref().unwrap().code;
    assert_eq!((limited.status, code(&limited), limited.iterations), (Status::Limited, ErrorCode::LoopLimit, 8));
    assert_eq!(sitting.limits.max_iterations, 8, "the frozen default");
    sitting.limits.max_iterations = 1;
    let again = sitting.go_on(&model).await;
    assert_eq!((again.status, code(&again), again.iterations), (Status::Limited, ErrorCode::LoopLimit, 9), "one more");
    sitting.limits.tokens_max = Some(8_500);
    let limited = sitting.go_on(&model).await;
    assert_eq!((limited.status, code(&limited), limited.iterations), (Status::Limited, ErrorCode::TokenLimit, 9));
    sitting.limits.tokens_max = None;
    sitting.limits.cost_max = Some(1.0);
    let limited = sitting.go_on(&model).await;
    assert_eq!((limited.status, code(&limited)), (Status::Limited, ErrorCode::CostLimit), "a cost nobody knows");
    sitting.limits.cost_max = None;
    sitting.limits.max_iterations = 8;
    let done = sitting.go_on(&model).await;
    assert_eq!((done.status, done.iterations, done.calls.len()), (Status::Completed, 10, 9));
    assert_eq!(done.usage.total(), 10_000);
}

/// A model that costs, and one that never answers.
struct Slow {
    facts: ModelFacts,
    stands_still: bool,
}

impl Model for Slow {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn reply<'a>(
        &'a self,
        _: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            follow.delta(Delta::Text("thinking"));
            if self.stands_still {
                cancel.cancelled().await;
                return Err(ModelError::Cancelled);
            }
            let arguments = toolhost_agent::model::Arguments::Json(json!({ "path": "a.txt" }));
            let call = toolhost_agent::model::ToolCall { id: "x".into(), name: "file_read".into(), arguments };
            let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
            Ok(Reply { text: String::new(), calls: vec![call], stop: Stop::Calls, usage, signatures: Vec::new() })
        })
    }
}

fn slow(stands_still: bool) -> Slow {
    let price = Price { input: 2.0, cached_input: 0.2, cache_write: 2.5, output: 10.0 };
    let facts = ModelFacts { name: "slow".to_owned(), window: 100_000_000, output_tokens: 1_000, price: Some(price) };
    Slow { facts, stands_still }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_costs_is_counted_and_limited() {
    let house = house(workspace()).build().await;
    let mut sitting = Sitting::new(&house, "developer");
    sitting.limits.cost_max = Some(5.0);
    let result = sitting.play(&slow(false), &work("spend")).await;
    assert_eq!((result.status, result.error.unwrap().code), (Status::Limited, ErrorCode::CostLimit));
    assert_eq!((result.iterations, result.cost), (3, Some(6.0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_stands_still_is_left_by_time_by_pause_and_by_cancel() {
    let house = house(workspace()).build().await;
    let mut sitting = Sitting::new(&house, "developer");
    sitting.limits.time_max = Some(Duration::from_millis(50));
    let late = sitting.play(&slow(true), &work("wait")).await;
    assert_eq!((late.status, late.error.unwrap().code), (Status::Limited, ErrorCode::TimeLimit));
    sitting.limits.time_max = None;
    // From another terminal.
    let held = sitting.hold().await;
    house.store.sessions().want(house.project.id, &sitting.id, Signal::Pause).await.unwrap();
    assert_eq!(sitting.go_on_with(&held, &slow(true)).await.status, Status::Paused);
    held.release(SessionState::Paused, None).await.unwrap();
    // What comes is told as it comes: whoever watches stops the session when they have read the first word.
    let texts = || sitting.seen.all().into_iter().filter(|event| matches!(event, Event::Text { .. })).count();
    let before = texts();
    let stops = async {
        until("the first word came", || texts() > before).await;
        sitting.control.cancel.cancel();
    };
    let model = slow(true);
    let (cancelled, ()) = tokio::join!(sitting.go_on(&model), stops);
    assert_eq!(cancelled.status, Status::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_session_ends_its_command_too() {
    let house = house(workspace()).build().await;
    let sitting = Sitting::new(&house, "developer");
    let model = script(&json!([
        { "calls": [{ "tool": "bash", "arguments": { "command": "echo on > began.txt; sleep 600" } }] },
        { "text": "never" },
    ]));
    let cancel = sitting.control.cancel.clone();
    let root = house.workspace.root();
    let killer = tokio::spawn(async move {
        while !root.join("began.txt").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
    });
    let result = sitting.play(&model, &work("sleep")).await;
    killer.await.unwrap();
    assert_eq!((result.status, result.calls.len()), (Status::Cancelled, 1), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_answered_goes_on_with_the_next_message() {
    let house = house(workspace()).build().await;
    let sitting = Sitting::new(&house, "developer");
    let model = script(&json!([
        { "calls": [read("a.txt")] },
        { "text": "It says alpha." },
        { "expect": { "user": "and b?" }, "calls": [read("b.txt")] },
        { "text": "It says beta." },
    ]));
    let first = sitting.play(&model, &work("what says a?")).await;
    assert_eq!(first.answer, Some(Answer::Chat { assistant_summary: "It says alpha.".to_owned() }), "{first:?}");
    let held = sitting.hold().await;
    held.say("say_2_0", json!({ "text": "and b?" })).await.unwrap();
    let second = sitting.go_on_with(&held, &model).await;
    assert_eq!(second.answer, Some(Answer::Chat { assistant_summary: "It says beta.".to_owned() }), "{second:?}");
    assert_eq!((second.iterations, second.calls.len()), (4, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_cut_and_its_handle_reads_the_rest() {
    let here = workspace();
    let long: String = (0..9_000).map(|n| format!("line {n}\n")).collect();
    here.write("long.txt", &long);
    let house = house(here).build().await;
    let mut sitting = Sitting::new(&house, "developer");
    sitting.limits.result_chars_max = 4_000;
    let model = script(&json!([
        { "calls": [{ "tool": "bash", "arguments": { "command": "cat long.txt | head -c 60000" } }] },
        { "expect": { "contains": "call_0_0" },
          "calls": [{ "tool": "session_result", "arguments": { "handle": "call_0_0", "offset": 20_000, "limit": 500 } },
                    { "tool": "session_result", "arguments": { "handle": "call_7_0" } }] },
        { "text": "Read." },
    ]));
    let result = sitting.play(&model, &work("read")).await;
    assert_eq!(result.status, Status::Completed, "{result:?}");
    let contents = sitting.contents().await;
    let again = contents[1].1["content"].as_str().unwrap();
    assert!(again.contains("characters 20000 to 20500 of"), "{again}");
    assert!(!result.calls[2].ok, "a handle of no call");
    // Nobody else's session reads it.
    let other = Sitting::new(&house, "developer");
    let model = script(&json!([
        { "calls": [{ "tool": "session_result", "arguments": { "handle": "call_0_0" } }] }, { "text": "No." },
    ]));
    let result = other.play(&model, &work("pry")).await;
    assert!(!other.contents().await[0].1["content"].as_str().unwrap().contains("line"), "{result:?}");
}

/// Rules: 001.26, 001.28.
#[tokio::test(flavor = "multi_thread")]
async fn a_structured_answer_is_parsed_validated_and_repaired() {
    let house = house(workspace()).build().await;
    let schema = json!({
        "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"],
        "additionalProperties": false,
    });
    let task = Task::Workspace { goal: "count".to_owned(), schema: Some(schema) };
    let sitting = Sitting::new(&house, "developer");
    let model = script(&json!([
        { "text": "There are two." },
        { "expect": { "user": "not JSON" }, "text": "{\"count\": \"two\"}" },
        { "expect": { "user": "count" }, "text": "```json\n{\"count\": 2}\n```" },
    ]));
    let result = sitting.play(&model, &task).await;
    assert_eq!(result.answer, Some(Answer::Json { value: json!({ "count": 2 }) }), "{result:?}");
    assert_eq!((result.repairs, result.iterations), (2, 3));
    let stubborn = Sitting::new(&house, "developer");
    let model = script(&json!([{ "text": "a" }, { "text": "b" }, { "text": "c" }, { "text": "d" }]));
    let result = stubborn.play(&model, &task).await;
    let error = result.error.unwrap();
    assert_eq!((result.status, error.code), (Status::Failed, ErrorCode::BadResponse));
    assert_eq!((result.iterations, stubborn.limits.max_repairs), (3, 2), "the frozen default");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_results_are_put_away_alike_in_every_run_and_a_window_that_is_full_has_its_code() {
    let here = workspace();
    let long: String = (0..900).map(|n| format!("a line of text, number {n}\n")).collect();
    here.write("long.txt", &long);
    let house = house(here).build().await;
    let mut sitting = Sitting::new(&house, "developer");
    sitting.limits.max_iterations = 30;
    let mut turns: Vec<Value> = (0..14).map(|_| json!({ "calls": [read("long.txt")] })).collect();
    turns.push(json!({ "text": "Read." }));
    let text = json!({ "turns": turns, "window": 64_000 }).to_string();
    let model = toolhost_agent::model::Script::parse("script", &text).unwrap();
    let result = sitting.play(&model, &work("read")).await;
    assert_eq!(result.status, Status::Completed, "{:?}", result.error);
    let aged = |events: &[Event]| {
        events.iter().filter(|event| matches!(event, Event::Aged { .. })).cloned().collect::<Vec<Event>>()
    };
    let first = aged(&sitting.seen.all());
    assert!(!first.is_empty(), "fourteen long results do not fit");
    // A run that only recalls puts the same away.
    let again = Sitting { seen: Arc::default(), ..Sitting::of(&house, "developer", &sitting.id) };
    let recalled = again.go_on(&model).await;
    assert_eq!((recalled.status, recalled.iterations), (Status::Completed, 15));
    assert_eq!(aged(&again.seen.all()), first);
    let small = json!({ "turns": [{ "text": "x" }], "window": 2_000 }).to_string();
    let small = toolhost_agent::model::Script::parse("script", &small).unwrap();
    let full = Sitting::new(&house, "developer").play(&small, &work("x")).await;
    assert_eq!((full.status, full.error.unwrap().code), (Status::Failed, ErrorCode::ContextBudget));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_writes_more_than_its_window_holds_goes_on() {
    let house = house(workspace()).build().await;
    let content = |n: usize| (0..100).map(|line| format!("value {n}.{line} = {line}\n")).collect::<String>();
    let mut turns: Vec<Value> = (0..101)
        .map(|n| {
            let arguments = json!({ "path": format!("out/{n}.txt"), "content": content(n) });
            json!({ "calls": [{ "tool": "file_write", "arguments": arguments }] })
        })
        .collect();
    let again = json!({ "handle": "call_0_0", "part": "arguments", "limit": 60 });
    turns.push(json!({ "calls": [{ "tool": "session_result", "arguments": again }] }));
    turns.push(json!({ "text": content(0) }));
    turns.push(json!({ "expect": { "user": "repeats more than" }, "text": "Written." }));
    let model = |window: u32| {
        let text = json!({ "turns": turns, "window": window }).to_string();
        toolhost_agent::model::Script::parse("script", &text).unwrap()
    };
    let mut whole = Sitting::new(&house, "developer");
    whole.limits.max_iterations = 200;
    let result = whole.play(&model(128_000), &work("write")).await;
    assert_eq!(result.status, Status::Completed, "{:?}", result.error);
    let read = whole.contents().await.pop().unwrap().1["content"].as_str().unwrap().to_owned();
    assert!(read.contains("characters 0 to 60 of") && read.contains("value 0.0 = 0"), "{read}");
    assert!(read.starts_with("file.write (call_0_0)"), "{read}");
    // One that stands where its window was full, as a host without this has left it.
    let mut full = Sitting::new(&house, "developer");
    full.limits.max_iterations = 90;
    assert_eq!(full.play(&model(1_000_000), &work("write")).await.status, Status::Limited);
    let resumed = full.go_on(&model(40_000)).await;
    assert_eq!((resumed.status, resumed.iterations), (Status::Completed, 104), "{:?}", resumed.error);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_for_a_window_or_a_reader_is_bounded_where_it_comes_in() {
    let here = workspace();
    let long: String = (0..4_000).map(|n| format!("a line of text, number {n}\n")).collect();
    here.write("long.txt", &long);
    let house = house(here).build().await;
    let sitting = Sitting::new(&house, "developer");
    let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
    let many: Vec<Value> =
        (0..10).map(|_| json!({ "tool": "bash", "arguments": { "command": "head -c 48000 long.txt" } })).collect();
    let model = json!({ "window": 64_000, "turns": [
        { "calls": many },
        { "calls": [{ "tool": "x".repeat(100_000), "arguments": {} },
                    { "tool": "file_read", "arguments": { "path": serde_json::from_str::<Value>(&deep).unwrap() } }] },
        { "calls": (0..10_000).map(|_| read("a.txt")).collect::<Vec<Value>>() },
        { "text": "Read." },
    ] });
    let model = toolhost_agent::model::Script::parse("script", &model.to_string()).unwrap();
    let result = sitting.play(&model, &work("read")).await;
    assert_eq!(result.status, Status::Completed, "{:?}", result.error);
    assert_eq!(result.calls.len(), 10 + 2 + sitting.limits.calls_per_turn + 1);
    let told = sitting.contents().await[11].1["content"].as_str().unwrap().to_owned();
    assert!(told.contains("nested deeper than 64 levels"), "{told}");
    // All of it can be read again.
    let again = Sitting { seen: Arc::default(), ..Sitting::of(&house, "developer", &sitting.id) };
    assert_eq!(again.go_on(&model).await.calls.len(), result.calls.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_from_elsewhere_becomes_a_cancel_and_ends_the_call() {
    let house = house(workspace()).build().await;
    let sitting = Sitting::new(&house, "developer");
    let model = script(&json!([
        { "calls": [{ "tool": "bash", "arguments": { "command": "echo on > began.txt; sleep 600" } }] }, { "text": "never" },
    ]));
    let opening = sitting.opening(&model, &work("sleep")).await.unwrap();
    sitting.begin(&opening).await;
    let held = sitting.hold().await;
    let (sessions, project, id) = (house.store.sessions(), house.project.id, sitting.id.clone());
    let root = house.workspace.root();
    let elsewhere = tokio::spawn(async move {
        while !root.join("began.txt").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for signal in [Signal::Pause, Signal::Cancel] {
            sessions.want(project, &id, signal).await.unwrap();
        }
    });
    let result = sitting.go_on_with(&held, &model).await;
    elsewhere.await.unwrap();
    assert_eq!(result.status, Status::Cancelled, "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_no_file_however_it_is_quoted() {
    let house = house(workspace()).build().await;
    let lines = |begin: &str, end: &str, each: &str| -> String {
        let body: String = (0..40).map(|n| format!("{each}line {n}\n")).collect();
        format!("It says:\n{begin}\n{body}{end}\n")
    };
    // A fence of another kind ends none, and quotations need no fence.
    let nested = lines("~~~", "~~~", "").replace("line 3\n", "```\n");
    let file: String = (0..40).map(|n| format!("let number_{n} = {n};\n")).collect();
    let written = json!({ "calls": [{ "tool": "file_write", "arguments": { "path": "n.rs", "content": file } }] });
    let sitting = Sitting::new(&house, "developer");
    let told = format!("I wrote it:\n{}", file.lines().take(12).collect::<Vec<&str>>().join("\n"));
    let model = script(&json!([written, { "text": told }, { "text": "I wrote forty numbers." }]));
    let result = sitting.play(&model, &work("write")).await;
    assert_eq!((result.status, result.repairs), (Status::Completed, 1), "what was written is not said again");
    let short = (0..20).map(|n| format!("```\na{n}\nb{n}\n```\n")).collect::<String>();
    for text in
        [lines("```", "```", ""), lines("~~~", "~~~", ""), lines("", "", "    "), lines("", "", "> "), nested, short]
    {
        let sitting = Sitting::new(&house, "developer");
        let model = script(&json!([{ "text": text }, { "text": "It lists forty lines." }]));
        let result = sitting.play(&model, &work("read")).await;
        assert_eq!((result.status, result.repairs), (Status::Completed, 1), "{text}");
    }
}
