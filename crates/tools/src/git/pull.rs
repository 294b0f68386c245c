//! `git.pull`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use super::remote::{self, Route};
use super::{Mode, change};

pub(crate) struct Pull;

/// Fast-forwards the current branch from a remote that the operator grants. Fails if the branch has commits that the remote's
/// lacks, or if changed files of yours would be overwritten. A person must do it where the new commits change a file that their
/// git obeys, such as a hook, or the set of submodules.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The remote's name. Omit for the current branch's own, or `origin`.
    remote: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    remote: String,
    branch: String,
    /// The branch's commit before the call, and after it.
    before: String,
    after: String,
}

/// `$1` is the branch at the remote, `$2` the commit here.
const LOOK: &str = r#"
target=$(git rev-parse --verify "refs/heads/$branch") || exit
[ "$target" != "$head" ] || exit 73
git merge-base --is-ancestor "$head" "$target" || exit 72
printf '%s\n%s commits:\n' "$target" "$(git rev-list --count "$head..$target" --)"
git log --oneline --no-decorate "$head..$target" --
echo "files:"
git diff-tree -r -M --name-status "$head" "$target" --
"#;

/// `$1` is the branch, `$2` the commit it is to have.
const TARGET: &str = r#"
busy
head=$(git rev-parse --quiet --verify HEAD) || { echo "the branch has no commit yet" >&2; exit 70; }
[ "$(git symbolic-ref --quiet HEAD)" = "refs/heads/$1" ] || { echo "$1 is no longer checked out" >&2; exit 70; }
target=$(commit_of "$2") || exit
git merge-base --is-ancestor "$head" "$target" || { echo "$1 has commits of its own by now" >&2; exit 70; }
tree=$(git rev-parse --verify "$target^{tree}") || exit
changes() { git diff-tree -r --raw -z --no-renames "$head_tree" "$tree" --; }
checked
"#;

/// The files become those of the commit that was looked at; the branch follows if it has not moved meanwhile.
const FORWARD: &str = r#"
to() { git switch --quiet --no-guess --no-progress --no-overwrite-ignore --detach "$1" >&2; }
to "$target" || exit 70
git update-ref -m "pull: fast-forward" "refs/heads/$1" "$target" "$head" || { to "$head"; failed=1; }
git symbolic-ref -m "pull" HEAD "refs/heads/$1" || exit 70
[ -z "${failed-}" ] || exit 70
"#;

impl Tool for Pull {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.pull";
    const TITLE: &'static str = "Bring the branch forward";
    const FACTS: Facts = Facts::REACHES_SERVER;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "only from a remote that the operator grants",
            arguments: json!({"remote": "elsewhere"}),
            files: &[("a.txt", "a")],
            before: &[("git.init", "{}"), ("git.commit", r#"{"message": "first"}"#)],
            expect: Expect::Fails(ErrorKind::Denied),
        }]
    }

    fn render(&self, output: &Output) -> String {
        let short = |hash: &str| hash.get(..10).unwrap_or(hash).to_owned();
        let Output { remote, branch, before, after } = output;
        format!("{branch} is at {}, as at {remote}; it was at {}", short(after), short(before))
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let route = find(ctx, &input).await?;
        let granted = route.granted()?;
        let (target, detail, left_out, _) = look(ctx, &route).await?;
        Ok(Some(Preview {
            summary: format!("bring {} forward to where it is at {}, {}", route.branch, route.remote, granted.url),
            detail,
            left_out,
            rests_on: json!({
                "remote": route.remote, "url": granted.url.as_str(), "branch": route.branch, "head": route.commit,
                "target": target,
            }),
        }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let route = find(ctx, &input).await?;
        let (target, _, _, pack) = look(ctx, &route).await?;
        let seen = ctx.approved.as_ref().and_then(|rests_on| rests_on.get("target")?.as_str());
        if seen.is_some_and(|seen| seen != target) {
            return Err(ToolError::new(ErrorKind::Conflict, "the remote has changed since the person allowed this")
                .hint("call again, so that the person sees the present state"));
        }
        remote::take(ctx, pack).await?;
        let noted = BTreeMap::from([(route.branch.clone(), target.clone())]);
        remote::follow(ctx, &route.remote, &noted).await?;
        change::run(ctx, Mode::Change, &[TARGET, FORWARD].concat(), &[&route.branch, &target]).await?;
        Ok(Output { remote: route.remote, branch: route.branch, before: route.commit, after: target })
    }
}

async fn find<'a>(ctx: &Ctx<'a>, input: &Input) -> Result<Route<'a>, ToolError> {
    let name = input.remote.as_deref().map_or(Ok(String::new()), |remote| super::name("remote", remote))?;
    let route = Route::find(ctx, &name, "").await?;
    route.granted()?;
    let without = |what: &str| Err(ToolError::new(ErrorKind::Conflict, what.to_owned()));
    match (route.branch.as_str(), route.commit.as_str()) {
        ("", _) => without("no branch is checked out, so none can be brought forward"),
        (branch, "") => without(&format!("{branch} has no commit yet")).map_err(|error| {
            error.hint("fetch with `git.fetch`, then create a branch with `git.switch` from `<remote>/<branch>`")
        }),
        _ => Ok(route),
    }
}

/// Fetches the branch; answers its commit at the remote, what is new, how much of that is left out, and the objects.
async fn look(ctx: &Ctx<'_>, route: &Route<'_>) -> Result<(String, String, u64, Option<std::fs::File>), ToolError> {
    let script = format!("branch=$1 head=$2\nset -- \"+refs/heads/$1:refs/heads/$1\"\n{}{LOOK}", super::fetch::FETCH);
    let talked = route.talk(ctx, &script, &[&route.branch, &route.commit]).await?;
    let left_out = super::left_out(&talked.result.stdout);
    // Before it, the one branch that was fetched is listed.
    let (_, text) = talked.result.stdout.text.split_once('\n').unwrap_or_default();
    let (target, detail) = text.split_once('\n').unwrap_or_default();
    Ok((target.to_owned(), detail.to_owned(), left_out, talked.pack))
}
