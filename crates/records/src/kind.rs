//! What all kinds of records have in common: one row each in [`Kind::ALL`], and [`Body`], what a kind's content must
//! tell about itself.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{RecordError, Result};
use super::machine::{FEATURE, ITERATION, Machine, TASK, TICKET};
use super::{artifact, iteration, memory, persona, planning, ticket};

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

/// The content of one kind of record.
pub trait Body: Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static {
    const KIND: Kind;

    /// What lists show, and what some kinds are found by.
    fn title(&self) -> &str;

    /// Empty for kinds without one.
    fn state(&self) -> &str {
        ""
    }

    /// Every record it names, by the field that names it.
    fn references(&self) -> Result<Vec<Reference>> {
        Ok(Vec::new())
    }

    /// The texts that `memory.query` searches; nothing for other kinds.
    fn words(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Text of which a project keeps one record of this kind.
    fn unique(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Effort in minutes; 0 where none is told.
    fn effort_minutes(&self) -> i64 {
        0
    }

    /// How many names it carries that name nothing here.
    fn dangling(&self) -> usize {
        0
    }
}

/// A record names another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The field of the content, in camelCase.
    pub field: &'static str,
    pub to: RecordId,
    pub on_delete: OnDelete,
}

/// What becomes of a reference when the record it names is deleted along with its uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    /// The field loses the id.
    Unlink,
    /// The record that names it goes, too.
    Cascade,
    /// Nothing goes: it can only be deleted once nothing names it.
    Refuse,
}

/// What is known of a content without its type.
pub(crate) struct Facts {
    pub(crate) title: String,
    pub(crate) state: String,
    pub(crate) references: Vec<Reference>,
    pub(crate) words: String,
    pub(crate) unique: Option<String>,
    pub(crate) effort_minutes: i64,
    pub(crate) dangling: i64,
    /// As it is stored: the fields of the type and nothing else.
    pub(crate) body: Value,
}

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

    /// Reads a content as this kind's type and asks it about itself.
    pub(crate) fn facts(self, body: &Value) -> Result<Facts> {
        match self {
            Self::Persona => facts::<persona::Persona>(body),
            Self::Iteration => facts::<iteration::Iteration>(body),
            Self::Requirement => facts::<planning::Requirement>(body),
            Self::Feature => facts::<planning::Feature>(body),
            Self::Component => facts::<planning::Component>(body),
            Self::Design => facts::<planning::Design>(body),
            Self::Milestone => facts::<planning::Milestone>(body),
            Self::Task => facts::<planning::Task>(body),
            Self::Artifact => facts::<artifact::Artifact>(body),
            Self::Ticket => facts::<ticket::Ticket>(body),
            Self::Comment => facts::<ticket::Comment>(body),
            Self::Document => facts::<ticket::Document>(body),
            Self::Insight => facts::<memory::Insight>(body),
            Self::Issue => facts::<memory::Issue>(body),
            Self::Learning => facts::<memory::Learning>(body),
            Self::Decision => facts::<memory::Decision>(body),
            Self::Pattern => facts::<memory::Pattern>(body),
        }
    }
}

fn facts<T: Body>(body: &Value) -> Result<Facts> {
    let content: T = serde_json::from_value(body.clone())
        .map_err(|error| RecordError::Content { kind: T::KIND, problem: error.to_string() })?;
    let references = content.references()?;
    let mut body = serde_json::to_value(&content)
        .map_err(|error| RecordError::Content { kind: T::KIND, problem: error.to_string() })?;
    let fields: BTreeSet<&str> = references.iter().map(|reference| reference.field).collect();
    fields.into_iter().for_each(|field| body.get_mut(field).into_iter().for_each(spell));
    Ok(Facts {
        title: content.title().to_owned(),
        state: content.state().to_owned(),
        references,
        words: content.words().join("\n"),
        unique: content.unique().map(Cow::into_owned),
        effort_minutes: content.effort_minutes(),
        dangling: i64::try_from(content.dangling()).unwrap_or(i64::MAX),
        body,
    })
}

/// Ids are stored as they are shown, however they were typed.
fn spell(field: &mut Value) {
    match field {
        Value::Array(items) => items.iter_mut().for_each(spell),
        Value::String(text) => {
            if let Some(id) = RecordId::parse(text) {
                *text = id.to_string();
            }
        }
        _ => {}
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

    /// Reads an id of this kind.
    pub fn of(kind: Kind, text: &str) -> Result<Self> {
        match Self::parse(text) {
            Some(id) if id.kind == kind => Ok(id),
            _ => Err(RecordError::BadId { text: text.chars().take(80).collect(), kind }),
        }
    }
}

/// The references of one field that holds ids of one kind.
pub(crate) fn references<'a>(
    field: &'static str,
    kind: Kind,
    on_delete: OnDelete,
    ids: impl IntoIterator<Item = &'a String>,
) -> Result<Vec<Reference>> {
    let mut found: Vec<Reference> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for id in ids {
        let to = RecordId::of(kind, id).map_err(|error| error.in_field(field))?;
        // Named twice is named once.
        if seen.insert(to) {
            found.push(Reference { field, to, on_delete });
        }
    }
    Ok(found)
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
