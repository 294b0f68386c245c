//! Forms: fields with labels, what was typed, and what is wrong with it.

use std::collections::BTreeMap;

use super::marks::written_out;

/// A field of a form.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// What belongs into it; empty where the label says it all.
    pub(super) hint: &'static str,
    pub(super) value: String,
    /// Whether it must not be empty.
    pub(super) is_needed: bool,
    /// What is wrong with the value.
    pub(super) error: Option<String>,
    pub(super) shape: Shape,
    /// Words that lines of a text may have, with what each is called. Others can be typed.
    pub(super) known: Vec<(String, String)>,
}

/// What a field looks like.
pub(super) enum Shape {
    Line,
    /// A line for which words are offered, with what each is called; others can be typed.
    Offered(Vec<(String, String)>),
    /// A text of several lines, shown with so many.
    Text(u8),
    /// Values with what they are called.
    Choice(Vec<(String, String)>),
    Check,
}

impl Field {
    pub(super) fn new(name: &'static str, label: &'static str, shape: Shape) -> Self {
        Self { name, label, hint: "", value: String::new(), is_needed: false, error: None, shape, known: Vec::new() }
    }

    pub(super) fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    pub(super) fn needed(self) -> Self {
        Self { is_needed: true, ..self }
    }

    pub(super) fn value(self, value: impl Into<String>) -> Self {
        Self { value: value.into(), ..self }
    }

    /// How many lines a text is shown with; 0 where the field is none.
    pub(super) fn rows(&self) -> u8 {
        if let Shape::Text(rows) = self.shape { rows } else { 0 }
    }

    pub(super) fn choices(&self) -> &[(String, String)] {
        if let Shape::Choice(choices) = &self.shape { choices } else { &[] }
    }

    pub(super) fn offers(&self) -> &[(String, String)] {
        if let Shape::Offered(offers) = &self.shape { offers } else { &[] }
    }

    pub(super) fn is_check(&self) -> bool {
        matches!(self.shape, Shape::Check)
    }

    /// The value with its deceiving marks written out, where it has such: they stay in the field, because what is saved is what it holds.
    pub(super) fn written_out(&self) -> Option<String> {
        written_out(&self.value)
    }

    /// Which elements say more of the field.
    pub(super) fn described_by(&self) -> String {
        let hint = (!self.hint.is_empty()).then(|| format!("{}-hint", self.name));
        let error = self.error.is_some().then(|| format!("{}-error", self.name));
        let marks = self.written_out().map(|_| format!("{}-marks", self.name));
        hint.into_iter().chain(error).chain(marks).collect::<Vec<_>>().join(" ")
    }
}

/// The fields with what was typed.
pub(super) fn filled(mut fields: Vec<Field>, typed: &BTreeMap<String, String>) -> Vec<Field> {
    for field in &mut fields {
        // A box that is not ticked is not sent.
        if let Some(value) = typed.get(field.name) {
            field.value = match field.shape {
                // A browser sends none in a line; what is sent otherwise must not add lines to what is made of it.
                Shape::Line | Shape::Offered(_) => value.replace(['\r', '\n'], " "),
                _ => value.replace("\r\n", "\n"),
            };
        }
    }
    fields
}

/// Says what is wrong beside the field that it is about. `false`: the form has no such field.
pub(super) fn complain(fields: &mut [Field], name: &str, message: &str) -> bool {
    let field = fields.iter_mut().find(|field| field.name == name);
    let found = field.is_some();
    if let Some(field) = field {
        field.error = Some(message.to_owned());
    }
    found
}

/// A choice of words, each called by itself, with `any` for none of them.
pub(super) fn choice(any: Option<&str>, values: &[&str]) -> Shape {
    let none = any.map(|any| (String::new(), any.to_owned()));
    let words = values.iter().map(|value| ((*value).to_owned(), super::text::words(value)));
    Shape::Choice(none.into_iter().chain(words).collect())
}
