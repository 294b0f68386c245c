//! What was learnt is found again: by other forms of its words, misspelt ones, parts of them, and in the right order.

use std::time::Duration;

use serde_json::json;
use toolhost_records::{
    Again, Draft, Edit, Importance, Issue, Kind, Learning, ProjectRecords, RecordId, Search, SearchScope,
};
use toolhost_testkit::database::things::{decision, insight, issue, learning, pattern};
use toolhost_testkit::database::{checkup, engines};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The ids of what is found, the best first.
async fn find(desk: &ProjectRecords, scope: SearchScope, kinds: &[Kind], words: &str) -> Vec<String> {
    let keywords = vec![words.to_owned()];
    let search = Search { scope, kinds: kinds.to_vec(), keywords, limit: 10 };
    desk.search(&search).await.unwrap().into_iter().map(|found| found.record.id.to_string()).collect()
}

async fn found(desk: &ProjectRecords, words: &str) -> Vec<String> {
    find(desk, SearchScope::Project, &[], words).await
}

/// Rules: 002.36.
#[tokio::test(flavor = "multi_thread")]
async fn a_word_is_found_in_other_forms_misspelt_and_by_its_beginning() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(learning("The database connections were exhausted under load"), 0, None).await.unwrap();
        desk.create(learning("Authentication failed because tokens had expired"), 0, None).await.unwrap();
        desk.create(learning("使用数据库连接池可以提高性能"), 0, None).await.unwrap();
        desk.create(learning("Das Größenmaß der Übersicht"), 0, None).await.unwrap();
        for (words, id) in [
            ("database", "LRN-001"),
            ("DATABASE", "LRN-001"),
            ("connection", "LRN-001"),
            ("connecting", "LRN-001"),
            ("exhausting loads", "LRN-001"),
            ("databse", "LRN-001"),
            ("dtaabase", "LRN-001"),
            ("databasse", "LRN-001"),
            ("databaze", "LRN-001"),
            ("data", "LRN-001"),
            ("auth", "LRN-002"),
            ("authent", "LRN-002"),
            ("token", "LRN-002"),
            ("expire", "LRN-002"),
            ("autentication", "LRN-002"),
            ("数据库", "LRN-003"),
            ("连接池", "LRN-003"),
            ("池", "LRN-003"),
            ("性能!", "LRN-003"),
            ("größenmaß", "LRN-004"),
            ("ÜBERSICHT", "LRN-004"),
            ("x database y", "LRN-001"),
        ] {
            assert_eq!(found(&desk, words).await, [id], "`{words}` on {place}");
        }
        for words in ["basement", "库数", "dog", "xyzzy", "expert"] {
            assert!(found(&desk, words).await.is_empty(), "`{words}` on {place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fits_better_comes_first_then_what_is_newer() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let learn = async |text: &str| {
            desk.create(learning(text), 0, None).await.unwrap();
            place.clock.advance(DAY);
        };
        learn("retry the network with backoff").await;
        learn("the network is slow").await;
        learn("retry the upload").await;
        learn("the network is down").await;
        learn("networking in general").await;
        assert_eq!(found(&desk, "network retry").await[0], "LRN-001", "{place}: both words are better than one");
        let by_age = found(&desk, "network").await;
        assert_eq!(by_age, ["LRN-005", "LRN-004", "LRN-002", "LRN-001"], "{place}: the newest first");
        // A word itself is better than one like it, however new that is.
        learn("networks").await;
        learn("networx").await;
        assert_eq!(found(&desk, "network").await.last().unwrap(), "LRN-007", "{place}");
        // In the same moment the higher number is the newer one.
        for text in ["same age one", "same age two", "same age three"] {
            desk.create(learning(text), 0, None).await.unwrap();
        }
        assert_eq!(found(&desk, "same age").await, ["LRN-010", "LRN-009", "LRN-008"], "{place}");
        // A word that is rare tells more than one that is everywhere.
        for n in 0..30 {
            learn(&format!("compile step {n}")).await;
        }
        learn("linker").await;
        for n in 30..40 {
            learn(&format!("compile step {n}")).await;
        }
        assert_eq!(found(&desk, "compile linker").await[0], "LRN-041", "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_asked_is_the_newest() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        assert!(found(&desk, "").await.is_empty(), "{place}: nothing is there");
        desk.create(learning("one"), 0, None).await.unwrap();
        place.clock.advance(DAY);
        desk.create(issue("two"), 0, None).await.unwrap();
        place.clock.advance(DAY);
        desk.create(decision("three", "three", None), 0, None).await.unwrap();
        for nothing in ["", " ", "\t\n"] {
            assert_eq!(found(&desk, nothing).await, ["DEC-001", "ISS-001", "LRN-001"], "{place}");
        }
        let none = Search { scope: SearchScope::Project, kinds: vec![], keywords: vec![], limit: 2 };
        assert_eq!(desk.search(&none).await.unwrap().len(), 2);
        assert_eq!(desk.search(&Search { limit: 0, ..none.clone() }).await.unwrap().len(), 0);
        assert_eq!(desk.search(&Search { limit: usize::MAX, ..none }).await.unwrap().len(), 3);
    }
}

/// Rules: 002.36, 002.69.
#[tokio::test(flavor = "multi_thread")]
async fn scopes_and_kinds_narrow_and_the_smart_one_weighs() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(insight("cache misses", Importance::Normal), 1, None).await.unwrap();
        desk.create(insight("cache hits", Importance::Normal), 2, None).await.unwrap();
        desk.create(decision("d", "cache it", None), 0, None).await.unwrap();
        desk.create(pattern("cache", "cache aside", None), 0, None).await.unwrap();
        let project = find(&desk, SearchScope::Project, &[], "cache").await;
        assert_eq!(project.len(), 4, "{place}");
        assert_eq!(find(&desk, SearchScope::Iteration(1), &[], "cache").await, ["INS-001"], "{place}");
        assert_eq!(find(&desk, SearchScope::Iteration(1), &[], "").await, ["INS-001"], "{place}");
        assert!(find(&desk, SearchScope::Iteration(9), &[], "cache").await.is_empty());
        assert_eq!(find(&desk, SearchScope::Project, &[Kind::Decision], "cache").await, ["DEC-001"]);
        let two = [Kind::Pattern, Kind::Insight];
        assert_eq!(find(&desk, SearchScope::Project, &two, "cache").await.len(), 3, "{place}");
        let smart = find(&desk, SearchScope::Smart(1), &[Kind::Insight], "cache").await;
        assert_eq!(smart, ["INS-001", "INS-002"], "{place}: what is of this iteration comes earlier");
        desk.create(insight("cache poisoning", Importance::Critical), 2, None).await.unwrap();
        let smart = find(&desk, SearchScope::Smart(1), &[Kind::Insight], "cache").await;
        assert_eq!(smart[0], "INS-003", "{place}: what is critical comes earlier still");
        desk.create(issue("cache leak"), 2, None).await.unwrap();
        desk.create(issue("cache crash"), 2, None).await.unwrap();
        let resolve = |issue: &mut Issue| {
            issue.resolved = true;
            issue.resolution = Some("patched the eviction".to_owned());
            Ok(())
        };
        desk.update("ISS-002", &Edit::default(), resolve).await.unwrap();
        let smart = find(&desk, SearchScope::Smart(9), &[Kind::Issue], "cache").await;
        assert_eq!(smart, ["ISS-001", "ISS-002"], "{place}: what is still open comes earlier");
        assert_eq!(found(&desk, "eviction").await, ["ISS-002"], "{place}: how it was resolved is searched, too");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_says_the_same_is_kept_once() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let (first, new) = desk.create_once(learning("Always run the tests."), 0).await.unwrap();
        assert!(new);
        for same in ["always run the tests", "Always  run\tthe TESTS!!", "always-run-the-tests"] {
            let (again, new) = desk.create_once(learning(same), 7).await.unwrap();
            assert_eq!((again, new), (first.clone(), false), "`{same}` on {place}");
        }
        assert!(desk.create_once(learning("always run the test"), 0).await.unwrap().1, "{place}: that is another one");
        assert!(desk.create_once(insight("always run the tests", Importance::Normal), 0).await.unwrap().1);
        // What has no words is only the same as itself.
        for (text, new) in [("???", true), ("!!!", true), ("???", false), ("", true), (" ", true), ("", false)] {
            assert_eq!(desk.create_once(learning(text), 0).await.unwrap().1, new, "`{text}` on {place}");
        }
        let mut learners = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let desk = here.desk();
            learners.spawn(async move { desk.create_once(learning("at the same time"), 0).await.unwrap().1 });
        }
        let new = learners.join_all().await.into_iter().filter(|new| *new).count();
        assert_eq!(new, 1, "{place}: ten at once learn it once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_or_deleted_is_not_found_by_what_it_said() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(learning("elephants remember"), 0, None).await.unwrap();
        let change = |learning: &mut Learning| {
            learning.content = "goldfish forget".to_owned();
            Ok(())
        };
        desk.update("LRN-001", &Edit::default(), change).await.unwrap();
        assert!(found(&desk, "elephants").await.is_empty(), "{place}");
        assert_eq!(found(&desk, "goldfish").await, ["LRN-001"], "{place}");
        let id = RecordId::parse("LRN-001").unwrap();
        desk.restore(id, 1, &Edit::default()).await.unwrap();
        assert_eq!(found(&desk, "elephants").await, ["LRN-001"], "{place}");
        desk.delete(id, &Edit::default(), false).await.unwrap();
        for words in ["elephants", "goldfish", "", "elephnts"] {
            assert!(found(&desk, words).await.is_empty(), "`{words}` on {place}");
        }
        desk.restore(id, 2, &Edit::default()).await.unwrap();
        assert_eq!(found(&desk, "goldfsh").await, ["LRN-001"], "{place}");
        let next = here.next_door(&place.workspace().join("next")).await;
        assert!(found(&next, "goldfish").await.is_empty(), "{place}: it is another project's");
        checkup(&desk).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rare_combination_is_found_below_a_thousand_common_ones() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        let draft = |n: usize| Draft {
            key: format!("k{n}"),
            kind: Kind::Learning,
            iteration: None,
            content: json!({ "content": format!("the build is green again, attempt {n}") }),
            created_at_ms: Some(desk.now_ms() + n as i64),
        };
        desk.create(learning("the build needs the zebra flag"), 0, None).await.unwrap();
        desk.create(learning("a zebra has stripes"), 0, None).await.unwrap();
        desk.import_drafts((0..1000).map(draft).collect(), None, "many", Again::Doubles).await.unwrap();
        assert_eq!(found(&desk, "build zebra").await[..2], ["LRN-001", "LRN-002"], "{place}");
        assert_eq!(found(&desk, "zebra build").await[0], "LRN-001", "{place}");
        assert_eq!(found(&desk, "bulid zebr").await[0], "LRN-001", "{place}: misspelt, too");
        assert_eq!(found(&desk, "build").await[0], "LRN-1002", "{place}: the newest");
        assert_eq!(found(&desk, "attempt 17").await[0], "LRN-020", "{place}");
        let all = Search {
            scope: SearchScope::Project,
            kinds: vec![],
            keywords: vec!["build green again zebra attempt".to_owned()],
            limit: usize::MAX,
        };
        assert!(desk.search(&all).await.unwrap().len() >= 250, "{place}: as many as are looked at");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_is_a_question_and_no_error() {
    for place in engines() {
        let here = place.room().await;
        let desk = here.desk();
        desk.create(learning("percent and underscore are letters to nobody"), 0, None).await.unwrap();
        let nothing = [
            "%",
            "_",
            "'",
            "\"",
            "*",
            "\\",
            ";--",
            "(((",
            "🦀",
            "\0",
            "\u{200b}",
            "$1",
            "?",
            "'; DROP TABLE record; --",
        ];
        for odd in nothing {
            assert!(found(&desk, odd).await.is_empty(), "`{odd}` on {place}");
        }
        let long = "x".repeat(10_000);
        let many: String = (0..5000).map(|n| format!("w{n} ")).collect();
        let chinese = "数据".repeat(5000);
        for odd in
            ["AND OR NOT NEAR", "letter%", "let_er", long.as_str(), &many, &chinese, "\u{10ffff}\u{10ffff}", "a\u{301}"]
        {
            found(&desk, odd).await;
        }
        assert_eq!(found(&desk, "' letters \" OR 1=1").await, ["LRN-001"], "{place}");
        assert_eq!(found(&desk, &format!("{} underscore", "filler ".repeat(3000))).await, ["LRN-001"], "{place}");
        checkup(&desk).await;
    }
}
