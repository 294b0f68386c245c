//! The database, on SQLite and on PostgreSQL: connections, transactions, migrations, and what a host itself keeps there:
//! audit, people, asks, sessions of agents and the log of files.
//!
//! It refuses to know policy, HTTP, tools, and what a record or a package means: those are subjects ([`Subject`]) with crates of
//! their own, which write SQL through [`db`]. Narrow handles are given out: [`Audit`] appends and is the host's alone,
//! [`Reader`] reads it, [`People`] says who may, [`Asks`] is what people are asked, [`Database`] is for the subjects. Start
//! with [`Store::open`].

mod ask;
mod asks;
mod audit;
mod chain;
mod connect;
mod copy;
pub mod db;
mod error;
mod export;
mod fate;
mod file;
mod file_log;
mod host_name;
mod keyed_calls;
mod links;
mod logins;
mod mark;
mod open;
mod outage;
mod people;
mod presence;
mod quota;
mod reader;
mod server;
pub mod sessions;
mod sqlite_pool;
mod stream;
mod subject;
mod terminals;
mod tokens;
mod wakes;
mod webhook;

pub use ask::{Ask, AskChange, AskEnd, AskKind, AskLimits, AskPage, AskState, AskSummary, NewAsk, NewPermit, Permit};
pub use asks::{Asks, AsksMark, OPEN_MAX as ASKS_OPEN_MAX};
pub use audit::{Audit, Entry, Event};
pub use chain::link as audit_hash;
pub use error::{Error, Result};
pub use export::ExportEnd;
pub use file_log::{CHANGES_MAX, CONTENTS_BYTES_MAX, Change, Changes, FileLog, NewChange};
pub use keyed_calls::{Claim, KeyedCall, KeyedCalls};
pub use logins::{Login, LoginLife, Logins, Proof};
pub use open::{Caches, Project, Store};
pub use outage::Outage;
pub use people::{Member, People, Role};
pub use quota::{QUOTA_MINUTE_MAX, QUOTA_OPEN_MAX, Quota, Quotas};
pub use reader::{Filter, KnownProject, Problem, Reader, Row, Undecided, Verdict};
pub use sessions::{Held, Message, NewSession, SessionFilter, SessionRow, SessionState, Sessions, StepRow, Steps};
pub use stream::{Happened, Position, SessionChange, SessionEvent, StreamEvent};
pub use subject::{Database, Subject, Subjects, Who};
pub use terminals::{TERMINAL_ASK_LIVES, TerminalAsk, TerminalLogin, Terminals};
pub use tokens::{NewToken, Token, Tokens};
pub use wakes::{Wakes, Woken};
pub use webhook::{WEBHOOKS_MAX, Webhook, Webhooks};
