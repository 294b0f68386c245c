//! A second name of a file that git obeys does not lead around what is read-only.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use toolhost_contract::workspace::{Access, Error};
use toolhost_sandbox::{FenceChoice, LocalExecutor};

use super::TIERS;
use super::plant::{Template, by_person, fill, git, mark, prepare, use_all_of_git};
use crate::room::{Room, config};

/// What a first command makes, what the person then makes git obey, the file that has a second name `second`, and what is
/// written through that name.
const PREPARED: &[(&str, &str, &str, &str)] = &[
    (
        "mkdir -p tools/hooks; SOUND > tools/hooks/pre-commit; ln tools/hooks/pre-commit second",
        "chmod +x tools/hooks/*; git config core.hooksPath tools/hooks",
        "tools/hooks/pre-commit",
        "HOOK > second",
    ),
    (
        "mkdir -p hk/inner; SOUND > hk/inner/lib; ln hk/inner/lib second",
        r#"printf '#!/bin/sh\n. hk/inner/lib\n' > hk/pre-commit; chmod +x hk/pre-commit; git config core.hooksPath hk"#,
        "hk/inner/lib",
        "HOOK > second",
    ),
    (
        "mkdir t; echo '[alias]' > t/inc; ln t/inc second",
        "git config include.path ../t/inc",
        "t/inc",
        "CONFIG > second",
    ),
    ("SOUND > h; ln h second", "chmod +x h; mv h .git/hooks/pre-commit", ".git/hooks/pre-commit", "HOOK > second"),
    ("SOUND > h; ln h second", "chmod +x h; ln -s ../../h .git/hooks/pre-commit", "h", "HOOK > second"),
    (
        "SOUND > h; ln h second",
        "SUBMODULE lib; chmod +x h; mv h .git/modules/lib/hooks/pre-commit",
        ".git/modules/lib/hooks/pre-commit",
        "HOOK > second",
    ),
    (
        "echo '[alias]' > c; ln c second",
        "git worktree add -q wt; git config extensions.worktreeConfig true; mv c .git/worktrees/wt/config.worktree",
        ".git/worktrees/wt/config.worktree",
        "CONFIG > second",
    ),
    ("echo > p; ln p second", "mv p toolhost.toml", "toolhost.toml", "echo evil > second"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_second_name_that_a_command_made_earlier_stops_commands_in_the_full_fence() {
    for (first, person, file, then) in PREPARED {
        let after = format!("{first}; {person}; {then}");
        let room = Room::with(FenceChoice::Full, |ws| prepare(ws, "true"), |_| {});
        let first = first.replace("SOUND", "printf '#!/bin/sh\\n'");
        assert_eq!(room.bash(&first, Access::Write).await.exit_code, 0, "{after}");
        by_person(&room.ws(), person);
        let was = std::fs::read(room.ws().join(file)).unwrap();
        let attack = fill(then, &room.ws());
        let refused = room.try_bash(&attack, Access::Write, Duration::from_secs(20)).await;
        assert!(matches!(&refused, Err(Error::Shared { names }) if names == file), "{after}: {refused:?}");
        for place in ["", "lib", "wt"].map(|place| room.ws().join(place)).iter().filter(|place| place.is_dir()) {
            git(place, &["status"]);
            git(place, &["commit", "-q", "--allow-empty", "-m", "x"]);
            assert!(!mark(&room.ws()).exists(), "{after}");
        }
        // The person's way out.
        by_person(&room.ws(), &format!("cp -p {file} {file}.new; mv {file}.new {file}"));
        assert!(room.try_bash(&attack, Access::Write, Duration::from_secs(20)).await.is_ok(), "{after}");
        assert_eq!(std::fs::read(room.ws().join(file)).unwrap(), was, "{after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_mounts_leaves_no_second_name_to_a_later_one() {
    const LINKED: [&str; 7] = [
        ".git/config",
        ".git/hooks/pre-push",
        ".git/info/exclude",
        ".git/modules/libs/outer/config",
        ".git/worktrees/tree/commondir",
        "scripts/hook",
        "libs/outer/.git",
    ];
    let hook = |ws: &Path| {
        Template::new().fill(ws);
        std::fs::write(ws.join(".git/hooks/pre-push"), "#!/bin/sh\n").unwrap();
    };
    let room = Room::with(FenceChoice::Landlock, hook, |_| {});
    let script: String = LINKED.iter().enumerate().map(|(n, name)| format!("ln {name} l{n} && ")).collect();
    let result = room.bash(&(script + "true"), Access::Write).await;
    assert_eq!(result.exit_code, 0, "{result:?}");
    for (n, name) in LINKED.iter().enumerate() {
        assert_eq!(room.ws().join(name).metadata().unwrap().nlink(), 1, "{name}: {result:?}");
        assert_eq!(room.ws().join(format!("l{n}")).metadata().unwrap().nlink(), 1, "{name}");
        assert!(result.restored.iter().any(|restored| restored == name), "{name}: {result:?}");
    }
    let full = LocalExecutor::open(config(room.ws(), FenceChoice::Full)).unwrap();
    let room = Room { executor: full, ..room };
    let attack = "for n in 0 1 2 3 4; do CONFIG >> l$n; done; for n in 1 5; do HOOK > l$n; done";
    room.bash(&fill(attack, &room.ws()), Access::Write).await;
    use_all_of_git(&room.ws(), attack);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_a_command_can_reach_by_another_name_stops_commands_too() {
    let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
    room.bash("ln .git/index second", Access::Write).await;
    let full = LocalExecutor::open(config(room.ws(), FenceChoice::Full)).unwrap();
    let room = Room { executor: full, ..room };
    let refused = room.try_bash("true", Access::Write, Duration::from_secs(20)).await;
    assert!(matches!(&refused, Err(Error::Shared { names }) if names == ".git/index"), "{refused:?}");
}

/// Data is shared between clones of one machine, and other files of the workspace are nobody's settings.
#[tokio::test(flavor = "multi_thread")]
async fn second_names_of_other_files_stop_nothing() {
    const PERSON: &str = "git clone -q --local . ../clone; rm -rf .git/objects; cp -al ../clone/.git/objects .git
        ln file other; git worktree add -q wt; ln file .git/ORIG_HEAD; mkdir .husky; git config core.hooksPath .husky";
    for choice in TIERS {
        let room = Room::with(choice, |ws| prepare(ws, PERSON), |_| {});
        let ran = room.try_bash("echo x > other; git status", Access::Write, Duration::from_secs(20)).await;
        assert!(ran.as_ref().is_ok_and(|ran| ran.exit_code == 0 && ran.restored.is_empty()), "{choice:?}: {ran:?}");
    }
}
