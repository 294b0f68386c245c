//! What no text of a record may hold.

use serde_json::Value;

use super::error::{RecordError, Result};

/// A zero character ends a text for half of the world's programs.
pub(crate) fn check_text(text: &str, field: &str) -> Result<()> {
    if text.contains('\0') {
        let (field, problem) = (field.to_owned(), "has a zero character (U+0000) in it".to_owned());
        return Err(RecordError::Field { field, problem });
    }
    Ok(())
}

pub(crate) fn check_texts(value: &Value, path: &str) -> Result<()> {
    match value {
        Value::String(text) => check_text(text, path.trim_start_matches('.')),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(n, item)| check_texts(item, &format!("{path}[{n}]")))
        }
        Value::Object(fields) => {
            fields.iter().try_for_each(|(name, field)| check_texts(field, &format!("{path}.{name}")))
        }
        _ => Ok(()),
    }
}
