//! `git.push`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Effect, ErrorKind, Example, Expect, Preview, Tool, ToolError};

use super::Mode;

pub(crate) struct Push;

/// Pushes a branch to a remote of the repository, never forced. The remote must be configured already, and its host
/// must be among those the profile grants.
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
"#;

const PUSH: &str = r#"
[ -z "$4" ] || [ "$4" = "$(git remote get-url --push --all -- "$remote" | tr '\n' ' ')" ] \
    || { echo "the address of $remote has changed since a person saw it" >&2; exit 70; }
commit=${3:-$(git rev-parse --verify "refs/heads/$branch")} || exit
printf '%s\n' "$commit"
# The repository is read-only here: the branch that follows the remote's is moved afterwards.
said=$(git push --porcelain --no-verify --no-recurse-submodules --no-signed --no-follow-tags -- "$remote" \
    "$commit:refs/heads/$branch" 2>&1)
code=$?
printf '%s\n' "$said" | grep -v "refs/remotes/"
exit $code
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
echo "$(git rev-list --count "refs/heads/$branch" --not --remotes="$remote") commits, as far as this repository knows:"
git log --oneline --no-decorate "refs/heads/$branch" --not --remotes="$remote"
"#;

/// Transports a push may use. What a fence without network cannot reach stays unreached.
const TRANSPORTS: &[(&str, &str)] =
    &[("protocol.http.allow", "always"), ("protocol.https.allow", "always"), ("protocol.file.allow", "always")];

impl Tool for Push {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.push";
    const TITLE: &'static str = "Push a branch";
    const EFFECT: Effect = Effect::Reaches;

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
        let (result, left_out) = super::preview(ctx, &format!("{RESOLVE}{PREVIEW}"), &[&remote, &branch]).await?;
        if result.exit_code != 0 {
            return Err(super::refused("nothing can be pushed", &result));
        }
        let mut lines = result.stdout.text.splitn(5, '\n');
        let mut line = || lines.next().unwrap_or_default();
        let (remote, branch, commit, address, commits) = (line(), line(), line(), line(), line());
        let summary = format!("push {branch} to {remote}, {}", without_password(address));
        let detail = format!("{branch} is at {commit}; what {remote} is not known to have:\n{commits}");
        let rests_on = json!({ "remote": remote, "branch": branch, "commit": commit, "address": address });
        Ok(Some(Preview { summary, detail, left_out, rests_on }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let (remote, branch) = names(&input)?;
        let script = format!("{RESOLVE}{PUSH}");
        // What a person has seen is what goes, and where to: the branch may have moved since.
        let seen = |name: &str| ctx.approved.as_ref().and_then(|rests_on| rests_on.get(name)?.as_str());
        let (commit, address) = (seen("commit").unwrap_or_default(), seen("address").unwrap_or_default());
        let result =
            super::run(ctx, Mode::Reach, &script, &[&remote, &branch, commit, address], "", TRANSPORTS).await?;
        if result.exit_code != 0 {
            return Err(super::refused("nothing was pushed", &result)
                .hint("the remote must be configured and reached over https without credentials, its host granted by the profile; ssh is not possible from the fence: otherwise ask the person to push"));
        }
        let mut lines = result.stdout.text.splitn(4, '\n').map(str::to_owned);
        let mut line = || lines.next().unwrap_or_default();
        let (remote, branch, commit, summary) = (line(), line(), line(), line().trim().to_owned());
        // The push has happened: a note of it that cannot be made is no failure.
        let _ = super::run(ctx, Mode::Write, FOLLOW, &[&remote, &branch, &commit], "", &[]).await;
        Ok(Output { remote, branch, summary })
    }
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
