//! Git servers as they are in the world: `git http-backend` behind HTTP with a token, and `sshd` with a key.

mod http;
mod ssh;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub use http::{HttpGit, Request};
pub use ssh::SshGit;

/// Bare repositories in a temporary folder.
pub struct Repositories(TempDir);

impl Repositories {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("git-server-").tempdir_in("/var/tmp").unwrap())
    }

    /// An absolute path there.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes an empty repository that anybody who may talk to the server can push to.
    pub fn make(&self, name: &str) {
        std::fs::create_dir_all(self.path(name)).unwrap();
        self.git(name, &["init", "-q", "--bare", "-b", "main"]);
    }

    /// Runs git in one of them; answers its output.
    pub fn git(&self, name: &str, arguments: &[&str]) -> String {
        let output = git(&self.path(name)).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// The commit of a branch, if there is one.
    pub fn commit(&self, name: &str, branch: &str) -> Option<String> {
        let reference = format!("refs/heads/{branch}");
        let output = git(&self.path(name)).args(["rev-parse", "--quiet", "--verify", &reference]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
    }

    /// Somebody else commits a file to a branch of a repository; answers the commit.
    pub fn commit_file(&self, name: &str, branch: &str, (path, content): (&str, &str)) -> String {
        let index = self.path("index-of-somebody-else");
        let run = |arguments: &[&str], input: &str| -> String {
            let mut command = git(&self.path(name));
            command.args(arguments).env("GIT_INDEX_FILE", &index).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "git {arguments:?}");
            String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
        };
        let parent = self.commit(name, branch);
        match &parent {
            Some(parent) => run(&["read-tree", parent], ""),
            None => run(&["read-tree", "--empty"], ""),
        };
        let blob = run(&["hash-object", "-w", "--stdin"], content);
        run(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")], "");
        let tree = run(&["write-tree"], "");
        let mut arguments = vec!["commit-tree", &tree, "-m", "from somebody else"];
        arguments.extend(parent.iter().flat_map(|parent| ["-p", parent]));
        let commit = run(&arguments, "");
        run(&["update-ref", &format!("refs/heads/{branch}"), &commit], "");
        commit
    }
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env_clear().env("PATH", PATH).env("HOME", "/nonexistent");
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "Somebody"),
        ("GIT_AUTHOR_EMAIL", "somebody@example.org"),
        ("GIT_COMMITTER_NAME", "Somebody"),
        ("GIT_COMMITTER_EMAIL", "somebody@example.org"),
    ] {
        command.env(name, value);
    }
    command
}

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
