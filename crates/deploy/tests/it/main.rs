//! Deploys: what they promise to whoever has something to lose in the target.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "tests, on real folders")]

mod attacks;
mod crashes;
mod depth;
mod ordinary;
mod plans;
mod runs;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolhost_contract::workspace::{Error, Result};
use toolhost_deploy::{
    DeployKey, DeployMark, DeployPlan, DeployRules, DeployStep, DeployWatch, Deployed, Deployer, Orphans, Undone,
};

/// As a host would have it.
fn key() -> DeployKey {
    DeployKey::new([7; 32])
}

/// A workspace, a target, and a folder beside them that nobody may touch.
pub(crate) struct Trees {
    pub(crate) folder: TempDir,
}

impl Trees {
    /// Paths that end with a slash are folders; the others are files that contain the text.
    pub(crate) fn new(source: &[(&str, &str)], target: &[(&str, &str)]) -> Self {
        let folder = tempfile::Builder::new().prefix("deploy-").tempdir_in("/var/tmp").unwrap();
        let trees = Self { folder };
        for name in ["source", "target", "outside"] {
            std::fs::create_dir(trees.at(name)).unwrap();
        }
        fill(&trees.at("source"), source);
        fill(&trees.at("target"), target);
        fill(&trees.at("outside"), &[("secret.txt", "secret"), ("folder/page.html", "secret")]);
        trees
    }

    /// A world in which a deploy has everything to do: new, changed, mode only, deleted, folders to make.
    pub(crate) fn lively() -> Self {
        let trees = Self::new(
            &[("index.html", "one"), ("old/gone.css", "x"), ("same.js", "s"), ("mode.js", "m"), ("a/b/c.md", "c")],
            &[(".env", "mine"), ("notes.txt", "mine"), ("a/b/mine.md", "mine")],
        );
        trees.deploy("first").unwrap();
        std::fs::remove_file(trees.at("source/old/gone.css")).unwrap();
        fill(
            &trees.at("source"),
            &[("index.html", "two"), ("new/deep/x.html", "x"), ("new/y.js", "y"), ("z.svg", "z")],
        );
        mode(&trees.at("source/mode.js"), 0o755);
        trees
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn deployer(&self) -> Deployer {
        Deployer::open(&self.at("source"), &self.at("target"), key()).unwrap()
    }

    pub(crate) fn plan(&self, rules: &DeployRules) -> DeployPlan {
        self.deployer().plan(rules, &|| false).unwrap()
    }

    pub(crate) fn deploy(&self, id: &str) -> Result<Deployed> {
        self.deploy_by(id, &DeployRules::default(), &mut ())
    }

    pub(crate) fn deploy_by(&self, id: &str, rules: &DeployRules, watch: &mut dyn DeployWatch) -> Result<Deployed> {
        let plan = self.plan(rules);
        self.run(&plan, id, watch)
    }

    pub(crate) fn run(&self, plan: &DeployPlan, id: &str, watch: &mut dyn DeployWatch) -> Result<Deployed> {
        let mark = DeployMark { id: id.to_owned(), at_ms: 1, who: "me".to_owned() };
        self.deployer().run(plan, &plan.rules, &mark, watch, &|| false)
    }

    pub(crate) fn undo(&self) -> Result<Undone> {
        self.deployer().undo(None, &mut ())
    }

    pub(crate) fn target(&self) -> Snapshot {
        snapshot(&self.at("target"))
    }

    pub(crate) fn outside_is_untouched(&self) {
        let expected = [("folder/page.html", "secret"), ("secret.txt", "secret")];
        let found: Vec<_> = contents(&self.at("outside"));
        assert_eq!(found, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }
}

pub(crate) fn fill(root: &Path, entries: &[(&str, &str)]) {
    for (path, text) in entries {
        let at = root.join(path);
        if path.ends_with('/') {
            std::fs::create_dir_all(at).unwrap();
            continue;
        }
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, text).unwrap();
    }
}

pub(crate) fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Each path with its kind, mode and content.
pub(crate) type Snapshot = BTreeMap<String, String>;

/// Everything in a tree but what deploys keep for themselves.
pub(crate) fn snapshot(root: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if below == ".toolhost" {
                continue;
            }
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.permissions().mode();
            let what = match metadata.file_type() {
                kind if kind.is_symlink() => format!("link to {}", std::fs::read_link(&path).unwrap().display()),
                kind if kind.is_dir() => {
                    folders.push(path);
                    format!("folder {mode:o}")
                }
                kind if kind.is_file() => {
                    format!("file {mode:o} {:?}", String::from_utf8_lossy(&std::fs::read(&path).unwrap()))
                }
                _ => format!("special {mode:o}"),
            };
            found.insert(below, what);
        }
    }
    found
}

/// The text files of a tree.
pub(crate) fn contents(root: &Path) -> Vec<(String, String)> {
    let files = snapshot(root).into_keys().filter(|path| root.join(path).symlink_metadata().unwrap().is_file());
    files.map(|path| (path.clone(), std::fs::read_to_string(root.join(&path)).unwrap())).collect()
}

pub(crate) fn everything() -> DeployRules {
    DeployRules { orphans: Orphans::Everything, ..DeployRules::default() }
}

/// Ends everything after so many steps, as the end of the process would.
pub(crate) struct EndAfter {
    pub(crate) steps: usize,
}

impl DeployWatch for EndAfter {
    fn step(&mut self, _: DeployStep) -> Result<()> {
        self.steps = self.steps.checked_sub(1).ok_or(Error::Cancelled)?;
        Ok(())
    }
}

/// Does something of its own at one step.
pub(crate) struct At<F: FnMut() + Send>(pub(crate) DeployStep, pub(crate) F);

impl<F: FnMut() + Send> DeployWatch for At<F> {
    fn step(&mut self, step: DeployStep) -> Result<()> {
        if step == self.0 {
            (self.1)();
        }
        Ok(())
    }
}
