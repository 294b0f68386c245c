//! What nobody should send: it is refused by name, and nothing is changed.

use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_records::{
    Edit, Extent, Kind, Learning, Query, RECORD_BYTES_MAX, RecordError, RecordId, Requirement, Task,
};
use toolhost_testkit::database::things::{feature, learning, persona, requirement, task};
use toolhost_testkit::database::{checkup, engines, everything, exported, said};

/// The ids that are none of a requirement's.
const BAD_IDS: &[&str] = &[
    "",
    "-",
    "REQ",
    "REQ-",
    "REQ-0",
    "REQ--1",
    "REQ-+1",
    "REQ-1.0",
    "REQ-1e3",
    "REQ-0x1",
    "REQ-١",
    "REQ-99999999999999999999",
    "REQ-9223372036854775807",
    "REQ-1000000000000",
    "REQ_001",
    "FEAT-001",
    "XREQ-001",
    "requirement-1",
    "REQ-001; DROP TABLE record",
    "REQ-001\0",
    "REQ-\u{200b}1",
    "1",
    "../REQ-001",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_id_is_refused_as_one() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("one"), 0, None).await.unwrap();
        let before = everything(&desk).await;
        for bad in BAD_IDS {
            let refused = said(desk.get::<Requirement>(bad).await);
            let expected = format!("`{bad}` is not the id of a requirement: it looks like REQ-001");
            assert_eq!(refused, expected, "{place}");
            let change = |requirement: &mut Requirement| {
                requirement.title = "changed".to_owned();
                Ok(())
            };
            assert_eq!(said(desk.update(bad, &Edit::default(), change).await), expected);
            let refused = said(desk.create(feature("f", &[bad], &[]), 0, None).await);
            let zero = "requirementIds[0]: has a zero character (U+0000) in it";
            assert!(refused == format!("requirementIds: {expected}") || refused == zero, "{refused}");
        }
        let long = "REQ-".repeat(10_000);
        let refused = said(desk.get::<Requirement>(&long).await);
        assert!(refused.len() < 200, "a long one is not repeated whole: {refused}");
        assert_eq!(everything(&desk).await, before, "{place}: nothing was changed");
        for good in ["REQ-001", "REQ-1", "req-001", " REQ-001 ", "REQ-000000000000000000000000000001"] {
            assert_eq!(desk.get::<Requirement>(good).await.unwrap().id, "REQ-001", "{good}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_too_long_is_refused_and_one_that_just_fits_is_kept() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let with = |bytes: usize| Requirement { description: "x".repeat(bytes), ..requirement("long") };
        let error = desk.create(with(10_000_000), 0, None).await.unwrap_err();
        assert!(error.to_string().starts_with("the requirement is 100001"), "{error}");
        assert!(error.to_string().ends_with("bytes long; 1048576 is the most"), "{error}");
        assert_eq!(ToolError::from(error).kind, ErrorKind::Limit, "{place}");
        let spare = RECORD_BYTES_MAX - serde_json::to_string(&with(0)).unwrap().len();
        assert!(desk.create(with(spare + 1), 0, None).await.is_err(), "{place}");
        let kept = desk.create(with(spare), 0, None).await.unwrap();
        assert_eq!(desk.get::<Requirement>(&kept.id).await.unwrap(), kept, "{place}");
        let longer = |requirement: &mut Requirement| {
            requirement.description.push('\u{1}');
            Ok(())
        };
        assert!(desk.update(&kept.id, &Edit::default(), longer).await.is_err(), "{place}");
        assert_eq!(desk.get::<Requirement>(&kept.id).await.unwrap(), kept, "{place}");
        // The memory keeps the beginning of a long text.
        let words: Vec<String> = (0..80_000).map(|n| format!("word{n}")).collect();
        desk.create(learning(&words.join(" ")), 0, None).await.unwrap();
        desk.create(learning(&"数据库".repeat(100_000)), 0, None).await.unwrap();
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn titles_of_any_length_and_script_are_kept_whole() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let titles = [
            "x".repeat(100_000),
            "数".repeat(50_000),
            "👩‍👩‍👧‍👦".repeat(999),
            "' OR 1=1; --".to_owned(),
            "$1 ? :name @x %s {} \\ \" ` \u{7f} \u{1} \u{feff} \u{202e} \u{e000} \u{10ffff}".to_owned(),
            "line\r\nline\ttab".to_owned(),
            String::new(),
            " ".to_owned(),
            "\u{fffd}".to_owned(),
        ];
        for title in &titles {
            let kept = desk.create(requirement(title), 0, None).await.unwrap();
            assert_eq!(&desk.get::<Requirement>(&kept.id).await.unwrap().content.title, title, "{place}");
            desk.create(persona(title), 0, None).await.unwrap();
        }
        let listed = desk.list::<Requirement>(&Query { limit: 100, ..Query::default() }).await.unwrap().items;
        assert!(listed.iter().map(|one| &one.content.title).eq(&titles), "{place}");
        let short = Query { title: Some(titles[3].clone()), limit: 10, ..Query::default() };
        assert_eq!(desk.list::<Requirement>(&short).await.unwrap().items.len(), 1, "{place}");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zero_character_is_refused_wherever_it_stands() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("one"), 0, None).await.unwrap();
        let before = exported(&desk).await;
        let zero = "has a zero character (U+0000) in it";
        let refused = desk.create(Requirement { title: "a\0b".to_owned(), ..requirement("r") }, 0, None).await;
        assert_eq!(said(refused), format!("title: {zero}"), "{place}");
        let nested = vec!["fine".to_owned(), "\0".to_owned()];
        let refused = desk.create(Requirement { acceptance_criteria: nested, ..requirement("r") }, 0, None).await;
        assert_eq!(said(refused), format!("acceptanceCriteria[1]: {zero}"), "{place}");
        assert_eq!(said(desk.create(learning("a\0"), 0, None).await), format!("content: {zero}"));
        assert_eq!(said(desk.create_once(learning("a\0"), 0).await), format!("content: {zero}"));
        let rename = |requirement: &mut Requirement| {
            requirement.title = "\0".to_owned();
            Ok(())
        };
        assert_eq!(said(desk.update("REQ-001", &Edit::default(), rename).await), format!("title: {zero}"));
        // Why something was done is kept, too.
        assert_eq!(said(desk.create(requirement("r"), 0, Some("\0")).await), format!("why: {zero}"), "{place}");
        let why = Edit { expected_version: None, why: Some("\0".to_owned()) };
        let id = RecordId::parse("REQ-001").unwrap();
        assert_eq!(said(desk.delete(id, &why, false).await), format!("why: {zero}"), "{place}");
        assert_eq!(exported(&desk).await, before, "{place}: nothing was changed");
    }
}

/// A line of an export that would be fine.
fn line(id: &str, content: &Value) -> Value {
    json!({
        "line": "record", "id": id, "version": 1, "iteration": 0, "createdAtMs": 1, "updatedAtMs": 2, "content": content,
    })
}

fn with(mut line: Value, field: &str, value: Value) -> String {
    line[field] = value;
    line.to_string()
}

fn broken_lines() -> Vec<(String, &'static str)> {
    let fine = || serde_json::to_value(requirement("fine")).unwrap();
    let record = || line("REQ-001", &fine());
    let content = |field: &str, value: Value| {
        let mut content = fine();
        content[field] = value;
        line("REQ-001", &content).to_string()
    };
    let history = || {
        json!({
            "line": "history", "id": "REQ-009", "version": 1, "iteration": 0, "atMs": 1, "userId": 1, "by": "x",
            "callId": "c", "change": "create", "content": fine(),
        })
    };
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_content = record().to_string().replace(r#""what fine is about""#, &deep);
    vec![
        ("{".to_owned(), "EOF while parsing"),
        ("[]".to_owned(), "missing field `line`"),
        ("null".to_owned(), "invalid"),
        (r#"{"line":"record"}"#.to_owned(), "missing field"),
        (r#"{"line":"secrets"}"#.to_owned(), "unknown variant `secrets`"),
        (r#"{"line":"toolhost","version":3}"#.to_owned(), "newer than this toolhost can read"),
        (r#"{"line":"counter","kind":"dragon","value":1}"#.to_owned(), "`dragon` is of no kind"),
        (r#"{"line":"counter","kind":"task","value":9223372036854775807}"#.to_owned(), "value: "),
        (r#"{"line":"counter","kind":"task","value":-1}"#.to_owned(), "value: "),
        (with(record(), "id", json!("REQ-0")), "`REQ-0` is of no kind"),
        (with(record(), "id", json!("REQ-9223372036854775807")), "is of no kind"),
        (with(record(), "id", json!("DRAGON-1")), "`DRAGON-1` is of no kind"),
        (with(record(), "id", json!("TASK-001")), "the content of a task is not as it should be: missing field"),
        (with(record(), "version", json!(0)), "version: "),
        (with(record(), "version", json!(i64::MIN)), "version: "),
        (with(record(), "version", json!(i64::MAX)), "version: "),
        (with(record(), "version", json!(1.5)), "invalid type"),
        (with(record(), "iteration", json!(-1)), "iteration: "),
        (content("priority", json!("urgent")), "unknown variant `urgent`"),
        (content("title", json!("a\0b")), "title: has a zero character"),
        (content("title", json!(["deep"])), "invalid type"),
        (content("description", json!("x".repeat(5_000_000))), "1048576 is the most"),
        (deep, "invalid type: sequence"),
        (deep_content, "recursion limit exceeded"),
        (with(history(), "version", json!(i64::MAX)), "version: "),
        (with(history(), "id", json!("REQ-")), "is of no kind"),
        (with(history(), "by", json!("\0")), "by: has a zero character"),
        (with(history(), "callId", json!("\0")), "callId: has a zero character"),
        (with(history(), "why", json!("\0")), "why: has a zero character"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_line_is_named_and_stops_the_whole_import() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("here before"), 0, None).await.unwrap();
        let (before, good) =
            (exported(&desk).await, line("REQ-005", &serde_json::to_value(requirement("good")).unwrap()));
        for (broken, expected) in broken_lines() {
            let broken = broken.replace("REQ-001", "REQ-007");
            // Not the last one, which may be incomplete.
            let lines = [good.to_string(), String::new(), broken.clone(), String::new()].map(Ok);
            let error = desk.import(lines.into_iter(), Extent::Partial).await.unwrap_err();
            let shown: String = broken.chars().take(120).collect();
            assert!(!matches!(error, RecordError::Store(_)), "{place}: {shown}: {error}");
            let told = error.to_string();
            assert!(told.contains(expected), "{place}: {shown}: {told}");
            assert!(told.starts_with("line 3: "), "{place}: {shown}: {told}");
            assert!(exported(&desk).await == before, "{place}: {shown}: nothing was changed");
        }
        // All the same, it goes on.
        desk.import(std::iter::once(Ok(good.to_string())), Extent::Partial).await.unwrap();
        assert_eq!(desk.create(requirement("next"), 0, None).await.unwrap().id, "REQ-006", "{place}");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_at_the_edge_do_no_harm() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(task("one", &[]), 0, None).await.unwrap();
        let id = RecordId::parse("TASK-001").unwrap();
        for edge in [i64::MIN, -1, 0, 1, i64::MAX] {
            let query = Query { iteration: Some(edge), after: Some(edge), limit: edge, ..Query::default() };
            desk.list::<Task>(&query).await.unwrap();
            desk.list::<Task>(&Query { newest_first: true, ..query }).await.unwrap();
            desk.ready(Some(edge), Some(edge), edge).await.unwrap();
            desk.graph().await.unwrap();
            desk.history(id, Some(edge), edge).await.unwrap();
            desk.namers(Kind::Task, &[edge], Kind::Task).await.unwrap();
            assert!(desk.get_any(RecordId { kind: Kind::Learning, number: edge }).await.is_err(), "{place}");
        }
        let many: Vec<i64> = (0..5000).collect();
        assert!(desk.namers(Kind::Task, &many, Kind::Task).await.unwrap().is_empty());
        let efforts = ["1e999h", "999999999999999999999w", "-3h", "NaN", "inf", "..h", "1.5.2h", "٣h", "h", ""];
        for effort in efforts {
            let content = Task { estimated_effort: Some(effort.to_owned()), ..task("effort", &[]) };
            desk.create(content, 0, None).await.unwrap();
        }
        let graph = desk.graph().await.unwrap();
        assert_eq!(graph.nodes.len(), 1 + efforts.len(), "{place}");
        assert!(graph.nodes.iter().all(|node| (0..=1_000_000_000).contains(&node.effort_minutes)), "{graph:?}");
        let learnt = desk.create_once::<Learning>(learning("???"), i64::MAX).await;
        assert!(learnt.is_ok(), "{place}");
        checkup_but_memory(&desk).await;
    }
}

/// A text without any word is kept, and found by none.
async fn checkup_but_memory(desk: &toolhost_records::ProjectRecords) {
    let all = everything(desk).await;
    assert!(all.values().all(|record| record.waits_on == 0));
}
