//! `sshd` on the loopback, for one key and this very user.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::net::TcpListener;

use super::{PATH, Repositories};

/// Where Debian puts it, which is not on everybody's `PATH`; it insists on a whole path.
const SSHD: &str = "/usr/sbin/sshd";

/// A server of repositories; it ends when it is dropped. Each connection has an `sshd` of its own, as under inetd, so no
/// port has to be found for one.
pub struct SshGit {
    pub repositories: Arc<Repositories>,
    user: String,
    port: u16,
    task: tokio::task::JoinHandle<()>,
}

impl SshGit {
    pub async fn start() -> Self {
        let repositories = Arc::new(Repositories::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for name in ["host_key", "key", "other_key"] {
            let mut made = Command::new("ssh-keygen");
            made.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]);
            assert!(made.arg(repositories.path(name)).status().unwrap().success(), "ssh-keygen");
        }
        let host = std::fs::read_to_string(repositories.path("host_key.pub")).unwrap();
        std::fs::write(repositories.path("known_hosts"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        std::fs::copy(repositories.path("key.pub"), repositories.path("authorized_keys")).unwrap();
        let config = repositories.path("sshd_config");
        let folder = repositories.path("").display().to_string();
        std::fs::write(
            &config,
            format!(
                "HostKey {folder}host_key\nAuthorizedKeysFile {folder}authorized_keys\nStrictModes no\nUsePAM no\n\
                 PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
                 SetEnv PATH={PATH}\nPidFile none\n"
            ),
        )
        .unwrap();
        // Started by hand, it does not make the folder that it gives up its rights in.
        if is_root() {
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let stream = stream.into_std().unwrap();
                stream.set_nonblocking(false).unwrap();
                serve(stream, &config);
            }
        });
        let user = Command::new("id").arg("-un").output().unwrap();
        Self { repositories, user: String::from_utf8(user.stdout).unwrap().trim().to_owned(), port, task }
    }

    pub fn url(&self, name: &str) -> String {
        format!("ssh://{}@127.0.0.1:{}{}", self.user, self.port, self.repositories.path(name).display())
    }

    /// The private key that is let in.
    pub fn key(&self) -> PathBuf {
        self.repositories.path("key")
    }

    /// One that is not.
    pub fn other_key(&self) -> PathBuf {
        self.repositories.path("other_key")
    }

    pub fn known_hosts(&self) -> PathBuf {
        self.repositories.path("known_hosts")
    }
}

impl Drop for SshGit {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// It ends when its connection does.
fn serve(stream: std::net::TcpStream, config: &Path) {
    let input = OwnedFd::from(stream.try_clone().unwrap());
    let mut command = Command::new(SSHD);
    command.args(["-i", "-e", "-f"]).arg(config).env_clear().env("PATH", PATH);
    let child =
        command.stdin(Stdio::from(input)).stdout(Stdio::from(OwnedFd::from(stream))).stderr(Stdio::null()).spawn();
    let mut child = child.unwrap();
    std::thread::spawn(move || drop(child.wait()));
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0
}
