//! Whether all that a project keeps fits together, asked through the store's own doors.

use std::collections::{BTreeMap, BTreeSet};

use toolhost_records::{Kind, ProjectRecords, Query, RecordId, Search, SearchScope, Stored};

/// Every record of the project.
pub async fn everything(desk: &ProjectRecords) -> BTreeMap<RecordId, Stored> {
    let mut all = BTreeMap::new();
    for kind in Kind::ALL {
        let mut query = Query { limit: 1000, ..Query::default() };
        loop {
            let page = desk.list_any(kind, &query).await.unwrap();
            all.extend(page.items.into_iter().map(|record| (record.id, record)));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
    }
    all
}

/// Fails unless everything in the project fits together; answers how many records it has.
pub async fn checkup(desk: &ProjectRecords) -> usize {
    let all = everything(desk).await;
    let mut named: BTreeMap<RecordId, BTreeSet<RecordId>> = BTreeMap::new();
    for record in all.values() {
        checkup_of(desk, record, &all).await;
        for reference in record.references().unwrap() {
            named.entry(reference.to).or_default().insert(record.id);
        }
    }
    // The table of references says what the contents say, no less and no more.
    for to in Kind::ALL {
        let numbers: Vec<i64> = all.keys().filter(|id| id.kind == to).map(|id| id.number).collect();
        for from in Kind::ALL {
            let stored = desk.namers(to, &numbers, from).await.unwrap();
            for number in &numbers {
                let id = RecordId { kind: to, number: *number };
                let stored: BTreeSet<RecordId> = stored.get(number).into_iter().flatten().copied().collect();
                let told = named.get(&id).into_iter().flatten().copied();
                assert_eq!(stored, told.filter(|by| by.kind == from).collect(), "who names {id}");
            }
        }
    }
    all.len()
}

/// Fails unless this record fits together with its history, its references and the memory's index.
pub async fn checkup_of(desk: &ProjectRecords, record: &Stored, all: &BTreeMap<RecordId, Stored>) {
    let id = record.id;
    let history = desk.history(id, None, 1000).await.unwrap();
    assert_eq!(history[0].version, record.version, "{id} is at its newest version");
    assert_eq!(history[0].content, record.body, "{id} is what its history says");
    let versions: Vec<i64> = history.iter().map(|version| version.version).collect();
    assert!(versions.windows(2).all(|pair| pair[0] == pair[1] + 1), "{id} has every version once: {versions:?}");
    let mut waits = 0;
    for reference in record.references().unwrap() {
        let to = all.get(&reference.to);
        assert!(to.is_some(), "{id} names {} in {}, which is not there", reference.to, reference.field);
        waits += i64::from(reference.field == "dependencies" && to.unwrap().state != "completed");
    }
    if id.kind == Kind::Task {
        assert_eq!(record.waits_on, waits, "{id} waits for {waits}");
    }
    if record.state == "completed" || record.state == "blocked" {
        assert_eq!(record.holder, None, "{id} is {}", record.state);
    }
    if id.kind.is_memory() {
        let text = record.body["content"].as_str().or(record.body["description"].as_str());
        let text = text.or(record.body["decision"].as_str()).unwrap();
        let search =
            Search { scope: SearchScope::Project, kinds: vec![id.kind], keywords: vec![text.to_owned()], limit: 1000 };
        let found = desk.search(&search).await.unwrap();
        assert!(found.iter().any(|found| found.record.id == id), "{id} is found by `{text}`");
    }
}
