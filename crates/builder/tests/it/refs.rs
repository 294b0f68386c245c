//! References, in both directions.

use toolhost_builder::Package;
use toolhost_builder::refs::{Index, Locator, Ref, find};

use crate::small::{files, replace};

fn shown(refs: &[Ref]) -> Vec<String> {
    let line = |r: &Ref| {
        let kind = serde_json::to_value(r.kind).unwrap();
        let place = r.line.map_or_else(|| r.pointer.clone(), |line| format!(":{line}"));
        let end = if r.resolved { "" } else { " (missing)" };
        format!("{} -{}-> {} @ {}{place}{end}", r.from, kind.as_str().unwrap(), r.to, r.file)
    };
    refs.iter().map(line).collect()
}

fn check(locator: Locator, inbound: &[&str], outbound: &[&str]) {
    let refs = find(&Package::read(files()), &locator);
    assert_eq!(shown(&refs.inbound), inbound, "{locator}");
    assert_eq!(shown(&refs.outbound), outbound, "{locator}");
}

#[test]
fn a_step_is_referred_to_by_edges_and_refers_to_what_it_uses() {
    let inbound = [
        "step:main/begin -edge-> step:main/work @ workflow.graph.json/edges/0",
        "step:main/choose -edge-> step:main/work @ workflow.graph.json/edges/3",
        "step:main/begin -transition-> step:main/work @ steps/begin.md/transitions/0/to",
    ];
    let outbound = [
        "step:main/work -edge-> step:main/choose @ workflow.graph.json/edges/1",
        "step:main/work -variable-write-> variable:main/result @ steps/work.md/setsVariables/0",
        "step:main/work -variable-read-> variable:main/text @ steps/work.md/inputs/0",
        "step:main/work -asset-> asset:assets/guide.md @ steps/work.md:15",
    ];
    for locator in ["work", "main/work"] {
        check(Locator::Id(locator.to_owned()), &inbound, &outbound);
    }
    check(Locator::Path("steps/work.md".to_owned()), &inbound, &outbound);
}

#[test]
fn agents_variables_workflows_and_assets_are_found_too() {
    check(
        Locator::Id("ada".to_owned()),
        &[
            "step:main/begin -agent-> agent:ada @ workflow.graph.json/nodes/0/agentId",
            "step:main/begin -agent-> agent:ada @ steps/begin.md/agentId",
        ],
        &["agent:ada -asset-> asset:assets/guide.md @ agents.json/agents/0/systemPrompt"],
    );
    check(
        Locator::Id("topic".to_owned()),
        &[
            "workflow:main -variable-write-> variable:main/topic @ workflow.md/variables/topic",
            "step:main/begin -variable-read-> variable:main/topic @ steps/begin.md/inputs/0",
        ],
        &[],
    );
    check(
        Locator::Path("workflow.graph.json".to_owned()),
        &["package -entry-> workflow:main @ bmad.json/entry"],
        &[
            "workflow:main -entry-> step:main/begin @ workflow.graph.json/entryNodeId",
            "workflow:main -asset-> asset:assets/guide.md @ workflow.md:13",
            "workflow:main -variable-write-> variable:main/topic @ workflow.md/variables/topic",
        ],
    );
    let asset = find(&Package::read(files()), &Locator::Path("assets/guide.md".to_owned()));
    assert_eq!((asset.inbound.len(), asset.outbound.len()), (6, 0));
}

#[test]
fn what_is_referred_to_and_missing_is_said() {
    let mut broken = files();
    replace(&mut broken, "steps/work.md", "assets/guide.md", "assets/none.md");
    let index = Index::of(&Package::read(broken));
    let missing: Vec<&Ref> = index.all().iter().filter(|r| !r.resolved).collect();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].to.to_string(), "asset:assets/none.md");
}

#[test]
fn nothing_is_found_of_what_is_not_there() {
    for locator in [Locator::Id("nobody".to_owned()), Locator::Path("nowhere".to_owned())] {
        assert_eq!(find(&Package::read(files()), &locator).objects, []);
    }
}
