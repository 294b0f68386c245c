//! What file tools changed: former contents are kept once each, and the oldest go when there are too many.

use std::time::Duration;

use toolhost_store::{CHANGES_MAX, CONTENTS_BYTES_MAX, Change, Changes, NewChange};
use toolhost_testkit::database::{Place, Room, engines};

/// It is looked whether there are too many once in so many changes.
const PRUNE_EVERY: i64 = 64;

pub(crate) fn change(here: &Room, call: &str, path: &str, former: Option<&[u8]>) -> NewChange {
    NewChange {
        project_id: here.project,
        call_id: call.to_owned(),
        session_id: Some(format!("session of {call}")),
        path: path.to_owned(),
        moved_to: None,
        former_sha256: former.map(sha),
        former_mode: former.map(|_| 0o755),
        former: former.map(<[u8]>::to_vec),
        after_sha256: Some("after".to_owned()),
    }
}

/// Stands for a hash: the store takes what it is told.
fn sha(content: &[u8]) -> String {
    format!("sha-of-{content:?}")
}

async fn write(here: &Room, new: &NewChange) {
    here.store.file_log().before(new).await.unwrap();
}

async fn told(here: &Room, which: &Changes) -> Vec<Change> {
    here.store.file_log().changes(here.project, which).await.unwrap()
}

async fn content(here: &Room, sha256: &str) -> Option<Vec<u8>> {
    here.store.file_log().content(here.project, sha256).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_told_the_newest_first_by_call_session_and_time() {
    for place in engines() {
        let here = place.room().await;
        assert!(told(&here, &Changes::LastCall).await.is_empty());
        let bytes: &[u8] = b"\x00\xff not a text";
        write(&here, &change(&here, "one", "a.txt", None)).await;
        place.clock.advance(Duration::from_secs(1));
        write(&here, &change(&here, "two", "a.txt", Some(bytes))).await;
        let moved = NewChange { moved_to: Some("c.txt".to_owned()), ..change(&here, "two", "b.txt", Some(b"b")) };
        write(&here, &moved).await;
        let last = told(&here, &Changes::LastCall).await;
        let paths: Vec<&str> = last.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["b.txt", "a.txt"], "{place}");
        assert_eq!((last[0].moved_to.as_deref(), last[0].former_mode), (Some("c.txt"), Some(0o755)));
        assert_eq!(told(&here, &Changes::Call("one".to_owned())).await.len(), 1);
        assert_eq!(told(&here, &Changes::Session("session of two".to_owned())).await, last, "{place}");
        assert_eq!(told(&here, &Changes::SinceMs(last[0].at_ms)).await, last);
        assert_eq!(told(&here, &Changes::SinceMs(last[0].at_ms - 1000)).await.len(), 3);
        assert!(told(&here, &Changes::Call("three".to_owned())).await.is_empty());
        assert_eq!(content(&here, &sha(bytes)).await.as_deref(), Some(bytes), "{place}: byte for byte");
        // The neighbor's changes and contents are their own.
        let next = here.store.project(std::path::Path::new("/nowhere/next"), "next", "local").await.unwrap().id;
        let log = here.store.file_log();
        assert!(log.changes(next, &Changes::SinceMs(0)).await.unwrap().is_empty(), "{place}");
        assert_eq!(log.content(next, &sha(bytes)).await.unwrap(), None, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_content_is_kept_once_whoever_writes_it_down() {
    for place in engines() {
        let rooms = [place.room().await, place.room().await];
        let mut writers = tokio::task::JoinSet::new();
        for n in 0..40 {
            let here = &rooms[n % 2];
            let (log, new) = (here.store.file_log(), change(here, &format!("call-{n}"), "a.txt", Some(b"same")));
            writers.spawn(async move { log.before(&new).await.unwrap() });
        }
        writers.join_all().await;
        let all = told(&rooms[0], &Changes::SinceMs(0)).await;
        let numbers: Vec<i64> = all.iter().map(|change| change.number).collect();
        assert_eq!(numbers, (1..=40).rev().collect::<Vec<i64>>(), "{place}");
        assert_eq!(content(&rooms[1], &sha(b"same")).await.as_deref(), Some(&b"same"[..]));
        // One row: a second one would break the key.
        place.run("CREATE UNIQUE INDEX once ON file_content (content)").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_changes_lose_the_oldest_and_contents_go_with_the_last_that_knows_them() {
    for place in engines() {
        let here = place.room().await;
        fill(&place, &here, CHANGES_MAX, 10).await;
        for n in 0..PRUNE_EVERY {
            // The first is about what an old change was about, too.
            let former = format!("old {}", if n == 0 { 1 } else { 1_000_000 + n });
            let new = NewChange { former_sha256: Some(former.clone()), ..change(&here, "last", "a.txt", Some(b"x")) };
            write(&here, &new).await;
        }
        let all = told(&here, &Changes::SinceMs(0)).await;
        // Looked at once in so many: fewer than that may be too many.
        let count = i64::try_from(all.len()).unwrap();
        assert!((CHANGES_MAX..CHANGES_MAX + PRUNE_EVERY).contains(&count), "{place}: {count}");
        assert_eq!(all[0].number, CHANGES_MAX + PRUNE_EVERY, "{place}: the newest is there");
        let oldest = all[all.len() - 1].number;
        assert!(oldest > 1, "{place}");
        assert!(content(&here, "old 1").await.is_some(), "{place}: a newer change knows it");
        assert!(content(&here, "old 2").await.is_none(), "{place}: nobody knows it any more");
        assert!(content(&here, &format!("old {}", oldest - 1)).await.is_none(), "{place}");
        assert!(content(&here, &format!("old {oldest}")).await.is_some(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_bytes_lose_the_oldest_contents() {
    for place in engines() {
        let here = place.room().await;
        // Together twice of what is kept.
        fill(&place, &here, 1023, CONTENTS_BYTES_MAX / 512).await;
        write(&here, &change(&here, "last", "a.txt", Some(b"newest"))).await;
        let all = told(&here, &Changes::SinceMs(0)).await;
        let kept = i64::try_from(all.len()).unwrap() - 1;
        assert!((512 - PRUNE_EVERY..=512).contains(&kept), "{place}: {kept}");
        assert!(content(&here, &sha(b"newest")).await.is_some(), "{place}");
        assert!(content(&here, &format!("old {}", 1023 - kept)).await.is_none(), "{place}");
        assert!(content(&here, "old 1023").await.is_some(), "{place}");
    }
}

/// So many changes at once behind the store's back, each with a content that claims so many bytes.
async fn fill(place: &Place, here: &Room, count: i64, bytes: i64) {
    let project = here.project;
    let numbers = format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})");
    let blob = if place.to_string() == "SQLite" { "x'00'" } else { "'\\x00'::bytea" };
    place
        .run(&format!(
            "{numbers} INSERT INTO file_content (project_id, sha256, bytes, content)
                 SELECT {project}, 'old ' || i, {bytes}, {blob} FROM n;
             {numbers} INSERT INTO file_change (project_id, number, call_id, at_ms, path, former_sha256)
                 SELECT {project}, i, 'fill', 0, 'p', 'old ' || i FROM n;
             INSERT INTO counter (project_id, kind, value) VALUES ({project}, 'file_change', {count})"
        ))
        .await
        .unwrap();
}
