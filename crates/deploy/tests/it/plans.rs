//! What a plan says.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use toolhost_contract::workspace::ErrorKind;
use toolhost_deploy::{DeployPlan, DeployRules, Deployer, Orphans, Reason};

use super::{Trees, everything, fill, key, mode};
use crate::ordinary::is_root;

fn find<'a>(reasons: &'a [Reason], path: &str) -> Option<&'a str> {
    reasons.iter().find(|reason| reason.path == path).map(|reason| reason.why.as_str())
}

fn paths<'a, T>(list: &'a [T], path: impl Fn(&'a T) -> &'a String) -> Vec<&'a str> {
    list.iter().map(|item| path(item).as_str()).collect()
}

#[test]
fn says_of_every_file_that_does_not_ship_why() {
    let trees = Trees::new(
        &[
            ("index.html", "ships"),
            ("main.py", "x"),
            (".git/config.json", "x"),
            ("sub/.GIT/hooks.js", "x"),
            (".toolhost/manifest.json", "x"),
            ("toolhost.toml", "x"),
            (".gitignore", "node_modules/\n*.log.md\n"),
            ("node_modules/p/index.js", "x"),
            ("today.log.md", "x"),
            ("Twin.md", "x"),
            ("twin.md", "x"),
            ("through/page.html", "x"),
            ("folder.html", "x"),
            ("file/below.html", "x"),
            ("link.html", "x"),
        ],
        &[("folder.html/", ""), ("file", "x")],
    );
    symlink("index.html", trees.at("source/alias.html")).unwrap();
    symlink("/etc", trees.at("source/etc")).unwrap();
    symlink(trees.at("outside"), trees.at("target/through")).unwrap();
    symlink("elsewhere", trees.at("target/link.html")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"\xff.html");
    std::fs::write(trees.at("source").join(odd), "x").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        trees.at("source/pipe.html"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let plan = trees.plan(&DeployRules::default());
    let expected = [
        ("main.py", "its kind of file is not in the list of what ships"),
        (".gitignore", "its kind of file is not in the list of what ships"),
        (".git/", "it belongs to git"),
        ("sub/.GIT/", "it belongs to git"),
        (".toolhost/", "it belongs to Toolhost"),
        ("toolhost.toml", "it is the project's policy"),
        ("node_modules/", "git ignores it"),
        ("today.log.md", "git ignores it"),
        ("Twin.md", "it differs only in case from another"),
        ("twin.md", "it differs only in case from another"),
        ("through/page.html", "its path leads through a link in the target"),
        ("folder.html", "a folder stands at its place in the target"),
        ("file/below.html", "a file stands in its path in the target"),
        ("link.html", "a link stands at its place in the target"),
        ("alias.html", "it is a link"),
        ("etc", "it is a link"),
        ("\u{fffd}.html", "its name is not UTF-8"),
        ("pipe.html", "it is not a regular file"),
    ];
    for (path, why) in expected {
        assert_eq!(find(&plan.refused, path), Some(why), "{path}");
    }
    assert_eq!(plan.refused.len(), expected.len());
    assert_eq!(paths(&plan.new, |file| &file.path), ["index.html"]);
    assert!(!trees.at("target/.toolhost").exists(), "a plan leaves nothing behind");
}

/// Rules: 002.35, 002.65.
#[test]
fn ships_pages_scripts_texts_images_and_fonts_and_nothing_else_by_itself() {
    let mut ships = [
        "html", "css", "js", "ts", "tsx", "json", "md", "png", "jpg", "gif", "svg", "webp", "ico", "woff", "woff2",
        "ttf",
    ]
    .map(|extension| format!("a.{extension}"));
    ships.sort();
    let stays = ["a.js.map", "a.css.map", "app.yaml", "app.toml", "app.ini", "manual.pdf", "manual.txt", "a.rs", "a"];
    let files: Vec<(&str, &str)> = ships.iter().map(String::as_str).chain(stays).map(|path| (path, "x")).collect();
    let plan = Trees::new(&files, &[]).plan(&DeployRules::default());
    assert_eq!(paths(&plan.new, |file| &file.path), ships);
    for path in stays {
        assert_eq!(find(&plan.refused, path), Some("its kind of file is not in the list of what ships"), "{path}");
    }
}

/// Rules: 002.65.
#[test]
fn ships_any_language_that_the_list_has() {
    let trees = Trees::new(&[("a.py", "x"), ("src/b.RS", "x"), ("Dockerfile", "x"), ("c.html", "x")], &[]);
    let ship = [".py", ".rs", "Dockerfile"].map(str::to_owned).to_vec();
    let plan = trees.plan(&DeployRules { ship, ..DeployRules::default() });
    assert_eq!(paths(&plan.new, |file| &file.path), ["Dockerfile", "a.py", "src/b.RS"]);
    assert_eq!(find(&plan.refused, "c.html"), Some("its kind of file is not in the list of what ships"));
}

/// What a user has in a project that no workspace knows of.
const USERS: &[(&str, &str)] = &[
    (".env", "SECRET=1"),
    (".github/workflows/ci.yml", "x"),
    (".gitignore", "node_modules/\n/dist\n"),
    ("node_modules/p/index.js", "x"),
    ("dist/app.js", "x"),
    ("config.toml", "x"),
    ("README.md", "x"),
    ("Dockerfile", "x"),
    ("web/Dockerfile", "x"),
    ("Cargo.toml", "x"),
    ("LICENSE", "x"),
    ("a/.hidden/x.js", "x"),
];

/// Rules: 002.34, 002.64.
#[test]
fn what_is_protected_survives_both_rules() {
    for rule in [Orphans::Ours, Orphans::Everything] {
        let trees = Trees::new(&[("index.html", "x")], USERS);
        let before = trees.target();
        let rules = DeployRules { orphans: rule, ..DeployRules::default() };
        let plan = trees.plan(&rules);
        assert!(plan.orphans.is_empty(), "{:?}", plan.orphans);
        if rule == Orphans::Everything {
            for (path, why) in [
                (".env", "protected by `**/.*`"),
                (".github/", "protected by `**/.*`"),
                ("node_modules/", "git ignores it"),
                ("dist/", "git ignores it"),
                ("config.toml", "protected by `config.toml`"),
                ("README.md", "protected by `README.md`"),
                ("Dockerfile", "protected by `**/Dockerfile`"),
                ("web/Dockerfile", "protected by `**/Dockerfile`"),
                ("Cargo.toml", "protected by `Cargo.toml`"),
                ("LICENSE", "protected by `LICENSE`"),
                ("a/.hidden/", "protected by `**/.*`"),
            ] {
                assert_eq!(find(&plan.protected, path), Some(why), "{path}");
            }
        }
        trees.run(&plan, "d", &mut ()).unwrap();
        let after = trees.target();
        assert!(before.iter().all(|(path, what)| after.get(path) == Some(what)));
    }
}

/// Rules: 002.33.
#[test]
fn by_default_only_what_a_deploy_brought_is_deleted() {
    let trees =
        Trees::new(&[("a.html", "a"), ("b.html", "b"), ("README.md", "r")], &[("Dockerfile", "x"), ("m.py", "x")]);
    trees.deploy("one").unwrap();
    fill(&trees.at("target"), &[("b.html", "the user's now")]);
    for file in ["a.html", "b.html", "README.md"] {
        std::fs::remove_file(trees.at("source").join(file)).unwrap();
    }
    let plan = trees.plan(&DeployRules::default());
    assert_eq!(paths(&plan.orphans, |orphan| &orphan.path), ["a.html"]);
    assert_eq!(find(&plan.protected, "b.html"), Some("it was changed since it was deployed"));
    assert_eq!(find(&plan.protected, "README.md"), Some("protected by `README.md`"));
    let plan = trees.plan(&everything());
    assert_eq!(paths(&plan.orphans, |orphan| &orphan.path), ["a.html", "b.html", "m.py"]);
}

#[test]
fn what_the_workspace_has_is_no_orphan_even_if_it_does_not_ship() {
    let trees = Trees::new(
        &[("main.py", "x"), (".gitignore", "build/"), ("build/x.js", "x")],
        &[("main.py", "y"), ("build/x.js", "y"), ("z.py", "z")],
    );
    symlink("nowhere", trees.at("target/link.js")).unwrap();
    let plan = trees.plan(&everything());
    assert_eq!(paths(&plan.orphans, |orphan| &orphan.path), ["z.py"]);
    assert_eq!(find(&plan.protected, "build/"), Some("the workspace has it, and it does not ship"));
    assert_eq!(find(&plan.protected, "link.js"), Some("it is a link"));
}

#[test]
fn git_s_rules_count_from_the_repository_s_root_on() {
    let trees = Trees::new(&[("index.html", "x")], &[("x.tmp", "x"), ("kept.tmp", "x"), ("y.py", "x")]);
    // The target is a folder of a repository one level up.
    fill(trees.folder.path(), &[(".git/HEAD", "x"), (".gitignore", "/target/*.tmp\n!kept.tmp\n")]);
    let plan = trees.plan(&everything());
    assert_eq!(find(&plan.protected, "x.tmp"), Some("git ignores it"));
    assert_eq!(paths(&plan.orphans, |orphan| &orphan.path), ["kept.tmp", "y.py"]);
}

#[test]
fn a_workspace_inside_the_target_stays_out_of_it() {
    let trees = Trees::new(&[], &[("ws/index.html", "x"), ("ws/ws/page.html", "x"), ("other.py", "x")]);
    let deployer = Deployer::open(&trees.at("target/ws"), &trees.at("target"), key()).unwrap();
    let plan = deployer.plan(&everything(), &|| false).unwrap();
    assert_eq!(paths(&plan.new, |file| &file.path), ["index.html"]);
    assert_eq!(find(&plan.refused, "ws/"), Some("its place is the workspace itself"));
    assert_eq!(paths(&plan.orphans, |orphan| &orphan.path), ["other.py"]);
}

#[test]
fn refuses_folders_that_contain_each_other_the_wrong_way() {
    let trees = Trees::new(&[("sub/x.html", "x")], &[]);
    let refused = |source: &str, target: &str| match Deployer::open(&trees.at(source), &trees.at(target), key()) {
        Ok(_) => None,
        Err(e) => Some(e.kind()),
    };
    assert_eq!(refused("source", "source"), Some(ErrorKind::Validation));
    assert_eq!(refused("source", "source/sub"), Some(ErrorKind::Validation));
    assert_eq!(refused("source", "missing"), Some(ErrorKind::Validation));
    assert_eq!(refused("source/sub", "source"), None);
}

#[test]
fn the_digest_is_the_same_for_the_same_world_and_for_no_other() {
    let trees = Trees::new(&[("a.html", "a"), ("b.html", "b"), ("same.md", "s")], &[("b.html", "c"), ("same.md", "s")]);
    let rules = DeployRules::default();
    let digest = || trees.plan(&rules).digest();
    let mut seen = vec![digest()];
    assert_eq!(digest(), seen[0]);
    let mut differs = |what: &str| {
        let next = digest();
        assert!(!seen.contains(&next), "{what}");
        assert_eq!(digest(), next, "{what}");
        seen.push(next);
    };
    fill(&trees.at("source"), &[("a.html", "A")]);
    differs("a content of the same length");
    mode(&trees.at("source/a.html"), 0o755);
    differs("a mode");
    fill(&trees.at("source"), &[("new.html", "")]);
    differs("a new file");
    fill(&trees.at("target"), &[("b.html", "d")]);
    differs("what is to be replaced");
    mode(&trees.at("target/b.html"), 0o600);
    differs("the mode of what is to be replaced");
    fill(&trees.at("source"), &[("same.md", "t")]);
    fill(&trees.at("target"), &[("same.md", "t")]);
    differs("an unchanged file, on both sides");
    let others = [
        DeployRules { files_max: 7, ..rules.clone() },
        DeployRules { protect: vec!["x".to_owned()], ..rules.clone() },
        DeployRules { orphans: Orphans::Everything, ..rules.clone() },
    ];
    assert!(others.iter().all(|other| !seen.contains(&trees.plan(other).digest())));
}

#[test]
fn a_hurried_change_of_the_same_length_is_seen() {
    let trees = Trees::new(&[("a.html", "0000")], &[]);
    // One that remembers what it has hashed.
    let deployer = trees.deployer();
    let mut last = String::new();
    for n in 0..300 {
        fill(&trees.at("source"), &[("a.html", &format!("{n:04}"))]);
        let next = deployer.plan(&DeployRules::default(), &|| false).unwrap().digest();
        assert_ne!(next, last);
        last = next;
    }
}

#[test]
fn a_plan_is_the_same_after_a_journey_as_json() {
    let trees = Trees::lively();
    let plan = trees.plan(&everything());
    let text = serde_json::to_string(&plan).unwrap();
    let back: DeployPlan = serde_json::from_str(&text).unwrap();
    assert_eq!((back.digest(), &back), (plan.digest(), &plan));
    assert!(text.contains("\"unchangedSha256\"") && !back.changed.is_empty() && !back.orphans.is_empty());
}

#[test]
fn the_number_of_files_has_a_limit() {
    let trees = Trees::new(&[("a.html", ""), ("b.html", ""), ("c.py", "")], &[]);
    let plan = |files_max| trees.deployer().plan(&DeployRules { files_max, ..DeployRules::default() }, &|| false);
    assert!(plan(2).is_ok());
    assert_eq!(plan(1).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn a_plan_can_be_stopped() {
    let trees = Trees::new(&[("a.html", "")], &[]);
    let stopped = trees.deployer().plan(&DeployRules::default(), &|| true);
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[test]
fn what_may_not_be_touched_is_told_and_left() {
    if is_root() {
        // Who may do everything learns nothing here; these tests run for an ordinary user too.
        return;
    }
    let trees = Trees::new(
        &[("closed.html", "x"), ("shut/x.html", "x"), ("fixed/x.html", "x"), ("fixed/new.html", "x"), ("ok.html", "x")],
        &[("fixed/x.html", "y"), ("fixed/z.py", "y"), ("secret/z.py", "y"), ("sealed.html", "y")],
    );
    fill(&trees.at("source"), &[("sealed.html", "x")]);
    mode(&trees.at("source/closed.html"), 0o000);
    mode(&trees.at("source/shut"), 0o000);
    mode(&trees.at("target/sealed.html"), 0o000);
    mode(&trees.at("target/fixed"), 0o555);
    mode(&trees.at("target/secret"), 0o000);
    let plan = trees.plan(&everything());
    assert_eq!(paths(&plan.new, |file| &file.path), ["ok.html"]);
    assert!(plan.changed.is_empty() && plan.orphans.is_empty(), "{plan:?}");
    for (path, why) in [
        ("closed.html", "it, or what stands at its place, cannot be read"),
        ("sealed.html", "it, or what stands at its place, cannot be read"),
        ("shut/", "it cannot be read"),
        ("fixed/x.html", "its folder in the target cannot be written to"),
        ("fixed/new.html", "its folder in the target cannot be written to"),
    ] {
        assert_eq!(find(&plan.refused, path), Some(why), "{path}");
    }
    assert_eq!(find(&plan.protected, "fixed/z.py"), Some("its folder in the target cannot be written to"));
    assert_eq!(find(&plan.protected, "secret/"), Some("it cannot be read"));
    trees.run(&plan, "one", &mut ()).unwrap();
    for path in ["source/shut", "target/fixed", "target/secret"] {
        mode(&trees.at(path), 0o755);
    }
}
