//! In the Landlock tier a command can make git reject the repository, or wait for ever in it.

use std::time::Duration;

use toolhost_contract::workspace::{Access, Error};
use toolhost_sandbox::{FenceChoice, LocalExecutor};

use super::TIERS;
use super::plant::{Template, fill, git, has_text, planting, prepare, sure, use_all_of_git, use_git};
use crate::room::{Room, config, until};

/// What makes the workspace's folder a bare repository, if git looks at it.
const BARE: &str =
    "mkdir -p objects refs; CONFIG > config; printf 'worktree = WS\\n' >> config; echo 'ref: refs/heads/main' > HEAD";

/// How git is made to reject a repository in Landlock's tier. All of it is put back.
const REJECTED: &[&str] = &[
    "rm .git/HEAD",
    "echo garbage > .git/HEAD",
    "> .git/HEAD",
    "chmod 000 .git/HEAD",
    "rm .git/HEAD; mkdir .git/HEAD",
    "ln -sf nowhere .git/HEAD",
    "ln -sf ../x .git/HEAD; echo 'ref: refs/heads/main' > x",
    "echo 'ref: ../../x' > .git/HEAD",
    "echo 'ref: refs/../../x' > .git/HEAD",
    "rm .git/HEAD; mkfifo .git/HEAD",
    "mv .git/refs r2",
    "mv .git/objects .git/o2",
    "mv .git/objects o2; echo > .git/objects",
    "mv .git/refs r2; ln -s nowhere .git/refs",
    "chmod 000 .git/refs .git/objects",
    "cd libs/outer; rm ../../.git/modules/libs/outer/HEAD",
    "cd tree; echo x > ../.git/worktrees/tree/HEAD",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_git_would_reject_is_put_back_and_no_bare_one_takes_its_place() {
    let template = Template::new();
    let room = Room::with(FenceChoice::Landlock, |ws| template.fill(ws), |_| {});
    for attack in REJECTED {
        let script = format!("{attack}; {BARE}").replace("WS", room.ws().to_str().unwrap());
        let result = room.try_bash(&fill(&script, &room.ws()), Access::Write, Duration::from_secs(60)).await;
        assert!(result.as_ref().is_ok_and(|ran| !ran.restored.is_empty()), "{attack}: {result:?}");
        use_git(&room.ws(), &format!("{attack}: {result:?}"));
        for place in ["", "libs/outer", "tree"] {
            sure(&room.ws().join(place), &["rev-parse", "--verify", "-q", "HEAD"]);
            assert!(!room.ws().join(place).join("HEAD").exists(), "{attack}: {place}: {result:?}");
        }
        room.bash(
            "rm -rf objects refs config libs/outer/{objects,refs,config} tree/{objects,refs,config} x r2 o2",
            Access::Write,
        )
        .await;
    }
    use_all_of_git(&room.ws(), "all of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn references_or_objects_that_are_gone_are_told_and_stop_commands() {
    for folder in ["refs", "objects"] {
        let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
        let script = format!("rm -rf .git/{folder}; {BARE}").replace("WS", room.ws().to_str().unwrap());
        let ended = room.try_bash(&fill(&script, &room.ws()), Access::Write, Duration::from_secs(60)).await;
        let named = format!(".git/{folder}");
        assert!(matches!(&ended, Err(Error::NotRestored { names }) if *names == named), "{ended:?}");
        use_git(&room.ws(), &script);
        let refused = room.try_bash("true", Access::Write, Duration::from_secs(20)).await;
        assert!(matches!(&refused, Err(Error::NotRestored { names }) if *names == named), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_do_with_branches_and_commits_stays() {
    const USUAL: &str = "git() { command git -c user.name=a -c user.email=a@b \"$@\"; }
        git checkout -q -b work && git commit -q --allow-empty -m x && git checkout -q --detach && git pack-refs --all &&
        git repack -adnq && git -C tree checkout -q -b elsewhere && git -C libs/outer checkout -q -b inner";
    let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
    let result = room.bash(USUAL, Access::Write).await;
    assert!(result.exit_code == 0 && result.restored.is_empty(), "{result:?}");
    let branch = |place: &str| {
        let output = git(&room.ws().join(place), &["rev-parse", "--abbrev-ref", "HEAD"]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(["", "tree", "libs/outer"].map(branch), ["HEAD", "elsewhere", "inner"]);
}

/// Files that git opens by itself, as FIFOs or as links to what has no end.
const WAITING: &[&str] = &[
    "rm .git/HEAD; mkfifo .git/HEAD",
    "rm .git/index; mkfifo .git/index",
    "rm -f .git/packed-refs; mkfifo .git/packed-refs",
    "mkfifo p; ln -sf ../p .git/index",
    "ln -sf /dev/zero .git/refs/heads/endless",
    "mkfifo .git/refs/heads/x .git/objects/info/alternates .git/objects/pack/pack-x.idx",
    "mkfifo .git/modules/libs/outer/packed-refs .git/worktrees/tree/MERGE_HEAD",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_in_the_place_of_a_file_of_gits_is_removed() {
    let template = Template::new();
    for attack in WAITING {
        let room = Room::with(FenceChoice::Landlock, |ws| template.fill(ws), |_| {});
        let result = room.try_bash(attack, Access::Write, Duration::from_secs(20)).await;
        assert!(result.as_ref().is_ok_and(|ran| !ran.restored.is_empty()), "{attack}: {result:?}");
        assert_eq!(room.bash("true", Access::Write).await.exit_code, 0, "{attack}");
        use_git(&room.ws(), attack);
    }
}

/// Links in the place of files that git writes without asking, in a repository of the workspace's.
const LINKS: &[&str] = &[
    "ln -sf config .git/COMMIT_EDITMSG",
    "ln -sf ../config .git/logs/HEAD",
    "mv .git/logs l2; ln -s ../l2 .git/logs; ln -sf ../.git/config l2/HEAD",
    "ln -sf ../../config .git/worktrees/tree/COMMIT_EDITMSG",
    "ln -sf ../../../config .git/modules/libs/outer/COMMIT_EDITMSG",
    "mkdir -p .git/rr-cache/x; ln -s ../../config .git/rr-cache/x/preimage",
    "mkdir -p .git/sequencer; ln -s ../config .git/sequencer/todo",
    "ln -s config .git/MERGE_MSG; ln -s config .git/FETCH_HEAD",
    "mkdir -p .git/rr-cache/x/y; ln -s ../../config .git/rr-cache/x/postimage; chmod 300 .git/rr-cache .git/rr-cache/x",
    "ln .git/config .git/COMMIT_EDITMSG -f",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_link_of_a_command_s_stays_where_git_writes() {
    let template = Template::new();
    for attack in LINKS {
        let room = Room::with(FenceChoice::Landlock, |ws| template.fill(ws), |_| {});
        let settings = |room: &Room| std::fs::read_to_string(room.ws().join(".git/config")).unwrap();
        let (before, there) = (settings(&room), links(&room));
        let result = room.bash(attack, Access::Write).await;
        assert!(result.exit_code == 0 && !result.restored.is_empty(), "{attack}: {result:?}");
        for place in ["", "tree", "libs/outer"] {
            let message = "[core]\n\tfsmonitor = ./evil.sh\n";
            sure(
                &room.ws().join(place),
                &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", message],
            );
        }
        assert_eq!(settings(&room), before, "{attack}");
        assert_eq!(links(&room), there, "{attack}");
        use_git(&room.ws(), attack);
    }
}

fn links(room: &Room) -> String {
    let find = std::process::Command::new("find").args([".git", "-type", "l"]).current_dir(room.ws()).output().unwrap();
    String::from_utf8(find.stdout).unwrap()
}

/// As some people have several working trees of one repository.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_of_the_person_s_stays_and_leads_where_it_led() {
    let room = Room::with(
        FenceChoice::Landlock,
        |ws| prepare(ws, "mkdir .git/l2; mkdir -p .git/rr-cache/x; ln -s ../../l2 .git/rr-cache/x/y"),
        |_| {},
    );
    let target = || std::fs::read_link(room.ws().join(".git/rr-cache/x/y")).unwrap();
    assert!(room.bash("true", Access::Write).await.restored.is_empty());
    let result = room.bash("ln -sfn ../../../elsewhere .git/rr-cache/x/y", Access::Write).await;
    assert_eq!(
        (result.restored.as_slice(), target().as_path()),
        (&[".git/rr-cache/x/y".to_owned()][..], std::path::Path::new("../../l2"))
    );
}

/// Git reads the shared part of a split index without comparing it with its hash.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_part_of_a_split_index_names_no_repository() {
    const FORGE: &str = "old=$(echo .git/sharedindex.*); git init -q nested; git -C nested -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
        mkdir aside; cp .git/index aside/; export GIT_INDEX_FILE=$PWD/aside/index
        cp .git/sharedindex.* aside/; git update-index --no-split-index
        git update-index --add --cacheinfo 160000,$(git -C nested rev-parse HEAD),nested
        unset GIT_INDEX_FILE; (head -c -20 aside/index; tail -c 20 $old) > forged; cat forged > $old; git ls-files --stage";
    let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, "git update-index --split-index"), |_| {});
    room.bash("true", Access::Write).await;
    let result = room.bash(FORGE, Access::Write).await;
    let seen = &result.stdout.text;
    assert!(seen.contains("\tnested"), "the forgery works: {result:?}");
    let now = git(&room.ws(), &["ls-files", "--stage"]);
    assert!(!String::from_utf8_lossy(&now.stdout).contains("\tnested"), "{now:?} {result:?}");
}

/// Put there by something else than a command.
#[tokio::test(flavor = "multi_thread")]
async fn a_fifo_that_was_there_is_named_at_once_and_cannot_be_accepted() {
    for choice in TIERS {
        for name in ["HEAD", "index", "refs/heads/x"] {
            let room = Room::with(choice, |ws| prepare(ws, &format!("rm -f .git/{name}; mkfifo .git/{name}")), |_| {});
            let refused = room.try_bash("true", Access::Write, Duration::from_secs(20)).await;
            let named = |error: &Error| matches!(error, Error::GitWaits { names } if *names == format!(".git/{name}"));
            assert!(refused.as_ref().is_err_and(named), "{name} in {choice:?}: {refused:?}");
            let accepted = room.executor.accept_git().await;
            assert!(accepted.as_ref().is_err_and(named), "{name} in {choice:?}: {accepted:?}");
            std::fs::remove_file(room.ws().join(".git").join(name)).unwrap();
            std::fs::write(room.ws().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            room.executor.accept_git().await.unwrap();
            assert_eq!(room.bash("true", Access::Write).await.exit_code, 0, "{name} in {choice:?}");
        }
    }
}

/// A host that is killed leaves it to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_dropped_command_rejected_is_put_back_too() {
    let room = Room::with(FenceChoice::Landlock, |ws| Template::new().fill(ws), |_| {});
    let attack = "rm .git/HEAD; mkfifo .git/index2 .git/MERGE_HEAD; mv .git/refs r2";
    let script = planting(attack, &room.ws(), "sleep 600");
    let planted = async { until("it is planted", || has_text(&room.ws(), "planted")).await };
    tokio::select! {
        ended = room.try_bash(&script, Access::Write, Duration::from_secs(60)) => panic!("it ended: {ended:?}"),
        () = planted => {}
    }
    let next = LocalExecutor::open(config(room.ws(), FenceChoice::Landlock)).unwrap();
    let room = Room { executor: next, ..room };
    assert_eq!(room.bash("true", Access::Write).await.exit_code, 0);
    for gone in [".git/index2", ".git/MERGE_HEAD"] {
        assert!(room.ws().join(gone).symlink_metadata().is_err(), "{gone}");
    }
    use_all_of_git(&room.ws(), attack);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebase_that_a_command_leaves_is_named_with_what_it_would_run() {
    const TODO: &str = ".git/rebase-merge/git-rebase-todo";
    let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, "true"), |_| {});
    let plant = format!("mkdir -p .git/rebase-merge; printf 'pick a\n\t x ./evil.sh\nexec ./more\n' > {TODO}");
    for (script, value) in [
        (plant.as_str(), Some("2 programs in its list")),
        (&format!("printf 'exec ./other\nexec x\n' > {TODO}"), Some("2 programs in its list")),
        // No link stays there.
        (&format!("rm {TODO}; ln -s ../../todo {TODO}"), None),
    ] {
        let result = room.bash(script, Access::Write).await;
        let change = result.refs_changed.iter().find(|change| change.name == "rebase-merge/git-rebase-todo");
        assert!(change.is_some(), "{script}: {result:?}");
        let to = change.and_then(|change| change.to.as_deref());
        let told = to.zip(value).map_or(to.is_none() && value.is_none(), |(to, value)| to.contains(value));
        assert!(told, "{script}: {to:?}");
    }
}

/// Git takes an object from there by its name alone.
#[tokio::test(flavor = "multi_thread")]
async fn from_where_a_repository_borrows_objects_no_command_says() {
    const BORROWS: &str =
        "mkdir -p alt; echo ../../alt > .git/objects/info/alternates; echo x > .git/objects/info/http-alternates";
    for (furnish, file, was) in [
        ("true", "alternates", None),
        (
            "git init -q --bare ../outside/more; echo $PWD/../outside/more/objects > .git/objects/info/alternates",
            "alternates",
            Some("more"),
        ),
        ("rm -rf .git/objects/info", "http-alternates", None),
    ] {
        let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, furnish), |_| {});
        let script = format!("mkdir -p .git/objects/info; {BORROWS}");
        let result = room.try_bash(&script, Access::Write, Duration::from_secs(60)).await;
        let now = std::fs::read_to_string(room.ws().join(".git/objects/info").join(file)).ok();
        assert_eq!(
            now.as_deref().map(|text| text.contains("outside/more")),
            was.map(|_| true),
            "{furnish}: {result:?}"
        );
        let told = result.unwrap().restored;
        assert!(told.iter().any(|name| name == &format!(".git/objects/info/{file}")), "{furnish}: {told:?}");
    }
}
