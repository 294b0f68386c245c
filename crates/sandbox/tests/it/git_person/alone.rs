//! Git that changes files follows a link that takes a folder's place meanwhile, with `.git` writable. So nothing that could
//! put one there runs beside it.

use std::path::Path;
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Error, Executor, Fence, Watch};
use toolhost_sandbox::{FenceChoice, LocalConfig, LocalExecutor};

use super::TIERS;
use super::plant::{commit, sure};
use crate::room::{Room, config, path, until};

fn furnish(ws: &Path) {
    sure(ws, &["init", "-q"]);
    commit(ws, "file");
    std::fs::create_dir_all(ws.join("inner/folder")).unwrap();
}

/// As `git.switch` runs git.
fn changing(script: &str) -> Command {
    let mut command = Command::new(["bash", "-c", script], Duration::from_secs(60));
    (command.is_git, command.changes_files) = (true, true);
    command
}

fn plain(script: &str) -> Command {
    Command::new(["bash", "-c", script], Duration::from_secs(60))
}

/// A second host on the workspace, and one on a folder inside it.
fn hosts(room: &Room, choice: FenceChoice) -> [LocalExecutor; 2] {
    [room.ws(), room.ws().join("inner")].map(|root| LocalExecutor::open(config(root, choice)).unwrap())
}

/// A host on the workspace that keeps its guard elsewhere, as for another `HOME`.
fn stranger(room: &Room, choice: FenceChoice) -> LocalExecutor {
    let here = config(room.ws(), choice);
    let guard = here.guard.with_extension("of-a-stranger");
    LocalExecutor::open(LocalConfig { guard, ..here }).unwrap()
}

/// Also a host whose guard is elsewhere, and one without a fence, sees that a command is under way.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_another_home_or_without_a_fence_sees_the_command_too() {
    let fence = Fence::closed(Access::Write);
    for (choice, other) in [
        (FenceChoice::Full, FenceChoice::Full),
        (FenceChoice::Landlock, FenceChoice::Landlock),
        (FenceChoice::Full, FenceChoice::Off),
    ] {
        let room = Room::with(choice, furnish, |_| {});
        let git = if other == FenceChoice::Off {
            LocalExecutor::open(config(room.ws(), other)).unwrap()
        } else {
            stranger(&room, other)
        };
        let command = async {
            let script = "touch begun; until [ -e go ]; do sleep 0.05; done; rm go begun";
            room.executor.run(plain(script), &fence, Watch::unattended()).await.unwrap()
        };
        let changes = async {
            until("the command runs", || room.ws().join("begun").exists()).await;
            let refused = git.run(changing("touch changed"), &fence, Watch::unattended()).await;
            assert!(matches!(refused, Err(Error::CommandUnderWay)), "{choice:?}, {other:?}: {refused:?}");
            std::fs::write(room.ws().join("go"), "").unwrap();
        };
        tokio::join!(command, changes);
        // The other way round: nothing is moved beside its git.
        let changes = async {
            let script = "touch begun; until [ -e go ]; do sleep 0.05; done; rm go begun";
            git.run(changing(script), &fence, Watch::unattended()).await.unwrap()
        };
        let moving = async {
            until("git runs", || room.ws().join("begun").exists()).await;
            if other != FenceChoice::Off {
                let refused = room.executor.rename(&path("inner/folder"), &path("moved")).await;
                assert!(matches!(refused, Err(Error::CommandUnderWay)), "{choice:?}, {other:?}: {refused:?}");
            }
            std::fs::write(room.ws().join("go"), "").unwrap();
        };
        tokio::join!(changes, moving);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_that_changes_files_does_not_begin_beside_a_command() {
    let fence = Fence::closed(Access::Write);
    for choice in TIERS {
        let room = Room::with(choice, furnish, |_| {});
        let [second, inner] = hosts(&room, choice);
        let others: [(&LocalExecutor, bool); 3] = [(&room.executor, true), (&second, true), (&inner, false)];
        for (other, is_same) in others {
            let begun = if is_same { room.ws().join("begun") } else { room.ws().join("inner/begun") };
            let command = async {
                let script = plain("touch begun; until [ -e go ]; do sleep 0.05; done; rm go begun");
                other.run(script, &fence, Watch::unattended()).await.unwrap()
            };
            let git = async {
                until("the command runs", || begun.exists()).await;
                let refused = room.executor.run(changing("touch changed"), &fence, Watch::unattended()).await;
                let is_told = if is_same {
                    matches!(refused, Err(Error::CommandUnderWay))
                } else {
                    matches!(refused, Err(Error::Overlap))
                };
                assert!(is_told, "{choice:?}: {refused:?}");
                std::fs::write(begun.with_file_name("go"), "").unwrap();
            };
            tokio::join!(command, git);
            assert!(!room.ws().join("changed").exists(), "{choice:?}");
        }
        let done = room.executor.run(changing("touch changed"), &fence, Watch::unattended()).await.unwrap();
        assert_eq!(done.exit_code, 0, "{choice:?}: {done:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_begins_beside_git_that_changes_files() {
    let fence = Fence::closed(Access::Write);
    for choice in TIERS {
        let room = Room::with(choice, furnish, |_| {});
        let [second, inner] = hosts(&room, choice);
        let said = |what: &str| format!("echo {what} >>\"$(git rev-parse --show-toplevel)/said\"");
        let git = async {
            let script = format!("touch begun; sleep 1; [ ! -e moved ] && {}", said("git"));
            room.executor.run(changing(&script), &fence, Watch::unattended()).await.unwrap()
        };
        let begun = || room.ws().join("begun").exists();
        let beside = async |host: &LocalExecutor, what: &str| {
            until("git runs", begun).await;
            host.run(plain(&said(what)), &fence, Watch::unattended()).await.unwrap()
        };
        let inside = async {
            until("git runs", begun).await;
            inner.run(plain("echo inner >>said"), &fence, Watch::unattended()).await.unwrap();
            std::fs::read_to_string(room.ws().join("said")).unwrap()
        };
        let moving = async {
            until("git runs", begun).await;
            second.rename(&path("inner/folder"), &path("moved")).await.unwrap();
        };
        let (done, _, _, there, ()) =
            tokio::join!(git, beside(&room.executor, "first"), beside(&second, "second"), inside, moving);
        assert_eq!(done.exit_code, 0, "{choice:?}: nothing was moved meanwhile: {done:?}");
        assert!(there.starts_with("git\n"), "{choice:?}: the one inside began after it: {there}");
        let order = std::fs::read_to_string(room.ws().join("said")).unwrap();
        assert!(order.starts_with("git\n") && order.lines().count() == 3, "{choice:?}: {order}");
    }
}
