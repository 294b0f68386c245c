//! A SQLite file in a folder of its own, and the hands of an attacker on it.

use std::path::PathBuf;
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};
use tempfile::TempDir;
use toolhost_contract::Durability;
use toolhost_store::{Event, Store};
use toolhost_testkit::FakeClock;
use toolhost_testkit::database::entry;

pub(crate) struct ProjectPackage {
    folder: TempDir,
}

impl ProjectPackage {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state().join("toolhost.db")
    }

    pub(crate) async fn open(&self) -> Store {
        self.try_open().await.unwrap()
    }

    pub(crate) async fn try_open(&self) -> toolhost_store::Result<Store> {
        Store::open(&self.state(), Arc::new(FakeClock::default()), toolhost_testkit::SUBJECTS, Durability::default())
            .await
    }

    /// The project's number; always the same.
    pub(crate) async fn project(&self, store: &Store) -> i64 {
        store.project(&self.folder.path().join("ws"), "ws", "local").await.unwrap().id
    }

    /// A store with so many finished calls, closed again.
    pub(crate) async fn filled(&self, calls: usize) {
        let store = self.open().await;
        let project = self.project(&store).await;
        for n in 0..calls {
            store.audit().append(entry(project, Event::Started, &format!("call-{n}"))).await.unwrap();
            store.audit().append(entry(project, Event::Finished, &format!("call-{n}"))).await.unwrap();
        }
        store.close().await.unwrap();
    }

    /// A connection of the attacker's own.
    pub(crate) async fn connect(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(self.database()).connect().await.unwrap()
    }

    /// Changes the file behind the host's back, triggers and all.
    pub(crate) async fn tamper(&self, sql: &str) {
        let mut connection = self.connect().await;
        for statement in [
            "DROP TRIGGER audit_is_never_changed",
            "DROP TRIGGER audit_is_never_removed",
            "PRAGMA foreign_keys = OFF",
            sql,
        ] {
            sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
        }
    }

    /// One value, as the file has it.
    pub(crate) async fn ask(&self, sql: &str) -> i64 {
        let mut connection = self.connect().await;
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut connection).await.unwrap()
    }
}
