//! Lists and previews of change sets for who has looked before: each with a mark of what it was made of, so that only what may have
//! become another one is made again.

use super::ProjectPackage;
use super::apply::Apply;
use super::error::Result;
use super::sets::{ChangeSetLine, Preview};
use toolhost_store::db::{Row, Tx, sql};

impl ProjectPackage {
    /// The change sets, as [`ProjectPackage::change_sets`] lists them, with the mark of what the list was made of; `None` where that
    /// is still `known`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn change_sets_since(
        &self,
        session: Option<&str>,
        open_only: bool,
        known: Option<&str>,
    ) -> Result<(String, Option<Vec<ChangeSetLine>>)> {
        let mut tx = self.db.snapshot().await?;
        let mark = self.mark(&mut tx).await?;
        let is_known = known == Some(&*mark);
        let list = if is_known { None } else { Some(self.change_sets_at(&mut tx, session, open_only).await?) };
        Ok((mark, list))
    }

    /// A preview, as [`ProjectPackage::preview_of`] makes it, with the mark of what it was made of; `None` where that is still `known`.
    ///
    /// # Errors
    /// There is no such set; the operations cannot be applied without others.
    pub async fn preview_since(&self, wish: &Apply, known: Option<&str>) -> Result<(String, Option<Preview>)> {
        let mut tx = self.db.snapshot().await?;
        let own = self.mark_of(&mut tx, wish.number).await?;
        if known == Some(&*own) {
            return Ok((own, None));
        }
        let whole = format!("{own} of {}", self.mark(&mut tx).await?);
        if known == Some(&*whole) {
            return Ok((whole, None));
        }
        let (preview, is_settled) = self.preview_at(&mut tx, wish).await?;
        Ok((if is_settled { own } else { whole }, Some(preview)))
    }

    /// A mark of all that a list or a preview of change sets is made of: the package, and the sets as they stand. Whoever has looked
    /// at them with the same mark sees the same.
    async fn mark(&self, tx: &mut Tx) -> Result<String> {
        // Whatever is written to a set or its operations writes the time to the set, or changes its state, or the package with it.
        let text = "SELECT COALESCE((SELECT moment FROM package WHERE project_id = $1), 0) AS moment,
                 COUNT(*) AS sets, COALESCE(MAX(number), 0) AS last,
                 CAST(COALESCE(SUM(updated_at_ms), 0) AS BIGINT) AS written,
                 CAST(COALESCE(SUM(CASE state WHEN 'staged' THEN number WHEN 'validated' THEN 2 * number ELSE 0 END), 0) AS BIGINT)
                     AS open
             FROM change_set WHERE project_id = $1";
        let row = sql(text).bind(self.who.project_id).one(tx).await?;
        joined(&row, &["moment", "sets", "last", "written", "open"])
    }

    /// A mark of what the preview of a set is made of, but for later sets of its session that make nothing and delete nothing.
    async fn mark_of(&self, tx: &mut Tx, number: i64) -> Result<String> {
        let text = "SELECT COALESCE((SELECT moment FROM package WHERE project_id = $1), 0) AS moment,
                 own.updated_at_ms AS written,
                 CAST(CASE own.state WHEN 'staged' THEN 1 WHEN 'validated' THEN 2 WHEN 'blocked' THEN 3 ELSE 4 END AS BIGINT)
                     AS state,
                 COUNT(*) AS sets, CAST(COALESCE(SUM(other.number), 0) AS BIGINT) AS numbers,
                 CAST(COALESCE(SUM(other.updated_at_ms), 0) AS BIGINT) AS times
             FROM change_set own LEFT JOIN change_set other ON other.project_id = own.project_id AND other.overlay = own.overlay
                 AND other.number <> own.number AND other.state IN ('staged', 'validated') AND (other.number < own.number OR EXISTS (
                     SELECT 1 FROM change_operation o WHERE o.project_id = other.project_id AND o.set_number = other.number
                     AND (o.base IS NULL OR o.wanted IS NULL)))
             WHERE own.project_id = $1 AND own.number = $2 GROUP BY own.updated_at_ms, own.state";
        match sql(text).bind(self.who.project_id).bind(number).optional(tx).await? {
            Some(row) => joined(&row, &["moment", "written", "state", "sets", "numbers", "times"]),
            // The look itself says that there is none.
            None => Ok(String::new()),
        }
    }
}

/// The numbers of a row, such as `7/12/3`.
fn joined(row: &Row, columns: &[&'static str]) -> Result<String> {
    let mut mark = Vec::new();
    for column in columns {
        mark.push(row.get::<i64>(column)?.to_string());
    }
    Ok(mark.join("/"))
}
