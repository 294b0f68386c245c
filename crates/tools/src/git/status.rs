//! `git.status`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Effect, ErrorKind, Example, Expect, Tool, ToolError};

/// Most files listed.
const FILES_MAX: usize = 2000;

pub(crate) struct Status;

/// Shows the repository's state: branch, and which files are changed, staged, untracked or in conflict.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {}

#[derive(Serialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// Null when no branch is checked out.
    branch: Option<String>,
    /// Null before the first commit.
    commit: Option<String>,
    upstream: Option<String>,
    ahead: Option<u64>,
    behind: Option<u64>,
    clean: bool,
    files: Vec<File>,
    /// There are more changed files than are listed.
    truncated: bool,
}

#[derive(Serialize, JsonSchema, Clone)]
#[serde(rename_all = "camelCase")]
struct File {
    path: String,
    /// The path before a rename.
    from: Option<String>,
    /// Git's letter for the staged change: M, A, D, R, C, T, U, or `.` for none; `?` for untracked.
    staged: String,
    /// Git's letter for the change that is not staged.
    unstaged: String,
}

impl Tool for Status {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.status";
    const TITLE: &'static str = "Repository status";
    const EFFECT: Effect = Effect::Reads;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a workspace without a repository",
            arguments: json!({}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::NotFound),
        }]
    }

    fn render(&self, output: &Output) -> String {
        let branch = output.branch.as_deref().unwrap_or("(no branch)");
        let mut head = format!("on {branch}");
        if output.commit.is_none() {
            head.push_str(", no commits yet");
        }
        if let Some(upstream) = &output.upstream {
            let (ahead, behind) = (output.ahead.unwrap_or(0), output.behind.unwrap_or(0));
            head.push_str(&format!(", {ahead} ahead of and {behind} behind {upstream}"));
        }
        if output.clean {
            return format!("{head}\nnothing changed");
        }
        let lines = output.files.iter().map(|file| {
            let from = file.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
            format!("{}{} {from}{}", file.staged, file.unstaged, file.path)
        });
        let mut text = format!("{head}\n{}", lines.collect::<Vec<_>>().join("\n"));
        if output.truncated {
            text.push_str("\n[more files are changed than are listed]");
        }
        text
    }

    async fn run(&self, ctx: &Ctx<'_>, _: Input) -> Result<Output, ToolError> {
        let arguments =
            ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=dirty"];
        let result = super::read(ctx, &arguments).await?;
        if result.exit_code != 0 {
            return Err(super::refused("git status failed", &result));
        }
        Ok(parse(&result.stdout.text, result.stdout.truncated))
    }
}

/// Reads porcelain v2 with NUL between records (git-status(1)).
fn parse(text: &str, cut: bool) -> Output {
    let mut output = Output::default();
    let mut records = text.split('\0').filter(|record| !record.is_empty());
    while let Some(record) = records.next() {
        if let Some(header) = record.strip_prefix("# ") {
            read_header(header, &mut output);
        } else if let Some(file) = read_file(record, &mut records) {
            output.files.push(file);
        }
    }
    output.clean = output.files.is_empty() && !cut;
    output.truncated = cut || output.files.len() > FILES_MAX;
    output.files.truncate(FILES_MAX);
    output
}

fn read_header(header: &str, output: &mut Output) {
    match header.split_once(' ') {
        Some(("branch.oid", oid)) if oid != "(initial)" => output.commit = Some(oid.to_owned()),
        Some(("branch.head", head)) if head != "(detached)" => output.branch = Some(head.to_owned()),
        Some(("branch.upstream", upstream)) => output.upstream = Some(upstream.to_owned()),
        Some(("branch.ab", counts)) => {
            let mut counts = counts.split(' ').map(|count| count.trim_start_matches(['+', '-']).parse().ok());
            output.ahead = counts.next().flatten();
            output.behind = counts.next().flatten();
        }
        _ => {}
    }
}

fn read_file<'t>(record: &'t str, records: &mut impl Iterator<Item = &'t str>) -> Option<File> {
    let (kind, rest) = record.split_once(' ')?;
    // Fields before the path: ordinary, renamed, unmerged (git-status(1), "Changed Tracked Entries").
    let fields = match kind {
        "1" => 7,
        "2" => 8,
        "u" => 9,
        "?" => {
            return Some(File { path: rest.to_owned(), from: None, staged: "?".to_owned(), unstaged: "?".to_owned() });
        }
        _ => return None,
    };
    let mut parts = rest.splitn(fields + 1, ' ');
    let letters = parts.next()?;
    let path = parts.nth(fields - 1)?;
    let from = if kind == "2" { records.next().map(str::to_owned) } else { None };
    Some(File {
        path: path.to_owned(),
        from,
        staged: letters.get(..1)?.to_owned(),
        unstaged: letters.get(1..2)?.to_owned(),
    })
}
