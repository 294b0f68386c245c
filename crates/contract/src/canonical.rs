//! The canonical form of JSON (RFC 8785): the one text of a value, whatever the order of its fields, so that it can be hashed.

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::{Error, Map, Number, Result, Value};

/// The largest integer up to which a 64-bit float holds each integer exactly: these are written as they stand.
const EXACT_MAX: u64 = 1 << 53;

/// The canonical form of a value.
///
/// The library `serde_json_canonicalizer` parses the name of each field again and builds each value in a buffer of its own, which
/// took a seventh of the work of a short call. So this function sorts the fields, and the library writes only other numbers
/// than small integers.
///
/// # Errors
/// If the value has no JSON: a map whose keys are no texts, or a number that is none.
pub fn canonical_json(value: &impl Serialize) -> Result<String> {
    canonical_value(&serde_json::to_value(value)?)
}

/// The same, of a value that is JSON already.
///
/// # Errors
/// None for a value that was parsed.
pub fn canonical_value(value: &Value) -> Result<String> {
    let mut text = Vec::with_capacity(512);
    write(value, &mut text)?;
    // JSON is text; an empty one in its place would be the hash of many values.
    String::from_utf8(text).map_err(Error::custom)
}

fn write(value: &Value, text: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => serde_json::to_writer(text, value),
        Value::Number(number) => write_number(number, text),
        Value::Array(items) => {
            text.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    text.push(b',');
                }
                write(item, text)?;
            }
            text.push(b']');
            Ok(())
        }
        Value::Object(fields) => write_object(fields, text),
    }
}

fn write_object(fields: &Map<String, Value>, text: &mut Vec<u8>) -> Result<()> {
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    // Section 3.2.3: in the order of UTF-16, which is not that of the characters.
    fields.sort_unstable_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    text.push(b'{');
    for (n, (name, value)) in fields.into_iter().enumerate() {
        if n > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut *text, name)?;
        text.push(b':');
        write(value, text)?;
    }
    text.push(b'}');
    Ok(())
}

fn write_number(number: &Number, text: &mut Vec<u8>) -> Result<()> {
    if number.as_i64().is_some_and(|exact| exact.unsigned_abs() <= EXACT_MAX) {
        return serde_json::to_writer(text, number);
    }
    text.extend(serde_json_canonicalizer::to_vec(number)?);
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Values with names and texts that sort and escape in all ways, and numbers of all kinds.
    fn values() -> impl Strategy<Value = Value> {
        let number = prop_oneof![
            any::<i64>().prop_map(|n| json!(n)),
            any::<u64>().prop_map(|n| json!(n)),
            any::<i16>().prop_map(|n| json!(n)),
            any::<f64>().prop_map(|n| json!(n)),
            any::<i32>().prop_map(|n| json!(f64::from(n))),
        ];
        let text =
            || prop_oneof!["[ -~]{0,8}", any::<String>(), "[\u{e000}-\u{ffff}\u{10000}-\u{10100}a\"\\\\\u{1}]{0,4}"];
        let leaf =
            prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number, text().prop_map(Value::from)];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((text(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_the_library_writes(value in values()) {
            prop_assert_eq!(canonical_value(&value).unwrap(), serde_json_canonicalizer::to_string(&value).unwrap());
        }
    }

    #[test]
    fn integers_at_the_end_of_what_is_exact_are_written_as_the_library_does() {
        for number in [1_i64 << 53, (1 << 53) + 1, -(1 << 53), -(1 << 53) - 1, i64::MAX, i64::MIN, 0, -1] {
            let (ours, library) =
                (canonical_json(&number).unwrap(), serde_json_canonicalizer::to_string(&number).unwrap());
            assert_eq!(ours, library, "{number}");
        }
    }

    #[test]
    fn the_order_of_fields_says_nothing() {
        assert_eq!(
            canonical_value(&json!({"b": 1.0, "a": {"d": "é\n", "c": [null]}})).unwrap(),
            r#"{"a":{"c":[null],"d":"é\n"},"b":1}"#
        );
    }
}
