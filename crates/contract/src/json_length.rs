//! How long a value is as JSON, without writing it.

use serde_json::Value;

/// Bytes of the longest number, and of the longest word.
const SCALAR_BYTES_MAX: usize = 32;
/// What an escape has more than the byte that it stands for: `\\u001b`.
const ESCAPE_BYTES: usize = 5;

/// Bytes that a value's JSON has at most. It is rarely more than what it has, and counted in a tenth of the time that writing takes.
#[must_use]
pub fn json_bytes_at_most(value: &Value) -> usize {
    match value {
        Value::String(text) => string_bytes_at_most(text),
        Value::Array(items) => items.iter().map(|item| json_bytes_at_most(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| string_bytes_at_most(name) + json_bytes_at_most(value) + 2;
            fields.iter().map(field).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR_BYTES_MAX,
    }
}

fn string_bytes_at_most(text: &str) -> usize {
    // Summed in blocks: a loop of this form is done with instructions for vectors.
    let is_escaped = |byte: &u8| u8::from((*byte < b' ') | (*byte == b'"') | (*byte == b'\\'));
    let blocks = text.as_bytes().chunks(usize::from(u8::MAX));
    let escapes: usize = blocks.map(|block| usize::from(block.iter().map(is_escaped).sum::<u8>())).sum();
    text.len() + escapes * ESCAPE_BYTES + 2
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::json_bytes_at_most;

    #[test]
    fn no_value_is_longer() {
        let long = "line\twith \"quotes\", back\\slashes and \u{1b}\u{0}\n".repeat(1000);
        for value in [
            Value::Null,
            json!(false),
            json!(-1.797_693_134_862_315_7e308),
            json!(u64::MAX),
            json!([]),
            json!({}),
            json!([null, [], {}, "", 1]),
            json!({ "a\nb": long, "\u{7f}ä": [long, "日本"], "c": { "d": 1.5 } }),
        ] {
            assert!(value.to_string().len() <= json_bytes_at_most(&value), "{value}");
        }
        let plain = json!("x".repeat(100_000));
        assert_eq!(json_bytes_at_most(&plain), plain.to_string().len());
    }
}
