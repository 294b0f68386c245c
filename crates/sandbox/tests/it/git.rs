//! Git in the fence: a command may use the repository, not arm it for the person who uses it next.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, CommandResult};
use toolhost_sandbox::{FenceChoice, LocalExecutor};

use crate::files::races::Swapper;
use crate::room::{Room, SECRET, config};

/// Commands started against the swapper.
const ROUNDS: usize = 200;

/// Git as the host's person runs it, with nobody's configuration.
fn git(folder: &Path, args: &[&str]) {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=person", "-c", "user.email=person@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn repository(folder: &Path) {
    git(folder, &["init", "-q"]);
    std::fs::write(folder.join("file"), "one\n").unwrap();
    git(folder, &["add", "file"]);
    git(folder, &["commit", "-qm", "first"]);
    std::fs::write(folder.join(".git/hooks/existing"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(folder.join(".git/hooks/existing"), PermissionsExt::from_mode(0o755)).unwrap();
}

/// What arms git, as it stands on disk: names, modes and contents.
fn armed(git: &Path) -> Vec<String> {
    let mut state = Vec::new();
    for name in ["config", "config.worktree", "commondir", "info/attributes", "info/exclude", "info/grafts"] {
        let link = std::fs::read_link(git.join(name)).ok();
        state.push(format!("{name} {link:?} {:?}", std::fs::read_to_string(git.join(name)).ok()));
    }
    state.push(format!("hooks {:?}", std::fs::read_link(git.join("hooks")).ok()));
    let hooks = std::fs::read_dir(git.join("hooks")).unwrap().map(|entry| entry.unwrap());
    let mut hooks: Vec<_> = hooks
        .map(|hook| {
            let mode = hook.metadata().unwrap().permissions().mode();
            format!("{:?} {mode:o} {:?}", hook.file_name(), std::fs::read_to_string(hook.path()).ok())
        })
        .collect();
    hooks.sort();
    state.extend(hooks);
    state
}

/// As the tools of the host commit.
const COMMIT: &str = "git config user.name >/dev/null; echo two >> file && git add file &&
    git -c user.name=a -c user.email=a@example.org commit -qm second && git status --short && git log --oneline | wc -l";

/// Runs a script as the tools of the host run git.
async fn as_git(room: &Room, script: &str) -> CommandResult {
    let mut command = Command::new(["bash", "-c", script], Duration::from_secs(20));
    command.is_git = true;
    room.run(command, Access::Write).await.unwrap()
}

/// Ways to arm a repository. The full tier holds them while they happen; nothing of them may stay.
const ARMING: &[&str] = &[
    "echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "echo evil >> .git/hooks/existing",
    "chmod -x .git/hooks/existing",
    "rm .git/hooks/existing",
    "mv .git/hooks .git/hooks2; mkdir .git/hooks; echo evil > .git/hooks/pre-commit",
    "rm -rf .git/hooks; ln -s ../evil .git/hooks",
    "git config core.fsmonitor ./evil",
    "git config core.hooksPath evil",
    "echo '[core] fsmonitor = ./evil' >> .git/config",
    "echo evil > planted; mv planted .git/config; rm -f planted",
    "ln -sf ../evil .git/config",
    "mv .git .git2; git init -q; git config core.fsmonitor ./evil",
    "mv .git .git2; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
    "echo '* filter=evil' > .git/info/attributes",
    "mv .git/info .git/info2",
    "mkdir evil; echo ../evil > .git/commondir",
    "echo '[core] fsmonitor = ./evil' > .git/config.worktree",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_command_does_not_change_the_repository_and_the_tools_git_does() {
    let room = Room::with(FenceChoice::Full, repository, |_| {});
    let before = armed(&room.ws().join(".git"));
    for script in ARMING {
        let result = room.bash(script, Access::Write).await;
        assert_eq!(armed(&room.ws().join(".git")), before, "after `{script}`: {result:?}");
        assert!(!room.ws().join(".git2").exists(), "after `{script}`: {result:?}");
    }
    let refused = room.bash(COMMIT, Access::Write).await;
    assert!(refused.stderr.text.contains("Read-only file system"), "{refused:?}");
    for data in ["rm -rf .git/objects", "rm .git/index", "echo x > .git/HEAD", "git stash", "git branch other"] {
        let refused = room.bash(data, Access::Write).await;
        assert_ne!(refused.exit_code, 0, "`{data}`: {refused:?}");
    }
    git(&room.ws(), &["checkout", "-q", "--", "file"]);
    let committed = as_git(&room, COMMIT).await;
    assert_eq!((committed.exit_code, committed.stdout.text.trim()), (0, "2"), "{committed:?}");
    assert_eq!(armed(&room.ws().join(".git")), before);
    git(&room.ws(), &["fsck", "--strict"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_full_fence_refuses_the_arming_while_it_happens() {
    let room = Room::with(FenceChoice::Full, repository, |_| {});
    for script in [
        "echo evil > .git/hooks/pre-commit",
        "echo evil >> .git/config",
        "echo evil > .git/info/attributes",
        "mv .git .git2",
        "mv .git/hooks .git/hooks2",
        "rm -r .git/hooks",
        "rm .git/config",
        "ln -sf x .git/config",
    ] {
        let refused = room.bash(script, Access::Write).await;
        assert!((1..126).contains(&refused.exit_code), "`{script}`: {refused:?}");
    }
}

/// The references that a script has changed, as `name from to`, commits as the names in `known`.
async fn changed(room: &Room, script: &str, known: &[(&str, &str)]) -> Vec<String> {
    let result = room.bash(script, Access::Write).await;
    assert_eq!(result.exit_code, 0, "{script}: {result:?}");
    let name = |value: Option<String>| match value {
        None => "-".to_owned(),
        Some(value) => known.iter().fold(value, |text, (name, commit)| text.replace(commit, name)),
    };
    let changes = result.refs_changed.into_iter();
    changes.map(|change| format!("{} {} {}", change.name, name(change.from), name(change.to))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_landlock_tier_the_branches_that_a_command_moved_are_reported() {
    let room = Room::with(FenceChoice::Landlock, repository, |_| {});
    let commit = async |name: &str| {
        let told = room.bash(&format!("git rev-parse {name}"), Access::Read).await;
        told.stdout.text.trim().to_owned()
    };
    let one = commit("HEAD").await;
    let known = [("ONE", one.as_str())];
    assert_eq!(changed(&room, "git status; echo two > file; git add file", &known).await, [""; 0]);
    let script = "git -c user.name=a -c user.email=a@example.org commit -qm second";
    let moved = changed(&room, script, &known).await;
    let two = commit("HEAD").await;
    assert_eq!(moved, [format!("refs/heads/main ONE {two}")]);
    let known = [("ONE", one.as_str()), ("TWO", two.as_str())];
    for (script, expected) in [
        ("git pack-refs --all", &[][..]),
        ("git branch other HEAD~1 && git tag v1", &["refs/heads/other - ONE", "refs/tags/v1 - TWO"][..]),
        ("git switch -q other", &["HEAD ref: refs/heads/main ref: refs/heads/other"]),
        // The branches that were there come before those that are new.
        ("git branch aaa; git update-ref refs/heads/main HEAD", &["refs/heads/main TWO ONE", "refs/heads/aaa - ONE"]),
        ("git pack-refs --all; git branch -qD aaa main", &["refs/heads/aaa ONE -", "refs/heads/main ONE -"]),
        // What stops every later git is told.
        ("touch .git/index.lock", &["index.lock - a lock: git changes nothing while it is there"]),
        ("rm .git/index.lock", &["index.lock a lock: git changes nothing while it is there -"]),
        // Git would wait for it: it is removed.
        ("mkfifo .git/refs/heads/fifo", &[]),
        // What is no reference tells nothing, and hides nothing.
        (
            "for i in {1..3000}; do echo $i; done | (cd .git/refs/heads && xargs touch); git update-ref refs/heads/other HEAD",
            &["refs compared not compared: unreadable, or too many"],
        ),
        // Each time, for a branch could be moved each time.
        (
            "git branch hidden && mkdir -p .git/refs/heads/$(printf 'd/%.0s' {1..1900}) && rm .git/refs/heads/[0-9]* &&
            cd .git/refs/heads/$(printf 'd/%.0s' {1..1900}) && mkdir -p $(printf 'd/%.0s' {1..700})",
            &["refs not compared: unreadable, or too many not compared: unreadable, or too many"],
        ),
        (
            "git update-ref refs/heads/hidden HEAD",
            &["refs not compared: unreadable, or too many not compared: unreadable, or too many"],
        ),
        ("rm -rf .git/refs/heads/d", &["refs not compared: unreadable, or too many compared"]),
    ] {
        assert_eq!(changed(&room, script, &known).await, expected, "{script}");
    }
    let full = Room::with(FenceChoice::Full, repository, |_| {});
    assert_eq!(as_git(&full, COMMIT).await.refs_changed, [], "the tools tell what they do");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_linked_worktree_works_and_its_repository_is_not_armed() {
    let room = Room::new();
    // The repository beside the workspace, the workspace a worktree of it.
    let (main, worktree) = (room.folder.path().join("main"), room.folder.path().join("tree"));
    std::fs::create_dir(&main).unwrap();
    repository(&main);
    git(&main, &["worktree", "add", "-q", worktree.to_str().unwrap()]);
    let before = armed(&main.join(".git"));
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let executor = LocalExecutor::open(config(worktree.clone(), choice)).unwrap();
        let linked = Room { folder: tempfile::tempdir_in("/var/tmp").unwrap(), executor };
        let script = "echo x > \"made-$RANDOM\" && git add . &&
            git -c user.name=a -c user.email=a@example.org commit -qm more && git status --short";
        let committed = as_git(&linked, script).await;
        assert_eq!((committed.exit_code, committed.stdout.text.as_str()), (0, ""), "{committed:?}");
        let arm = "for git in $(git rev-parse --git-common-dir) $(git rev-parse --git-dir); do
            echo evil > $git/hooks/pre-commit; echo evil >> $git/config; echo x > $git/info/attributes; done 2>/dev/null";
        linked.bash(arm, Access::Write).await;
        assert_eq!(armed(&main.join(".git")), before, "{choice:?}");
        let main_files = linked.bash(&format!("echo x > {}/file", main.display()), Access::Write).await;
        assert_ne!(main_files.exit_code, 0, "the other worktree's files: {main_files:?}");
        assert_eq!(std::fs::read_to_string(main.join("file")).unwrap(), "one\n");
    }
    git(&main, &["fsck", "--strict"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_git_file_grants_nothing_outside() {
    // `gitdir`, and what the folder it names has in it; `{ws}` and `{out}` are filled in.
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("{out}", &[]),
        ("../outside", &[]),
        ("{ws}/fake", &[("gitdir", "{ws}/.git"), ("commondir", "{out}")]),
        ("fake", &[("gitdir", "{ws}/.git"), ("commondir", "../../outside")]),
        ("fake", &[("gitdir", "{ws}/.git"), ("commondir", "link"), ("link", "-> {out}")]),
        ("fake/worktrees/x", &[("gitdir", "{ws}/.git"), ("commondir", "../../../../outside")]),
        ("fake/worktrees/x", &[("gitdir", "{ws}/.git"), ("commondir", "{out}")]),
    ];
    for (gitdir, files) in cases {
        for choice in [FenceChoice::Full, FenceChoice::Landlock] {
            let furnish = |ws: &Path| {
                let outside = ws.with_file_name("outside");
                let fill =
                    |text: &str| text.replace("{ws}", ws.to_str().unwrap()).replace("{out}", outside.to_str().unwrap());
                std::fs::write(ws.join(".git"), format!("gitdir: {}\n", fill(gitdir))).unwrap();
                let folder = ws.join(fill(gitdir));
                if !files.is_empty() {
                    std::fs::create_dir_all(&folder).unwrap();
                }
                for (name, content) in *files {
                    match content.strip_prefix("-> ") {
                        Some(target) => symlink(fill(target), folder.join(name)).unwrap(),
                        None => std::fs::write(folder.join(name), fill(content)).unwrap(),
                    }
                }
            };
            let room = Room::with(choice, furnish, |_| {});
            let out = room.outside();
            let script =
                format!("cat {0}/secret.txt; echo x > {0}/made; mkdir {0}/hooks; rm {0}/secret.txt", out.display());
            let result = room.bash(&script, Access::Write).await;
            room.assert_untouched(&format!("{gitdir} {files:?}: {result:?}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_for_a_git_folder_shows_no_command_what_is_outside() {
    // The fence mounts what it finds at these names, and a mount follows links: a private home must not come with it.
    for name in [".git/hooks", ".git/info", ".git/config", ".git"] {
        let home = tempfile::Builder::new().prefix("home-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
        for file in ["secret.txt", ".bashrc", "config"] {
            std::fs::write(home.path().join(file), SECRET).unwrap();
        }
        let room = Room::with(FenceChoice::Full, |_| {}, |config| config.home = home.path().to_owned());
        let inside = home.path().to_str().unwrap();
        // Up to the root exactly: one step more, and the link leads nowhere in the half-built fence.
        let depth = room.ws().join(name).ancestors().count() - 2;
        let relative = format!("{}{}", "../".repeat(depth), &inside[1..]);
        for target in [inside.to_owned(), relative, format!("../{inside}"), "../../outside".to_owned()] {
            git(&room.ws(), &["init", "-q"]);
            let place = room.ws().join(name);
            if place.is_file() {
                std::fs::remove_file(&place).unwrap()
            } else {
                toolhost_sandbox::remove_folder(&place).unwrap()
            }
            symlink(&target, &place).unwrap();
            let look = format!(
                "cat {inside}/* {inside}/.bashrc {name}/* {name}; ls -A {inside} {name}; echo x > {inside}/made"
            );
            let result = room.try_bash(&look, Access::Write, Duration::from_secs(20)).await;
            room.assert_untouched(&format!("{name} -> {target}: {result:?}"));
            assert!(!home.path().join("made").exists(), "{name} -> {target}: {result:?}");
            // The next round starts without it; the command may not be able to remove it any more.
            let git = room.ws().join(".git");
            if git.is_symlink() {
                std::fs::remove_file(&git).unwrap()
            } else {
                toolhost_sandbox::remove_folder(&git).unwrap()
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_root_works_in_another_users_private_repository() {
    if !crate::room::is_root() {
        // Only root can be a guest there.
        return;
    }
    const OWNER: u32 = 54_321;
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let furnish = |ws: &Path| {
            repository(ws);
            let given = std::process::Command::new("chown").arg("-R").arg(format!("{OWNER}:{OWNER}")).arg(ws).status();
            assert!(given.unwrap().success());
            std::fs::set_permissions(ws, PermissionsExt::from_mode(0o700)).unwrap();
            std::fs::set_permissions(ws.join(".git"), PermissionsExt::from_mode(0o700)).unwrap();
        };
        let room = Room::with(choice, furnish, |_| {});
        let committed = as_git(&room, COMMIT).await;
        assert_eq!((committed.exit_code, committed.stdout.text.trim()), (0, "2"), "{committed:?}");
        let owner = room.bash("id -u; stat -c %u .git/index", Access::Write).await;
        assert_eq!(owner.stdout.text, format!("{OWNER}\n{OWNER}\n"), "{owner:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_swapped_in_while_a_fence_is_built_shows_nothing_outside() {
    let home = tempfile::Builder::new().prefix("home-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(home.path().join("secret.txt"), SECRET).unwrap();
    let inside = home.path().to_str().unwrap();
    let furnish = |ws: &Path| {
        let target = format!("{}{}", "../".repeat(ws.join(".git").ancestors().count() - 1), &inside[1..]);
        std::fs::create_dir_all(ws.join(".git/hooks")).unwrap();
        symlink(target, ws.join(".git/link")).unwrap();
    };
    let room = Room::with(FenceChoice::Full, furnish, |config| config.home = home.path().to_owned());
    let swapper = Swapper::start(&room.ws().join(".git"), "hooks", "link");
    let (mut ran, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        match room.try_bash(&format!("cat {inside}/*"), Access::Write, Duration::from_secs(20)).await {
            Ok(result) => {
                ran += 1;
                room.assert_untouched(&format!("{result:?}"));
            }
            Err(error) => {
                refused += 1;
                assert!(matches!(error, toolhost_contract::workspace::Error::FenceBuild { .. }), "{error:?}");
            }
        }
    }
    let swaps = swapper.swaps();
    assert!(swaps > 1000 && ran > 0, "{swaps} swaps, {ran} ran, {refused} refused");
}

/// Somebody outside the fence moves the workspace and leaves a link to another folder at its path.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_where_a_link_at_the_workspaces_path_leads() {
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        for is_repository in [false, true] {
            let furnish = |ws: &Path| {
                if is_repository {
                    repository(ws);
                }
            };
            let room = Room::with(choice, furnish, |_| {});
            let (ws, moved) = (room.ws(), room.ws().with_extension("moved"));
            room.bash("true", Access::Write).await;
            let victim = tempfile::tempdir().unwrap();
            let before = victim.path().metadata().unwrap();
            std::fs::rename(&ws, &moved).unwrap();
            symlink(victim.path(), &ws).unwrap();
            let result = room.try_bash("true", Access::Write, Duration::from_secs(20)).await;
            let after = victim.path().metadata().unwrap();
            // Whatever is made in a folder, also for a moment, changes its time.
            assert_eq!(
                (after.mtime(), after.mtime_nsec()),
                (before.mtime(), before.mtime_nsec()),
                "{choice:?} {is_repository}: {result:?}"
            );
            std::fs::remove_file(&ws).unwrap();
            std::fs::rename(&moved, &ws).unwrap();
            let result = room.bash("echo back", Access::Write).await;
            assert_eq!(result.stdout.text, "back\n", "{choice:?} {is_repository}: {result:?}");
        }
    }
}

/// A folder above the workspace becomes a link to where another repository is at the same name.
#[tokio::test(flavor = "multi_thread")]
async fn commands_and_git_work_in_the_folder_that_was_opened_or_not_at_all() {
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, repository, |_| {});
        room.bash("true", Access::Write).await;
        let ws = room.ws();
        let (above, name) = (ws.parent().unwrap().to_owned(), ws.file_name().unwrap().to_owned());
        let victims = tempfile::tempdir().unwrap();
        let victim = victims.path().join(&name);
        std::fs::create_dir(&victim).unwrap();
        std::fs::set_permissions(victims.path(), PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o777)).unwrap();
        repository(&victim);
        let moved = above.with_extension("moved");
        // Both ways of letting another folder be at the path: a link on the way, and a folder that is moved there.
        for is_link in [true, false] {
            std::fs::rename(&above, &moved).unwrap();
            if is_link {
                symlink(victims.path(), &above).unwrap()
            } else {
                std::fs::rename(victims.path(), &above).unwrap()
            }
            let there = ws.join("made");
            for is_git in [true, false] {
                let mut command =
                    Command::new(["bash", "-c", "echo x > made; git branch planted; git log; true"], TIME);
                command.is_git = is_git;
                let result = room.run(command, Access::Write).await;
                assert!(!there.exists(), "{choice:?} {is_link} {is_git}: {result:?}");
                let planted = ws.join(".git/refs/heads/planted");
                assert!(!planted.exists(), "{choice:?} {is_link} {is_git}: {result:?}");
            }
            if is_link {
                std::fs::remove_file(&above).unwrap()
            } else {
                std::fs::rename(&above, victims.path()).unwrap()
            }
            std::fs::rename(&moved, &above).unwrap();
            let result = room.bash("echo back", Access::Write).await;
            assert_eq!(result.stdout.text, "back\n", "{choice:?} {is_link}: {result:?}");
        }
    }
}

const TIME: Duration = Duration::from_secs(20);
