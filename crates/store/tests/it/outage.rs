//! The server dies and comes back: calls in between fail and say why, and nobody has to start anew.

use std::sync::Arc;

use toolhost_contract::{Clock, ErrorKind, ToolError};
use toolhost_records::{Edit, Learning, ProjectRecords, Requirement};
use toolhost_store::{Event, Filter, Store};
use toolhost_testkit::database::things::{learning, requirement};
use toolhost_testkit::database::{Place, checkup, entry};
use toolhost_testkit::{FakeClock, Postgres};

fn clock() -> Arc<dyn Clock> {
    Arc::<FakeClock>::default()
}

/// Rules: 002.77.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_died_and_came_back_is_used_again() {
    if Postgres::shared().is_none() {
        return;
    }
    let server = Postgres::start().unwrap();
    let place = Place::on(&server);
    let here = place.room().await;
    let desk = here.desk();
    for n in 0..20 {
        desk.create(requirement(&n.to_string()), 0, None).await.unwrap();
        here.store.audit().append(entry(here.project, Event::Finished, &format!("before-{n}"))).await.unwrap();
    }
    here.store.audit().append(entry(here.project, Event::Started, "open")).await.unwrap();
    server.stop_hard();
    let (audit, reader) = (here.store.audit(), here.store.reader());
    let one = Filter { limit: 1, ..Filter::default() };
    let (created, read, found, appended, rows) = tokio::join!(
        desk.create(requirement("lost"), 0, None),
        desk.get::<Requirement>("REQ-001"),
        desk.all::<Learning>(None),
        audit.append(entry(here.project, Event::Started, "lost")),
        reader.audit(here.project, &one),
    );
    // What has happened all the same is written down later.
    audit.note(entry(here.project, Event::Finished, "meanwhile")).await.unwrap();
    for error in [created.unwrap_err(), read.unwrap_err(), found.unwrap_err()] {
        let operators = error.to_string();
        assert!(operators.contains("cannot be reached") || operators.contains("the database: "), "{operators}");
        let told = ToolError::from(error);
        assert_eq!(told.kind, ErrorKind::Io);
        assert!(told.message.contains("cannot be reached") && told.message.contains("nothing was changed"), "{told:?}");
        assert!(!format!("{} {:?}", told.message, told.hint).contains("127.0.0.1"), "callers hear nothing of servers");
    }
    let refused = appended.unwrap_err().to_string();
    assert!(refused.contains("the audit could not be written"), "{refused}");
    assert!(rows.is_err());
    server.start_again();
    for n in 0..20 {
        assert_eq!(desk.get::<Requirement>(&format!("REQ-{:03}", n + 1)).await.unwrap().content.title, n.to_string());
    }
    assert_eq!(desk.create(requirement("after"), 0, None).await.unwrap().id, "REQ-021");
    desk.create(learning("servers come back"), 0, None).await.unwrap();
    audit.append(entry(here.project, Event::Started, "after")).await.unwrap();
    assert_eq!(checkup(&desk).await, 22);
    // Another host sees that this one lives, and leaves its calls alone.
    let other = place.room().await;
    let later = Filter { limit: 100, after_seq: 20, ..Filter::default() };
    let rows = other.store.reader().audit(other.project, &later).await.unwrap();
    let calls: Vec<(String, String)> = rows.into_iter().map(|row| (row.call_id, row.event)).collect();
    let expected = [("open", "started"), ("meanwhile", "finished"), ("after", "started")];
    assert_eq!(calls, expected.map(|(call, event)| (call.to_owned(), event.to_owned())));
    assert!(other.store.reader().verify_audit(other.project).await.unwrap().problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_under_way_when_the_server_died_has_happened_or_not() {
    if Postgres::shared().is_none() {
        return;
    }
    let server = Arc::new(Postgres::start().unwrap());
    let place = Place::on(&server);
    let here = place.room().await;
    here.desk().create(Requirement { description: "0".to_owned(), ..requirement("counter") }, 0, None).await.unwrap();
    let mut answered: i64 = 0;
    for life in 0..3 {
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..6 {
            writers.spawn(count(here.desk(), format!("{life}-{writer}")));
        }
        let version = async || here.desk().get::<Requirement>("REQ-001").await.unwrap().version;
        let enough = version().await + 30;
        // Some way into it, wherever they are.
        let mut waited = 0;
        while version().await < enough && waited < 100_000 {
            waited += 1;
        }
        let dying = Arc::clone(&server);
        tokio::task::spawn_blocking(move || dying.stop_hard()).await.unwrap();
        answered += writers.join_all().await.into_iter().sum::<i64>();
        server.start_again();
        let counter = here.desk().get::<Requirement>("REQ-001").await.unwrap();
        let counted: i64 = counter.content.description.parse().unwrap();
        assert_eq!(counter.version, counted + 1);
        assert!(counted >= answered, "{answered} were answered, {counted} are there");
        checkup(&here.desk()).await;
    }
}

/// Counts and learns until nobody answers; says how often it was answered.
async fn count(desk: ProjectRecords, name: String) -> i64 {
    let mut answered = 0;
    let count = |counter: &mut Requirement| {
        let so_far: i64 = counter.description.parse().unwrap();
        counter.description = (so_far + 1).to_string();
        Ok(())
    };
    while desk.update("REQ-001", &Edit::default(), count).await.is_ok() {
        answered += 1;
        if desk.create(learning(&format!("learnt by w{name} as number n{answered}")), 0, None).await.is_err() {
            break;
        }
    }
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_told_without_the_password() {
    // Port 1 answers nobody.
    let url = "postgres://ann:hunter2@127.0.0.1:1/plans";
    let error = Store::connect(url, clock(), toolhost_testkit::SUBJECTS).await.map(drop).unwrap_err().to_string();
    assert!(error.starts_with("postgres://ann@127.0.0.1:1/plans cannot be reached: "), "{error}");
    assert!(error.contains("is the server running") && !error.contains("hunter2"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_address_is_told_without_the_password() {
    for url in
        ["", "plans", "postgres://ann:hunter2@host:notaport/plans", "mysql://ann:hunter2@host/plans", "postgres://"]
    {
        let Err(error) = Store::connect(url, clock(), toolhost_testkit::SUBJECTS).await else {
            unreachable!("`{url}` is no address")
        };
        let (shown, deeper) = (error.to_string(), format!("{error:?}"));
        assert!(!shown.contains("hunter2") && !deeper.contains("hunter2"), "{deeper}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_there_is_told() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.fresh_database();
    let (host, _) = url.rsplit_once('/').unwrap();
    let error = Store::connect(&format!("{host}/nowhere"), clock(), toolhost_testkit::SUBJECTS)
        .await
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(error.contains("/nowhere cannot be reached") && error.contains("does not exist"), "{error}");
}
