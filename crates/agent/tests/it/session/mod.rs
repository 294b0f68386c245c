//! Sessions of scripted models, through a real gate with every tool and real commands in the fence.

use toolhost_testkit::{HouseBuilder, TempWorkspace};

#[expect(clippy::disallowed_methods, reason = "it makes packages of its own of the sample")]
mod acceptance;
mod bad_models;
#[expect(clippy::disallowed_methods, reason = "it makes the folder that is deployed to")]
mod decided;
mod packages;
mod resume;
mod rounds;

/// A house with every built-in tool over this workspace, in which commands run.
fn house(workspace: TempWorkspace) -> HouseBuilder {
    let helper = toolhost_testkit::fence_helper("agent_fence");
    HouseBuilder::of(toolhost::tools).helper(helper).workspace(workspace)
}
