//! `git.fetch`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use super::remote::{self, Route};

pub(crate) struct Fetch;

/// Most branches that an answer lists.
const LISTED_MAX: usize = 200;

/// Fetches the commits of all branches of a remote that the operator grants, and notes where they are as `<remote>/<branch>`.
/// It changes no branch and no file of yours, and fetches no tags. Use `git.pull` to bring the current branch forward.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The remote's name. Omit for the current branch's own, or `origin`.
    remote: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    remote: String,
    /// Branches of the remote that are new or have moved, sorted by name; at most 200.
    changed: Vec<Change>,
    /// How many they are in all.
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct Change {
    branch: String,
    /// Null for a new branch.
    before: Option<String>,
    after: String,
}

const LOOK: &str = r#"git ls-remote --refs -- "$url" 'refs/heads/*' || exit 71"#;

/// `$1` is what to fetch. The branches are those of the host's own repository.
pub(super) const FETCH: &str = r#"
git fetch --quiet --no-tags --no-write-fetch-head --no-auto-maintenance --no-recurse-submodules \
    -- "$url" "$1" || exit 71
git for-each-ref --format='%(objectname) %(refname:lstrip=2)' refs/heads
"#;

impl Tool for Fetch {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.fetch";
    const TITLE: &'static str = "Fetch a remote's branches";
    const FACTS: Facts = Facts::REACHES_SERVER;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "only a remote that the operator grants",
            arguments: json!({"remote": "elsewhere"}),
            files: &[],
            before: &[("git.init", "{}")],
            expect: Expect::Fails(ErrorKind::Denied),
        }]
    }

    fn render(&self, output: &Output) -> String {
        if output.total == 0 {
            return format!("{} has nothing new", output.remote);
        }
        let short = |hash: &str| hash.get(..10).unwrap_or(hash).to_owned();
        let line = |change: &Change| {
            let before = change.before.as_deref().map_or_else(|| "new".to_owned(), short);
            format!("{}/{}: {before} -> {}", output.remote, change.branch, short(&change.after))
        };
        let mut lines: Vec<String> = output.changed.iter().map(line).collect();
        if output.total > output.changed.len() {
            lines.push(format!("and {} more", output.total - output.changed.len()));
        }
        lines.join("\n")
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let route = Route::find(ctx, &name(&input)?, "").await?;
        let granted = route.granted()?;
        let talked = route.talk(ctx, LOOK, &[]).await?;
        let changed = changes(&route.followed, &remote::branches(&talked.result.stdout.text));
        let lines = changed.iter().map(|change| {
            let before = change.before.as_deref().unwrap_or("new");
            format!("{}: {before} -> {}\n", change.branch, change.after)
        });
        let detail = if changed.is_empty() { "no branch has moved\n".to_owned() } else { lines.collect() };
        Ok(Some(Preview {
            summary: format!("fetch from {}, {}", route.remote, granted.url),
            detail,
            left_out: 0,
            rests_on: json!({ "remote": route.remote, "url": granted.url.as_str() }),
        }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let route = Route::find(ctx, &name(&input)?, "").await?;
        let talked = route.talk(ctx, FETCH, &["+refs/heads/*:refs/heads/*"]).await?;
        let there = remote::branches(&talked.result.stdout.text);
        remote::take(ctx, talked.pack).await?;
        remote::follow(ctx, &route.remote, &there).await?;
        let mut changed = changes(&route.followed, &there);
        let total = changed.len();
        changed.truncate(LISTED_MAX);
        Ok(Output { remote: route.remote, changed, total })
    }
}

fn name(input: &Input) -> Result<String, ToolError> {
    input.remote.as_deref().map_or(Ok(String::new()), |remote| super::name("remote", remote))
}

fn changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<Change> {
    let moved = after.iter().filter(|(name, commit)| before.get(*name) != Some(*commit));
    let change = |(name, commit): (&String, &String)| Change {
        branch: name.clone(),
        before: before.get(name).cloned(),
        after: commit.clone(),
    };
    moved.map(change).collect()
}
