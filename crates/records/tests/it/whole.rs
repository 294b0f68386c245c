//! An export that was cut off or changed is not taken for a whole one.

use toolhost_records::{Edit, Extent, Imported, RecordError, Requirement};
use toolhost_testkit::Seed;
use toolhost_testkit::database::things::{component, feature, learning, requirement, task_of, ticket};
use toolhost_testkit::database::{Place, Room, checkup, engines, exported, said};

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

#[tokio::test(flavor = "multi_thread")]
async fn of_an_export_that_was_cut_inside_a_line_the_lines_before_it_are_imported() {
    for place in engines() {
        let here = place.room().await;
        let lines = lines_of(&here).await;
        for at in [1, lines.len() / 2, lines.len() - 1] {
            let mut cut = lines[..=at].to_vec();
            let half = cut[at].len() - 3;
            cut[at].truncate(half);
            let (refused, _) = import(&place, &here, &format!("refused {at}"), &cut, Extent::Whole).await;
            let refused = said(refused);
            let line = format!("line {}, the last one, is incomplete", at + 1);
            assert!(refused.contains(&line) && refused.contains("--partial"), "{place}: {refused}");
            let (part, after) = import(&place, &here, &format!("part {at}"), &cut, Extent::Partial).await;
            let notes = part.unwrap().notes;
            assert_eq!(notes[0], format!("{line} and was left out"), "{place}");
            let (before, _) = import(&place, &here, &format!("before {at}"), &lines[..at], Extent::Partial).await;
            assert_eq!(before.unwrap().notes, notes[1..], "{place}");
            // The lines that came are in it, but for the counters, and for what only a whole one has.
            let of_records = |line: &&String| line.contains(r#""line":"record""#);
            let (came, kept) = (lines[..at].iter().filter(of_records), after.iter().filter(of_records));
            assert!(came.eq(kept), "{place}, {at}");
        }
        // Elsewhere an incomplete line is a broken one.
        let mut broken = lines.clone();
        let half = broken[2].len() - 3;
        broken[2].truncate(half);
        let (refused, after) = import(&place, &here, "broken", &broken, Extent::Partial).await;
        assert!(said(refused).starts_with("line 3: EOF"), "{place}");
        assert_eq!(after.len(), 3, "{place}: nothing came: {after:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_missing_in_an_export_is_named() {
    for place in engines() {
        let here = place.room().await;
        let lines = lines_of(&here).await;
        let gone = |line: &&String| !line.contains(r#""id":"REQ-001""#) && !line.contains(r#""id":"LRN-002""#);
        let without: Vec<String> = lines.iter().filter(gone).cloned().collect();
        let (refused, _) = import(&place, &here, "gaps", &without, Extent::Whole).await;
        assert_eq!(
            said(refused),
            "the export is not whole: it has 2 of 3 records of the kind learning, 2 of 3 records of the kind \
             requirement, 2 of 3 versions of the kind learning, 3 of 5 versions of the kind requirement. `--partial` \
             imports what is there",
            "{place}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_an_export_comes_without_what_names_missing_records() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(requirement("r"), 0, None).await.unwrap();
        desk.create(feature("gone", &[], &[]), 0, None).await.unwrap();
        desk.create(feature("stays", &["REQ-001"], &["FEAT-001"]), 0, None).await.unwrap();
        desk.create(component("c", &["FEAT-001", "FEAT-002"]), 0, None).await.unwrap();
        desk.create(task_of("goes along", "FEAT-001", "COMP-001", &[]), 0, None).await.unwrap();
        desk.create(task_of("waits for it", "FEAT-002", "COMP-001", &["TASK-001"]), 0, None).await.unwrap();
        let gone = |line: &&String| !(line.contains(r#""id":"FEAT-001""#));
        let mut part: Vec<String> = exported(&desk).await.iter().filter(gone).cloned().collect();
        for line in part.iter_mut().filter(|line| line.contains(r#""line":"current""#)) {
            *line = r#"{"line":"current","iteration":7}"#.to_owned();
        }
        let (imported, after) = import(&place, &here, "part", &part, Extent::Partial).await;
        let imported = imported.unwrap();
        let expected = [
            "TASK-001 was left out: its `featureId` names FEAT-001, which is missing",
            "FEAT-002 was imported without FEAT-001 in its `dependencies`: FEAT-001 is missing",
            "COMP-001 was imported without FEAT-001 in its `relatedFeatures`: FEAT-001 is missing",
            "TASK-002 was imported without TASK-001 in its `dependencies`: TASK-001 is missing",
            "no iteration is the current one: ITER-007 is missing",
        ];
        assert!(imported.notes[0].starts_with("the export is not whole: "), "{place}: {:?}", imported.notes);
        assert_eq!(imported.notes[1..], expected, "{place}");
        let counts: Vec<(&str, usize)> = imported.records.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
        assert_eq!(counts, [("component", 1), ("feature", 1), ("requirement", 1), ("task", 1)], "{place}");
        let of = |id: &str| -> Vec<serde_json::Value> {
            let id = format!(r#""id":"{id}""#);
            after.iter().filter(|line| line.contains(&id)).map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        // What was left out is in the history, as what was deleted is.
        let left = of("TASK-001");
        assert!(left.iter().all(|line| line["line"] == "history"), "{place}: {left:?}");
        let changes: Vec<&str> = left.iter().map(|line| line["change"].as_str().unwrap()).collect();
        assert_eq!(changes, ["create", "delete"], "{place}");
        let stays = of("TASK-002");
        assert_eq!((&stays[0]["version"], &stays[0]["content"]["dependencies"]), (&2.into(), &serde_json::json!([])));
        // What came is whole in itself.
        let (again, same) = import(&place, &here, "again", &after, Extent::Whole).await;
        assert!(again.is_ok() && same == after, "{place}");
    }
}
