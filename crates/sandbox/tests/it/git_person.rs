//! A person's git never runs an agent's program: whatever a command does in `.git`, of the workspace, of its worktrees and of
//! its submodules, after it, while it runs, after the host was killed, and with two hosts.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolhost_sandbox::{Access, Command, Error, Executor, Fence, FenceChoice, LocalExecutor, Watch};

use crate::room::{Room, config, rerun_alone, runs_alone, until};

const TIERS: [FenceChoice; 2] = [FenceChoice::Full, FenceChoice::Landlock];
/// How the host that is killed is told its workspace and tier.
const VICTIM: &str = "TOOLHOST_TEST_VICTIM";

/// A person at the workspace: no configuration but the repository's own.
fn git(folder: &Path, args: &[&str]) -> std::process::Output {
    std::process::Command::new("git")
        .args(["-c", "user.name=p", "-c", "user.email=p@example.org", "-c", "init.defaultBranch=main"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap()
}

fn sure(folder: &Path, args: &[&str]) {
    let output = git(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn commit(folder: &Path, file: &str) {
    std::fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
    std::fs::write(folder.join(file), "one\n").unwrap();
    sure(folder, &["add", "-A"]);
    sure(folder, &["commit", "-qm", "first"]);
}

/// A repository with a submodule in a submodule in a subfolder, a worktree inside, a linked hook, hooks of its own in a
/// subfolder of the workspace, and an included configuration.
fn furnish(ws: &Path) {
    let beside = ws.parent().unwrap().join("outside/origin");
    for name in ["inner", "outer"] {
        std::fs::create_dir_all(beside.join(name)).unwrap();
        sure(&beside.join(name), &["init", "-q"]);
        commit(&beside.join(name), "file");
    }
    let inner = beside.join("inner");
    sure(&beside.join("outer"), &["submodule", "--quiet", "add", inner.to_str().unwrap(), "deep/inner"]);
    sure(&beside.join("outer"), &["commit", "-qm", "inner"]);
    sure(ws, &["init", "-q"]);
    commit(ws, "file");
    let outer = beside.join("outer");
    sure(ws, &["submodule", "--quiet", "add", outer.to_str().unwrap(), "libs/outer"]);
    sure(ws, &["submodule", "--quiet", "update", "--init", "--recursive"]);
    std::fs::write(ws.join(".gitignore"), "/tree\n").unwrap();
    commit(ws, "scripts/hook");
    sure(ws, &["worktree", "add", "-q", "-b", "other", "tree"]);
    commit(ws, "tools/gitconfig");
    std::fs::write(ws.join("tools/gitconfig"), "[alias]\n\tst = status\n").unwrap();
    sure(ws, &["config", "include.path", "../tools/gitconfig"]);
    std::fs::set_permissions(ws.join("scripts/hook"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(ws.join("scripts/hook"), "#!/bin/sh\n").unwrap();
    symlink("../../scripts/hook", ws.join(".git/hooks/pre-commit")).unwrap();
    sure(ws, &["remote", "add", "origin", outer.to_str().unwrap()]);
    commit(ws, "last");
}

/// Whoever runs programs of the agent's leaves this.
fn mark(ws: &Path) -> PathBuf {
    ws.parent().unwrap().join("outside/ran")
}

/// What a person, an editor or a prompt does with git, everywhere in the workspace.
fn use_git(ws: &Path, after: &str) {
    let elsewhere: &[&[&str]] = &[&["status", "--short"], &["commit", "-qm", "x"]];
    let here: &[&[&str]] =
        &[&["status"], &["diff", "HEAD"], &["add", "new"], &["commit", "-m", "person's"], &["fetch", "-q"]];
    let folders = ["libs/outer", "libs/outer/deep/inner", "tree", "scripts"].map(|name| (name, elsewhere));
    for (name, commands) in std::iter::once(("", here)).chain(folders) {
        let folder = ws.join(name);
        if !folder.is_dir() {
            continue;
        }
        // Where the command has closed the folder, git only reads.
        let _ = std::fs::write(folder.join("new"), after);
        for args in commands {
            git(&folder, args);
            assert!(!mark(ws).exists(), "{name}: `git {}` ran a program after `{after}`", args.join(" "));
        }
    }
}

/// What is planted: it leaves the mark.
fn fill(script: &str, ws: &Path) -> String {
    let evil = "mkdir -p E/objects E/refs/heads E/hooks; echo 'ref: refs/heads/main' > E/HEAD;
        printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n fsmonitor = touch MARK; false\\n' > E/config;
        for h in pre-commit post-index-change post-checkout reference-transaction; do
            printf '#!/bin/sh\\ntouch MARK\\n' > E/hooks/$h; chmod +x E/hooks/$h; done";
    let hook = "printf '#!/bin/sh\\ntouch MARK\\n'";
    let config = "printf '[core]\\n fsmonitor = touch MARK; false\\n'";
    let script = script.replace("EVIL(", "evil() { ").replace(")EVIL", "; }; ");
    let script = format!("evil() {{ E=$1; {}; }}; {script}", evil.replace("E/", "$E/"));
    script.replace("HOOK", hook).replace("CONFIG", config).replace("MARK", mark(ws).to_str().unwrap())
}

/// The attack in one command, which says when all is planted and goes on for some seconds.
fn planting(attack: &str, ws: &Path, seconds: &str) -> String {
    // Opened before: the attack may close the folder.
    format!("exec 9>planted; ({}) 2>/dev/null; echo x >&9; sleep {seconds}", fill(attack, ws).replace('|', ";"))
}

fn planted(ws: &Path) -> bool {
    std::fs::metadata(ws.join("planted")).is_ok_and(|file| file.len() > 0)
}

/// Commands one after the other, in one round. `|` parts them.
const ATTACKS: &[&str] = &[
    // By git's own words, and by writing its files.
    "git config core.fsmonitor 'touch MARK; false'",
    "CONFIG >> .git/config",
    "CONFIG > c; mv c .git/config",
    "ln -sf ../c .git/config; CONFIG > c",
    "HOOK > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change",
    "rm -rf .git/hooks; mkdir .git/hooks; HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "HOOK > h; chmod +x h; ln -sf ../../h .git/hooks/pre-commit",
    "mv .git .git2; git init -q; git config core.fsmonitor 'touch MARK; false'",
    "mv .git .git2; evil .git",
    "evil e; mv .git .git2; echo 'gitdir: e' > .git",
    // What a link of the person's leads to.
    "HOOK > scripts/hook",
    "rm scripts/hook; HOOK > scripts/hook; chmod +x scripts/hook",
    "mv scripts s2; mkdir scripts; HOOK > scripts/hook; chmod +x scripts/hook",
    "rm .git/hooks/pre-commit; HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    // What the person's configuration includes.
    "CONFIG > tools/gitconfig",
    "mv tools t2; mkdir tools; CONFIG > tools/gitconfig",
    // The repository said to be elsewhere.
    "evil e; echo ../e > .git/commondir",
    "evil e; cp -r .git/objects .git/refs e/; echo ../e > .git/commondir; chmod 555 .git",
    "evil e; echo ../e > .git/commondir; chmod 555 .git .; true",
    "CONFIG > .git/config.worktree; git config extensions.worktreeConfig true",
    "chmod 777 .git/hooks; HOOK > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; chmod 555 .git/hooks",
    "HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; chmod 000 .git/hooks .git",
    // Through links in the middle of names that are put back.
    "mkdir -p .git/modules/x/hooks; CONFIG > .git/modules/x/config; HOOK > .git/modules/x/hooks/pre-commit; chmod +x .git/modules/x/hooks/pre-commit | mv .git/modules/x .git/modules/y; ln -s .. .git/modules/x",
    "mkdir -p .git/worktrees/x; CONFIG > .git/worktrees/x/config.worktree | mv .git/worktrees/x .git/worktrees/y; ln -s .. .git/worktrees/x",
    "mv .git/modules m2; ln -s .. .git/modules",
    // Submodules, at any depth.
    "CONFIG >> .git/modules/libs/outer/config",
    "CONFIG >> .git/modules/libs/outer/modules/deep/inner/config",
    "HOOK > .git/modules/libs/outer/hooks/pre-commit; chmod +x .git/modules/libs/outer/hooks/pre-commit",
    "rm libs/outer/.git; evil libs/outer/.git",
    "rm libs/outer/deep/inner/.git; evil libs/outer/deep/inner/.git",
    "evil e; echo 'gitdir: ../../e' > libs/outer/.git",
    "mv libs/outer libs/o2; mkdir libs/outer; evil libs/outer/.git",
    "mv libs l2; mkdir -p libs/outer; evil libs/outer/.git",
    "mv libs/outer/deep libs/outer/d2; mkdir -p libs/outer/deep/inner; evil libs/outer/deep/inner/.git",
    // A repository of its own, added to one of the person's.
    "mkdir lib; git init -q lib; (cd lib; git -c user.name=a -c user.email=a commit -q --allow-empty -m x); git add lib; cd lib; git config core.fsmonitor 'touch MARK; false'",
    "cd libs/outer; mkdir lib; git init -q lib; (cd lib; git -c user.name=a -c user.email=a commit -q --allow-empty -m x); git add lib; cd lib; git config core.fsmonitor 'touch MARK; false'",
    // Worktrees.
    "rm tree/.git; evil tree/.git",
    "mv tree t3; mkdir tree; evil tree/.git",
    "evil e; echo ../../../e > .git/worktrees/tree/commondir",
    "CONFIG > .git/worktrees/tree/config.worktree; git config extensions.worktreeConfig true",
    // Trees without end, in the way of what is put back.
    "mkdir toolhost.toml; cd toolhost.toml; python3 -c 'import os\nfor i in range(3000): os.mkdir(\"d\"); os.chdir(\"d\")'",
    "rm -rf .git/commondir; mkdir .git/commondir; cd .git/commondir && python3 -c 'import os\nfor i in range(3000): os.mkdir(\"d\"); os.chdir(\"d\")'",
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_a_command_does_in_git_runs_when_a_person_uses_git() {
    for choice in TIERS {
        let room = Room::with(choice, furnish, |_| {});
        let config = std::fs::read(room.ws().join(".git/config")).unwrap();
        use_git(&room.ws(), "nothing");
        for attack in ATTACKS {
            for part in fill(attack, &room.ws()).split('|') {
                let result = room.try_bash(part, Access::Write, Duration::from_secs(60)).await;
                use_git(&room.ws(), &format!("{attack} in {choice:?}: {result:?}"));
            }
            let now = std::fs::read(room.ws().join(".git/config")).ok();
            assert!(now.as_ref() == Some(&config), "{attack} in {choice:?}: {now:?}");
            assert!(room.ws().join(".git/objects").is_dir(), "{attack} in {choice:?}");
            let clean = "chmod -fR u+rwx .; rm -rf e m2 c h s2 t2 l2 t3 lib libs/outer/lib toolhost-planted-*; true";
            room.bash(clean, Access::Write).await;
            assert!(!room.ws().join("toolhost.toml").exists(), "{attack} in {choice:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_full_fence_nothing_runs_while_the_command_does_either() {
    let room = Room::with(FenceChoice::Full, furnish, |_| {});
    for attack in ATTACKS.iter().skip(2).step_by(3) {
        let script = planting(attack, &room.ws(), "600");
        let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
        let person = async {
            until("it is planted", || planted(&room.ws())).await;
            use_git(&room.ws(), attack);
        };
        tokio::select! {
            ended = running => panic!("`{attack}` ended: {ended:?}"),
            () = person => {}
        }
        let clean =
            "chmod -fR u+rwx .; rm -rf planted e m2 c h s2 t2 l2 t3 lib libs/outer/lib toolhost-planted-*; true";
        room.bash(clean, Access::Write).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_without_a_repository_does_not_become_an_agents() {
    for choice in TIERS {
        let room = Room::with(choice, |_| {}, |_| {});
        for attack in [
            "evil .",
            "rmdir HEAD; evil .",
            "mkdir -p objects refs; CONFIG > config; sleep 0.1; echo 'ref: refs/heads/main' > HEAD",
            "git init -q; git config core.fsmonitor 'touch MARK; false'",
            "evil .git",
            "evil e; echo 'gitdir: e' > .git",
            "evil e; ln -s e .git",
            "evil .; rm -rf .git",
            "rmdir .git; evil .git",
            "mv .git g; evil .git",
        ] {
            let result = room.bash(&fill(attack, &room.ws()), Access::Write).await;
            for name in [".git", "HEAD"] {
                assert!(!room.ws().join(name).exists(), "{name} after `{attack}` in {choice:?}: {result:?}");
            }
            use_git(&room.ws(), attack);
            room.bash("chmod -fR u+rwx .; rm -rf * 2>/dev/null; true", Access::Write).await;
        }
    }
}

/// How a person's repository leads git through links, what a command does with them, and whether the full fence holds it while
/// that runs.
const LINKED: &[(&str, &str, bool)] = &[
    ("mv .git/config real; ln -s real l1; ln -s ../l1 .git/config", "rm l1; cp real l1; CONFIG >> l1", false),
    (
        "mkdir cd; mv .git/config cd/real; ln -s cd dl; ln -s ../dl/real .git/config",
        "rm dl; mkdir dl; CONFIG > dl/real",
        false,
    ),
    ("mv .git/hooks gh; ln -s gh l1; ln -s ../l1 .git/hooks", "rm l1; evil e; mv e/hooks l1", false),
    (
        "mkdir x; mv .git/hooks x/gh; ln -s x y; ln -s ../y/gh .git/hooks",
        "rm y; mkdir y; evil e; mv e/hooks y/gh",
        false,
    ),
    (
        "mkdir s; echo > s/h; chmod +x s/h; ln -s s/h l; ln -s ../../l .git/hooks/pre-commit",
        "rm l; HOOK > l; chmod +x l",
        false,
    ),
    ("mv .git real.git; ln -s real.git lg; echo 'gitdir: lg' > .git", "rm lg; evil lg", false),
    (
        "mv .git real.git; echo 'gitdir: real.git' > .git",
        "CONFIG >> real.git/config; evil e; mv e/hooks/* real.git/hooks",
        true,
    ),
    ("git config include.path ../gc/x", "mkdir -p gc; CONFIG > gc/x", true),
    ("git config include.path ../inc; printf '[include]\\npath = n2\\n' > inc", "CONFIG > n2", true),
    ("git config includeIf.onbranch:main.path ../ib", "CONFIG > ib", true),
    ("rm -r .git/hooks; ln -s ../githooks .git/hooks", "evil e; mv e/hooks githooks", true),
    ("git config core.hooksPath .husky/_", "mkdir -p .husky; evil e; mv e/hooks .husky/_", true),
    ("git config core.hooksPath file; echo > file", "rm file; evil e; mv e/hooks file", true),
];

#[tokio::test(flavor = "multi_thread")]
async fn links_and_names_that_are_not_there_yet_lead_no_git_astray() {
    for choice in TIERS {
        for (person, attack, held) in LINKED {
            let furnish = |ws: &Path| {
                sure(ws, &["init", "-q"]);
                commit(ws, "file");
                let prepared = std::process::Command::new("bash").args(["-ec", person]).current_dir(ws).status();
                assert!(prepared.unwrap().success(), "{person}");
            };
            let room = Room::with(choice, furnish, |_| {});
            use_git(&room.ws(), "nothing");
            if *held && choice == FenceChoice::Full {
                let script = planting(attack, &room.ws(), "600");
                let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
                let looking = async {
                    until("it is planted", || planted(&room.ws())).await;
                    use_git(&room.ws(), &format!("{person}: {attack}, while it runs"));
                };
                tokio::select! {
                    ended = running => panic!("`{attack}` ended: {ended:?}"),
                    () = looking => {}
                }
            }
            let result = room.try_bash(&fill(attack, &room.ws()), Access::Write, Duration::from_secs(60)).await;
            use_git(&room.ws(), &format!("{person}: {attack} in {choice:?}: {result:?}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submodule_whose_name_is_no_text_stops_commands() {
    use std::os::unix::ffi::OsStrExt;
    let furnish = |ws: &Path| {
        sure(ws, &["init", "-q"]);
        let inner = ws.join(std::ffi::OsStr::from_bytes(b"\xffx/s"));
        std::fs::create_dir_all(&inner).unwrap();
        sure(&inner, &["init", "-q"]);
        commit(&inner, "file");
        commit(ws, "file");
    };
    for choice in TIERS {
        let room = Room::with(choice, furnish, |_| {});
        let refused = room.try_bash("true", Access::Write, Duration::from_secs(60)).await;
        assert!(matches!(refused, Err(Error::Pattern { .. })), "{choice:?}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_of_the_persons_own_that_leads_into_the_workspace_is_held() {
    for choice in TIERS {
        let home = tempfile::Builder::new().prefix("home-").tempdir_in("/var/tmp").unwrap();
        std::fs::write(home.path().join("usual"), "").unwrap();
        let at = home.path().to_owned();
        let furnish = |ws: &Path| {
            sure(ws, &["init", "-q"]);
            std::fs::create_dir(ws.join("dot")).unwrap();
            std::fs::write(ws.join("dot/gc"), "[core]\n\thooksPath = .ghooks\n").unwrap();
            symlink(ws.join("dot/gc"), at.join(".gitconfig")).unwrap();
        };
        let room = Room::with(choice, furnish, |config| config.home = at.clone());
        for attack in ["CONFIG >> dot/gc", "evil e; mv e/hooks .ghooks", "mv dot d2; mkdir dot; CONFIG > dot/gc"] {
            let result = room.try_bash(&fill(attack, &room.ws()), Access::Write, Duration::from_secs(60)).await;
            let text = std::fs::read_to_string(room.ws().join("dot/gc")).unwrap();
            assert_eq!(text, "[core]\n\thooksPath = .ghooks\n", "`{attack}` in {choice:?}: {result:?}");
            assert!(!room.ws().join(".ghooks/pre-commit").exists(), "`{attack}` in {choice:?}: {result:?}");
            room.bash("rm -rf e d2 toolhost-planted-*", Access::Write).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_at_once_leave_neither_a_repository_nor_what_held_its_place() {
    let room = Room::with(FenceChoice::Full, |_| {}, |_| {});
    let other = LocalExecutor::open(config(room.ws(), FenceChoice::Full)).unwrap();
    let fence = Fence { workspace: Access::Write, network: Vec::new() };
    for round in 0..10 {
        let script =
            format!("sleep 0.0{round}; mkdir .git/x 2>/dev/null || git init -q 2>/dev/null; evil() {{ :; }}; ls -A");
        let there = Command::new(["bash", "-c", &script], Duration::from_secs(20));
        let runs = (0..4).map(|_| room.bash(&script, Access::Write));
        let (_, elsewhere) =
            tokio::join!(futures::future::join_all(runs), other.run(there, &fence, Watch::unattended()));
        elsewhere.unwrap();
    }
    let left: Vec<_> = std::fs::read_dir(room.ws()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_host_does_not_take_what_is_planted_for_the_truth() {
    for choice in TIERS {
        let room = Room::with(choice, furnish, |_| {});
        let second = LocalExecutor::open(config(room.ws(), choice)).unwrap();
        let fence = Fence { workspace: Access::Write, network: Vec::new() };
        for attack in ATTACKS {
            let script = planting(attack, &room.ws(), "0.3");
            let overlapping = async {
                until("it is planted", || planted(&room.ws())).await;
                let command = Command::new(["sleep", "0.6"], Duration::from_secs(20));
                // Refused, where what it needs was taken away; that is no harm.
                let _ = second.run(command, &fence, Watch::unattended()).await;
            };
            let (first, ()) = tokio::join!(room.try_bash(&script, Access::Write, Duration::from_secs(60)), overlapping);
            use_git(&room.ws(), &format!("{attack} in {choice:?}: {first:?}"));
            let clean =
                "chmod -fR u+rwx .; rm -rf planted e m2 c h s2 t2 l2 t3 lib libs/outer/lib toolhost-planted-*; true";
            room.bash(clean, Access::Write).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_host_has_left_is_put_back_by_the_next() {
    const NAME: &str = "git_person::what_a_killed_host_has_left_is_put_back_by_the_next";
    #[expect(clippy::disallowed_methods, reason = "this test starts itself, and says so by a variable")]
    let victim = std::env::var(VICTIM);
    if let Ok(victim) = victim
        && runs_alone(NAME)
    {
        let (tier, ws) = victim.split_once(':').unwrap();
        let choice = if tier == "full" { FenceChoice::Full } else { FenceChoice::Landlock };
        let executor = LocalExecutor::open(config(PathBuf::from(ws), choice)).unwrap();
        let script = std::fs::read_to_string(Path::new(ws).with_file_name("script")).unwrap();
        let fence = Fence { workspace: Access::Write, network: Vec::new() };
        let command = Command::new(["bash", "-c", &script], Duration::from_secs(600));
        executor.run(command, &fence, Watch::unattended()).await.unwrap();
        return;
    }
    for (tier, choice) in [("full", FenceChoice::Full), ("landlock", FenceChoice::Landlock)] {
        let room = Room::with(choice, furnish, |_| {});
        for attack in ATTACKS.iter().step_by(4) {
            let script = planting(attack, &room.ws(), "600");
            std::fs::write(room.ws().with_file_name("script"), script).unwrap();
            let ws = format!("{tier}:{}", room.ws().display());
            let mut host = rerun_alone(NAME, (VICTIM, &ws)).stdout(std::process::Stdio::null()).spawn().unwrap();
            until("it is planted", || planted(&room.ws())).await;
            host.kill().unwrap();
            host.wait().unwrap();
            // Its command ends with it; the next host may come before that.
            let next = async || {
                let next = LocalExecutor::open(config(room.ws(), choice)).unwrap();
                let fence = Fence { workspace: Access::Write, network: Vec::new() };
                let command = Command::new(["true"], Duration::from_secs(20));
                next.run(command, &fence, Watch::unattended()).await
            };
            let next = next().await;
            use_git(&room.ws(), &format!("{attack} in {choice:?}: {next:?}"));
            let clean =
                "chmod -fR u+rwx .; rm -rf planted e m2 c h s2 t2 l2 t3 lib libs/outer/lib toolhost-planted-*; true";
            room.bash(clean, Access::Write).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_is_gone_is_told_and_no_other_takes_its_place() {
    let room = Room::with(FenceChoice::Landlock, furnish, |_| {});
    let script = fill("rm -rf .git; evil .git", &room.ws());
    let ended = room.try_bash(&script, Access::Write, Duration::from_secs(60)).await;
    assert!(matches!(&ended, Err(Error::NotRestored { names }) if names == ".git"), "{ended:?}");
    use_git(&room.ws(), &script);
    assert!(room.try_bash("true", Access::Write, Duration::from_secs(20)).await.is_err());
    // A person has made it anew, and says so.
    sure(&room.ws(), &["init", "-q"]);
    assert!(room.try_bash("true", Access::Write, Duration::from_secs(20)).await.is_err());
    room.executor.accept_git().unwrap();
    assert_eq!(room.bash("true", Access::Write).await.exit_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_putting_back_fails_commands_are_refused_until_it_succeeds() {
    let room = Room::with(FenceChoice::Landlock, furnish, |_| {});
    // Out of the workspace's reach: a repository that is gone cannot be made anew.
    let script = "touch ready; until [ -e go ]; do sleep 0.05; done";
    let running = room.try_bash(script, Access::Write, Duration::from_secs(60));
    let away = room.ws().with_file_name("away");
    let taking = async {
        until("it runs", || room.ws().join("ready").exists()).await;
        std::fs::rename(room.ws().join(".git"), &away).unwrap();
        std::fs::write(room.ws().join("go"), "").unwrap();
    };
    let (ended, ()) = tokio::join!(running, taking);
    assert!(matches!(&ended, Err(Error::NotRestored { names }) if names.contains(".git")), "{ended:?}");
    let refused = room.try_bash("true", Access::Write, Duration::from_secs(20)).await;
    assert!(matches!(refused, Err(Error::NotRestored { .. })), "{refused:?}");
    std::fs::rename(&away, room.ws().join(".git")).unwrap();
    assert_eq!(room.bash("true", Access::Write).await.exit_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn file_tools_do_not_change_what_the_persons_git_obeys() {
    use toolhost_sandbox::WriteGuard;
    let path = crate::room::path;
    for choice in TIERS {
        let room = Room::with(choice, furnish, |_| {});
        for name in ["scripts/hook", "tools/gitconfig", "libs/outer/.git", "tree/.git"] {
            let written = room.executor.write(&path(name), b"x".to_vec(), WriteGuard::default()).await;
            assert!(matches!(written, Err(Error::GitObeys { .. } | Error::GitInternal { .. })), "{name}: {written:?}");
            assert!(room.executor.remove(&path(name), None).await.is_err(), "{name}");
        }
        for name in ["scripts", "libs", "libs/outer", "tools", "tree"] {
            let moved = room.executor.rename(&path(name), &path("elsewhere")).await;
            assert!(matches!(moved, Err(Error::GitObeys { .. })), "{name}: {moved:?}");
        }
        let written = room.executor.write(&path("scripts/other"), b"x".to_vec(), WriteGuard::default()).await;
        assert!(written.is_ok(), "{written:?}");
    }
}
