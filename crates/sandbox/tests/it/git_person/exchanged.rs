//! While a command runs, somebody puts another folder at the path of the workspace or of its repository: a person replaces it by a
//! fresh clone, a deployment exchanges two releases, or an attacker does it on purpose. The host changes nothing in the new
//! folder, and the call fails.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use toolhost_contract::workspace::{Access, Command, CommandResult, Error, Executor, Fence, Watch};
use toolhost_sandbox::{FenceChoice, LocalConfig, LocalExecutor};

use super::TIERS;
use super::plant::{by_person, commit, fill, git, prepare, sure, use_git};
use crate::room::{Room, config, everything, look_for, rerun_alone, runs_alone, until};

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
            assert!(error.contains("has taken the place"), "{what}: {result:?}");
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

/// A command that waits for a person, who works with git meanwhile.
const WAITS: &str = "touch started; until [ -e enough ]; do sleep 0.05; done; rm started enough";

/// What a person does while a command waits for it, and what it came to.
async fn meanwhile(room: &Room, script: &str, person: &str) -> toolhost_contract::workspace::Result<Vec<String>> {
    let ws = room.ws();
    let running = room.try_bash(script, Access::Write, Duration::from_secs(60));
    let acts = async {
        until("it has begun", || ws.join("started").exists()).await;
        by_person(&ws, person);
        std::fs::write(ws.join("enough"), "").unwrap();
    };
    let (result, ()) = tokio::join!(running, acts);
    result.map(|result| result.restored)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_a_person_makes_while_a_command_runs_is_not_lost() {
    const MAKES: &str = "git init -q . && git add file && git commit -qm 'work of a person'";
    for (layout, person) in [
        ("rm -rf .git", MAKES.to_owned()),
        ("true", format!("rm -rf .git && {MAKES}")),
        ("true", "mv .git ../old && mkdir ../new && (cd ../new && git init -q && git commit -q --allow-empty -m 'work of a person') && mv ../new/.git .git".to_owned()),
    ] {
        let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, layout), |_| {});
        let ended = meanwhile(&room, WAITS, &person).await;
        let kept = room.ws().join("toolhost-planted-1");
        let log = git(&room.ws(), &["--git-dir", kept.to_str().unwrap(), "log", "-1", "--format=%s"]);
        let told = format!("{layout}, {person}: {ended:?}");
        assert_eq!(String::from_utf8_lossy(&log.stdout), "work of a person\n", "{told}");
        match layout {
            "true" => assert!(matches!(ended, Err(Error::NotRestored { .. })), "{told}"),
            _ => assert_eq!(ended.unwrap(), [".git"], "{told}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_exchanged_while_it_was_mounted_is_looked_at_by_a_person_first() {
    let plants = format!(
        "touch started; for i in $(seq 100); do {{ {PLANTS_ONCE}; }} 2>/dev/null; sleep 0.05; [ -e enough ] && break; done; rm started enough"
    );
    let swaps = "mkdir ../new && (cd ../new && git init -q)";
    for person in [
        "rm -rf .git && git init -q".to_owned(),
        // There and back again: in the end all is where it was.
        format!("{swaps}; mv .git ../own; mv ../new/.git .git; sleep 0.3; mv .git ../new/.git; mv ../own .git"),
    ] {
        let room = Room::with(FenceChoice::Full, |ws| prepare(ws, "true"), |_| {});
        let ended = meanwhile(&room, &fill(&plants, &room.ws()), &person).await;
        assert!(matches!(&ended, Err(Error::Exchanged { names }) if names == ".git"), "{person}: {ended:?}");
        let later = LocalExecutor::open(config(room.ws(), FenceChoice::Full)).unwrap();
        for executor in [&room.executor, &later] {
            for argv in [&["true"][..], &["git", "status"]] {
                let refused = run(executor, argv).await;
                assert!(matches!(refused, Err(Error::Exchanged { .. })), "{person}, {argv:?}: {refused:?}");
            }
        }
        later.accept_git().await.unwrap();
        for argv in [&["true"][..], &["git", "status"]] {
            assert_eq!(run(&room.executor, argv).await.unwrap().exit_code, 0, "{person}, {argv:?}");
        }
    }
}

/// Git is run as the host's own tools run it.
async fn run(executor: &LocalExecutor, argv: &[&str]) -> Result<CommandResult, Error> {
    let command = Command::new(argv.iter().copied(), Duration::from_secs(20));
    let command = Command { is_git: argv[0] == "git", ..command };
    executor.run(command, &Fence::closed(Access::Write), Watch::unattended()).await
}

/// What a command writes where `.git` can be written.
const PLANTS_ONCE: &str = "HOOK > .git/hooks/pre-commit; CONFIG >> .git/config";

#[tokio::test(flavor = "multi_thread")]
async fn a_fence_that_was_first_tried_while_the_folder_was_another_one_is_tried_again() {
    for choice in TIERS {
        let room = Room::with(choice, |ws| prepare(ws, "true"), |_| {});
        let folder = room.folder.path();
        std::fs::create_dir(folder.join("victim")).unwrap();
        exchange(folder, "ws", "victim");
        let refused = room.try_bash("true", Access::Write, Duration::from_secs(20)).await;
        assert!(matches!(refused, Err(Error::OtherFolder)), "{choice:?}: {refused:?}");
        exchange(folder, "ws", "victim");
        room.bash("true", Access::Write).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_next_host_refuses_what_was_exchanged_under_one_that_was_killed() {
    const NAME: &str = "git_person::exchanged::a_next_host_refuses_what_was_exchanged_under_one_that_was_killed";
    #[expect(clippy::disallowed_methods, reason = "this test starts itself, and says so by a variable")]
    let victim = std::env::var(super::VICTIM);
    if let Ok(ws) = victim
        && runs_alone(NAME)
    {
        let executor = LocalExecutor::open(config(ws.into(), FenceChoice::Full)).unwrap();
        let command = Command::new(["bash", "-c", "touch started; sleep 600"], Duration::from_secs(600));
        let fence = Fence::closed(Access::Write);
        executor.run(command, &fence, Watch::unattended()).await.unwrap();
        return;
    }
    for (person, is_refused) in [("rm -rf .git && git init -q", true), ("git commit -q --allow-empty -m x", false)] {
        let room = Room::with(FenceChoice::Full, |ws| prepare(ws, "true"), |_| {});
        let ws = room.ws().display().to_string();
        let mut host = rerun_alone(NAME, (super::VICTIM, &ws)).stdout(std::process::Stdio::null()).spawn().unwrap();
        until("it has begun", || room.ws().join("started").exists()).await;
        by_person(&room.ws(), person);
        host.kill().unwrap();
        host.wait().unwrap();
        // Its command ends with it, and is under way until then.
        let next = LocalExecutor::open(config(room.ws(), FenceChoice::Full)).unwrap();
        let mut ran = Ok(());
        for _ in 0..1200 {
            let fence = Fence::closed(Access::Write);
            let command = Command::new(["true"], Duration::from_secs(20));
            ran = next.run(command, &fence, Watch::unattended()).await.map(drop);
            // A machine that is too busy to tell what it can hold refuses, too.
            if matches!(ran, Err(Error::Exchanged { .. })) || !is_refused {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(matches!(ran, Err(Error::Exchanged { .. })), is_refused, "{person}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_names_that_a_command_takes_keep_what_it_planted_in_force() {
    const FILLS: &str = "seq -f toolhost-planted-%g 1 20100 | xargs touch; HOOK > .git/hooks/pre-commit;
        chmod +x .git/hooks/pre-commit; mkdir .git/hooks/dd; echo x > .git/hooks/dd/x";
    let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, "true"), |_| {});
    let result = room.try_bash(&fill(FILLS, &room.ws()), Access::Write, Duration::from_secs(60)).await;
    assert!(result.as_ref().is_ok_and(|result| !result.restored.is_empty()), "{result:?}");
    assert!(!room.ws().join(".git/hooks/pre-commit").exists() && !room.ws().join(".git/hooks/dd").exists());
    use_git(&room.ws(), "filled names");
}

/// What a person lets git obey while a command runs, its name, and the tier in which nothing comes of that: one mounts what is in
/// `.git`, the other puts back what the settings in it say.
const NAMED: &[(&str, &str, Option<FenceChoice>)] = &[
    ("git config core.hooksPath nh", "nh", Some(FenceChoice::Landlock)),
    ("git config include.path ../n.cfg", "n.cfg", Some(FenceChoice::Landlock)),
    ("git config --file HOME/.gitconfig core.hooksPath WS/nh", "nh", None),
    ("git config --file HOME/.gitconfig include.path WS/n.cfg", "n.cfg", None),
    ("git config --file HOME/.gitconfig core.hooksPath WS/.git/own", ".git/own", Some(FenceChoice::Full)),
];

/// A thread that does again and again what other hosts do that look into the guards; it ends when this is dropped.
struct Looking {
    _goes_on: Arc<()>,
}

impl Looking {
    fn into(guards: &Path) -> Self {
        let (goes_on, guards) = (Arc::new(()), guards.to_owned());
        let looked = Arc::downgrade(&goes_on);
        std::thread::spawn(move || {
            while looked.strong_count() > 0 {
                for entry in std::fs::read_dir(&guards).into_iter().flatten().flatten() {
                    let path = entry.path();
                    let turn = path.with_extension("turn");
                    if path.extension().is_some_and(|kind| kind == "use") && turn.exists() {
                        look(&turn, &path);
                    }
                }
                std::thread::yield_now();
            }
        });
        Self { _goes_on: goes_on }
    }
}

/// Holds both for a moment.
fn look(turn: &Path, in_use: &Path) {
    let open = |path: &Path| std::fs::File::options().write(true).open(path);
    let (Ok(turn), Ok(in_use)) = (open(turn), open(in_use)) else { return };
    flock(&turn, FlockOperation::LockExclusive).unwrap();
    // A command may have it.
    let _ = flock(&in_use, FlockOperation::NonBlockingLockExclusive);
    std::thread::sleep(Duration::from_millis(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_settings_name_since_the_command_began_is_told_and_stops_commands() {
    for choice in TIERS {
        for (person, name, held) in NAMED {
            let home = tempfile::Builder::new().prefix("home-").tempdir_in("/var/tmp").unwrap();
            let at = home.path().to_owned();
            let guards = tempfile::Builder::new().prefix("guards-").tempdir_in("/var/tmp").unwrap();
            let adjust = |config: &mut LocalConfig| {
                config.home.clone_from(&at);
                config.guard = guards.path().to_owned();
            };
            let room = Room::with(choice, |ws| prepare(ws, "true"), adjust);
            let ws = room.ws();
            // Other hosts look for what killed ones have left, at any time.
            let _looking = Looking::into(guards.path());
            let script = "touch started; until [ -e named ]; do sleep 0.02; done; CONFIG > n.cfg; evil e; cp -r e/hooks .git/own; mv e/hooks nh; true";
            let script = fill(script, &ws);
            let running = room.try_bash(&script, Access::Write, Duration::from_secs(60));
            let naming = async {
                until("it has begun", || ws.join("started").exists()).await;
                let person = person.replace("HOME", at.to_str().unwrap()).replace("WS", ws.to_str().unwrap());
                by_person(&ws, &person);
                std::fs::write(ws.join("named"), "").unwrap();
            };
            let (ended, ()) = tokio::join!(running, naming);
            let next = room.try_bash("true", Access::Write, Duration::from_secs(60)).await;
            if *held == Some(choice) {
                use_git(&ws, person);
                assert!(ended.is_ok() && next.is_ok(), "{person} in {choice:?}: {ended:?}, {next:?}");
                continue;
            }
            let is_named = |error: &Error| matches!(error, Error::Exchanged { names } if names.contains(name));
            assert!(ended.as_ref().is_err_and(is_named), "{person} in {choice:?}: {ended:?}");
            assert!(next.as_ref().is_err_and(is_named), "the next after {person} in {choice:?}: {next:?}");
            // The person looks, takes it away and says so.
            by_person(&ws, "rm -rf nh n.cfg .git/own");
            room.executor.accept_git().await.unwrap();
            let (restored, attack) = (
                room.bash("true", Access::Write).await,
                fill("evil e; cp -r e/hooks .git/own; mv e/hooks nh; CONFIG > n.cfg", &ws),
            );
            assert_eq!(restored.exit_code, 0, "{person} in {choice:?}");
            let again = room.try_bash(&attack, Access::Write, Duration::from_secs(60)).await;
            assert!(!ws.join(name).exists(), "{person} in {choice:?}: it is held from now on: {again:?}");
        }
    }
}

/// A command that goes on for as long as the test says.
const GOES_ON: &str = "touch going; until [ -e enough ]; do sleep 0.02; done; rm going enough";

/// What is held for a command is what settings named when the first of those began that are under way.
#[tokio::test(flavor = "multi_thread")]
async fn no_command_begins_where_settings_name_something_since_another_began() {
    for choice in TIERS {
        for there in [true, false] {
            let home = tempfile::Builder::new().prefix("home-").tempdir_in("/var/tmp").unwrap();
            let guards = tempfile::Builder::new().prefix("guards-").tempdir_in("/var/tmp").unwrap();
            let adjust = |config: &mut LocalConfig| {
                config.home = home.path().to_owned();
                config.guard = guards.path().to_owned();
            };
            let room = Room::with(choice, |ws| prepare(ws, "true"), adjust);
            let ws = room.ws();
            let mut of_later = config(ws.clone(), choice);
            adjust(&mut of_later);
            let going = room.try_bash(GOES_ON, Access::Write, Duration::from_secs(60));
            let meanwhile = async {
                until("it has begun", || ws.join("going").exists()).await;
                if there {
                    std::fs::create_dir(ws.join("late")).unwrap();
                }
                // In the person's own settings: a command in the Landlock tier can write those of the repository.
                let settings = format!("[core]\n\thooksPath = {}\n", ws.join("late").display());
                std::fs::write(home.path().join(".gitconfig"), settings).unwrap();
                for executor in [&room.executor, &LocalExecutor::open(of_later).unwrap()] {
                    let next = run(executor, &["sh", "-c", "mkdir -p late; echo x > late/pre-commit"]).await;
                    let is_named =
                        |error: &Error| matches!(error, Error::NamedSince { names } if names.contains("late"));
                    assert!(next.as_ref().is_err_and(is_named), "{choice:?}, there: {there}: {next:?}");
                }
                assert!(!ws.join("late/pre-commit").exists());
                std::fs::write(ws.join("enough"), "").unwrap();
            };
            let (ended, ()) = tokio::join!(going, meanwhile);
            // The person looks where the command could have written.
            assert_eq!(matches!(ended, Err(Error::Exchanged { .. })), there, "{choice:?}: {ended:?}");
            room.executor.accept_git().await.unwrap();
            let next =
                room.try_bash("mkdir -p late; echo x > late/pre-commit", Access::Write, Duration::from_secs(60)).await;
            assert!(
                !ws.join("late/pre-commit").exists(),
                "{choice:?}, there: {there}: it is held from now on: {next:?}"
            );
        }
    }
}

/// The command that ends first fails, too, and not only the last one.
#[tokio::test(flavor = "multi_thread")]
async fn what_settings_name_meanwhile_fails_a_command_that_ends_while_another_goes_on() {
    for choice in TIERS {
        let home = tempfile::Builder::new().prefix("home-").tempdir_in("/var/tmp").unwrap();
        let room = Room::with(choice, |ws| prepare(ws, "true"), |config| config.home = home.path().to_owned());
        let ws = room.ws();
        let going = room.try_bash(GOES_ON, Access::Write, Duration::from_secs(60));
        let both = async {
            until("one has begun", || ws.join("going").exists()).await;
            let script =
                "touch second; until [ -e named ]; do sleep 0.02; done; mkdir -p late; echo x > late/pre-commit";
            let second = room.try_bash(script, Access::Write, Duration::from_secs(60));
            let naming = async {
                until("both have begun", || ws.join("second").exists()).await;
                let settings = format!("[core]\n\thooksPath = {}\n", ws.join("late").display());
                std::fs::write(home.path().join(".gitconfig"), settings).unwrap();
                std::fs::write(ws.join("named"), "").unwrap();
            };
            let (second, ()) = tokio::join!(second, naming);
            let is_named = |error: &Error| match error {
                Error::Exchanged { names } | Error::NamedSince { names } => names.contains("late"),
                _ => false,
            };
            assert!(second.as_ref().is_err_and(is_named), "{choice:?}: {second:?}");
            std::fs::write(ws.join("enough"), "").unwrap();
        };
        let (ended, ()) = tokio::join!(going, both);
        assert!(matches!(ended, Err(Error::Exchanged { .. })), "{choice:?}: {ended:?}");
    }
}

/// In the tier in which a command can write `.git`, what it did is told though nobody waits for its end.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_cancelled_command_had_changed_is_told() {
    let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, "true"), |_| {});
    let ws = room.ws();
    let script = "git branch sneaky; git config core.fsmonitor ./x; touch done; sleep 1000";
    let watch = Watch::unattended();
    let cancel = watch.cancel.clone();
    let command = Command::new(["bash", "-c", script], Duration::from_secs(60));
    let fence = Fence::closed(Access::Write);
    let running = room.executor.run(command, &fence, watch);
    let cancelling = async {
        until("it has planted", || ws.join("done").exists()).await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(running, cancelling);
    let Err(Error::CancelledAfter { restored, refs_changed }) = &ended else { unreachable!("{ended:?}") };
    assert!(restored.iter().any(|name| name == ".git/config"), "{ended:?}");
    assert!(refs_changed.iter().any(|name| name == "refs/heads/sneaky"), "{ended:?}");
}
