//! What was said in the sessions last worked in, for a search.

use super::{Sessions, StepRow, step};
use crate::db::sql;
use crate::error::Result;

/// The last steps of each session that are looked through, and the bytes of the longest of them: a search reads no more, however much a
/// session holds.
const STEPS_MAX: i64 = 100;
const BODY_BYTES_MAX: i64 = 16 * 1024;

impl Sessions {
    /// Steps that may have a word, each with its session, the newest first: goals, messages and replies among the last steps of the
    /// sessions last worked in. The database compares whole steps, also fields that nobody has said: the caller checks the text.
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
        // Written as a cross join, SQLite keeps the order: the sessions first. Otherwise it may read all steps of the project to find those
        // of ten sessions.
        let text = "SELECT a.session_id, a.seq, a.step, a.at_ms, a.body
             FROM (SELECT id, steps FROM agent_session WHERE project_id = $1
                 ORDER BY updated_at_ms DESC, id DESC LIMIT $2) s
             CROSS JOIN agent_step a
             WHERE a.project_id = $1 AND a.session_id = s.id AND a.seq >= s.steps - $5
                 AND (a.step = 'open' OR a.step LIKE 'say%' OR a.step LIKE 'turn%')
                 AND octet_length(a.body) <= $6 AND LOWER(a.body) LIKE $3 ESCAPE '\\'
             ORDER BY a.at_ms DESC, a.seq DESC LIMIT $4";
        let query = sql(text).bind(project).bind(sessions).bind(format!("%{word}%")).bind(limit);
        let query = query.bind(STEPS_MAX).bind(BODY_BYTES_MAX);
        let rows = query.read(&self.inner.db).await?;
        rows.iter().map(|row| Ok((row.get("session_id")?, step(row)?))).collect()
    }
}
