//! Records of another system that come again: what has changed there changes here, and what was changed here stays.
//!
//! The base is what the last import brought, which is the last version of the history that says so. A field that is there
//! as it was then keeps what it has here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ProjectRecords;
use super::error::Result;
use super::kind::{Kind, RecordId};
use super::write::{CHANGE_IMPORT, Rules, Write, put};
use toolhost_store::db::{Tx, sql};

/// The fields of a task that only its holder changes.
const OF_THE_HOLDER: [&str; 3] = ["status", "startedAtMs", "completedAtMs"];

/// A record that is here, as the last import brought it.
pub(super) struct Brought {
    pub(super) id: RecordId,
    content: Value,
}

/// Records by their kind and their id in the other system.
pub(super) type Known = BTreeMap<(Kind, String), Brought>;

/// The id of a content in the system it came from.
pub(super) fn external_id(content: &Value) -> Option<&str> {
    content.get("externalId").and_then(Value::as_str).filter(|id| !id.is_empty())
}

impl ProjectRecords {
    /// What imports with this reason have brought and is still here.
    pub(super) async fn brought(&self, tx: &mut Tx, why: &str) -> Result<Known> {
        let text = "SELECT h.kind AS kind, h.number AS number, h.body AS body FROM history h
             JOIN record r ON r.project_id = h.project_id AND r.kind = h.kind AND r.number = h.number
             WHERE h.project_id = $1 AND h.change = $2 AND h.why = $3 ORDER BY h.kind, h.number, h.version";
        let rows = sql(text).bind(self.who.project_id).bind(CHANGE_IMPORT).bind(why).all(tx).await?;
        let mut known = Known::new();
        for row in rows {
            let (kind, number, body): (String, i64, String) = (row.get("kind")?, row.get("number")?, row.get("body")?);
            let content: Value = serde_json::from_str(&body)?;
            if let (Some(kind), Some(name)) = (Kind::parse(&kind), external_id(&content)) {
                known.insert((kind, name.to_owned()), Brought { id: kind.id(number), content });
            }
        }
        Ok(known)
    }

    /// Writes what has changed there since. Says whether something has.
    pub(super) async fn bring_again(&self, tx: &mut Tx, brought: &Brought, there: &Value, why: &str) -> Result<bool> {
        let there = brought.id.kind.facts(there)?.body;
        if there == brought.content {
            return Ok(false);
        }
        let present = self.must_find(tx, brought.id).await?;
        let now = self.now_ms();
        let is_held = present.holder.as_ref().is_some_and(|holder| holder.lease_until_ms > now);
        let fields = fields_of(&there, &brought.content).into_iter();
        let fields: Vec<&str> = fields.filter(|field| !is_held || !OF_THE_HOLDER.contains(field)).collect();
        let changed = fields.iter().copied().filter(|field| there.get(field) != brought.content.get(field));
        let merged = with(&present.body, &there, changed);
        // The next import has to know what this one brought, apart from what was changed here.
        let whole = with(&present.body, &there, fields.iter().copied());
        let write = |body, former, change, why| Write {
            id: present.id,
            iteration: present.iteration,
            body,
            change,
            why: Some(why),
            former: Some(former),
            last_version: former.version,
            created_at_ms: present.created_at_ms,
            rules: Rules::AnyState,
        };
        let mut written = put(tx, &self.who, now, &write(&whole, &present, CHANGE_IMPORT, why)).await?;
        if merged != whole {
            written = put(tx, &self.who, now, &write(&merged, &written, "update", "as it was changed here")).await?;
        }
        if written.id.kind == Kind::Task && written.state == "in_progress" && present.state != "in_progress" {
            self.free(tx, written.id, now).await?;
        }
        Ok(true)
    }
}

fn fields_of<'a>(one: &'a Value, other: &'a Value) -> BTreeSet<&'a str> {
    [one, other].into_iter().filter_map(Value::as_object).flat_map(|fields| fields.keys().map(String::as_str)).collect()
}

/// A content with these fields as another one has them, or has not.
fn with<'a>(content: &Value, other: &Value, fields: impl Iterator<Item = &'a str>) -> Value {
    let mut content = content.clone();
    let Some(own) = content.as_object_mut() else { return content };
    for field in fields {
        match other.get(field) {
            Some(value) => own.insert(field.to_owned(), value.clone()),
            None => own.remove(field),
        };
    }
    content
}
