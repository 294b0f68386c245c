//! Hosts on both engines, the sample package, and the rows that actions leave in the audit.

use std::fmt;
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use toolhost::package_format::Files;
use toolhost::store::{Filter, Role};
use toolhost::{Builder, Host};
use toolhost_testkit::Postgres;

/// An asset of the sample.
pub(crate) const ASSET: &str = "assets/style-guide.md";

/// An empty database. It says which engine it is when a test fails.
pub(crate) struct Engine {
    /// `None`: SQLite, a file in the folder.
    url: Option<String>,
    folder: TempDir,
}

/// SQLite, then PostgreSQL where there is a server.
pub(crate) fn engines() -> impl Iterator<Item = Engine> {
    [|| Some(None), || Some(Some(Postgres::shared()?.fresh_database()))]
        .into_iter()
        .filter_map(|url: fn() -> Option<Option<String>>| Some(Engine { url: url()?, folder: folder() }))
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

impl Engine {
    /// As the example takes it.
    pub(crate) fn address(&self) -> String {
        self.url.clone().unwrap_or_else(|| self.folder.path().join("state").to_str().unwrap().to_owned())
    }

    /// The project `acme` of the user `ada`.
    pub(crate) fn builder(&self) -> Builder {
        let builder = Host::builder().project("acme").user("ada");
        match &self.url {
            Some(url) => builder.database(url),
            None => builder.state(self.address()),
        }
    }

    pub(crate) async fn host(&self) -> Host {
        self.builder().open().await.unwrap()
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.url.is_some() { "PostgreSQL" } else { "SQLite" })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Which engine it was on; nobody is left to hear that this failed, too.
            let _ = writeln!(std::io::stderr(), "the test failed on {self}");
        }
    }
}

/// A package of the repository's.
pub(crate) fn sample() -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report");
    let mut files = Files::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, bytes(&path));
            }
        }
    }
    files
}

#[expect(clippy::disallowed_methods, reason = "a test reads its own sample")]
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// The same host for a user with this role in the project; none: a user who is no member.
pub(crate) async fn as_somebody(host: &Host, name: &str, role: Option<Role>) -> Host {
    let people = host.store().people();
    let id = people.add_user(name).await.unwrap();
    if let Some(role) = role {
        people.set_role(host.connection().project().id, id, role).await.unwrap();
    }
    host.as_user(name).await.unwrap()
}

/// All rows of the project's audit, in their order.
pub(crate) async fn rows(host: &Host) -> Vec<Value> {
    host.store().audit().flush().await.unwrap();
    let filter = Filter { limit: i64::MAX, ..Filter::default() };
    let rows = host.store().reader().audit(host.connection().project().id, &filter).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
}
