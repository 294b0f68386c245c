//! What models call arguments that they know from the tools of other hosts: [`OtherName`].

use serde::Serialize;

/// A name that some other host's tool has for an argument, in any spelling (`old_text` is `oldText`, too). A call that uses it is taken as
/// it was meant, and the answer says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OtherName {
    pub name: &'static str,
    pub means: Meaning,
}

/// What is meant by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Meaning {
    /// The argument of this name.
    Argument(&'static str),
    /// The field of each entry of a list. Where it stands beside the list and not in it, that of its only entry.
    Field { list: &'static str, field: &'static str },
    /// The last line, counted from 1. `count` lines from `first` on are read.
    LastLine { first: &'static str, count: &'static str },
    /// `[first, last]`, counted from 1; -1 as the last one is the end of the file.
    Lines { first: &'static str, count: &'static str },
    /// A time: milliseconds from 1,000 on, seconds below. The argument takes milliseconds.
    Time(&'static str),
    /// A time in seconds. The argument takes milliseconds.
    Seconds(&'static str),
    /// The opposite of this argument, which is true or false.
    Not(&'static str),
    /// What the tool does anyway, where it has this value; another value is refused.
    Anyway(&'static str),
}

impl OtherName {
    pub const fn argument(name: &'static str, argument: &'static str) -> Self {
        Self { name, means: Meaning::Argument(argument) }
    }

    pub const fn field(name: &'static str, list: &'static str, field: &'static str) -> Self {
        Self { name, means: Meaning::Field { list, field } }
    }

    pub const fn anyway(name: &'static str, value: &'static str) -> Self {
        Self { name, means: Meaning::Anyway(value) }
    }

    pub const fn means(name: &'static str, means: Meaning) -> Self {
        Self { name, means }
    }
}
