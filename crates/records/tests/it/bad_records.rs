//! Bad input for every tool that keeps records: each is answered with an error that says what is wrong, nothing is
//! changed, and the next call is served.

use serde_json::{Map, Value, json};
use toolhost_contract::{ErrorKind, Outcome, ToolInfo};
use toolhost_records::Kind;
use toolhost_testkit::House;
use toolhost_testkit::engines::{engines, exported, furnish};

use crate::vocabulary::{good, kinds_named, naming, properties, record_tools};

/// Longest answer to bad input: what was sent is not sent back.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// A house with records in it, and what they were.
struct Furnished {
    house: House,
    before: Vec<String>,
}

impl Furnished {
    async fn on(engine: &toolhost_testkit::engines::Engine) -> Self {
        let house = engine.house().await;
        furnish(&house, 1, house.project.id, "albatross").await;
        let before = exported(&house.store, house.project.id).await;
        Self { house, before }
    }

    /// A call that must be refused, for one of these reasons, and change nothing.
    async fn refused(
        &self,
        info: &ToolInfo,
        arguments: Map<String, Value>,
        what: &str,
        kinds: &[ErrorKind],
    ) -> Outcome {
        let outcome = self.house.call(&info.name, Value::Object(arguments)).await;
        let place = format!("{}: {what}", info.name);
        assert!(!outcome.ok, "{place} was taken: {}", outcome.text.chars().take(500).collect::<String>());
        let error = outcome.error.as_ref().unwrap();
        assert!(kinds.contains(&error.kind), "{place}: {error:?}");
        let bytes = serde_json::to_string(error).unwrap().len() + outcome.text.len();
        assert!(bytes < ANSWER_BYTES_MAX, "{place}: an answer of {bytes} bytes");
        assert!(exported(&self.house.store, self.house.project.id).await == self.before, "{place} changed something");
        outcome
    }
}

/// The fields of a tool whose schema has this in it, with arguments that fit.
fn fields<'a>(
    info: &'a ToolInfo,
    fits: impl Fn(&str, &Value) -> bool + 'a,
) -> impl Iterator<Item = (String, Map<String, Value>)> + 'a {
    let names: Vec<String> =
        properties(info).iter().filter(|(name, schema)| fits(name, schema)).map(|(name, _)| name.clone()).collect();
    names.into_iter().map(|name| {
        let mut arguments = good(info);
        // The furniture has made something of it already.
        arguments.remove("sourceId");
        (name, arguments)
    })
}

/// The words that a text must be one of.
fn has_words(schema: &Value) -> bool {
    let text = schema.to_string();
    text.contains("\"enum\"") || text.contains("\"const\"")
}

fn is_of(schema: &Value, kind: &str) -> bool {
    schema["type"].to_string().contains(kind)
}

fn with(mut arguments: Map<String, Value>, field: &str, value: Value) -> Map<String, Value> {
    arguments.insert(field.to_owned(), value);
    arguments
}

/// A text that says something.
fn says(info: &ToolInfo, name: &str, schema: &Value) -> bool {
    is_of(schema, "string") && !has_words(schema) && kinds_named(info, name).is_empty() && name != "cursor"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_is_none_of_the_known_is_refused() {
    for engine in engines() {
        let here = Furnished::on(&engine).await;
        let mut checked = 0;
        for info in record_tools() {
            for (field, arguments) in fields(&info, |_, schema| has_words(schema) && !is_of(schema, "array")) {
                for word in ["", "nonsense", "Higher", "high!", "пусто"] {
                    let arguments = with(arguments.clone(), &field, json!(word));
                    let outcome = here.refused(&info, arguments, &field, &[ErrorKind::Validation]).await;
                    let told = outcome.error.unwrap().details.unwrap()["violations"][0].clone();
                    assert_eq!(told["path"], format!("/{field}"), "{told}");
                    assert!(told["expected"].as_str().unwrap().starts_with("one of "), "{}: {told}", info.name);
                    checked += 1;
                }
            }
        }
        assert!(checked > 100, "{checked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_in_an_odd_form_or_of_another_kind_is_refused() {
    const ODD: [&str; 17] = [
        "",
        " ",
        "-",
        "1",
        "001",
        "-1",
        "?-",
        "?-0",
        "?--1",
        "?-1.5",
        "?-1e3",
        "?-0x1",
        "?-\u{661}",
        "?-\u{ff11}",
        "?-99999999999999999999",
        "?-1\u{0}",
        "?-001'; DROP TABLE record; --",
    ];
    for engine in engines() {
        let here = Furnished::on(&engine).await;
        for info in record_tools() {
            let named = |name: &str, schema: &Value| !kinds_named(&info, name).is_empty() && !is_of(schema, "integer");
            for (field, arguments) in fields(&info, named) {
                let kinds = kinds_named(&info, &field);
                let list = is_of(&properties(&info)[&field], "array");
                let other = Kind::ALL.into_iter().find(|kind| !kinds.contains(kind)).map(Kind::prefix);
                let mut odd: Vec<String> = ODD.iter().map(|form| form.replace('?', kinds[0].prefix())).collect();
                odd.extend(other.map(|prefix| format!("{prefix}-001")));
                odd.push(format!("{}-001", "X".repeat(100_000)));
                for id in odd {
                    // An empty text takes some fields away.
                    if id.is_empty()
                        && matches!(field.as_str(), "featureId" | "componentId")
                        && info.name == "task.update"
                    {
                        continue;
                    }
                    // A filter may look for nothing; an id it must be.
                    let value = if list { json!([id]) } else { json!(id) };
                    let what: String = format!("{field} = {id}").chars().take(60).collect();
                    here.refused(&info, with(arguments.clone(), &field, value), &what, &[ErrorKind::Validation]).await;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_means_the_same_however_it_is_written() {
    for engine in engines() {
        let here = Furnished::on(&engine).await;
        for form in ["REQ-001", "req-001", "Req-1", "REQ-0000001", " REQ-001 ", "REQ-1\n"] {
            let read = here.house.data("record.history", json!({ "id": form })).await;
            assert_eq!(read["id"], "REQ-001", "{form:?}");
            let features = here.house.data("feature.list", json!({ "requirementId": form })).await;
            assert_eq!(features["items"][0]["id"], "FEAT-001", "{form:?}");
        }
        // However a record was named: what it names is found, and goes with a cascade.
        let arguments =
            json!({ "name": "f", "description": "", "requirementIds": ["req-1", "REQ-001"], "completionCriteria": [] });
        here.house.data("feature.add", arguments).await;
        let gone = here.house.data("requirement.delete", json!({ "id": "req-1", "cascade": true })).await;
        assert_eq!(gone, json!({ "deleted": ["REQ-001"], "unlinked": ["FEAT-001", "FEAT-002"] }));
        let features = here.house.data("feature.list", json!({})).await;
        assert!(
            features["items"].as_array().unwrap().iter().all(|one| one["requirementIds"] == json!([])),
            "{features}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_not_there_and_a_version_that_is_past_are_refused() {
    for engine in engines() {
        let here = Furnished::on(&engine).await;
        let mut stale = 0;
        for info in record_tools() {
            let named = |name: &str, _: &Value| !kinds_named(&info, name).is_empty();
            for (field, arguments) in fields(&info, named) {
                let filters = info.name.ends_with(".list") && field.ends_with("Id") && field != "ticketId";
                for number in if filters { Vec::new() } else { vec![999, 999_999_999_999] } {
                    let value = naming(&properties(&info)[&field], kinds_named(&info, &field)[0], number);
                    let kinds = [ErrorKind::NotFound, ErrorKind::Validation];
                    let outcome = here.refused(&info, with(arguments.clone(), &field, value), &field, &kinds).await;
                    assert!(outcome.text.contains(&number.to_string()), "{}: {}", info.name, outcome.text);
                }
            }
            // What makes a new record has no version yet; the design and the PRD are there.
            for (field, mut arguments) in fields(&info, |name, _| name == "expectedVersion") {
                if properties(&info).contains_key("kind") {
                    arguments.insert("kind".to_owned(), json!("prd"));
                }
                if info.name == "ticket.save_document" {
                    arguments.insert("type".to_owned(), json!("research"));
                }
                for version in [0, -1] {
                    let arguments = with(arguments.clone(), &field, json!(version));
                    here.refused(&info, arguments, "no version", &[ErrorKind::Validation]).await;
                }
                let arguments = with(arguments, &field, json!(77));
                let outcome = here.refused(&info, arguments, "a stale version", &[ErrorKind::Conflict]).await;
                let error = outcome.error.unwrap();
                assert!(error.message.contains("has changed: it is at version 1, not 77"), "{}: {error:?}", info.name);
                assert_eq!(error.details.unwrap()["version"], 1);
                assert!(error.hint.unwrap().contains("nothing was changed"));
                stale += 1;
            }
        }
        assert!(stale > 20, "{stale}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zero_character_is_refused_wherever_it_stands() {
    for engine in engines() {
        let here = Furnished::on(&engine).await;
        let mut checked = 0;
        for info in record_tools() {
            let searches = info.name == "memory.query";
            // What is as it was is not restored.
            let restores = info.name == "record.restore";
            for (field, arguments) in fields(&info, |name, schema| !restores && says(&info, name, schema)) {
                let mut arguments = with(arguments, &field, json!("be\u{0}fore"));
                if properties(&info).contains_key("cascade") {
                    arguments.insert("cascade".to_owned(), json!(true));
                }
                // The ticket has one criterion, not yet ticked.
                if info.name == "ticket.check_criterion" {
                    arguments.insert("number".to_owned(), json!(1));
                    arguments.insert("done".to_owned(), json!(true));
                }
                // Who changes nothing writes nothing, not even why.
                for title in ["name", "title"] {
                    if info.name.ends_with(".update") && field != title && properties(&info).contains_key(title) {
                        arguments.insert(title.to_owned(), json!("another"));
                    }
                }
                let outcome = here.refused(&info, arguments, &field, &[ErrorKind::Validation]).await;
                assert!(outcome.text.contains(&field), "{}: {field} is not in {}", info.name, outcome.text);
                checked += 1;
            }
            let texts = |name: &str, schema: &Value| {
                is_of(schema, "array") && is_of(&schema["items"], "string") && kinds_named(&info, name).is_empty()
            };
            for (field, arguments) in fields(&info, texts) {
                let arguments = with(arguments, &field, json!(["fine", "be\u{0}fore"]));
                if searches {
                    // No memory has one in it, so nothing is found by it.
                    let outcome = here.house.call(&info.name, Value::Object(arguments)).await;
                    assert!(outcome.ok, "{outcome:?}");
                    continue;
                }
                here.refused(&info, arguments, &field, &[ErrorKind::Validation]).await;
                checked += 1;
            }
        }
        assert!(checked > 80, "{checked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_ten_megabytes_is_refused() {
    let huge = "x".repeat(10 << 20);
    // Refused before the database hears of it: one engine tells as much as two.
    for engine in engines().take(1) {
        let here = Furnished::on(&engine).await;
        for info in record_tools() {
            // The first text of each tool: they all take the same way.
            let fields = fields(&info, |name, schema| says(&info, name, schema) && name != "why").take(1);
            for (field, arguments) in fields {
                let arguments = with(arguments, &field, json!(huge));
                here.refused(&info, arguments, &field, &[ErrorKind::Validation, ErrorKind::Limit]).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_tens_of_thousands_are_taken_or_refused_and_do_not_hang_anybody() {
    const MANY: i64 = 40_000;
    for engine in engines() {
        let here = Furnished::on(&engine).await;
        for info in record_tools() {
            let lists = |name: &str, schema: &Value| is_of(schema, "array") && !kinds_named(&info, name).is_empty();
            for (field, arguments) in fields(&info, lists) {
                let kind = kinds_named(&info, &field)[0];
                let ids: Vec<String> = (1..=MANY).map(|n| format!("{}-{n:03}", kind.prefix())).collect();
                let outcome =
                    here.refused(&info, with(arguments, &field, json!(ids)), &field, &[ErrorKind::Validation]).await;
                assert!(outcome.text.contains(&field), "{}", outcome.text);
            }
            // As above: too large for either engine.
            let lists = |name: &str, schema: &Value| {
                engine.url.is_none() && is_of(schema, "array") && kinds_named(&info, name).is_empty()
            };
            for (field, arguments) in fields(&info, lists) {
                let item = match properties(&info)[&field]["items"]["type"].as_str() {
                    Some("string") => json!("a text of fifty characters, which is not very long."),
                    _ => json!({ "name": "a text of fifty characters, which is not very long." }),
                };
                let many = Value::Array((0..MANY).map(|_| item.clone()).collect());
                let kinds = [ErrorKind::Limit, ErrorKind::Validation];
                here.refused(&info, with(arguments, &field, many), &field, &kinds).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_cursors_that_make_no_sense_are_refused() {
    for engine in engines() {
        let here = Furnished::on(&engine).await;
        let (mut limits, mut cursors) = (0, 0);
        for info in record_tools() {
            for (field, arguments) in fields(&info, |name, _| name == "limit") {
                for limit in [json!(0), json!(-1), json!(1_000_000), json!(u64::MAX), json!(1.5), json!("ten")] {
                    let arguments = with(arguments.clone(), &field, limit.clone());
                    here.refused(&info, arguments, &limit.to_string(), &[ErrorKind::Validation]).await;
                    limits += 1;
                }
            }
            for (field, arguments) in fields(&info, |name, _| name == "cursor") {
                for cursor in [
                    "",
                    "0",
                    "zz",
                    "61",
                    "312e35",
                    "31653230",
                    "2d",
                    "ff",
                    "3939393939393939393939393939393939393939",
                    &"3".repeat(1 << 20),
                ] {
                    let arguments = with(arguments.clone(), &field, json!(cursor));
                    let what: String = cursor.chars().take(40).collect();
                    here.refused(&info, arguments, &what, &[ErrorKind::Validation]).await;
                    cursors += 1;
                }
                // Beyond the end, before the beginning: nothing, or all from the first; and no harm.
                for number in ["9223372036854775807", "-9223372036854775808"] {
                    let arguments = with(arguments.clone(), &field, json!(hex::encode(number)));
                    let outcome = here.house.call(&info.name, Value::Object(arguments)).await;
                    assert!(outcome.ok, "{}: {number}: {outcome:?}", info.name);
                }
            }
            for (field, arguments) in fields(&info, |name, _| name == "iteration" || name == "base") {
                for number in [json!(-1), json!(i64::MAX), json!(u64::MAX), json!(1.5), json!("ITER-001")] {
                    let kinds = [ErrorKind::Validation, ErrorKind::NotFound];
                    here.refused(&info, with(arguments.clone(), &field, number), &field, &kinds).await;
                }
            }
        }
        assert!(limits > 50 && cursors > 80, "{limits} {cursors}");
    }
}
