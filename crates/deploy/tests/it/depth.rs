//! What an agent can make stops no deploy: depth, long paths, names, and bits that a deploy does not carry over.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use toolhost_deploy::{DeployRules, Orphans, Recovered};

use super::{Trees, everything, fill, mode};
use crate::ordinary::is_root;

/// More than a removal that calls itself has room for on its stack.
const DEEP: usize = 20_000;
/// More than any path has room for.
const BEYOND_PATHS: usize = 3_000;

/// Folders inside each other, and a file in the innermost.
fn dig(root: &Path, name: &str, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder: OwnedFd = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        rustix::fs::mkdirat(&folder, name, Mode::RWXU).unwrap();
        folder = rustix::fs::openat(&folder, name, flags, Mode::empty()).unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(&folder, "page.html", flags, Mode::RUSR).unwrap();
}

/// The trees, whose removal must not recurse.
struct Deep(Trees);

impl Drop for Deep {
    fn drop(&mut self) {
        let gone = std::process::Command::new("rm").arg("-rf").arg(self.0.folder.path()).status();
        assert!(gone.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

fn why<'a>(reasons: &'a [toolhost_deploy::Reason], path: &str) -> Option<(&'a str, bool)> {
    reasons.iter().find(|one| one.path == path).map(|one| (one.why.as_str(), one.held_back))
}

#[test]
fn what_is_too_deep_or_has_too_long_a_path_stays_back_and_the_rest_is_deployed() {
    let deep = Deep(Trees::new(&[("index.html", "one"), ("kept/page.html", "x")], &[("mine/page.html", "x")]));
    let trees = &deep.0;
    dig(&trees.at("source"), "d", BEYOND_PATHS);
    dig(&trees.at("source"), "e", 256);
    dig(&trees.at("source"), &"l".repeat(255), 200);
    dig(&trees.at("source"), &"n".repeat(134), 30);
    dig(&trees.at("target"), "t", BEYOND_PATHS);
    fill(&trees.at("source"), &[("C:/page.html", "x")]);
    let rules = DeployRules { orphans: Orphans::Everything, ..DeployRules::default() };
    let plan = trees.plan(&rules);
    let too_deep = Some(("it is deeper than 256 folders", true));
    assert_eq!(why(&plan.refused, &"d/".repeat(257)), too_deep);
    assert_eq!(why(&plan.protected, &"t/".repeat(257)), too_deep);
    assert_eq!(why(&plan.refused, "C:/page.html"), Some(("its path is not one that can be named here", true)));
    let long = plan.refused.iter().find(|one| one.path.starts_with("ll")).unwrap();
    assert!(long.why == "its path is too long" && long.path.len() > 4_096, "{long:?}");
    let new: Vec<String> = plan.new.iter().map(|file| file.path.clone()).collect();
    let (e, n) =
        (format!("{}page.html", "e/".repeat(256)), format!("{}page.html", (["n"; 134].concat() + "/").repeat(30)));
    assert!(new.contains(&e) && new.contains(&n) && n.len() > 4_050, "{new:?}");
    assert_eq!((new.len(), plan.held_back().count()), (4, 4));
    assert_eq!(plan.orphans.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), ["mine/page.html"]);
    let before = trees.at("target/mine/page.html");
    let deployed = trees.run(&plan, "deep", &mut ()).unwrap();
    assert_eq!((deployed.new, deployed.deleted), (4, 1));
    assert!(trees.at("target").join(&e).is_file() && !before.exists());
    assert_eq!(trees.undo().unwrap().removed, 4);
    assert!(before.exists() && !trees.at("target/index.html").exists() && !trees.at("target").join("e").exists());
}

#[test]
fn a_deploy_s_folder_is_removed_however_deep_somebody_has_made_it() {
    let deep = Deep(Trees::new(&[("index.html", "one")], &[]));
    let trees = &deep.0;
    trees.deploy("first").unwrap();
    let left = trees.at("target/.toolhost/deploys/left");
    fill(&left, &[("new/", ""), ("former/", "")]);
    dig(&left.join("former"), "d", DEEP);
    let recovered = trees.deployer().recover(&mut ()).unwrap();
    assert_eq!(recovered, [Recovered::Discarded { id: "left".to_owned() }]);
    let folders = std::fs::read_dir(trees.at("target/.toolhost/deploys")).unwrap();
    assert_eq!(folders.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), ["first"]);
}

#[test]
fn a_folder_whose_ignore_file_cannot_be_read_stays_back_and_stops_nothing() {
    let trees = Trees::new(&[("index.html", "one"), ("odd/page.html", "x"), ("closed/page.html", "x")], &[]);
    std::fs::write(trees.at("source/odd/.gitignore"), "x".repeat(2 << 20)).unwrap();
    mode(&trees.at("source/closed"), 0o444);
    let plan = trees.plan(&DeployRules::default());
    assert_eq!(why(&plan.refused, "odd/"), Some(("it cannot be read", true)));
    if !is_root() {
        assert_eq!(why(&plan.refused, "closed/"), Some(("it cannot be read", true)));
    }
    assert_eq!(plan.new.iter().filter(|file| file.path.starts_with("odd")).count(), 0);
    trees.run(&plan, "first", &mut ()).unwrap();
    mode(&trees.at("source/closed"), 0o755);
}

#[test]
fn no_deploy_and_no_undo_brings_a_program_that_runs_as_its_owner() {
    let bits = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let trees = Trees::new(&[("tool.js", "one"), ("folder/page.html", "x")], &[("tool.js", "mine"), ("old.js", "old")]);
    mode(&trees.at("source/tool.js"), 0o6755);
    mode(&trees.at("source/folder"), 0o2755);
    // A folder made in there inherits the bit from the kernel.
    mode(&trees.at("target"), 0o2755);
    let plan = trees.plan(&everything());
    trees.run(&plan, "first", &mut ()).unwrap();
    assert_eq!((bits(trees.at("target/tool.js")), bits(trees.at("target/folder"))), (0o755, 0o755));
    for entry in std::fs::read_dir(trees.at("target/.toolhost/deploys/first/former")).unwrap() {
        let kept = entry.unwrap().path();
        mode(&kept, bits(kept.clone()) | 0o6000);
    }
    let undone = trees.undo().unwrap();
    assert_eq!((undone.restored, undone.returned), (1, 1));
    for path in ["tool.js", "old.js"] {
        assert_eq!(bits(trees.at("target").join(path)) & 0o6000, 0, "{path}");
    }
}
