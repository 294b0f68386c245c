//! Commands that overlap: the end of one command does not lift the protection of git's files from another one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Error, Executor, Fence, Watch};
use toolhost_sandbox::{FenceChoice, LocalConfig, LocalExecutor};

use super::plant::{commit, fill, sure, use_git};
use crate::room::{Room, config, until};

/// What a person has, and what a command does once the command that began before it has ended.
const LATER: &[(&str, &str)] = &[
    ("git config include.path ../team.gitconfig", "CONFIG > team.gitconfig"),
    ("git config include.path ../conf/team.gitconfig", "mkdir -p conf; CONFIG > conf/team.gitconfig"),
    ("git config include.path ../team.gitconfig; rm -rf .git/hooks", "rm -f team.gitconfig; CONFIG > team.gitconfig"),
    (
        "git config core.hooksPath tools/hooks",
        "mkdir -p tools/hooks; HOOK > tools/hooks/pre-commit; chmod +x tools/hooks/*",
    ),
    ("rm -rf .git", "evil ."),
    ("rm -rf .git", "rm -f HEAD; evil ."),
    ("rm -rf .git", "evil .git"),
];

fn wait(begun: &str, go: &str) -> String {
    format!("touch {begun}; until [ -e {go} ]; do sleep 0.05; done")
}

async fn overlap(room: &Room, second: &LocalExecutor, attack: &str) {
    let fence = Fence::closed(Access::Write);
    let script = format!("{}; {}", wait("second-begun", "second-go"), fill(attack, &room.ws()));
    let first = async {
        room.bash(&wait("first-begun", "first-go"), Access::Write).await;
        std::fs::write(room.ws().join("second-go"), "").unwrap();
    };
    let later = async {
        until("the first runs", || room.ws().join("first-begun").exists()).await;
        let command = Command::new(["bash", "-c", &script], Duration::from_secs(60));
        // It may fail where it is held.
        second.run(command, &fence, Watch::unattended()).await.unwrap();
    };
    let conducting = async {
        until("both run", || room.ws().join("second-begun").exists()).await;
        std::fs::write(room.ws().join("first-go"), "").unwrap();
    };
    tokio::join!(first, later, conducting);
}

fn repository(person: &str) -> impl Fn(&Path) {
    move |ws| {
        sure(ws, &["init", "-q"]);
        commit(ws, "file");
        let prepared = std::process::Command::new("bash").args(["-ec", person]).current_dir(ws).status();
        assert!(prepared.unwrap().success(), "{person}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_one_command_lets_no_other_one_plant() {
    for (choice, homes) in [(FenceChoice::Full, 1), (FenceChoice::Full, 2), (FenceChoice::Landlock, 1)] {
        for (person, attack) in LATER {
            let room = Room::with(choice, repository(person), |_| {});
            let here = config(room.ws(), choice);
            // A user's own, as the first one's is.
            let guard = here.guard.display();
            let guard = if homes == 1 { here.guard.clone() } else { PathBuf::from(format!("{guard}-of-another-home")) };
            let second = LocalExecutor::open(LocalConfig { guard, ..here }).unwrap();
            overlap(&room, &second, attack).await;
            use_git(&room.ws(), &format!("{person}: {attack}, in {choice:?} with {homes}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_accepts_nothing_while_a_command_could_still_change_it() {
    for choice in super::TIERS {
        let room = Room::with(choice, repository("true"), |_| {});
        let script = format!("{}; {}", wait("begun", "go"), fill("CONFIG >> .git/config", &room.ws()));
        let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
        let accepting = async {
            until("it runs", || room.ws().join("begun").exists()).await;
            let accepted = room.executor.accept_git().await;
            assert!(matches!(accepted, Err(Error::CommandUnderWay)), "{choice:?}: {accepted:?}");
            std::fs::write(room.ws().join("go"), "").unwrap();
        };
        let (ended, ()) = tokio::join!(running, accepting);
        use_git(&room.ws(), &format!("{choice:?}: {ended:?}"));
        room.executor.accept_git().await.unwrap();
    }
}

/// A command without the full fence could take away what holds the mounts of one in it, so they do not run at once.
#[tokio::test(flavor = "multi_thread")]
async fn commands_in_two_tiers_do_not_run_at_once() {
    for (choice, other) in [(FenceChoice::Full, FenceChoice::Landlock), (FenceChoice::Landlock, FenceChoice::Full)] {
        let room = Room::with(choice, repository("rm -rf .git/hooks"), |_| {});
        let second = LocalExecutor::open(config(room.ws(), other)).unwrap();
        let run = async || {
            let script = fill("mkdir -p .git/hooks; HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/*", &room.ws());
            let command = Command::new(["bash", "-c", &script], Duration::from_secs(60));
            second.run(command, &Fence::closed(Access::Write), Watch::unattended()).await
        };
        let script = wait("begun", "go");
        let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
        let beginning = async {
            until("it runs", || room.ws().join("begun").exists()).await;
            let refused = run().await;
            assert!(matches!(refused, Err(Error::OtherTier)), "{choice:?}, {other:?}: {refused:?}");
            std::fs::write(room.ws().join("go"), "").unwrap();
        };
        let (ended, ()) = tokio::join!(running, beginning);
        ended.unwrap();
        run().await.unwrap();
        use_git(&room.ws(), &format!("{other:?} after {choice:?}"));
    }
}

/// Two hosts, where the workspace of one is a submodule in the workspace of the other: the second host refuses to begin while the
/// first one's command runs. Else it would copy what that command planted, and write it back later.
#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_share_a_repository_do_not_begin_on_what_the_other_ones_command_has_changed() {
    let furnish = |ws: &Path| {
        std::fs::create_dir(ws.join("sub")).unwrap();
        for folder in [ws.join("sub"), ws.to_owned()] {
            sure(&folder, &["init", "-q"]);
        }
        commit(&ws.join("sub"), "file");
        sure(ws, &["add", "sub"]);
        std::fs::write(ws.join(".gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n").unwrap();
        commit(ws, ".gitmodules");
    };
    for is_inner_first in [true, false] {
        let room = Room::with(FenceChoice::Landlock, furnish, |_| {});
        let guard = config(room.ws(), FenceChoice::Landlock).guard;
        let inner = LocalConfig { guard, ..config(room.ws().join("sub"), FenceChoice::Landlock) };
        let inner = LocalExecutor::open(inner).unwrap();
        let (first, second) = if is_inner_first { (&inner, &room.executor) } else { (&room.executor, &inner) };
        let (go, begun) = (room.ws().join("sub/go"), room.ws().join("sub/begun"));
        let run = async |executor: &LocalExecutor, script: String| {
            let command = Command::new(["bash", "-c", &script], Duration::from_secs(60));
            let fence = Fence::closed(Access::Write);
            executor.run(command, &fence, Watch::unattended()).await
        };
        let folder = if is_inner_first { "." } else { "sub" };
        let hook = fill("HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/*", &room.ws());
        let planting = run(first, format!("cd {folder}; {hook}; {}", wait("begun", "go")));
        let beginning = async {
            until("the first has planted", || begun.exists()).await;
            let refused = run(second, "true".to_owned()).await;
            assert!(matches!(refused, Err(Error::Overlap)), "{refused:?}");
            std::fs::write(&go, "").unwrap();
        };
        let (ended, ()) = tokio::join!(planting, beginning);
        assert_eq!(ended.unwrap().restored.len(), 1, "the hook");
        assert_eq!(run(second, "true".to_owned()).await.unwrap().restored, [""; 0]);
        use_git(&room.ws().join("sub"), &format!("a submodule, inner first: {is_inner_first}"));
    }
}

/// A command of a worktree begins while one of the repository's workspace has planted, and ends after it.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_command_in_a_worktree_brings_nothing_back_that_was_planted_in_its_repository() {
    const PLANTS: &str = "HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; CONFIG >> .git/config";
    let room = Room::with(FenceChoice::Landlock, repository("git worktree add -q ../wt"), |_| {});
    let (ws, worktree) = (room.ws(), room.ws().with_file_name("wt"));
    let second = LocalExecutor::open(config(worktree.clone(), FenceChoice::Landlock)).unwrap();
    let script = format!("{}; {}", fill(PLANTS, &ws), wait("planted", "go"));
    let first = async {
        let ran = room.bash(&script, Access::Write).await;
        assert!(!ran.restored.is_empty(), "{ran:?}");
        std::fs::write(worktree.join("go"), "").unwrap();
    };
    let later = async {
        until("it is planted", || ws.join("planted").exists()).await;
        let command = Command::new(["bash", "-c", &wait("begun", "go")], Duration::from_secs(60));
        let ran = second.run(command, &Fence::closed(Access::Write), Watch::unattended()).await.unwrap();
        assert_eq!(ran.restored, [""; 0], "it can change nothing there");
    };
    let conducting = async {
        until("both run", || worktree.join("begun").exists()).await;
        std::fs::write(ws.join("go"), "").unwrap();
    };
    tokio::join!(first, later, conducting);
    use_git(&ws, "a worktree");
    assert!(!ws.join(".git/hooks/pre-commit").exists());
}
