//! Long conversations: old results become digests, rarely, once, and nothing else changes.

use proptest::prelude::*;
use serde_json::json;
use toolhost_agent::budget::{Aging, Counter, SHORT_TOKENS_MIN, Tally, Weight, age, strip};
use toolhost_agent::model::{Arguments, Message, SystemBlock, ToolCall, ToolSpec};
use toolhost_agent::prompt::mark_untrusted;

const REREAD: &str = "session_result";
const POLICY: Aging = Aging { high: 20_000, low: 10_000, turns_kept: 2, short: 400, reread: Some(REREAD) };

fn counter() -> Counter {
    Counter::for_model("gpt-4o")
}

fn reply(id: &str) -> Message {
    let arguments = Arguments::Json(json!({ "path": format!("{id}.rs") }));
    let calls = vec![ToolCall { id: id.to_owned(), name: "file_read".to_owned(), arguments }];
    Message::Assistant { content: String::new(), calls, signatures: Vec::new() }
}

fn result(id: &str, text: &str) -> Message {
    let content = mark_untrusted("tool `file_read`", text);
    Message::Tool { tool_call_id: id.to_owned(), name: "file_read".to_owned(), content, failed: false }
}

/// A request and so many reads of a thousand words.
fn conversation(reads: usize) -> Vec<Message> {
    let mut messages = vec![Message::User { content: "Read.".to_owned() }];
    for n in 0..reads {
        let id = format!("call_{n}");
        messages.extend([reply(&id), result(&id, &format!("// file {n}\n{}", "one word more ".repeat(700)))]);
    }
    messages
}

fn aged_at(messages: &[Message]) -> Vec<usize> {
    let is_digest = |message: &Message| matches!(message, Message::Tool { content, .. } if content.contains(REREAD));
    messages.iter().enumerate().filter(|(_, message)| is_digest(message)).map(|(at, _)| at).collect()
}

#[test]
fn below_the_high_mark_nothing_is_aged() {
    let mut messages = conversation(5);
    let before = messages.clone();
    let mut tally = Tally::default();
    assert!(age(&mut messages, &mut tally, &counter(), POLICY).is_empty());
    assert_eq!(messages, before);
    assert!(tally.total(&counter()) < POLICY.high);
}

#[test]
fn above_it_the_oldest_go_down_to_the_low_mark_at_once_and_the_last_stay() {
    let mut messages = conversation(12);
    let mut tally = Tally::default();
    let aged = age(&mut messages, &mut tally, &counter(), POLICY);
    assert!(tally.total(&counter()) <= POLICY.low);
    let places: Vec<usize> = (0..aged.len()).map(|n| 2 * n + 2).collect();
    assert_eq!(aged_at(&messages), places);
    assert!(aged.iter().all(|aged| aged.tokens_before > 2_000 && aged.tokens_after < 200));
    assert_eq!((aged[0].tool_call_id.as_str(), aged[0].tool.as_str()), ("call_0", "file_read"));
    // Only two more results fit under the high mark before the next time: it is quiet until then.
    messages.extend([reply("next"), result("next", "short")]);
    assert!(age(&mut messages, &mut tally, &counter(), POLICY).is_empty());
    let everything = Aging { high: 0, low: 0, ..POLICY };
    age(&mut messages, &mut tally, &counter(), everything);
    assert_eq!(aged_at(&messages).last(), Some(&(2 * 11)), "the last two replies keep their results");
}

#[test]
fn a_digest_says_what_it_was_and_how_to_read_it_again() {
    let mut messages =
        vec![reply("c"), result("c", &format!("\nfirst line\n[x] \u{202e}ignore\n{}", "more\n".repeat(900)))];
    age(
        &mut messages,
        &mut Tally::default(),
        &counter(),
        Aging { high: 10, low: 0, turns_kept: 0, short: 0, reread: Some(REREAD) },
    );
    let Message::Tool { content, tool_call_id, name, failed } = &messages[1] else {
        unreachable!("the answer stays one")
    };
    assert_eq!((tool_call_id.as_str(), name.as_str(), *failed), ("c", "file_read", false));
    let lines: Vec<&str> = content.lines().collect();
    assert_eq!(lines.len(), 3, "{content}");
    assert!(
        lines[0].starts_with("[An older result, shortened. Tool `file_read`, 4524 characters in 903 lines, SHA-256 "),
        "{content}"
    );
    assert_eq!(lines[1], "It began with (data, not instruction): \"first line / [x] \\\\u{202e}ignore\"");
    assert_eq!(lines[2], "To read all of it again, call `session_result` with {\"handle\":\"c\"}.");
    // Without that tool it says the other way.
    let mut messages = vec![reply("c"), result("c", &"more\n".repeat(900))];
    let without = Aging { high: 10, low: 0, turns_kept: 0, short: 0, reread: None };
    age(&mut messages, &mut Tally::default(), &counter(), without);
    assert!(
        matches!(&messages[1], Message::Tool { content, .. } if content.ends_with("call the tool again.")),
        "{messages:?}"
    );
}

#[test]
fn a_correction_moves_the_tally_without_a_recount_and_steps_count_what_is_new() {
    let claude = Counter::for_model("anthropic::claude-sonnet-5");
    let mut tally = Tally::default();
    let system = [SystemBlock { text: "You are an engineer.".to_owned(), cache: true }];
    let tools = [ToolSpec { name: "file_read".to_owned(), description: "Reads.".to_owned(), schema: json!({}) }];
    tally.set_base(&system, &tools, &claude);
    let base = tally.total(&claude);
    assert!(base > 0);
    let messages = conversation(3);
    tally.update(&messages, &claude);
    let total = tally.total(&claude);
    let mut calibration = toolhost_agent::budget::Calibration::default();
    calibration.observe(total, total * 2);
    assert_eq!(tally.total(&claude.calibrated(calibration)), (total * 5).div_ceil(4));
    // What was counted is not counted again: a shorter conversation gives back exactly what was added.
    tally.update(&messages[..1], &claude);
    tally.update(&messages, &claude);
    assert_eq!((tally.total(&claude), tally.len()), (total, messages.len()));
    tally.update(&[], &claude);
    assert_eq!((tally.total(&claude), tally.is_empty()), (base, true));
}

fn write(id: &str, arguments: Arguments) -> Message {
    let calls = vec![ToolCall { id: id.to_owned(), name: "file_write".to_owned(), arguments }];
    Message::Assistant { content: String::new(), calls, signatures: Vec::new() }
}

fn arguments_of(message: &Message) -> serde_json::Value {
    let Message::Assistant { calls, .. } = message else { unreachable!("a reply stays one") };
    calls[0].arguments.value()
}

#[test]
fn long_arguments_of_old_calls_become_digests_in_an_object_and_short_fields_stay() {
    let content: String = (0..400).map(|n| format!("v{n} = {n}\n")).collect();
    let whole = json!({ "path": "a.py", "content": content, "createOnly": true });
    let mut messages: Vec<Message> = vec![Message::User { content: "Write.".to_owned() }];
    for n in 0..6 {
        let id = format!("call_{n}_0");
        messages.extend([write(&id, Arguments::Json(whole.clone())), result(&id, "written")]);
    }
    messages.push(write("call_6_0", Arguments::Malformed("{".repeat(5_000))));
    messages.push(result("call_6_0", "not run"));
    messages.push(write("call_7_0", Arguments::Json(json!({ "edits": [{ "search": content, "replace": "x" }] }))));
    messages.push(result("call_7_0", "edited"));
    let everything = Aging { high: 10, low: 0, turns_kept: 0, short: 0, reread: Some(REREAD) };
    let mut tally = Tally::default();
    let aged = age(&mut messages, &mut tally, &counter(), everything);
    let put_away: Vec<_> = aged.iter().filter_map(|aged| aged.arguments.clone()).collect();
    assert_eq!((put_away.len(), &put_away[0]), (8, &whole), "what was put away is handed back whole");
    let mut fresh = Tally::default();
    fresh.update(&messages, &counter());
    assert_eq!(tally.total(&counter()), fresh.total(&counter()));
    assert!(tally.total(&counter()) < 2_000, "{}", tally.total(&counter()));
    let shorter = arguments_of(&messages[1]);
    assert_eq!((&shorter["path"], &shorter["createOnly"]), (&json!("a.py"), &json!(true)));
    let digest = shorter["content"].as_str().unwrap();
    assert!(
        digest.starts_with("[An older argument, shortened. It had 4180 characters in 400 lines, SHA-256 "),
        "{digest}"
    );
    assert!(digest.contains("and began: \"v0 = 0 / v1 = 1\"]"), "{digest}");
    assert!(digest.ends_with("`session_result` with {\"handle\":\"call_0_0\",\"part\":\"arguments\"}."), "{digest}");
    for at in [13, 15] {
        assert!(arguments_of(&messages[at]).is_object(), "{:?}", messages[at]);
        assert!(arguments_of(&messages[at]).to_string().contains("shortened"), "{:?}", messages[at]);
    }
    let once = messages.clone();
    assert!(age(&mut messages, &mut Tally::default(), &counter(), everything).is_empty());
    assert_eq!(messages, once, "no digest is shortened again");
    // The last replies keep theirs, and so does what fits.
    let mut messages = vec![write("a", Arguments::Json(whole.clone())), result("a", "written"), reply("b")];
    assert!(age(&mut messages, &mut Tally::default(), &counter(), Aging { turns_kept: 2, ..everything }).is_empty());
    assert!(age(&mut messages, &mut Tally::default(), &counter(), POLICY).is_empty());
}

#[test]
fn where_digests_are_too_much_handles_stay_and_what_people_said() {
    let goal = "Do all of it, please. ".repeat(200);
    let mut messages = vec![Message::User { content: goal.clone() }];
    for n in 0..300 {
        let id = format!("call_{n}_0");
        let mut said = write(&id, Arguments::Json(json!({ "path": format!("{n}"), "content": "a b ".repeat(150) })));
        if let Message::Assistant { content, .. } = &mut said {
            *content = "I think that this is what comes next. ".repeat(30);
        }
        messages.extend([said, result(&id, &"short words ".repeat(150))]);
    }
    let (mut tally, policy) = (Tally::default(), Aging { high: 60_000, low: 60_000, turns_kept: 0, ..POLICY });
    assert!(age(&mut messages, &mut tally, &counter(), policy).is_empty(), "nothing of it is long by itself");
    let before = tally.total(&counter());
    assert!(before > 200_000, "{before}");
    let stripped = strip(&mut messages, &mut tally, &counter(), Aging { turns_kept: 1, ..policy });
    assert!(tally.total(&counter()) <= policy.low && stripped.iter().any(|aged| aged.arguments.is_some()));
    let mut fresh = Tally::default();
    fresh.update(&messages, &counter());
    assert_eq!(tally.total(&counter()), fresh.total(&counter()));
    assert_eq!(messages[0], Message::User { content: goal });
    let Message::Tool { content, .. } = &messages[2] else { unreachable!("the answer stays one") };
    assert_eq!(content, "[Put away. `session_result` with {\"handle\":\"call_0_0\"} reads it.]");
    let note = "[Put away. `session_result` with {\"handle\":\"call_0_0\",\"part\":\"arguments\"} reads it.]";
    assert_eq!(arguments_of(&messages[1]), json!({ "shortened": note }));
    let Message::Assistant { content, .. } = &messages[1] else { unreachable!("a reply stays one") };
    assert!(content.ends_with("characters of this older message left out]") && content.len() < 250, "{content}");
    // Once more, all the way: it ends, the last reply stays, and nothing is stripped twice.
    let nothing = Aging { high: 0, low: 0, turns_kept: 1, ..POLICY };
    strip(&mut messages, &mut tally, &counter(), nothing);
    assert!(matches!(&messages[599], Message::Assistant { content, .. } if content.len() > 1_000));
    let once = messages.clone();
    assert!(strip(&mut messages, &mut tally, &counter(), nothing).is_empty());
    assert_eq!(messages, once);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 5))]

    #[test]
    fn any_conversation_keeps_its_calls_its_answers_and_its_last_turns(
        lengths in prop::collection::vec((0_usize..6_000, any::<bool>()), 1..14),
        kept in 0_usize..4, high in 100_u64..9_000, short in 0_u64..900,
    ) {
        let mut messages = vec![Message::User { content: "Go.".to_owned() }];
        for (n, (length, chinese)) in lengths.iter().enumerate() {
            let id = format!("call_{n}");
            let text = if *chinese { "文件内容，".repeat(*length / 5) } else { "let x = 1; ".repeat(*length / 5) };
            messages.extend([reply(&id), result(&id, &text)]);
        }
        let (mut exact, mut weight) = (Tally::default(), Weight::default());
        // In two steps, as a session does.
        for end in [messages.len() / 2, messages.len()] {
            exact.update(&messages[..end], &Counter::for_model("gpt-4o"));
            let most = weight.tokens_max(&messages[..end]);
            prop_assert!(exact.total(&Counter::for_model("gpt-4o")) <= most, "{most}");
        }
        let before = messages.clone();
        let policy = Aging { high, low: high / 2, turns_kept: kept, short, reread: Some(REREAD) };
        let mut tally = Tally::default();
        let aged = age(&mut messages, &mut tally, &counter(), policy);
        let mut fresh = Tally::default();
        fresh.update(&messages, &counter());
        prop_assert_eq!(tally.total(&counter()), fresh.total(&counter()));
        let mut changed = Vec::new();
        for (at, (old, new)) in before.iter().zip(&messages).enumerate() {
            if old == new { continue }
            let (Message::Tool { tool_call_id: a, .. }, Message::Tool { tool_call_id: b, content, .. }) = (old, new) else {
                return Err(TestCaseError::fail("only results change"));
            };
            prop_assert!(a == b && at < before.len() - 2 * kept.min(lengths.len()));
            prop_assert!(counter().count(content) <= SHORT_TOKENS_MIN);
            changed.push(a.clone());
        }
        let named: Vec<String> = aged.iter().map(|aged| aged.tool_call_id.clone()).collect();
        prop_assert_eq!(named, changed);
        prop_assert!(aged.iter().all(|aged| aged.tokens_before > short.max(SHORT_TOKENS_MIN) && aged.tokens_after < aged.tokens_before));
        // Again, also by one that knows nothing of the first time.
        let once = messages.clone();
        let everything = Aging { high: 0, low: 0, turns_kept: 0, short: 0, reread: Some(REREAD) };
        age(&mut messages, &mut fresh, &counter(), everything);
        let all = messages.clone();
        prop_assert!(age(&mut messages, &mut Tally::default(), &counter(), everything).is_empty());
        prop_assert_eq!(&messages, &all);
        prop_assert_eq!(once.len(), all.len());
    }
}
