//! Another folder takes the place of the workspace, or of its repository, while a command runs: a person swaps in a fresh clone,
//! a deployment exchanges two releases, or whoever may write the folder above does it on purpose. Nothing is put back, moved,
//! made or removed in the folder that stands there now, and no answer says that all is well.

use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use toolhost_contract::workspace::{Access, Executor};

use super::TIERS;
use super::plant::{by_person, commit, fill, prepare, sure, use_git};
use crate::room::{Room, everything, look_for, until};

/// What a person has beside the workspace: a repository with hooks of its own, and files of theirs.
const VICTIM: &str = "mkdir .githooks && printf '#!/bin/sh\\n' > .githooks/pre-commit && chmod +x .githooks/pre-commit;
    git config core.hooksPath .githooks; printf '#!/bin/sh\\n' > .git/hooks/pre-push; echo mine > mine.txt";
/// How a workspace is laid out, where it is, and what is exchanged.
const LAYOUTS: &[(&str, &str, &str)] = &[
    ("true", "ws", "ws"),
    ("rm -rf .git", "ws", "ws"),
    ("git config core.hooksPath .githooks", "ws", "ws"),
    ("git worktree add -q ../wt", "wt", "wt"),
    ("git worktree add -q ../wt", "wt", "ws"),
];
/// What a command plants as long as it runs, where it gets at it.
const PLANTS: &str = "touch started; for i in $(seq 200); do
    { mkdir -p .git/hooks .githooks; for h in .git/hooks .githooks; do HOOK > $h/pre-commit; chmod +x $h/pre-commit; done;
    CONFIG >> .git/config; rm -rf .git/HEAD HEAD; } 2>/dev/null; [ -e enough ] && exit; sleep 0.05; done";

fn exchange(folder: &Path, one: &str, other: &str) {
    renameat_with(CWD, folder.join(one), CWD, folder.join(other), RenameFlags::EXCHANGE).unwrap();
}

/// Every name in a folder, with what it is, its mode, its inode and its text.
fn all_of(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut todo: Vec<_> = entries.collect();
    let mut all = Vec::new();
    while let Some(path) = todo.pop() {
        use std::os::unix::fs::MetadataExt;
        let found = path.symlink_metadata().unwrap();
        let text = if found.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        all.push(format!("{name} {:o} {} {}", found.mode(), found.ino(), String::from_utf8_lossy(&text)));
        if found.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_happens_in_the_folder_that_takes_the_place() {
    for choice in TIERS {
        for (layout, at, exchanged) in LAYOUTS {
            let what = format!("{layout}: {exchanged} in {choice:?}");
            let furnish = |ws: &Path| {
                let victim = ws.with_file_name("victim");
                std::fs::create_dir(&victim).unwrap();
                sure(&victim, &["init", "-q"]);
                commit(&victim, "file");
                by_person(&victim, VICTIM);
                prepare(ws, layout);
            };
            let room = Room::with(choice, furnish, |config| {
                config.root.set_file_name(at);
            });
            let folder = room.folder.path();
            let before = all_of(&folder.join("victim"));
            let script = fill(PLANTS, &folder.join(at));
            let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
            let person = async {
                until("it has begun", || folder.join(at).join("started").exists()).await;
                exchange(folder, exchanged, "victim");
                let now = folder.join(if at == exchanged { "victim" } else { at });
                std::fs::write(now.join("enough"), "").unwrap();
            };
            let (result, ()) = tokio::join!(running, person);
            let error = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
            let is_told = ["has taken the place", "somebody exchanged"].iter().any(|why| error.contains(why));
            assert!(is_told, "{what}: {result:?}");
            assert_eq!(all_of(&folder.join(exchanged)), before, "{what}: by the command's end");
            // And while it stays so.
            for access in [Access::Write, Access::Read] {
                let next = room.try_bash("true", access, Duration::from_secs(60)).await;
                assert!(next.is_err() || at != exchanged && access == Access::Read, "{what}: {next:?}");
            }
            if at == exchanged {
                let listed = room.executor.list(everything(".")).await;
                assert!(listed.is_err(), "{what}: {listed:?}");
                let found = room.executor.search(look_for("mine", ".")).await;
                assert!(found.is_err(), "{what}: {found:?}");
            }
            assert_eq!(all_of(&folder.join(exchanged)), before, "{what}: by later calls");
            // What had to be put back is not forgotten.
            exchange(folder, exchanged, "victim");
            room.try_bash("rm -f enough started", Access::Write, Duration::from_secs(60)).await.unwrap();
            use_git(&folder.join(at), &what);
        }
    }
}
