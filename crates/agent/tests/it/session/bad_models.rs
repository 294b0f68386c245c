//! Models that behave badly, a row each: what their sessions come to, and that each of them can be resumed.

use serde_json::{Value, json};
use toolhost_agent::model::Script;
use toolhost_agent::session::{Answer, LoopResult, Status, step};
use toolhost_agent::start::{BuilderTarget, Task};
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_builder::limits::FILE_BYTES_MAX;
use toolhost_testkit::House;
use toolhost_testkit::engines::{Engine, engines};
use toolhost_testkit::sample::{house_with_sample, in_session};
use toolhost_testkit::session::Sitting;

const ASSET: &str = "assets/review-checklist.md";
const BAD: Option<&str> = Some("AI_BAD_RESPONSE");
const NOT_ALLOWED: Option<&str> = Some("AI_TOOL_NOT_ALLOWED");
const FORBIDDEN: Option<&str> = Some("AI_TOOL_FORBIDDEN");
const FAILED: Option<&str> = Some("AI_TOOL_EXECUTION_ERROR");
const LIMIT: Option<&str> = Some("AI_TOOL_LOOP_LIMIT_EXCEEDED");

/// A model, and what becomes of its session.
struct Row {
    says: &'static str,
    turns: Vec<Value>,
    status: Status,
    /// Of the session that failed or was limited.
    code: Option<&'static str>,
    repairs: u32,
    /// The codes of calls that failed, in their order.
    failed: Vec<Option<&'static str>>,
    /// How many sets are reported as never validated.
    unvalidated: usize,
    /// How many are reported as not valid.
    invalid: usize,
}

impl Row {
    /// A session that comes to its end, whose answers were sent back so often.
    fn done(says: &'static str, repairs: u32, turns: Vec<Value>) -> Self {
        Self {
            says,
            turns,
            status: Status::Completed,
            code: None,
            repairs,
            failed: Vec::new(),
            unvalidated: 0,
            invalid: 0,
        }
    }

    /// A session that comes to its end, with calls that fail so.
    fn calls(says: &'static str, failed: &[Option<&'static str>], turns: Vec<Value>) -> Self {
        Self { failed: failed.to_vec(), ..Self::done(says, 0, turns) }
    }

    fn ends(
        says: &'static str,
        (status, code): (Status, Option<&'static str>),
        repairs: u32,
        turns: Vec<Value>,
    ) -> Self {
        Self { status, code, ..Self::done(says, repairs, turns) }
    }
}

fn say(text: impl Into<String>) -> Value {
    json!({ "text": text.into() })
}

/// The same turn, played only if the person's side said this last.
fn told(words: &str, mut turn: Value) -> Value {
    turn["expect"] = json!({ "user": words });
    turn
}

/// The same turn, played only if the last result has these words.
fn after(words: &str, mut turn: Value) -> Value {
    turn["expect"] = json!({ "contains": words });
    turn
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "calls": [{ "tool": tool, "arguments": arguments }] })
}

fn raw(tool: &str, arguments: &str) -> Value {
    json!({ "calls": [{ "tool": tool, "raw": arguments }] })
}

fn chat() -> String {
    json!({ "responseType": "chat", "assistantSummary": "Nothing needs a change." }).to_string()
}

fn chat_of(summary: &str) -> Value {
    say(json!({ "responseType": "chat", "assistantSummary": summary }).to_string())
}

fn done() -> Value {
    say(chat())
}

fn change(set: &Value) -> Value {
    say(json!({ "responseType": "change", "assistantSummary": "The checklist is clearer.", "changeSet": set })
        .to_string())
}

fn stage(set: &Value) -> Value {
    call("builder_change_stage", json!({ "changeSet": set }))
}

/// Sets on what is there.
struct Sets {
    good: Value,
    /// It takes away what others refer to.
    bad: Value,
    /// The text of the asset that it is all about.
    text: String,
}

async fn sets(house: &House) -> Sets {
    let read = in_session(house, "reader", "builder.asset.read", json!({ "path": ASSET })).await;
    let set = |operation: Value| {
        json!({
            "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize", "operations": [operation],
            "revisions": read.data["revisions"],
        })
    };
    let target = json!({ "path": ASSET });
    let upsert =
        json!({ "op": "upsert", "targetType": "asset", "target": target, "payload": { "content": "Clearer.\n" } });
    let text = (0..14).map(|n| format!("- [ ] Question {n} of the list is answered.\n")).collect();
    Sets { good: set(upsert), bad: set(json!({ "op": "delete", "targetType": "asset", "target": target })), text }
}

/// Answers that are not what an answer has to be.
fn answers(sets: &Sets) -> Vec<Row> {
    let failed = (Status::Failed, BAD);
    let with = |field: &str, value: Value| {
        let mut answer: Value = serde_json::from_str(&chat()).unwrap();
        answer[field] = value;
        say(answer.to_string())
    };
    let other = |field: &str, value: &str| {
        let mut set = sets.good.clone();
        set[field] = json!(value);
        change(&set)
    };
    let deep = (0..100).fold(json!(1), |value, _| json!([value]));
    let again = "with the JSON object alone";
    vec![
        Row::ends(
            "no JSON, three times",
            failed,
            2,
            vec![say("{oops"), told(again, say("{oops")), told("column", say("no"))],
        ),
        Row::ends("a very long message, three times", failed, 2, vec![say("lorem ipsum ".repeat(60_000)); 3]),
        Row::done("a code fence", 0, vec![say(format!("```json\n{}\n```", chat()))]),
        Row::done("prose around the object", 0, vec![say(format!("Here is it:\n{}\nAnything else?", chat()))]),
        Row::done("a thought before it", 0, vec![say(format!("<think>Is {{\"a\": 1}} it?</think>\n{}", chat()))]),
        Row::done("a thought without its beginning", 0, vec![say(format!("so be it</think>{}", chat()))]),
        Row::done(
            "two answers at once",
            1,
            vec![say(format!("{0}\n{0}", chat())), told("several JSON objects", done())],
        ),
        Row::done("prose without an object", 1, vec![say("All is well."), told("is not JSON", done())]),
        Row::done("a list", 1, vec![say("[1]"), told("not a JSON object", done())]),
        Row::done("an unknown field", 1, vec![with("mood", json!("good")), told("a field `mood`", done())]),
        Row::done("an unknown kind", 1, vec![with("responseType", json!("talk")), told("neither `chat` nor", done())]),
        Row::done("no summary", 1, vec![with("assistantSummary", json!(" ")), told("no `assistantSummary`", done())]),
        Row::done(
            "a set that is a string",
            1,
            vec![
                say(json!({ "responseType": "change", "assistantSummary": "Done.", "changeSet": "cs-1" }).to_string()),
                told("needs its `changeSet`", done()),
            ],
        ),
        Row::done(
            "a chat with a set",
            1,
            vec![with("changeSet", sets.good.clone()), told("has no `changeSet`", done())],
        ),
        Row::done("a change without one", 1, vec![with("responseType", json!("change")), told("needs its", done())]),
        Row::done("another kind of target", 1, vec![other("targetType", "step"), told("`targetType: step`", done())]),
        Row::done("another mode", 1, vec![other("mode", "create"), told("`mode: create`", done())]),
        Row::done(
            "a nest of lists",
            1,
            vec![change(&json!({ "operations": deep })), told("nested too deeply", done())],
        ),
        Row::done("blank", 1, vec![say(" "), told("You said nothing", done())]),
        Row::done("cut off", 1, vec![json!({ "text": "{\"respo", "stop": "length" }), told("cut off", done())]),
        Row::done("withheld", 1, vec![json!({ "text": "I can't.", "stop": "refused" }), told("withheld", done())]),
        Row::done(
            "a set that nobody knows",
            1,
            vec![change(&json!({ "changeSetId": "cs-9999" })), told("cs-9999", done())],
        ),
    ]
}

/// Summaries that carry a file, or claim what is not so.
fn summaries(sets: &Sets) -> Vec<Row> {
    let read = || call("builder_asset_read", json!({ "path": ASSET }));
    let mut set = sets.good.clone();
    set["operations"][0]["payload"]["content"] = json!(sets.text);
    let carrying = json!({ "responseType": "change", "assistantSummary": sets.text, "changeSet": set }).to_string();
    let of_context = include_str!("../../../../../examples/research-report/assets/source-rules.md");
    let repeats = "of what was read or written";
    vec![
        Row::done("a change whose summary is its file", 1, vec![say(carrying), told(repeats, done())]),
        Row::done(
            "a chat that is a file it has read",
            1,
            vec![
                call("builder_asset_read", json!({ "path": "assets/source-rules.md" })),
                chat_of(of_context),
                told(repeats, done()),
            ],
        ),
        Row::done(
            "a chat that is the draft of a set",
            1,
            vec![stage(&set), call("builder_change_discard", json!({})), chat_of(&sets.text), told(repeats, done())],
        ),
        Row::done(
            "a chat in a fence",
            1,
            vec![chat_of(&format!("```\n{}```", "a line\n".repeat(40))), told("quotes more than", done())],
        ),
        Row::done("a long story", 1, vec![chat_of(&"word ".repeat(2_000)), told("characters", done())]),
        // A person sees what is applied, and that this is not.
        Row::done("a chat that says it has applied", 0, vec![read(), chat_of("I have applied the change.")]),
    ]
}

/// Calls that may not be made, cannot be read, or are made again and again.
fn calls() -> Vec<Row> {
    let read = || call("builder_asset_read", json!({ "path": ASSET }));
    let none = || call("builder_asset_read", json!({ "path": "assets/none.md" }));
    let apply = json!({ "changeSetId": "cs-1", "confirmSource": "ui_manual_apply" });
    let text = "x".repeat(FILE_BYTES_MAX + 1);
    let large = json!({
        "schemaVersion": "1.0", "targetType": "asset", "mode": "create",
        "operations": [{ "op": "upsert", "targetType": "asset", "target": { "path": "assets/large.md" },
                         "payload": { "content": text } }],
    });
    let many: Vec<Value> =
        (0..200).map(|_| json!({ "tool": "builder_asset_read", "arguments": { "path": ASSET } })).collect();
    let limited = (Status::Limited, LIMIT);
    let mut same = vec![read(), read()];
    same.extend((0..6).map(|n| after(&format!("made this very call {} times", n + 2), read())));
    let mut wrong = vec![none(), none()];
    wrong.extend((0..6).map(|n| after(&format!("very call has failed {} times", n + 2), none())));
    vec![
        Row::calls("apply", &[FORBIDDEN], vec![call("builder_change_apply", apply.clone()), done()]),
        Row::calls("apply, as people write it", &[FORBIDDEN], vec![call("builder.change.apply", apply), done()]),
        Row::calls("a tool that is not there", &[NOT_ALLOWED], vec![call("think_hard", json!({})), done()]),
        Row::calls(
            "a tool that it was not given",
            &[NOT_ALLOWED],
            vec![call("bash", json!({ "command": "ls" })), done()],
        ),
        Row::calls(
            "arguments that are not JSON",
            &[FAILED],
            vec![raw("builder_asset_read", "{\"path\": "), after("Call again with one JSON object", done())],
        ),
        Row::calls(
            "arguments that are a list",
            &[FAILED],
            vec![raw("builder_asset_read", "[1]"), after("not a JSON object", done())],
        ),
        Row::calls(
            "more text than a file may have",
            &[Some("AI_CHANGESET_CONTRACT_VIOLATION")],
            vec![stage(&large), after("FILE_TOO_LARGE", read()), done()],
        ),
        Row::calls("two hundred calls at once", &[LIMIT], vec![json!({ "calls": many }), done()]),
        Row::ends("the same call for ever", limited, 0, same),
        Row { failed: vec![FAILED; 8], ..Row::ends("the same failing call for ever", limited, 0, wrong) },
        Row::ends("other calls for ever", limited, 0, other_reads()),
    ]
}

/// As many reads as there are replies, each of another object.
fn other_reads() -> Vec<Value> {
    let assets =
        ["brief-template.md", "evidence-table.md", "review-checklist.md", "search-log.yaml", "source-rules.md"];
    let path = |name: &str| json!({ "path": format!("assets/{name}") });
    let mut turns: Vec<Value> = assets.iter().map(|name| call("builder_asset_read", path(name))).collect();
    turns.push(call("builder_asset_read", path("style-guide.md")));
    turns.push(told("2 replies left", call("builder_agent_read", json!({ "agentId": "scout" }))));
    turns.push(told("your last reply", call("builder_schema_read", json!({}))));
    turns
}

/// Sets that are not valid, or that nobody has validated.
fn unfinished(sets: &Sets) -> Vec<Row> {
    let validate = || call("builder_change_validate", json!({}));
    let discard = || call("builder_change_discard", json!({}));
    let invalid = (Status::Failed, Some("AI_VALIDATION_FAILED"));
    let bad = || change(&sets.bad);
    let sent_back = "was discarded";
    vec![
        Row::ends(
            "an invalid set, three times",
            invalid,
            2,
            vec![bad(), told(sent_back, bad()), told(sent_back, bad())],
        ),
        Row { unvalidated: 1, ..Row::done("a set that it leaves alone", 0, vec![stage(&sets.good), chat_of("Done.")]) },
        Row {
            invalid: 1,
            ..Row::done(
                "a set that it leaves alone although it is not valid",
                0,
                vec![
                    call("builder_change_stage", json!({ "changeSet": sets.bad, "validate": true })),
                    chat_of("Done."),
                ],
            )
        },
        Row::done("a set that it takes back", 0, vec![stage(&sets.good), discard(), done()]),
        Row::done("a set that it validates and does not name", 0, vec![stage(&sets.good), validate(), done()]),
        // Eight replies are the default: each answer that is sent back gives three more.
        Row::done(
            "two repairs after much work",
            2,
            vec![
                call("builder_asset_read", json!({ "path": ASSET })),
                call("builder_refs_find", json!({ "locator": { "type": "path", "value": ASSET } })),
                call("builder_schema_read", json!({})),
                stage(&sets.bad),
                bad(),
                told(sent_back, stage(&sets.bad)),
                validate(),
                bad(),
                told(sent_back, stage(&sets.good)),
                validate(),
                change(&sets.good),
            ],
        ),
    ]
}

/// Rules: 001.26, 001.28.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_model_does_its_session_ends_well_and_can_be_resumed() {
    let engines: Vec<Engine> = engines().collect();
    for (turn, engine) in engines.iter().enumerate() {
        let house = house_with_sample(engine).await;
        let sets = sets(&house).await;
        let rows: Vec<Row> =
            [answers(&sets), summaries(&sets), calls(), unfinished(&sets)].into_iter().flatten().collect();
        assert!(rows.len() >= 35, "{}", rows.len());
        let mut wrong = Vec::new();
        // What a model does is the same on each engine: each row is played on one of them.
        for row in rows.iter().skip(turn).step_by(engines.len()) {
            let story = format!("{engine}: {}", row.says);
            let sitting = Sitting::new(&house, "builder");
            let mut turns = row.turns.clone();
            turns.push(done());
            let model = Script::parse("script", &json!({ "turns": turns }).to_string()).unwrap();
            let result = sitting.play(&model, &task()).await;
            wrong.extend(check(row, &result).err().map(|found| format!("{story}: {found}: {result:?}")));
            // A word of the person is enough.
            let held = sitting.hold().await;
            held.say(&step::say(result.iterations, 0), json!({ "text": "Answer now." })).await.unwrap();
            let resumed = sitting.go_on_with(&held, &model).await;
            let nothing = Answer::Chat { assistant_summary: "Nothing needs a change.".to_owned() };
            if (resumed.status, &resumed.answer) != (Status::Completed, &Some(nothing)) {
                wrong.push(format!("{story}: resumed: {resumed:?}"));
            }
            in_session(&house, &sitting.id, "builder.change.discard", json!({})).await;
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }
}

/// What of a session is not as its row says.
fn check(row: &Row, result: &LoopResult) -> Result<(), String> {
    let code = result.error.as_ref().map(|error| error.code.as_str());
    let failed: Vec<Option<&str>> =
        result.calls.iter().filter(|call| !call.ok).map(|call| call.code.as_deref()).collect();
    let turns = u32::try_from(row.turns.len()).unwrap();
    let found = [
        ("end", (result.status, code) == (row.status, row.code)),
        ("repairs", result.repairs == row.repairs),
        ("turns", result.iterations == turns),
        ("failed calls", failed == row.failed),
        ("unvalidated", result.unvalidated.len() == row.unvalidated),
        ("invalid", result.invalid.len() == row.invalid),
    ];
    found.into_iter().find(|(_, holds)| !holds).map_or(Ok(()), |(what, _)| Err(what.to_owned()))
}

fn task() -> Task {
    Task::Builder(BuilderTarget {
        goal: "make it clearer".to_owned(),
        target_type: TargetType::Asset,
        target_id: ASSET.to_owned(),
        mode: Mode::Optimize,
        workflow_id: None,
        context_budget: None,
        reserve_for_response: None,
        all_tools: false,
    })
}
