//! YAML front matter as a JSON value.
//!
//! Built from the parser's events rather than by its loader, so that nesting, aliases and doubled names are decided
//! here: an alias is filled in only as long as the whole stays below a limit.

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use serde_json::{Map, Number, Value};

use crate::finding::token;
use crate::limits::{DEPTH_MAX, YAML_EXPANDED_MAX};

/// What a node weighs beside its text.
const NODE_WEIGHT: usize = 32;

/// Why a text is not the YAML we take.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// From 1, in the text that was parsed.
    pub(crate) line: usize,
    /// From 1, in characters.
    pub(crate) column: usize,
}

/// A node that is still open.
enum Open {
    List { items: Vec<Value>, anchor: usize },
    Object { fields: Map<String, Value>, name: Option<String>, anchor: usize },
}

/// A node that an alias may stand for.
#[derive(Clone)]
struct Anchored {
    value: Value,
    weight: usize,
    depth: usize,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    weight: usize,
    documents: usize,
    root: Option<Value>,
}

/// The one document of a text; null if it is empty.
pub(crate) fn parse(text: &str) -> Result<Value, Problem> {
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder::default();
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| refused(&error))?;
        let at =
            |(code, message): Refusal| Problem { code, message, line: span.start.line(), column: span.start.col() + 1 };
        if matches!(event, Event::StreamEnd) {
            break;
        }
        builder.take(event).map_err(at)?;
    }
    Ok(builder.root.unwrap_or(Value::Null))
}

/// A value in the source.
pub(crate) struct Place {
    /// A JSON pointer.
    pub(crate) pointer: String,
    /// Where its name begins, if it has one: bytes.
    pub(crate) name_at: Option<usize>,
    /// Where it stands, with its quotes; of a list or an object, where it begins: bytes.
    pub(crate) at: Range<usize>,
    /// Whether it is a text, and no list, no object and no alias.
    pub(crate) is_scalar: bool,
}

/// Where the values stand in a text that [`parse`] takes. What is inside of what an alias stands for has no place of its
/// own, and is left out.
pub(crate) fn places(text: &str) -> Vec<Place> {
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = |index: usize| bytes.get(index).copied().unwrap_or(text.len());
    let mut found: Vec<Place> = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    let mut name_at = None;
    let mut parser = Parser::new_from_str(text);
    while let Some(Ok((event, span))) = parser.next_event() {
        if levels.len() > DEPTH_MAX {
            break;
        }
        if let Some(Level::Object(next @ None)) = levels.last_mut() {
            match &event {
                Event::Scalar(name, ..) => *next = Some(name.to_string()),
                Event::Alias(_) => *next = Some(String::new()),
                Event::MappingEnd => finish(&mut levels, true),
                _ => return found,
            }
            name_at = Some(at(span.start.index()));
            continue;
        }
        let mut place = |levels: &[Level], end: usize, is_scalar| {
            let start = at(span.start.index());
            let name_at = name_at.take().filter(|_| matches!(levels.last(), Some(Level::Object(_))));
            found.push(Place { pointer: pointer(levels), name_at, at: start..end.max(start), is_scalar });
        };
        match event {
            Event::SequenceStart(..) => {
                place(&levels, 0, false);
                levels.push(Level::List(0));
            }
            Event::MappingStart(..) => {
                place(&levels, 0, false);
                levels.push(Level::Object(None));
            }
            Event::SequenceEnd | Event::MappingEnd => finish(&mut levels, true),
            Event::Scalar(..) => {
                place(&levels, at(span.end.index()), true);
                finish(&mut levels, false);
            }
            Event::Alias(_) => {
                place(&levels, 0, false);
                finish(&mut levels, false);
            }
            _ => {}
        }
    }
    found
}

/// What keeps a text from being YAML: one that anybody's programs read, with several documents and tags of their own.
pub(crate) fn syntax(text: &str) -> Result<(), Problem> {
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        match next {
            Ok((Event::StreamEnd, _)) => break,
            Ok(_) => {}
            // Deeper than the scanner goes is no error of the text.
            Err(error) if error.info().contains("recursion limit") => break,
            Err(error) => return Err(refused(&error)),
        }
    }
    Ok(())
}

fn refused(error: &ScanError) -> Problem {
    Problem {
        // The scanner reads ahead, so its own limit may be met before ours.
        code: if error.info().contains("recursion limit") { "TOO_DEEP" } else { "YAML_SYNTAX" },
        message: error.info().to_owned(),
        line: error.marker().line(),
        column: error.marker().col() + 1,
    }
}

/// The fields of a text that [`parse`] takes as an object, each with its lines: bytes, from the start of its first line to
/// the end of its last. Comments and empty lines behind it are no part of it. None where a field does not have lines of
/// its own, as in `{a: 1, b: 2}`.
pub(crate) fn fields(text: &str) -> Option<Vec<(String, Range<usize>)>> {
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut names: Vec<(String, usize)> = Vec::new();
    let (mut depth, mut is_name) = (0_usize, true);
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.ok()?;
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                depth += 1;
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => depth -= 1,
            Event::Scalar(name, ..) if depth == 1 && is_name => {
                let at = bytes.get(span.start.index()).copied()?;
                // A block starts each name on a line of its own.
                if !(at == 0 || text[..at].ends_with('\n')) {
                    return None;
                }
                names.push((name.to_string(), at));
                is_name = false;
                continue;
            }
            Event::Scalar(..) | Event::Alias(_) => {}
            _ => continue,
        }
        // A value is complete.
        if depth == 1 {
            is_name = true;
        }
    }
    let ends = names.iter().skip(1).map(|(_, at)| *at).chain([text.len()]).collect::<Vec<_>>();
    let fields = names.into_iter().zip(ends).map(|((name, start), end)| (name, start..end_of(text, start, end)));
    Some(fields.collect())
}

/// The end of the last line in a range that is neither empty nor a comment at its beginning.
fn end_of(text: &str, start: usize, end: usize) -> usize {
    let mut last = end;
    for line in text[start..end].split_inclusive('\n').rev() {
        if !line.trim().is_empty() && !line.starts_with('#') {
            break;
        }
        last -= line.len();
    }
    last
}

/// An open list with its next index, or an open object with the name whose value comes next.
enum Level {
    List(usize),
    Object(Option<String>),
}

fn pointer(levels: &[Level]) -> String {
    let part = |level: &Level| match level {
        Level::List(index) => format!("/{index}"),
        Level::Object(name) => format!("/{}", token(name.as_deref().unwrap_or_default())),
    };
    levels.iter().map(part).collect()
}

/// A value is complete: an open list or object itself, or something in it.
fn finish(levels: &mut Vec<Level>, is_own: bool) {
    if is_own {
        levels.pop();
    }
    match levels.last_mut() {
        Some(Level::List(index)) => *index += 1,
        Some(Level::Object(name)) => *name = None,
        None => {}
    }
}

type Refusal = (&'static str, String);

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), Refusal> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(("YAML_SYNTAX", "there is more than one document".to_owned()));
                }
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => {
                plain_tag(tag.as_deref(), "seq")?;
                self.enter(Open::List { items: Vec::new(), anchor })
            }
            Event::MappingStart(anchor, tag) => {
                plain_tag(tag.as_deref(), "map")?;
                self.enter(Open::Object { fields: Map::new(), name: None, anchor })
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(),
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, anchor, tag.as_deref()),
            Event::Alias(anchor) => self.alias(anchor),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn enter(&mut self, open: Open) -> Result<(), Refusal> {
        if self.open.len() >= DEPTH_MAX {
            return Err(("TOO_DEEP", format!("nests deeper than {DEPTH_MAX} levels")));
        }
        if matches!(self.open.last(), Some(Open::Object { name: None, .. })) {
            return Err(("YAML_KEY", "a name must be a text, not a list or an object".to_owned()));
        }
        self.weigh(NODE_WEIGHT)?;
        self.open.push(open);
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Refusal> {
        let (value, anchor) = match self.open.pop() {
            Some(Open::List { items, anchor }) => (Value::Array(items), anchor),
            Some(Open::Object { fields, anchor, .. }) => (Value::Object(fields), anchor),
            None => return Err(("YAML_SYNTAX", "an end without a start".to_owned())),
        };
        self.keep(anchor, &value)?;
        self.put(value)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, tag: Option<&Tag>) -> Result<(), Refusal> {
        self.weigh(NODE_WEIGHT + text.len())?;
        if let Some(Open::Object { name: name @ None, fields, .. }) = self.open.last_mut() {
            if fields.contains_key(text) {
                return Err(("YAML_DUPLICATE_KEY", format!("the name `{text}` stands twice in one object")));
            }
            *name = Some(text.to_owned());
            return self.keep(anchor, &Value::String(text.to_owned()));
        }
        let value = scalar(text, style, tag)?;
        self.keep(anchor, &value)?;
        self.put(value)
    }

    fn alias(&mut self, anchor: usize) -> Result<(), Refusal> {
        let Some(meant) = self.anchors.get(&anchor) else {
            return Err(("YAML_ALIAS", "an alias for a node that is not complete".to_owned()));
        };
        if self.open.len() + meant.depth > DEPTH_MAX {
            return Err(("TOO_DEEP", format!("nests deeper than {DEPTH_MAX} levels through an alias")));
        }
        // Before the copy is made: the bomb is in the copies.
        let weight = meant.weight;
        self.weigh(weight)?;
        let Some(value) = self.anchors.get(&anchor).map(|meant| meant.value.clone()) else { return Ok(()) };
        match (self.open.last_mut(), &value) {
            (Some(Open::Object { name: name @ None, .. }), Value::String(text)) => *name = Some(text.clone()),
            (Some(Open::Object { name: None, .. }), _) => {
                return Err(("YAML_KEY", "a name must be a text".to_owned()));
            }
            _ => return self.put(value),
        }
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn put(&mut self, value: Value) -> Result<(), Refusal> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Object { fields, name, .. }) => match name.take() {
                Some(name) => {
                    if fields.insert(name, value).is_some() {
                        return Err(("YAML_DUPLICATE_KEY", "a name stands twice in one object".to_owned()));
                    }
                }
                None => return Err(("YAML_KEY", "a name must be a text".to_owned())),
            },
        }
        Ok(())
    }

    fn keep(&mut self, anchor: usize, value: &Value) -> Result<(), Refusal> {
        if anchor != 0 {
            let (weight, depth) = measure(value);
            // The copy kept for the aliases is memory too.
            self.weigh(weight)?;
            self.anchors.insert(anchor, Anchored { value: value.clone(), weight, depth });
        }
        Ok(())
    }

    fn weigh(&mut self, weight: usize) -> Result<(), Refusal> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > YAML_EXPANDED_MAX {
            return Err(("YAML_ALIAS_BOMB", format!("comes to more than {YAML_EXPANDED_MAX} bytes with its aliases")));
        }
        Ok(())
    }
}

/// Weight and depth. The depth is bounded, so recursion is.
fn measure(value: &Value) -> (usize, usize) {
    match value {
        Value::Array(items) => {
            items.iter().map(measure).fold((NODE_WEIGHT, 1), |(weight, depth), (w, d)| (weight + w, depth.max(d + 1)))
        }
        Value::Object(fields) => fields.iter().fold((NODE_WEIGHT, 1), |(weight, depth), (name, value)| {
            let (w, d) = measure(value);
            (weight + NODE_WEIGHT + name.len() + w, depth.max(d + 1))
        }),
        Value::String(text) => (NODE_WEIGHT + text.len(), 0),
        _ => (NODE_WEIGHT, 0),
    }
}

fn plain_tag(tag: Option<&Tag>, kind: &str) -> Result<(), Refusal> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == kind) => Err(unknown_tag(tag)),
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag) -> Refusal {
    ("YAML_TAG", format!("the tag `{tag}` means nothing here"))
}

/// The core schema of YAML 1.2: `yes` is a text, `true` is not.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Refusal> {
    if let Some(tag) = tag {
        let wrong = || ("YAML_TAG", format!("`{text}` is not of the kind that its tag `{tag}` says"));
        return match (tag.is_yaml_core_schema(), tag.suffix.as_str()) {
            (true, "str") => Ok(Value::String(text.to_owned())),
            (true, "null") => Ok(Value::Null),
            (true, "bool") => Some(resolve(text)?).filter(Value::is_boolean).ok_or_else(wrong),
            (true, "int") => Some(resolve(text)?).filter(|v| v.is_i64() || v.is_u64()).ok_or_else(wrong),
            (true, "float") => Some(resolve(text)?).filter(Value::is_number).ok_or_else(wrong),
            _ => Err(unknown_tag(tag)),
        };
    }
    if style == ScalarStyle::Plain { resolve(text) } else { Ok(Value::String(text.to_owned())) }
}

fn resolve(text: &str) -> Result<Value, Refusal> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => return number(text),
    })
}

fn number(text: &str) -> Result<Value, Refusal> {
    let digits = text.trim_start_matches(['+', '-']);
    let not_json = || ("YAML_NUMBER", format!("`{text}` cannot be written in JSON; put it in quotes"));
    if matches!(digits, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Err(not_json());
    }
    let radix = |prefix: &str, radix| digits.strip_prefix(prefix).and_then(|d| u64::from_str_radix(d, radix).ok());
    if text == digits
        && let Some(value) = radix("0x", 16).or_else(|| radix("0o", 8))
    {
        return Ok(Value::Number(value.into()));
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    let is_number = digits.len() + 1 >= text.len()
        && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    if !is_number {
        return Ok(Value::String(text.to_owned()));
    }
    if let Ok(value) = plain.parse::<i64>() {
        return Ok(Value::Number(value.into()));
    }
    if let Ok(value) = plain.parse::<u64>() {
        return Ok(Value::Number(value.into()));
    }
    match plain.parse::<f64>() {
        Ok(value) => Number::from_f64(value).map(Value::Number).ok_or_else(not_json),
        // A version such as `1.2.3`, or a date.
        Err(_) => Ok(Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    #[test]
    fn plain_scalars_are_those_of_the_core_schema() {
        let check = |text: &str, value: Value| assert_eq!(parse(text).ok(), Some(value), "{text}");
        check("yes", json!("yes"));
        check("True", json!(true));
        check("~", json!(null));
        check("0755", json!(755));
        check("'0755'", json!("0755"));
        check("0o17", json!(15));
        check("0x1F", json!(31));
        check("-0x1F", json!("-0x1F"));
        check("0b101", json!("0b101"));
        check("1_000", json!("1_000"));
        check("1.2.3", json!("1.2.3"));
        check("2024-01-02", json!("2024-01-02"));
        check("!!float 1", json!(1));
    }

    #[test]
    fn a_problem_has_a_code_and_a_place() {
        let check = |text: &str, expected: (&str, usize, usize)| {
            let problem = parse(text).err().map(|problem| (problem.code, problem.line, problem.column));
            assert_eq!(problem, Some(expected), "{text}");
        };
        check("é: 1\né: 2", ("YAML_DUPLICATE_KEY", 2, 1));
        check("1: a\n'1': b", ("YAML_DUPLICATE_KEY", 2, 1));
        check("&k a: 1\n*k : 2", ("YAML_DUPLICATE_KEY", 2, 6));
        check("a: !x 1", ("YAML_TAG", 1, 4));
        check("a: .nan", ("YAML_NUMBER", 1, 4));
        check("? {a: b}\n: c", ("YAML_KEY", 1, 3));
    }
}
