//! The arguments of a call as a person edits them: the texts among them each in a field of its own, and all as JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use toolhost_contract::{Answer, ErrorKind, ToolError, visible_json, visible_line};
use toolhost_host::Shown;
use toolhost_store::Ask;

use super::super::marks::written_out;
use super::super::parts::{Line, Parts};
use super::super::visitor::Membership;

/// More texts than this are edited in the JSON.
const FIELDS_MAX: usize = 12;
/// How deep a text may stand that has a field.
const DEPTH_MAX: usize = 4;
/// The lines that a field shows of a long text.
const ROWS_MAX: usize = 16;
/// What the names of these fields begin with; the place of the text among the arguments follows (RFC 6901).
const FIELD: &str = "text:";

/// A text among the arguments.
pub(super) struct TextField {
    /// Its name in the form.
    pub(super) name: String,
    /// `content`, `edits 1: replace`
    pub(super) label: String,
    pub(super) text: String,
    pub(super) rows: usize,
    /// Whether what is wrong is about it.
    pub(super) is_wrong: bool,
}

/// What a form has of the arguments.
#[derive(Default)]
pub(super) struct Typed {
    /// All of them as JSON, as it was typed; `None` where the form has none.
    json: Option<String>,
    /// The texts, by their places.
    texts: BTreeMap<String, String>,
}

impl Typed {
    pub(super) fn of<'f>(shown: &Shown, field: &impl Fn(&str) -> &'f str) -> Self {
        let json = Some(field("arguments")).filter(|json| !json.is_empty()).map(str::to_owned);
        // A form without these fields has none of the texts. A browser sends line ends of its own.
        let typed = |(place, _): (String, &str)| {
            let text = field(&format!("{FIELD}{place}")).replace("\r\n", "\n");
            (place, text)
        };
        let texts =
            if field("texts") == "on" { texts(shown).into_iter().map(typed).collect() } else { BTreeMap::new() };
        Self { json, texts }
    }

    /// Whether it is another call than the one that is asked about.
    pub(super) fn is_changed(&self, shown: &Shown) -> bool {
        let json = self.json.as_ref().map(|json| serde_json::from_str::<Value>(json));
        json.is_some_and(|json| !json.is_ok_and(|json| json == shown.arguments)) || self.changed(shown).next().is_some()
    }

    fn changed(&self, shown: &Shown) -> impl Iterator<Item = (&String, &String)> {
        let texts: BTreeMap<String, &str> = texts(shown).into_iter().collect();
        self.texts.iter().filter(move |(place, text)| texts.get(*place).is_some_and(|was| was != text))
    }

    /// All arguments as JSON, with the texts that were changed in fields of their own.
    ///
    /// # Errors
    /// The JSON has no such text any more. JSON that cannot be read is left as it is.
    pub(super) fn arguments(&self, shown: &Shown) -> Result<String, ToolError> {
        let json = self.json.clone().unwrap_or_default();
        let Ok(mut arguments) = serde_json::from_str::<Value>(&json) else { return Ok(json) };
        for (place, text) in self.changed(shown) {
            let Some(text_of_json) = arguments.pointer_mut(place) else {
                let message = format!(
                    "`{}` is changed in its field, and taken out of the JSON: say it in one of the two",
                    label(place)
                );
                return Err(ToolError::new(ErrorKind::Validation, message));
            };
            *text_of_json = Value::String(text.clone());
        }
        Ok(serde_json::to_string_pretty(&arguments).unwrap_or(json))
    }

    /// The JSON as it was typed; else as it was asked.
    fn json(&self, shown: &Shown) -> String {
        let asked = || serde_json::to_string_pretty(&shown.arguments).unwrap_or_default();
        self.json.clone().unwrap_or_else(asked)
    }

    /// The texts as they were typed; else as they were asked. `error`: what is wrong with the arguments.
    fn fields(&self, shown: &Shown, error: Option<&str>) -> Vec<TextField> {
        let field = |(place, asked): (String, &str)| {
            let text = self.texts.get(&place).map_or(asked, String::as_str);
            let first = place.split('/').nth(1).unwrap_or_default();
            let names =
                |error: &str| [format!("`{first}`"), format!("`{place}`")].iter().any(|name| error.contains(name));
            TextField {
                name: format!("{FIELD}{place}"),
                label: label(&place),
                rows: text.lines().count().max(asked.lines().count()).clamp(1, ROWS_MAX),
                text: text.to_owned(),
                is_wrong: error.is_some_and(names),
            }
        };
        texts(shown).into_iter().map(field).collect()
    }
}

/// The arguments of a call as a page offers them for an edit.
pub(super) struct Edit {
    /// All of them as JSON; empty where the call runs as it is or not at all.
    pub(super) json: String,
    pub(super) fields: Vec<TextField>,
    /// Whether what is wrong is about one of the fields.
    pub(super) is_of_field: bool,
    /// What the call would do as it was edited, where that was asked.
    pub(super) effect: Option<EditedEffect>,
}

impl Edit {
    /// `error`: what is wrong with what was typed.
    pub(super) fn of(shown: &Shown, typed: &Typed, error: Option<&str>, effect: Option<EditedEffect>) -> Self {
        // A mask in an argument would be written as it stands.
        if !shown.editable || shown.masked > 0 {
            return Self { json: String::new(), fields: Vec::new(), is_of_field: false, effect: None };
        }
        let fields = typed.fields(shown, error);
        let is_of_field = fields.iter().any(|field| field.is_wrong);
        Self { json: visible_json(&typed.json(shown)), fields, is_of_field, effect }
    }
}

/// What a call would do with other arguments.
pub(super) struct EditedEffect {
    pub(super) summary: String,
    pub(super) lines: Vec<Line>,
    /// Whether this is only the beginning of it.
    pub(super) is_cut: bool,
}

impl EditedEffect {
    /// `arguments`: all of them, as JSON.
    ///
    /// # Errors
    /// They are no JSON, or the call cannot be made with them.
    pub(super) async fn of(
        membership: &Membership,
        (ask, shown): (&Ask, &Shown),
        arguments: &str,
    ) -> Result<Self, ToolError> {
        let Answer::AllowEdited { arguments } = shown.answer("edit", Some(arguments.to_owned()))? else {
            return Err(ToolError::new(ErrorKind::Validation, "This is not a call that can be edited"));
        };
        let made = membership.project.gate.preview_edited(ask, shown, arguments).await?;
        let parts = Parts::of(&made.detail, "");
        let (lines, _) = parts.lines(1, true);
        Ok(Self { summary: visible_line(&made.summary), lines, is_cut: parts.count() > 1 || made.left_out > 0 })
    }
}

/// The texts of the call as it was asked, by their places. Characters that cannot be seen are written out in the JSON alone, and a place
/// whose name has such stands in no form.
fn texts(shown: &Shown) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    let mut open: Vec<(String, &Value, usize)> = vec![(String::new(), &shown.arguments, 0)];
    while let Some((place, value, depth)) = open.pop() {
        let inside = |name: &str| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
        match value {
            Value::String(text) if visible_line(&place) == place && written_out(text).is_none() => {
                found.push((place, text.as_str()));
            }
            Value::Object(fields) if depth < DEPTH_MAX => {
                open.extend(fields.iter().rev().map(|(name, value)| (inside(name), value, depth + 1)));
            }
            Value::Array(items) if depth < DEPTH_MAX => {
                let items = items.iter().enumerate().take(FIELDS_MAX).rev();
                open.extend(items.map(|(number, value)| (inside(&number.to_string()), value, depth + 1)));
            }
            _ => {}
        }
        if found.len() == FIELDS_MAX {
            break;
        }
    }
    found
}

/// A place in words: `/edits/0/replace` is `edits 1: replace`.
fn label(place: &str) -> String {
    let mut words = String::new();
    let mut after_number = false;
    for part in place.split('/').skip(1) {
        let number = part.parse::<usize>().ok();
        if !words.is_empty() {
            words.push_str(if number.is_none() && after_number { ": " } else { " " });
        }
        match number {
            Some(number) => words.push_str(&(number + 1).to_string()),
            None => words.push_str(&part.replace("~1", "/").replace("~0", "~")),
        }
        after_number = number.is_some();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_place_is_told_in_words() {
        for (place, words) in [("/path", "path"), ("/edits/0/replace", "edits 1: replace"), ("/a~1b/2", "a/b 3")] {
            assert_eq!(label(place), words);
        }
    }
}
