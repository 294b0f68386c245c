//! What servers send that is not quite what their formats say, read as it is meant.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The escape of a character that stands for no other.
const REPLACEMENT: &str = "\\ufffd";
/// Bytes of `\uXXXX`.
const ESCAPE: usize = 6;

/// An event's data. Half of a surrogate pair, as a server sends it that tears a character over two pieces, becomes a
/// replacement character: the rest of the reply is whole, and paid for.
pub(super) fn event<T: DeserializeOwned>(data: &str) -> serde_json::Result<T> {
    serde_json::from_str(data).or_else(|error| match paired(data) {
        Cow::Owned(repaired) => serde_json::from_str(&repaired),
        Cow::Borrowed(_) => Err(error),
    })
}

/// A field that is beside the point: what cannot be read counts as not said.
pub(super) fn field<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// JSON without halves of surrogate pairs.
fn paired(json: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let (mut at, mut kept) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        match unit(&json[at..]) {
            // Another escape of two characters, such as `\\`.
            None => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
            Some(0xd800..=0xdbff) if matches!(unit(&json[at + ESCAPE..]), Some(0xdc00..=0xdfff)) => at += 2 * ESCAPE,
            Some(0xd800..=0xdfff) => {
                repaired.push_str(&json[kept..at]);
                repaired.push_str(REPLACEMENT);
                at += ESCAPE;
                kept = at;
            }
            Some(_) => at += ESCAPE,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    repaired.push_str(&json[kept..]);
    Cow::Owned(repaired)
}

/// The code unit that an escape at the beginning stands for.
fn unit(json: &str) -> Option<u16> {
    let digits = json.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced_and_nothing_else_is_touched() {
        for (sent, read) in [
            ("x\\ud83d", "x\u{fffd}"),
            ("\\ude00y", "\u{fffd}y"),
            ("\\ud83d\\ude00", "😀"),
            ("\\ud83d\\ud83d\\ude00\\\\ud83d\\u00e4", "\u{fffd}😀\\ud83dä"),
        ] {
            assert_eq!(event::<String>(&format!("\"{sent}\"")).ok().as_deref(), Some(read), "{sent}");
        }
        assert!(event::<String>("\"\\ud83\"").is_err());
        assert!(event::<String>("\"\\").is_err() && event::<String>("{").is_err());
    }
}
