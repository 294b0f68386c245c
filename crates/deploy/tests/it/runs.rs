//! What a run does, what undo brings back, and when both refuse.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use toolhost_contract::workspace::{ErrorKind, Result};
use toolhost_deploy::{DeployMark, DeployRules, DeployState, DeployStep, DeployWatch};

use super::{At, Trees, contents, everything, fill, mode, snapshot};

/// Rounds of the random walk.
const RANDOM_ROUNDS: u64 = 60;

#[test]
fn a_deploy_brings_contents_and_modes_and_leaves_the_rest() {
    let trees = Trees::lively();
    let deployed = trees.deploy("second").unwrap();
    assert_eq!((deployed.new, deployed.changed, deployed.deleted, deployed.unchanged), (3, 2, 1, 2));
    assert_eq!(deployed.kept, []);
    let files = contents(&trees.at("target"));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let expected = [
        (".env", "mine"),
        ("a/b/c.md", "c"),
        ("a/b/mine.md", "mine"),
        ("index.html", "two"),
        ("mode.js", "m"),
        ("new/deep/x.html", "x"),
        ("new/y.js", "y"),
        ("notes.txt", "mine"),
        ("same.js", "s"),
        ("z.svg", "z"),
    ];
    assert_eq!(files, expected);
    assert!(trees.target()["mode.js"].starts_with("file 100755"));
}

#[test]
fn undo_restores_the_former_tree_byte_for_byte() {
    let trees = Trees::lively();
    mode(&trees.at("target/index.html"), 0o640);
    mode(&trees.at("source/new"), 0o700);
    for (n, rules) in [DeployRules::default(), everything()].into_iter().enumerate() {
        let former = trees.target();
        trees.deploy_by(&format!("n{n}"), &rules, &mut ()).unwrap();
        assert_ne!(trees.target(), former);
        let plan = trees.deployer().undo_plan().unwrap().unwrap();
        assert_eq!(plan.conflicts, []);
        let undone = trees.undo().unwrap();
        assert_eq!(trees.target(), former);
        assert_eq!((plan.restored.len(), plan.removed.len()), (undone.restored, undone.removed));
        assert_eq!((undone.restored, undone.removed, undone.kept), (2, 3, vec![]));
    }
    // As the first deploy left it.
    mode(&trees.at("target/index.html"), std::fs::metadata(trees.at("source/index.html")).unwrap().mode() & 0o777);
    assert_eq!(trees.undo().unwrap().id, "first");
    let users = [(".env", "mine"), ("a/b/mine.md", "mine"), ("notes.txt", "mine")];
    assert_eq!(contents(&trees.at("target")), users.map(|(path, text)| (path.to_owned(), text.to_owned())));
    assert_eq!(trees.undo().unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn undo_leaves_a_folder_that_somebody_uses() {
    let trees = Trees::new(&[("new/x.html", "x"), ("new/empty/y.html", "y")], &[]);
    trees.deploy("one").unwrap();
    fill(&trees.at("target"), &[("new/mine.txt", "mine")]);
    trees.undo().unwrap();
    assert_eq!(contents(&trees.at("target")), [("new/mine.txt".to_owned(), "mine".to_owned())]);
    assert!(!trees.at("target/new/empty").exists());
}

#[test]
fn after_an_undo_the_same_deploy_works_again() {
    let trees = Trees::lively();
    trees.deploy("second").unwrap();
    let complete = trees.target();
    trees.undo().unwrap();
    trees.deploy("third").unwrap();
    assert_eq!(trees.target(), complete);
}

#[test]
fn undo_refuses_what_was_changed_since_and_names_it() {
    type Change = (&'static str, &'static str, fn(&Trees));
    let changes: &[Change] = &[
        ("index.html", "it was changed since", |t| fill(&t.at("target"), &[("index.html", "TWO")])),
        ("index.html", "it was changed since", |t| mode(&t.at("target/index.html"), 0o600)),
        ("z.svg", "it was deleted since", |t| std::fs::remove_file(t.at("target/z.svg")).unwrap()),
        ("old/gone.css", "it was made again since", |t| fill(&t.at("target"), &[("old/gone.css", "x")])),
        ("new/y.js", "its path leads through a link in the target", |t| {
            std::fs::rename(t.at("target/new"), t.at("target/moved")).unwrap();
            std::os::unix::fs::symlink("moved", t.at("target/new")).unwrap();
        }),
    ];
    for (path, why, change) in changes {
        let trees = Trees::lively();
        trees.deploy("second").unwrap();
        change(&trees);
        let before = trees.target();
        let error = trees.undo().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains(path), "{error}");
        let conflicts = trees.deployer().undo_plan().unwrap().unwrap().conflicts;
        assert!(conflicts.iter().any(|conflict| conflict.path == *path && conflict.why == *why), "{conflicts:?}");
        assert_eq!(trees.target(), before, "{path}");
    }
}

#[test]
fn only_the_newest_deploy_can_be_undone() {
    let trees = Trees::lively();
    trees.deploy("second").unwrap();
    let undo = |id| trees.deployer().undo(Some(id), &mut ());
    assert_eq!(undo("first").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(undo("second").unwrap().id, "second");
    assert_eq!(undo("second").unwrap_err().kind(), ErrorKind::NotFound);
    let history = trees.deployer().history().unwrap();
    let states: Vec<_> = history.iter().map(|record| (record.id.as_str(), record.state)).collect();
    assert_eq!(states, [("second", DeployState::Undone), ("first", DeployState::Done)]);
    assert_eq!((history[0].new, history[0].changed, history[0].deleted), (3, 2, 1));
    assert_eq!(history[0].who, "me");
}

#[test]
fn a_deploy_without_work_leaves_no_record() {
    let trees = Trees::lively();
    trees.deploy("second").unwrap();
    assert_eq!(trees.deploy("third").unwrap().id, None);
    assert_eq!(trees.deployer().history().unwrap().len(), 2);
}

#[test]
fn the_ten_newest_deploys_are_kept() {
    let trees = Trees::new(&[("a.html", "0")], &[]);
    for n in 0..12 {
        fill(&trees.at("source"), &[("a.html", &format!("{n}"))]);
        trees.deploy(&format!("d{n}")).unwrap();
    }
    let ids: Vec<_> = trees.deployer().history().unwrap().into_iter().map(|record| record.id).collect();
    assert_eq!(ids.len(), 10);
    assert_eq!((ids[0].as_str(), ids[9].as_str()), ("d11", "d2"));
    while trees.undo().is_ok() {}
    assert_eq!(contents(&trees.at("target")), [("a.html".to_owned(), "1".to_owned())]);
}

#[test]
fn a_name_is_used_once_and_is_no_path() {
    let trees = Trees::lively();
    for (id, kind) in [("first", ErrorKind::Conflict), ("../x", ErrorKind::Validation), ("", ErrorKind::Validation)] {
        let before = trees.target();
        assert_eq!(trees.deploy(id).unwrap_err().kind(), kind, "{id}");
        assert_eq!(trees.target(), before);
    }
}

#[test]
fn a_world_that_changed_since_the_plan_is_not_deployed() {
    use DeployStep::{Planned, Staged};
    type Change = (&'static str, &'static [DeployStep], fn(&Trees));
    // What is changed, until which steps of the run that is noticed besides before it, and how.
    let changes: &[Change] = &[
        ("`index.html`", &[Planned], |t| fill(&t.at("source"), &[("index.html", "owt")])),
        ("`index.html`", &[Planned], |t| mode(&t.at("source/index.html"), 0o600)),
        ("`index.html`", &[Planned], |t| std::fs::remove_file(t.at("source/index.html")).unwrap()),
        ("`index.html`", &[Planned, Staged], |t| fill(&t.at("target"), &[("index.html", "eno")])),
        ("`z.svg`", &[Planned, Staged], |t| fill(&t.at("target"), &[("z.svg", "mine")])),
        ("`old/gone.css`", &[Planned, Staged], |t| fill(&t.at("target"), &[("old/gone.css", "mine")])),
        ("`late.html`", &[], |t| fill(&t.at("source"), &[("late.html", "x")])),
        ("`same.js`", &[], |t| fill(&t.at("target"), &[("same.js", "mine")])),
    ];
    for (named, steps, change) in changes {
        for at in std::iter::once(None).chain(steps.iter().map(Some)) {
            let trees = Trees::lively();
            let plan = trees.plan(&DeployRules::default());
            let mut before = trees.target();
            let mut change = || {
                change(&trees);
                before = trees.target();
            };
            let ran = match at {
                None => {
                    change();
                    trees.run(&plan, "second", &mut ())
                }
                Some(step) => trees.run(&plan, "second", &mut At(*step, change)),
            };
            let error = ran.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{named} {at:?}: {error}");
            assert!(error.to_string().contains(named), "{named} {at:?}: {error}");
            assert_eq!(trees.target(), before, "{named} {at:?}");
            assert_eq!(trees.deployer().history().unwrap().len(), 1, "{named} {at:?}");
            trees.deploy("third").unwrap();
        }
    }
}

#[test]
fn another_rule_is_another_plan() {
    let trees = Trees::lively();
    let plan = trees.plan(&DeployRules::default());
    let mark = DeployMark { id: "second".to_owned(), at_ms: 1, who: "me".to_owned() };
    let error = trees.deployer().run(&plan, &everything(), &mark, &mut (), &|| false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn what_changes_at_the_very_last_moment_is_kept_and_told() {
    let trees = Trees::lively();
    let target = trees.at("target");
    let mut late = At(DeployStep::Committed, || {
        fill(&target, &[("index.html", "late"), ("z.svg", "late"), ("old/gone.css", "late")]);
    });
    let deployed = trees.deploy_by("second", &DeployRules::default(), &mut late).unwrap();
    let kept: Vec<_> = deployed.kept.iter().map(|kept| kept.path.as_str()).collect();
    assert_eq!(kept, ["z.svg", "index.html", "old/gone.css"]);
    for kept in deployed.kept.iter().take(2) {
        let place = kept.why.split('`').nth(1).unwrap();
        assert_eq!(std::fs::read_to_string(trees.at("target").join(place)).unwrap(), "late");
    }
    let now = |path: &str| std::fs::read_to_string(trees.at("target").join(path)).unwrap();
    assert_eq!((now("index.html"), now("z.svg"), now("old/gone.css")), ("two".into(), "z".into(), "late".into()));
    trees.undo().unwrap();
    assert_eq!((now("index.html"), now("z.svg"), now("old/gone.css")), ("late".into(), "late".into(), "late".into()));
}

#[test]
fn a_stop_before_the_commit_leaves_nothing() {
    let trees = Trees::lively();
    let former = trees.target();
    let plan = trees.plan(&DeployRules::default());
    let mark = DeployMark { id: "second".to_owned(), at_ms: 1, who: "me".to_owned() };
    let asked = std::sync::atomic::AtomicUsize::new(0);
    for patience in 0.. {
        asked.store(0, std::sync::atomic::Ordering::Relaxed);
        let stop = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= patience;
        match trees.deployer().run(&plan, &plan.rules, &mark, &mut (), &stop) {
            Ok(_) => {
                assert!(patience > 4);
                break;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled),
        }
        assert_eq!(trees.target(), former);
        assert_eq!(trees.deployer().history().unwrap().len(), 1);
    }
}

/// Holds a deploy up until told to go on.
struct Held(std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>);

impl DeployWatch for Held {
    fn step(&mut self, step: DeployStep) -> Result<()> {
        if step == DeployStep::Committed {
            self.0.send(()).unwrap();
            self.1.recv().unwrap();
        }
        Ok(())
    }
}

#[test]
fn a_second_deploy_waits_for_the_first() {
    let trees = Trees::lively();
    let (began, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let mut held = Held(began, may_go_on);
            trees.deploy_by("second", &DeployRules::default(), &mut held)
        });
        has_begun.recv().unwrap();
        // Whoever does not wait is told so at once.
        let stopped = trees.deployer().plan(&DeployRules::default(), &|| true).unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Cancelled);
        assert_eq!(trees.deployer().history().unwrap()[0].state, DeployState::Unfinished);
        let second = scope.spawn(|| trees.plan(&DeployRules::default()));
        go_on.send(()).unwrap();
        first.join().unwrap().unwrap();
        assert!(second.join().unwrap().is_empty(), "it saw the world after the first");
    });
}

#[test]
fn a_second_deploy_does_not_wait_for_ever() {
    let trees = Trees::lively();
    let (began, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = Held(began, may_go_on);
            trees.deploy_by("second", &DeployRules::default(), &mut held).unwrap();
        });
        has_begun.recv().unwrap();
        let waited = Instant::now();
        let error = trees.deployer().undo(None, &mut ()).unwrap_err();
        go_on.send(()).unwrap();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(waited.elapsed() < Duration::from_secs(60));
    });
}

/// A small generator: the same seed, the same trees.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }
}

const NAMES: &[&str] = &["a", "b", "c.html", "d.js", "e.md", "f.py", ".g", "h.txt"];

fn scribble(dice: &mut Dice, root: &std::path::Path) {
    for _ in 0..dice.below(8) {
        let depth = 1 + dice.below(3);
        let path: Vec<_> = (0..depth).map(|_| dice.pick(NAMES)).collect();
        let path = root.join(path.join("/"));
        match dice.below(5) {
            0 if path.is_dir() => toolhost_sandbox::remove_folder(&path).unwrap(),
            0 if path.exists() => std::fs::remove_file(&path).unwrap(),
            // Where a file is in the way nothing is written.
            _ if std::fs::create_dir_all(path.parent().unwrap()).is_err() || path.is_dir() => {}
            _ => {
                std::fs::write(&path, format!("{}", dice.below(4))).unwrap();
                mode(&path, if dice.below(2) == 0 { 0o644 } else { 0o755 });
            }
        }
    }
}

#[test]
fn random_trees_are_deployed_as_planned_and_restored_as_they_were() {
    let mut work = 0;
    for seed in 1..=RANDOM_ROUNDS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let trees = Trees::new(&[], &[]);
        for round in 0..3 {
            scribble(&mut dice, &trees.at("source"));
            scribble(&mut dice, &trees.at("target"));
            let rules = if dice.below(2) == 0 { everything() } else { DeployRules::default() };
            let plan = trees.plan(&rules);
            let (former, source) = (trees.target(), snapshot(&trees.at("source")));
            let mut expected = former.clone();
            for file in plan.new.iter().chain(&plan.changed) {
                expected.insert(file.path.clone(), source[&file.path].clone());
                for (at, _) in file.path.match_indices('/') {
                    expected.entry(file.path[..at].to_owned()).or_insert_with(|| source[&file.path[..at]].clone());
                }
            }
            for orphan in &plan.orphans {
                assert!(source.get(&orphan.path).is_none_or(|what| what.starts_with("folder")), "seed {seed}");
                expected.remove(&orphan.path).unwrap();
            }
            let shipped = plan.new.len() + plan.changed.len() + plan.unchanged;
            let refused = plan.refused.iter().filter(|reason| !reason.path.ends_with('/')).count();
            let files = source.values().filter(|what| what.starts_with("file")).count();
            assert_eq!(shipped + refused, files, "seed {seed}: every file is told of");
            let id = format!("r{round}");
            trees.run(&plan, &id, &mut ()).unwrap();
            assert_eq!(trees.target(), expected, "seed {seed}, round {round}");
            if !plan.is_empty() {
                work += 1;
                trees.undo().unwrap();
                assert_eq!(trees.target(), former, "seed {seed}, round {round}: undone");
                trees.deploy_by(&format!("{id}-again"), &rules, &mut ()).unwrap();
                assert_eq!(trees.target(), expected, "seed {seed}, round {round}: again");
            }
        }
    }
    assert!(work > usize::try_from(RANDOM_ROUNDS).unwrap(), "{work}");
}
