//! The trait every workspace sits behind, its requests and answers, and [`Workspace`]: an executor seen through one
//! profile's fence.
//!
//! The idea is Bonsai's `ToolExecutor`: a container or a remote machine can be the workspace later. What any executor
//! must hold is the suite in `tests/it/suite.rs`.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{Command, CommandResult, Error, FenceReport, Remote, RemoteCommand, RemoteResult, Result, Watch, WsPath};
use crate::BoxFuture;

/// Files and commands of one workspace.
pub trait Executor: Send + Sync {
    /// Reads bytes of a regular file; never blocks on a FIFO or device.
    fn read<'a>(&'a self, path: &'a WsPath, span: ReadSpan) -> BoxFuture<'a, Result<Content>>;

    /// Replaces or creates a file atomically, parents included.
    fn write<'a>(&'a self, path: &'a WsPath, bytes: Vec<u8>, guard: WriteGuard) -> BoxFuture<'a, Result<Written>>;

    /// Where a path leads, and what is there. With `follow` a link at its end is followed, as a write does.
    fn spot<'a>(&'a self, path: &'a WsPath, follow: bool) -> BoxFuture<'a, Result<Spot>>;

    /// Moves a file or folder; refuses to replace anything, and to pass a link on the way.
    fn rename<'a>(&'a self, from: &'a WsPath, to: &'a WsPath) -> BoxFuture<'a, Result<()>>;

    /// Removes a file, a link or an empty folder; refuses to pass a link on the way. With a hash (lower-case hex SHA-256)
    /// it must be a file of this content.
    fn remove<'a>(&'a self, path: &'a WsPath, expected_sha256: Option<&'a str>) -> BoxFuture<'a, Result<()>>;

    /// One page of a folder, sorted by path.
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Listing>>;

    /// One page of matching lines, sorted by path and line.
    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<SearchPage>>;

    /// Runs a command in the fence until it ends, times out or is cancelled; then its whole process tree is gone.
    fn run<'a>(&'a self, command: Command, fence: &'a Fence, watch: Watch) -> BoxFuture<'a, Result<CommandResult>>;

    /// The remote of this name, if the operator grants it here.
    fn remote(&self, _name: &str) -> Option<&Remote> {
        None
    }

    /// Lets git talk to a granted remote, in a repository of the host's own.
    fn run_remote<'a>(&'a self, remote: &'a Remote, _: RemoteCommand, _: Watch) -> BoxFuture<'a, Result<RemoteResult>> {
        let why = "this workspace reaches no remotes".to_owned();
        Box::pin(std::future::ready(Err(Error::Remote { name: remote.name.clone(), why })))
    }

    /// What a person's git obeys in the workspace's own files, and the project's policy: a tool that runs git leaves them
    /// as they are. Paths relative to the workspace.
    fn git_obeys(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// What absolute paths in the workspace begin with: its folder's real path, the one it was opened by, and that of `~`.
    fn names_of_root(&self) -> &[String] {
        &[]
    }

    /// Removes what sessions have left; to be awaited when the host ends and no command runs.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Which fence holds here; probed once.
    fn report(&self) -> BoxFuture<'_, FenceReport>;
}

/// What a profile's commands may do to the workspace and the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    pub workspace: Access,
    /// Hosts that may be reached through the host's proxy; empty means nothing outside.
    pub network: Vec<HostRule>,
    /// Whether processes of one command may reach each other over the loopback of its own network, in which nothing else is. Only the
    /// full fence has one.
    pub loopback: bool,
}

impl Fence {
    /// No network, not even a loopback.
    pub const fn closed(workspace: Access) -> Self {
        Self { workspace, network: Vec::new(), loopback: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A destination that a profile grants: `example.org`, `*.example.org`, `127.0.0.1:8080`. Without a port: 80 and 443.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    /// Lower-case name or address; `*.` in front admits every subdomain (not the name itself).
    pub host: String,
    pub port: Option<u16>,
}

/// Which bytes of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSpan {
    pub start: u64,
    pub bytes_max: u64,
}

/// Bytes read from a regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub bytes: Vec<u8>,
    /// Size of the whole file when it was opened, in bytes.
    pub size: u64,
    /// Its permission bits.
    pub mode: u32,
}

/// What must hold for a write to happen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteGuard {
    /// Lower-case hex SHA-256 that the present content must have.
    pub expected_sha256: Option<String>,
    /// Refuse if anything is there.
    pub create_only: bool,
    /// Permission bits it gets; `None`: a file that is replaced keeps its own.
    pub mode: Option<u32>,
    /// Refuse if a link stands at the path or on the way there.
    pub exact: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub created: bool,
    pub bytes: u64,
    pub sha256: String,
}

/// What is at a path, and where that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// No link is on the way there, but it may be one itself.
    pub path: WsPath,
    /// `None`: nothing.
    pub kind: Option<EntryKind>,
    /// What a link says it leads to.
    pub link: Option<String>,
    /// Folders on the way that are not there, the outermost first.
    pub missing: Vec<WsPath>,
}

/// A listing request.
#[derive(Debug, Clone)]
pub struct ListQuery {
    pub path: WsPath,
    /// Glob over the path relative to `path`; without a `/` it is matched against the name alone.
    pub pattern: Option<String>,
    /// How many folders deep; 1 lists the folder itself. `None`: no limit.
    pub depth_max: Option<usize>,
    pub include_hidden: bool,
    pub include_ignored: bool,
    pub limit: usize,
    /// Only entries after this path.
    pub after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: String,
    pub kind: EntryKind,
    /// Bytes, for regular files.
    pub size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    File,
    Folder,
    Link,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub entries: Vec<Entry>,
    /// Entries that match in all.
    pub total: usize,
    /// More entries follow the last one.
    pub more: bool,
    /// Entries beyond the walk's limit, too deep or in closed folders were not looked at.
    pub cut: bool,
}

/// A search request. The pattern is a regular expression of ripgrep's dialect unless `literal`.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    pub pattern: String,
    pub literal: bool,
    pub ignore_case: bool,
    pub path: WsPath,
    pub glob: Option<String>,
    /// Lines of context before and after.
    pub context: usize,
    pub include_hidden: bool,
    pub include_ignored: bool,
    pub limit: usize,
    /// Only matches after this place: path and line.
    pub after: Option<(String, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchLine {
    pub path: String,
    /// 1-based.
    pub line: u64,
    pub text: String,
    pub before: Vec<String>,
    pub later: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    pub matches: Vec<MatchLine>,
    /// Matching lines found in all.
    pub total: usize,
    pub files_with_matches: usize,
    pub more: bool,
    /// The limit on matches was reached, so `total` is a lower bound.
    pub cut: bool,
    /// Something was not looked at: it is too deep or closed, or has too long a line.
    pub unseen: bool,
}

/// What a change of a file is about to do, and what is there before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: WsPath,
    pub moved_to: Option<WsPath>,
    pub former: Present,
    /// SHA-256 (hex) of what will be there; `None`: nothing, or a file that was moved and is too large to be kept.
    pub after_sha256: Option<String>,
    /// It is a folder that is made on the way.
    pub folder: bool,
}

/// A file as it is before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    pub sha256: String,
    pub mode: u32,
    pub bytes: Vec<u8>,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Present {
    Nothing,
    Kept(Former),
    /// A file that is too large to be kept.
    TooLarge,
    /// No file that could be put back: a folder, a link, or what may not be read.
    NoFile,
}

/// Where changes of files are written down before they are made. What cannot be written down is not done.
pub trait ChangeLog: Send + Sync {
    fn before(&self, change: FileChange) -> BoxFuture<'_, Result<()>>;
}

/// Largest file whose former content is kept, bytes; a larger one can be changed, but not put back.
pub const FORMER_BYTES_MAX: u64 = 8 << 20;
/// How often a change is tried anew where somebody else changes the same file.
const WRITE_TRIES: usize = 5;

/// A workspace as one profile may see it. Tools hold this, never an executor.
#[derive(Clone)]
pub struct Workspace {
    executor: Arc<dyn Executor>,
    fence: Fence,
    log: Option<Arc<dyn ChangeLog>>,
    exact: bool,
}

impl Workspace {
    pub fn new(executor: Arc<dyn Executor>, fence: Fence) -> Self {
        Self { executor, fence, log: None, exact: false }
    }

    /// The same, where each change is made at the very path that is said: a link there or on the way refuses it.
    pub fn exactly(self) -> Self {
        Self { exact: true, ..self }
    }

    /// The same, with each change of a file written down before it is made.
    pub fn logged(self, log: Arc<dyn ChangeLog>) -> Self {
        Self { log: Some(log), ..self }
    }

    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    pub async fn read(&self, path: &WsPath, span: ReadSpan) -> Result<Content> {
        self.executor.read(path, span).await
    }

    /// Where a path leads, and what is there. With `follow` a link at its end is followed, as a write does.
    pub async fn spot(&self, path: &WsPath, follow: bool) -> Result<Spot> {
        self.executor.spot(path, follow).await
    }

    pub async fn write(&self, path: &WsPath, bytes: Vec<u8>, guard: WriteGuard) -> Result<Written> {
        self.check_writable()?;
        let exact = guard.exact || self.exact;
        let guard = WriteGuard { exact: true, ..guard };
        let after = hex::encode(Sha256::digest(&bytes));
        let mut tries = 1;
        loop {
            let spot = self.place(path, true, exact).await?;
            let former = self.former(&spot).await?;
            // What is written down as the former content must be what is replaced.
            let mut sure = guard.clone();
            match &former {
                Present::Kept(former) if guard.expected_sha256.is_none() => {
                    sure.expected_sha256 = Some(former.sha256.clone());
                }
                Present::Nothing if guard.expected_sha256.is_none() => sure.create_only = true,
                _ => {}
            }
            // One that must be free and is not: the executor says so.
            if !guard.create_only || matches!(former, Present::Nothing) {
                self.note_folders(&spot).await?;
                let after_sha256 = Some(after.clone());
                let path = spot.path.clone();
                self.note(FileChange { path, moved_to: None, former, after_sha256, folder: false }).await?;
            }
            // Where others keep changing it, the last try writes over whichever of them was last.
            let guarded = if guard.create_only || tries == WRITE_TRIES { guard.clone() } else { sure };
            match self.executor.write(&spot.path, bytes.clone(), guarded).await {
                // Somebody was faster; unless the caller minds, their content is the former one now.
                Err(Error::Changed { .. }) if guard.expected_sha256.is_none() && tries < WRITE_TRIES => {}
                Err(Error::Exists { .. }) if !guard.create_only && tries < WRITE_TRIES => {}
                Err(Error::Linked { .. }) if !exact && tries < WRITE_TRIES => {}
                done => return done,
            }
            tries += 1;
        }
    }

    pub async fn rename(&self, from: &WsPath, to: &WsPath) -> Result<()> {
        self.check_writable()?;
        let from = self.place(from, false, self.exact).await?;
        let to = self.place(to, false, self.exact).await?;
        let former = self.former(&from).await?;
        if from.kind.is_some() && to.kind.is_none() {
            self.note_folders(&to).await?;
        }
        if let Present::Kept(_) | Present::TooLarge = former {
            let after_sha256 = match &former {
                Present::Kept(former) => Some(former.sha256.clone()),
                _ => None,
            };
            let (path, moved_to) = (from.path.clone(), Some(to.path.clone()));
            self.note(FileChange { path, moved_to, former, after_sha256, folder: false }).await?;
        }
        self.executor.rename(&from.path, &to.path).await
    }

    /// With a hash it must be a file of this content.
    pub async fn remove(&self, path: &WsPath, expected_sha256: Option<&str>) -> Result<()> {
        self.check_writable()?;
        let spot = self.place(path, false, self.exact).await?;
        let former = self.former(&spot).await?;
        // What is written down as the former content must be what goes.
        let sure = match &former {
            Present::Kept(former) => Some(former.sha256.clone()),
            _ => None,
        };
        if let Present::Kept(_) | Present::TooLarge = former {
            let path = spot.path.clone();
            self.note(FileChange { path, moved_to: None, former, after_sha256: None, folder: false }).await?;
        }
        self.executor.remove(&spot.path, expected_sha256.or(sure.as_deref())).await
    }

    /// Where a change is made: where the path leads now, or nowhere else than it says.
    async fn place(&self, path: &WsPath, follow: bool, exact: bool) -> Result<Spot> {
        let spot = self.executor.spot(path, follow && !exact).await?;
        let linked = spot.path != *path || (follow && spot.link.is_some());
        if exact && linked { Err(Error::Linked { path: path.to_string() }) } else { Ok(spot) }
    }

    async fn note(&self, change: FileChange) -> Result<()> {
        match &self.log {
            Some(log) => log.before(change).await,
            None => Ok(()),
        }
    }

    async fn note_folders(&self, spot: &Spot) -> Result<()> {
        for path in &spot.missing {
            let (path, former) = (path.clone(), Present::Nothing);
            self.note(FileChange { path, moved_to: None, former, after_sha256: None, folder: true }).await?;
        }
        Ok(())
    }

    pub async fn list(&self, query: ListQuery) -> Result<Listing> {
        self.executor.list(query).await
    }

    pub async fn search(&self, query: SearchQuery) -> Result<SearchPage> {
        self.executor.search(query).await
    }

    /// The files that a tool which runs git must not change; see [`Executor::git_obeys`].
    pub async fn git_obeys(&self) -> Result<Vec<String>> {
        self.executor.git_obeys().await
    }

    /// Runs a command in this profile's fence.
    pub async fn run(&self, command: Command, watch: Watch) -> Result<CommandResult> {
        self.executor.run(command, &self.fence, watch).await
    }

    /// Runs a command in a tighter fence: the workspace read-only and no network, whatever the profile grants.
    pub async fn run_reading(&self, command: Command, watch: Watch) -> Result<CommandResult> {
        let fence = Fence::closed(Access::Read);
        self.executor.run(command, &fence, watch).await
    }

    /// Runs a command that reads: the workspace is read-only, and the network is what the profile grants.
    pub async fn run_looking(&self, command: Command, watch: Watch) -> Result<CommandResult> {
        let fence = Fence { workspace: Access::Read, ..self.fence.clone() };
        self.executor.run(command, &fence, watch).await
    }

    /// The remote of this name, if the operator grants it here.
    pub fn remote(&self, name: &str) -> Option<&Remote> {
        self.executor.remote(name)
    }

    /// Lets git talk to a granted remote, in a repository of the host's own that borrows this one's objects.
    pub async fn run_remote(&self, remote: &Remote, command: RemoteCommand, watch: Watch) -> Result<RemoteResult> {
        self.executor.run_remote(remote, command, watch).await
    }

    /// What is there now, as far as it can be put back.
    async fn former(&self, spot: &Spot) -> Result<Present> {
        match spot.kind {
            None => return Ok(Present::Nothing),
            Some(EntryKind::File) => {}
            Some(_) => return Ok(Present::NoFile),
        }
        match self.executor.read(&spot.path, ReadSpan { start: 0, bytes_max: FORMER_BYTES_MAX }).await {
            Ok(content) if content.size > FORMER_BYTES_MAX => Ok(Present::TooLarge),
            Ok(Content { bytes, mode, .. }) => {
                Ok(Present::Kept(Former { sha256: hex::encode(Sha256::digest(&bytes)), mode, bytes }))
            }
            Err(Error::NotFound { .. }) => Ok(Present::Nothing),
            // A file that may not be read: the change itself says whether it is possible.
            Err(_) => Ok(Present::NoFile),
        }
    }

    fn check_writable(&self) -> Result<()> {
        match self.fence.workspace {
            Access::Write => Ok(()),
            Access::Read => Err(Error::ReadOnly),
        }
    }
}

impl HostRule {
    /// Parses `host`, `*.host`, `host:port`, `[v6]:port`.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let bad = || format!("`{text}` is not a host, `*.host` or `host:port`");
        let lower = text.to_ascii_lowercase();
        let (host, port) = match lower.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                (host.to_owned(), Some(port.parse().map_err(|_| bad())?))
            }
            _ => (lower.clone(), None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let plain = host.strip_prefix("*.").unwrap_or(&host);
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
        if plain.is_empty() || !plain.chars().all(fine) {
            return Err(bad());
        }
        Ok(Self { host, port })
    }

    /// Whether this rule grants `host` (lower-case) at `port`.
    pub fn grants(&self, host: &str, port: u16) -> bool {
        let name = match self.host.strip_prefix("*.") {
            Some(suffix) => host.strip_suffix(suffix).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => self.host == host,
        };
        name && self.port.map_or(matches!(port, 80 | 443), |granted| granted == port)
    }
}

impl std::fmt::Display for HostRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_rules_grant_exactly_what_they_say() {
        let grants = |rule: &str, host: &str, port: u16| HostRule::parse(rule).is_ok_and(|r| r.grants(host, port));
        assert!(grants("example.org", "example.org", 443));
        assert!(!grants("example.org", "example.org", 22));
        assert!(!grants("example.org", "evil-example.org", 443));
        assert!(grants("*.example.org", "a.b.example.org", 80));
        assert!(!grants("*.example.org", "example.org", 80));
        assert!(!grants("*.example.org", "evilexample.org", 80));
        assert!(!grants("*.example.org", ".example.org", 80));
        assert!(grants("127.0.0.1:8080", "127.0.0.1", 8080));
        assert!(!grants("127.0.0.1:8080", "127.0.0.1", 443));
        assert!(grants("[::1]:9", "::1", 9));
        assert!(HostRule::parse("").is_err());
        assert!(HostRule::parse("a b").is_err());
        assert!(HostRule::parse("a:99999").is_err());
    }
}
