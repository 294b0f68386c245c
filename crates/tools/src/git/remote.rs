//! What `git.push`, `git.fetch` and `git.pull` share: remotes that the operator grants.
//!
//! Two repositories take part. The workspace's, which an agent may have written, is asked for its branches in the fence and
//! without a network. The conversation with the remote is in another one, which the host makes for it (see
//! `toolhost_contract::workspace::RemoteCommand`): address, credentials and every setting are the operator's and the host's there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toolhost_contract::workspace::{CommandResult, Remote, RemoteCommand, RemoteResult, RemoteUrl};
use toolhost_contract::{Ctx, ErrorKind, ToolError};

use super::{Mode, PREVIEW_BYTES};

/// What to do about a remote that the operator does not grant.
const UNGRANTED: &str = "the operator does not grant this remote, so it is used without credentials, over http, https or a path: \
    ask the person to add a [[remotes]] table for it to Toolhost's config.toml";
/// The same of one that cannot be granted.
const FOLDER: &str = "the remote is a folder of this machine: one in the workspace can be used, one outside of it \
    cannot, and cannot be granted. Ask the person to push or fetch, or to serve it over ssh or http";

/// How long git may talk to a remote.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(300);

/// `$1` is the remote or empty, `$2` the branch or empty.
const ROUTE: &str = r#"
git rev-parse --git-dir >/dev/null || exit
branch=$2
[ -n "$branch" ] || branch=$(git symbolic-ref --quiet --short HEAD) || branch=
commit=$(git rev-parse --quiet --verify "refs/heads/$branch^{commit}") || commit=
remote=$1
[ -n "$remote" ] || remote=$(git config --get "branch.$branch.remote") || remote=origin
printf '%s\n' "${remote//$'\n'/ }" "$branch" "$commit" "$(git rev-parse --show-object-format)"
git config --get-all "remote.$remote.url" | sed 's/^/url /'
git config --get-all "remote.$remote.pushurl" | sed 's/^/url /'
git for-each-ref --format='at %(objectname) %(refname:lstrip=3)' "refs/remotes/$remote/"
git for-each-ref --count=900 --sort=-committerdate --format='has %(objectname)' refs/heads refs/remotes
"#;

/// Begins each script: `$url` is the remote's address.
const TALK: &str = r#"
set -u
url=$1
shift
"#;

/// What a conversation ended with, besides 0 and git's own codes.
const UNREACHABLE: i32 = 71;
const DIVERGED: i32 = 72;
const NOTHING: i32 = 73;

/// Where a call goes, as the workspace's repository and the operator say.
pub(super) struct Route<'a> {
    /// `None`: the operator grants no remote of this name.
    pub(super) granted: Option<&'a Remote>,
    pub(super) remote: String,
    /// Empty where none is checked out.
    pub(super) branch: String,
    /// Empty where the branch has none.
    pub(super) commit: String,
    /// The remote is a folder of this machine.
    is_folder: bool,
    /// The remote's branches as the repository knows them: name to commit.
    pub(super) followed: BTreeMap<String, String>,
    object_format: String,
    known: Vec<String>,
}

impl<'a> Route<'a> {
    /// Asks the repository, and checks what it says against what the operator grants.
    pub(super) async fn find(ctx: &Ctx<'a>, remote: &str, branch: &str) -> Result<Self, ToolError> {
        let (result, _) = super::preview(ctx, ROUTE, &[remote, branch]).await?;
        if result.exit_code != 0 {
            return Err(super::refused("the repository cannot be read", &result));
        }
        let mut lines = result.stdout.text.lines().map(str::to_owned);
        let mut line = || lines.next().unwrap_or_default();
        let (remote, branch, commit, object_format) = (line(), line(), line(), line());
        let (mut urls, mut followed, mut known) = (Vec::new(), BTreeMap::new(), Vec::new());
        for line in lines {
            if let Some(url) = line.strip_prefix("url ") {
                urls.push(url.to_owned());
            } else if let Some(hash) = line.strip_prefix("has ") {
                known.push(hash.to_owned());
            } else if let Some((hash, name)) = line.strip_prefix("at ").and_then(|at| at.split_once(' ')) {
                followed.insert(name.to_owned(), hash.to_owned());
            }
        }
        let granted = ctx.workspace.remote(&remote);
        if let Some(granted) = granted {
            check_address(granted, &urls)?;
        }
        let is_folder =
            |url: &String| url.starts_with("file:") || !url.contains("://") && RemoteUrl::parse(url).is_err();
        let is_folder = urls.first().is_some_and(is_folder);
        Ok(Self { granted, remote, branch, commit, is_folder, followed, object_format, known })
    }

    /// The grant, for what cannot do without.
    pub(super) fn granted(&self) -> Result<&'a Remote, ToolError> {
        self.granted.ok_or_else(|| {
            ToolError::new(ErrorKind::Denied, format!("the operator grants no remote `{}` here", self.remote)).hint(
                if self.is_folder {
                    FOLDER
                } else {
                    "ask the person to add a [[remotes]] table for it to Toolhost's config.toml"
                },
            )
        })
    }

    /// What to do where git itself could not reach a remote that nobody grants.
    pub(super) fn ungranted(&self) -> &'static str {
        if self.is_folder { FOLDER } else { UNGRANTED }
    }

    /// The commit that a push would send.
    pub(super) fn pushable(&self) -> Result<&str, ToolError> {
        let without =
            |message: String| Err(ToolError::new(ErrorKind::Conflict, format!("nothing can be pushed: {message}")));
        match (self.branch.as_str(), self.commit.as_str()) {
            ("", _) => without("no branch is checked out".to_owned()),
            (branch, "") => without(format!("there is no branch {branch}")),
            (_, commit) => Ok(commit),
        }
    }

    /// Runs a script of git commands in the host's own repository.
    pub(super) async fn talk(
        &self,
        ctx: &Ctx<'_>,
        script: &str,
        arguments: &[&str],
    ) -> Result<RemoteResult, ToolError> {
        let command = RemoteCommand {
            script: format!("{TALK}{script}"),
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
            object_format: self.object_format.clone(),
            known: self.known.clone(),
            timeout: REMOTE_TIMEOUT,
            capture_bytes: PREVIEW_BYTES,
        };
        let talked = ctx.workspace.run_remote(self.granted()?, command, ctx.watch()).await?;
        match talked.result.exit_code {
            0 => Ok(talked),
            _ => Err(self.failed(&talked.result)),
        }
    }

    fn failed(&self, result: &CommandResult) -> ToolError {
        let Self { remote, branch, .. } = self;
        let conflict = |message: String| ToolError::new(ErrorKind::Conflict, message);
        match result.exit_code {
            _ if result.timed_out => {
                let seconds = REMOTE_TIMEOUT.as_secs();
                ToolError::new(ErrorKind::Timeout, format!("{remote} took longer than {seconds} s"))
            }
            127 => ToolError::new(ErrorKind::NotFound, "git is not installed here").hint("tell the person"),
            NOTHING => conflict(format!("{branch} is the same at {remote} already")),
            DIVERGED => {
                conflict(format!("{branch} and {branch} at {remote} each have commits that the other one lacks"))
                    .hint("`git.fetch` fetches the remote's commits; ask the person to merge or rebase")
            }
            _ => {
                // With `--porcelain`, refusals of branches stand on standard output.
                let said = format!("{}\n{}", result.stderr.text, result.stdout.text).to_lowercase();
                let has = |marks: &[&str]| marks.iter().any(|mark| said.contains(mark));
                let hint = if has(&["remote host identification has changed"]) {
                    "the remote's host has another key than the operator knows: somebody may stand between. Do not go on; tell \
                     the person"
                } else if has(&["host key verification failed"]) {
                    "the key of the remote's host is not among those the operator knows: ask the person to add it"
                } else if has(&["passphrase"]) {
                    "the operator's key has a passphrase, which nobody can be asked for here: tell the person"
                } else if has(&["authentication failed", "could not read username", "permission denied", "403"]) {
                    "the operator's token or key is not accepted there: ask the person to look at it"
                } else if has(&["[rejected]", "[remote rejected]", "declined"]) {
                    "the remote refuses this branch or commit: its own words say why"
                } else {
                    "ask the person whether the remote is reachable and its address right"
                };
                let what = if result.exit_code == UNREACHABLE { "cannot be used" } else { "refuses" };
                super::refused(&format!("{remote} {what}"), result).hint(hint)
            }
        }
    }
}

/// The repository's own address may not be another one than the operator means: an agent of another project would be at the
/// wrong remote, and a person would read the wrong name.
fn check_address(granted: &Remote, urls: &[String]) -> Result<(), ToolError> {
    let name = &granted.name;
    if urls.is_empty() && granted.workspace.is_none() {
        let message = format!("the repository has no remote `{name}`, and the operator's grant is for no workspace");
        let hint = format!(
            "ask the person to run `git remote add {name} {}`, or to name the workspace in the grant",
            granted.url
        );
        return Err(ToolError::new(ErrorKind::NotFound, message).hint(hint));
    }
    if urls.iter().all(|url| granted.url.is_same(url)) {
        return Ok(());
    }
    let message = format!("the repository's remote `{name}` is at another address than the operator grants");
    Err(ToolError::new(ErrorKind::Security, message)
        .hint(format!("the grant is for {}: ask the person which of the two is right", granted.url)))
}

/// Takes fetched objects into the workspace's repository.
const TAKE: &str = "exec git index-pack --stdin --fix-thin >/dev/null";

pub(super) async fn take(ctx: &Ctx<'_>, pack: Option<std::fs::File>) -> Result<(), ToolError> {
    let Some(pack) = pack else { return Ok(()) };
    let mut command = super::script(ctx, TAKE, &[], &[]);
    command.stdin_file = Some(Arc::new(pack));
    command.timeout = REMOTE_TIMEOUT;
    command.is_git = true;
    let result = ctx.workspace.run(command, ctx.watch()).await?;
    let result = super::told(ctx, result).await?;
    if result.exit_code == 0 { Ok(()) } else { Err(super::refused("what was fetched is damaged", &result)) }
}

/// Notes where the remote's branches are: lines of `git update-ref --stdin`.
const NOTE: &str = "exec git update-ref --stdin -m fetch";

pub(super) async fn follow(ctx: &Ctx<'_>, remote: &str, branches: &BTreeMap<String, String>) -> Result<(), ToolError> {
    if branches.is_empty() {
        return Ok(());
    }
    // `HEAD` there is the repository's own note of the remote's usual branch.
    let lines = branches.iter().filter(|(name, _)| *name != "HEAD");
    let lines = lines.map(|(name, commit)| format!("option no-deref\nupdate refs/remotes/{remote}/{name} {commit}\n"));
    let result = super::run(ctx, Mode::Write, NOTE, &[], &lines.collect::<String>(), &[]).await?;
    if result.exit_code == 0 { Ok(()) } else { Err(super::refused("the remote's branches are not noted", &result)) }
}

/// Lines of `<commit> <branch>` (or `<commit>\trefs/heads/<branch>`).
pub(super) fn branches(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let (commit, name) = line.split_once([' ', '\t'])?;
        Some((name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(), commit.to_owned()))
    };
    text.lines().filter_map(line).collect()
}
