//! The JSON object in what a model said, where it stands amid other words: models without structured output think aloud
//! first, and explain afterwards.

use serde_json::{Deserializer, Value};

/// Places at which an object may begin that are tried. A text of many braces is no answer.
const TRIES_MAX: usize = 64;

/// What was found.
#[derive(Debug, PartialEq)]
pub(super) enum Only {
    One(Value),
    None,
    Several,
}

/// The only JSON object of a text. Of several, the only one that has the field `mark`, if one is given. Whatever stands between
/// `<think>` and `</think>` is skipped.
pub(super) fn only_object(text: &str, mark: Option<&str>) -> Only {
    let text = spoken(text);
    let (mut found, mut at) = (Vec::new(), 0);
    for _ in 0..TRIES_MAX {
        let Some(start) = text[at..].find('{').map(|start| at + start) else { break };
        let mut values = Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value @ Value::Object(_))) => {
                at = start + values.byte_offset();
                found.push(value);
            }
            _ => at = start + 1,
        }
    }
    if found.len() > 1
        && let Some(mark) = mark
    {
        found.retain(|value| value.get(mark).is_some());
    }
    match (found.len(), found.pop()) {
        (1, Some(value)) => Only::One(value),
        (0, _) => Only::None,
        _ => Only::Several,
    }
}

/// The text without what the model only thought. A thought that does not end is all that there is.
fn spoken(text: &str) -> &str {
    match text.trim_start().strip_prefix("<think>") {
        Some(thought) => thought.split_once("</think>").map_or("", |(_, spoken)| spoken),
        None => text.rsplit_once("</think>").map_or(text, |(_, spoken)| spoken),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_only_object_is_found_amid_words_and_thoughts() {
        let one = Only::One(json!({ "a": { "b": "}" } }));
        for text in [
            r#"{"a": {"b": "}"}}"#,
            r#"Here it is: {"a": {"b": "}"}} I hope it helps."#,
            "Sure!\n```json\n{\"a\": {\"b\": \"}\"}}\n```\nDone.",
            r#"<think>maybe {"a": 1}?</think>{"a": {"b": "}"}}"#,
            r#"a thought without its beginning {"x": 1}</think> {"a": {"b": "}"}}"#,
            r#"With {braces} and { } no: {"a": {"b": "}"}}"#,
        ] {
            assert_eq!(only_object(text, Some("a")), one, "{text}");
        }
        assert_eq!(only_object(r#"{"x": 1} or {"x": 2}"#, Some("a")), Only::None);
        assert_eq!(only_object(r#"{"a": 1} or {"a": 2}"#, Some("a")), Only::Several);
        assert_eq!(only_object(r#"{"x": 1} or {"x": 2}"#, None), Only::Several);
        assert_eq!(only_object("<think>{\"a\": 1}", None), Only::None);
        for nothing in ["", "no", "[1]", "{", "{\"a\": ", &"{".repeat(100_000), &"{\"a\":".repeat(100_000)] {
            assert_eq!(only_object(nothing, None), Only::None);
        }
    }
}
