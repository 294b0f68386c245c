//! Lists and previews of change sets for who has looked before: each with a mark of what it was made of, so that a look makes again
//! only what may have changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

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
        let text = "SELECT overlay, state, updated_at_ms FROM change_set WHERE project_id = $1 AND number = $2";
        let row = sql(text).bind(self.who.project_id).bind(number).optional(tx).await?;
        // The look itself says that there is none.
        let Some(row) = row else { return Ok(String::new()) };
        let marks = self.marks(tx, &row.get::<String>("overlay")?).await?;
        let (state, written): (String, i64) = (row.get("state")?, row.get("updated_at_ms")?);
        Ok(format!("{state}/{written}/{}", marks.around(number)))
    }

    /// What the marks of the open sets of an overlay are made of.
    pub(super) async fn marks(&self, tx: &mut Tx, overlay: &str) -> Result<Marks> {
        let moment = "SELECT moment FROM package WHERE project_id = $1";
        let moment = sql(moment).bind(self.who.project_id).optional(tx).await?;
        let text = "SELECT s.number AS number, s.updated_at_ms AS written, CAST(CASE WHEN EXISTS (
                 SELECT 1 FROM change_operation o WHERE o.project_id = s.project_id AND o.set_number = s.number
                 AND (o.base IS NULL OR o.wanted IS NULL)) THEN 1 ELSE 0 END AS BIGINT) AS makes_or_deletes
             FROM change_set s WHERE s.project_id = $1 AND s.overlay = $2 AND s.state IN ('staged', 'validated')
             ORDER BY s.number";
        let mut open = Vec::new();
        for row in sql(text).bind(self.who.project_id).bind(overlay).all(tx).await? {
            let makes_or_deletes = row.get::<i64>("makes_or_deletes")? == 1;
            open.push(Open { number: row.get("number")?, written: row.get("written")?, makes_or_deletes });
        }
        Ok(Marks { moment: moment.map_or(Ok(0), |row| row.get("moment"))?, open })
    }
}

/// An open set of an overlay.
struct Open {
    number: i64,
    /// When it was last written, in milliseconds since 1970.
    written: i64,
    makes_or_deletes: bool,
}

/// The open sets of an overlay and the moment of the package under them.
pub(super) struct Marks {
    moment: i64,
    open: Vec<Open>,
}

impl Marks {
    pub(super) fn numbers(&self) -> impl Iterator<Item = i64> {
        self.open.iter().map(|set| set.number)
    }

    /// Of what a set is based on, where nothing is missing that a later set could have: the earlier ones, and the later ones that make
    /// or delete something.
    pub(super) fn around(&self, number: i64) -> String {
        self.of(|set| set.number <= number || set.makes_or_deletes)
    }

    /// The mark of all sets of the overlay. Its first word keeps it from being taken for the mark of some of them.
    pub(super) fn whole(&self) -> String {
        format!("all {}", self.of(|_| true))
    }

    fn of(&self, is_in: impl Fn(&Open) -> bool) -> String {
        let (mut count, mut numbers, mut written) = (0, 0, 0);
        for set in self.open.iter().filter(|set| is_in(set)) {
            (count, numbers, written) = (count + 1, numbers + set.number, written + set.written);
        }
        format!("{}/{count}/{numbers}/{written}", self.moment)
    }
}

/// Overlays whose links are kept at most.
const OVERLAYS_MAX: usize = 256;

/// What the open sets of overlays are based on, as it was found last, each behind the mark of what it was found from.
#[derive(Default)]
pub(super) struct KnownLinks(Mutex<HashMap<(i64, String), BTreeMap<i64, Link>>>);

type Link = (String, BTreeSet<i64>);

impl KnownLinks {
    /// What is still true of the links of an overlay.
    pub(super) fn known(&self, overlay: &(i64, String), marks: &Marks) -> BTreeMap<i64, BTreeSet<i64>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = marks.whole();
        let links = kept.get(overlay).into_iter().flatten();
        let is_true = |(number, (mark, _)): &(&i64, &Link)| *mark == whole || *mark == marks.around(**number);
        links.filter(is_true).map(|(number, (_, links))| (*number, links.clone())).collect()
    }

    /// Keeps what was found.
    pub(super) fn keep(&self, overlay: (i64, String), marks: &Marks, found: BTreeMap<i64, Link>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= OVERLAYS_MAX && !kept.contains_key(&overlay) {
            kept.clear();
        }
        let links = kept.entry(overlay).or_default();
        links.extend(found);
        links.retain(|number, _| marks.numbers().any(|open| open == *number));
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
