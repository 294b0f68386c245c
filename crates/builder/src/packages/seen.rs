//! The package as a session sees it, whole.

use crate::Package;
use crate::change::overlay;

use super::drafts::Draft;
use super::error::Result;
use super::{ProjectPackage, set_id};

/// A package with what a session has staged over it.
pub struct Seen {
    pub package: Package,
    /// The open change sets that it has in it, the first first, such as `cs-3`.
    pub sets: Vec<String>,
}

impl ProjectPackage {
    /// The whole package as a session sees it; `None` where it has nothing staged, and sees what everybody sees.
    ///
    /// # Errors
    /// There is no package.
    pub async fn seen_by(&self, session: &str) -> Result<Option<Seen>> {
        let mut tx = self.db.snapshot().await?;
        let drafts = self.drafts(&mut tx, Some(session)).await?;
        if drafts.is_empty() {
            return Ok(None);
        }
        self.head(&mut tx).await?;
        let base = Package::read(self.all_files(&mut tx).await?);
        // Where others have changed the same places since, the session sees its own.
        let seen = |draft: &Draft| {
            let over = draft.over(&base).unwrap_or_else(|_| draft.clone());
            (over.object, over.wanted)
        };
        let (package, _) = overlay(&base, &drafts.iter().map(seen).collect::<Vec<_>>());
        let sets = self.open_numbers(&mut tx, &self.overlay(session)).await?;
        Ok(Some(Seen { package, sets: sets.into_iter().map(set_id).collect() }))
    }
}
