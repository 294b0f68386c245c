//! Tokens: exact where they can be, corrected by reports elsewhere, the same for the same text.

use proptest::prelude::*;
use toolhost_agent::budget::{COUNTED_BYTES_MAX, Calibration, Counter};

const CHINESE: &str = "请根据医院出院流程生成一个完整的工作流，并说明每个步骤的目标。";
const CODE: &str = "fn main() {\n    let mut sum = 0u64;\n    for i in 0..10 { sum += i * i; }\n}\n";

#[test]
fn openai_models_are_counted_exactly_and_others_are_estimates() {
    for name in ["gpt-4o", "openai::gpt-5-mini", "GPT-4.1", "o3", "openai::o4-mini", "openrouter/openai/o1"] {
        assert!(Counter::for_model(name).is_exact(), "{name}");
    }
    for name in [
        "gpt-4-turbo",
        "gpt-3.5-turbo",
        "anthropic::claude-sonnet-5",
        "gemini-3-pro",
        "ollama::llama3.1:8b",
        "foo3",
        "proto1",
        "script",
        "",
    ] {
        assert!(!Counter::for_model(name).is_exact(), "{name}");
    }
    let o200k = Counter::for_model("gpt-4o");
    let claude = Counter::for_model("anthropic::claude-sonnet-5");
    assert_eq!(claude.count(CODE), (o200k.count(CODE) * 5).div_ceil(4));
    assert_eq!(o200k.count(""), 0);
}

#[test]
fn reports_of_a_provider_move_the_estimate_to_what_it_says() {
    let start = Counter::for_model("anthropic::claude-sonnet-5");
    for text in [CHINESE.repeat(40), CODE.repeat(40)] {
        for share in [70, 100, 160] {
            let actual = start.count(&text) * share / 100;
            let mut calibration = Calibration::default();
            for _ in 0..30 {
                calibration.observe(start.calibrated(calibration).count(&text), actual);
            }
            let learned = start.calibrated(calibration).count(&text);
            assert!(learned.abs_diff(actual) * 100 <= actual, "{learned} for {actual}");
        }
    }
}

#[test]
fn a_freak_report_does_little_and_an_exact_count_is_never_moved() {
    let mut calibration = Calibration::default();
    calibration.observe(1_000, 1_000_000);
    assert_eq!(calibration.correction(), 1_500);
    let mut other = Calibration::default();
    other.observe(1_000, 0);
    other.observe(0, 1_000);
    other.observe(10, 10_000);
    assert_eq!(other, Calibration::default());
    let exact = Counter::for_model("gpt-4o");
    assert_eq!(exact.calibrated(calibration), exact);
}

#[test]
fn a_long_text_is_estimated_near_its_count_and_always_alike() {
    for part in [CHINESE, CODE, "a b 1 2 \\u{1F600} 😀 end\n"] {
        let text = part.repeat(2 * COUNTED_BYTES_MAX / part.len());
        let counter = Counter::for_model("gpt-4o");
        let (counted, estimated) = (counter.count(&text), counter.estimate(&text));
        assert!(counted.abs_diff(estimated) * 20 <= counted, "{estimated} for {counted}");
        assert_eq!(estimated, counter.estimate(&text));
    }
}

proptest! {
    #[test]
    fn a_correction_stays_within_its_bounds(reports in prop::collection::vec((any::<u64>(), any::<u64>()), 0..40)) {
        let mut calibration = Calibration::default();
        for (estimated, actual) in reports {
            calibration.observe(estimated, actual);
            prop_assert!((500..=3_000).contains(&calibration.correction()));
        }
        let told = serde_json::to_string(&calibration).unwrap();
        prop_assert_eq!(serde_json::from_str::<Calibration>(&told).unwrap(), calibration);
    }
}
