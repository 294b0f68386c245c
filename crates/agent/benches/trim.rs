//! What counting costs: an envelope of 5 MB shortened, a text counted, a step of a long conversation tallied.
//!
//! The budget is 100 ms for the envelope. `cargo bench -p toolhost-agent` prints the table.

#![expect(clippy::unwrap_used, reason = "a measurement")]

use divan::Bencher;
use serde_json::{Value, json};
use toolhost_agent::budget::{Aging, Budget, Counter, Tally, age, trim_context_with_budget};
use toolhost_agent::model::Message;

const BYTES: usize = 5_000_000;
const LINE: &str =
    "fn total(items: &[Item]) -> u64 { items.iter().map(|item| item.price).sum() } // 合计：所有项目的价格。\n";

fn main() {
    divan::main();
}

/// How the bytes are spread.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Files in a list, 50 kB each.
    Files,
    /// Entries with short texts.
    Fields,
    /// One text.
    Text,
}

fn envelope(shape: Shape) -> Value {
    let dependencies = match shape {
        Shape::Files => {
            let file = |n| json!({ "path": format!("assets/{n}.md"), "content": LINE.repeat(50_000 / LINE.len()) });
            json!({ "assets": (0..BYTES / 50_000).map(file).collect::<Vec<_>>() })
        }
        Shape::Fields => (0..BYTES / LINE.len()).map(|n| (format!("key{n}"), json!({ "line": LINE }))).collect(),
        Shape::Text => json!({ "all": LINE.repeat(BYTES / LINE.len()) }),
    };
    json!({
        "session_meta": {}, "domain_profile": {}, "normative_baseline": {},
        "target_snapshot": { "step_markdown": LINE.repeat(200) }, "dependency_digest": dependencies,
        "tool_capabilities": {}, "revision_info": {},
    })
}

#[divan::bench(args = [Shape::Files, Shape::Fields, Shape::Text])]
fn trim_5_mb_to_a_window_of_200k(bencher: Bencher, shape: Shape) {
    let (envelope, counter) = (envelope(shape), Counter::for_model("claude"));
    let budget = Budget::of_window(200_000);
    bencher.bench_local(|| trim_context_with_budget(&envelope, &counter, budget).unwrap());
}

#[divan::bench(args = [Shape::Files, Shape::Fields, Shape::Text])]
fn trim_5_mb_to_a_window_of_1m(bencher: Bencher, shape: Shape) {
    let (envelope, counter) = (envelope(shape), Counter::for_model("claude"));
    let budget = Budget::of_window(1_000_000);
    bencher.bench_local(|| trim_context_with_budget(&envelope, &counter, budget).unwrap());
}

#[divan::bench]
fn count_1_mb(bencher: Bencher) {
    let (text, counter) = (LINE.repeat(1_000_000 / LINE.len()), Counter::for_model("gpt-5"));
    bencher.counter(divan::counter::BytesCount::of_str(&text)).bench_local(|| counter.count(&text));
}

/// A short message more, however long the conversation is.
#[divan::bench(args = [10, 1_000, 10_000])]
fn tally_a_step(bencher: Bencher, messages: usize) {
    let counter = Counter::for_model("gpt-5");
    let policy = Aging::of_window(u32::MAX);
    let mut said = vec![Message::User { content: LINE.to_owned() }; messages];
    let mut tally = Tally::default();
    tally.update(&said, &counter);
    bencher.bench_local(|| {
        said.truncate(messages);
        tally.update(&said, &counter);
        said.push(Message::User { content: LINE.to_owned() });
        age(&mut said, &mut tally, &counter, policy)
    });
}
