//! `git.branch`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use super::{Mode, change};

pub(crate) struct Branch;

/// Lists the local branches, creates a branch, or deletes a merged one. To switch use `git.switch`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The name of a branch to create.
    create: Option<String>,
    /// The branch or commit at which the new branch starts. Only with `create`.
    from: Option<String>,
    /// The name of a branch to delete. It must be merged into the current branch.
    delete: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// All local branches after the call, sorted by name; at most 1000.
    branches: Vec<Line>,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    name: String,
    commit: String,
    subject: String,
    /// Whether this is the current branch.
    current: bool,
}

const LIST: &str = r#"
git rev-parse --git-dir >/dev/null || exit
exec git for-each-ref --count=1000 --format='%(HEAD)%1f%(refname:lstrip=2)%1f%(objectname)%1f%(subject)' refs/heads
"#;

/// `$1` is the branch, `$2` where it starts or empty. The start is resolved first: an option it cannot be.
const CREATE: &str = r#"
git check-ref-format --branch "$1" >/dev/null || exit 70
at=$(commit_of "${2:-HEAD}") || exit
same "$at"
"#;

const CREATE_IT: &str = r#"
git branch --quiet --no-track "$1" "$at" || exit 70
"#;

/// Not `git branch --delete`, which also writes the configuration.
const DELETE: &str = r#"
at=$(git rev-parse --quiet --verify "refs/heads/$1") || { echo "branch $1 does not exist" >&2; exit 70; }
git worktree list --porcelain | grep --fixed-strings --line-regexp --quiet "branch refs/heads/$1" \
    && { echo "branch $1 is checked out: switch to another one first with git.switch" >&2; exit 70; }
git merge-base --is-ancestor "$at" HEAD || { echo "branch $1 is not merged into the current branch" >&2; exit 70; }
same "$at"
"#;

const DELETE_IT: &str = r#"
git update-ref -d "refs/heads/$1" "$at" || exit 70
"#;

const STARTS_AT: &str = r#"
printf '%s\n' "$at"
git log -1 --format='%h %s' "$at" --
"#;

impl Tool for Branch {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.branch";
    const TITLE: &'static str = "List, create or delete branches";
    const FACTS: Facts = Facts::CHANGES_REPOSITORY;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "create a branch",
                arguments: json!({"create": "topic"}),
                files: &[("a.txt", "a")],
                before: &[("git.init", "{}"), ("git.commit", r#"{"message": "first"}"#)],
                expect: Expect::Data(&[("/branches/0/name", "\"main\""), ("/branches/1/name", "\"topic\"")]),
            },
            Example {
                says: "the current branch is not deleted",
                arguments: json!({"delete": "main"}),
                files: &[("a.txt", "a")],
                before: &[("git.init", "{}"), ("git.commit", r#"{"message": "first"}"#)],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let line = |b: &Line| {
            let hash = b.commit.get(..10).unwrap_or(&b.commit);
            format!("{} {} {hash} {}", if b.current { "*" } else { " " }, b.name, b.subject)
        };
        output.branches.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        Ok(match order(&input)? {
            Order::List => None,
            Order::Create(name, from) => {
                let script = [CREATE, STARTS_AT].concat();
                let result = change::run(ctx, Mode::Read, &script, &[&name, &from]).await?;
                Some(change::preview(format!("create the branch {name}"), &result.stdout))
            }
            Order::Delete(name) => {
                let script = [DELETE, STARTS_AT].concat();
                let result = change::run(ctx, Mode::Read, &script, &[&name]).await?;
                Some(change::preview(format!("delete the branch {name}"), &result.stdout))
            }
        })
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let result = match order(&input)? {
            Order::List => super::run(ctx, Mode::Read, LIST, &[], "", &[]).await?,
            Order::Create(name, from) => {
                change::run(ctx, Mode::Write, &[CREATE, CREATE_IT, LIST].concat(), &[&name, &from]).await?
            }
            Order::Delete(name) => change::run(ctx, Mode::Write, &[DELETE, DELETE_IT, LIST].concat(), &[&name]).await?,
        };
        if result.exit_code != 0 {
            return Err(super::refused("the branches could not be listed", &result));
        }
        Ok(Output { branches: result.stdout.text.lines().filter_map(read).collect() })
    }
}

enum Order {
    List,
    Create(String, String),
    Delete(String),
}

fn order(input: &Input) -> Result<Order, ToolError> {
    match (&input.create, &input.from, &input.delete) {
        (None, None, None) => Ok(Order::List),
        (Some(create), from, None) => {
            let from = from.as_deref().map_or(Ok(String::new()), |from| super::name("revision", from))?;
            Ok(Order::Create(super::name(super::NEW_BRANCH, create)?, from))
        }
        (None, None, Some(delete)) => Ok(Order::Delete(super::name("branch", delete)?)),
        _ => Err(ToolError::new(
            ErrorKind::Validation,
            "pass `create`, perhaps with `from`, or `delete`, or no argument to list the branches",
        )),
    }
}

fn read(line: &str) -> Option<Line> {
    let mut fields = line.splitn(4, '\x1f').map(str::to_owned);
    let current = fields.next()? == "*";
    Some(Line { current, name: fields.next()?, commit: fields.next()?, subject: fields.next()? })
}
