//! Typical edits of two packages as models made them from the tools' answers alone, each at the first attempt.
//!
//! A recording in `tests/edits` has the calls of a model, and what a person's apply then changes. Where a model copies what an
//! earlier call answered, the recording has a placeholder: `{{revisions from call 1}}`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use toolhost_builder::limits::Size;
use toolhost_builder::{Files, Package, Severity, validate};
use toolhost_contract::Outcome;
use toolhost_testkit::House;
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{data, files, in_session, person, shelf_of};

const CHARS_PER_TOKEN: usize = 4;
/// How many edits there are: a recording that is not found is no recording that holds.
const EDITS: usize = 14;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Edit {
    /// The folder of the package.
    package: String,
    /// Of all arguments together.
    tokens_max: usize,
    /// What the person confirms by name.
    deletes: Vec<String>,
    /// The files that the apply makes (`+`), changes (`~`) and deletes (`-`).
    changed: BTreeSet<String>,
    calls: Vec<Recorded>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    tool: String,
    arguments: Value,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edits")
}

/// The recordings, by name.
fn edits() -> Vec<(String, Edit)> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<(String, Edit)> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let edit = serde_json::from_str(&text).unwrap_or_else(|error| unreachable!("{name}: {error}"));
            (name, edit)
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found.len(), EDITS);
    found
}

fn package(name: &str) -> Files {
    let root = folder().join("packages").join(name);
    let (mut found, mut folders) = (Files::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                    found.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
    }
    found
}

/// The arguments with what earlier calls answered in the place of each placeholder.
fn filled(value: &Value, answers: &[Outcome]) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}")) {
            Some(what) => {
                let (path, call) = what.split_once(" from call ").unwrap();
                let answer = &answers[call.parse::<usize>().unwrap() - 1].data;
                path.split('.').fold(answer, |value, field| &value[field]).clone()
            }
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, answers)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), filled(value, answers))).collect(),
        other => other.clone(),
    }
}

fn changed(before: &Files, after: &Files) -> BTreeSet<String> {
    let made = after.keys().filter(|path| !before.contains_key(*path)).map(|path| format!("+ {path}"));
    let gone = before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("- {path}"));
    let other = before.iter().filter(|(path, bytes)| after.get(*path).is_some_and(|now| now != *bytes));
    made.chain(gone).chain(other.map(|(path, _)| format!("~ {path}"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_typical_edit_is_valid_at_the_first_attempt_and_changes_what_it_should() {
    for engine in engines() {
        for (name, edit) in edits() {
            let story = format!("{engine}, {name}");
            let house = engine.house().await;
            let before = package(&edit.package);
            shelf_of(&house, house.project.id)
                .import(&Package::read(before.clone()), false, Size::default())
                .await
                .unwrap();
            let set = played(&house, &edit, &story).await;
            let apply = json!({
                "changeSetId": set, "confirmSource": "ui_manual_apply", "confirmDeletes": edit.deletes,
            });
            let applied = person(&house, "builder.change.apply", apply).await;
            assert!(applied.ok, "{story}: {applied:?}");
            let after = files(&house).await;
            assert_eq!(changed(&before, &after), edit.changed, "{story}");
            let errors = validate(&Package::read(after)).into_iter().filter(|found| found.severity == Severity::Error);
            assert_eq!(errors.count(), 0, "{story}");
        }
    }
}

/// Plays the calls. The id of the last set that was staged.
async fn played(house: &House, edit: &Edit, story: &str) -> String {
    let (mut answers, mut set, mut tokens) = (Vec::new(), String::new(), 0);
    for recorded in &edit.calls {
        tokens += recorded.arguments.to_string().len() / CHARS_PER_TOKEN;
        let arguments = filled(&recorded.arguments, &answers);
        let answer = in_session(house, "s1", &recorded.tool, arguments).await;
        assert!(answer.ok, "{story}: {answer:?}");
        if recorded.tool == "builder_change_stage" {
            let staged = data(&answer);
            assert_eq!(staged["validation"]["valid"], true, "{story}: {staged}");
            // Nobody else has been here.
            assert!(!staged.to_string().contains("AI_REVISION_BASE_MISMATCH"), "{story}: {staged}");
            staged["changeSetId"].as_str().unwrap().clone_into(&mut set);
        }
        answers.push(answer);
    }
    assert!(tokens <= edit.tokens_max, "{story}: {tokens} tokens, {} at most", edit.tokens_max);
    set
}
