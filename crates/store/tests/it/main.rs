//! The store under attack, under load and after a crash, on real databases of both engines.

#![expect(clippy::unwrap_used, reason = "tests")]

mod asks;
mod both;
mod chain;
mod checkup;
mod claims;
mod crowd;
mod decided;
mod file_log;
mod hostile;
mod killed;
mod links;
mod machines;
mod many;
mod memory;
mod moved;
mod network;
mod numbers;
mod open;
mod outage;
mod people;
mod proxy;
mod rounds;
mod sessions;
mod shelf;
mod things;
mod transfer;
mod unwritable;
mod versions;
mod walk;
mod whole;
mod worker;
