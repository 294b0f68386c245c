//! `/tmp` and home of a command last for its session: in each tier, for nobody else, within limits, and for no longer.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolhost_contract::Session;
use toolhost_contract::workspace::{
    Access, Command, CommandResult, ErrorKind, Executor, Fence, FolderLimit, Result, Watch,
};
use toolhost_sandbox::{FenceChoice, LocalConfig};

use crate::room::{Room, SECRET, until};

const TIME: Duration = Duration::from_secs(60);
const TIERS: [FenceChoice; 2] = [FenceChoice::Full, FenceChoice::Landlock];

fn session() -> Session {
    Session::new(Watch::unattended().cancel)
}

/// A room that keeps the folders of sessions beside its workspace.
fn room(fence: FenceChoice, adjust: impl FnOnce(&mut LocalConfig)) -> Room {
    Room::with(
        fence,
        |ws| {
            let beside = ws.with_file_name("sessions");
            std::fs::create_dir(&beside).unwrap();
            // As `/var/tmp` is.
            std::fs::set_permissions(&beside, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        },
        |config| {
            config.sessions = config.root.with_file_name("sessions");
            adjust(config);
        },
    )
}

fn kept(room: &Room) -> Vec<PathBuf> {
    let folder = room.folder.path().join("sessions");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

async fn try_in(room: &Room, session: Option<&Session>, access: Access, script: &str) -> Result<CommandResult> {
    let mut command = Command::new(["bash", "-c", script], TIME);
    command.session = session.cloned();
    let fence = Fence { loopback: false, ..Fence::closed(access) };
    room.executor.run(command, &fence, Watch::unattended()).await
}

/// What a command of the session prints; it must succeed.
async fn say(room: &Room, session: Option<&Session>, script: &str) -> String {
    let result = try_in(room, session, Access::Write, script).await.unwrap();
    assert_eq!(result.exit_code, 0, "{script}: {} {}", result.stdout.text, result.stderr.text);
    result.stdout.text
}

const LEAVE: &str = "echo tmp > $TMPDIR/left; echo home > ~/.left; mkdir -p ~/.cache/x; echo deep > ~/.cache/x/y";
const LOOK: &str = "cat $TMPDIR/left ~/.left ~/.cache/x/y 2>/dev/null || echo nothing";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_leaves_is_there_for_the_next_one_of_its_session_alone() {
    for tier in TIERS {
        let (room, own, other) = (room(tier, |_| {}), session(), session());
        say(&room, Some(&own), LEAVE).await;
        assert_eq!(say(&room, Some(&own), LOOK).await, "tmp\nhome\ndeep\n", "{tier:?}");
        assert_eq!(say(&room, Some(&own.for_caller("reviewer")), LOOK).await, "nothing\n", "{tier:?}: another profile");
        assert_eq!(say(&room, Some(&other), LOOK).await, "nothing\n", "{tier:?}: another session");
        assert_eq!(say(&room, None, LOOK).await, "nothing\n", "{tier:?}: no session");
        // A profile that reads writes there, too.
        let wrote = try_in(&room, Some(&own), Access::Read, "echo more >> $TMPDIR/left").await.unwrap();
        assert_eq!(wrote.exit_code, 0, "{tier:?}: {}", wrote.stderr.text);
        assert_eq!(say(&room, Some(&own), "cat $TMPDIR/left").await, "tmp\nmore\n", "{tier:?}");
    }
}

/// Git of the host's tools obeys what is in its home.
#[tokio::test(flavor = "multi_thread")]
async fn git_of_the_hosts_tools_sees_nothing_of_a_session() {
    for tier in TIERS {
        let (room, own) = (room(tier, |_| {}), session());
        say(&room, Some(&own), "git init -q .; git config --global user.name planted; git config user.name").await;
        let mut git = Command::new(["git", "config", "--global", "user.name"], TIME);
        (git.is_git, git.session) = (true, Some(own));
        let result = room.executor.run(git, &Fence::closed(Access::Write), Watch::unattended()).await.unwrap();
        assert_eq!((result.stdout.text.as_str(), result.exit_code), ("", 1), "{tier:?}: {}", result.stderr.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_commands_at_once_share_them() {
    for tier in TIERS {
        let (room, own) = (room(tier, |_| {}), session());
        let waits = "for n in $(seq 600); do test -e $TMPDIR/come && exec echo came; sleep 0.1; done";
        let (waited, _) = tokio::join!(say(&room, Some(&own), waits), say(&room, Some(&own), "touch $TMPDIR/come"));
        assert_eq!(waited, "came\n", "{tier:?}");
        assert_eq!(kept(&room).len(), 1, "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_go_with_the_session_and_with_the_host() {
    let deep = "perl -e 'for (1..5000) { mkdir \"d\"; chdir \"d\" or die }'";
    for tier in TIERS {
        let (room, own, other) = (room(tier, |_| {}), session(), session());
        say(&room, Some(&own), &format!("{LEAVE}; cd $TMPDIR; {deep}; mkdir -m 0 ~/closed")).await;
        say(&room, Some(&other), LEAVE).await;
        assert_eq!(kept(&room).len(), 2, "{tier:?}");
        own.end();
        until("the ended session's are gone", || kept(&room).len() == 1).await;
        let ended = try_in(&room, Some(&own), Access::Write, "true").await;
        assert!(ended.is_err(), "{tier:?}: a session that has ended runs no command");
        let Room { folder, executor } = room;
        drop(executor);
        // The thread that removed the ended session's may hold the others for a moment longer.
        let left = || std::fs::read_dir(folder.path().join("sessions")).unwrap().count();
        until("the host has gone, and all folders with it", || left() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_host_has_left_is_removed_by_the_next_one() {
    let left = |sessions: &Path| sessions.join("toolhost-session-dead");
    let room = room(FenceChoice::Landlock, |config| {
        std::fs::create_dir_all(left(&config.sessions).join("tmp/a/b")).unwrap();
    });
    let left = left(&room.folder.path().join("sessions"));
    until("it is swept", || !left.exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_too_many_sessions_the_one_that_was_idle_longest_begins_anew() {
    for tier in TIERS {
        let room = room(tier, |config| config.limits.session_folders = 2);
        let all = [session(), session(), session()];
        for own in &all[..2] {
            say(&room, Some(own), LEAVE).await;
        }
        // Used last, so the second one is idle longest.
        say(&room, Some(&all[0]), "true").await;
        assert_eq!(say(&room, Some(&all[2]), LOOK).await, "nothing\n", "{tier:?}");
        assert_eq!(kept(&room).len(), 2, "{tier:?}");
        assert_eq!(say(&room, Some(&all[0]), LOOK).await, "tmp\nhome\ndeep\n", "{tier:?}");
        assert_eq!(say(&room, Some(&all[1]), LOOK).await, "nothing\n", "{tier:?}");

        // What a command uses is not taken from it.
        let waits = "touch begun; for n in $(seq 600); do test -e end && break; sleep 0.1; done; cat $TMPDIR/left";
        let running = async {
            say(&room, Some(&all[0]), LEAVE).await;
            tokio::join!(say(&room, Some(&all[0]), waits), say(&room, Some(&all[1]), waits))
        };
        let third = async {
            until("both run", || room.ws().join("begun").exists() && kept(&room).len() == 2).await;
            let refused = loop {
                match try_in(&room, Some(&all[2]), Access::Write, "true").await {
                    // One of the two has not begun yet.
                    Ok(_) => tokio::task::yield_now().await,
                    Err(error) => break error,
                }
            };
            std::fs::write(room.ws().join("end"), "").unwrap();
            refused
        };
        say(&room, Some(&all[1]), LEAVE).await;
        let ((one, two), refused) = tokio::join!(running, third);
        assert_eq!(refused.kind(), ErrorKind::Limit, "{tier:?}: {refused}");
        assert_eq!((one.as_str(), two.as_str()), ("tmp\n", "tmp\n"), "{tier:?}");
    }
}

fn limit_of(result: &CommandResult) -> (&'static str, bool) {
    let limit = result.folder_limit_reached;
    let FolderLimit { folder, emptied, .. } = limit.unwrap_or_else(|| unreachable!("no limit: {result:?}"));
    (folder, emptied)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fills_them_is_ended_and_the_next_one_can_make_room() {
    let limits = |config: &mut LocalConfig| {
        (config.limits.tmp_bytes, config.limits.tmp_files) = (64 << 20, 3000);
    };
    // Each fills a folder a little above its limit, and waits to be ended.
    let fills = [
        ("/tmp", "head -c 70M /dev/zero > $TMPDIR/f", "rm $TMPDIR/f"),
        ("~", "head -c 70M /dev/zero > ~/f", "rm ~/f"),
        ("/tmp", "cd $TMPDIR; mkdir many; for n in $(seq 3200); do : > many/$n; done", "rm -r $TMPDIR/many"),
        // In a folder that is closed to a host which is no other user.
        ("~", "mkdir ~/c ~/c/d; head -c 70M /dev/zero > ~/c/d/f; chmod 0 ~/c", "chmod 700 ~/c; rm -r ~/c"),
        ("/tmp", "chmod 300 $TMPDIR; head -c 70M /dev/zero > $TMPDIR/f", "rm $TMPDIR/f"),
        // Without a name.
        ("/tmp", "exec 3> $TMPDIR/f; rm $TMPDIR/f; head -c 70M /dev/zero >&3", "true"),
        ("~", "exec 3> ~/f; rm ~/f; head -c 70M /dev/zero >&3", "true"),
        // One file with three names is one.
        ("/tmp", "cd $TMPDIR; head -c 70M /dev/zero > f; ln f g; ln f h", "cd $TMPDIR; rm f g h"),
    ];
    for tier in TIERS {
        let (room, own) = (room(tier, limits), session());
        say(&room, Some(&own), LEAVE).await;
        for (folder, fill, make_room) in fills {
            let filled = try_in(&room, Some(&own), Access::Write, &format!("{fill}; sleep 1000")).await.unwrap();
            assert_eq!(limit_of(&filled), (folder, false), "{tier:?} {fill}");
            assert!(filled.duration < TIME, "{tier:?} {fill}");
            // It may not write more, and may remove what is there.
            assert_eq!(say(&room, Some(&own), LOOK).await, "tmp\nhome\ndeep\n", "{tier:?} {fill}");
            say(&room, Some(&own), make_room).await;
            say(&room, Some(&own), "head -c 30M /dev/zero > $TMPDIR/f; sleep 1; rm $TMPDIR/f").await;
        }
        // What ends before anybody looks is told all the same.
        let quick = try_in(&room, Some(&own), Access::Write, "head -c 70M /dev/zero > $TMPDIR/f").await.unwrap();
        assert_eq!(limit_of(&quick), ("/tmp", false), "{tier:?}");
        // Much too much does not stay, and the other folder does. It is there at once: one that grows is ended before.
        let far = try_in(&room, Some(&own), Access::Write, "fallocate -l 200M $TMPDIR/g; sleep 1000").await;
        assert_eq!(limit_of(&far.unwrap()), ("/tmp", true), "{tier:?}");
        assert_eq!(say(&room, Some(&own), "ls $TMPDIR; cat ~/.left").await, "home\n", "{tier:?}");
    }
}

/// Only the host and, in the Landlock tier, the command's own user get into the folder that holds them.
#[tokio::test(flavor = "multi_thread")]
async fn other_users_of_the_machine_get_nowhere() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for tier in TIERS {
        let (room, own) = (room(tier, |_| {}), session());
        say(&room, Some(&own), LEAVE).await;
        let [folder] = &kept(&room)[..] else { unreachable!("one session has one folder") };
        let holds = |name: &str| mode(&folder.join(name));
        match mode(folder) {
            0o700 => {}
            outer => assert_eq!((outer, holds("tmp"), holds("home")), (0o711, 0o700, 0o700), "{tier:?}"),
        }
    }
}

/// The workspace and toolchains are often below the home, and `bwrap` makes what is missing on the way to them, through links.
#[tokio::test(flavor = "multi_thread")]
async fn no_link_on_the_way_to_a_mount_leads_out() {
    let room = room(FenceChoice::Full, |config| {
        let beside = |name: &str| config.root.with_file_name(name);
        std::fs::create_dir_all(beside("tools/going")).unwrap();
        std::fs::write(beside("tools/going/tool"), "tool").unwrap();
        config.toolchains = vec![beside("tools/going"), beside("tools/late")];
        config.home = PathBuf::from("/var/tmp");
    });
    let own = session();
    let top = room.folder.path().to_owned();
    let (ws, outside) = (room.ws(), room.outside());
    let line = |text: &str| {
        let name = |path: &Path| path.display().to_string();
        text.replace("TOP", &name(&top)).replace("WS", &name(&ws)).replace("OUT", &name(&outside))
    };
    say(&room, Some(&own), &line("cat TOP/tools/going/tool")).await;
    for attack in [
        "mv TOP ~/away && ln -s /oldroot/OUT TOP",
        "rm -rf TOP; rmdir TOP",
        "mv WS TOP/away && ln -s /oldroot/OUT WS",
        "mv TOP/tools TOP/away && ln -s OUT TOP/tools",
        "rm -rf TOP/tools/going; ln -sn OUT TOP/tools/going",
    ] {
        let result = try_in(&room, Some(&own), Access::Read, &line(attack)).await.unwrap();
        assert_ne!(result.exit_code, 0, "{attack}: {}", result.stdout.text);
        assert_eq!(say(&room, Some(&own), &line("cat WS/mine 2>/dev/null; cd WS && pwd -P")).await, line("WS\n"));
    }
    // A toolchain that goes leaves a mount behind; one that comes is no mount where a command could have been first.
    std::fs::rename(top.join("tools/going"), top.join("gone")).unwrap();
    let gone =
        try_in(&room, Some(&own), Access::Read, &line("rmdir TOP/tools/going && ln -s OUT TOP/tools/going")).await;
    assert_ne!(gone.unwrap().exit_code, 0);
    std::fs::rename(top.join("gone"), top.join("tools/going")).unwrap();
    assert_eq!(say(&room, Some(&own), &line("cat TOP/tools/going/tool")).await, "tool");
    say(&room, Some(&own), &line("ln -s /etc TOP/tools/late")).await;
    std::fs::create_dir(top.join("tools/late")).unwrap();
    let through = try_in(&room, Some(&own), Access::Read, &line("cat TOP/tools/late/hostname")).await.unwrap();
    assert_ne!(through.exit_code, 0, "{}", through.stdout.text);
    // In the folders on the way, what a command leaves lasts, too.
    say(&room, Some(&own), &line("echo kept > TOP/kept; mkdir TOP/tools/more")).await;
    assert_eq!(
        say(&room, Some(&own), &line("cat TOP/kept; ls -d TOP/tools/more")).await,
        line("kept\nTOP/tools/more\n")
    );
    assert_eq!(std::fs::read_to_string(outside.join("secret.txt")).unwrap(), SECRET);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "something was made outside");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_in_them_leads_to_other_sessions_or_rights() {
    for tier in TIERS {
        let (room, own, other) = (room(tier, |_| {}), session(), session());
        let others = say(&room, Some(&other), &format!("{LEAVE}; echo $TMPDIR")).await;
        // The folder itself stays where it is, with whatever a command puts in its place.
        for attack in [
            "rm -rf $TMPDIR; rmdir $TMPDIR && ln -s OUT $TMPDIR",
            "rm -rf ~; rmdir ~ && ln -s OUT ~",
            "mv $TMPDIR ${TMPDIR}2 && ln -s OUT $TMPDIR",
            "cat OTHER/left",
            "ls OTHER/..",
            "cp /bin/true $TMPDIR/t && chmod u+s $TMPDIR/t",
            "mknod $TMPDIR/null c 1 3",
        ] {
            let script = attack.replace("OUT", &room.outside().display().to_string());
            let real = kept(&room).into_iter().map(|folder| folder.join("tmp")).find(|tmp| tmp.join("left").exists());
            let real = real.unwrap();
            let theirs = if tier == FenceChoice::Full { real.to_str().unwrap() } else { others.trim() };
            let result = try_in(&room, Some(&own), Access::Write, &script.replace("OTHER", theirs)).await.unwrap();
            assert_ne!(result.exit_code, 0, "{tier:?} {attack}: {}", result.stdout.text);
        }
        // A link in them is the session's own business: it leads no further than the fence.
        symlink(room.outside(), room.ws().join("out")).unwrap();
        let through = "ln -sfn OUT $TMPDIR/out; cat $TMPDIR/out/secret.txt";
        let through = through.replace("OUT", &room.outside().display().to_string());
        let through = try_in(&room, Some(&own), Access::Write, &through).await.unwrap();
        assert!(!through.stdout.text.contains(SECRET), "{tier:?}");
        std::fs::remove_file(room.ws().join("out")).unwrap();
        if tier == FenceChoice::Full {
            let mounts =
                say(&room, Some(&own), "grep -E ' (/tmp|/home/agent) ' /proc/self/mountinfo | cut -d' ' -f6").await;
            assert_eq!(mounts.lines().filter(|line| line.contains("nosuid,nodev")).count(), 2, "{mounts}");
        }
        assert_eq!(say(&room, Some(&other), LOOK).await, "tmp\nhome\ndeep\n", "{tier:?}");
    }
}

/// Where commands could see the folders of other sessions, none is kept; and where none can be made, commands run all the same.
#[tokio::test(flavor = "multi_thread")]
async fn folders_that_commands_could_see_are_not_made() {
    for tier in TIERS {
        for parent in [None, Some("/proc"), Some("/nowhere")] {
            let at = |config: &mut LocalConfig| config.sessions = parent.map_or(config.root.clone(), PathBuf::from);
            let (room, own) = (Room::with(tier, |_| {}, at), session());
            say(&room, Some(&own), LEAVE).await;
            assert_eq!(say(&room, Some(&own), LOOK).await, "nothing\n", "{tier:?} {parent:?}");
            assert_eq!(std::fs::read_dir(room.ws()).unwrap().count(), 0, "{tier:?} {parent:?}");
        }
    }
}

/// Without a session, the folder is in private memory, where an ordinary user's command may write what nobody sees.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_writes_above_the_workspace_reaches_nobody_and_a_session_does_not_keep_it() {
    let (room, own) = (room(FenceChoice::Full, |config| config.home = PathBuf::from("/var/tmp")), session());
    let planted = room.folder.path().join("planted");
    let plant = format!("echo x > {}", planted.display());
    for session in [None, Some(&own)] {
        let wrote = try_in(&room, session, Access::Write, &plant).await.unwrap();
        assert!(session.is_none() || wrote.exit_code != 0, "{}", wrote.stderr.text);
        assert!(!planted.exists());
    }
    say(&room, Some(&own), "echo mine > ~/kept").await;
    assert_eq!(say(&room, Some(&own), "cat ~/kept").await, "mine\n");
}

/// The home is a mount in `/tmp` then, which no other mount may hide.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_and_a_workspace_below_one_folder_of_tmp_are_both_there() {
    let below_tmp = tempfile::Builder::new().prefix("toolhost-below-").tempdir_in("/tmp").unwrap();
    let (home, root) = (below_tmp.path().join("h"), below_tmp.path().join("w"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&root).unwrap();
    let to = root.clone();
    let room = room(FenceChoice::Full, move |config| (config.home, config.root) = (home, to));
    let own = session();
    say(&room, Some(&own), "echo mine > ~/kept; echo theirs > /tmp/kept").await;
    assert_eq!(
        say(&room, Some(&own), "cat ~/kept /tmp/kept; pwd").await,
        format!("mine\ntheirs\n{}\n", root.display())
    );
}
