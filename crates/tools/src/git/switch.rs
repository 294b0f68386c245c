//! `git.switch`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, OtherName, Preview, Tool, ToolError};

use super::{Mode, change};

pub(crate) struct Switch;

/// Switches to a branch, or creates a branch and switches to it. Changes that are not committed stay; fails if one of them, or an
/// untracked file, would be overwritten. A person must do it where the branch changes a file that their git obeys, such as a
/// hook, or the set of submodules.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The branch to switch to.
    branch: Option<String>,
    /// Create `branch` first; false by default.
    #[serde(default)]
    create: bool,
    /// The branch or commit that a created branch starts at; the current commit by default.
    from: Option<String>,
    /// Check out this commit instead, with no branch.
    detach: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Null when no branch is checked out.
    branch: Option<String>,
    /// Null before the first commit.
    commit: Option<String>,
}

/// `$1` is `branch`, `create` or `detach`, `$2` the name or revision, `$3` where a new branch starts or empty.
const TARGET: &str = r#"
busy
head=$(git rev-parse --quiet --verify HEAD) || head=
branch=$(git symbolic-ref --quiet HEAD) || branch=
case "$1" in
    branch)
        git show-ref --verify --quiet "refs/heads/$2" || { echo "there is no branch $2" >&2; exit 70; }
        target=$(commit_of "refs/heads/$2") || exit
        [ "$branch" = "refs/heads/$2" ] \
            || ! git worktree list --porcelain | grep --fixed-strings --line-regexp --quiet "branch refs/heads/$2" \
            || { echo "$2 is checked out in another worktree" >&2; exit 70; } ;;
    create)
        git check-ref-format --branch "$2" >/dev/null || exit 70
        ! git show-ref --verify --quiet "refs/heads/$2" || { echo "there is a branch $2 already" >&2; exit 70; }
        target=$head
        [ -z "$3" ] || target=$(commit_of "$3") || exit ;;
    *) target=$(commit_of "$2") || exit ;;
esac
tree=$none
[ -z "$target" ] || tree=$(git rev-parse --verify "$target^{tree}") || exit
if [ -z "$branch" ] && [ -n "$head" ] && [ -z "$(git for-each-ref --count=1 --contains "$head")" ] \
    && ! git merge-base --is-ancestor "$head" "$target"; then
    echo "no branch holds the commits that are checked out: create one for them first" >&2
    exit 70
fi
changes() { git diff-tree -r --raw -z --no-renames "$head_tree" "$tree" --; }
checked
state="$branch $head $target"
same "$state"
"#;

/// The files become those of the commit that was looked at, whatever happens to the branch meanwhile.
const SWITCH: &str = r#"
to() { git switch --quiet --no-guess --no-progress --no-overwrite-ignore "$@" >&2 || exit 70; }
case "$1" in
    branch) to --detach "$target"; git symbolic-ref -m "switch to $2" HEAD "refs/heads/$2" || exit 70 ;;
    create) to --no-track --create "$2" ${target:+"$target"} ;;
    *) to --detach "$target" ;;
esac
git symbolic-ref --quiet --short HEAD || echo
git rev-parse --quiet --verify HEAD || echo
"#;

const PREVIEW: &str = r#"
printf '%s\n' "$state"
[ -z "$target" ] || git log -1 --format='%h %s' "$target" --
git diff-tree -r -M --name-status "$head_tree" "$tree" --
# Programs that come, and files that become programs.
git diff-tree -r -M --summary "$head_tree" "$tree" -- | grep --extended-regexp '^ (mode change|create mode (100755|120000|160000))'
true
"#;

impl Tool for Switch {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.switch";
    const TITLE: &'static str = "Switch to a branch";
    const FACTS: Facts = Facts::CHANGES_REPOSITORY;
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[&[
        OtherName::argument("name", "branch"),
        OtherName::argument("branch_name", "branch"),
        OtherName::argument("ref", "branch"),
    ]];

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "to a new branch",
                arguments: json!({"branch": "topic", "create": true}),
                files: &[("a.txt", "a")],
                before: &[("git.init", "{}"), ("git.commit", r#"{"message": "first"}"#)],
                expect: Expect::Data(&[("/branch", "\"topic\"")]),
            },
            Example {
                says: "an option is no branch",
                arguments: json!({"branch": "--force"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let commit = output.commit.as_deref().map_or("no commit yet", |commit| commit.get(..10).unwrap_or(commit));
        format!("on {}, at {commit}", output.branch.as_deref().unwrap_or("no branch"))
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let order = order(&input)?;
        let arguments = [order.0, order.1.as_str(), order.2.as_str()];
        let result = change::run(ctx, Mode::Read, &[TARGET, PREVIEW].concat(), &arguments).await?;
        Ok(Some(change::preview(format!("switch to {}", order.1), &result.stdout)))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let order = order(&input)?;
        let arguments = [order.0, order.1.as_str(), order.2.as_str()];
        let result = change::run(ctx, Mode::Change, &[TARGET, SWITCH].concat(), &arguments).await?;
        let mut lines = result.stdout.text.lines().map(|line| Some(line.to_owned()).filter(|line| !line.is_empty()));
        Ok(Output { branch: lines.next().flatten(), commit: lines.next().flatten() })
    }
}

/// The arguments of [`TARGET`].
fn order(input: &Input) -> Result<(&'static str, String, String), ToolError> {
    match (&input.branch, input.create, &input.from, &input.detach) {
        (Some(branch), false, None, None) => Ok(("branch", super::name("branch", branch)?, String::new())),
        (Some(branch), true, from, None) => {
            let from = from.as_deref().map_or(Ok(String::new()), |from| super::name("revision", from))?;
            Ok(("create", super::name(super::NEW_BRANCH, branch)?, from))
        }
        (None, false, None, Some(revision)) => Ok(("detach", super::name("revision", revision)?, String::new())),
        _ => Err(ToolError::new(ErrorKind::Validation, "give `branch`, with `create` for a new one, or `detach`")
            .hint("`from` goes with `create` only")),
    }
}
