//! The kinds of records, which are the rows of `table.rs`, and the ids of records.

use std::fmt;

use super::machine::Machine;

/// What several kinds have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    None,
    /// What a planning iteration holds. The number is its place: each refers only to kinds before it.
    Plan(u8),
    /// What `memory.query` searches.
    Memory,
}

/// A row of the table of kinds.
struct Row {
    word: &'static str,
    prefix: &'static str,
    machine: Option<&'static Machine>,
    group: Group,
}

macro_rules! make_kinds {
    ($($kind:ident $word:literal $prefix:literal $content:ty, $machine:expr, $group:expr;)+) => {
        /// The kinds of records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($kind),+
        }

        impl Kind {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$kind),+];

            const fn row(self) -> Row {
                match self {
                    $(Self::$kind => Row { word: $word, prefix: $prefix, machine: $machine, group: $group }),+
                }
            }
        }
    };
}

kinds!(make_kinds);

/// A record's id: `REQ-001`. Numbers count up per project and kind, and none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    pub kind: Kind,
    pub number: i64,
}

/// The highest number of a record. Whoever imports a higher one would leave no room to count on.
pub(crate) const NUMBER_MAX: i64 = 999_999_999_999;

impl Kind {
    /// What `memory.query` searches.
    #[must_use]
    pub fn memory() -> Vec<Self> {
        Self::ALL.into_iter().filter(|kind| kind.is_memory()).collect()
    }

    #[must_use]
    pub fn is_memory(self) -> bool {
        self.row().group == Group::Memory
    }

    /// What a planning iteration holds, in an order in which each refers only to those before it.
    pub(crate) fn plan() -> Vec<Self> {
        let place = |kind: Self| if let Group::Plan(place) = kind.row().group { Some((place, kind)) } else { None };
        let mut plan: Vec<(u8, Self)> = Self::ALL.into_iter().filter_map(place).collect();
        plan.sort_unstable();
        plan.into_iter().map(|(_, kind)| kind).collect()
    }

    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// What its ids begin with.
    pub fn prefix(self) -> &'static str {
        self.row().prefix
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// What its states follow, if it has states that follow something.
    pub fn machine(self) -> Option<&'static Machine> {
        self.row().machine
    }

    pub(crate) fn id(self, number: i64) -> RecordId {
        RecordId { kind: self, number }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:03}", self.kind.prefix(), self.number)
    }
}

impl RecordId {
    /// Reads an id of any kind: `REQ-001`, `req-1`.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, digits) = text.trim().rsplit_once('-')?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.prefix().eq_ignore_ascii_case(prefix))?;
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = digits.parse().ok().filter(|number| plain && (1..=NUMBER_MAX).contains(number))?;
        Some(Self { kind, number })
    }
}

/// A word from a fixed list, as it is stored and shown.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }
    };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Kind;

    #[test]
    fn a_kind_is_told_by_its_word_and_by_its_ids() {
        let words: BTreeSet<_> = Kind::ALL.into_iter().map(Kind::as_str).collect();
        let prefixes: BTreeSet<_> = Kind::ALL.into_iter().map(Kind::prefix).collect();
        assert_eq!((words.len(), prefixes.len()), (Kind::ALL.len(), Kind::ALL.len()));
        assert!(Kind::ALL.into_iter().all(|kind| Kind::parse(kind.as_str()) == Some(kind)));
    }

    /// An iteration is inherited kind by kind: what is copied later may name what was copied before.
    #[test]
    fn a_plan_is_in_the_order_in_which_its_kinds_name_each_other() {
        use Kind::{Component, Design, Feature, Milestone, Requirement, Task};
        assert_eq!(Kind::plan(), [Requirement, Feature, Component, Design, Task, Milestone]);
    }
}
