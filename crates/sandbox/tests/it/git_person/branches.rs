//! What other branches, stashes and other owners of a folder make git obey.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Error, Executor, Fence, Watch};
use toolhost_sandbox::{FenceChoice, LocalExecutor};

use super::plant::{by_person, fill, git, mark, prepare};
use super::{TIERS, config};
use crate::ordinary::THEIRS;
use crate::room::{Room, until};

/// A clone in which only another branch has a submodule, at `libs/sub`.
fn without_submodule(ws: &Path) {
    prepare(
        ws,
        "git -C ../outside/origin branch feature; (cd ../outside; git init -q sub; git -C sub commit -q --allow-empty -m s)
        git -C ../outside/origin submodule --quiet add $PWD/../outside/sub libs/sub; git -C ../outside/origin commit -qm sub
        git clone -q --recurse-submodules ../outside/origin ../clone; rm -rf .git file; cp -a ../clone/. .; rm -rf ../clone
        git checkout -q feature; rm -rf libs",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_enters_nothing_that_a_command_made_where_another_branch_has_a_submodule() {
    const ATTACK: &str = "git init -q libs/sub; cd libs/sub; git config user.name a; git config user.email a@example.org
        git config remote.origin.url ORIGIN; git config remote.origin.uploadpack 'touch MARK; git-upload-pack'
        git commit -q --allow-empty -m x; cd ../..; printf '[submodule \"libs/sub\"]\\n path=libs/sub\\n url=x\\n' > .gitmodules";
    for choice in TIERS {
        let room = Room::with(choice, without_submodule, |_| {});
        let attack = fill(ATTACK, &room.ws()).replace("ORIGIN", room.outside().join("sub").to_str().unwrap());
        let result = room.try_bash(&attack, Access::Write, Duration::from_secs(60)).await;
        by_person(
            &room.ws(),
            "git -C ../outside/sub commit -q --allow-empty -m more; git -C ../outside/origin/libs/sub pull -q
            git -C ../outside/origin commit -qam 'the submodule goes on'",
        );
        for args in [&["fetch", "--recurse-submodules=on-demand"][..], &["checkout", "-q", "main"], &["status"]] {
            git(&room.ws(), args);
            assert!(!mark(&room.ws()).exists(), "{args:?} in {choice:?} after {result:?}");
        }
    }
}

/// Where branches, tags and stashes have a submodule, also without a file that names it, and beside many names that are none.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_enters_nothing_that_a_command_made_in_the_place_of_a_submodule() {
    /// Puts a submodule at PLACE into the index.
    const LINK: &str = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),PLACE";
    // What an agent could commit itself, on a branch of its own.
    const DECOYS: &str = "git switch -qc aaa; for i in $(seq 700); do printf '[submodule \"x%s\"]\n path = a%s\n' $i $i; done > .gitmodules
        git add .gitmodules; git commit -qm decoys; git switch -q main; ";
    const ATTACK: &str = "git init -q PLACE; cd PLACE && git config user.name a; git config user.email a@example.org
        git commit -q --allow-empty -m x; git config core.fsmonitor 'touch MARK; false'";
    let branch = format!("{DECOYS}git switch -qc gm; {LINK}; git commit -qm gm; git switch -q main");
    let tag = format!("{DECOYS}{LINK}; git commit -qm gm; git tag -am t gm; git reset -q --hard HEAD~1");
    let stash = format!(
        "{DECOYS}{LINK}; t=$(git write-tree); i=$(git commit-tree $t -p HEAD -m i)
        git stash store -m s $(git commit-tree $t -p HEAD -p $i -m w); git reset -q --hard"
    );
    for choice in TIERS {
        for (furnish, checkout) in [(&branch, "gm"), (&tag, "gm"), (&stash, "stash@{0}")] {
            for place in ["zz/ev", "a\\ b%s\"é", ":160000 160000 x"] {
                let quoted = format!("'{place}'");
                let room = Room::with(choice, |ws| prepare(ws, &furnish.replace("PLACE", &quoted)), |_| {});
                let attack = fill(&ATTACK.replace("PLACE", &quoted), &room.ws());
                let result = room.try_bash(&attack, Access::Write, Duration::from_secs(60)).await;
                for args in [&["checkout", "-q", checkout][..], &["status"]] {
                    git(&room.ws(), args);
                    assert!(!mark(&room.ws()).exists(), "{args:?} of {checkout} in {choice:?} after {result:?}");
                }
                assert!(git(&room.ws(), &["ls-files", "-s"]).stdout.windows(6).any(|mode| mode == b"160000"));
            }
        }
    }
}

/// Where trees cannot be compared, files say where submodules are.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_enters_nothing_that_a_command_made_where_a_file_names_a_submodule() {
    let furnish = "git switch -qc gm; printf '[submodule \"s\"]\n path = zz/ev\n url = x\n' > .gitmodules; git add .gitmodules
        git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),zz/ev; GIT_COMMITTER_DATE=2020-01-01T00:00:00Z git commit -qm gm
        git switch -qf main; git switch -qc bad; mkdir sub; echo x > sub/x; git add sub; git commit -qm bad; t=$(git rev-parse HEAD:sub)
        git switch -q main; rm -f .git/objects/${t:0:2}/${t:2}";
    let attack = "git init -q zz/ev; cd zz/ev && git config user.name a; git config user.email a@example.org
        git commit -q --allow-empty -m x; git config core.fsmonitor 'touch MARK; false'";
    for choice in TIERS {
        let room = Room::with(choice, |ws| prepare(ws, furnish), |_| {});
        let result = room.try_bash(&fill(attack, &room.ws()), Access::Write, Duration::from_secs(60)).await;
        for args in [&["checkout", "-q", "gm"][..], &["status"]] {
            git(&room.ws(), args);
            assert!(!mark(&room.ws()).exists(), "{args:?} in {choice:?} after {result:?}");
        }
        assert!(git(&room.ws(), &["ls-files", "-s"]).stdout.windows(6).any(|mode| mode == b"160000"));
    }
}

/// A branch may be fetched from anywhere.
#[tokio::test(flavor = "multi_thread")]
async fn no_name_in_a_branch_keeps_commands_from_running() {
    let long = "git switch -qc other; n=$(printf 'n%.0s' $(seq 300)); p=$(printf 'p/%.0s' $(seq 1200))
        for name in $n d/$n/e DEEP; do git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),${name%/}
        printf '[submodule \"%s\"]\n path = %s\n' $name $name >> .gitmodules; done
        git add .gitmodules; git commit -qm other; git switch -qf main || true";
    for choice in TIERS {
        let room = Room::with(choice, |ws| prepare(ws, &long.replace("DEEP", "a/b")), |_| {});
        let result = room.bash("echo fine", Access::Write).await;
        assert_eq!(result.stdout.text, "fine\n", "{choice:?}: {result:?}");
        // One that cannot be held: the error says why.
        let room = Room::with(choice, |ws| prepare(ws, &long.replace("DEEP", "$p")), |_| {});
        let refused = room.try_bash("echo fine", Access::Write, Duration::from_secs(60)).await.unwrap_err().to_string();
        assert!(refused.contains("a submodule more than 100 folders deep, at `p/p/"), "{choice:?}: {refused}");
    }
}

/// The hooks of a template are copied into each new repository, submodules and clones among them.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_repository_gets_no_hooks_of_a_command() {
    let furnish = "mkdir -p tmpl/hooks; echo x > tmpl/description; git config init.templateDir $PWD/tmpl
        (cd ../outside; git init -q sub; git -C sub commit -q --allow-empty -m s); git submodule --quiet add $PWD/../outside/sub sm
        git commit -qm sm; git submodule --quiet deinit -f sm; rm -rf .git/modules/sm";
    let attack = "mkdir -p tmpl/hooks; printf '#!/bin/sh\ntouch MARK\n' > tmpl/hooks/post-checkout; chmod +x tmpl/hooks/post-checkout";
    for choice in TIERS {
        let room = Room::with(choice, |ws| prepare(ws, furnish), |_| {});
        let result = room.try_bash(&fill(attack, &room.ws()), Access::Write, Duration::from_secs(60)).await;
        let template = format!("init.templateDir={}", room.ws().join("tmpl").display());
        git(&room.ws(), &["-c", &template, "submodule", "update", "--init"]);
        assert!(room.ws().join("sm/.git").exists() && !mark(&room.ws()).exists(), "{choice:?}: {result:?}");
    }
}

/// A clone that follows submodules, of an origin that has one and had another one at `libs/sub` until somebody took it out.
fn without_former_submodule(ws: &Path) {
    prepare(
        ws,
        "(cd ../outside; git init -q sub; git -C sub commit -q --allow-empty -m s)
        git -C ../outside/origin submodule --quiet add $PWD/../outside/sub used; git -C ../outside/origin commit -qm used
        git -C ../outside/origin submodule --quiet add $PWD/../outside/sub libs/sub; git -C ../outside/origin commit -qm sub
        git -C ../outside/origin rm -qf libs/sub; git -C ../outside/origin commit -qm 'no more'
        git clone -q --recurse-submodules ../outside/origin ../clone; rm -rf .git file; cp -a ../clone/. .; rm -rf ../clone",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_enters_nothing_that_a_command_made_where_an_older_commit_has_a_submodule() {
    const ATTACK: &str = "git init -q libs/sub; cd libs/sub; git config user.name a; git config user.email a@example.org
        git commit -q --allow-empty -m x; git config remote.origin.url ssh://host/x; git config core.sshCommand 'touch MARK; false'";
    let named = |ws: &Path| {
        without_former_submodule(ws);
        // Its history is not here, and it is still in the settings, as `git submodule init` leaves it.
        by_person(
            ws,
            "git clone -q --depth 1 --no-single-branch file://$PWD/../outside/origin ../clone; rm -rf .git .gitmodules file used
            cp -a ../clone/. .; rm -rf ../clone; git submodule --quiet init; git config submodule.libs/sub.url x",
        );
    };
    for choice in TIERS {
        for prepare in [&without_former_submodule as &dyn Fn(&Path), &named] {
            let room = Room::with(choice, |ws| prepare(ws), |_| {});
            let result = room.try_bash(&fill(ATTACK, &room.ws()), Access::Write, Duration::from_secs(60)).await;
            by_person(
                &room.ws(),
                "cd ../outside/origin; git switch -q -c rel HEAD~1
                git update-index --cacheinfo 160000,$(git rev-parse HEAD),libs/sub; git commit -qm 'another one'",
            );
            for args in [&["fetch"][..], &["status"], &["diff", "HEAD~1"]] {
                git(&room.ws(), args);
                assert!(!mark(&room.ws()).exists(), "{args:?} in {choice:?} after {result:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_another_branch_has_a_submodule_a_command_may_have_files() {
    let file = |ws: &Path| {
        without_submodule(ws);
        std::fs::write(ws.join("libs"), "a file here\n").unwrap();
    };
    for choice in TIERS {
        let room = Room::with(choice, without_submodule, |_| {});
        let result =
            room.bash("mkdir -p libs/sub && echo one > libs/sub/file && cat libs/sub/file", Access::Write).await;
        assert_eq!(result.stdout.text, "one\n", "{choice:?}: {result:?}");
        let left = std::fs::read_dir(room.ws().join("libs/sub")).unwrap().count();
        assert_eq!((left, result.restored.len()), (1, 0), "{choice:?}: {result:?}");
        let room = Room::with(choice, file, |_| {});
        let result = room.bash("cat libs", Access::Write).await;
        assert_eq!(result.stdout.text, "a file here\n", "{choice:?}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_a_persons_applies_no_stash_that_a_command_has_left() {
    const STASH: &str =
        "git init -q n; echo x > n/x; git -C n add x; git config user.name a; git config user.email a@example.org
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git -C n commit -qm x; git -C n config core.fsmonitor 'touch MARK; false'
        export GIT_INDEX_FILE=$TMPDIR/i; git read-tree HEAD; I=$(git commit-tree HEAD^{tree} -p HEAD -m i)
        git update-index --add --cacheinfo 160000,$(git -C n rev-parse HEAD),n
        S=$(git commit-tree $(git write-tree) -p HEAD -p $I -m w); unset GIT_INDEX_FILE; ";
    for place in [
        "echo $S > .git/MERGE_AUTOSTASH",
        "git update-ref MERGE_AUTOSTASH $S",
        "git pack-refs --all; touch .git/packed-refs; echo \"$S MERGE_AUTOSTASH\" >> .git/packed-refs",
        "git pack-refs --all; touch .git/packed-refs.lock; echo \"$S MERGE_AUTOSTASH\" >> .git/packed-refs",
        "git update-ref refs/heads/kept $S; echo 'ref: refs/heads/kept' > .git/MERGE_AUTOSTASH",
    ] {
        let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, ""), |_| {});
        let result =
            room.try_bash(&fill(&format!("{STASH}{place}"), &room.ws()), Access::Write, Duration::from_secs(60)).await;
        std::fs::write(room.ws().join("file"), "mine\n").unwrap();
        for args in [&["commit", "-qam", "my own"][..], &["status"]] {
            git(&room.ws(), args);
            assert!(!mark(&room.ws()).exists(), "{args:?} after {place}: {result:?}");
        }
        let applied = git(&room.ws(), &["ls-files", "--stage"]);
        assert!(!String::from_utf8_lossy(&applied.stdout).contains("160000"), "{place}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stash_that_a_merge_of_the_persons_has_left_stays() {
    let begun = "git branch side; echo two > file; git commit -qam two; git checkout -q side; echo three > other; git add other
        git commit -qm three; echo mine >> other; git merge -q --no-commit --autostash main || true; test -e .git/MERGE_AUTOSTASH";
    let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, begun), |_| {});
    room.bash("true", Access::Write).await;
    by_person(&room.ws(), "git commit -qm merged; grep mine other");
}

/// The workspace belongs to another user, and the person's git trusts it. Only root can make such a folder: `ordinary` does, and
/// names it.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_folder_of_another_user_git_still_says_what_it_obeys() {
    let Some(theirs) = std::env::var_os(THEIRS) else { return };
    for choice in TIERS {
        let ws = Path::new(&theirs).join(format!("{choice:?}"));
        let owner = (ws.metadata().unwrap().uid(), ws.metadata().unwrap().permissions().mode() & 0o777);
        assert_eq!(owner, (0, 0o777), "a folder of root's that everybody can write");
        let safe = |args: &[&str]| git(&ws, &[&["-c", "safe.directory=*"][..], args].concat());
        for args in [&["init", "-q"][..], &["config", "core.hooksPath", ".githooks"]] {
            assert!(safe(args).status.success(), "{args:?}");
        }
        std::fs::create_dir(ws.join(".githooks")).unwrap();
        let executor = LocalExecutor::open(config(ws.clone(), choice)).unwrap();
        let script = "printf '#!/bin/sh\\ntouch ran\\n' > .githooks/pre-commit; chmod +x .githooks/pre-commit; true";
        let command = Command::new(["bash", "-c", script], Duration::from_secs(60));
        let fence = Fence::closed(Access::Write);
        let result = executor.run(command, &fence, Watch::unattended()).await;
        assert!(safe(&["commit", "-q", "--allow-empty", "-m", "x"]).status.success(), "{choice:?}");
        assert!(!ws.join("ran").exists(), "{choice:?}: {result:?}");
    }
}

/// A name that is mounted loses its mount when somebody outside exchanges or removes it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_exchanges_while_a_command_runs_is_looked_at_when_it_ends() {
    const WRITES: &str =
        "touch started; for i in $(seq 100); do { PLANT; } 2>/dev/null; [ -e enough ] && break; sleep 0.05; done";
    let hooks = "git config core.hooksPath .githooks";
    let plant = "mkdir -p .githooks && printf '#!/bin/sh\\ntouch MARK\\n' > .githooks/pre-commit && chmod +x .githooks/pre-commit";
    let settings = "git config include.path ../.settings; printf '[alias]\\n st = status\\n' > .settings";
    let add = "printf '[core]\\n fsmonitor = touch MARK; false\\n' >> .settings";
    for (furnish, plant, person, name) in [
        (hooks, plant, "git clean -qfd -e started -e enough", ".githooks"),
        (hooks, plant, "rm -rf .githooks", ".githooks"),
        (settings, add, "sed -i 's/st =/s =/' .settings", ".settings"),
    ] {
        let room = Room::with(FenceChoice::Full, |ws| prepare(ws, furnish), |_| {});
        let script = fill(&WRITES.replace("PLANT", plant), &room.ws());
        let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
        let ws = room.ws();
        let exchange = async {
            until("it has begun", || ws.join("started").exists()).await;
            by_person(&ws, person);
            let planted = ws.join(name);
            let is_planted = || match planted.is_dir() {
                true => planted.join("pre-commit").exists(),
                false => std::fs::read_to_string(&planted).is_ok_and(|text| text.contains("fsmonitor")),
            };
            until("the command has planted", is_planted).await;
            std::fs::write(ws.join("enough"), "").unwrap();
        };
        let (result, ()) = tokio::join!(running, exchange);
        if name == ".settings" {
            assert!(matches!(&result, Err(Error::Exchanged { names }) if names == name), "{person}: {result:?}");
            continue;
        }
        assert!(result.as_ref().is_ok_and(|result| result.restored == [name]), "{person}: {result:?}");
        git(&ws, &["commit", "-q", "--allow-empty", "-m", "x"]);
        assert!(!mark(&ws).exists() && !ws.join(name).exists(), "{person}: {result:?}");
        // It may be the person's own.
        assert!(ws.join("toolhost-planted-1/pre-commit").exists(), "{person}: {result:?}");
    }
}
