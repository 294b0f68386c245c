//! An export that was cut off or changed is not taken for a whole one.

use toolhost_store::records::{Edit, Extent, Imported, RecordError, Requirement};
use toolhost_testkit::Seed;

use crate::both::{Place, Room, engines, exported, said};
use crate::checkup::checkup;
use crate::things::{learning, requirement, ticket};

/// The lines of a project with a few records, some of more than one version.
async fn lines_of(here: &Room) -> Vec<String> {
    let desk = here.desk();
    for n in 0..3 {
        desk.create(requirement(&format!("r{n}")), 0, None).await.unwrap();
        desk.create(ticket(&format!("t{n}")), 0, None).await.unwrap();
        desk.create(learning(&format!("learnt {n}")), 0, None).await.unwrap();
    }
    for id in ["REQ-001", "REQ-003"] {
        let rename = |requirement: &mut Requirement| {
            requirement.title.push('!');
            Ok(())
        };
        desk.update(id, &Edit::default(), rename).await.unwrap();
    }
    exported(&desk).await
}

/// Imports into a project of its own.
async fn import(
    place: &Place,
    here: &Room,
    name: &str,
    lines: &[String],
    extent: Extent,
) -> (Result<Imported, RecordError>, Vec<String>) {
    let there = here.next_door(&place.workspace().join(name)).await;
    let imported = there.import(lines.iter().cloned().map(Ok), extent).await;
    let after = exported(&there).await;
    checkup(&there).await;
    (imported, after)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_ends_early_is_refused_wherever_it_was_cut() {
    for place in engines() {
        let here = place.room().await;
        let lines = lines_of(&here).await;
        for cut in 0..lines.len() {
            let (refused, after) = import(&place, &here, &format!("cut {cut}"), &lines[..cut], Extent::Whole).await;
            let refused = said(refused);
            assert!(refused.contains("no last line") && refused.contains("--partial"), "{place}, {cut}: {refused}");
            assert_eq!(after.len(), 3, "{place}, {cut}: nothing came: {after:?}");
        }
        let (whole, after) = import(&place, &here, "whole", &lines, Extent::Whole).await;
        assert_eq!(whole.unwrap().notes, Vec::<String>::new());
        assert!(after == lines, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_which_any_line_is_gone_changed_or_doubled_is_refused() {
    for place in engines() {
        let here = place.room().await;
        let lines = lines_of(&here).await;
        let last = lines.len() - 1;
        let mut seed = Seed::of_this_run();
        let mut spoilt: Vec<Vec<String>> = Vec::new();
        for at in 0..last {
            let mut without = lines.clone();
            without.remove(at);
            let mut twice = lines.clone();
            twice.insert(at, lines[at].clone());
            spoilt.extend([without, twice]);
        }
        let mut swapped = lines.clone();
        swapped.swap(1, 2);
        let changed: Vec<String> = lines.iter().map(|line| line.replace("\"r1\"", "\"r9\"")).collect();
        let no_history = lines.iter().filter(|line| !line.contains(r#""line":"history""#)).cloned().collect();
        let no_first = |line: &&String| !line.contains(r#""line":"history""#) || !line.contains(r#""version":1,"#);
        let no_first = lines.iter().filter(no_first).cloned().collect();
        let mut trailing = lines.clone();
        trailing.push(lines[1].clone());
        let mut ended_twice = lines.clone();
        ended_twice.push(lines[last].clone());
        spoilt.extend([swapped, changed, no_history, no_first, trailing, ended_twice]);
        for (n, spoilt) in spoilt.into_iter().enumerate() {
            let name = format!("{n} {}", seed.below(1_000_000));
            let (refused, after) = import(&place, &here, &name, &spoilt, Extent::Whole).await;
            let refused = said(refused);
            let told = refused.contains("the export is not whole") || refused.contains("there is already");
            assert!(told, "{place}, {n}: {refused}");
            assert_eq!(after.len(), 3, "{place}, {n}: nothing came: {after:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_an_export_is_imported_where_somebody_wants_it_and_what_is_missing_is_told() {
    for place in engines() {
        let here = place.room().await;
        let lines = lines_of(&here).await;
        let (part, after) = import(&place, &here, "cut", &lines[..lines.len() - 4], Extent::Partial).await;
        let notes = part.unwrap().notes;
        assert!(notes.len() == 1 && notes[0].contains("no last line"), "{place}: {notes:?}");
        assert!(after.len() > lines.len() - 6, "{place}");
        // An earlier version's export is told by its first line, and has no last one.
        let mut old = lines[..lines.len() - 1].to_vec();
        old[0] = old[0].replace("\"version\":2", "\"version\":1");
        let (refused, _) = import(&place, &here, "old, refused", &old, Extent::Whole).await;
        assert!(said(refused).contains("an earlier toolhost made it"), "{place}");
        let (taken, after) = import(&place, &here, "old", &old, Extent::Partial).await;
        assert!(taken.is_ok() && after == lines, "{place}");
        // Without the first versions of what has two.
        let no_first = |line: &&String| !line.contains(r#""line":"history""#) || !line.contains(r#""version":1,"#);
        let no_first: Vec<String> = lines.iter().filter(no_first).cloned().collect();
        let (part, after) = import(&place, &here, "no first", &no_first, Extent::Partial).await;
        let notes = part.unwrap().notes;
        let gaps = ["REQ-001 came with 1 of its 2 versions", "REQ-003 came with 1 of its 2 versions"];
        assert_eq!(notes[1..], gaps, "{place}: {notes:?}");
        // What came so is exported whole, and the gap is told again.
        let (again, _) = import(&place, &here, "again", &after, Extent::Whole).await;
        assert_eq!(again.unwrap().notes, gaps, "{place}");
    }
}
