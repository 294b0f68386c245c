//! What the loop notices of the calls of a session: those that were made before, and change sets that were left unvalidated.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::CallStep;
use crate::model::ToolCall;
use crate::tools::SessionTools;

/// Calls since something was last changed, and how often each was made.
#[derive(Debug, Default)]
pub(super) struct AskedBefore(HashMap<(String, String), u32>);

impl AskedBefore {
    /// Notes a call and what it came to. Says what a model is told of it, if it asks again what it was told already.
    pub(super) fn note(&mut self, call: &ToolCall, ended: &CallStep, only_reads: bool) -> Option<String> {
        if ended.ok && !only_reads {
            self.0.clear();
            return None;
        }
        let times = self.0.entry((call.name.clone(), call.arguments.value().to_string())).or_default();
        *times += 1;
        match (*times, ended.ok) {
            (1, _) => None,
            (times, true) => Some(format!(
                "You have made this very call {times} times, and nothing changed in between. Use the answer you have."
            )),
            (times, false) => Some(format!(
                "This very call has failed {times} times. Change its arguments, or say in your answer what you could not do."
            )),
        }
    }
}

/// Where a set stands that was validated and may not be applied.
pub(super) const INVALID: &str = "invalid";

/// Change sets that the session has staged, and where each stands.
#[derive(Debug, Default)]
pub(super) struct Sets(BTreeMap<String, String>);

impl Sets {
    /// Notes what a call did to a set.
    pub(super) fn note(&mut self, own: &SessionTools, ended: &CallStep) {
        if !ended.ok || ![own.stage, own.validate, own.discard].contains(&&*ended.tool) {
            return;
        }
        let Ok(outcome) = serde_json::from_str::<Value>(&ended.content) else { return };
        let data = &outcome["data"];
        let ids = |field: &str| data[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        for gone in ids("superseded").chain(ids("discarded")).chain(ids("blocked")) {
            self.0.remove(gone);
        }
        for again in ids("unvalidated") {
            self.stands(again, "staged");
        }
        if let (Some(id), Some(status)) = (data["changeSetId"].as_str(), data["status"].as_str()) {
            let found = if ended.tool == own.validate { data } else { &data["validation"] };
            self.stands(id, if found["valid"] == false { INVALID } else { status });
        }
    }

    /// Notes where a set stands now.
    pub(super) fn stands(&mut self, id: &str, status: &str) {
        self.0.insert(id.to_owned(), status.to_owned());
    }

    /// Those that stand so.
    pub(super) fn that_stand(&self, status: &str) -> Vec<String> {
        self.0.iter().filter(|(_, known)| *known == status).map(|(id, _)| id.clone()).collect()
    }
}
