//! Lists and previews for who has looked before: a look never shows a former state.

use std::time::Duration;

use serde_json::json;
use toolhost_builder::change::Side;
use toolhost_builder::packages::{Apply, ProjectPackage};
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{FLOW, apply, data, house_with_sample, in_session, person, set, shelf_of};

use crate::gate::chains::{asset, stage, stage_text, validate};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_changes_a_list_changes_its_mark_and_a_look_does_not() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let shelf = shelf_of(&house, house.project.id);
        let mark = async || shelf.change_sets_since(None, true, None).await.unwrap().0;
        let mut marks: Vec<String> = vec![mark().await];
        let mut changes = async |what: &str| {
            let mark = mark().await;
            assert!(!marks.contains(&mark), "{engine} {what}: {mark}");
            marks.push(mark.clone());
            house.clock.advance(Duration::from_millis(1));
            mark
        };
        stage_text(&house, "Copy each claim", "Write each claim").await;
        let known = changes("stage").await;
        shelf.preview(1).await.unwrap();
        let since = shelf.change_sets_since(None, true, Some(&known)).await.unwrap();
        assert_eq!(since, (known, None), "{engine}");
        validate(&house, "cs-1").await;
        changes("validate").await;
        stage(&house, json!([asset("assets/ours.md", "Ours.\n")])).await;
        changes("stage another").await;
        assert!(apply(&house, "cs-1").await.ok, "{engine}");
        changes("apply").await;
        let read = in_session(
            &house,
            "s2",
            "builder.context.get",
            json!({"targetType": "workflow", "targetId": FLOW, "mode": "optimize"}),
        );
        let revisions = data(&read.await)["revision_info"]["revisions"].clone();
        let theirs = set(json!([asset("assets/ours.md", "Theirs.\n")]), revisions);
        data(&in_session(&house, "s2", "builder.change.stage", theirs).await);
        assert!(apply(&house, "cs-3").await.ok, "{engine}");
        changes("apply of somebody else").await;
        let sides = [("asset:assets/ours.md".to_owned(), vec![Side::Ours])].into();
        shelf.take_sides(&Apply { number: 2, ..Apply::default() }, &sides).await.unwrap();
        changes("sides of a set that is not validated").await;
        let discarded = in_session(&house, "s1", "builder.change.discard", json!({"changeSetId": "cs-2"})).await;
        assert!(discarded.ok, "{engine}: {discarded:?}");
        changes("discard").await;
        let undone = person(&house, "builder.change.undo", json!({"moment": 3})).await;
        assert!(undone.ok, "{engine}: {undone:?}");
        changes("undo").await;
    }
}

/// Whether the mark of the last look is still the one of this set; the mark becomes that of now.
async fn is_known(shelf: &ProjectPackage, number: i64, mark: &mut Option<String>) -> bool {
    let wish = Apply { number, ..Apply::default() };
    let (now, preview) = shelf.preview_since(&wish, mark.as_deref()).await.unwrap();
    *mark = Some(now);
    preview.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_stays_known_while_what_is_staged_later_can_neither_supply_nor_take_anything() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let shelf = shelf_of(&house, house.project.id);
        stage_text(&house, "Copy each claim", "Write each claim").await;
        let mut mark = None;
        assert!(!is_known(&shelf, 1, &mut mark).await && is_known(&shelf, 1, &mut mark).await, "{engine}");
        stage_text(&house, "Write each claim", "Write down each claim").await;
        let mut later = None;
        assert!(!is_known(&shelf, 2, &mut later).await, "{engine}");
        assert!(is_known(&shelf, 1, &mut mark).await, "{engine}: a later text of the same step is not in it");
        stage(&house, json!([asset("assets/new.md", "new\n")])).await;
        assert!(!is_known(&shelf, 1, &mut mark).await, "{engine}: a new asset could be what it names");
        assert!(!is_known(&shelf, 2, &mut later).await, "{engine}");
        house.clock.advance(Duration::from_millis(1));
        validate(&house, "cs-1").await;
        assert!(!is_known(&shelf, 1, &mut mark).await, "{engine}: it says that it is validated");
        assert!(!is_known(&shelf, 2, &mut later).await, "{engine}: an earlier set was written");
        assert!(apply(&house, "cs-3").await.ok, "{engine}");
        assert!(!is_known(&shelf, 1, &mut mark).await, "{engine}: the package is another one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_in_which_something_is_missing_is_made_again_after_each_stage() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let shelf = shelf_of(&house, house.project.id);
        stage_text(&house, "Copy each claim", "See assets/never.md. Copy each claim").await;
        let mut mark = None;
        is_known(&shelf, 1, &mut mark).await;
        assert!(is_known(&shelf, 1, &mut mark).await, "{engine}");
        stage_text(&house, "Copy each claim", "Write each claim").await;
        assert!(!is_known(&shelf, 1, &mut mark).await, "{engine}: a later set could supply it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_was_looked_at_before_says_what_a_later_set_supplies() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let shelf = shelf_of(&house, house.project.id);
        let based_on = async |id: &str| {
            let sets = shelf.change_sets(None, true).await.unwrap();
            sets.into_iter().find(|set| set.change_set_id == id).unwrap().based_on
        };
        stage_text(&house, "Copy each claim", "See assets/later.md. Copy each claim").await;
        stage(&house, json!([asset("assets/other.md", "other\n")])).await;
        assert_eq!(based_on("cs-1").await, Vec::<String>::new(), "{engine}");
        assert_eq!(based_on("cs-1").await, Vec::<String>::new(), "{engine}: as at the last look");
        stage(&house, json!([asset("assets/later.md", "later\n")])).await;
        assert_eq!(based_on("cs-1").await, ["cs-3"], "{engine}");
        let discarded = in_session(&house, "s1", "builder.change.discard", json!({"changeSetId": "cs-3"})).await;
        assert!(discarded.ok, "{engine}: {discarded:?}");
        assert_eq!(based_on("cs-1").await, Vec::<String>::new(), "{engine}");
    }
}
