//! What was said in the sessions last worked in, for a search.

use super::{Sessions, StepRow, step};
use crate::db::sql;
use crate::error::Result;

impl Sessions {
    /// Steps, each with its session, of the sessions last worked in whose text may have a word: goals, messages and replies, the newest first. The word is
    /// looked for in the whole step, so whoever asks looks again at what was said.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn said(&self, project: i64, word: &str, sessions: i64, limit: i64) -> Result<Vec<(String, StepRow)>> {
        // SQLite knows large and small letters of ASCII alone.
        let word = word.to_lowercase();
        let word = if word.is_ascii() {
            word.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
        } else {
            String::new()
        };
        let text = "SELECT session_id, seq, step, at_ms, body FROM agent_step
             WHERE project_id = $1 AND (step = 'open' OR step LIKE 'say%' OR step LIKE 'turn%')
                 AND session_id IN (SELECT id FROM agent_session WHERE project_id = $1
                     ORDER BY updated_at_ms DESC, id DESC LIMIT $2)
                 AND LOWER(body) LIKE $3 ESCAPE '\\'
             ORDER BY at_ms DESC, seq DESC LIMIT $4";
        let query = sql(text).bind(project).bind(sessions).bind(format!("%{word}%")).bind(limit);
        let rows = query.read(&self.inner.db).await?;
        rows.iter().map(|row| Ok((row.get("session_id")?, step(row)?))).collect()
    }
}
