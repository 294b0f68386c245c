//! Examples of a tool: calls that are its documentation and its test.

use serde_json::Value;

use crate::error::ErrorKind;

/// A call that is documentation and test at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    pub says: &'static str,
    pub arguments: Value,
    /// Files there before the call: path and content.
    pub files: &'static [(&'static str, &'static str)],
    /// Calls made before, by a person: tool and arguments (JSON).
    pub before: &'static [(&'static str, &'static str)],
    pub expect: Expect,
}

impl Example {
    /// The error that it shows; `None` for a call that works.
    pub fn fails(&self) -> Option<ErrorKind> {
        match self.expect {
            Expect::Data(_) => None,
            Expect::Fails(kind) => Some(kind),
        }
    }
}

/// What an example must come to.
#[derive(Debug, Clone, PartialEq)]
pub enum Expect {
    /// Each pointer (RFC 6901) into `data` holds this value.
    Data(&'static [(&'static str, &'static str)]),
    /// It fails with this kind.
    Fails(ErrorKind),
}
