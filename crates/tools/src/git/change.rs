//! What the tools share that let git write the workspace's files: before any is written, the list of those that would be.
//!
//! A branch, a stash or an older commit may hold other versions of the files that a person's git obeys. Commands cannot
//! change these, so no tree that is checked out changes them either. A repository in a repository comes and goes only by
//! a person's hand: once it is listed as a submodule, a person's `git status` enters whatever stands there.

use toolhost_contract::workspace::{Captured, CommandResult};
use toolhost_contract::{Ctx, ErrorKind, ToolError};

use super::Mode;

/// Nothing of git's own choice happens to files beside those that were listed.
const CALM: &[(&str, &str)] = &[("merge.renames", "false"), ("merge.directoryRenames", "false")];

/// `refuse_held` reads records `:<mode> <mode> ..`, NUL, path, NUL and fails for one that the tools leave alone. The first
/// argument is what a person approved or empty; standard input is the held paths, each ended by NUL.
const CHECK: &str = r#"
approved=$1
shift
git rev-parse --git-dir >/dev/null || exit
declare -A held above
while IFS= read -r -d '' at; do
    held[=$at]=1
    while case "$at" in */*) ;; *) false ;; esac; do
        at=${at%/*}
        above[=$at]=1
    done
done
refuse_held() {
    local facts file at
    while IFS= read -r -d '' facts && IFS= read -r -d '' file; do
        case "$facts" in
            ':160000 160000 '*) continue ;;
            ':160000 '*|':'??????' 160000 '*) printf '%s\n' "$file" >&2; return 81 ;;
        esac
        at=$file
        [ -z "${above[=$at]+x}" ] || { printf '%s\n' "$file" >&2; return 80; }
        while :; do
            [ -z "${held[=$at]+x}" ] || { printf '%s\n' "$file" >&2; return 80; }
            case "$at" in */*) at=${at%/*} ;; *) break ;; esac
        done
        printf '%s\0' "$file"
    done
}
# Programs of a person's that would have a say in what the files become. They do not run here, and without them what is
# written is not what it should be.
drivers=(filter)
refuse_driven() {
    local file kind value
    git check-attr --stdin -z "${drivers[@]}" \
        | while IFS= read -r -d '' file && IFS= read -r -d '' kind && IFS= read -r -d '' value; do
            case "$kind $value" in
                *' unspecified'|*' unset'|'merge set'|'merge text'|'merge binary'|'merge union') ;;
                *) printf '%s uses %s\n' "$file" "$value" >&2; exit 82 ;;
            esac
        done
}
# Writes what `changes` lists to `$work/list`, and ends the script where a tool must not do it.
checked() {
    set -o pipefail
    changes | refuse_held >"$work/list" || exit
    refuse_driven <"$work/list" || exit
    set +o pipefail
}
commit_of() { git rev-parse --quiet --verify --end-of-options "$1^{commit}" || { echo "there is no commit $1" >&2; exit 70; }; }
none=$(git hash-object -t tree /dev/null)
head_tree=$(git rev-parse --quiet --verify 'HEAD^{tree}') || head_tree=$none
# Looks at a copy of the index, in which a file that was only touched is no changed one.
work=$(mktemp -d) || exit 70
trap 'rm -rf "$work"' EXIT
index=$(git rev-parse --git-path index) || exit
[ ! -e "$index" ] || cp "$index" "$work/index" || exit 70
on_copy() { GIT_INDEX_FILE=$work/index git "$@"; }
on_copy update-index -q --refresh >/dev/null
busy() {
    local file
    for file in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
        [ ! -e "$(git rev-parse --git-path "$file")" ] && continue
        echo "a merge, a rebase or the like is under way here, which a person must finish" >&2
        exit 70
    done
}
# What a person is shown, and what is compared with what they have seen.
same() { [ -z "$approved" ] || [ "$approved" = "$1" ] || exit 74; }
"#;

/// Runs a script that defines `changes` and calls `checked` before it writes.
pub(crate) async fn run(
    ctx: &Ctx<'_>,
    mode: Mode,
    script: &str,
    arguments: &[&str],
) -> Result<CommandResult, ToolError> {
    let held: String = ctx.workspace.git_obeys().await?.iter().map(|path| format!("{path}\0")).collect();
    let approved = ctx.approved.as_ref().and_then(|rests_on| rests_on.get("state")?.as_str()).unwrap_or_default();
    let approved = if mode == Mode::Read { "" } else { approved };
    let arguments: Vec<&str> = std::iter::once(approved).chain(arguments.iter().copied()).collect();
    let result = super::run(ctx, mode, &format!("{CHECK}{script}"), &arguments, &held, CALM).await?;
    if result.exit_code == 0 { Ok(result) } else { Err(failed(&result)) }
}

/// What the codes of [`CHECK`] mean.
fn failed(result: &CommandResult) -> ToolError {
    let nothing = "nothing was changed";
    let because = |why: &str| super::refused(&format!("{nothing}: {why}"), result);
    match result.exit_code {
        80 => with_kind(ErrorKind::Security, because("this would change a file that the person's git obeys"))
            .hint("ask the person to do it"),
        81 => with_kind(ErrorKind::Security, because("this would create or remove a repository inside the repository"))
            .hint("ask the person to do it"),
        82 => because("these files need a git filter or merge driver, and none runs here")
            .hint("ask the person to do it; Git LFS is such a filter"),
        74 => {
            ToolError::new(ErrorKind::Conflict, format!("{nothing}: the files changed since the person allowed this"))
                .hint("call again, so that the person sees the present state")
        }
        71 => ToolError::new(ErrorKind::Conflict, format!("{nothing}: there are no changes to save, restore or apply"))
            .hint("`git.status` lists changed files; `git.stash` takes untracked ones with `untracked: true`"),
        91 => super::refused("the changes are restored, but the stash is still there", result),
        // The stash stays, and the files hold the marks of a conflict.
        90 => super::refused(
            "the stash conflicts with the files: they hold conflict marks now, and the stash is kept",
            result,
        )
        .hint("`git.status` lists the files in conflict"),
        _ => super::refused(nothing, result),
    }
}

fn with_kind(kind: ErrorKind, error: ToolError) -> ToolError {
    ToolError::new(kind, error.message)
}

/// A preview of which the first line is what it rests on.
pub(crate) fn preview(summary: String, shown: &Captured) -> toolhost_contract::Preview {
    let (state, detail) = shown.text.split_once('\n').unwrap_or((&shown.text, ""));
    let rests_on = serde_json::json!({ "state": state });
    let left_out = if shown.truncated { shown.bytes.saturating_sub(shown.text.len() as u64).max(1) } else { 0 };
    toolhost_contract::Preview { summary, detail: detail.to_owned(), left_out, rests_on }
}
