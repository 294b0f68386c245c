//! A house with every built-in tool and this very program as the fence's helper; and the program by itself.

use toolhost_testkit::{HouseBuilder, Program, TempWorkspace};

/// The program under test.
pub(crate) const TOOLHOST: &str = env!("CARGO_BIN_EXE_toolhost");

/// A house over this workspace in which commands run.
pub(crate) fn house(workspace: TempWorkspace) -> HouseBuilder {
    HouseBuilder::of(toolhost::tools).helper(TOOLHOST).workspace(workspace)
}

/// The program over this workspace.
pub(crate) fn program(workspace: &TempWorkspace) -> Program {
    Program::new(TOOLHOST, workspace)
}
