//! Cursors: where the next page begins, opaque to the caller.

use crate::{ErrorKind, ToolError};

/// A cursor over paths: the last path of the page before.
pub fn after_path(cursor: Option<String>) -> Result<Option<String>, ToolError> {
    cursor.map(|cursor| decode(&cursor)).transpose()
}

/// A cursor over lines of files: the last path and line of the page before.
pub fn after_line(cursor: Option<String>) -> Result<Option<(String, u64)>, ToolError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let text = decode(&cursor)?;
    let (line, path) = text.split_once(':').ok_or_else(|| bad(&cursor))?;
    Ok(Some((path.to_owned(), line.parse().map_err(|_| bad(&cursor))?)))
}

pub fn path_cursor(path: &str) -> String {
    encode(path)
}

pub fn line_cursor(path: &str, line: u64) -> String {
    encode(&format!("{line}:{path}"))
}

fn encode(text: &str) -> String {
    hex::encode(text)
}

fn decode(cursor: &str) -> Result<String, ToolError> {
    let bytes = hex::decode(cursor).map_err(|_| bad(cursor))?;
    String::from_utf8(bytes).map_err(|_| bad(cursor))
}

fn bad(cursor: &str) -> ToolError {
    let shown: String = cursor.chars().take(40).collect();
    ToolError::new(ErrorKind::Validation, format!("`{shown}` is no cursor of this tool"))
        .hint("pass `nextCursor` of the page before, with the other arguments unchanged")
}

/// A cursor over records: the last number of the page before.
pub fn after_number(cursor: Option<String>) -> Result<Option<i64>, ToolError> {
    let Some(cursor) = cursor else { return Ok(None) };
    decode(&cursor)?.parse().map(Some).map_err(|_| bad(&cursor))
}

pub fn number_cursor(number: Option<i64>) -> Option<String> {
    number.map(|number| encode(&number.to_string()))
}
