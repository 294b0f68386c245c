//! What a call has written of packages, for the engine: it decides with that how a call ended of which nobody saw the end.

use serde_json::{Value, json};
use toolhost_contract::BoxFuture;
use toolhost_store::Subject;
use toolhost_store::db::{Tx, sql};

use super::set_id;

/// Change sets of a committed call that its caller is told of.
const COMMITTED_SETS_MAX: i64 = 20;
/// Tools whose rows do not name the call.
const SILENT: [&str; 2] = ["builder.change.stage", "builder.change.validate"];

/// Packages and change sets, as the engine asks of them.
#[derive(Debug)]
pub struct Traces;

impl Subject for Traces {
    fn wrote<'a>(
        &'a self,
        tx: &'a mut Tx,
        project: i64,
        call: &'a str,
    ) -> BoxFuture<'a, toolhost_store::Result<Vec<Value>>> {
        Box::pin(async move {
            let mut wrote = Vec::new();
            let text = "SELECT moment, kind FROM package_change WHERE project_id = $1 AND call_id = $2 LIMIT 1";
            for row in &sql(text).bind(project).bind(call).all(tx).await? {
                let (moment, kind): (i64, String) = (row.get("moment")?, row.get("kind")?);
                wrote.push(json!({ "moment": moment, "change": kind }));
            }
            let text =
                "SELECT number FROM change_set WHERE project_id = $1 AND discarded_by = $2 ORDER BY number LIMIT $3";
            for row in &sql(text).bind(project).bind(call).bind(COMMITTED_SETS_MAX).all(tx).await? {
                wrote.push(json!({ "changeSetId": set_id(row.get("number")?), "change": "discard" }));
            }
            Ok(wrote)
        })
    }

    fn is_silent(&self, tool: &str) -> bool {
        SILENT.contains(&tool)
    }
}
