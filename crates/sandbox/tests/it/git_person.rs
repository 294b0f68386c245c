//! A person's git never runs an agent's program: whatever a command does in `.git`, of the workspace, of its worktrees and of
//! its submodules, after it, while it runs, after the host was killed, and with two hosts.

mod accepted;
mod alone;
mod branches;
mod exchanged;
mod hard_links;
mod indexes;
mod opened;
mod orphans;
mod overlap;
mod plant;
mod unfilled;

use std::cell::Cell;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Error, Executor, Fence, Watch};
use toolhost_sandbox::{FenceChoice, LocalExecutor};

use self::plant::{
    AROUND, CLEAN, LATER, LINKED, Template, attacks, clean, commit, fill, git, has_text, mark, planting, prepare, sure,
    use_all_of_git, use_git,
};
use crate::room::{Room, config, is_root, rerun_alone, runs_alone, until};

const TIERS: [FenceChoice; 2] = [FenceChoice::Full, FenceChoice::Landlock];
/// How the host that is killed is told its workspace and tier.
const VICTIM: &str = "TOOLHOST_TEST_VICTIM";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_a_command_does_in_git_runs_when_a_person_uses_git() {
    let template = Template::new();
    for choice in TIERS {
        let room = Room::with(choice, |ws| template.fill(ws), |_| {});
        let config = std::fs::read(room.ws().join(".git/config")).unwrap();
        use_all_of_git(&room.ws(), "nothing");
        for attack in attacks(1) {
            for part in fill(attack, &room.ws()).split('|') {
                let result = room.try_bash(part, Access::Write, Duration::from_secs(60)).await;
                use_git(&room.ws(), &format!("{attack} in {choice:?}: {result:?}"));
            }
            let now = std::fs::read(room.ws().join(".git/config")).ok();
            assert!(now.as_ref() == Some(&config), "{attack} in {choice:?}: {now:?}");
            assert!(room.ws().join(".git/objects").is_dir(), "{attack} in {choice:?}");
            clean(&room.ws());
            assert!(!room.ws().join("toolhost.toml").exists(), "{attack} in {choice:?}");
        }
        use_all_of_git(&room.ws(), "all attacks");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_full_fence_nothing_runs_while_the_command_does_either() {
    let room = Room::with(FenceChoice::Full, |ws| Template::new().fill(ws), |_| {});
    for attack in attacks(3) {
        let script = planting(attack, &room.ws(), "sleep 600");
        let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
        let person = async {
            until("it is planted", || has_text(&room.ws(), "planted")).await;
            use_git(&room.ws(), attack);
        };
        tokio::select! {
            ended = running => panic!("`{attack}` ended: {ended:?}"),
            () = person => {}
        }
        room.bash(CLEAN, Access::Write).await;
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
                let script = planting(attack, &room.ws(), "sleep 600");
                let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
                let looking = async {
                    until("it is planted", || has_text(&room.ws(), "planted")).await;
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
async fn what_settings_name_is_held_also_where_git_does_not_read_them_yet() {
    for choice in TIERS {
        for (person, attack, then) in LATER {
            let room = Room::with(choice, |ws| prepare(ws, person), |_| {});
            let result = room.try_bash(&fill(attack, &room.ws()), Access::Write, Duration::from_secs(60)).await;
            let mut later = std::process::Command::new("bash");
            later.args(["-c", then]).current_dir(room.ws());
            for (name, value) in [("GIT_AUTHOR_NAME", "p"), ("GIT_COMMITTER_NAME", "p"), ("EMAIL", "p@example.org")] {
                later.env(name, value);
            }
            later.status().unwrap();
            use_git(&room.ws(), &format!("{person}: {attack} in {choice:?}: {result:?}"));
        }
    }
}

/// Each file of the workspace would be a hook.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_workspace_itself_is_the_folder_of_hooks_commands_are_refused() {
    for choice in TIERS {
        for person in ["git config core.hooksPath \"$PWD\"", "mkdir q; git config core.hooksPath q/.."] {
            let room = Room::with(choice, |ws| prepare(ws, person), |_| {});
            let result = room.try_bash("true", Access::Write, Duration::from_secs(20)).await;
            assert!(matches!(result, Err(Error::HooksEverywhere)), "{person} in {choice:?}: {result:?}");
            assert!(room.try_bash("true", Access::Read, Duration::from_secs(20)).await.is_ok());
        }
    }
}

/// What a command has put in the place of a repository keeps the next host neither from starting nor from putting it back.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_killed_hosts_command_left_the_next_host_opens_and_puts_it_back() {
    const NAME: &str = "git_person::what_a_killed_host_has_left_is_put_back_by_the_next";
    for attack in [
        "mv .git ev; ln -s ev .git; cd ev; CONFIG >> config",
        "cp -a .git/HEAD .git/objects .git/refs .; mv .git x; CONFIG > config",
        "mv .git gg; mkfifo .git",
        "mkfifo .git/commondir",
        "mkfifo .git/gitdir",
    ] {
        let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
        let script = planting(attack, &room.ws(), "sleep 600");
        std::fs::write(room.ws().with_file_name("script"), script).unwrap();
        let ws = format!("landlock:{}", room.ws().display());
        let mut host = rerun_alone(NAME, (VICTIM, &ws)).stdout(std::process::Stdio::null()).spawn().unwrap();
        until("it is planted", || has_text(&room.ws(), "planted")).await;
        host.kill().unwrap();
        host.wait().unwrap();
        let root = room.ws();
        let opening = tokio::task::spawn_blocking(move || LocalExecutor::open(config(root, FenceChoice::Landlock)));
        let opened = tokio::time::timeout(Duration::from_secs(60), opening).await;
        let opened = opened.unwrap().unwrap().map(drop);
        assert!(opened.is_ok(), "{attack}: {opened:?}");
        let planted = ["HEAD", ".git/commondir", ".git/gitdir"];
        let left: Vec<_> = planted.iter().filter(|name| room.ws().join(name).symlink_metadata().is_ok()).collect();
        assert!(left.is_empty() && room.ws().join(".git").symlink_metadata().unwrap().is_dir(), "{attack}: {left:?}");
        use_git(&room.ws(), attack);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_repositories_around_the_workspace_and_other_working_trees_obey_is_held() {
    for choice in TIERS {
        for (person, folder, attack, places) in AROUND {
            let room = Room::with(choice, |ws| prepare(ws, person), |config| config.root.push(folder));
            let result = room.try_bash(&fill(attack, &room.ws()), Access::Write, Duration::from_secs(60)).await;
            for place in *places {
                let at = room.ws().join(place);
                for args in [&["status"][..], &["commit", "-q", "--allow-empty", "-m", "x"], &["submodule", "status"]] {
                    git(&at, args);
                    let after = format!("{person}: {attack} in {choice:?}: {result:?}");
                    assert!(!mark(&room.ws()).exists(), "`git {}` in `{place}` after {after}", args.join(" "));
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_sets_around_the_workspace_or_outside_it_later_is_held_too() {
    for choice in TIERS {
        for person in [
            "git config core.hooksPath sub/.husky",
            "printf '[core]\\nhooksPath = .husky\\n' > ../outside/inc",
            "git -C wt config --worktree core.hooksPath sub/.husky",
        ] {
            let furnish =
                "mkdir sub; git config include.path ../../outside/inc; git config extensions.worktreeConfig true
                git worktree add -q wt; mkdir wt/sub";
            let room = Room::with(choice, |ws| prepare(ws, furnish), |config| config.root.push("."));
            room.bash("true", Access::Write).await;
            let set = std::process::Command::new("bash").args(["-ec", person]).current_dir(room.ws()).status();
            assert!(set.unwrap().success(), "{person}");
            let attack = "for d in sub . wt/sub; do mkdir -p $d/.husky; evil e; mv e/hooks/* $d/.husky; done";
            let result = room.try_bash(&fill(attack, &room.ws()), Access::Write, Duration::from_secs(60)).await;
            for place in ["", "wt"] {
                git(&room.ws().join(place), &["commit", "-q", "--allow-empty", "-m", "x"]);
                assert!(!mark(&room.ws()).exists(), "{person} in {choice:?}, in `{place}`: {result:?}");
            }
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
async fn a_line_end_in_the_path_of_a_repository_hides_nothing() {
    let furnish = |ws: &Path| {
        sure(ws, &["init", "-q"]);
        let inner = ws.join("in\nner");
        std::fs::create_dir(&inner).unwrap();
        sure(&inner, &["init", "-q"]);
        commit(&inner, "file");
        symlink("../../../hook", inner.join(".git/hooks/pre-commit")).unwrap();
        commit(ws, "hook");
    };
    for choice in TIERS {
        let room = Room::with(choice, furnish, |_| {});
        let result = room.bash("echo evil > hook", Access::Write).await;
        assert_eq!(std::fs::read_to_string(room.ws().join("hook")).unwrap(), "one\n", "{choice:?}: {result:?}");
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

/// Nothing can be written then, but what was planted can be taken away.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_planted_does_not_stay_on_a_full_disk() {
    if !is_root() {
        // Nobody else mounts a small disk.
        return;
    }
    for choice in TIERS {
        for (option, fill_up) in [
            ("size=2m", "head -c 9M /dev/zero > big; head -c 9M /dev/zero > big2"),
            ("nr_inodes=80", "for n in {1..99}; do > f$n; done"),
        ] {
            let furnish = |ws: &Path| {
                let mount = ["-t", "tmpfs", "-o", option, "none", ws.to_str().unwrap()];
                assert!(std::process::Command::new("mount").args(mount).status().unwrap().success());
                sure(ws, &["init", "-q"]);
            };
            let room = Room::with(choice, furnish, |_| {});
            let ws = room.ws();
            let attack = fill(&format!("CONFIG >> .git/config; {fill_up}; {fill_up} 2>/dev/null"), &ws);
            let result = room.try_bash(&attack, Access::Write, Duration::from_secs(60)).await;
            use_git(&ws, &format!("{option} in {choice:?}: {result:?}"));
            std::process::Command::new("bash").args(["-c", "rm -f big* f*"]).current_dir(&ws).status().unwrap();
            room.bash("true", Access::Write).await;
            let config = std::fs::read_to_string(ws.join(".git/config")).unwrap();
            assert!(config.contains("[core]"), "{option} in {choice:?}: {config:?} was not put back");
            let unmount = std::process::Command::new("umount").args(["-l", ws.to_str().unwrap()]).status();
            assert!(unmount.unwrap().success());
        }
    }
}

/// Git looks for what a file includes beside the name by which it opened the file, which may be a link from elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_linked_configuration_includes_is_held_where_git_finds_it() {
    for choice in TIERS {
        let home = tempfile::Builder::new().prefix("home-").tempdir_in("/var/tmp").unwrap();
        let at = home.path().to_owned();
        let furnish = |ws: &Path| {
            sure(ws, &["init", "-q"]);
            std::fs::create_dir(ws.join("dot")).unwrap();
            let from_home = format!("../../..{}", ws.display());
            std::fs::write(ws.join("dot/gc"), format!("[include]\n\tpath = {from_home}/first\n")).unwrap();
            symlink(ws.join("dot/gc"), at.join(".gitconfig")).unwrap();
            // Through a link that lies outside, which includes one more.
            std::fs::write(ws.join("dot/linked"), format!("[include]\n\tpath = {from_home}/second\n")).unwrap();
            symlink(ws.join("dot/linked"), at.join("link")).unwrap();
            sure(ws, &["config", "include.path", at.join("link").to_str().unwrap()]);
        };
        let room = Room::with(choice, furnish, |config| config.home = at.clone());
        for name in ["first", "second"] {
            let attack = fill(&format!("CONFIG > {name}"), &room.ws());
            let result = room.try_bash(&attack, Access::Write, Duration::from_secs(60)).await;
            let text = std::fs::read_to_string(room.ws().join(name)).unwrap_or_default();
            assert_eq!(text, "", "`{name}` in {choice:?}: {result:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_included_file_is_found_in_each_way_in_which_git_writes_paths_or_commands_stop() {
    for choice in TIERS {
        let furnish = |ws: &Path| {
            sure(ws, &["init", "-q"]);
            let config = ws.join(".git/config");
            let mut text = std::fs::read_to_string(&config).unwrap();
            text += &format!("[include]\n\tpath = ~root/..{}/of-root ; a comment\n", ws.display());
            text += "[include]\n\tpath = \"../two\\nlines\"\n[include]\n\tpath = ../goes\\\n-on # a comment\n";
            std::fs::write(&config, text).unwrap();
        };
        let room = Room::with(choice, furnish, |_| {});
        for name in ["of-root", "two\nlines", "goes-on"] {
            let attack = fill(&format!("CONFIG > $'{}'", name.escape_default()), &room.ws());
            let result = room.try_bash(&attack, Access::Write, Duration::from_secs(60)).await;
            let text = std::fs::read_to_string(room.ws().join(name)).unwrap_or_default();
            assert_eq!(text, "", "{name:?} in {choice:?}: {result:?}");
        }
        for form in ["%(prefix)/../x", "%(prefix)/x"] {
            let room = Room::with(choice, |ws| sure(ws, &["init", "-q"]), |_| {});
            sure(&room.ws(), &["config", "include.path", form]);
            let refused = room.try_bash("true", Access::Write, Duration::from_secs(60)).await;
            assert!(
                matches!(&refused, Err(error) if error.to_string().contains(form)),
                "{form}, {choice:?}: {refused:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_at_once_leave_neither_a_repository_nor_what_held_its_place() {
    let room = Room::with(FenceChoice::Full, |_| {}, |_| {});
    let other = LocalExecutor::open(config(room.ws(), FenceChoice::Full)).unwrap();
    let fence = Fence::closed(Access::Write);
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

/// The second command begins while what the first one planted is there, and ends after the first one.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_host_does_not_take_what_is_planted_for_the_truth() {
    let template = Template::new();
    for choice in TIERS {
        let room = Room::with(choice, |ws| template.fill(ws), |_| {});
        let second = LocalExecutor::open(config(room.ws(), choice)).unwrap();
        let fence = Fence::closed(Access::Write);
        // In the full tier a mount holds each of them, however many hosts there are.
        let every = if choice == FenceChoice::Full { 4 } else { 2 };
        for attack in attacks(every) {
            // Each command ends when it has read a line, whatever has become of the folder.
            let ends = ["end-first", "end-second"].map(|name| room.ws().join(name));
            assert!(std::process::Command::new("mkfifo").args(&ends).status().unwrap().success());
            // The attack may have closed the folder to files that are new.
            std::fs::write(room.ws().join("second"), "").unwrap();
            let ends = ends.map(|end| std::fs::File::options().read(true).write(true).open(end).unwrap());
            let (first_ended, second_ended) = (Cell::new(false), Cell::new(false));
            let first = async {
                let script = planting(attack, &room.ws(), "read -r -u 8");
                let ended = room.try_bash(&script, Access::Write, Duration::from_secs(60)).await;
                first_ended.set(true);
                ended
            };
            let overlapping = async {
                until("it is planted", || has_text(&room.ws(), "planted") || first_ended.get()).await;
                let script = "exec 8<>end-second 9>second; echo x >&9; read -r -u 8";
                let command = Command::new(["bash", "-c", script], Duration::from_secs(60));
                // Refused, where what it needs was taken away; that is no harm.
                let _ = second.run(command, &fence, Watch::unattended()).await;
                second_ended.set(true);
            };
            let conducting = async {
                until("both are under way", || has_text(&room.ws(), "second") || second_ended.get()).await;
                (&ends[0]).write_all(b"\n").unwrap();
                until("the first has ended", || first_ended.get()).await;
                (&ends[1]).write_all(b"\n").unwrap();
            };
            let (first, (), ()) = tokio::join!(first, overlapping, conducting);
            use_git(&room.ws(), &format!("{attack} in {choice:?}: {first:?}"));
            clean(&room.ws());
        }
        use_all_of_git(&room.ws(), "all attacks");
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
        let fence = Fence::closed(Access::Write);
        let command = Command::new(["bash", "-c", &script], Duration::from_secs(600));
        executor.run(command, &fence, Watch::unattended()).await.unwrap();
        return;
    }
    let template = Template::new();
    for (tier, choice) in [("full", FenceChoice::Full), ("landlock", FenceChoice::Landlock)] {
        let room = Room::with(choice, |ws| template.fill(ws), |_| {});
        let adds = |attack: &&&str| attack.contains("git add lib") && choice == FenceChoice::Landlock;
        for attack in attacks(4).chain(attacks(1).filter(adds)) {
            let script = planting(attack, &room.ws(), "sleep 600");
            std::fs::write(room.ws().with_file_name("script"), script).unwrap();
            let ws = format!("{tier}:{}", room.ws().display());
            let mut host = rerun_alone(NAME, (VICTIM, &ws)).stdout(std::process::Stdio::null()).spawn().unwrap();
            until("it is planted", || has_text(&room.ws(), "planted")).await;
            host.kill().unwrap();
            host.wait().unwrap();
            // Its command ends with it; the next host may come before that.
            let next = async || {
                let next = LocalExecutor::open(config(room.ws(), choice)).unwrap();
                if adds(&attack) && attack.starts_with("mkdir") {
                    // Before any further command; the other ones with the next one.
                    return next.settle().await.map(|settled| {
                        assert!(!settled.is_empty(), "{attack}");
                        None
                    });
                }
                let fence = Fence::closed(Access::Write);
                let command = Command::new(["true"], Duration::from_secs(20));
                next.run(command, &fence, Watch::unattended()).await.map(Some)
            };
            let next = next().await;
            use_git(&room.ws(), &format!("{attack} in {choice:?}: {next:?}"));
            room.bash(CLEAN, Access::Write).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_is_gone_is_told_and_no_other_takes_its_place() {
    let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
    let script = fill("rm -rf .git; evil .git", &room.ws());
    let ended = room.try_bash(&script, Access::Write, Duration::from_secs(60)).await;
    assert!(matches!(&ended, Err(Error::NotRestored { names }) if names == ".git"), "{ended:?}");
    use_git(&room.ws(), &script);
    assert!(room.try_bash("true", Access::Write, Duration::from_secs(20)).await.is_err());
    // A person has made it anew, and says so.
    sure(&room.ws(), &["init", "-q"]);
    assert!(room.try_bash("true", Access::Write, Duration::from_secs(20)).await.is_err());
    room.executor.accept_git().await.unwrap();
    assert_eq!(room.bash("true", Access::Write).await.exit_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_putting_back_fails_commands_are_refused_until_it_succeeds() {
    let guard_folder = tempfile::tempdir().unwrap();
    let guard = guard_folder.path().to_owned();
    let room =
        Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |config| config.guard.clone_from(&guard));
    // Out of the workspace's reach: a repository that is gone cannot be made anew.
    let script = "echo '[planted]' >> .git/config; touch ready; until [ -e go ]; do sleep 0.05; done";
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
    let is_planted = || std::fs::read_to_string(room.ws().join(".git/config")).unwrap().contains("planted");
    // A host of another workspace does not try again, because a try can take seconds.
    drop(Room::with(FenceChoice::Landlock, |_| {}, |config| config.guard.clone_from(&guard)));
    assert!(is_planted());
    assert_eq!(room.bash("true", Access::Write).await.exit_code, 0);
    assert!(!is_planted());
    let left = std::fs::read_dir(&guard).unwrap().map(|entry| entry.unwrap().path());
    assert!(left.into_iter().all(|path| path.extension().is_none_or(|ending| ending != "failed")), "it is forgotten");
}

#[tokio::test(flavor = "multi_thread")]
async fn file_tools_do_not_change_what_the_persons_git_obeys() {
    use toolhost_contract::workspace::WriteGuard;
    let path = crate::room::path;
    let template = Template::new();
    for choice in TIERS {
        let room = Room::with(choice, |ws| template.fill(ws), |_| {});
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_of_a_workspace_is_not_put_into_another_one_at_its_path() {
    let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
    let beside = |name: &str| room.ws().with_file_name(name);
    let running =
        room.try_bash("touch ready; until [ -e go ]; do sleep 0.05; done", Access::Write, Duration::from_secs(60));
    let taking = async {
        until("it runs", || room.ws().join("ready").exists()).await;
        std::fs::rename(room.ws().join(".git"), beside("away")).unwrap();
        std::fs::write(room.ws().join("go"), "").unwrap();
    };
    let (ended, ()) = tokio::join!(running, taking);
    assert!(matches!(ended, Err(Error::NotRestored { .. })), "{ended:?}");
    std::fs::rename(room.ws(), beside("former")).unwrap();
    std::fs::create_dir(room.ws()).unwrap();
    sure(&room.ws(), &["init", "-q"]);
    commit(&room.ws(), "file");
    let config_of_its_own = std::fs::read(room.ws().join(".git/config")).unwrap();
    let next = LocalExecutor::open(config(room.ws(), FenceChoice::Landlock)).unwrap();
    let fence = Fence::closed(Access::Write);
    let ran = next.run(Command::new(["true"], Duration::from_secs(20)), &fence, Watch::unattended()).await;
    assert!(ran.as_ref().is_ok_and(|ran| ran.restored.is_empty()), "{ran:?}");
    assert_eq!(std::fs::read(room.ws().join(".git/config")).unwrap(), config_of_its_own);
    assert!(!room.ws().join("scripts").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_planted_is_put_back_at_once_where_nobody_waits_for_it_any_more() {
    let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
    let attack = "HOOK > .git/hooks/pre-push; chmod +x .git/hooks/pre-push; CONFIG >> tools/gitconfig";
    let script = planting(attack, &room.ws(), "sleep 600");
    let hook = room.ws().join(".git/hooks/pre-push");
    let planting = async {
        until("it is planted", || has_text(&room.ws(), "planted")).await;
        assert!(hook.exists(), "the trap is broken");
    };
    tokio::select! {
        ended = room.try_bash(&script, Access::Write, Duration::from_secs(60)) => panic!("it ended: {ended:?}"),
        () = planting => {}
    }
    assert!(!hook.exists());
    use_all_of_git(&room.ws(), attack);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_plants_after_the_first_one_has_ended_is_put_back_too() {
    let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
    let second = LocalExecutor::open(config(room.ws(), FenceChoice::Landlock)).unwrap();
    let fence = Fence::closed(Access::Write);
    let wait = |begun: &str, go: &str| format!("touch {begun}; until [ -e {go} ]; do sleep 0.05; done");
    let attack = fill("HOOK > .git/hooks/pre-commit; CONFIG >> .git/config", &room.ws());
    let script = format!("{}; {attack}", wait("second-begun", "second-go"));
    let first = async {
        room.bash(&wait("first-begun", "first-go"), Access::Write).await;
        std::fs::write(room.ws().join("second-go"), "").unwrap();
    };
    let later = async {
        until("the first runs", || room.ws().join("first-begun").exists()).await;
        let command = Command::new(["bash", "-c", &script], Duration::from_secs(60));
        second.run(command, &fence, Watch::unattended()).await.unwrap()
    };
    let conducting = async {
        until("both run", || room.ws().join("second-begun").exists()).await;
        std::fs::write(room.ws().join("first-go"), "").unwrap();
    };
    let ((), ended, ()) = tokio::join!(first, later, conducting);
    assert!(ended.restored.iter().any(|name| name == ".git/config"), "{ended:?}");
    use_all_of_git(&room.ws(), &attack);
}
