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

    /// `text` without the key, as it is or as JSON writes it: a server may quote what it was sent.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        if self.0.len() < SCRUBBED_BYTES_MIN {
            return text.to_owned();
        }
        let quoted = serde_json::Value::from(self.0.as_str()).to_string();
        let quoted = &quoted[1..quoted.len() - 1];
        let slashed = quoted.replace('/', "\\/");
        [slashed.as_str(), quoted, &self.0].iter().fold(text.to_owned(), |text, form| text.replace(form, HIDDEN))
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

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_key_is_taken_out_however_it_is_quoted() {
        // Its last character is one that JSON escapes.
        let key = Secret::new("sk-a/b+\"c\\d\"");
        for text in ["sk-a/b+\"c\\d\"", "sk-a/b+\\\"c\\\\d\\\"", "sk-a\\/b+\\\"c\\\\d\\\""] {
            assert_eq!(key.scrub(&format!("bad token {text}!")), "bad token ***!");
        }
    }
}
