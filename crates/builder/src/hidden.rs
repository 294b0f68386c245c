//! Characters that a person does not see, or that change how the rest is seen.

use serde_json::Value;

use crate::finding::token;
use crate::limits::HIDDEN_MAX;

/// A hidden character.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub(crate) char: char,
    /// Where, below the value that was looked at: a JSON pointer.
    pub(crate) pointer: String,
    /// The line within its text, from 1.
    pub(crate) line: usize,
    /// The character in that line, from 1.
    pub(crate) column: usize,
}

impl Hidden {
    /// As a person may read it, such as `U+202E right-to-left override or the like`.
    pub(crate) fn name(&self) -> String {
        format!("U+{:04X}, {}", u32::from(self.char), kind(self.char).unwrap_or_default())
    }
}

/// The hidden characters in all texts of a value, the first few, and how many there are.
pub(crate) fn find(value: &Value) -> (Vec<Hidden>, usize) {
    let (mut found, mut count) = (Vec::new(), 0);
    let mut open = vec![(String::new(), value)];
    while let Some((pointer, value)) = open.pop() {
        match value {
            Value::String(text) => scan(text, &pointer, &mut found, &mut count),
            Value::Array(items) => {
                open.extend(items.iter().enumerate().map(|(index, item)| (format!("{pointer}/{index}"), item)));
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let inside = format!("{pointer}/{}", token(name));
                    scan(name, &inside, &mut found, &mut count);
                    open.push((inside, field));
                }
            }
            _ => {}
        }
    }
    (found, count)
}

/// The same in one text.
pub(crate) fn find_in(text: &str) -> (Vec<Hidden>, usize) {
    let (mut found, mut count) = (Vec::new(), 0);
    scan(text, "", &mut found, &mut count);
    (found, count)
}

fn scan(text: &str, pointer: &str, found: &mut Vec<Hidden>, count: &mut usize) {
    let (mut line, mut column, mut before, mut is_first) = (1, 1, ' ', true);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // A mark at the start of a file is a habit of some editors; signs are joined into one by a joiner.
        let is_mark = is_first && c == '\u{feff}';
        let joins = c == '\u{200d}' && is_sign(before) && chars.peek().is_some_and(|next| is_sign(*next));
        let ends = c == '\r' && chars.peek() == Some(&'\n');
        if kind(c).is_some() && !is_mark && !joins && !ends {
            *count += 1;
            if found.len() < HIDDEN_MAX {
                found.push(Hidden { char: c, pointer: pointer.to_owned(), line, column });
            }
        }
        (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
        (before, is_first) = (c, false);
    }
}

/// Whether a person does not see this character, or sees the rest otherwise for it.
pub(crate) fn is_hidden(c: char) -> bool {
    kind(c).is_some() || c == '\n' || c == '\t'
}

fn is_sign(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

fn kind(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            "which changes the direction of the text"
        }
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => "which has no width",
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' => "which has no shape",
        '\u{e0000}'..='\u{e0fff}' => "a tag that is not shown",
        '\u{1b}' => "which begins a command to a terminal",
        '\n' | '\t' => return None,
        c if c.is_control() => "a control character",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::find;

    #[test]
    fn what_deceives_is_found_and_what_is_usual_is_not() {
        let check = |text: &str, expected: usize| assert_eq!(find(&json!([{ "a": text }])).1, expected, "{text:?}");
        check("plain\r\ntext\twith ünicode, 日本語 and 👩\u{200d}💻", 0);
        check("\u{feff}# Title", 0);
        check("a\u{202e}b\u{200b}c\u{1b}[31m\u{e0041}\0", 5);
        check("a\rb\u{feff}", 2);
        assert_eq!(find(&json!({ "a\u{200d}": ["x\ny\u{202e}"] })).0.len(), 2);
        assert_eq!(find(&json!(["x\ny\u{202e}"])).0[0].line, 2);
    }
}
