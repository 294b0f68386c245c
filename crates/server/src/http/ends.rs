//! Where the audits of projects end, for whoever waits for new rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use toolhost_contract::ToolError;

use super::projects::OpenProject;

/// How often it is looked for new rows while somebody listens.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// For each project that is listened to, the number of its last row.
#[derive(Default)]
pub(crate) struct Ends {
    watched: Mutex<HashMap<String, Weak<watch::Sender<i64>>>>,
}

impl Ends {
    /// Follows the end of a project's audit.
    pub(crate) async fn follow(
        &self,
        project: &Arc<OpenProject>,
    ) -> Result<(Arc<watch::Sender<i64>>, watch::Receiver<i64>), ToolError> {
        let end = project.reader.audit_end(project.id).await?;
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = watched.get(&project.key).and_then(Weak::upgrade) {
            let receiver = sender.subscribe();
            return Ok((sender, receiver));
        }
        watched.retain(|_, sender| sender.strong_count() > 0);
        let sender = Arc::new(watch::channel(end).0);
        let receiver = sender.subscribe();
        let weak = Arc::downgrade(&sender);
        watched.insert(project.key.clone(), Weak::clone(&weak));
        tokio::spawn(look(Arc::clone(project), weak));
        Ok((sender, receiver))
    }
}

/// Looks for new rows until nobody listens any more.
async fn look(project: Arc<OpenProject>, sender: Weak<watch::Sender<i64>>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(sender) = sender.upgrade() else { return };
        match project.reader.audit_end(project.id).await {
            Ok(end) => {
                sender.send_if_modified(|known| std::mem::replace(known, end) != end);
            }
            Err(error) => tracing::warn!(%error, "the end of the audit could not be read"),
        }
    }
}
