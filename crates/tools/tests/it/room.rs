//! Houses with every built-in tool.

use std::path::PathBuf;

use serde_json::Value;
use toolhost_contract::{ErrorKind, OutcomeError};
use toolhost_testkit::{House, HouseBuilder, TempWorkspace};

pub(crate) async fn house(files: &[(&str, &[u8])]) -> House {
    let workspace = TempWorkspace::new();
    for (path, content) in files {
        workspace.write(path, content);
    }
    HouseBuilder::of(toolhost::tools).workspace(workspace).build().await
}

/// The error of a call that must fail so, and must change nothing.
pub(crate) async fn refused(house: &House, tool: &str, arguments: Value, kind: ErrorKind) -> OutcomeError {
    let before = house.workspace.snapshot();
    let outcome = house.call(tool, arguments.clone()).await;
    assert!(!outcome.ok, "{tool} {arguments}: {outcome:?}");
    assert_eq!(house.workspace.snapshot(), before, "{tool} {arguments} changed something");
    let error = outcome.error.unwrap();
    assert_eq!(error.kind, kind, "{tool} {arguments}: {error:?}");
    error
}

/// A house with every built-in tool over this workspace, in which commands run.
pub(crate) fn fenced(workspace: TempWorkspace) -> HouseBuilder {
    HouseBuilder::of(toolhost::tools).helper(fence_helper()).workspace(workspace)
}

/// This crate's example.
pub(crate) fn fence_helper() -> PathBuf {
    toolhost_testkit::fence_helper("tools_fence")
}
