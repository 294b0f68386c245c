//! The network between a host and its server fails at the worst moment. On SQLite there is none.

use toolhost_contract::{Clock, ErrorKind, ToolError};
use toolhost_records::{Edit, Requirement};
use toolhost_store::{Event, Filter, Outage, Store};
use toolhost_testkit::{Postgres, until};

use crate::proxy::{Loss, Proxy};
use toolhost_testkit::database::things::requirement;
use toolhost_testkit::database::{Address, Place, Room, checkup, entry, exported, room};

/// No test waits longer for anything.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A database, a bad network before it, and a host behind that.
async fn behind_a_network() -> Option<(Place, Proxy, Room)> {
    let place = Place::postgres()?;
    let proxy = Proxy::before(url_of(&place)).await;
    let clock: std::sync::Arc<dyn Clock> = place.clock.clone();
    let store = Store::connect(&proxy.url, clock, toolhost_testkit::SUBJECTS).await.unwrap();
    let here = room(store, &place.workspace()).await;
    Some((place, proxy, here))
}

fn url_of(place: &Place) -> &str {
    let Address::Url(url) = &place.address else { unreachable!("it is PostgreSQL") };
    url
}

/// The titles of all requirements, as another connection sees them.
async fn titles(place: &Place) -> Vec<String> {
    let other = place.room().await;
    let all = other.desk().all::<Requirement>(None).await.unwrap();
    checkup(&other.desk()).await;
    other.store.close().await.unwrap();
    all.into_iter().map(|one| one.content.title).collect()
}

/// The events of the audit, call by call.
async fn events(here: &Room) -> Vec<(String, String)> {
    let filter = Filter { limit: 1000, ..Filter::default() };
    let rows = here.store.reader().audit(here.project, &filter).await.unwrap();
    rows.into_iter().map(|row| (row.call_id, row.event)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(call, event)| ((*call).to_owned(), (*event).to_owned())).collect()
}

/// Waits until the server has let go of the locks of all hosts of this database.
async fn nobody_is_there(place: &Place) {
    let text = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
         WHERE l.locktype = 'advisory' AND d.datname = current_database()";
    let server = Postgres::shared().unwrap();
    until("the server notices", || server.psql(url_of(place), text) == "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_lost_is_answered_as_what_it_was() {
    let Some((place, proxy, here)) = behind_a_network().await else { return };
    let desk = here.desk();
    proxy.lose_next(Loss::Answer);
    assert_eq!(desk.create(requirement("written"), 0, None).await.unwrap().id, "REQ-001");
    let rename = |requirement: &mut Requirement| {
        requirement.title = "renamed".to_owned();
        Ok(())
    };
    proxy.lose_next(Loss::Answer);
    assert_eq!(desk.update("REQ-001", &Edit::default(), rename).await.unwrap().version, 2);
    for loss in [Loss::Request, Loss::RequestUnnoticed] {
        proxy.lose_next(loss);
        let told = ToolError::from(desk.create(requirement("lost"), 0, None).await.unwrap_err());
        assert_eq!(told.kind, ErrorKind::Io, "{loss:?}: {told:?}");
        assert!(told.message.contains("nothing was changed"), "{loss:?}: {told:?}");
    }
    assert_eq!(titles(&place).await, ["renamed"]);
    assert_eq!(desk.create(requirement("after"), 0, None).await.unwrap().id, "REQ-002");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_which_nothing_can_be_learnt_is_unknown() {
    let Some((place, proxy, here)) = behind_a_network().await else { return };
    let desk = here.desk();
    for (loss, title) in [(Loss::Answer, "written"), (Loss::Request, "lost")] {
        proxy.lose_next_and_refuse(loss);
        let error = desk.create(requirement(title), 0, None).await.unwrap_err();
        let told = ToolError::from(error);
        assert_eq!(told.kind, ErrorKind::Unknown, "{told:?}");
        assert!(told.message.contains("is not known") && !told.message.contains("nothing was"), "{told:?}");
        assert!(told.hint.as_deref().unwrap().contains("look whether"), "{told:?}");
        proxy.refuse(false);
    }
    assert_eq!(titles(&place).await, ["written"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_has_each_row_once_whatever_the_network_loses() {
    let Some((_place, proxy, here)) = behind_a_network().await else { return };
    let audit = here.store.audit();
    let mut expected = Vec::new();
    for loss in [Loss::Answer, Loss::Request, Loss::RequestUnnoticed] {
        let call = format!("{loss:?}");
        for (event, word) in [(Event::Started, "started"), (Event::Finished, "finished")] {
            proxy.lose_next(loss);
            audit.append(entry(here.project, event, &call)).await.unwrap();
            expected.push((call.clone(), word.to_owned()));
        }
    }
    // Even where nobody can say at first.
    for loss in [Loss::Answer, Loss::Request] {
        let call = format!("{loss:?}, alone");
        audit.append(entry(here.project, Event::Started, &call)).await.unwrap();
        proxy.lose_next_and_refuse(loss);
        let told = audit.append(entry(here.project, Event::Finished, &call)).await.unwrap_err();
        assert_eq!(told.outage(), Some(Outage::InDoubt), "{told}");
        proxy.refuse(false);
        audit.flush().await.unwrap();
        expected.extend(pairs(&[(&call, "started"), (&call, "finished")]));
    }
    assert_eq!(events(&here).await, expected);
    assert!(here.store.reader().verify_audit(here.project).await.unwrap().problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_connections_are_half_open_keeps_its_place() {
    let Some((place, proxy, here)) = behind_a_network().await else { return };
    let audit = here.store.audit();
    audit.append(entry(here.project, Event::Started, "long")).await.unwrap();
    let server = Postgres::shared().unwrap();
    let first = "SELECT string_agg(CAST(pid AS TEXT), ',') FROM pg_stat_activity
         WHERE application_name = 'toolhost' AND datname = current_database()";
    let first = server.psql(url_of(&place), first);
    proxy.cut();
    audit.append(entry(here.project, Event::Started, "next")).await.unwrap();
    // The server notices late that the first connections are gone.
    proxy.notice();
    let left = format!("SELECT count(*) FROM pg_stat_activity WHERE pid IN ({first})");
    until("the server notices", || server.psql(url_of(&place), &left) == "0").await;
    for _ in 0..3 {
        let other = place.room().await;
        assert_eq!(events(&other).await, pairs(&[("long", "started"), ("next", "started")]), "it lives");
        other.store.close().await.unwrap();
    }
    for call in ["long", "next"] {
        audit.append(entry(here.project, Event::Finished, call)).await.unwrap();
    }
    here.desk().create(requirement("and works"), 0, None).await.unwrap();
    assert!(place.verify().await.problems.is_empty());
}

/// What nobody waits for any longer than this hangs.
async fn comes<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it hangs")
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_dead_without_a_word_keep_nobody_waiting() {
    let Some((place, proxy, here)) = behind_a_network().await else { return };
    let (desk, audit) = (here.desk(), here.store.audit());
    desk.create(requirement("first"), 0, None).await.unwrap();
    audit.append(entry(here.project, Event::Started, "open")).await.unwrap();
    // In the middle of a change, which holds the project's lock.
    let runtime = tokio::runtime::Handle::current();
    let meanwhile = |requirement: &mut Requirement| {
        requirement.title = "lost".to_owned();
        proxy.forget();
        Ok(())
    };
    let told = ToolError::from(comes(desk.update("REQ-001", &Edit::default(), meanwhile)).await.unwrap_err());
    assert!(told.kind == ErrorKind::Io && told.message.contains("nothing was changed"), "{told:?}");
    assert_eq!(comes(desk.create(requirement("second"), 0, None)).await.unwrap().id, "REQ-002");
    // While nobody does anything: more calls than there are connections.
    proxy.forget();
    let many: Vec<_> = (0..20)
        .map(|n| {
            let desk = here.desk();
            runtime.spawn(async move { desk.create(requirement(&format!("many {n}")), 0, None).await })
        })
        .collect();
    comes(audit.append(entry(here.project, Event::Finished, "open"))).await.unwrap();
    for one in many {
        comes(one).await.unwrap().unwrap();
    }
    assert_eq!(comes(desk.all::<Requirement>(None)).await.unwrap().len(), 22);
    for (loss, title) in [(Loss::AnswerSilently, "written"), (Loss::RequestSilently, "not written")] {
        proxy.lose_next(loss);
        let created = comes(desk.create(requirement(title), 0, None)).await;
        assert_eq!(created.is_ok(), loss == Loss::AnswerSilently, "{loss:?}: {created:?}");
    }
    assert_eq!(events(&here).await, pairs(&[("open", "started"), ("open", "finished")]));
    let there = titles(&place).await;
    assert!(there.contains(&"written".to_owned()) && !there.contains(&"not written".to_owned()), "{there:?}");
    proxy.forget();
    comes(here.store.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_taken_for_dead_writes_nothing_in_its_former_name() {
    let Some((place, proxy, here)) = behind_a_network().await else { return };
    let (audit, desk) = (here.store.audit(), here.desk());
    audit.append(entry(here.project, Event::Started, "old")).await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    proxy.notice();
    nobody_is_there(&place).await;
    let other = place.room().await;
    let told = pairs(&[("old", "started"), ("old", "unknown")]);
    assert_eq!(events(&other).await, told);
    proxy.refuse(false);
    let refused = ToolError::from(desk.create(requirement("lost"), 0, None).await.unwrap_err());
    assert!(refused.kind == ErrorKind::Io && refused.message.contains("nothing was changed"), "{refused:?}");
    let started = audit.append(entry(here.project, Event::Started, "too early")).await.unwrap_err();
    assert_eq!(started.outage(), Some(Outage::TakenOver), "{started}");
    let ended = audit.append(entry(here.project, Event::Finished, "old")).await.unwrap_err();
    assert_eq!(ended.outage(), Some(Outage::TakenOver), "{ended}");
    assert_eq!(events(&other).await, told, "what it came to is not written");
    // It is another host now, and lives.
    assert_eq!(desk.create(requirement("after"), 0, None).await.unwrap().id, "REQ-001");
    audit.append(entry(here.project, Event::Started, "new")).await.unwrap();
    let third = place.room().await;
    assert_eq!(events(&third).await.last(), Some(&("new".to_owned(), "started".to_owned())));
    audit.append(entry(here.project, Event::Finished, "new")).await.unwrap();
    assert!(place.verify().await.problems.is_empty());
    assert_eq!(exported(&third.desk()).await.iter().filter(|line| line.contains(r#""line":"record""#)).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_in_the_middle_of_a_change_is_not_taken_for_dead() {
    let Some(place) = Place::postgres() else { return };
    let here = place.room().await;
    here.desk().create(requirement("first"), 0, None).await.unwrap();
    here.store.audit().append(entry(here.project, Event::Started, "open")).await.unwrap();
    let (server, url) = (Postgres::shared().unwrap(), url_of(&place).to_owned());
    let runtime = tokio::runtime::Handle::current();
    let meanwhile = |requirement: &mut Requirement| {
        requirement.title = "second".to_owned();
        // It loses its place between the beginning of the change and its end.
        let end = "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
             WHERE l.locktype = 'advisory' AND d.datname = current_database()";
        server.psql(&url, end);
        tokio::task::block_in_place(|| {
            runtime.block_on(async {
                nobody_is_there(&place).await;
                let other = place.room().await;
                assert_eq!(events(&other).await, pairs(&[("open", "started")]));
                other.store.close().await.unwrap();
            });
        });
        Ok(())
    };
    assert_eq!(here.desk().update("REQ-001", &Edit::default(), meanwhile).await.unwrap().version, 2);
    here.store.audit().append(entry(here.project, Event::Finished, "open")).await.unwrap();
    assert_eq!(events(&here).await, pairs(&[("open", "started"), ("open", "finished")]));
}
