//! What is known of a content without its type: it is read as its kind's type, and asked about itself.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::body::{Body, Reference};
use super::error::{RecordError, Result};
use super::kind::{Kind, RecordId};

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

macro_rules! make_facts {
    ($($kind:ident $word:literal $prefix:literal $content:ty, $machine:expr, $group:expr;)+) => {
        impl Kind {
            /// Reads a content as this kind's type and asks it about itself.
            pub(crate) fn facts(self, body: &Value) -> Result<Facts> {
                match self {
                    $(Self::$kind => facts::<$content>(body)),+
                }
            }
        }
    };
}

kinds!(make_facts);

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
