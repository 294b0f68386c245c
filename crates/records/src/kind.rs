//! The kinds of records, one row each in [`Kind::ALL`], and the ids of records.

use std::fmt;

use super::machine::{FEATURE, ITERATION, Machine, TASK, TICKET};

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Persona,
    Iteration,
    Requirement,
    Feature,
    Component,
    Design,
    Milestone,
    Task,
    Artifact,
    Ticket,
    Comment,
    Document,
    Insight,
    Issue,
    Learning,
    Decision,
    Pattern,
}

/// A record's id: `REQ-001`. Numbers count up per project and kind, and none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    pub kind: Kind,
    pub number: i64,
}

/// The highest number of a record. Whoever imports a higher one would leave no room to count on.
pub(crate) const NUMBER_MAX: i64 = 999_999_999_999;

impl Kind {
    pub const ALL: [Self; 17] = [
        Self::Persona,
        Self::Iteration,
        Self::Requirement,
        Self::Feature,
        Self::Component,
        Self::Design,
        Self::Milestone,
        Self::Task,
        Self::Artifact,
        Self::Ticket,
        Self::Comment,
        Self::Document,
        Self::Insight,
        Self::Issue,
        Self::Learning,
        Self::Decision,
        Self::Pattern,
    ];

    /// What `memory.query` searches.
    pub const MEMORY: [Self; 5] = [Self::Decision, Self::Pattern, Self::Insight, Self::Issue, Self::Learning];

    /// What a planning iteration holds, in an order in which each refers only to those before it.
    pub const PLAN: [Self; 6] =
        [Self::Requirement, Self::Feature, Self::Component, Self::Design, Self::Task, Self::Milestone];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Persona => "persona",
            Self::Iteration => "iteration",
            Self::Requirement => "requirement",
            Self::Feature => "feature",
            Self::Component => "component",
            Self::Design => "design",
            Self::Milestone => "milestone",
            Self::Task => "task",
            Self::Artifact => "artifact",
            Self::Ticket => "ticket",
            Self::Comment => "comment",
            Self::Document => "document",
            Self::Insight => "insight",
            Self::Issue => "issue",
            Self::Learning => "learning",
            Self::Decision => "decision",
            Self::Pattern => "pattern",
        }
    }

    pub fn prefix(self) -> &'static str {
        match self {
            Self::Persona => "PERS",
            Self::Iteration => "ITER",
            Self::Requirement => "REQ",
            Self::Feature => "FEAT",
            Self::Component => "COMP",
            Self::Design => "DSGN",
            Self::Milestone => "MILE",
            Self::Task => "TASK",
            Self::Artifact => "ART",
            Self::Ticket => "TKT",
            Self::Comment => "CMT",
            Self::Document => "DOC",
            Self::Insight => "INS",
            Self::Issue => "ISS",
            Self::Learning => "LRN",
            Self::Decision => "DEC",
            Self::Pattern => "PAT",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The kinds whose states follow a machine.
    pub fn machine(self) -> Option<&'static Machine> {
        match self {
            Self::Feature => Some(&FEATURE),
            Self::Task => Some(&TASK),
            Self::Ticket => Some(&TICKET),
            Self::Iteration => Some(&ITERATION),
            _ => None,
        }
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
