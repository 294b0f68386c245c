//! One way to speak to both engines: a text with `$1`, `$2`, … is a query of SQLite and of PostgreSQL alike.
//!
//! The hard problem is that many processes write at once and nobody may be told that the database is locked. SQLite has
//! one writer: a process keeps one connection for writing, in whose queue its tasks wait, and begins with
//! `BEGIN IMMEDIATE`, where processes wait for each other. PostgreSQL has many: what belongs together takes a lock on
//! its row first ([`Tx::lock_project`]), so that a transaction sees what the one before it did.

use std::path::Path;
use std::sync::Arc;

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Decode, Postgres, Row as _, SqlSafeStr, SqlStr, Sqlite, Type};

use crate::error::{Error, Result};
use crate::mark::Mark;
use crate::server::{Server, ServerTx};
use crate::sqlite_pool::{SqliteConn, SqlitePool};

/// The driver's query with all arguments bound: the same lines for two types.
macro_rules! bound {
    ($sql:expr, $engine:ty) => {{
        let mut query = sqlx::query::<$engine>($sql.text);
        for argument in $sql.arguments {
            query = match argument {
                Argument::Int(value) => query.bind(value),
                Argument::Text(value) => query.bind(value),
                Argument::Bool(value) => query.bind(value),
                Argument::Bytes(value) => query.bind(value),
            };
        }
        query
    }};
}

/// The connections of one process.
#[derive(Clone)]
pub struct Db {
    pub(crate) pools: Pools,
}

#[derive(Clone)]
pub(crate) enum Pools {
    Sqlite {
        readers: SqlitePool,
        writer: SqlitePool,
    },
    Postgres(Server),
    /// A file that cannot be written.
    Reading {
        readers: SqlitePool,
        folder: Arc<Path>,
    },
}

/// A transaction. Dropped without [`Tx::commit`], it has not happened.
pub struct Tx(pub(crate) Begun);

pub(crate) enum Begun {
    Sqlite(SqliteConn),
    Postgres(ServerTx),
}

/// A query and what is bound to it.
pub struct Sql {
    text: SqlStr,
    arguments: Vec<Argument>,
}

/// A bound value. PostgreSQL wants to know the type of a NULL, too.
pub enum Argument {
    Int(Option<i64>),
    Text(Option<String>),
    Bool(Option<bool>),
    Bytes(Option<Vec<u8>>),
}

/// A row of an answer.
pub struct Row(Found);

enum Found {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// What a column can be read as.
pub trait Column: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> {}

impl<T> Column for T where T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> {}

/// A query whose text is part of the program.
pub fn sql(text: &'static str) -> Sql {
    Sql { text: text.into_sql_str(), arguments: Vec::new() }
}

/// A query put together from parts of the program; whatever comes from outside is bound.
pub fn sql_of(parts: String) -> Sql {
    Sql { text: AssertSqlSafe(parts).into_sql_str(), arguments: Vec::new() }
}

/// `$from, $from+1, …` for a list of `count` bound values.
pub fn places(from: usize, count: usize) -> String {
    let places: Vec<String> = (from..from + count).map(|n| format!("${n}")).collect();
    places.join(", ")
}

impl Db {
    /// Begins to write what survives a power failure once it is committed. On SQLite nobody else writes until it ends.
    pub async fn write(&self) -> Result<Tx> {
        let mut tx = self.write_lightly().await?;
        if let Begun::Sqlite(transaction) = &mut tx.0 {
            transaction.wait_for_disk();
        }
        Ok(tx)
    }

    /// The same for what need not survive a power failure, unless the operator says that everything must
    /// ([`Durability`](toolhost_contract::Durability)).
    pub async fn write_lightly(&self) -> Result<Tx> {
        Ok(match &self.pools {
            Pools::Sqlite { writer, .. } => Tx(Begun::Sqlite(writer.begin("BEGIN IMMEDIATE").await?)),
            Pools::Postgres(server) => Tx(Begun::Postgres(server.write().await?)),
            Pools::Reading { folder, .. } => return Err(Error::OnlyReading { folder: folder.to_path_buf() }),
        })
    }

    /// Begins to read: all queries see one moment.
    pub async fn snapshot(&self) -> Result<Tx> {
        Ok(match &self.pools {
            Pools::Sqlite { readers, .. } | Pools::Reading { readers, .. } => {
                Tx(Begun::Sqlite(readers.begin("BEGIN").await?))
            }
            Pools::Postgres(server) => Tx(Begun::Postgres(server.snapshot().await?)),
        })
    }

    /// A text in a column of JSON; both names are part of the program.
    pub fn json_field(&self, column: &str, field: &str) -> String {
        // PostgreSQL finds no field of a JSON that has a zero character anywhere.
        let column = format!(r"replace({column}, '\u0000', '\ufffd')");
        match &self.pools {
            Pools::Sqlite { .. } | Pools::Reading { .. } => format!("json_extract({column}, '$.{field}')"),
            Pools::Postgres(_) => format!("(CAST({column} AS json) ->> '{field}')"),
        }
    }

    /// Whether a transaction has happened that ended without an answer; `None` where that cannot be learnt now.
    pub(crate) async fn happened(&self, mark: &Mark) -> Option<bool> {
        match &self.pools {
            Pools::Sqlite { .. } | Pools::Reading { .. } => None,
            Pools::Postgres(server) => server.happened(mark).await,
        }
    }

    /// Gives back what the connections keep in memory for the next queries. On a server it is the server's.
    pub(crate) async fn rest(&self) {
        match &self.pools {
            Pools::Sqlite { readers, writer } => {
                readers.rest().await;
                writer.rest().await;
            }
            Pools::Reading { readers, .. } => readers.rest().await,
            Pools::Postgres(_) => {}
        }
    }

    pub(crate) async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { readers, writer } => {
                readers.close().await;
                writer.close().await;
            }
            Pools::Reading { readers, .. } => readers.close().await,
            Pools::Postgres(server) => server.links.close().await,
        }
    }
}

impl Tx {
    /// [`places`] for a query that has many and nothing else, in their order: SQLite looks a numbered place up in a list of
    /// all, each time a value is bound.
    pub fn places(&self, from: usize, count: usize) -> String {
        match &self.0 {
            Begun::Sqlite(_) => vec!["?"; count].join(", "),
            Begun::Postgres(_) => places(from, count),
        }
    }

    pub async fn commit(self) -> Result<()> {
        match self.0 {
            Begun::Sqlite(transaction) => transaction.commit().await?,
            Begun::Postgres(transaction) => transaction.commit().await?,
        }
        Ok(())
    }

    /// Whoever writes in this project waits until this transaction has ended. SQLite's writers do so anyway.
    pub async fn lock_project(&mut self, project: i64) -> Result<()> {
        if let Begun::Postgres(_) = &self.0 {
            // Rows that refer to the project, such as the audit's, are not kept waiting.
            sql("SELECT id FROM project WHERE id = $1 FOR NO KEY UPDATE").bind(project).all(self).await?;
        }
        Ok(())
    }

    /// The same without waiting. Says whether it has the lock.
    pub(crate) async fn try_lock_project(&mut self, project: i64) -> Result<bool> {
        if let Begun::Sqlite(_) = &self.0 {
            return Ok(true);
        }
        let text = "SELECT id FROM project WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED";
        Ok(sql(text).bind(project).optional(self).await?.is_some())
    }

    /// Makes sure that a host which seems dead writes nothing any more. False where it is writing this very moment, and so is
    /// not dead.
    pub(crate) async fn fence_off(&mut self, host: &str) -> Result<bool> {
        match &mut self.0 {
            // Its lock is the process's own: while one runs, the other is held.
            Begun::Sqlite(_) => Ok(true),
            Begun::Postgres(transaction) => transaction.fence_off(host).await,
        }
    }

    /// A number that this project has never given to this kind of thing.
    pub async fn next_number(&mut self, project: i64, kind: &str) -> Result<i64> {
        let text = "INSERT INTO counter (project_id, kind, value) VALUES ($1, $2, 1)
             ON CONFLICT (project_id, kind) DO UPDATE SET value = counter.value + 1 RETURNING value";
        sql(text).bind(project).bind(kind).one(self).await?.get("value")
    }

    /// This transaction only reads, and may stand still while somebody takes what it found.
    pub async fn disable_idle_timeout(&mut self) -> Result<()> {
        if let Begun::Postgres(_) = &self.0 {
            let text = "SELECT set_config('idle_in_transaction_session_timeout', '0', true)";
            sql(text).all(self).await?;
        }
        Ok(())
    }

    /// Tells the server how much this transaction has written to these tables so far. It plans queries for tables as it last saw
    /// them, and what is right for an empty one reads all of a full one.
    pub async fn analyze(&mut self, tables: &[&'static str]) -> Result<()> {
        if let Begun::Postgres(_) = &self.0 {
            for table in tables {
                sql_of(format!("ANALYZE {table}")).run(self).await?;
            }
        }
        Ok(())
    }

    /// The same for the audit's chain, which is written apart from everything else: its end, `seq` and `hash`, if it has
    /// begun.
    pub(crate) async fn lock_chain(&mut self, project: i64) -> Result<Option<Row>> {
        let text = match &self.0 {
            Begun::Sqlite(_) => "SELECT seq, hash FROM audit_head WHERE project_id = $1",
            Begun::Postgres(_) => "SELECT seq, hash FROM audit_head WHERE project_id = $1 FOR UPDATE",
        };
        sql(text).bind(project).optional(self).await
    }
}

impl Sql {
    pub fn bind(mut self, value: impl Into<Argument>) -> Self {
        self.arguments.push(value.into());
        self
    }

    pub async fn all(self, tx: &mut Tx) -> Result<Vec<Row>> {
        Ok(match &mut tx.0 {
            Begun::Sqlite(tx) => {
                let rows = bound!(self, Sqlite).fetch_all(tx.connection()?).await;
                tx.discard_if_dead(rows)?.into_iter().map(Row::sqlite).collect()
            }
            Begun::Postgres(tx) => {
                let (connection, watch) = tx.link.parts()?;
                let rows = watch.answered(bound!(self, Postgres).fetch_all(connection)).await;
                tx.link.discard_if_dead(rows)?.into_iter().map(Row::postgres).collect()
            }
        })
    }

    pub async fn optional(self, tx: &mut Tx) -> Result<Option<Row>> {
        Ok(match &mut tx.0 {
            Begun::Sqlite(tx) => {
                let row = bound!(self, Sqlite).fetch_optional(tx.connection()?).await;
                tx.discard_if_dead(row)?.map(Row::sqlite)
            }
            Begun::Postgres(tx) => {
                let (connection, watch) = tx.link.parts()?;
                let row = watch.answered(bound!(self, Postgres).fetch_optional(connection)).await;
                tx.link.discard_if_dead(row)?.map(Row::postgres)
            }
        })
    }

    pub async fn one(self, tx: &mut Tx) -> Result<Row> {
        self.optional(tx).await?.ok_or(Error::Sql(sqlx::Error::RowNotFound))
    }

    /// How many rows it changed.
    pub async fn run(self, tx: &mut Tx) -> Result<u64> {
        Ok(match &mut tx.0 {
            Begun::Sqlite(tx) => {
                let done = bound!(self, Sqlite).execute(tx.connection()?).await;
                tx.discard_if_dead(done)?.rows_affected()
            }
            Begun::Postgres(tx) => {
                let (connection, watch) = tx.link.parts()?;
                let done = watch.answered(bound!(self, Postgres).execute(connection)).await;
                tx.link.discard_if_dead(done)?.rows_affected()
            }
        })
    }

    /// A single query by itself, which sees what is committed.
    pub async fn read(self, db: &Db) -> Result<Vec<Row>> {
        Ok(match &db.pools {
            Pools::Sqlite { readers, .. } | Pools::Reading { readers, .. } => {
                let mut lane = readers.take().await?;
                let rows = bound!(self, Sqlite).fetch_all(lane.connection()?).await;
                lane.discard_if_dead(rows)?.into_iter().map(Row::sqlite).collect()
            }
            Pools::Postgres(Server { links, .. }) => {
                let mut link = links.take().await?;
                let (connection, watch) = link.parts()?;
                let rows = watch.answered(bound!(self, Postgres).fetch_all(connection)).await;
                let rows = link.discard_if_dead(rows)?;
                link.ended();
                rows.into_iter().map(Row::postgres).collect()
            }
        })
    }
}

impl Row {
    fn sqlite(row: SqliteRow) -> Self {
        Self(Found::Sqlite(row))
    }

    fn postgres(row: PgRow) -> Self {
        Self(Found::Postgres(row))
    }

    pub fn get<T: Column>(&self, column: &str) -> Result<T> {
        Ok(match &self.0 {
            Found::Sqlite(row) => row.try_get(column)?,
            Found::Postgres(row) => row.try_get(column)?,
        })
    }
}

impl From<i64> for Argument {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<Option<i64>> for Argument {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Argument {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<String> for Argument {
    fn from(value: String) -> Self {
        Self::Text(Some(value))
    }
}

impl From<&String> for Argument {
    fn from(value: &String) -> Self {
        Self::Text(Some(value.clone()))
    }
}

impl From<Option<String>> for Argument {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}

impl From<&Option<String>> for Argument {
    fn from(value: &Option<String>) -> Self {
        Self::Text(value.clone())
    }
}

impl From<bool> for Argument {
    fn from(value: bool) -> Self {
        Self::Bool(Some(value))
    }
}

impl From<Vec<u8>> for Argument {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(Some(value))
    }
}

impl From<Option<Vec<u8>>> for Argument {
    fn from(value: Option<Vec<u8>>) -> Self {
        Self::Bytes(value)
    }
}

impl From<Option<bool>> for Argument {
    fn from(value: Option<bool>) -> Self {
        Self::Bool(value)
    }
}
