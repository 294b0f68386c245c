//! `git.commit`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::{CommandResult, WsPath};
use toolhost_contract::{Approval, Ctx, ErrorKind, Example, Expect, Facts, OtherName, Preview, Tool, ToolError};

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
    /// The files or folders to commit, from the workspace root. Left out: everything.
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

/// Makes the tree that a commit would have, on copies: what is refused leaves nothing staged, and what is only shown writes
/// nothing to the repository. Each failure has its own code.
///
/// `$1` is `all` or `files`, `$2` what was approved or empty; the paths follow.
const STAGE: &str = r#"
kind=$1; approved=$2; shift 2
index=$(git rev-parse --git-path index) || exit
git_file() { cat "$(git rev-parse --git-path "$1")" 2>/dev/null; }
head=$(git rev-parse --quiet --verify HEAD) || head=none
base=$(git rev-parse --quiet --verify 'HEAD^{tree}') || base=$(git hash-object -t tree /dev/null)
onto="$(git symbolic-ref --quiet HEAD || echo detached) $head $(git_file MERGE_HEAD | tr '\n' ' ')"
[ ! -e "$index" ] || cp "$index" "$work/index" || exit 70
export GIT_INDEX_FILE=$work/index
if [ "$kind" = all ]; then
    git add --all || exit 70
    # What a killed host may have left of a write is nobody's work.
    git diff --cached --name-only -z --no-ext-diff --diff-filter=A | grep -zE '(^|/)\.toolhost-[0-9-]+\.tmp$' \
        | xargs -0 -r git rm --quiet --cached -- || exit 70
    chosen=$work/index
    set --
else
    [ -z "$(git_file MERGE_HEAD)$(git_file CHERRY_PICK_HEAD)" ] \
        || { echo "in the middle of a merge or a cherry-pick only all of it can be committed" >&2; exit 72; }
    git add --all -- "$@" || exit 70
    # What was committed last, and of the index only what is named, as `git commit --only` has it.
    chosen=$work/chosen
    in_chosen() { GIT_INDEX_FILE=$chosen git "$@"; }
    in_chosen read-tree "$base" || exit 70
    in_chosen ls-files -z -- "$@" | in_chosen update-index -z --force-remove --stdin || exit 70
    git ls-files --stage -z -- "$@" | in_chosen update-index --replace -z --index-info || exit 70
fi
export GIT_INDEX_FILE=$chosen
tree=$(git write-tree) || exit 70
[ "$tree" != "$base" ] || exit 71
# A repository that a command made must not become one that a person's `git status` enters.
nested=$(git diff-tree -r --raw -z --no-renames "$base" "$tree" -- | while IFS= read -r -d '' facts && IFS= read -r -d '' file; do
    case "$facts" in
        ':160000 '*) ;;
        ':'??????' 160000 '*) printf '%s\n' "$file" ;;
    esac
done)
[ -z "$nested" ] || { printf '%s\n' "$nested" >&2; exit 75; }
filtered=$(git diff --cached --name-only -z --no-ext-diff --diff-filter=d -- "$@" | git check-attr --stdin -z filter \
    | while IFS= read -r -d '' file && IFS= read -r -d '' _ && IFS= read -r -d '' value; do
        case "$value" in unspecified|unset) ;; *) printf '%s uses %s\n' "$file" "$value"; break ;; esac
    done)
[ -z "$filtered" ] || { printf '%s\n' "$filtered" >&2; exit 73; }
[ -z "$approved" ] || [ "$approved" = "$tree $onto" ] || exit 74
"#;

/// A folder of the command's own.
const WORK: &str = r#"
work=$(mktemp -d) || exit 72
trap 'rm -rf "$work"' EXIT
"#;

/// Commits what was staged, and tells what was committed. The message is standard input.
const COMMIT: &str = r#"
cp "$work/index" "$lock" || exit 72
# Both or neither: where the branch moves and the index does not, the next commit takes this one back.
trap '' TERM
git commit --quiet --no-verify --cleanup=whitespace --file=- || exit 72
mv -f "$lock" "$index" || exit 72
mine=
trap - TERM
unset GIT_INDEX_FILE
git rev-parse --verify HEAD
git symbolic-ref --quiet --short HEAD || echo
git log -1 --format=%s
git diff-tree --root --no-commit-id --name-only -r -z HEAD --
"#;

/// While a commit is made, no other git process changes the index. The lock is removed however this ends, if it is its own:
/// SIGTERM is put off until that is known, and while it is removed.
const LOCK: &str = r#"
lock=$(git rev-parse --git-path index).lock || exit
mine= ended=
trap 'trap "" TERM; rm -rf "$work" ${mine:+"$lock"}' EXIT
trap 'ended=1' TERM
set -C
{ : >"$lock"; } 2>/dev/null && mine=1
set +C
trap - TERM
[ -z "$ended" ] || exit 143
[ -n "$mine" ] || {
    echo "another git process is at work here, or was killed: $lock exists; if no git runs, a person removes that file" >&2
    exit 72
}
"#;

/// New objects go to a store of the command's own, behind which the repository's is read.
const ASIDE: &str = r#"
objects=$(git rev-parse --git-path objects) || exit
case "$objects" in /*) ;; *) objects=$PWD/$objects ;; esac
mkdir -p "$work/objects/info" && printf '%s\n' "$objects" >"$work/objects/info/alternates" || exit 72
export GIT_OBJECT_DIRECTORY=$work/objects
"#;

/// The tree, what it would be committed onto, which files differ and how. Not the porcelain `git diff`: what that leaves out
/// is the repository's to configure.
const PREVIEW: &str = r#"
printf '%s\n' "$tree" "$onto"
differ() { git diff-tree -r -M --text --full-index --no-ext-diff --no-textconv --ignore-submodules=none "$@" "$base" "$tree" --; }
differ --name-status
echo
differ --patch
"#;

impl Tool for Commit {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.commit";
    const TITLE: &'static str = "Commit changes";
    // A message says nothing of what is committed under it.
    const FACTS: Facts = Facts { approval: Approval::OneByOne, paths: &["files"], ..Facts::CHANGES_REPOSITORY };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[&[
        OtherName::argument("m", "message"),
        OtherName::argument("msg", "message"),
        OtherName::argument("commit_message", "message"),
        OtherName::argument("subject", "message"),
        OtherName::argument("paths", "files"),
        OtherName::argument("file", "files"),
        OtherName::argument("path", "files"),
    ]];

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
        let order = order(&input)?;
        let script = [WORK, ASIDE, STAGE, PREVIEW].concat();
        let (result, left_out) = super::preview(ctx, &script, &order.of("")).await?;
        if result.exit_code != 0 {
            return Err(failed(&result));
        }
        let mut lines = result.stdout.text.splitn(3, '\n');
        let mut line = || lines.next().unwrap_or_default();
        let (tree, onto, changes) = (line(), line(), line());
        let summary = format!("commit: {}", order.message.lines().next().unwrap_or_default());
        // Set in, no line of the message looks like one of what follows.
        let message: String = order.message.lines().map(|line| format!("    {line}\n")).collect();
        let detail = format!("{message}\nonto {}\n{changes}", onto.trim_end());
        Ok(Some(Preview { summary, detail, left_out, rests_on: json!({ "tree": tree, "onto": onto }) }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let order = order(&input)?;
        // What a person has seen is what is committed, and where.
        let seen = |name: &str| ctx.approved.as_ref().and_then(|rests_on| rests_on.get(name)?.as_str());
        let approved = seen("tree").zip(seen("onto")).map(|(tree, onto)| format!("{tree} {onto}")).unwrap_or_default();
        let script = [WORK, LOCK, STAGE, COMMIT].concat();
        let result = super::run(ctx, Mode::Write, &script, &order.of(&approved), order.message, &[]).await?;
        if result.exit_code != 0 {
            return Err(failed(&result));
        }
        read(&result.stdout.text)
            .ok_or_else(|| super::refused("the commit was made, but git did not tell its hash", &result))
    }
}

/// What is to be committed, checked.
struct Order<'a> {
    message: &'a str,
    kind: &'static str,
    files: Vec<WsPath>,
}

impl Order<'_> {
    /// The arguments of [`STAGE`].
    fn of<'a>(&'a self, approved: &'a str) -> Vec<&'a str> {
        [self.kind, approved].into_iter().chain(self.files.iter().map(WsPath::as_str)).collect()
    }
}

fn order(input: &Input) -> Result<Order<'_>, ToolError> {
    let message = input.message.trim();
    if message.is_empty() || message.chars().count() > MESSAGE_CHARS_MAX || message.contains('\0') {
        return Err(ToolError::new(ErrorKind::Validation, "the message is empty, or holds a NUL character"));
    }
    let files = input.files.iter().flatten().map(|file| super::path(file)).collect::<Result<_, _>>()?;
    Ok(Order { message, kind: if input.files.is_some() { "files" } else { "all" }, files })
}

/// What the codes of [`STAGE`] mean.
fn failed(result: &CommandResult) -> ToolError {
    match result.exit_code {
        70 => super::refused("nothing was committed: the files could not be staged", result),
        71 => ToolError::new(ErrorKind::Conflict, "there is nothing to commit")
            .hint("`git.status` shows what has changed; a person commits what has changed inside a submodule"),
        73 => super::refused("nothing was committed: git's filters do not run here", result).hint(
            "files kept by a filter, such as Git LFS, are for a person to commit; name the other files in `files`",
        ),
        74 => ToolError::new(ErrorKind::Conflict, "nothing was committed: what would be is not what a person has seen")
            .hint("look at it anew and ask again"),
        75 => super::refused("nothing was committed: a repository of its own stands there", result).hint(
            "only a person adds a submodule; name the other files in `files`, list it in .gitignore, or remove its .git",
        ),
        _ => super::refused("nothing was committed", result),
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
