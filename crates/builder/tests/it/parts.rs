//! A part of a package: what is not at hand still counts as being there.

use std::collections::{BTreeMap, BTreeSet};

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
