//! Whether an export is whole: what its last line says of all lines before it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{RecordError, Result};
use super::kind::Kind;

/// Kinds with missing records or versions that are named; more are counted.
const GAPS_SHOWN: usize = 20;

/// How an import takes an export that does not end as one should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Only with a last line that fits all others.
    Whole,
    /// What is there, of an export that was cut off or changed, or that an earlier version made. What names a missing record
    /// is left out, and noted.
    Partial,
}

/// The last line's own words: how many records and versions there are of each kind, and a hash of all lines before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct End {
    pub(super) records: BTreeMap<String, u64>,
    pub(super) versions: BTreeMap<String, u64>,
    /// Over every line as it is in the file, line feeds included.
    pub(super) sha256: String,
}

/// What has been written or read so far.
#[derive(Default)]
pub(super) struct Tally {
    records: BTreeMap<String, u64>,
    versions: BTreeMap<String, u64>,
    hash: Sha256,
    /// What the last line said, once it has come.
    end: Option<End>,
    /// Something came after it.
    followed: bool,
}

impl Tally {
    pub(super) fn line(&mut self, text: &str) {
        self.followed |= self.end.is_some();
        self.hash.update(text.trim_end_matches(['\r', '\n']).as_bytes());
        self.hash.update(b"\n");
    }

    pub(super) fn record(&mut self, kind: Kind) {
        *self.records.entry(kind.as_str().to_owned()).or_default() += 1;
    }

    pub(super) fn version(&mut self, kind: Kind) {
        *self.versions.entry(kind.as_str().to_owned()).or_default() += 1;
    }

    /// The last line.
    pub(super) fn end(&self) -> End {
        let sha256 = hex::encode(self.hash.clone().finalize());
        End { records: self.records.clone(), versions: self.versions.clone(), sha256 }
    }

    pub(super) fn ended(&mut self, end: End) {
        // Of two, the first fits what follows it as little as the second fits what went before.
        self.followed |= self.end.replace(end).is_some();
    }

    /// What is missing or too much, as an error for whoever wants all of it.
    pub(super) fn check(&self) -> Result<()> {
        let Some(said) = &self.end else {
            return Err(unfit("it has no last line (`end`): it was cut off, or an earlier toolhost made it"));
        };
        if self.followed {
            return Err(unfit("lines follow its last line (`end`)"));
        }
        let here = self.end();
        let mut gaps = BTreeSet::new();
        for (what, said, here) in
            [("record", &said.records, &here.records), ("version", &said.versions, &here.versions)]
        {
            for kind in said.keys().chain(here.keys()) {
                let of = |counts: &BTreeMap<String, u64>| counts.get(kind).copied().unwrap_or_default();
                let (said, here) = (of(said), of(here));
                if said != here {
                    let plural = if said == 1 { "" } else { "s" };
                    gaps.insert(format!("{here} of {said} {what}{plural} of the kind {kind}"));
                }
            }
        }
        if !gaps.is_empty() {
            let shown: Vec<&str> = gaps.iter().take(GAPS_SHOWN).map(String::as_str).collect();
            let more = gaps.len() - shown.len();
            let more = if more == 0 { String::new() } else { format!(", and {more} more such gaps") };
            return Err(unfit(&format!("it has {}{more}", shown.join(", "))));
        }
        if said.sha256 != here.sha256 {
            return Err(unfit("its lines were changed since: their SHA-256 is not the one that its last line says"));
        }
        Ok(())
    }
}

fn unfit(what: &str) -> RecordError {
    RecordError::NotWhole { what: what.to_owned() }
}
