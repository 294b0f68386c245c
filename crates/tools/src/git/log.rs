//! `git.log`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, OtherName, Tool, ToolError};

use super::Mode;

const LIMIT_DEFAULT: usize = 20;
/// Hash, author, date, subject and body, with bytes between that no message holds by accident.
const FORMAT: &str = "--format=%H%x1f%an%x1f%aI%x1f%s%x1f%b%x1e";

pub(crate) struct Log;

/// Lists commits of the current branch, newest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Most commits to list.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 500))]
    limit: usize,
    /// Only commits that changed this file or folder, from the workspace root.
    path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    commits: Vec<Commit>,
    /// The middle was left out: ask for fewer commits.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct Commit {
    hash: String,
    author: String,
    /// ISO 8601.
    date: String,
    subject: String,
    body: String,
}

fn limit_default() -> usize {
    LIMIT_DEFAULT
}

impl Tool for Log {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.log";
    const TITLE: &'static str = "List commits";
    const FACTS: Facts = Facts { paths: &["path"], ..Facts::READS_REPOSITORY };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[&[
        OtherName::argument("file_path", "path"),
        OtherName::argument("file", "path"),
        OtherName::argument("max_count", "limit"),
        OtherName::argument("n", "limit"),
        OtherName::argument("count", "limit"),
    ]];

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a workspace without a repository",
            arguments: json!({"limit": 5}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::NotFound),
        }]
    }

    fn render(&self, output: &Output) -> String {
        if output.commits.is_empty() {
            return "no commits".to_owned();
        }
        let lines = output.commits.iter().map(|c| {
            let body = c.body.trim();
            let body = if body.is_empty() { String::new() } else { format!("\n    {}", body.replace('\n', "\n    ")) };
            format!("{} {} {}: {}{body}", c.hash.get(..10).unwrap_or(&c.hash), c.date, c.author, c.subject)
        });
        let cut = if output.truncated { "\n[the middle was left out: ask for fewer commits]" } else { "" };
        lines.collect::<Vec<_>>().join("\n") + cut
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let path = input.path.as_deref().map(super::path).transpose()?;
        let count = format!("--max-count={}", input.limit);
        let mut arguments = vec!["log", "--no-show-signature", "--no-color", &count, FORMAT, "--"];
        if let Some(path) = &path {
            arguments.push(path.as_str());
        }
        // Before the first commit there is no log, and that is no failure.
        let script = r#"git rev-parse --quiet --verify HEAD >/dev/null || { git rev-parse --git-dir >/dev/null || exit; exit 0; }
exec git "$@""#;
        let result = super::run(ctx, Mode::Read, script, &arguments, "", &[]).await?;
        if result.exit_code != 0 {
            return Err(super::refused("git log failed", &result));
        }
        let commits = result.stdout.text.split('\x1e').filter_map(read).collect();
        Ok(Output { commits, truncated: result.stdout.truncated })
    }
}

fn read(record: &str) -> Option<Commit> {
    let mut fields = record.trim_start_matches('\n').split('\x1f').map(str::to_owned);
    Some(Commit {
        hash: fields.next()?,
        author: fields.next()?,
        date: fields.next()?,
        subject: fields.next()?,
        body: fields.next()?,
    })
}
