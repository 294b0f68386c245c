//! `git.push`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::Remote;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use super::Mode;
use super::remote::{self, Route};

pub(crate) struct Push;

/// Pushes a branch to a remote, never forced. The host authenticates to a remote that the operator grants; any other must be
/// configured in the repository, need no credentials, and be on a network that your profile grants. Fails, before a person is
/// asked, if the remote cannot be reached or has commits that the branch lacks (`git.fetch` fetches them).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The remote's name. Left out: the branch's own, or `origin`.
    remote: Option<String>,
    /// The branch. Left out: the current one.
    branch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    remote: String,
    branch: String,
    /// What git said of it.
    summary: String,
}

/// `$1` is the remote or empty, `$2` the branch or empty.
const RESOLVE: &str = r#"
git rev-parse --git-dir >/dev/null || exit
branch=$2
[ -n "$branch" ] || branch=$(git symbolic-ref --quiet --short HEAD) || { echo "no branch is checked out" >&2; exit 70; }
git show-ref --verify --quiet "refs/heads/$branch" || { echo "there is no branch $branch" >&2; exit 70; }
remote=$1
[ -n "$remote" ] || remote=$(git config --get "branch.$branch.remote") || remote=origin
git remote | grep --fixed-strings --line-regexp --quiet -- "$remote" || { echo "there is no remote $remote" >&2; exit 70; }
printf '%s\n%s\n' "$remote" "$branch"
push() {
    git push --porcelain --no-verify --no-recurse-submodules --no-signed --no-follow-tags "$@" 2>&1
}
"#;

const PUSH: &str = r#"
[ -z "$4" ] || [ "$4" = "$(git remote get-url --push --all -- "$remote" | tr '\n' ' ')" ] \
    || { echo "the address of $remote has changed since a person saw it" >&2; exit 70; }
commit=${3:-$(git rev-parse --verify "refs/heads/$branch")} || exit
printf '%s\n' "$commit"
# The repository is read-only here: the branch that follows the remote's is moved afterwards.
said=$(push -- "$remote" "$commit:refs/heads/$branch")
code=$?
printf '%s\n' "$said" | grep -v "refs/remotes/"
exit $code
"#;

/// What only a conversation with the remote can say.
const TRY: &str = r#"
said=$(push --dry-run -- "$remote" "refs/heads/$branch:refs/heads/$branch") || { printf '%s\n' "$said" >&2; exit 70; }
"#;

/// Where the remote's branch now is, as `git push` would note it. `$1` is the remote, `$2` the branch, `$3` the commit.
const FOLLOW: &str = r#"
[ "$(git config --get-all "remote.$1.fetch")" = "+refs/heads/*:refs/remotes/$1/*" ] || exit 0
exec git update-ref -m "update by push" "refs/remotes/$1/$2" "$3"
"#;

/// Where the branch stands, where the remote is, and the commits that go there.
const PREVIEW: &str = r#"
git rev-parse --verify "refs/heads/$branch" || exit
git remote get-url --push --all -- "$remote" | tr '\n' ' ' || exit
echo
echo "commits ($(git rev-list --count "refs/heads/$branch" --not --remotes="$remote" --)), as far as this repository knows:"
git log --oneline --no-decorate "refs/heads/$branch" --not --remotes="$remote" --
"#;

/// Transports a push may use. What a fence without network cannot reach stays unreached.
const TRANSPORTS: &[(&str, &str)] =
    &[("protocol.http.allow", "always"), ("protocol.https.allow", "always"), ("protocol.file.allow", "always")];

/// At a granted remote, in the host's own repository: what a push would do, if it can. `$1` is the branch, `$2` its commit.
/// Each commit that a branch of the remote has is passed over, if it is known here.
const LOOK: &str = r#"
branch=$1 commit=$2
refs=$(git ls-remote --refs -- "$url" 'refs/heads/*') || exit 71
old=$(printf '%s\n' "$refs" | awk -v ref="refs/heads/$branch" '$2 == ref { print $1 }')
[ "$old" != "$commit" ] || exit 73
[ -z "$old" ] || git merge-base --is-ancestor "$old" "$commit" 2>/dev/null || exit 72
push --dry-run -- "$url" "$commit:refs/heads/$branch" >/dev/null || exit 71
there=$(printf '%s\n' "$refs" | cut -f 1 | git cat-file --batch-check='%(objectname) %(objecttype)' | sed -n 's/ commit$//p')
new() { printf '%s\n' "$there" | sed -n 's/./^&/p' | git "$@" --stdin "$commit"; }
printf '%s\ncommits (%s):\n' "${old:-new}" "$(new rev-list --count)"
new log --oneline --no-decorate
echo "files:"
base=$old
[ -n "$base" ] || base=$(printf '%s\n' "$there" | head -n 1000 | xargs -r git merge-base "$commit") || base=
[ -n "$base" ] || base=$(git hash-object -t tree /dev/null)
git diff-tree -r -M --name-status "$base" "$commit" --
"#;

const SEND: &str = r#"push -- "$url" "$2:refs/heads/$1" || exit 71"#;

/// The words of git that matter are those on standard error.
const PUSHES: &str = r#"
push() { git push --porcelain --no-verify --no-recurse-submodules --no-signed --no-follow-tags "$@"; }
"#;

impl Tool for Push {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.push";
    const TITLE: &'static str = "Push a branch";
    const FACTS: Facts = Facts::REACHES_SERVER;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a forced refspec is no branch",
            arguments: json!({"branch": "+main"}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::Validation),
        }]
    }

    fn render(&self, output: &Output) -> String {
        format!("pushed {} to {}\n{}", output.branch, output.remote, output.summary)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let (remote, branch) = names(&input)?;
        let route = Route::find(ctx, &remote, &branch).await?;
        if let Some(granted) = route.granted {
            return look(ctx, &route, granted).await.map(Some);
        }
        let (result, left_out) = super::preview(ctx, &format!("{RESOLVE}{PREVIEW}"), &[&remote, &branch]).await?;
        if result.exit_code != 0 {
            return Err(super::refused("nothing can be pushed", &result));
        }
        let mut lines = result.stdout.text.splitn(5, '\n');
        let mut line = || lines.next().unwrap_or_default();
        let (remote, branch, commit, address, commits) = (line(), line(), line(), line(), line());
        let tried = super::run(ctx, Mode::Look, &format!("{RESOLVE}{TRY}"), &[remote, branch], "", TRANSPORTS).await?;
        if tried.exit_code != 0 {
            return Err(super::refused("nothing can be pushed", &tried).hint(route.ungranted()));
        }
        let summary = format!("push {branch} to {remote}, {}", without_password(address));
        let detail = format!("{branch} is at {commit}; what {remote} is not known to have:\n{commits}");
        let rests_on = json!({ "remote": remote, "branch": branch, "commit": commit, "address": address });
        Ok(Some(Preview { summary, detail, left_out, rests_on }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let (remote, branch) = names(&input)?;
        // What a person has seen is what goes, and where to: the branch may have moved since.
        let seen = |name: &str| ctx.approved.as_ref().and_then(|rests_on| rests_on.get(name)?.as_str());
        let (commit, address) = (seen("commit").unwrap_or_default(), seen("address").unwrap_or_default());
        let route = Route::find(ctx, &remote, &branch).await?;
        if let Some(granted) = route.granted {
            if !address.is_empty() && address != granted.url.as_str() {
                return Err(ToolError::new(ErrorKind::Conflict, "the address has changed since a person saw it"));
            }
            return send(ctx, &route, commit).await;
        }
        let script = format!("{RESOLVE}{PUSH}");
        let result =
            super::run(ctx, Mode::Reach, &script, &[&remote, &branch, commit, address], "", TRANSPORTS).await?;
        if result.exit_code != 0 {
            return Err(super::refused("nothing was pushed", &result).hint(route.ungranted()));
        }
        let mut lines = result.stdout.text.splitn(4, '\n').map(str::to_owned);
        let mut line = || lines.next().unwrap_or_default();
        let (remote, branch, commit, summary) = (line(), line(), line(), line().trim().to_owned());
        // The push has happened: a note of it that cannot be made is no failure.
        let _ = super::run(ctx, Mode::Write, FOLLOW, &[&remote, &branch, &commit], "", &[]).await;
        Ok(Output { remote, branch, summary })
    }
}

/// What a push to a granted remote would do. It fails where the push would.
async fn look(ctx: &Ctx<'_>, route: &Route<'_>, granted: &Remote) -> Result<Preview, ToolError> {
    let commit = route.pushable()?;
    let talked = route.talk(ctx, &format!("{PUSHES}{LOOK}"), &[&route.branch, commit]).await?;
    let left_out = super::left_out(&talked.result.stdout);
    let (old, detail) = talked.result.stdout.text.split_once('\n').unwrap_or_default();
    let Route { remote, branch, .. } = route;
    let before = if old == "new" { "a new branch there".to_owned() } else { format!("{old} there") };
    Ok(Preview {
        summary: format!("push {branch} to {remote}, {}", granted.url),
        detail: format!("{branch} is at {commit} here, {before}\n{detail}"),
        left_out,
        rests_on: json!({
            "remote": remote, "branch": branch, "commit": commit, "old": old, "address": granted.url.as_str(),
        }),
    })
}

async fn send(ctx: &Ctx<'_>, route: &Route<'_>, seen: &str) -> Result<Output, ToolError> {
    let commit = if seen.is_empty() { route.pushable()? } else { seen };
    let talked = route.talk(ctx, &format!("{PUSHES}{SEND}"), &[&route.branch, commit]).await?;
    // The push has happened: a note of it that cannot be made is no failure.
    let noted = BTreeMap::from([(route.branch.clone(), commit.to_owned())]);
    let _ = remote::follow(ctx, &route.remote, &noted).await;
    let summary = talked.result.stdout.text.trim().to_owned();
    Ok(Output { remote: route.remote.clone(), branch: route.branch.clone(), summary })
}

fn names(input: &Input) -> Result<(String, String), ToolError> {
    let name = |what, text: &Option<String>| text.as_deref().map_or(Ok(String::new()), |text| super::name(what, text));
    Ok((name("remote", &input.remote)?, name("branch", &input.branch)?))
}

/// An address may carry a name and a password.
fn without_password(address: &str) -> String {
    let without = |address: &str| {
        let (scheme, rest) = address.split_once("://")?;
        // Only before the path: an `@` in it is a part of its name.
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (_, host) = authority.rsplit_once('@')?;
        Some(format!("{scheme}://{host}{path}"))
    };
    let addresses = address.split_whitespace().map(|one| without(one).unwrap_or_else(|| one.to_owned()));
    addresses.collect::<Vec<_>>().join(" and ")
}
