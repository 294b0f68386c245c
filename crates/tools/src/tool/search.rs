//! `tool.search`

use std::collections::{BTreeMap, BTreeSet};

use rust_stemmers::{Algorithm, Stemmer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Help, Tool, ToolError, ToolSummary};

/// Tools of one answer, where the caller does not say.
const LIMIT_DEFAULT: usize = 5;
const LIMIT_MAX: usize = 20;
/// Words of a query that are looked for.
const WORDS_MAX: usize = 32;
/// What a word counts for where it stands: the names of a tool, its title, its arguments, its description.
const WEIGHTS: [f64; 4] = [4.0, 3.0, 1.5, 1.0];
/// How much less a word counts that only means the same as the one looked for.
const ALIKE: f64 = 0.6;
/// Words that mean the same where somebody says what a tool should do.
const SAME: [&[&str]; 10] = [
    &["add", "create", "make", "new"],
    &["delete", "drop", "remove"],
    &["change", "edit", "modify", "replace", "update"],
    &["find", "grep", "look", "search"],
    &["keep", "note", "remember", "save", "store"],
    &["execute", "run", "start"],
    &["checkout", "restore", "switch"],
    &["restore", "revert", "undo"],
    &["move", "rename"],
    &["task", "todo"],
];
pub(crate) struct Search;

/// Finds those of your tools that fit some words, best first, with the schema of their arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What the tool should do, or a part of its name: `move a file`, `commit`.
    #[schemars(length(min = 1, max = 400))]
    query: String,
    /// Most tools to answer.
    #[schemars(range(min = 1, max = 20), extend("default" = 5))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    tools: Vec<Found>,
    /// Tools that fit, too, and are not shown.
    more: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Found {
    name: String,
    /// The name where dots are not allowed.
    wire_name: String,
    title: String,
    description: String,
    /// What it can do: `reads`, `writes`, `executes`, `reaches` or `asks`.
    effect: String,
    /// JSON Schema (2020-12) of the arguments.
    input_schema: Value,
}

impl Tool for Search {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "tool.search";
    const TITLE: &'static str = "Find tools";
    const FACTS: Facts = Facts { help: Some(Help::FindsTools), ..Facts::READS };

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "by what it should do",
                arguments: json!({"query": "rename a file", "limit": 1}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/tools/0/name", "\"file.move\""), ("/tools/0/effect", "\"writes\"")]),
            },
            Example {
                says: "nothing to look for",
                arguments: json!({"query": "?!"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        if output.tools.is_empty() {
            return "no tool of yours fits these words: try others".to_owned();
        }
        let shown = output.tools.iter().map(|tool| {
            format!("{} ({}): {}\narguments: {}", tool.wire_name, tool.effect, tool.description, tool.input_schema)
        });
        let mut text = shown.collect::<Vec<_>>().join("\n\n");
        if output.more > 0 {
            text.push_str(&format!("\n\n{} more fit less well: a larger `limit` shows them", output.more));
        }
        text
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let wanted: BTreeSet<String> = words(&input.query).take(WORDS_MAX).collect();
        if wanted.is_empty() {
            return Err(ToolError::new(ErrorKind::Validation, "`query` has no word to search for")
                .hint("say what the tool should do, such as `move a file`"));
        }
        let ranked = ranked(ctx.catalog.tools(), &wanted);
        let limit = input.limit.unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX);
        let more = ranked.len().saturating_sub(limit);
        let tools = ranked.into_iter().take(limit).map(|tool| Found {
            name: tool.name,
            wire_name: tool.wire_name,
            title: tool.title,
            description: tool.description,
            effect: tool.effect.as_str().to_owned(),
            input_schema: tool.input_schema,
        });
        Ok(Output { tools: tools.collect(), more })
    }
}

/// Those that have one of the words, best first. A word that few tools have says more about what is meant than one of many.
fn ranked(tools: Vec<ToolSummary>, wanted: &BTreeSet<String>) -> Vec<ToolSummary> {
    let places: Vec<[BTreeSet<String>; 4]> = tools.iter().map(places).collect();
    let fits: Vec<BTreeMap<&String, f64>> = places
        .iter()
        .map(|places| wanted.iter().map(|word| (word, fit(places, word))).filter(|(_, fit)| *fit > 0.0).collect())
        .collect();
    let rarity = |word: &String| {
        let having = fits.iter().filter(|fits| fits.contains_key(word)).count();
        (1.0 + tools.len() as f64 / having.max(1) as f64).ln()
    };
    let rarities: BTreeMap<&String, f64> = wanted.iter().map(|word| (word, rarity(word))).collect();
    let score =
        |fits: &BTreeMap<&String, f64>| fits.iter().map(|(word, fit)| fit * rarities.get(word).unwrap_or(&0.0)).sum();
    let scores: Vec<f64> = fits.iter().map(score).collect();
    let mut ranked: Vec<(f64, ToolSummary)> = scores.into_iter().zip(tools).filter(|(score, _)| *score > 0.0).collect();
    // Of equal ones the order of the registry stays.
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    ranked.into_iter().map(|(_, tool)| tool).collect()
}

/// The words of a tool where they stand, in the order of [`WEIGHTS`].
fn places(tool: &ToolSummary) -> [BTreeSet<String>; 4] {
    let names = std::iter::once(&tool.name).chain(&tool.aliases).map(String::as_str);
    let names = names.chain(tool.called_elsewhere.iter().copied()).flat_map(words).collect();
    let arguments = tool.input_schema.get("properties").and_then(Value::as_object);
    let arguments = arguments.into_iter().flat_map(|properties| properties.keys()).flat_map(|name| words(name));
    [names, words(&tool.title).collect(), arguments.collect(), words(&tool.description).collect()]
}

/// What a word counts for in a tool: where it counts most.
fn fit(places: &[BTreeSet<String>; 4], word: &str) -> f64 {
    let alike: BTreeSet<String> = SAME
        .iter()
        .map(|same| same.iter().flat_map(|word| words(word)).collect())
        .filter(|same: &BTreeSet<String>| same.contains(word))
        .flatten()
        .collect();
    let in_place = |words: &BTreeSet<String>| match words.contains(word) {
        true => 1.0,
        false if words.is_disjoint(&alike) => 0.0,
        false => ALIKE,
    };
    WEIGHTS.iter().zip(places).map(|(weight, words)| weight * in_place(words)).fold(0.0, f64::max)
}

/// The stems of the words of a text; `workflowId` has two words.
fn words(text: &str) -> impl Iterator<Item = String> {
    /// Words that say nothing about a tool.
    const EMPTY: [&str; 22] = [
        "a", "an", "and", "as", "at", "be", "by", "for", "from", "in", "is", "it", "its", "of", "on", "or", "that",
        "the", "this", "to", "with", "your",
    ];
    let mut spaced = String::with_capacity(text.len());
    let mut before = ' ';
    for letter in text.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            spaced.push(' ');
        }
        spaced.push(if letter.is_alphanumeric() { letter } else { ' ' });
        before = letter;
    }
    let words: Vec<String> = spaced.split(' ').map(str::to_lowercase).collect();
    let stemmer = Stemmer::create(Algorithm::English);
    let told = words.into_iter().filter(|word| !word.is_empty() && !EMPTY.contains(&word.as_str()));
    told.map(move |word| stemmer.stem(&word).into_owned())
}
