//! Which folders are no workspace: a command could write what git obeys there without any name of git's to hold.

use toolhost_sandbox::{FenceChoice, LocalExecutor};

use super::TIERS;
use super::plant::prepare;
use crate::room::{Room, config};

/// A folder that is a repository's own, or in one, and how a person gets to it.
const REFUSED: &[(&str, &str)] = &[
    ("git clone -q --bare . b", "b"),
    ("git clone -q --bare . b", "b/hooks"),
    ("git clone -q --bare . b; mkdir -p b/x/y", "b/x/y"),
    ("git init -q --bare e", "e"),
    ("true", ".git"),
    ("true", ".git/hooks"),
    ("true", ".git/objects/info"),
    ("SUBMODULE lib", ".git/modules/lib"),
    ("SUBMODULE lib", ".git/modules/lib/hooks"),
    ("git worktree add -q wt", ".git/worktrees/wt"),
    ("mv .git .bare; echo 'gitdir: .bare' > .git", ".bare"),
    ("mv .git .bare; echo 'gitdir: .bare' > .git; ln -s .bare/hooks link", "link"),
];

#[tokio::test]
async fn a_repositorys_own_folder_is_no_workspace() {
    for choice in TIERS {
        let room = Room::with(choice, |_| {}, |_| {});
        for (n, (person, folder)) in REFUSED.iter().enumerate() {
            let ws = room.ws().join(n.to_string()).join("ws");
            std::fs::create_dir_all(&ws).unwrap();
            prepare(&ws, person);
            let error = LocalExecutor::open(config(ws.join(folder), choice)).err().map(|error| error.to_string());
            let named = error.as_ref().is_some_and(|error| error.contains("repository's own folder"));
            assert!(named, "{person}: {folder} in {choice:?}: {error:?}");
        }
    }
}

/// How people lay out repositories and what they open of them.
const OPENED: &[(&str, &str)] = &[
    ("true", "."),
    ("mkdir hooks", "hooks"),
    ("SUBMODULE lib", "lib"),
    ("git worktree add -q wt; mkdir wt/sub", "wt/sub"),
    ("mv .git .bare; echo 'gitdir: .bare' > .git", "."),
    (
        "mv .git .bare; git --git-dir .bare config core.bare true; echo 'gitdir: .bare' > .git; git worktree add -q wt",
        "wt",
    ),
    // Names alone make no repository.
    ("mkdir -p d/objects d/refs", "d"),
    ("mkdir -p d/refs; echo > d/HEAD", "d"),
    ("git clone -q --bare . b", "."),
];

#[tokio::test(flavor = "multi_thread")]
async fn usual_layouts_are_opened_and_run_commands() {
    for (person, folder) in OPENED {
        let room = Room::with(FenceChoice::Full, |ws| prepare(ws, person), |config| config.root.push(folder));
        for choice in TIERS {
            let root = room.ws().join(folder);
            let executor = LocalExecutor::open(config(root, choice)).unwrap();
            let ran = ran(&executor).await;
            assert!(ran, "{person}: {folder} in {choice:?}");
        }
    }
}

#[tokio::test]
async fn a_worktree_in_the_folder_of_its_bare_repository_is_opened() {
    let room = Room::with(
        FenceChoice::Full,
        |ws| prepare(ws, "git clone -q --bare . b; git -C b worktree add -q wt; mkdir b/wt/sub"),
        |_| {},
    );
    for folder in ["b/wt", "b/wt/sub"] {
        let opened = LocalExecutor::open(config(room.ws().join(folder), FenceChoice::Full));
        assert!(opened.is_ok(), "{folder}: {:?}", opened.err());
    }
}

async fn ran(executor: &LocalExecutor) -> bool {
    use toolhost_contract::workspace::{Access, Command, Executor, Fence, Watch};
    let fence = Fence::closed(Access::Write);
    let command = Command::new(["bash", "-c", "touch new && rm new"], std::time::Duration::from_secs(20));
    let ended = executor.run(command, &fence, Watch::unattended()).await;
    ended.is_ok_and(|ended| ended.exit_code == 0 && ended.restored.is_empty())
}
