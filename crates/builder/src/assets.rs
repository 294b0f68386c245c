//! Assets: which paths they may have, and where texts mention them.

use serde_json::Value;

use crate::files;
use crate::finding::token;

/// Where all assets are.
pub const FOLDER: &str = "assets/";
/// The endings that an asset may have.
pub const EXTENSIONS: [&str; 5] = [".md", ".txt", ".json", ".yaml", ".yml"];

/// What is wrong with the path of an asset, if anything: a stable code and what is meant by it.
#[must_use]
pub fn problem(path: &str) -> Option<(&'static str, String)> {
    if let Some(problem) = files::problem(path) {
        return Some(("asset-path", problem.to_owned()));
    }
    if !path.starts_with(FOLDER) {
        return Some(("asset-path", format!("is not below `{FOLDER}`")));
    }
    if let Some(wrong) = path.chars().find(|c| !is_path_char(*c)) {
        return Some(("asset-path", format!("contains `{wrong}`")));
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_known = EXTENSIONS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending));
    (!is_known).then(|| ("asset-extension", format!("does not end in one of {}", EXTENSIONS.join(" "))))
}

fn is_path_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-')
}

/// A place in a text that names an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) path: String,
    /// Where the path begins: bytes.
    pub(crate) at: usize,
    /// The line within the text, from 0.
    pub(crate) line: usize,
}

/// The assets that a text names, such as `assets/style.md` or `../assets/style.md`. A folder alone is not one.
pub(crate) fn mentions(text: &str) -> Vec<Mention> {
    let mut mentions = Vec::new();
    // The line is counted along the way: counting from the start for each mention would be quadratic.
    let (mut line, mut counted) = (0, 0);
    for (at, _) in text.match_indices(FOLDER) {
        if !begins_a_path(&text[..at]) {
            continue;
        }
        let rest = &text[at..];
        let end = rest.find(|c| !is_path_char(c)).unwrap_or(rest.len());
        // A sentence may end behind the path.
        let path = rest[..end].trim_end_matches(['.', '-', '/', '_']);
        let name = path.rsplit('/').next().unwrap_or_default();
        if path.len() <= FOLDER.len() || !name.contains('.') {
            continue;
        }
        line += text[counted..at].matches('\n').count();
        counted = at;
        mentions.push(Mention { path: path.to_owned(), at, line });
    }
    mentions
}

/// The text with another path wherever it names this asset; none if it does not. Longer paths that begin like it stay.
pub(crate) fn with_mention(text: &str, from: &str, to: &str) -> Option<String> {
    let (mut changed, mut kept) = (String::new(), 0);
    for mention in mentions(text).into_iter().filter(|mention| mention.path == from) {
        changed.push_str(&text[kept..mention.at]);
        changed.push_str(to);
        kept = mention.at + from.len();
    }
    (kept > 0).then(|| changed + &text[kept..])
}

/// Whether a path may begin behind this text: not in the middle of a word or of another folder's path.
fn begins_a_path(before: &str) -> bool {
    let outside = before.trim_end_matches("../").trim_end_matches("./");
    let is_relative = outside.len() < before.len();
    let last = outside.chars().next_back();
    match last {
        // `{project-root}/assets/…` is ours too.
        Some('/') if !is_relative => outside.trim_end_matches('/').ends_with('}'),
        Some(c) => !is_path_char(c),
        None => true,
    }
}

/// The assets that the texts inside a value name, each with the pointer of its text.
pub(crate) fn mentions_in(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(value, &mut String::new(), &mut found);
    found
}

/// A value's depth is bounded where it is parsed, so recursion is.
fn collect(value: &Value, pointer: &mut String, into: &mut Vec<(String, String)>) {
    let length = pointer.len();
    match value {
        Value::String(text) => into.extend(mentions(text).into_iter().map(|m| (pointer.clone(), m.path))),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                collect(item, pointer, into);
                pointer.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                pointer.push('/');
                pointer.push_str(&token(name));
                collect(field, pointer, into);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{mentions, problem};

    #[test]
    fn an_assets_path_is_plain_and_below_its_folder() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(problem(path).map(|(code, _)| code), expected, "{path}");
        };
        check("assets/a.md", None);
        check("assets/deep/er/A-1_b.v2.yaml", None);
        for path in [
            "notes/a.md",
            "assets//a.md",
            "assets/../a.md",
            "assets/./a.md",
            "/assets/a.md",
            "assets/ä.md",
            "assets/a b.md",
            "assets\\a.md",
            "assets/",
            "assets",
            "assets/a.md/",
            "C:assets/a.md",
            "assets/a\0.md",
        ] {
            check(path, Some("asset-path"));
        }
        for path in ["assets/a.exe", "assets/a", "assets/.md", "assets/a.md.sh", "assets/a.MD"] {
            check(path, Some("asset-extension"));
        }
    }

    #[test]
    fn a_text_names_assets_as_people_write_them() {
        let check = |text: &str, expected: &[(&str, usize)]| {
            let found = mentions(text);
            let found: Vec<(&str, usize)> = found.iter().map(|m| (m.path.as_str(), m.line)).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("See assets/a.md.", &[("assets/a.md", 0)]);
        check("`assets/a.md`\n(../assets/b/c.yml)", &[("assets/a.md", 0), ("assets/b/c.yml", 1)]);
        check(
            "@assets/a.md {project-root}/assets/b.md ./assets/c.md",
            &[("assets/a.md", 0), ("assets/b.md", 0), ("assets/c.md", 0)],
        );
        check("the folder assets/ and my/assets/x.md, myassets/x.md, https://x.org/assets/y.md", &[]);
    }
}
