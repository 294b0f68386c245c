//! Calls of file tools whose host was killed: the files tell how they ended.

use std::sync::Arc;

use serde_json::{Value, json};
use toolhost_contract::workspace::{Access, Fence, Workspace};
use toolhost_contract::{Made, ToolError, Trace};
use toolhost_store::{Entry, Event, Reader};

use crate::gate::Gate;
use crate::undo::made;

impl Gate {
    /// Adds to the audit how the calls ended that a crash left unknown, where the log of file changes and the files of this
    /// workspace tell. The caller makes sure that it is the workspace in which the calls ran, and that their hosts have died.
    ///
    /// # Errors
    /// If the log or the files cannot be read, or the audit cannot be written.
    pub async fn decide_unknown(&self, reader: &Reader, project: i64) -> Result<(), ToolError> {
        let workspace = Workspace::new(Arc::clone(&self.state.config.executor), Fence::closed(Access::Read));
        for call in reader.undecided(project).await.map_err(ToolError::from)? {
            // Only of these is known that files are all that they change.
            if self.registry().get(&call.tool).is_none_or(|tool| tool.info.facts.trace != Trace::Files) {
                continue;
            }
            let outcome = match made(&self.state.config.file_log, project, &workspace, call.call_id.as_str()).await? {
                Made::Unknown => continue,
                Made::Yes => json!({ "ok": true, "decided": true }),
                Made::No => json!({
                    "ok": false, "kind": "io", "decided": true,
                    "message": "the call was interrupted; its files are as they were before it",
                }),
            };
            let entry = Entry {
                event: Event::Finished,
                call_id: call.call_id,
                session_id: None,
                user_id: 0,
                project_id: project,
                caller: json!({ "door": "host" }),
                tool: call.tool,
                effect: None,
                arguments: Value::Null,
                digest: None,
                decision: None,
                outcome: Some(outcome),
                duration_ms: None,
                fence: String::new(),
                trace: Trace::None,
            };
            self.state.config.audit.decide(entry).await.map_err(ToolError::from)?;
        }
        Ok(())
    }
}
