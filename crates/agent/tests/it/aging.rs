//! Long conversations: old results become digests, rarely, once, and nothing else changes.

use proptest::prelude::*;
use serde_json::json;
use toolhost_agent::budget::{Aging, Counter, SESSION_RESULT_TOOL, SHORT_TOKENS_MIN, Tally, Weight, age};
use toolhost_agent::model::{Arguments, Message, SystemBlock, ToolCall, ToolSpec};
use toolhost_agent::prompt::mark_untrusted;

const POLICY: Aging = Aging { high: 20_000, low: 10_000, turns_kept: 2, short: 400, reread: true };

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
    let is_digest =
        |message: &Message| matches!(message, Message::Tool { content, .. } if content.contains(SESSION_RESULT_TOOL));
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
        Aging { high: 10, low: 0, turns_kept: 0, short: 0, reread: true },
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
    let without = Aging { high: 10, low: 0, turns_kept: 0, short: 0, reread: false };
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
        for model in ["gpt-4o", "gpt-4"] {
            let (mut exact, mut weight) = (Tally::default(), Weight::default());
            // In two steps, as a session does.
            for end in [messages.len() / 2, messages.len()] {
                exact.update(&messages[..end], &Counter::for_model(model));
                let most = weight.tokens_max(&messages[..end]);
                prop_assert!(exact.total(&Counter::for_model(model)) <= most, "{model}: {most}");
            }
        }
        let before = messages.clone();
        let policy = Aging { high, low: high / 2, turns_kept: kept, short, reread: true };
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
        let everything = Aging { high: 0, low: 0, turns_kept: 0, short: 0, reread: true };
        age(&mut messages, &mut fresh, &counter(), everything);
        let all = messages.clone();
        prop_assert!(age(&mut messages, &mut Tally::default(), &counter(), everything).is_empty());
        prop_assert_eq!(&messages, &all);
        prop_assert_eq!(once.len(), all.len());
    }
}
