//! A key that never shows itself.

use std::fmt;

/// What a provider knows its customer by. Nothing prints, logs or serializes what is in it: the one way to read it is
/// [`Secret::reveal`], and only what writes a request's headers calls that.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What is shown in its place.
const HIDDEN: &str = "***";

/// Shorter than this, a key is too likely to be an ordinary word: taking it out of a message would mangle the message.
const SCRUBBED_BYTES_MIN: usize = 4;

impl Secret {
    /// Blanks around it are not part of it: a key read from a file ends with a line break.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// No key at all, for a server that asks for none.
    #[must_use]
    pub fn none() -> Self {
        Self(String::new())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` without the key: a server may quote what it was sent.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        if self.0.len() < SCRUBBED_BYTES_MIN { text.to_owned() } else { text.replace(&self.0, HIDDEN) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl serde::Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}
