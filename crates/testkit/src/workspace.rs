//! A workspace in a temporary folder, with room for the host's state beside it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Removed, with all that stands beside it, when dropped.
pub struct TempWorkspace {
    folder: TempDir,
}

impl TempWorkspace {
    #[expect(clippy::new_without_default, reason = "it makes a folder, which nobody expects of a default")]
    pub fn new() -> Self {
        // Not below `/tmp`: there the fence puts a private folder of its own.
        let folder = tempfile::Builder::new().prefix("house-").tempdir_in("/var/tmp").unwrap();
        // Commands may run as another user, who must be able to pass.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(folder.path().join("ws")).unwrap();
        Self { folder }
    }

    /// A git repository with one commit that holds these files.
    pub fn repository(files: &[(&str, &str)]) -> Self {
        let workspace = Self::new();
        workspace.git(&["init", "--quiet", "--initial-branch", "main"]);
        for (path, content) in files {
            workspace.write(path, content);
        }
        workspace.git(&["add", "--all"]);
        workspace.git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
        workspace
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    /// A path outside the workspace, in the folder that holds it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The host's state folder.
    pub fn state(&self) -> PathBuf {
        self.beside("state")
    }

    /// An absolute path inside.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// A script that may be run.
    pub fn write_script(&self, path: &str, content: &str) {
        self.write(path, content);
        std::fs::set_permissions(self.path(path), PermissionsExt::from_mode(0o755)).unwrap();
    }

    pub fn write_beside(&self, name: &str, content: &str) {
        let path = self.beside(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn make_folder(&self, path: &str) {
        std::fs::create_dir_all(self.path(path)).unwrap();
    }

    pub fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        String::from_utf8(self.read_bytes(path)).unwrap()
    }

    pub fn read_bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path(path)).unwrap()
    }

    pub fn has(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    pub fn remove(&self, path: &str) {
        std::fs::remove_file(self.path(path)).unwrap();
    }

    /// Everything below the root: path to content; folders, links and special files by what they are.
    pub fn snapshot(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk(&self.root(), &self.root(), &mut found);
        found
    }

    /// Names in the folder that holds the workspace, sorted.
    pub fn neighbours(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs git here, as a person without any configuration of their own would; answers its output.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = git_in(&self.root(), arguments);
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Whether a shell's script succeeds here.
    pub fn shell(&self, script: &str) -> bool {
        Command::new("sh").args(["-c", script]).current_dir(self.root()).status().unwrap().success()
    }

    /// Whether git succeeds here.
    pub fn git_succeeds(&self, arguments: &[&str]) -> bool {
        git_in(&self.root(), arguments).status.success()
    }
}

fn git_in(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new("git");
    command.current_dir(folder).args(arguments).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/nonexistent");
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "Person"),
        ("GIT_AUTHOR_EMAIL", "person@example.org"),
        ("GIT_COMMITTER_NAME", "Person"),
        ("GIT_COMMITTER_EMAIL", "person@example.org"),
    ] {
        command.env(name, value);
    }
    command.output().unwrap()
}

fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_dir() {
            found.insert(format!("{name}/"), Vec::new());
            walk(root, &path, found);
        } else if metadata.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            found.insert(name, format!("link to {}", target.display()).into_bytes());
        } else if metadata.is_file() {
            found.insert(name, std::fs::read(&path).unwrap());
        } else {
            found.insert(name, b"special".to_vec());
        }
    }
}
