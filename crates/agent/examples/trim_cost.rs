//! What it costs to shorten an envelope of 5 MB, however its bytes are spread. Prints the worst median as JSON.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, clippy::print_stdout, reason = "a measurement")]

use std::time::Instant;

use serde_json::{Value, json};
use toolhost_agent::budget::{Budget, Counter, trim_context_with_budget};

const BYTES: usize = 5_000_000;
const LINE: &str =
    "fn total(items: &[Item]) -> u64 { items.iter().map(|item| item.price).sum() } // 合计：所有项目的价格。\n";
const WINDOWS: [u32; 2] = [200_000, 1_000_000];
const ROUNDS: usize = 21;

fn main() {
    let worst = shapes().iter().flat_map(|shape| WINDOWS.map(|window| median_ms(shape, window))).fold(0.0, f64::max);
    println!("{}", json!({ "worstMedianMs": worst }));
}

/// Dependencies of so many bytes: files of 50 kB, many small objects, one text.
fn shapes() -> [Value; 3] {
    let file = |n| json!({ "path": format!("assets/{n}.md"), "content": LINE.repeat(50_000 / LINE.len()) });
    let field = |n| (format!("key{n}"), json!({ "line": LINE }));
    [
        json!({ "assets": (0..BYTES / 50_000).map(file).collect::<Vec<_>>() }),
        (0..BYTES / LINE.len()).map(field).collect(),
        json!({ "all": LINE.repeat(BYTES / LINE.len()) }),
    ]
}

fn median_ms(dependencies: &Value, window: u32) -> f64 {
    let envelope = json!({
        "session_meta": {}, "domain_profile": {}, "normative_baseline": {},
        "target_snapshot": { "step_markdown": LINE.repeat(200) }, "dependency_digest": dependencies,
        "tool_capabilities": {}, "revision_info": {},
    });
    let (counter, budget) = (Counter::for_model("claude"), Budget::of_window(window));
    let mut took: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            let trimmed = trim_context_with_budget(&envelope, &counter, budget).unwrap();
            assert!(trimmed.report.applied);
            began.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[ROUNDS / 2]
}
