//! JSON as a package may contain it: names once per object, nesting bounded.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::finding::{Finding, token};

/// Parses a file. `serde_json` itself refuses to go deeper than [`crate::limits::DEPTH_MAX`].
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Value, Box<Finding>> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(file, error))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| Box::new(syntax(file, &error)))
}

pub(crate) fn not_utf8(file: &str, error: std::str::Utf8Error) -> Finding {
    let message = format!("`{file}` is not UTF-8 from byte {}", error.valid_up_to());
    Finding::error("NOT_UTF8", file, "", message).expected("UTF-8 text").hint("save the file as UTF-8")
}

fn syntax(file: &str, error: &serde_json::Error) -> Finding {
    let said = error.to_string();
    let finding = if said.contains("recursion limit") {
        Finding::error("TOO_DEEP", file, "", format!("`{file}` nests too deep")).expected("at most 128 levels")
    } else if let Some((name, _)) = said.strip_prefix(DUPLICATE).and_then(|rest| rest.split_once('\u{1}')) {
        let name = token(name);
        let message = format!("`{file}` has the field `{name}` twice in one object");
        Finding::error("JSON_DUPLICATE_KEY", file, "", message).expected("each field once").actual(name)
    } else {
        Finding::error("JSON_SYNTAX", file, "", format!("`{file}` is not JSON: {said}")).expected("valid JSON")
    };
    finding.at(error.line(), error.column()).hint("fix the file at this line")
}

/// Begins the message of an error that [`syntax`] recognises.
const DUPLICATE: &str = "duplicate\u{1}";

/// Reads a value, and refuses an object that has a name twice: readers disagree about which of the two counts.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        Value::deserialize(reader)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(Strict)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if fields.contains_key(&name) {
                return Err(A::Error::custom(format!("{DUPLICATE}{name}\u{1}")));
            }
            let value = object.next_value_seed(Strict)?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}
