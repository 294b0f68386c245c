//! An empty database on each engine, for promises that hold on both.

mod checkup;
pub mod things;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use tempfile::TempDir;
use toolhost_contract::{CallId, Clock, Durability};
use toolhost_records::{ProjectRecords, RecordError};
use toolhost_store::{Entry, Event, Store, Verdict, Who};

use crate::{FakeClock, Postgres};

pub use checkup::{checkup, checkup_of, everything};

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Folder(PathBuf),
    Url(String),
}

/// A database of a test's own, and the time that it is there. It says which engine it is when a test fails.
pub struct Place {
    pub address: Address,
    pub clock: Arc<FakeClock>,
    folder: TempDir,
}

/// An open store and a project in it.
pub struct Room {
    pub store: Store,
    pub project: i64,
    pub user: i64,
}

/// An empty database on SQLite, then one on PostgreSQL where there is a server.
pub fn engines() -> impl Iterator<Item = Place> {
    [|| Some(Place::sqlite()), Place::postgres].into_iter().filter_map(|place| place())
}

impl Address {
    pub async fn open(&self, clock: Arc<dyn Clock>) -> toolhost_store::Result<Store> {
        match self {
            Self::Folder(folder) => Store::open(folder, clock, crate::SUBJECTS, Durability::default()).await,
            Self::Url(url) => Store::connect(url, clock, crate::SUBJECTS).await,
        }
    }

    /// As another process is told it.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Folder(folder) => json!({ "folder": folder }),
            Self::Url(url) => json!({ "url": url }),
        }
    }

    pub fn from_json(value: &Value) -> Self {
        match value.get("folder").and_then(Value::as_str) {
            Some(folder) => Self::Folder(folder.into()),
            None => Self::Url(value["url"].as_str().unwrap().to_owned()),
        }
    }
}

impl Place {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { address: Address::Folder(folder.path().join("state")), clock: Arc::default(), folder }
    }

    pub fn postgres() -> Option<Self> {
        Some(Self::on(Postgres::shared()?))
    }

    /// An empty database on this server.
    pub fn on(server: &Postgres) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { address: Address::Url(server.fresh_database()), clock: Arc::default(), folder }
    }

    /// Another host opens the same database.
    pub async fn open(&self) -> Store {
        let clock: Arc<dyn Clock> = self.clock.clone();
        self.address.open(clock).await.unwrap()
    }

    /// Another host opens the same project.
    pub async fn room(&self) -> Room {
        room(self.open().await, &self.workspace()).await
    }

    /// A store with so many finished calls, closed again.
    pub async fn filled(&self, calls: usize) {
        let here = self.room().await;
        for n in 0..calls {
            for event in [Event::Started, Event::Finished] {
                here.store.audit().append(entry(here.project, event, &format!("call-{n}"))).await.unwrap();
            }
        }
        here.store.close().await.unwrap();
    }

    pub async fn verify(&self) -> Verdict {
        let here = self.room().await;
        let verdict = here.store.reader().verify_audit(here.project).await.unwrap();
        here.store.close().await.unwrap();
        verdict
    }

    /// Statements of somebody who has got at the database; what it says to that.
    pub async fn run(&self, sql: &str) -> Result<(), String> {
        let sql = AssertSqlSafe(sql.to_owned());
        let ran = match &self.address {
            Address::Folder(state) => {
                let mut file = SqliteConnectOptions::new().filename(state.join("toolhost.db")).connect().await.unwrap();
                sqlx::raw_sql(sql).execute(&mut file).await.map(drop)
            }
            Address::Url(url) => {
                let mut server = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut server).await.map(drop)
            }
        };
        ran.map_err(|error| error.to_string())
    }

    /// Changes the audit behind the host's back, triggers and all.
    pub async fn tamper(&self, sql: &str) {
        let (on, keys) = match self.address {
            Address::Folder(_) => ("", "PRAGMA foreign_keys = OFF;"),
            Address::Url(_) => (" ON audit", ""),
        };
        let drop = format!("DROP TRIGGER audit_is_never_changed{on}; DROP TRIGGER audit_is_never_removed{on};");
        self.run(&format!("{drop} {keys} {sql}")).await.unwrap();
    }

    /// The names of its columns, each with its table, and of the indexes that were asked for.
    pub async fn schema(&self) -> Vec<String> {
        let (sqlite, postgres) = (
            "SELECT m.name || '.' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'
             AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' UNION ALL SELECT name FROM sqlite_master WHERE type = 'index' AND sql <> ''",
            "SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public'
             UNION ALL SELECT i.indexname::text FROM pg_indexes i WHERE i.schemaname = 'public' AND NOT EXISTS
             (SELECT 1 FROM pg_constraint c WHERE c.conname = i.indexname)",
        );
        let mut names: Vec<String> = match &self.address {
            Address::Folder(state) => {
                let mut file = SqliteConnectOptions::new().filename(state.join("toolhost.db")).connect().await.unwrap();
                sqlx::query_scalar(sqlite).fetch_all(&mut file).await.unwrap()
            }
            Address::Url(url) => {
                let mut server = PgConnection::connect(url).await.unwrap();
                sqlx::query_scalar(postgres).fetch_all(&mut server).await.unwrap()
            }
        };
        names.retain(|name| !name.starts_with("_sqlx_migrations"));
        names.sort();
        names
    }

    /// How many rows of the audit there are, by a connection of its own.
    pub async fn rows(&self) -> i64 {
        let count = "SELECT count(*) FROM audit";
        match &self.address {
            Address::Folder(state) => {
                let mut file = SqliteConnectOptions::new().filename(state.join("toolhost.db")).connect().await.unwrap();
                sqlx::query_scalar(count).fetch_one(&mut file).await.unwrap()
            }
            Address::Url(url) => {
                let mut server = PgConnection::connect(url).await.unwrap();
                sqlx::query_scalar(count).fetch_one(&mut server).await.unwrap()
            }
        }
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("ws")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if let Address::Folder(_) = self.address { "SQLite" } else { "PostgreSQL" })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Which engine it was on; nobody is left to hear that this failed, too.
            let _ = writeln!(std::io::stderr(), "the test failed on {self}");
        }
    }
}

/// The project of a workspace, and its owner.
pub async fn room(store: Store, workspace: &Path) -> Room {
    let project = store.project(workspace, "ws", "local").await.unwrap().id;
    let user = store.people().user("local").await.unwrap().unwrap();
    Room { store, project, user }
}

impl Room {
    pub fn desk(&self) -> ProjectRecords {
        self.desk_of("tester", "call-1")
    }

    pub fn desk_of(&self, name: &str, call: &str) -> ProjectRecords {
        let who = Who { project_id: self.project, user_id: self.user, name: name.to_owned(), call_id: call.to_owned() };
        toolhost_records::Records::new(self.store.database()).desk(who).unwrap()
    }

    /// The desk of another project in the same database.
    pub async fn next_door(&self, workspace: &Path) -> ProjectRecords {
        let project = self.store.project(workspace, "next door", "local").await.unwrap().id;
        let who = Who { project_id: project, user_id: self.user, name: "tester".to_owned(), call_id: "c".to_owned() };
        toolhost_records::Records::new(self.store.database()).desk(who).unwrap()
    }
}

/// All lines of an export.
pub async fn exported(desk: &ProjectRecords) -> Vec<String> {
    let mut lines = Vec::new();
    let mut sink = |line: String| -> Result<(), RecordError> {
        lines.push(line);
        Ok(())
    };
    desk.export(&mut sink).await.unwrap();
    lines
}

/// What a refusal says.
#[track_caller]
pub fn said<T: fmt::Debug>(result: Result<T, RecordError>) -> String {
    result.unwrap_err().to_string()
}

/// A row of the audit.
pub fn entry(project_id: i64, event: Event, call: &str) -> Entry {
    Entry {
        event,
        call_id: CallId::new(call),
        session_id: Some("s1".to_owned()),
        user_id: 1,
        project_id,
        caller: json!({ "door": "test" }),
        tool: "file.write".to_owned(),
        effect: Some("writes".to_owned()),
        arguments: json!({ "path": "ä.txt", "n": 1.5, "call": call }),
        digest: None,
        decision: None,
        outcome: if event == Event::Finished { Some(json!({ "ok": true })) } else { None::<Value> },
        duration_ms: Some(3),
        fence: "full".to_owned(),
        trace: toolhost_contract::Trace::None,
    }
}
