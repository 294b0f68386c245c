//! What tests build a house from: a temporary workspace, a clock that stands still, ids known beforehand, a whole gate in
//! this process, and the program spoken to over MCP.
//!
//! It is used from `tests/` folders only. Whatever fails in here ends the test that called it. Start with [`House`], the
//! gate in this process, and [`McpProcess`], the program in its own.

#![expect(clippy::unwrap_used, reason = "a test double that fails ends its test")]

mod browser;
mod clock;
mod collector;
pub mod corpus;
pub mod database;
pub mod engines;
pub mod facts;
mod fence;
mod git_server;
mod house;
mod http_client;
mod json_server;
mod mcp;
mod model_server;
pub mod packages;
mod people;
mod postgres;
mod program;
pub mod sample;
mod seed;
pub mod session;
mod token_key;
mod workspace;

pub use browser::{Browser, keys};
pub use clock::{CountingIds, FakeClock};
pub use collector::{Answers, CollectorServer, Posted};
pub use fence::{be_the_fence, fence_helper};
pub use git_server::{HttpGit, Repositories, Request, SshGit};
pub use house::{House, HouseBuilder, SUBJECTS, USER, every_tool};
pub use http_client::{
    HttpConnection, HttpReply, HttpStream, TestSocket, TestStream, http, http_bytes, request, try_http,
};
pub use json_server::JsonServer;
pub use mcp::{Era, McpProcess};
pub use model_server::{Fault, ModelFormat, ModelRequest, ModelServer, Tokens, Turn};
pub use people::{SaysNo, SaysYes, Voice, said};
pub use postgres::Postgres;
pub use program::{Program, Ran, environments_with, processes_named, rows, until};
pub use seed::{Seed, rounds};
pub use token_key::{TokenKey, base64_url};
pub use toolhost_tools::PROFILES;
pub use workspace::TempWorkspace;
