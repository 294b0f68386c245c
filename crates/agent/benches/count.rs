//! What counting costs: a text, and a step of a long conversation. `cargo bench -p toolhost-agent` prints the table.

use divan::Bencher;
use toolhost_agent::budget::{Aging, Counter, Tally, age};
use toolhost_agent::model::Message;

const LINE: &str =
    "fn total(items: &[Item]) -> u64 { items.iter().map(|item| item.price).sum() } // 合计：所有项目的价格。\n";

fn main() {
    divan::main();
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
