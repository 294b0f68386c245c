//! A deploy that dies: at every step in turn, and killed for real.

use std::process::{Command, Stdio};
use std::time::Duration;

use toolhost_deploy::{DeployRules, DeployStep, Deployer, Recovered};

use super::runs::Dice;
use super::{EndAfter, Snapshot, Trees, fill, key, mode};

/// How often a process is killed at a random moment; `TOOLHOST_CRASH_ROUNDS` asks for more.
const KILL_ROUNDS: u64 = 30;
/// The process that is killed finds its folder here.
const KILLED_IN: &str = "TOOLHOST_TEST_DEPLOY_KILLED_IN";

/// Recovers, dying again after `steps`, and then for good.
fn recover(trees: &Trees, steps: usize) -> Vec<Recovered> {
    let again = trees.deployer().recover(&mut EndAfter { steps });
    let last = trees.deployer().recover(&mut ()).unwrap();
    assert!(trees.deployer().recover(&mut ()).unwrap().is_empty(), "nothing is left to recover");
    again.unwrap_or(last)
}

fn is_one_of(found: &Snapshot, former: &Snapshot, complete: &Snapshot, what: &str) -> bool {
    assert!(
        found == former || found == complete,
        "{what}: the tree is between\n{found:#?}\n{former:#?}\n{complete:#?}"
    );
    found == complete
}

/// Rules: 002.66.
#[test]
fn a_deploy_that_dies_at_any_step_is_finished_or_never_was() {
    let (mut finished, mut discarded) = (0, 0);
    for steps in 0.. {
        let trees = Trees::lively();
        let former = trees.target();
        trees.deploy("whole").unwrap();
        let complete = trees.target();
        trees.undo().unwrap();
        let ended = trees.deploy_by("second", &DeployRules::default(), &mut EndAfter { steps });
        if ended.is_ok() {
            assert!(steps > 12 && finished > 5 && discarded > 2, "{steps} {finished} {discarded}");
            break;
        }
        let recovered = recover(&trees, steps % 5);
        if is_one_of(&trees.target(), &former, &complete, &format!("{steps} steps, {recovered:?}")) {
            finished += 1;
            trees.undo().unwrap();
            assert_eq!(trees.target(), former, "{steps} steps, undone");
        } else {
            discarded += 1;
        }
        trees.deploy("third").unwrap();
        assert_eq!(trees.target(), complete, "{steps} steps, deployed again");
        assert!(trees.deployer().recover(&mut ()).unwrap().is_empty());
    }
}

#[test]
fn an_undo_that_dies_at_any_step_is_finished_or_never_was() {
    for steps in 0.. {
        let trees = Trees::lively();
        let former = trees.target();
        trees.deploy("second").unwrap();
        let complete = trees.target();
        let ended = trees.deployer().undo(None, &mut EndAfter { steps });
        if ended.is_ok() {
            assert!(steps > 10, "{steps}");
            break;
        }
        recover(&trees, steps % 5);
        assert_eq!(trees.target(), former, "{steps} steps");
        trees.deploy("third").unwrap();
        assert_eq!(trees.target(), complete, "{steps} steps, deployed again");
    }
}

#[test]
fn what_the_user_did_after_a_crash_is_kept() {
    for steps in 5.. {
        let trees = Trees::lively();
        if trees.deploy_by("second", &DeployRules::default(), &mut EndAfter { steps }).is_ok() {
            break;
        }
        fill(&trees.at("target"), &[("index.html", "after the crash"), ("old/gone.css", "after the crash")]);
        trees.deployer().recover(&mut ()).unwrap();
        let everywhere = super::contents(&trees.at("target/.toolhost/deploys")).into_iter();
        let everywhere =
            everywhere.chain(super::contents(&trees.at("target"))).filter(|(_, text)| text == "after the crash");
        assert_eq!(everywhere.count(), 2, "{steps} steps");
    }
}

#[test]
fn what_stands_in_the_way_after_the_commit_takes_everything_back() {
    let trees = Trees::lively();
    let former = trees.target();
    let target = trees.at("target");
    // The folder of a file to be replaced goes away, with all that is in it.
    fill(&trees.at("source"), &[("a/b/c.md", "changed")]);
    let mut move_away = super::At(DeployStep::Committed, || {
        std::fs::rename(target.join("a"), target.join("moved")).unwrap();
    });
    assert!(trees.deploy_by("second", &DeployRules::default(), &mut move_away).is_err());
    std::fs::rename(trees.at("target/moved"), trees.at("target/a")).unwrap();
    assert_eq!(trees.target(), former);
    trees.deploy("third").unwrap();
}

#[test]
fn a_folder_that_goes_away_after_a_crash_is_no_dead_end() {
    for steps in 5.. {
        for link in [false, true] {
            let trees = Trees::lively();
            fill(&trees.at("source"), &[("old/more.css", "more")]);
            if trees.deploy_by("second", &DeployRules::default(), &mut EndAfter { steps }).is_ok() {
                assert!(steps > 10);
                return;
            }
            for folder in ["new", "old", "a"] {
                // Some are not there yet.
                let gone = std::fs::rename(trees.at("target").join(folder), trees.folder.path().join(folder)).is_ok();
                if gone && link {
                    std::os::unix::fs::symlink(trees.at("outside"), trees.at("target").join(folder)).unwrap();
                }
            }
            trees.deployer().recover(&mut ()).unwrap();
            trees.outside_is_untouched();
            trees.deploy("third").unwrap();
            trees.outside_is_untouched();
        }
    }
}

/// Two states of a workspace with enough in it that a kill hits every part of the work.
fn crowd(trees: &Trees, state: &str) {
    for n in 0..120 {
        fill(&trees.at("source"), &[(&format!("f{}/{n}.html", n % 7), &format!("{state} {n}"))]);
        mode(&trees.at(&format!("source/f{}/{n}.html", n % 7)), if state == "two" { 0o600 } else { 0o644 });
    }
    for n in 0..40 {
        fill(&trees.at("source"), &[(&format!("{state}/{}/{n}.js", n % 3), state)]);
    }
}

#[test]
fn a_deploy_that_is_killed_leaves_one_tree_or_the_other() {
    let trees = Trees::new(&[], &[(".env", "mine"), ("f1/mine.txt", "mine")]);
    crowd(&trees, "one");
    trees.deploy("first").unwrap();
    toolhost_sandbox::remove_folder(&trees.at("source/one")).unwrap();
    crowd(&trees, "two");
    let former = trees.target();
    trees.deploy("whole").unwrap();
    let complete = trees.target();
    trees.undo().unwrap();
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut finished, mut discarded) = (0, 0);
    let rounds = std::env::var_os("TOOLHOST_CRASH_ROUNDS").and_then(|text| text.to_str()?.parse().ok());
    for round in 0..rounds.unwrap_or(KILL_ROUNDS) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crashes::deploys_until_it_is_killed", "--nocapture"])
            .env(KILLED_IN, trees.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        // Most of the time goes into copying: every other kill comes after the commit.
        let (moment, wait_us) = if round % 2 == 0 { ("began", 200_000) } else { ("committed", 15_000) };
        while !trees.at(moment).exists() {
            assert!(std::time::Instant::now() < deadline, "it never began");
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(dice.below(wait_us)));
        child.kill().unwrap();
        child.wait().unwrap();
        for moment in ["began", "committed"] {
            // Not every round comes as far as the second.
            std::fs::remove_file(trees.at(moment)).ok();
        }
        for recovered in trees.deployer().recover(&mut ()).unwrap() {
            match recovered {
                Recovered::Finished { .. } => finished += 1,
                Recovered::Discarded { .. } => discarded += 1,
                Recovered::TakenBack { .. } => {}
            }
        }
        if is_one_of(&trees.target(), &former, &complete, &format!("round {round}")) {
            trees.undo().unwrap();
            assert_eq!(trees.target(), former, "round {round}");
        }
        if round % 5 == 0 {
            trees.deploy(&format!("after{round}")).unwrap();
            assert_eq!(trees.target(), complete, "round {round}");
            trees.undo().unwrap();
        }
    }
    assert!(
        finished > 0 && discarded > 0,
        "{finished} finished, {discarded} discarded: the kills came at dull moments"
    );
}

/// No test of its own: the process that the one above kills.
#[test]
fn deploys_until_it_is_killed() {
    let Some(folder) = std::env::var_os(KILLED_IN) else { return };
    let folder = std::path::PathBuf::from(folder);
    let deployer = Deployer::open(&folder.join("source"), &folder.join("target"), key()).unwrap();
    std::fs::write(folder.join("began"), "").unwrap();
    let mut watch = super::At(DeployStep::Committed, || std::fs::write(folder.join("committed"), "").unwrap());
    for n in 0.. {
        let rules = DeployRules::default();
        let plan = deployer.plan(&rules, &|| false).unwrap();
        let id = format!("p{}-{n}", std::process::id());
        let mark = toolhost_deploy::DeployMark { id, at_ms: 1, who: "me".to_owned() };
        deployer.run(&plan, &rules, &mark, &mut watch, &|| false).unwrap();
        deployer.undo(None, &mut ()).unwrap();
    }
}
