//! An envelope that is too large: what is left out, in which order, and what never is.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolhost_agent::budget::{
    ActionKind, Budget, BudgetError, COUNTED_BYTES_MAX, Counter, LIST_ITEMS_KEPT, TEXT_CHARS_KEPT, Trimmed,
    trim_context_with_budget,
};
use toolhost_agent::prompt::render_envelope;
use toolhost_builder::envelope::{KEYS, Mode};
use toolhost_contract::ErrorCode;

use crate::sample;

fn counter() -> Counter {
    Counter::for_model("gpt-4o")
}

fn tokens(envelope: &Value) -> u64 {
    counter().count(&render_envelope(envelope))
}

fn trim(envelope: &Value, budget: u64) -> Result<Trimmed, BudgetError> {
    trim_context_with_budget(envelope, &counter(), Budget::explicit(budget, 1_000))
}

fn envelope(dependencies: &Value) -> Value {
    json!({
        "session_meta": { "target_type": "step" }, "domain_profile": { "industry_domain": "law" },
        "normative_baseline": { "rules": ["each node has a step file"] },
        "target_snapshot": { "step_markdown": "目标：写一封信。\nfn main() {}\n".repeat(40) },
        "dependency_digest": dependencies, "tool_capabilities": { "allowed": [] }, "revision_info": { "target": "0" },
    })
}

fn agents(count: usize, chars: usize) -> Vec<Value> {
    let text = "word ".repeat(chars / 5);
    (0..count).map(|n| json!({ "id": format!("agent-{n}"), "role": text, "style": text })).collect()
}

fn kinds(trimmed: &Trimmed) -> Vec<ActionKind> {
    trimmed.report.actions.iter().map(|action| action.action).collect()
}

/// Rules: 001.34.
#[test]
fn what_fits_is_not_touched() {
    for (target, id) in sample::TARGETS {
        let envelope = sample::envelope(target, id, Mode::Optimize);
        let fits = tokens(&envelope);
        let trimmed = trim(&envelope, fits).unwrap();
        assert_eq!(serde_json::to_string(&trimmed.envelope).unwrap(), serde_json::to_string(&envelope).unwrap());
        assert!(!trimmed.report.applied && trimmed.report.actions.is_empty());
        assert_eq!((trimmed.report.estimate_before, trimmed.report.estimate_after), (fits, fits));
    }
}

/// Rules: 001.37, 001.38.
#[test]
fn lists_are_summarised_before_texts_are_cut_and_texts_before_objects_go() {
    let envelope = envelope(&json!({ "agents": agents(60, 300), "guide": "words of a guide ".repeat(200) }));
    let whole = tokens(&envelope);
    let little = trim(&envelope, whole - 100).unwrap();
    assert_eq!(kinds(&little), [ActionKind::Summarize]);
    let summary = &little.envelope["dependency_digest"]["agents"];
    assert_eq!((&summary["count"], summary["items"].as_array().unwrap().len()), (&json!(60), LIST_ITEMS_KEPT));
    assert_eq!(summary["hash"].as_str().unwrap().len(), 16);
    let more = trim(&envelope, little.report.estimate_after - 100).unwrap();
    assert_eq!(kinds(&more), [ActionKind::Summarize, ActionKind::Truncate]);
    let guide = more.envelope["dependency_digest"]["guide"].as_str().unwrap();
    assert!(
        guide.starts_with("words of a guide") && guide.chars().count() <= TEXT_CHARS_KEPT && guide.contains("SHA-256")
    );
    let most = trim(&envelope, more.report.estimate_after - 300).unwrap();
    assert_eq!(kinds(&most), [ActionKind::Summarize, ActionKind::Truncate, ActionKind::Drop]);
    let stub = &most.envelope["dependency_digest"]["agents"]["items"][0];
    assert_eq!((stub["path"].as_str().unwrap(), stub["summary"].as_str().unwrap()), ("agent-0", "3 fields"));
    assert_eq!(stub["hash"].as_str().unwrap().len(), 16);
}

/// Rules: 001.50.
#[test]
fn a_target_that_does_not_fit_alone_is_over_the_budget_by_name() {
    let envelope = envelope(&json!({ "agents": agents(30, 300) }));
    let error = trim(&envelope, 300).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ContextBudget);
    assert_eq!(error.code().as_str(), "AI_CONTEXT_BUDGET_EXCEEDED");
    assert!(matches!(error, BudgetError::Exceeded { estimate, budget: 300 } if estimate > 300));
}

#[test]
fn a_part_is_left_where_what_stands_for_it_has_more_characters() {
    // 59 characters and 157 bytes each: what would stand for one lies between.
    let entry = json!({ "名称": "根据审批规则生成报告".repeat(5) });
    let envelope = envelope(&json!({ "a": entry, "b": entry }));
    let fitting: Vec<Trimmed> = (1..tokens(&envelope)).filter_map(|budget| trim(&envelope, budget).ok()).collect();
    assert!(!fitting.is_empty());
    for trimmed in fitting {
        assert_eq!(trimmed.envelope["dependency_digest"]["summary"], "2 fields");
        assert!(trimmed.report.actions.iter().all(|action| action.after_chars < action.before_chars));
    }
}

#[test]
fn what_is_no_envelope_is_refused() {
    let mut less = envelope(&json!({}));
    less.as_object_mut().unwrap().remove("revision_info");
    let mut more = envelope(&json!({}));
    more["eighth"] = json!(1);
    for none in [json!([]), less, more] {
        assert!(matches!(trim(&none, 10_000), Err(BudgetError::NoEnvelope(_))));
    }
}

#[test]
fn an_explicit_budget_goes_before_the_shares_of_the_window() {
    assert_eq!(Budget::of_window(200_000), Budget::explicit(140_000, 60_000));
    assert_eq!(Budget::resolve(None, None, 1_000), Budget::explicit(700, 300));
    assert_eq!(Budget::resolve(Some(10), Some(20), 1_000), Budget::explicit(10, 20));
    assert_eq!(Budget::resolve(Some(10), None, 1_000), Budget::explicit(10, 300));
    assert_eq!(Budget::resolve(Some(900), None, 1_000), Budget::explicit(900, 100), "more than its share, if said");
}

/// Rules: 001.35.
#[test]
fn what_is_kept_for_the_reply_is_taken_from_the_context() {
    assert_eq!(Budget::resolve(None, Some(400), 1_000), Budget::explicit(600, 400));
    assert_eq!(Budget::resolve(Some(900), Some(400), 1_000), Budget::explicit(600, 400));
    assert_eq!(Budget::resolve(None, Some(2_000), 1_000), Budget::explicit(0, 2_000));
    // The same envelope, model and budget: only what is kept for the reply differs.
    let envelope = envelope(&json!({ "agents": agents(60, 300), "guide": "words of a guide ".repeat(200) }));
    let whole = tokens(&envelope);
    let window = u32::try_from(whole * 2).unwrap();
    let with_reserve = |reserve: u64| {
        let budget = Budget::resolve(Some(whole), Some(reserve), window);
        trim_context_with_budget(&envelope, &counter(), budget)
    };
    let little = with_reserve(whole).unwrap();
    assert!(!little.report.applied && little.envelope == envelope);
    let more = with_reserve(whole + 100).unwrap();
    assert_eq!(kinds(&more), [ActionKind::Summarize]);
    let most = with_reserve(whole * 2 - more.report.estimate_after + 100).unwrap();
    assert_eq!(kinds(&most), [ActionKind::Summarize, ActionKind::Truncate]);
    for trimmed in [little, more, most] {
        let report = trimmed.report;
        assert!(report.estimate_after + report.reserve_for_response <= u64::from(window), "{report:?}");
    }
    assert_eq!(with_reserve(u64::from(window)).unwrap_err().code(), ErrorCode::ContextBudget);
}

/// Rules: 001.34, 001.54.
#[test]
fn the_report_has_the_shape_of_the_seed() {
    let trimmed = trim(&envelope(&json!({ "agents": agents(60, 300) })), 1_500).unwrap();
    let report = serde_json::to_value(&trimmed.report).unwrap();
    let fields: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected =
        ["applied", "estimateBefore", "estimateAfter", "contextBudget", "reserveForResponse", "actions"].to_vec();
    let mut found = fields;
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    let action = &report["actions"][0];
    assert_eq!((&action["section"], &action["action"]), (&json!("dependency_digest"), &json!("summarize")));
    assert!(action["beforeChars"].as_u64().unwrap() > action["afterChars"].as_u64().unwrap());
}

/// Rules: 001.4, 001.34, 001.36.
#[test]
fn a_huge_envelope_is_cut_to_its_budget_whatever_it_consists_of() {
    let text = "fn f() { g(1); } // 说明 ".repeat(20);
    let many: Vec<Value> =
        (0..400).map(|n| json!({ "path": format!("assets/{n}.md"), "content": text.repeat(8) })).collect();
    let fields: Value = (0..4_000).map(|n| (format!("k{n}"), json!({ "v": text }))).collect();
    let flat: Value = (0..40_000).map(|n| (format!("key{n}"), json!(n))).collect();
    for dependencies in
        [json!({ "assets": many }), fields, flat, json!({ "one": text.repeat(4_000) }), json!(text.repeat(4_000))]
    {
        let envelope = envelope(&dependencies);
        assert!(render_envelope(&envelope).len() > COUNTED_BYTES_MAX);
        let trimmed = trim(&envelope, 20_000).unwrap();
        assert!(trimmed.report.applied && tokens(&trimmed.envelope) <= 20_000);
        assert_eq!(trimmed.envelope["target_snapshot"], envelope["target_snapshot"]);
        assert_eq!(trim(&trimmed.envelope, 20_000).unwrap().envelope, trimmed.envelope);
    }
}

/// Text as packages have it: Chinese, code, prose, marks.
fn prose() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("根据审批规则生成报告。"),
        Just("fn main() { let x = 1; }\n"),
        Just("The ward nurse writes a letter. "),
        Just("\"\\\u{202e}😀\t"),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => prose().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 60, 16, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..16).prop_map(Value::from),
            prop::collection::btree_map("(id|path|name|items|hash|summary|count|[a-z]{1,8})", inner, 0..6)
                .prop_map(|map| json!(map)),
        ]
    })
}

fn any_envelope() -> impl Strategy<Value = Value> {
    prop::collection::vec(value(), KEYS.len()).prop_map(|sections| {
        let sections = KEYS.iter().zip(sections).map(|(key, section)| ((*key).to_owned(), section));
        Value::Object(sections.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4 * 3))]

    /// Rules: 001.4, 001.36, 001.60.
    #[test]
    fn the_promises_hold_for_any_envelope_and_budget(envelope in any_envelope(), share in 1_u64..120) {
        let before = tokens(&envelope);
        let budget = before * share / 100;
        let result = trim(&envelope, budget);
        prop_assert_eq!(&result, &trim(&envelope, budget));
        let trimmed = match result {
            Ok(trimmed) => trimmed,
            Err(BudgetError::Exceeded { estimate, budget: said }) => {
                prop_assert!(estimate > budget && said == budget && before > budget);
                return Ok(());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let bytes = |envelope: &Value, key: &str| serde_json::to_string(&envelope[key]).unwrap();
        for key in ["target_snapshot", "session_meta", "tool_capabilities", "revision_info"] {
            prop_assert_eq!(bytes(&trimmed.envelope, key), bytes(&envelope, key));
        }
        let keys = |envelope: &Value| envelope.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        prop_assert_eq!(keys(&trimmed.envelope), keys(&envelope));
        let report = &trimmed.report;
        prop_assert!(report.estimate_after <= budget);
        prop_assert_eq!((report.estimate_before, report.estimate_after), (before, tokens(&trimmed.envelope)));
        prop_assert_eq!((report.context_budget, report.reserve_for_response), (budget, 1_000));
        prop_assert_eq!(report.applied, before > budget);
        prop_assert_eq!(report.applied, trimmed.envelope != envelope);
        prop_assert_eq!(report.applied, !report.actions.is_empty());
        let chars = |envelope: &Value| render_envelope(envelope).chars().count() as u64;
        let saved: u64 = report.actions.iter().map(|action| action.before_chars - action.after_chars).sum();
        prop_assert_eq!(chars(&envelope) - chars(&trimmed.envelope), saved);
        let again = trim(&trimmed.envelope, budget).unwrap();
        prop_assert_eq!(&again.envelope, &trimmed.envelope);
        prop_assert!(!again.report.applied);
    }
}
