//! The arguments of a call as a person edits them: the texts among them each in a field of its own, and all as JSON.

use serde_json::Value;
use toolhost_contract::visible_line;
use toolhost_host::Shown;

use super::super::marks::written_out;

/// More texts than this are edited in the JSON.
const FIELDS_MAX: usize = 8;
/// The lines that a field shows of a long text.
const ROWS_MAX: usize = 16;

/// A text among the arguments.
pub(super) struct TextField {
    /// The argument's name, as it is shown and as the form sends it behind `text:`.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) rows: usize,
}

/// The texts among the arguments that a person may edit as they stand. `arguments`: as JSON, maybe edited before.
pub(super) fn text_fields(shown: &Shown, arguments: &str) -> Vec<TextField> {
    let edited: Value = serde_json::from_str(arguments).unwrap_or_default();
    let fields = texts(shown).map(|(name, text)| {
        let text = edited.get(name).and_then(Value::as_str).unwrap_or(text);
        TextField { name: name.to_owned(), rows: text.lines().count().clamp(1, ROWS_MAX), text: text.to_owned() }
    });
    fields.collect()
}

/// The texts of the call as it was asked. Characters that cannot be seen are written out in the JSON alone, and a name that is none of
/// ours stands in no form.
fn texts(shown: &Shown) -> impl Iterator<Item = (&str, &str)> {
    let fields = shown.arguments.as_object().into_iter().flatten();
    let texts = fields.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    texts.filter(|(name, text)| visible_line(name) == **name && written_out(text).is_none()).take(FIELDS_MAX)
}

/// The arguments that a form has, as JSON: those of its JSON, and in them the texts that were changed in fields of their own. JSON that
/// cannot be read is left as it is.
pub(super) fn edited_arguments<'f>(shown: &Shown, field: &impl Fn(&str) -> &'f str) -> String {
    let json = field("arguments");
    // A form without these fields has none of the texts.
    if field("texts") != "on" {
        return json.to_owned();
    }
    let Ok(Value::Object(mut arguments)) = serde_json::from_str(json) else { return json.to_owned() };
    for (name, was) in texts(shown) {
        let is = field(&format!("text:{name}")).replace("\r\n", "\n");
        // A browser sends line ends of its own; texts with other ones than `\n` have no field.
        if is != was {
            arguments.insert(name.to_owned(), Value::String(is));
        }
    }
    serde_json::to_string_pretty(&Value::Object(arguments)).unwrap_or_else(|_| json.to_owned())
}
