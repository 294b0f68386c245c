//! `git.commit`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Effect, ErrorKind, Example, Expect, Preview, Tool, ToolError};

use super::Mode;

const MESSAGE_CHARS_MAX: usize = 50_000;

pub(crate) struct Commit;

/// Commits changes: the named files, or everything that has changed, untracked files included. Hooks do not run. The
/// author is your persona.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The commit message: a subject line, and after an empty line a body if it needs one.
    #[schemars(length(min = 1, max = 50000))]
    message: String,
    /// The files or folders to commit, relative to the workspace root. Left out: everything.
    #[schemars(length(min = 1, max = 5000))]
    files: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The new commit.
    hash: String,
    branch: Option<String>,
    subject: String,
    files: Vec<String>,
}

/// Stages, looks whether there is anything, commits, and tells what was committed; each failure has its own code.
///
/// `$1` is `all` or `files`; the paths follow; the message is standard input.
const SCRIPT: &str = r#"
kind=$1; shift
# All is done on a copy of the index, which takes the place of the real one when the commit is made: a refused commit
# leaves nothing staged.
index=$(git rev-parse --git-path index) || exit
copy=$index.toolhost-$$
(set -C; : >"$index.lock") 2>/dev/null || { echo "another git process is at work here: $index.lock exists" >&2; exit 72; }
trap 'rm -f "$copy" "$copy.lock" "$index.lock"' EXIT
[ ! -e "$index" ] || cp "$index" "$copy" || exit 70
export GIT_INDEX_FILE=$copy
if [ "$kind" = all ]; then
    git add --all || exit 70
    # What a killed host may have left of a write is nobody's work.
    git diff --cached --name-only -z --no-ext-diff --diff-filter=A | grep -zE '(^|/)\.toolhost-[0-9-]+\.tmp$' \
        | xargs -0 -r git rm --quiet --cached -- || exit 70
    git diff --cached --quiet --no-ext-diff --no-textconv && exit 71
    set --
else
    git add --all -- "$@" || exit 70
    git diff --cached --quiet --no-ext-diff --no-textconv -- "$@" && exit 71
fi
filtered=$(git diff --cached --name-only -z --no-ext-diff --diff-filter=d -- "$@" | git check-attr --stdin -z filter \
    | while IFS= read -r -d '' file && IFS= read -r -d '' _ && IFS= read -r -d '' value; do
        case "$value" in unspecified|unset) ;; *) printf '%s uses %s\n' "$file" "$value"; break ;; esac
    done)
[ -z "$filtered" ] || { printf '%s\n' "$filtered" >&2; exit 73; }
if [ "$kind" = all ]; then
    git commit --quiet --no-verify --cleanup=whitespace --file=- || exit 72
else
    git commit --quiet --no-verify --cleanup=whitespace --file=- --only -- "$@" || exit 72
fi
mv -f "$copy" "$index.lock" && mv -f "$index.lock" "$index" || exit 72
unset GIT_INDEX_FILE
git rev-parse HEAD
git symbolic-ref --quiet --short HEAD || echo
git log -1 --format=%s
git diff-tree --root --no-commit-id --name-only -r -z HEAD
"#;

/// A hash of all that would be committed, then which files, and their diff. The paths are its arguments.
const PREVIEW: &str = r#"
git rev-parse --git-dir >/dev/null || exit
base=HEAD; git rev-parse --quiet --verify HEAD >/dev/null || base=$(git hash-object -t tree /dev/null)
new() { git ls-files --others --exclude-standard -z -- "$@"; }
diff() { git diff "$base" --no-ext-diff --no-textconv -- "$@"; }
{ diff "$@"; new "$@"; new "$@" | xargs -0 -r git hash-object --no-filters --; } | git hash-object --stdin
git diff "$base" --no-ext-diff --name-status -- "$@"
new "$@" | while IFS= read -r -d '' file; do printf 'A\t%s\n' "$file"; done
echo
diff "$@"
"#;

impl Tool for Commit {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.commit";
    const TITLE: &'static str = "Commit changes";
    const EFFECT: Effect = Effect::Writes;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a workspace without a repository",
                arguments: json!({"message": "docs: first notes"}),
                files: &[("a.txt", "a")],
                before: &[],
                expect: Expect::Fails(ErrorKind::NotFound),
            },
            Example {
                says: "paths stay in the workspace",
                arguments: json!({"message": "x", "files": ["../other"]}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Security),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let branch = output.branch.as_deref().unwrap_or("no branch");
        let hash = output.hash.get(..10).unwrap_or(&output.hash);
        format!("committed {hash} on {branch}: {}\n{}", output.subject, output.files.join("\n"))
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let files: Vec<_> = input.files.iter().flatten().map(|file| super::path(file)).collect::<Result<_, _>>()?;
        let paths: Vec<&str> = files.iter().map(toolhost_sandbox::WsPath::as_str).collect();
        let result = super::run(ctx, Mode::Read, PREVIEW, &paths, "", &[]).await?;
        if result.exit_code != 0 {
            return Err(super::refused("what would be committed cannot be told", &result));
        }
        let (hash, changes) = result.stdout.text.split_once('\n').unwrap_or_default();
        let summary = format!("commit: {}", input.message.trim().lines().next().unwrap_or_default());
        let detail = format!("{}\n\n{changes}", input.message.trim());
        Ok(Some(Preview { summary, detail, rests_on: json!({ "changes": hash }) }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let message = input.message.trim();
        if message.is_empty() || message.chars().count() > MESSAGE_CHARS_MAX || message.contains('\0') {
            return Err(ToolError::new(ErrorKind::Validation, "the message is empty, or holds a NUL character"));
        }
        let files: Vec<_> = input.files.iter().flatten().map(|file| super::path(file)).collect::<Result<_, _>>()?;
        let mut arguments = vec![if input.files.is_some() { "files" } else { "all" }];
        arguments.extend(files.iter().map(toolhost_sandbox::WsPath::as_str));
        let result = super::run(ctx, Mode::Write, SCRIPT, &arguments, message, &[]).await?;
        match result.exit_code {
            0 => read(&result.stdout.text)
                .ok_or_else(|| super::refused("the commit was made, but git did not tell its hash", &result)),
            70 => Err(super::refused("nothing was committed: the files could not be staged", &result)),
            71 => Err(ToolError::new(ErrorKind::Conflict, "there is nothing to commit")
                .hint("`git.status` shows what has changed")),
            73 => Err(super::refused("nothing was committed: git's filters do not run here", &result).hint(
                "files kept by a filter, such as Git LFS, are for a person to commit; name the other files in `files`",
            )),
            _ => Err(super::refused("nothing was committed", &result)),
        }
    }
}

fn read(text: &str) -> Option<Output> {
    let mut lines = text.splitn(4, '\n');
    let hash = lines.next().filter(|hash| !hash.is_empty())?.to_owned();
    let branch = lines.next().filter(|branch| !branch.is_empty()).map(str::to_owned);
    let subject = lines.next()?.to_owned();
    let files =
        lines.next().unwrap_or_default().split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect();
    Some(Output { hash, branch, subject, files })
}
