//! The store under attack, under load and after a crash, on real databases of both engines.

#![expect(clippy::unwrap_used, reason = "tests")]

mod asks;
mod chain;
mod crowd;
mod decided;
mod file_log;
mod killed;
mod many;
mod moved;
mod network;
mod open;
mod outage;
mod people;
mod proxy;
mod sessions;
mod shelf;
mod stream;
mod unwritable;
mod worker;
