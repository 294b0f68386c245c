//! What people are asked: the same is asked once, the first answer stays, and one call of any number uses it.

use std::time::Duration;

use serde_json::{Value, json};
use toolhost_store::{ASKS_OPEN_MAX, Ask, AskChange, AskKind, AskLimits, AskState, Error, Event, NewAsk, NewPermit};
use toolhost_testkit::database::{Place, Room, engines, entry};

const LIVES_MS: u64 = 60_000;
/// Ended asks that a project keeps.
const KEPT: i64 = 10_000;

pub(crate) fn wanted(here: &Room, digest: &str) -> NewAsk {
    NewAsk {
        project_id: here.project,
        kind: AskKind::Approval,
        digest: digest.to_owned(),
        effect_digest: "effect".to_owned(),
        subject: None,
        round: 1,
        user_id: here.user,
        session_id: Some("s1".to_owned()),
        tool: "git.push".to_owned(),
        call: json!({ "arguments": { "text": "zero \u{0} and ä" } }),
        shown: json!({ "title": "Push" }),
        lives_ms: LIVES_MS,
        limits: AskLimits { open: i64::MAX, bytes: i64::MAX },
    }
}

async fn open(here: &Room, digest: &str) -> Ask {
    here.store.asks().open(&wanted(here, digest)).await.unwrap()
}

async fn get(here: &Room, number: i64) -> Ask {
    here.store.asks().get(here.project, number).await.unwrap().unwrap()
}

fn says(number: i64, by: &str) -> AskChange {
    AskChange::Answer { number, answer: json!({ "say": "allow" }), by: by.to_owned(), permit: None }
}

async fn answer(here: &Room, number: i64, by: &str) -> Result<(), Error> {
    let row = entry(here.project, Event::Decision, "decision");
    here.store.audit().append_with(row, says(number, by)).await
}

/// A call that starts by using the answer.
async fn start(here: &Room, number: i64, call: &str) -> Result<(), Error> {
    let row = entry(here.project, Event::Started, call);
    here.store.audit().append_with(row, AskChange::Use { number }).await
}

#[track_caller]
fn ended(result: Result<(), Error>) -> AskState {
    match result.unwrap_err() {
        Error::AskEnded { state, .. } => state,
        other => unreachable!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_is_asked_once_until_its_answer_is_used() {
    for place in engines() {
        let (here, beside) = (place.room().await, place.room().await);
        let first = open(&here, "d").await;
        assert_eq!((first.number, first.state, first.expires_at_ms), (1, AskState::Open, first.created_at_ms + 60_000));
        assert_eq!(first.call["arguments"]["text"], "zero \u{0} and ä", "{place}");
        assert_eq!(open(&beside, "d").await, first, "{place}: another host asks the same");
        let effect = NewAsk { effect_digest: "another".to_owned(), ..wanted(&here, "d") };
        assert_eq!(here.store.asks().open(&effect).await.unwrap().number, 2, "what it would do has changed");
        answer(&beside, 1, "ada").await.unwrap();
        assert_eq!(open(&here, "d").await.state, AskState::Answered, "the answer is found");
        start(&here, 1, "call-1").await.unwrap();
        let again = open(&here, "d").await;
        assert_eq!((again.number, again.state), (3, AskState::Open), "{place}: a used answer is no answer to the next");
        let used = get(&beside, 1).await;
        assert_eq!((used.state, used.used_by.as_deref()), (AskState::Used, Some("call-1")));
        assert_eq!(used.answered_by.as_deref(), Some("ada"));
        let outcome = json!({ "ok": true, "text": "\u{0}" });
        let ended = entry(here.project, Event::Finished, "call-1");
        here.store.audit().append_with(ended, AskChange::Keep { number: 1, outcome }).await.unwrap();
        assert_eq!(get(&beside, 1).await.outcome, Some(json!({ "ok": true, "text": "\u{0}" })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_the_same_at_once_have_asked_once() {
    for place in engines() {
        let rooms = [place.room().await, place.room().await];
        let mut askers = tokio::task::JoinSet::new();
        for n in 0..40 {
            let here = &rooms[n % 2];
            let (asks, new) = (here.store.asks(), wanted(here, &format!("d{}", n % 4)));
            askers.spawn(async move { asks.open(&new).await.unwrap().number });
        }
        let mut numbers = askers.join_all().await;
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, [1, 2, 3, 4], "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_calls_that_race_for_an_answer_one_has_it() {
    for place in engines() {
        let rooms = [place.room().await, place.room().await];
        open(&rooms[0], "d").await;
        answer(&rooms[0], 1, "ada").await.unwrap();
        let mut racers = tokio::task::JoinSet::new();
        for n in 0..100 {
            let here = &rooms[n % 2];
            let (audit, asks, project) = (here.store.audit(), here.store.asks(), here.project);
            racers.spawn(async move {
                let call = format!("call-{n}");
                // Calls take it with their "started", reviews by itself; one lock holds for both.
                if n % 10 == 9 {
                    return asks.take(project, 1, &call).await.unwrap().then_some(call);
                }
                let row = entry(project, Event::Started, &call);
                audit.append_with(row, AskChange::Use { number: 1 }).await.ok().map(|()| call)
            });
        }
        let winners: Vec<String> = racers.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "{place}: {winners:?}");
        assert_eq!(get(&rooms[0], 1).await.used_by, Some(winners[0].clone()), "{place}");
        let started = place.rows().await - 1;
        assert!(started <= 1, "{place}: {started} rows say that a call started with it");
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_answers_the_first_stays_and_the_others_are_told_whose_it_was() {
    for place in engines() {
        let rooms = [place.room().await, place.room().await];
        open(&rooms[0], "d").await;
        let mut people = tokio::task::JoinSet::new();
        for n in 0..30 {
            let (audit, project) = (rooms[n % 2].store.audit(), rooms[n % 2].project);
            people.spawn(async move {
                let by = format!("person-{n}");
                let row = entry(project, Event::Decision, "decision");
                let said = audit.append_with(row, says(1, &by)).await;
                (by, said)
            });
        }
        let said = people.join_all().await;
        let won: Vec<&String> = said.iter().filter(|(_, said)| said.is_ok()).map(|(by, _)| by).collect();
        assert_eq!(won.len(), 1, "{place}: {won:?}");
        for (_, said) in said.iter().filter(|(_, said)| said.is_err()) {
            let text = said.as_ref().unwrap_err().to_string();
            assert!(text.contains(won[0].as_str()), "{place}: {text}");
        }
        assert_eq!(place.rows().await, 1, "{place}: one decision is in the audit");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ask_expires_with_and_without_an_answer() {
    for place in engines() {
        let here = place.room().await;
        open(&here, "unanswered").await;
        open(&here, "answered").await;
        answer(&here, 2, "ada").await.unwrap();
        place.clock.advance(Duration::from_millis(LIVES_MS - 1));
        assert_eq!(here.store.asks().open_after(here.project, 0, 10).await.unwrap().asks.len(), 1);
        place.clock.advance(Duration::from_millis(1));
        for number in [1, 2] {
            assert_eq!(get(&here, number).await.state, AskState::Expired, "{place}");
        }
        assert!(here.store.asks().open_after(here.project, 0, 10).await.unwrap().asks.is_empty());
        assert_eq!(here.store.asks().newest(here.project, 10).await.unwrap().asks.len(), 2);
        assert_eq!(ended(answer(&here, 1, "ada").await), AskState::Expired, "{place}: too late to say yes");
        assert_eq!(ended(start(&here, 2, "call-1").await), AskState::Expired, "{place}: too late to use it");
        assert!(!here.store.asks().take(here.project, 2, "call-1").await.unwrap());
        assert_eq!(open(&here, "answered").await.number, 3, "{place}: who asks again asks anew");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_at_the_last_moment_can_still_be_used() {
    for place in engines() {
        let here = place.room().await;
        let longer = NewAsk { lives_ms: 10 * LIVES_MS, ..wanted(&here, "longer") };
        let shorter = NewAsk { lives_ms: 1000, ..wanted(&here, "shorter") };
        // Its first number, how long it lives, and how long an answer at its last moment lives.
        for (number, new, answer_lives_ms) in [(1, longer, 60_000), (3, shorter, 1000)] {
            for is_late in [0, 1] {
                let number = number + is_late;
                here.store.asks().open(&new).await.unwrap();
                place.clock.advance(Duration::from_millis(new.lives_ms - 1));
                answer(&here, number, "ada").await.unwrap();
                place.clock.advance(Duration::from_millis(answer_lives_ms - 1 + u64::try_from(is_late).unwrap()));
                let started = start(&here, number, &format!("call-{number}")).await;
                assert_eq!(started.is_ok(), is_late == 0, "{place}, {number}: {started:?}");
            }
        }
        // An early answer gains nothing.
        here.store.asks().open(&wanted(&here, "early")).await.unwrap();
        let expires = get(&here, 5).await.expires_at_ms;
        answer(&here, 5, "ada").await.unwrap();
        assert_eq!(get(&here, 5).await.expires_at_ms, expires, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_withdrawn_or_taken_back_or_never_was_allows_nothing() {
    for place in engines() {
        let here = place.room().await;
        open(&here, "withdrawn").await;
        assert!(here.store.asks().withdraw(here.project, 1).await.unwrap());
        assert!(!here.store.asks().withdraw(here.project, 1).await.unwrap(), "{place}: once");
        assert_eq!(ended(answer(&here, 1, "ada").await), AskState::Withdrawn);
        open(&here, "taken back").await;
        assert_eq!(ended(start(&here, 2, "call-1").await), AskState::Open, "{place}: silence is no yes");
        answer(&here, 2, "ada").await.unwrap();
        assert!(!here.store.asks().withdraw(here.project, 2).await.unwrap(), "{place}: it has been answered");
        let row = || entry(here.project, Event::Decision, "decision");
        let take_back = async |number| here.store.audit().append_with(row(), AskChange::TakeBack { number }).await;
        take_back(2).await.unwrap();
        assert_eq!(ended(start(&here, 2, "call-1").await), AskState::Withdrawn, "{place}");
        open(&here, "used").await;
        answer(&here, 3, "ada").await.unwrap();
        start(&here, 3, "call-2").await.unwrap();
        assert_eq!(ended(take_back(3).await), AskState::Used, "{place}: too late to take back");
        for nowhere in [0, -1, 99] {
            assert!(matches!(start(&here, nowhere, "call-3").await, Err(Error::NoAsk { .. })), "{place}");
        }
        // Numbers are each project's own: the neighbor has no such ask.
        let next = here.store.project(std::path::Path::new("/nowhere/next"), "next", "local").await.unwrap().id;
        open(&here, "mine").await;
        answer(&here, 4, "ada").await.unwrap();
        let theirs =
            here.store.audit().append_with(entry(next, Event::Started, "c"), AskChange::Use { number: 4 }).await;
        assert!(matches!(theirs, Err(Error::NoAsk { number: 4 })), "{place}: {theirs:?}");
        assert!(here.store.asks().get(next, 4).await.unwrap().is_none());
        assert_eq!(get(&here, 4).await.state, AskState::Answered, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_change_leaves_no_row_and_spoils_no_other() {
    for place in engines() {
        let here = place.room().await;
        open(&here, "d").await;
        let mut writers = tokio::task::JoinSet::new();
        for n in 0..40 {
            let (audit, project) = (here.store.audit(), here.project);
            writers.spawn(async move {
                let row = entry(project, Event::Started, &format!("call-{n}"));
                // Every other one wants an answer that nobody gave.
                if n % 2 == 0 {
                    audit.append(row).await
                } else {
                    audit.append_with(row, AskChange::Use { number: 1 }).await
                }
            });
        }
        let failed = writers.join_all().await.into_iter().filter(Result::is_err).count();
        assert_eq!((failed, place.rows().await), (20, 20), "{place}");
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_may_be_open_and_no_more() {
    for place in engines() {
        let here = place.room().await;
        fill(&place, &here, ASKS_OPEN_MAX - 1, "open").await;
        let last = open(&here, "last").await;
        let refused = here.store.asks().open(&wanted(&here, "one more")).await;
        assert!(matches!(refused, Err(Error::TooManyAsks { max: ASKS_OPEN_MAX })), "{place}: {refused:?}");
        assert_eq!(open(&here, "last").await.number, last.number, "{place}: what is asked already may be asked");
        here.store.asks().withdraw(here.project, 1).await.unwrap();
        open(&here, "one more").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_has_so_many_open_and_so_large_and_others_still_ask() {
    for place in engines() {
        let here = place.room().await;
        let asks = here.store.asks();
        let of = |digest: &str, session: Option<&str>, limits: AskLimits| NewAsk {
            session_id: session.map(str::to_owned),
            limits,
            ..wanted(&here, digest)
        };
        let two = AskLimits { open: 2, bytes: i64::MAX };
        for session in [Some("s1"), None] {
            for digest in ["a", "b"] {
                asks.open(&of(&format!("{digest} {session:?}"), session, two)).await.unwrap();
            }
            let refused = asks.open(&of("c", session, two)).await;
            assert!(matches!(refused, Err(Error::TooManyAsksOfSession { max: 2 })), "{place}: {refused:?}");
            asks.open(&of(&format!("a {session:?}"), session, two)).await.unwrap();
        }
        asks.open(&of("c", Some("s2"), two)).await.unwrap();
        answer(&here, 1, "vera").await.unwrap();
        asks.open(&of("d", Some("s1"), two)).await.unwrap();
        // What is answered and not used is kept, too.
        let large = |digest: &str, bytes: usize| NewAsk {
            shown: json!({ "summary": "ä".repeat(bytes / 2) }),
            ..of(digest, Some("large"), AskLimits { open: 100, bytes: 10_000 })
        };
        let first = asks.open(&large("1", 6000)).await.unwrap();
        answer(&here, first.number, "vera").await.unwrap();
        let refused = asks.open(&large("2", 6000)).await;
        assert!(matches!(refused, Err(Error::TooLargeAsks { max: 10_000, .. })), "{place}: {refused:?}");
        start(&here, first.number, "call").await.unwrap();
        asks.open(&large("2", 6000)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_the_beginning_of_each_and_says_how_many_follow() {
    for place in engines() {
        let here = place.room().await;
        for n in 0..5 {
            let shown = json!({ "summary": format!("{n} \u{0}{}", "x".repeat(100_000)), "persona": "Ada" });
            here.store.asks().open(&NewAsk { shown, ..wanted(&here, &n.to_string()) }).await.unwrap();
        }
        answer(&here, 2, "vera").await.unwrap();
        let page = here.store.asks().open_after(here.project, 1, 2).await.unwrap();
        let numbers: Vec<i64> = page.asks.iter().map(|ask| ask.number).collect();
        assert_eq!((numbers.as_slice(), page.more), (&[3, 4][..], 1), "{place}");
        assert!(page.asks[0].summary.starts_with("2 \u{fffd}x") && page.asks[0].summary.len() < 1000, "{place}");
        assert_eq!(page.asks[0].persona, "Ada", "{place}");
        let page = here.store.asks().newest(here.project, 4).await.unwrap();
        assert_eq!((page.asks[0].number, page.asks[3].said.as_deref(), page.more), (5, Some("allow"), 1), "{place}");
        assert_eq!(page.asks[3].answered_by.as_deref(), Some("vera"), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_asks_go_when_there_are_too_many_and_open_ones_stay() {
    for place in engines() {
        let here = place.room().await;
        fill(&place, &here, KEPT + 5, "used").await;
        for (number, state) in [(1, "open"), (2, "answered"), (3, "withdrawn")] {
            place.run(&format!("UPDATE ask SET state = '{state}' WHERE number = {number}")).await.unwrap();
        }
        // What was seen of them goes with them.
        assert!(see(&here, 3, here.user, "text").await.is_ok(), "{place}");
        let newest = open(&here, "newest").await;
        assert_eq!(newest.number, KEPT + 6, "{place}");
        let here = &here;
        let is_kept = async |number| here.store.asks().get(here.project, number).await.unwrap().is_some();
        for (number, kept) in [(1, true), (2, true), (3, false), (4, false), (6, false), (7, true), (KEPT, true)] {
            assert_eq!(is_kept(number).await, kept, "{place}: {number}");
        }
    }
}

async fn see(here: &Room, number: i64, account_id: i64, digest: &str) -> Result<(), Error> {
    let row = entry(here.project, Event::Decision, "seen");
    let seen = AskChange::Seen { number, account_id, digest: digest.to_owned(), place: "test" };
    here.store.audit().append_with(row, seen).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_seen_was_seen_by_one_person_of_one_ask_and_one_text() {
    for place in engines() {
        let here = place.room().await;
        let (first, second) = (open(&here, "first").await.number, open(&here, "second").await.number);
        for _ in 0..2 {
            see(&here, first, here.user, "text").await.unwrap();
        }
        assert!(see(&here, 99, here.user, "text").await.is_ok(), "{place}: of nothing, nothing is kept");
        for (number, user, digest, expected) in [
            (first, here.user, "text", true),
            (first, here.user, "another", false),
            (first, here.user + 1, "text", false),
            (second, here.user, "text", false),
            (99, here.user, "text", false),
        ] {
            let seen = here.store.asks().was_seen(here.project, number, user, digest).await.unwrap();
            assert_eq!(seen, expected, "{place}: {number} {user} {digest}");
        }
        assert_eq!(here.store.asks().state(here.project, first).await.unwrap(), Some(AskState::Open), "{place}");
        assert_eq!(here.store.asks().state(here.project, 99).await.unwrap(), None, "{place}");
    }
}

/// So many asks at once, behind the store's back.
async fn fill(place: &Place, here: &Room, count: i64, state: &str) {
    let (project, user) = (here.project, here.user);
    place
        .run(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO ask (project_id, number, kind, state, digest, effect_digest, subject, round, account_id, tool,
                 call, shown, created_at_ms, expires_at_ms)
             SELECT {project}, i, 'approval', '{state}', 'fill-' || i, 'e', 'thing', i, {user}, 't', '{{}}', '{{}}', 0,
                 9000000000000 FROM n;
             INSERT INTO counter (project_id, kind, value) VALUES ({project}, 'ask', {count})"
        ))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_rounds_of_a_subject_are_told_in_their_order() {
    for place in engines() {
        let here = place.room().await;
        fill(&place, &here, 1200, "used").await;
        let rounds = here.store.asks().rounds(here.project, "thing").await.unwrap();
        let numbers: Vec<i64> = rounds.iter().map(|ask| ask.number).collect();
        assert_eq!(numbers, (201..=1200).collect::<Vec<i64>>(), "{place}");
        assert!(here.store.asks().rounds(here.project, "another").await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_comes_with_its_answer_and_ends_when_its_time_or_a_person_says_so() {
    for place in engines() {
        let here = place.room().await;
        open(&here, "d").await;
        let permit = NewPermit {
            tool: "git.push".to_owned(),
            profile: "developer".to_owned(),
            conditions: json!({ "remote": "origin" }),
            lives_ms: 1000,
        };
        let answer = AskChange::Answer {
            number: 1,
            answer: json!({ "say": "allow" }),
            by: "ada".to_owned(),
            permit: Some(permit.clone()),
        };
        let row = || entry(here.project, Event::Decision, "decision");
        here.store.audit().append_with(row(), answer.clone()).await.unwrap();
        // Whoever is too late grants nothing.
        assert_eq!(ended(here.store.audit().append_with(row(), answer).await), AskState::Answered);
        let asks = here.store.asks();
        let in_force = async |tool, profile| asks.permits_for(here.project, tool, profile).await.unwrap().len();
        assert_eq!(in_force("git.push", "developer").await, 1, "{place}");
        assert_eq!((in_force("git.push", "all").await, in_force("bash", "developer").await), (0, 0));
        place.clock.advance(Duration::from_millis(1000));
        assert_eq!(in_force("git.push", "developer").await, 0, "{place}: its time is over");
        open(&here, "e").await;
        let number = asks.permits(here.project, 10).await.unwrap()[0].number + 1;
        let granted = AskChange::Answer { number, answer: Value::Null, by: "ada".to_owned(), permit: Some(permit) };
        here.store.audit().append_with(row(), granted).await.unwrap();
        let newest = asks.permits(here.project, 10).await.unwrap();
        assert_eq!((newest.len(), newest[0].granted_by.as_str()), (2, "ada"), "{place}: ended ones are told, too");
        let revoke = || AskChange::RevokePermit { number: newest[0].number, by: "bob".to_owned() };
        here.store.audit().append_with(row(), revoke()).await.unwrap();
        assert_eq!(in_force("git.push", "developer").await, 0, "{place}");
        let twice = here.store.audit().append_with(row(), revoke()).await;
        assert!(matches!(twice, Err(Error::NoPermit { .. })), "{place}: {twice:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_and_its_use_are_written_together_or_not_at_all() {
    for place in engines() {
        let here = place.room().await;
        open(&here, "d").await;
        let both = |number: i64, used: i64| {
            let decision = (entry(here.project, Event::Decision, "decision"), says(number, "vera"));
            let started = (entry(here.project, Event::Started, "call-1"), AskChange::Use { number: used });
            (here.store.audit(), decision, started)
        };
        // The second half does not fit: the first has not happened either.
        let (audit, decision, started) = both(1, 2);
        assert!(audit.append_both(decision, started).await.is_err(), "{place}");
        assert_eq!((get(&here, 1).await.state, place.rows().await), (AskState::Open, 0), "{place}");
        let (audit, decision, started) = both(1, 1);
        audit.append_both(decision, started).await.unwrap();
        let used = get(&here, 1).await;
        assert_eq!((used.state, used.used_by.as_deref()), (AskState::Used, Some("call-1")), "{place}");
        assert_eq!((used.answered_by.as_deref(), place.rows().await), (Some("vera"), 2), "{place}");
        // Too late: nothing of it is written.
        let (audit, decision, started) = both(1, 1);
        assert_eq!(ended(audit.append_both(decision, started).await), AskState::Used, "{place}");
        assert_eq!(place.rows().await, 2, "{place}");
        assert!(place.verify().await.problems.is_empty(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_of_all_kinds_or_of_one() {
    for place in engines() {
        let here = place.room().await;
        let asks = here.store.asks();
        let kinds = [AskKind::Approval, AskKind::Review, AskKind::Review, AskKind::Question];
        for (digest, kind) in ["a", "b", "c", "d"].into_iter().zip(kinds) {
            asks.open(&NewAsk { kind, ..wanted(&here, digest) }).await.unwrap();
        }
        for (kind, expected) in [(None, vec![1, 2, 3, 4]), (Some(AskKind::Review), vec![2, 3])] {
            let open = asks.open_of(here.project, kind, 0, 1).await.unwrap();
            assert_eq!((open.asks[0].number, open.more), (expected[0], expected.len() as i64 - 1), "{place}");
            let newest = asks.newest_of(here.project, kind, 10).await.unwrap();
            let numbers: Vec<i64> = newest.asks.iter().rev().map(|ask| ask.number).collect();
            assert_eq!((numbers, newest.more), (expected, 0), "{place}");
        }
    }
}
