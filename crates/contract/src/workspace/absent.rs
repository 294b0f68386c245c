//! The executor of a project that has no workspace: every operation fails with [`Error::NoWorkspace`].
//!
//! A program that uses records and workflow packages only need not have a folder, and no fence is probed for it.

use super::{
    Command, CommandResult, Content, Error, Executor, Fence, FenceReport, ListQuery, Listing, MemoryReport, Probe,
    ReadSpan, Remote, RemoteCommand, RemoteResult, Result, SearchPage, SearchQuery, Spot, Watch, WriteGuard, Written,
    WsPath,
};
use crate::BoxFuture;

/// No files and no commands.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoWorkspace;

fn refused<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T>> {
    Box::pin(std::future::ready(Err(Error::NoWorkspace)))
}

impl Executor for NoWorkspace {
    fn read<'a>(&'a self, _: &'a WsPath, _: ReadSpan) -> BoxFuture<'a, Result<Content>> {
        refused()
    }

    fn write<'a>(&'a self, _: &'a WsPath, _: Vec<u8>, _: WriteGuard) -> BoxFuture<'a, Result<Written>> {
        refused()
    }

    fn spot<'a>(&'a self, _: &'a WsPath, _: bool) -> BoxFuture<'a, Result<Spot>> {
        refused()
    }

    fn rename<'a>(&'a self, _: &'a WsPath, _: &'a WsPath) -> BoxFuture<'a, Result<()>> {
        refused()
    }

    fn remove<'a>(&'a self, _: &'a WsPath, _: Option<&'a str>) -> BoxFuture<'a, Result<()>> {
        refused()
    }

    fn list(&self, _: ListQuery) -> BoxFuture<'_, Result<Listing>> {
        refused()
    }

    fn search(&self, _: SearchQuery) -> BoxFuture<'_, Result<SearchPage>> {
        refused()
    }

    fn run<'a>(&'a self, _: Command, _: &'a Fence, _: Watch) -> BoxFuture<'a, Result<CommandResult>> {
        refused()
    }

    fn run_remote<'a>(&'a self, _: &'a Remote, _: RemoteCommand, _: Watch) -> BoxFuture<'a, Result<RemoteResult>> {
        refused()
    }

    fn report(&self) -> BoxFuture<'_, FenceReport> {
        let report = FenceReport {
            tier: None,
            probe: Probe { kernel: String::new(), landlock_abi: 0, bwrap: None, runs_as: String::new() },
            memory: MemoryReport { limit_bytes: 0, cgroup: None, why: None },
            holes: Vec::new(),
            why: vec![Error::NoWorkspace.to_string()],
        };
        Box::pin(std::future::ready(report))
    }
}
