//! `git.restore`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::WsPath;
use toolhost_contract::{Approval, Ctx, ErrorKind, Example, Expect, Facts, OtherName, Preview, Tool, ToolError};

use super::{Mode, change};

pub(crate) struct Restore;

/// Restores files from the index or a commit and discards their changes, which cannot be undone; or unstages files. Files
/// that git does not track stay, unless the commit holds a file of that name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The files or folders to restore, from the workspace root.
    #[schemars(length(min = 1, max = 5000))]
    paths: Vec<String>,
    /// Restore the index, which unstages; false by default.
    #[serde(default)]
    staged: bool,
    /// Restore the files themselves; true by default, false with `staged`.
    worktree: Option<bool>,
    /// The commit or branch to restore from; by default the index, or the current commit with `staged`.
    source: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The files that were restored.
    files: Vec<String>,
}

/// `$1` and `$2` are 1 where the index and the files are restored, `$3` is the revision or empty; the paths follow.
const SOURCE: &str = r#"
staged=$1 worktree=$2 tree=
if [ -n "$3" ]; then tree=$(commit_of "$3") || exit; elif [ "$staged" = 1 ]; then tree=$head_tree; fi
shift 3
paths=("$@")
differ() { # in the direction of the restoring
    if [ "$staged" = 1 ]; then
        on_copy diff-index --cached -R --no-renames "$@" "$tree" -- "${paths[@]}" || return
    fi
    if [ "$worktree" = 1 ] && [ -n "$tree" ]; then
        on_copy diff-index -R --no-renames --ignore-submodules=dirty "$@" "$tree" -- "${paths[@]}"
    elif [ "$worktree" = 1 ]; then
        on_copy diff-files -R --no-renames --ignore-submodules=dirty "$@" -- "${paths[@]}"
    fi
}
changes() { differ --raw -z; }
patch() { differ --patch --text --full-index --no-ext-diff --no-textconv; }
"#;

const RESTORE: &str = r#"
[ -z "$approved" ] || same "$(patch | git hash-object --stdin)"
checked
options=()
[ "$staged" = 0 ] || options+=(--staged)
[ "$worktree" = 0 ] || options+=(--worktree)
git restore --quiet --no-progress "${options[@]}" ${tree:+--source="$tree"} -- "${paths[@]}" >&2 || exit 70
cat "$work/list"
"#;

const PREVIEW: &str = r#"
checked
patch | git hash-object --stdin
patch
"#;

impl Tool for Restore {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.restore";
    const TITLE: &'static str = "Restore files";
    // A path says nothing of the changes that are lost.
    const FACTS: Facts = Facts { approval: Approval::OneByOne, paths: &["paths"], ..Facts::CHANGES_REPOSITORY };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[&[
        OtherName::argument("path", "paths"),
        OtherName::argument("files", "paths"),
        OtherName::argument("file", "paths"),
        OtherName::argument("file_path", "paths"),
    ]];

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a file without changes",
                arguments: json!({"paths": ["a.txt"]}),
                files: &[("a.txt", "a")],
                before: &[("git.init", "{}"), ("git.commit", r#"{"message": "first"}"#)],
                expect: Expect::Data(&[("/files", "[]")]),
            },
            Example {
                says: "paths stay in the workspace",
                arguments: json!({"paths": ["../other"]}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Security),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        if output.files.is_empty() {
            "nothing to restore".to_owned()
        } else {
            format!("restored\n{}", output.files.join("\n"))
        }
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let order = Order::of(&input)?;
        let result = change::run(ctx, Mode::Read, &[SOURCE, PREVIEW].concat(), &order.arguments()).await?;
        let paths: Vec<&str> = order.paths.iter().map(WsPath::as_str).collect();
        let place = match (order.staged, order.worktree) {
            (true, true) => " in the index and in the files",
            (true, false) => " in the index",
            _ => "",
        };
        let source = if order.source.is_empty() { String::new() } else { format!(" from {}", order.source) };
        Ok(Some(change::preview(format!("restore {}{place}{source}", paths.join(", ")), &result.stdout)))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let order = Order::of(&input)?;
        let result = change::run(ctx, Mode::Change, &[SOURCE, RESTORE].concat(), &order.arguments()).await?;
        let mut files: Vec<String> =
            result.stdout.text.split('\0').filter(|file| !file.is_empty()).map(str::to_owned).collect();
        files.sort();
        files.dedup();
        Ok(Output { files })
    }
}

struct Order {
    staged: bool,
    worktree: bool,
    source: String,
    paths: Vec<WsPath>,
}

impl Order {
    fn of(input: &Input) -> Result<Self, ToolError> {
        let worktree = input.worktree.unwrap_or(!input.staged);
        if !input.staged && !worktree {
            return Err(ToolError::new(ErrorKind::Validation, "neither the index nor the files are to be restored")
                .hint("leave `worktree` out, or set `staged`"));
        }
        let source = input.source.as_deref().map_or(Ok(String::new()), |source| super::name("revision", source))?;
        let paths = input.paths.iter().map(|path| super::path(path)).collect::<Result<_, _>>()?;
        Ok(Self { staged: input.staged, worktree, source, paths })
    }

    /// The arguments of [`SOURCE`].
    fn arguments(&self) -> Vec<&str> {
        let flag = |set: bool| if set { "1" } else { "0" };
        let first = [flag(self.staged), flag(self.worktree), self.source.as_str()];
        first.into_iter().chain(self.paths.iter().map(WsPath::as_str)).collect()
    }
}
