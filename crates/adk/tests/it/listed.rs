//! What an agent is told of its tools.

use adk_core::Toolset as _;
use toolhost_adk::Toolset;

use crate::agent::{caller, context, house, scope, tool, toolset};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_has_the_tools_of_its_profile_by_their_wire_names() {
    let house = house().build().await;
    for name in ["researcher", "developer", "reviewer", "builder"] {
        let profile = house.gate.profile(name).unwrap();
        let allowed: Vec<_> =
            house.gate.tools_of(profile).filter(|t| !t.facts.people_only).map(|t| t.wire_name.clone()).collect();
        let set = toolset(&house, name);
        let listed: Vec<_> = set.tools().iter().map(|tool| tool.name().to_owned()).collect();
        assert_eq!(listed, allowed, "{name}");
        assert!(listed.iter().all(|name| !name.contains('.')), "{listed:?}");
        let asked = adk_core::Toolset::tools(&set, context()).await.unwrap();
        assert_eq!((set.name(), asked.len()), ("toolhost", listed.len()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_people_may_run_is_listed_for_no_agent() {
    let house = house().build().await;
    let set = toolset(&house, "all");
    let names: Vec<_> = set.tools().iter().map(|tool| tool.name().to_owned()).collect();
    let people_only: Vec<_> =
        house.gate.registry().tools().iter().filter(|t| t.facts.people_only).map(|t| t.wire_name.clone()).collect();
    assert!(!people_only.is_empty() && people_only.iter().all(|name| !names.contains(name)), "{people_only:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_declared_with_the_schema_that_its_arguments_are_checked_against() {
    let house = house().build().await;
    let set = toolset(&house, "developer");
    let (read, write, bash) = (tool(&set, "file_read"), tool(&set, "file_write"), tool(&set, "bash"));
    let declared = read.declaration();
    let facts = &house.gate.registry().get("file.read").unwrap().facts;
    assert_eq!((&declared["parameters"], declared["name"].as_str()), (&facts.input_schema, Some("file_read")));
    assert_eq!(declared["description"].as_str(), Some(facts.description.as_str()));
    assert!(read.is_read_only() && read.is_concurrency_safe(), "it may run beside others");
    for tool in [write, bash, tool(&set, "approval_wait")] {
        assert!(!tool.is_read_only() && !tool.is_concurrency_safe(), "{} may not", tool.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_profile_has_no_tools_at_all() {
    let house = house().build().await;
    let refused = Toolset::new(&house.gate, scope(&house), caller("nobody")).unwrap_err();
    assert!(refused.to_string().contains("nobody"), "{refused}");
}
