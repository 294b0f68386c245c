//! `memory.query`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::sheet::listed;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Found, Kind, ProjectRecords, Search, SearchScope};

pub(crate) struct Query;

/// Searches what was learnt: decisions and patterns of the project, insights, issues and learnings of its iterations. Best
/// matches first, newer before older; finds misspelt words, other forms of a word and Chinese, too. Without keywords: the newest.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// `project`: all iterations; `iteration`: one; `smart`: all, with what is of the current iteration, critical or open earlier.
    #[serde(default = "scope_default")]
    scope: Scope,
    /// Only this kind.
    #[serde(default = "category_default")]
    category: Category,
    /// Words to look for; the more of them fit, the better.
    #[serde(default)]
    #[schemars(length(max = 50))]
    keywords: Vec<String>,
    /// Most records of the answer.
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "answers_default")]
    limit: usize,
    /// Longest answer, in tokens; the rest is left out.
    #[schemars(range(min = 1))]
    max_tokens: Option<usize>,
    #[serde(flatten)]
    within: InIteration,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    Project,
    Iteration,
    Smart,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Category {
    All,
    Decisions,
    Patterns,
    Insights,
    Issues,
    Learnings,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    items: Vec<Item>,
    /// Matches that were left out because of `maxTokens`.
    left_out: usize,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        let mut text = listed("memories found", &self.items);
        if self.left_out > 0 {
            text.push_str(&format!("\n\n{} more were left out: raise `maxTokens` or ask for less", self.left_out));
        }
        text
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Item {
    id: String,
    /// `decision`, `pattern`, `insight`, `issue` or `learning`.
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration: Option<i64>,
    /// How well it fits; only good for comparing.
    score: f64,
    created_at_ms: i64,
    content: serde_json::Value,
}

fn scope_default() -> Scope {
    Scope::Smart
}

fn category_default() -> Category {
    Category::All
}

fn answers_default() -> usize {
    20
}

impl RecordTool for Query {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "memory.query";
    const TITLE: &'static str = "Search the memory";
    const FACTS: Facts = Facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("query_memory")]
    }

    fn examples(&self) -> Vec<Example> {
        const KEPT: &[(&str, &str)] = &[
            ("memory.save_insight", r#"{"stage":"design","content":"migrations of the database are slow"}"#),
            ("memory.save_learning", r#"{"content":"测试数据库要先备份"}"#),
        ];
        vec![
            Example {
                says: "with a typo, and another form of the word",
                arguments: json!({"keywords": ["databse", "migrate"]}),
                files: &[],
                before: KEPT,
                expect: Expect::Data(&[("/items/0/id", "\"INS-001\"")]),
            },
            Example {
                says: "in Chinese",
                arguments: json!({"keywords": ["数据库"], "category": "learnings"}),
                files: &[],
                before: KEPT,
                expect: Expect::Data(&[("/items/0/id", "\"LRN-001\"")]),
            },
            Example {
                says: "an unknown category",
                arguments: json!({"category": "ideas"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let scope = match input.scope {
            Scope::Project => SearchScope::Project,
            Scope::Iteration => SearchScope::Iteration(iteration),
            Scope::Smart => SearchScope::Smart(iteration),
        };
        let kinds = match input.category {
            Category::All => Vec::new(),
            Category::Decisions => vec![Kind::Decision],
            Category::Patterns => vec![Kind::Pattern],
            Category::Insights => vec![Kind::Insight],
            Category::Issues => vec![Kind::Issue],
            Category::Learnings => vec![Kind::Learning],
        };
        let search = Search { scope, kinds, keywords: input.keywords, limit: input.limit };
        let found = desk.search(&search).await?;
        let total = found.len();
        let items = found.into_iter().map(item);
        let items = match input.max_tokens {
            Some(most) => within(items, most),
            None => items.collect(),
        };
        Ok(Output { left_out: total - items.len(), items })
    }
}

fn item(found: Found) -> Item {
    let record = found.record;
    Item {
        id: record.id.to_string(),
        kind: record.id.kind.as_str().to_owned(),
        iteration: (record.iteration != 0).then_some(record.iteration),
        score: (found.score * 1000.0).round() / 1000.0,
        created_at_ms: record.created_at_ms,
        content: record.body,
    }
}

/// The best ones that fit; a long one is passed over for shorter ones after it.
fn within(items: impl Iterator<Item = Item>, tokens_max: usize) -> Vec<Item> {
    let mut left = tokens_max;
    let mut kept = Vec::new();
    for item in items {
        let tokens = tokens_of(&crate::tools::sheet::sheet(&item));
        if tokens <= left {
            left -= tokens;
            kept.push(item);
        }
    }
    kept
}

/// A cautious estimate: four letters of a script with spaces make a token, and each character of one without.
fn tokens_of(text: &str) -> usize {
    let (mut narrow, mut wide) = (0, 0);
    for c in text.chars() {
        if c.is_ascii() { narrow += 1 } else { wide += 1 }
    }
    usize::div_ceil(narrow, 4) + wide
}
