//! Tools for milestones.

use toolhost_contract::{ErrorKind, ToolError};

pub(crate) mod add;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod update;

/// Bytes of a day: `2026-12-24`.
const DAY_BYTES: usize = 10;

/// Whether the calendar has the day that a deadline begins with; its form is the schema's.
fn check_day(deadline: Option<&str>) -> Result<(), ToolError> {
    let Some(day) = deadline.and_then(|deadline| deadline.get(..DAY_BYTES)) else { return Ok(()) };
    match humantime::parse_rfc3339(&format!("{day}T00:00:00Z")) {
        Ok(_) => Ok(()),
        Err(_) => Err(ToolError::new(ErrorKind::Validation, format!("`deadline`: the calendar has no {day}"))),
    }
}
