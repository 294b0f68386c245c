//! In the Landlock tier a command can write the index. What it adds there that a person's git would enter is taken out again,
//! whatever else it makes of the index.

use std::path::Path;

use toolhost_contract::workspace::{Access, Error};
use toolhost_sandbox::FenceChoice;

use super::plant::{commit, git, mark, sure};
use crate::room::Room;

/// A repository with a submodule that is not checked out, and something staged.
fn furnish(ws: &Path) {
    sure(ws, &["init", "-q"]);
    commit(ws, "file");
    let commit = git(ws, &["rev-parse", "HEAD"]);
    let commit = String::from_utf8(commit.stdout).unwrap();
    sure(ws, &["update-index", "--add", "--cacheinfo", &format!("160000,{},gone", commit.trim())]);
    std::fs::write(ws.join("staged"), "staged\n").unwrap();
    sure(ws, &["add", "staged"]);
}

/// Makes a repository at `$1` whose program a person's `git status` would start, and adds it to the index.
const PLANT: &str = r#"plant() {
    git init -q -- "$1" && git -C "$1" -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x || exit
    git -C "$1" config core.fsmonitor "touch MARK; false"
    h=$(git -C "$1" rev-parse HEAD)
    printf '160000 %s 0\t%s\0' "$h" "$1" | git update-index -z --index-info
}
plant sub; plant @; plant 'a b'
"#;

/// What a command makes of the index besides; and whether the rest of the index can stay.
const BREAKERS: &[(&str, bool)] = &[
    ("true", true),
    (r#"printf '160000 %s 0\tx\377\0' "$h" | git update-index -z --index-info"#, true),
    (r#"printf '160000 %s 0\tx\ny\0' "$h" | git update-index -z --index-info"#, true),
    (r#"printf '160000 %s 0\t%sx\0' "$h" "$(printf 'p/%.0s' {1..1500})" | git update-index -z --index-info"#, true),
    (r#"for n in {1..30000}; do printf '160000 %s 0\tp/%s\0' "$h" $n; done | git update-index -z --index-info"#, true),
    ("touch .git/index.lock", true),
    ("mkdir .git/index.lock", true),
    ("chmod 000 .git/index", true),
    ("chmod 200 .git/index", true),
    ("mv .git/index i; ln -s ../i .git/index", false),
    ("rm .git/index; mkdir .git/index; touch .git/index/x", false),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_adds_is_taken_out_whatever_else_it_does_to_the_index() {
    for (breaker, stays) in BREAKERS {
        let room = Room::with(FenceChoice::Landlock, furnish, |_| {});
        let ws = room.ws();
        let script = format!("{PLANT}\n{breaker}").replace("MARK", &mark(&ws).display().to_string());
        let ended = room.try_bash(&script, Access::Write, std::time::Duration::from_secs(60)).await;
        assert!(ended.is_ok(), "{breaker}: {ended:?}");
        let ended = ended.unwrap();
        let status = git(&ws, &["status", "--short"]);
        assert!(!mark(&ws).exists(), "{breaker}: a person's git ran a program: {ended:?}");
        assert!(status.status.success(), "{breaker}: {status:?}");
        let listed = git(&ws, &["ls-files", "--stage"]);
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let links: Vec<&str> = listed.lines().filter(|line| line.starts_with("160000 ")).collect();
        assert!(links.iter().all(|line| line.ends_with("\tgone")), "{breaker}: {links:?}");
        if *stays {
            assert_eq!(links.len(), 1, "{breaker}: the person's own stays: {listed}");
            assert!(listed.contains("\tstaged"), "{breaker}: {listed}");
            let told = &ended.restored;
            assert!(told.iter().any(|name| name == "sub"), "{breaker}: it is told: {told:?}");
        }
        assert_eq!(room.bash("true", Access::Write).await.exit_code, 0, "{breaker}: the next command");
    }
}

/// What makes git know the repository `sub` after it was taken out of the index.
const KEPT_BY: [&str; 4] = [
    "git commit -qm x",
    "git commit -qm x; git branch side; git reset -q --soft HEAD~1",
    "git stash -q",
    "git commit -qm x; git tag t; git reset -q --soft HEAD~1",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_a_command_commits_is_named_and_stops_commands_until_a_person_has_looked() {
    for kept_by in KEPT_BY {
        let room = Room::with(FenceChoice::Landlock, furnish, |_| {});
        let ws = room.ws();
        let author = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";
        let script = format!("{author}\n{PLANT}\n{kept_by}").replace("MARK", &mark(&ws).display().to_string());
        let ended = room.try_bash(&script, Access::Write, std::time::Duration::from_secs(60)).await;
        let named = |error: &Error| matches!(error, Error::NotRestored { names } if names.contains("sub"));
        assert!(ended.as_ref().is_err_and(named), "{kept_by}: {ended:?}");
        git(&ws, &["status", "--short"]);
        assert!(!mark(&ws).exists(), "{kept_by}: a person's git ran a program");
        let next = room.try_bash("true", Access::Write, std::time::Duration::from_secs(60)).await;
        assert!(next.is_err_and(|error| named(&error)), "{kept_by}: the next command");
        for folder in ["sub", "@", "a b"] {
            // Out of the repository of this name, which git then no longer takes for one.
            std::fs::rename(ws.join(folder).join(".git"), ws.join(folder).join("git")).unwrap();
        }
        room.executor.accept_git().await.unwrap();
        assert_eq!(room.bash("true", Access::Write).await.exit_code, 0, "{kept_by}: after the person has looked");
    }
}
