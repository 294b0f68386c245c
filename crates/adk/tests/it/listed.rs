//! What an agent is told of its tools.

use adk_core::Toolset as _;
use toolhost_adk::Toolset;

use crate::agent::{caller, context, house, scope, tool, toolset};

fn names(set: &Toolset) -> Vec<String> {
    set.tools().iter().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_has_the_tools_of_its_profile_by_their_wire_names() {
    let house = house().0.build().await;
    assert_eq!(names(&toolset(&house, "reader")), ["note_read"]);
    let set = toolset(&house, "writer");
    let asked = adk_core::Toolset::tools(&set, context()).await.unwrap();
    let asked: Vec<_> = asked.iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!((set.name(), asked), ("toolhost", names(&set)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_people_may_run_is_listed_for_no_agent() {
    let house = house().0.build().await;
    let profile = house.gate.profile("writer").unwrap();
    assert!(house.gate.tools_of(profile).any(|tool| tool.wire_name == "note_clear"), "the profile has it");
    assert_eq!(names(&toolset(&house, "writer")), ["note_read", "note_write", "note_wait"]);
}

/// Rules: 002.7, 002.42, 004.2.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_declared_with_the_schema_that_its_arguments_are_checked_against() {
    let house = house().0.build().await;
    let set = toolset(&house, "writer");
    let declared = tool(&set, "note_write").declaration();
    let info = &house.gate.registry().get("note.write").unwrap().info;
    assert_eq!((&declared["parameters"], declared["name"].as_str()), (&info.input_schema, Some("note_write")));
    assert_eq!(declared["description"], "Writes a note.");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_reads_may_run_beside_other_calls() {
    let house = house().0.build().await;
    let set = toolset(&house, "writer");
    for (name, beside) in [("note_read", true), ("note_write", false), ("note_wait", false)] {
        let tool = tool(&set, name);
        assert_eq!((tool.is_read_only(), tool.is_concurrency_safe()), (beside, beside), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_profile_has_no_tools_at_all() {
    let house = house().0.build().await;
    let refused = Toolset::new(&house.gate, scope(&house), caller("nobody")).unwrap_err();
    assert!(refused.to_string().contains("nobody"), "{refused}");
}
