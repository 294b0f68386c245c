//! A part of a package: what is not at hand still counts as being there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use toolhost_builder::{Edits, Elsewhere, MANIFEST, Package, revision, validate};

use crate::small;

fn without_second_workflow(whole: &Package) -> Package {
    let mut manifest = whole.manifest().unwrap().clone();
    manifest.as_object_mut().unwrap().remove("workflows");
    let first = &whole.workflows()[0];
    let mut files = whole.files().clone();
    files.retain(|path, _| path != MANIFEST && !path.starts_with("assets/"));
    let elsewhere = Elsewhere {
        workflows: whole.workflows().iter().map(|w| w.id.clone()).collect::<BTreeSet<_>>(),
        assets: whole.asset_hashes().into_iter().map(|(p, h)| (p.to_owned(), h)).collect::<BTreeMap<_, _>>(),
        files: None,
    };
    Package::part(manifest, files, vec![first.place()], elsewhere)
}

#[test]
fn a_part_finds_nothing_missing_that_is_only_not_at_hand() {
    let whole = Package::read(small::files());
    assert_eq!(validate(&whole), []);
    let part = without_second_workflow(&whole);
    let errors: Vec<_> =
        validate(&part).into_iter().filter(|f| f.severity == toolhost_builder::Severity::Error).collect();
    assert_eq!(errors, []);
    assert_eq!(revision::assets(&part), revision::assets(&whole));
    assert_eq!(revision::agents(&part), revision::agents(&whole));
}

#[test]
fn edits_of_a_part_and_of_the_whole_come_to_the_same_revisions() {
    let whole = Package::read(small::files());
    let part = without_second_workflow(&whole);
    let workflow = &whole.workflows()[0];
    let asset = "assets/more.md".to_owned();
    let edits: Edits =
        [(workflow.path.clone(), Some(b"---\n---\nnew\n".to_vec())), (asset, Some(b"x".to_vec()))].into();
    let (part, whole) = (part.edited(&edits), whole.edited(&edits));
    assert_eq!(revision::assets(&part), revision::assets(&whole));
    let of = |package: &Package| revision::workflow(package, &package.workflows()[0]);
    assert_eq!(of(&part), of(&whole));
    assert!(part.has_asset("assets/more.md"));
}

#[test]
fn a_package_with_other_files_reads_as_one_that_was_read_from_its_files() {
    let mut files = small::files();
    let first = &Package::read(files.clone()).workflows()[0].clone();
    let mut manifest: Value = serde_json::from_slice(&files[MANIFEST]).unwrap();
    let listed = json!({ "id": "second", "workflow": "second/flow.md", "graph": "second/graph.json" });
    manifest["workflows"] = json!([{ "id": first.id, "workflow": first.path, "graph": first.graph_path }, listed]);
    files.insert(MANIFEST.to_owned(), manifest.to_string().into_bytes());
    files.insert("second/flow.md".to_owned(), files[&first.path].clone());
    files.insert("second/graph.json".to_owned(), files[&first.graph_path].clone());
    let whole = Package::read(files);
    let part = without_second_workflow(&whole);
    let (flow, other) = (&whole.workflows()[0], &whole.workflows()[1]);
    let step = flow.steps[0].path.clone();
    let text = |path: &str| String::from_utf8(whole.files()[path].clone()).unwrap();
    let graph = text(&flow.graph_path);
    let changes: Vec<(String, Option<String>)> = vec![
        (step.clone(), Some(text(&step) + "More.\n")),
        (step.clone(), Some("no front matter".to_owned())),
        // What is wrong is told again, though another file has changed.
        ("assets/one.md".to_owned(), Some("One.\n".to_owned())),
        (step.clone(), None),
        (flow.path.clone(), Some(text(&flow.path) + "More.\n")),
        (flow.graph_path.clone(), Some(graph.replacen("\"title\"", "\"name\"", 1))),
        (flow.graph_path.clone(), Some("{".to_owned())),
        ("assets/two.md".to_owned(), Some("Two.\n".to_owned())),
        (flow.graph_path.clone(), Some(graph.clone() + " ")),
        (other.graph_path.clone(), None),
        ("assets/more.md".to_owned(), Some("More.\n".to_owned())),
        (MANIFEST.to_owned(), Some(text(MANIFEST).replacen(&other.id, "another", 1))),
    ];
    // Each edit is made alone, and then on top of those before it. A wrong file stays wrong until an edit mends it.
    let (mut over, mut over_part) = (whole.clone(), part.clone());
    for (path, text) in changes {
        let edits: Edits = [(path.clone(), text.map(String::into_bytes))].into();
        for package in [&mut over, &mut over_part] {
            *package = package.edited(&edits);
        }
        for (edited, what) in [(whole.edited(&edits), "alone"), (over.clone(), "over the others")] {
            let read = Package::read(edited.files().clone());
            assert_eq!(format!("{edited:?}"), format!("{read:?}"), "{path}, {what}");
        }
        // A part has no constructor that reads it again: an edit that changes nothing does.
        let again = Package::part(
            over_part.manifest().cloned().unwrap_or_default(),
            over_part.files().clone(),
            over_part.workflows().iter().map(toolhost_builder::Workflow::place).collect(),
            Elsewhere::default(),
        );
        assert_eq!(format!("{:?}", over_part.workflows()), format!("{:?}", again.workflows()), "{path}");
    }
}
