//! `git.stash`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::WsPath;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use super::{Mode, change};

const MESSAGE_CHARS_MAX: usize = 1000;

pub(crate) struct Stash;

/// Works with stashes. `push` saves uncommitted changes and resets the files to the last commit. `apply` restores a stash into
/// the files; `pop` also deletes it. `show` returns its diff. `drop` deletes it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Which of these actions to run.
    action: Action,
    /// The stash for `show`, `apply`, `pop` and `drop`: 0 is the newest.
    #[serde(default)]
    #[schemars(range(max = 10000))]
    index: u32,
    /// The message of the stash that `push` creates.
    #[schemars(length(min = 1, max = 1000))]
    message: Option<String>,
    /// The files or folders whose changes `push` saves, from the workspace root. Omit for all changes.
    #[schemars(length(min = 1, max = 5000))]
    paths: Option<Vec<String>>,
    /// Whether `push` also saves and removes files that git does not track.
    #[serde(default)]
    untracked: bool,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Action {
    Push,
    List,
    Show,
    Apply,
    Pop,
    Drop,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// The stashes after the action, the latest first. Empty for `show`.
    stashes: Vec<Line>,
    /// The changes in the stash as a unified diff, for `show`.
    diff: Option<String>,
    /// Whether the middle of the diff or the end of the list is missing.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
struct Line {
    index: usize,
    hash: String,
    /// ISO 8601.
    date: String,
    message: String,
}

/// `$1` is the action, `$2` the stash's index, `$3` 1 for untracked files, `$4` the message or empty; the paths follow.
const STASH: &str = r#"
action=$1 n=$2 untracked=$3 message=$4
shift 4
# Without paths git would name the whole with magic, which is off here.
[ $# -gt 0 ] || set -- .
paths=("$@")
if [ "$action" = push ]; then
    busy
    git rev-parse --quiet --verify HEAD >/dev/null || { echo "the repository has no commit yet: commit first with git.commit" >&2; exit 70; }
    others() { [ "$untracked" = 0 ] || on_copy ls-files --others --exclude-standard -z -- "${paths[@]}"; }
    differ() {
        on_copy diff-index --cached -R --no-renames "$@" HEAD -- "${paths[@]}" || return
        on_copy diff-index -R --no-renames --ignore-submodules=dirty "$@" HEAD -- "${paths[@]}"
    }
    changes() {
        differ --raw -z || return
        others | while IFS= read -r -d '' file; do
            # A folder is named where it is a repository of its own.
            case "$file" in */) mode=160000 ;; *) mode=100644 ;; esac
            printf ':%s 000000 \0%s\0' "$mode" "${file%/}"
        done
    }
    show() {
        differ --patch --text --full-index --no-ext-diff --no-textconv
        others | while IFS= read -r -d '' file; do printf '?? %s ' "$file"; git hash-object --no-filters -- "$file" || echo; done 2>/dev/null
    }
    state() { show | git hash-object --stdin; }
else
    stash=$(git rev-parse --quiet --verify "refs/stash@{$n}") || { echo "stash $n does not exist: the action \`list\` shows the stashes" >&2; exit 70; }
    extra=$(git rev-parse --quiet --verify "$stash^3") || extra=
    differ() {
        git diff-tree -r --no-renames "$@" "$stash^1" "$stash" -- || return
        [ -z "$extra" ] || git diff-tree -r --no-renames "$@" "$none" "$extra" --
    }
    changes() { differ --raw -z; }
    show() { differ --patch --text --full-index --no-ext-diff --no-textconv; }
    state() { echo "$stash"; }
fi
case "$action" in apply|pop) drivers+=(merge) ;; esac
case "$action" in push|apply|pop) checked; [ -s "$work/list" ] || exit 71 ;; esac
[ -z "$approved" ] || same "$(state)"
"#;

const ACT: &str = r#"
case "$action" in
    push)
        options=(--quiet)
        [ "$untracked" = 0 ] || options+=(--include-untracked)
        [ -z "$message" ] || options+=("--message=$message")
        git stash push "${options[@]}" -- "${paths[@]}" >&2 || exit 70 ;;
    apply|pop)
        busy
        # Git finds that out when it has restored the rest.
        [ -z "$extra" ] || git ls-tree -r -z --name-only "$extra" | while IFS= read -r -d '' file; do
            { [ ! -e "$file" ] && [ ! -L "$file" ]; } || { echo "the stash holds the untracked file $file, which exists already" >&2; exit 70; }
        done || exit 70
        git stash apply --quiet "$stash" >&2 || {
            [ -z "$(git ls-files --unmerged)" ] || exit 90
            exit 70
        } ;;
esac
case "$action" in
    pop|drop)
        [ "$(git rev-parse --quiet --verify "refs/stash@{$n}")" = "$stash" ] && git stash drop --quiet "stash@{$n}" >&2 \
            || { echo "stash $n could not be deleted" >&2; [ "$action" = drop ] || exit 91; exit 70; } ;;
esac
"#;

const LIST: &str = r#"
git rev-parse --git-dir >/dev/null || exit
exec git stash list -z --format='%H%x1f%aI%x1f%gs'
"#;

impl Tool for Stash {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.stash";
    const TITLE: &'static str = "Stash changes";
    const FACTS: Facts = Facts { paths: &["paths"], ..Facts::CHANGES_REPOSITORY };

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "save all changes and reset the files",
                arguments: json!({"action": "push", "message": "later"}),
                files: &[("a.txt", "a\n")],
                before: &[
                    ("git.init", "{}"),
                    ("git.commit", r#"{"message": "first"}"#),
                    ("file.write", r#"{"path": "a.txt", "content": "b\n"}"#),
                ],
                expect: Expect::Data(&[("/stashes/0/message", r#""On main: later""#)]),
            },
            Example {
                says: "a stash that does not exist",
                arguments: json!({"action": "pop"}),
                files: &[],
                before: &[("git.init", "{}")],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        match &output.diff {
            Some(diff) => diff.clone(),
            None if output.stashes.is_empty() => "no stashes".to_owned(),
            None => {
                let line = |s: &Line| format!("{}: {} {}", s.index, s.date, s.message);
                output.stashes.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        }
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let order = Order::of(&input)?;
        if matches!(input.action, Action::List | Action::Show) {
            return Ok(None);
        }
        let result = change::run(ctx, Mode::Read, &[STASH, "state; show"].concat(), &order.arguments()).await?;
        Ok(Some(change::preview(format!("git stash {}", order.action), &result.stdout)))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let order = Order::of(&input)?;
        let result = match input.action {
            Action::List => super::run(ctx, Mode::Read, LIST, &[], "", &[]).await?,
            Action::Show => {
                let result = change::run(ctx, Mode::Read, &[STASH, "show"].concat(), &order.arguments()).await?;
                let truncated = result.stdout.truncated;
                return Ok(Output { stashes: Vec::new(), diff: Some(result.stdout.text), truncated });
            }
            _ => change::run(ctx, Mode::Change, &[STASH, ACT, LIST].concat(), &order.arguments()).await?,
        };
        if result.exit_code != 0 {
            return Err(super::refused("the stashes could not be listed", &result));
        }
        let records = result.stdout.text.split('\0').filter(|record| !record.is_empty()).enumerate();
        let stashes = records.filter_map(|(index, record)| read(index, record)).collect();
        Ok(Output { stashes, diff: None, truncated: result.stdout.truncated })
    }
}

struct Order {
    action: &'static str,
    index: String,
    untracked: &'static str,
    message: String,
    paths: Vec<WsPath>,
}

impl Order {
    fn of(input: &Input) -> Result<Self, ToolError> {
        let of_push = input.message.is_some() || input.paths.is_some() || input.untracked;
        if of_push && input.action != Action::Push {
            return Err(ToolError::new(
                ErrorKind::Validation,
                "`message`, `paths` and `untracked` go only with the action `push`",
            ));
        }
        let message = input.message.clone().unwrap_or_default();
        if message.chars().count() > MESSAGE_CHARS_MAX || message.chars().any(char::is_control) {
            return Err(ToolError::new(
                ErrorKind::Validation,
                format!("`message` must be one line of at most {MESSAGE_CHARS_MAX} characters"),
            ));
        }
        let action = match input.action {
            Action::Push => "push",
            Action::List => "list",
            Action::Show => "show",
            Action::Apply => "apply",
            Action::Pop => "pop",
            Action::Drop => "drop",
        };
        let untracked = if input.untracked { "1" } else { "0" };
        let paths = input.paths.iter().flatten().map(|path| super::path(path)).collect::<Result<_, _>>()?;
        Ok(Self { action, index: input.index.to_string(), untracked, message, paths })
    }

    /// The arguments of [`STASH`].
    fn arguments(&self) -> Vec<&str> {
        let first = [self.action, &self.index, self.untracked, &self.message];
        first.into_iter().chain(self.paths.iter().map(WsPath::as_str)).collect()
    }
}

fn read(index: usize, record: &str) -> Option<Line> {
    let mut fields = record.splitn(3, '\x1f').map(str::to_owned);
    Some(Line { index, hash: fields.next()?, date: fields.next()?, message: fields.next()? })
}
