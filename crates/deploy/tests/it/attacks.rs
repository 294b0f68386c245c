//! A workspace or a target that somebody has prepared.

use std::os::unix::fs::symlink;

use toolhost_contract::workspace::ErrorKind;
use toolhost_deploy::{DeployKey, DeployRules, DeployStep, Deployer};

use super::{At, Trees, everything, fill, mode};

#[test]
fn no_link_in_the_workspace_brings_anything_from_outside() {
    let trees = Trees::new(&[("ok.html", "x")], &[]);
    symlink(trees.at("outside/folder/page.html"), trees.at("source/page.html")).unwrap();
    symlink(trees.at("outside"), trees.at("source/out")).unwrap();
    symlink("/proc/self/root/etc", trees.at("source/magic")).unwrap();
    trees.deploy("one").unwrap();
    assert_eq!(super::contents(&trees.at("target")), [("ok.html".to_owned(), "x".to_owned())]);
}

#[test]
fn no_link_in_the_target_leads_a_deploy_outside() {
    for rules in [DeployRules::default(), everything()] {
        let trees = Trees::new(&[("folder/page.html", "x"), ("out/folder/page.html", "x"), ("secret.txt", "x")], &[]);
        symlink(trees.at("outside/folder"), trees.at("target/folder")).unwrap();
        symlink(trees.at("outside"), trees.at("target/out")).unwrap();
        let before = trees.target();
        let deployed = trees.deploy_by("one", &rules, &mut ()).unwrap();
        assert_eq!(deployed.id, None);
        assert_eq!(trees.target(), before);
        trees.outside_is_untouched();
    }
}

#[test]
fn a_folder_swapped_for_a_link_leads_nowhere() {
    let swaps = [
        None,
        Some(DeployStep::Planned),
        Some(DeployStep::Staged),
        Some(DeployStep::Verified),
        Some(DeployStep::Committed),
    ];
    for at in swaps {
        let trees = Trees::new(&[("folder/page.html", "new"), ("x.html", "x")], &[("folder/page.html", "old")]);
        let plan = trees.plan(&DeployRules::default());
        let swap = || {
            std::fs::rename(trees.at("target/folder"), trees.at("target/was")).unwrap();
            symlink(trees.at("outside/folder"), trees.at("target/folder")).unwrap();
        };
        let ran = match at {
            None => {
                swap();
                trees.run(&plan, "one", &mut ())
            }
            Some(step) => trees.run(&plan, "one", &mut At(step, swap)),
        };
        assert!(ran.is_err(), "{at:?}");
        trees.outside_is_untouched();
        // A deploy that was committed cannot be taken back through the link; once it is gone it can.
        std::fs::remove_file(trees.at("target/folder")).unwrap();
        std::fs::rename(trees.at("target/was"), trees.at("target/folder")).unwrap();
        trees.deployer().recover(&mut ()).unwrap();
        let complete = std::fs::read_to_string(trees.at("target/folder/page.html")).unwrap() == "new";
        assert_eq!(complete, trees.at("target/x.html").exists(), "{at:?}: one tree or the other");
        trees.deploy("two").unwrap();
        trees.outside_is_untouched();
    }
}

#[test]
fn what_was_changed_where_it_is_kept_does_not_come_back() {
    // index.html was changed, old/gone.css deleted, z.svg new: all three have a place in `former`.
    for (path, planted) in [("index.html", "evil"), ("old/gone.css", "evil"), ("z.svg", "evil")] {
        let trees = Trees::lively();
        trees.deploy("second").unwrap();
        let plan: serde_json::Value = {
            let text = std::fs::read_to_string(trees.at("target/.toolhost/deploys/second/plan.json")).unwrap();
            serde_json::from_str(text.rsplit_once('\n').unwrap().0).unwrap()
        };
        let of = |list: &str| plan[list].as_array().unwrap().clone();
        let all: Vec<_> = of("files").into_iter().chain(of("orphans")).collect();
        let n = all.iter().position(|file| file["path"] == path).unwrap();
        std::fs::write(trees.at(&format!("target/.toolhost/deploys/second/former/{n}")), planted).unwrap();
        let before = trees.target();
        let told = trees.deployer().undo_plan().unwrap().unwrap();
        assert_eq!(told.conflicts.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), [path]);
        assert_eq!(trees.undo().unwrap_err().kind(), ErrorKind::Conflict, "{path}");
        assert_eq!(trees.target(), before, "{path}");
    }
}

#[test]
fn a_source_file_swapped_for_a_link_does_not_ship() {
    for at in [DeployStep::Planned, DeployStep::Recorded] {
        let trees = Trees::new(&[("page.html", "x")], &[]);
        let plan = trees.plan(&DeployRules::default());
        let mut swap = At(at, || {
            std::fs::remove_file(trees.at("source/page.html")).unwrap();
            symlink(trees.at("outside/folder/page.html"), trees.at("source/page.html")).unwrap();
        });
        assert_eq!(trees.run(&plan, "one", &mut swap).unwrap_err().kind(), ErrorKind::Conflict);
        assert!(super::contents(&trees.at("target")).is_empty());
    }
}

#[test]
fn a_work_folder_that_is_not_ours_is_refused() {
    type Furnish = fn(&Trees);
    let cases: &[(&str, Furnish)] = &[
        ("a link", |t| symlink(t.at("outside"), t.at("target/.toolhost")).unwrap()),
        ("a file", |t| fill(&t.at("target"), &[(".toolhost", "x")])),
        ("open to others", |t| {
            fill(&t.at("target"), &[(".toolhost/", "")]);
            mode(&t.at("target/.toolhost"), 0o755);
        }),
    ];
    for (what, furnish) in cases {
        let trees = Trees::new(&[("page.html", "x")], &[]);
        let plan = trees.plan(&DeployRules::default());
        furnish(&trees);
        let before = trees.target();
        let deployer = trees.deployer();
        assert_eq!(trees.run(&plan, "one", &mut ()).unwrap_err().kind(), ErrorKind::Security, "{what}");
        assert_eq!(deployer.plan(&plan.rules, &|| false).unwrap_err().kind(), ErrorKind::Security, "{what}");
        assert_eq!(deployer.undo(None, &mut ()).unwrap_err().kind(), ErrorKind::Security, "{what}");
        assert_eq!(deployer.recover(&mut ()).unwrap_err().kind(), ErrorKind::Security, "{what}");
        assert_eq!(deployer.history().unwrap_err().kind(), ErrorKind::Security, "{what}");
        assert_eq!(trees.target(), before, "{what}");
        trees.outside_is_untouched();
    }
}

#[test]
fn an_invented_journal_cannot_reach_where_no_deploy_reaches() {
    for path in
        [".git/hooks/pre-commit", "../outside/x.html", "/etc/x", ".toolhost/manifest.json", "toolhost.toml", "a//b"]
    {
        let trees = Trees::new(&[("page.html", "x")], &[(".git/hooks/", "")]);
        let file = format!(r#"{{"path":{path:?},"bytes":1,"mode":493,"sha256":"x"}}"#);
        let record = format!(r#"{{"files":[{file}],"orphans":[],"folders":[],"gone":[]}}"#);
        let work = trees.at("target/.toolhost");
        fill(&work, &[("deploys/x/plan.json", &record), ("deploys/x/commit", ""), ("deploys/x/new/0", "evil")]);
        fill(&work, &[("deploys/x/former/", "")]);
        mode(&work, 0o700);
        let before = trees.target();
        assert_eq!(trees.deployer().recover(&mut ()).unwrap_err().kind(), ErrorKind::Security, "{path}");
        assert_eq!(trees.target(), before);
        trees.outside_is_untouched();
    }
}

#[test]
fn a_journal_that_was_not_written_with_our_key_is_not_believed() {
    let trees = Trees::new(&[("a.html", "one")], &[(".env", "mine")]);
    trees.deploy("first").unwrap();
    fill(&trees.at("source"), &[("a.html", "two")]);
    // Whoever writes the folder makes a deploy of its own that seems to be interrupted.
    let work = trees.at("target/.toolhost/deploys");
    let copy = |name: &str| std::fs::copy(work.join("first").join(name), work.join("planted").join(name)).unwrap();
    std::fs::create_dir_all(work.join("planted/new")).unwrap();
    std::fs::create_dir_all(work.join("planted/former")).unwrap();
    for name in ["plan.json", "about.json", "manifest.json", "commit"] {
        copy(name);
    }
    fill(&work, &[("planted/new/0", "planted")]);
    let before = trees.target();
    let stranger = Deployer::open(&trees.at("source"), &trees.at("target"), DeployKey::new([8; 32])).unwrap();
    for deployer in [stranger, trees.deployer()] {
        assert_eq!(deployer.recover(&mut ()).unwrap_err().kind(), ErrorKind::Security);
        assert_eq!(deployer.plan(&DeployRules::default(), &|| false).unwrap_err().kind(), ErrorKind::Security);
    }
    assert_eq!(trees.target(), before);
    assert!(work.join("first/commit").exists(), "nothing of what is there is given up");
    toolhost_sandbox::remove_folder(&work.join("planted")).unwrap();
    // And a plan changed by hand is no plan.
    let plan = work.join("first/plan.json");
    let text = std::fs::read_to_string(&plan).unwrap().replace("a.html", ".env");
    std::fs::write(&plan, text).unwrap();
    assert!(trees.deployer().undo(None, &mut ()).is_err());
    assert_eq!(std::fs::read_to_string(trees.at("target/.env")).unwrap(), "mine");
}
