//! A house with every built-in tool.

use serde_json::Value;
use toolhost_contract::{AnyTool, ErrorKind, OutcomeError};
use toolhost_store::Database;
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

/// The built-in tools, as they are listed: none of them can be called.
pub(crate) fn every_tool() -> Vec<Box<dyn AnyTool>> {
    toolhost::tools(&Database::default(), None)
}
