//! Files of settings, whose errors name the line and quote no value.

use std::path::Path;

use toolhost_contract::Redactor;

/// Reads a file of settings, whose errors quote no value.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> anyhow::Result<T> {
    toml::from_str(text).map_err(|error| not_valid(path, text, &error))
}

/// Not the error itself, which quotes the line: a database's address may have a password in it. The line's key has none.
fn not_valid(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = &text[..error.span().map_or(0, |span| span.start)];
    let at = before.matches('\n').count();
    let key = text.lines().nth(at).and_then(|line| line.split_once('=')).map_or("", |(key, _)| key.trim());
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let key = if is_key { format!(" (`{key}`)") } else { String::new() };
    let message = without_value(error.message());
    anyhow::anyhow!("the configuration {} is not valid: line {}{key}: {message}", path.display(), at + 1)
}

/// What was wrong, without the value that was: somebody may have written a key where its name belongs.
pub(crate) fn without_value(message: &str) -> String {
    let mut said = match ["unknown variant `", "invalid type: string \"", "invalid value: string \""]
        .iter()
        .find_map(|start| message.strip_prefix(start).map(|rest| (start, rest)))
    {
        None => message.to_owned(),
        Some((start, rest)) => {
            let kind = start.trim_end_matches(['`', '"', ' ']);
            let expected = rest.rfind(", expected").map_or("", |at| &rest[at..]);
            format!("{kind}{expected}")
        }
    };
    Redactor::default().redact(&mut said);
    said
}
