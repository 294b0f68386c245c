//! The arguments of a call in one line, for people who watch an agent.

use serde_json::Value;

use crate::visible_line;

/// Characters of the arguments in a line.
const ARGUMENTS_CHARS_MAX: usize = 100;
/// Characters of one argument that is neither a path nor a command.
const ARGUMENT_CHARS_MAX: usize = 40;

/// What a call's arguments are, such as `src/main.rs, offset 4`: its paths, or its command, come first; of a long text there
/// is its size. `paths` and `command` are names of arguments. Nothing in it moves a cursor or breaks the line.
///
/// ```
/// use serde_json::json;
/// let told = toolhost_contract::told_arguments(&["path"], None, &json!({"content": "x\ny", "limit": 3, "path": "a.txt"}));
/// assert_eq!(told, "a.txt, content 3 bytes, limit 3");
/// ```
pub fn told_arguments(paths: &[&str], command: Option<&str>, arguments: &Value) -> String {
    if arguments.is_null() {
        return String::new();
    }
    let Value::Object(fields) = arguments else { return short(&value(arguments), ARGUMENTS_CHARS_MAX) };
    let is_first = |name: &str| Some(name) == command || (command.is_none() && paths.contains(&name));
    let mut parts: Vec<String> = Vec::new();
    for name in command.iter().chain(paths) {
        if is_first(name)
            && let Some(given) = fields.get(*name)
        {
            parts.push(listed(given));
        }
    }
    for (name, given) in fields.iter().filter(|(name, _)| !is_first(name)) {
        match given {
            Value::Null => {}
            Value::Bool(true) => parts.push(name.clone()),
            given => parts.push(format!("{name} {}", value(given))),
        }
    }
    short(&parts.join(", "), ARGUMENTS_CHARS_MAX)
}

/// A path or a command, or a list of such, as they are.
fn listed(given: &Value) -> String {
    match given {
        Value::String(text) => text.clone(),
        Value::Array(texts) => texts.iter().map(listed).collect::<Vec<_>>().join(", "),
        other => value(other),
    }
}

fn value(given: &Value) -> String {
    match given {
        Value::String(text) if text.contains('\n') || text.chars().count() > ARGUMENT_CHARS_MAX => {
            format!("{} bytes", text.len())
        }
        Value::String(text) => format!("`{text}`"),
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            format!("({})", items.len())
        }
        Value::Object(_) => "{…}".to_owned(),
        other => other.to_string(),
    }
}

/// In one line: blanks as one, the end of a line as `⏎`; of a long text its beginning, and how much more there is.
fn short(text: &str, chars_max: usize) -> String {
    let lines = text.trim().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let line = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ⏎ ");
    let more = line.chars().count().saturating_sub(chars_max);
    let kept: String = line.chars().take(chars_max).collect();
    let left = if more > 0 { format!(" … ({more} more characters)") } else { String::new() };
    format!("{}{left}", visible_line(&kept))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_and_commands_come_first_and_long_texts_as_their_size() {
        let told = |paths: &[&str], command, arguments| told_arguments(paths, command, &arguments);
        assert_eq!(told(&["path"], None, json!({ "edits": [{}, {}], "path": "a" })), "a, edits (2)");
        assert_eq!(told(&["path"], None, json!({ "path": "a", "content": "x".repeat(41) })), "a, content 41 bytes");
        assert_eq!(told(&["from", "to"], None, json!({ "to": "b", "from": "a" })), "a, b");
        assert_eq!(told(&["paths"], None, json!({ "paths": ["a", "b"] })), "a, b");
        assert_eq!(
            told(
                &["cwd"],
                Some("command"),
                json!({ "background": true, "command": "make   all\n\nmake test", "cwd": "sub" })
            ),
            "make all ⏎ make test, background, cwd `sub`"
        );
        assert_eq!(
            told(&[], None, json!({ "ignoreCase": false, "pattern": "TODO", "x": null })),
            "ignoreCase false, pattern `TODO`"
        );
        assert_eq!(told(&[], None, json!({})), "");
    }

    #[test]
    fn a_line_is_one_line_without_commands_of_the_terminal() {
        let told = told_arguments(&["path"], None, &json!({ "path": "a\u{1b}[2J\u{202e}b" }));
        assert!(!told.contains('\u{1b}') && !told.contains('\u{202e}') && told.starts_with('a'), "{told}");
        assert_eq!(told_arguments(&[], None, &json!("broken")), "`broken`");
        let long = told_arguments(&["path"], None, &json!({ "path": "p".repeat(300) }));
        assert_eq!(long, format!("{} … (200 more characters)", "p".repeat(100)));
    }
}
