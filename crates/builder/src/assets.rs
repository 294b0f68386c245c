//! Assets: which paths they may have, and where texts mention them.

use serde_json::Value;

use crate::document::code_lines;
use crate::files;
use crate::finding::token;
use crate::hidden;

/// Where all assets are.
pub const FOLDER: &str = "assets/";
/// The endings of assets that are texts: those that a set of changes may write. Assets with other endings are carried as
/// they are.
pub const EXTENSIONS: [&str; 5] = [".md", ".txt", ".json", ".yaml", ".yml"];

/// Whether a file of this name is a text.
pub(crate) fn is_text(path: &str) -> bool {
    EXTENSIONS.iter().any(|ending| path.ends_with(ending))
}

/// What is wrong with the path of an asset that is to be written, if anything: a stable code and what is meant by it.
#[must_use]
pub fn problem(path: &str) -> Option<(&'static str, String)> {
    if let Some(problem) = files::problem(path) {
        return Some(("ASSET_PATH", problem.to_owned()));
    }
    if !path.starts_with(FOLDER) {
        return Some(("ASSET_PATH", format!("is not below `{FOLDER}`")));
    }
    if let Some(wrong) = path.chars().find(|c| !is_path_char(*c)) {
        return Some(("ASSET_PATH", format!("contains `{}`", wrong.escape_debug())));
    }
    if path.split('/').any(|part| part.trim() != part || part.ends_with('.')) {
        return Some((
            "ASSET_PATH",
            "has a name with a space at its start or end, or with a dot at its end".to_owned(),
        ));
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_known = EXTENSIONS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending));
    (!is_known).then(|| ("ASSET_EXTENSION", format!(
            "does not end in one of {}: other files are carried as they are, and a person changes them by importing the package again",
            EXTENSIONS.join(" ")
        )))
}

/// Characters that the path of a new asset may have: those that every file system takes, that a text can name between
/// quotes, and that are seen.
fn is_path_char(c: char) -> bool {
    let is_mark = matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '`' | '{' | '}');
    !is_mark && !hidden::is_hidden(c) && (c == ' ' || !c.is_whitespace())
}

/// Characters of a path that a text mentions without quotes.
fn is_mentioned_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '/' | '-')
}

/// A place in a text that names an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) path: String,
    /// Where the path begins, and how long it is as it is written: bytes.
    pub(crate) at: usize,
    len: usize,
    /// Whether it is written as a part of an address, `%20` for a blank.
    is_encoded: bool,
    /// Whether it stands between quotes, or is all of a text, where any path may stand.
    is_quoted: bool,
    /// The line within the text, from 0.
    pub(crate) line: usize,
    /// The character in that line, from 1.
    pub(crate) column: usize,
}

/// The assets that a text names, such as `assets/style.md` or `../assets/style.md`. A folder alone is not one.
pub(crate) fn mentions(text: &str) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    // Line and column are counted along the way: counting from the start for each mention would be quadratic.
    let (mut line, mut column, mut counted) = (0, 1, 0);
    for (at, _) in text.match_indices(FOLDER) {
        let Some(before) = before_path(&text[..at]) else { continue };
        let rest = &text[at..];
        let plain = &rest[..rest.find(|c| !is_mentioned_char(c)).unwrap_or(rest.len())];
        // A sentence may end behind the path.
        let in_quotes = quoted(before, rest).or_else(|| alone(before, rest, plain));
        let encoded = if in_quotes.is_none() { encoded(before, rest) } else { None };
        let written = in_quotes.unwrap_or_else(|| plain.trim_end_matches(['.', '-', '/', '_']));
        let (written, decoded) = encoded.unwrap_or_else(|| (written, written.to_owned()));
        let path = decoded.as_str();
        let name = path.rsplit('/').next().unwrap_or_default();
        if path.len() <= FOLDER.len() || !name.contains('.') {
            continue;
        }
        let passed = &text[counted..at];
        line += passed.matches('\n').count();
        column = match passed.rsplit_once('\n') {
            Some((_, begun)) => begun.chars().count() + 1,
            None => column + passed.chars().count(),
        };
        counted = at;
        let (len, is_encoded, is_quoted) = (written.len(), written != path, in_quotes.is_some());
        mentions.push(Mention { path: decoded, at, len, is_encoded, is_quoted, line, column });
    }
    mentions
}

/// A path that is all of a text, such as a field of a menu: quotes would be a part of it. Where its name goes on with
/// characters that end one in a sentence; a path that ends before them is the first word of one.
fn alone<'a>(before: &str, rest: &'a str, plain: &str) -> Option<&'a str> {
    // First, so that only the first mention of a text looks through the rest of it.
    if !before.trim_start_matches("../").trim_start_matches("./").is_empty() {
        return None;
    }
    let is_word = plain.rsplit('/').next().is_some_and(|name| name.contains('.')) && plain.len() < rest.len();
    let (_, ending) = rest.rsplit_once('.')?;
    let is_path = !is_word
        && !rest.contains(['\n', '<', '>', '`', '"', '\\', '{', '*'])
        && !rest[FOLDER.len()..].contains(FOLDER)
        && (1..=8).contains(&ending.len())
        && ending.bytes().all(|b| b.is_ascii_alphanumeric())
        && files::problem(rest).is_none();
    is_path.then_some(rest)
}

/// The target of a link, in which blanks and the like are written as in an address: as it is written, and as it is meant.
fn encoded<'a>(before: &str, rest: &'a str) -> Option<(&'a str, String)> {
    if !before.ends_with("](") {
        return None;
    }
    let near = &rest[..rest.floor_char_boundary(MENTION_BYTES_MAX)];
    let written = &near[..near.find([')', ' ', '\n'])?];
    let mut bytes = Vec::with_capacity(written.len());
    let mut parts = written.split('%');
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok())?;
        bytes.push(code);
        bytes.extend(part[2..].bytes());
    }
    let meant = String::from_utf8(bytes).ok()?;
    (written.contains('%') && files::problem(&meant).is_none()).then_some((written, meant))
}

/// A path between quotes, where it may hold spaces and other characters that end one without quotes.
fn quoted<'a>(before: &str, rest: &'a str) -> Option<&'a str> {
    let end = match before.chars().next_back()? {
        '<' => '>',
        mark @ ('`' | '"' | '\'') => mark,
        _ => return None,
    };
    let near = &rest[..rest.floor_char_boundary(MENTION_BYTES_MAX)];
    let path = &near[..near.find([end, '\n'])?];
    let (_, ending) = path.rsplit_once('.')?;
    let is_path = rest[path.len()..].starts_with(end)
        && (1..=8).contains(&ending.len())
        && ending.bytes().all(|b| b.is_ascii_alphanumeric())
        && !path.contains(['<', '>', '`', '"', '\\', '{', '*'])
        && files::problem(path).is_none();
    is_path.then_some(path)
}

/// Longest path between quotes or in an address that is looked at, and longest name of a variable in front of a path: bytes.
const MENTION_BYTES_MAX: usize = 1024;
const VARIABLE_BYTES_MAX: usize = 256;

/// Where a path that needs quotes may get them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// Markdown: behind this byte. Before it is front matter, in which quotes would mean something else.
    From(usize),
    /// Nowhere.
    No,
}

/// The text with another path wherever it names this asset; none if it does not. Longer paths that begin like it stay,
/// and so does a mention without quotes where the other path needs them and can get none: validation tells of it.
pub(crate) fn with_mention(text: &str, from: &str, to: &str, quotes: Quotes) -> Option<String> {
    let (mut changed, mut kept) = (String::new(), 0);
    let needs_quotes = !to.chars().all(is_mentioned_char);
    // Counted along the way, as the lines of the mentions are.
    let code = if needs_quotes { code_lines(text) } else { Vec::new() };
    let (mut ticks, mut counted) = (0, 0);
    for mention in mentions(text).into_iter().filter(|mention| mention.path == from) {
        let end = mention.at + mention.len;
        let passed = &text[counted..mention.at];
        ticks = match passed.rsplit_once('\n') {
            Some((_, line)) => line.matches('`').count(),
            None => ticks + passed.matches('`').count(),
        };
        counted = mention.at;
        let is_code = !ticks.is_multiple_of(2) || code.get(mention.line).copied().unwrap_or(false);
        if mention.is_encoded {
            changed.push_str(&text[kept..mention.at]);
            changed.push_str(&to.replace('%', "%25").replace(' ', "%20").replace(')', "%29"));
        } else if mention.is_quoted || !needs_quotes {
            changed.push_str(&text[kept..mention.at]);
            changed.push_str(to);
        } else if matches!(quotes, Quotes::From(body) if mention.at >= body)
            // Quotes would mean something else in code, and in an attribute of HTML.
            && !is_code
            && let Some(outside) = before_path(&text[..mention.at])
            && !outside.ends_with('=')
        {
            // With what leads to the folder, such as `../` or `{project-root}/`.
            let outside = match outside.strip_suffix('/') {
                Some(variable) if variable.ends_with('}') => {
                    let near = variable.floor_char_boundary(variable.len().saturating_sub(VARIABLE_BYTES_MAX));
                    &variable[..variable[near..].rfind('{').map_or(variable.len(), |at| near + at)]
                }
                _ => outside,
            };
            let lead = &text[outside.len()..mention.at];
            // The target of a link has quotes of its own.
            let is_target = outside.ends_with("](") || outside.trim_end().ends_with("]:");
            let (open, close) = if is_target { ('<', '>') } else { ('`', '`') };
            changed.push_str(&text[kept..outside.len()]);
            changed.extend([open]);
            changed.push_str(lead);
            changed.push_str(to);
            changed.extend([close]);
        } else {
            continue;
        }
        kept = end;
    }
    (kept > 0).then(|| changed + &text[kept..])
}

/// What stands before a path that begins behind this text; none in the middle of a word or of another folder's path.
fn before_path(before: &str) -> Option<&str> {
    let outside = before.trim_end_matches("../").trim_end_matches("./");
    let is_relative = outside.len() < before.len();
    let begins = match outside.chars().next_back() {
        // `{project-root}/assets/…` is ours too.
        Some('/') if !is_relative => outside.trim_end_matches('/').ends_with('}'),
        Some(c) => !is_mentioned_char(c),
        None => true,
    };
    begins.then_some(outside)
}

/// The assets that the texts inside a value name, each with the pointer of its text.
pub(crate) fn mentions_in(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(value, &mut Vec::new(), &mut found);
    found
}

/// A step of the way into a value.
enum Inwards<'v> {
    Field(&'v str),
    Item(usize),
}

/// Few texts name an asset, so the pointer is written for those alone. A value's depth is bounded where it is parsed, so recursion is.
fn collect<'v>(value: &'v Value, way: &mut Vec<Inwards<'v>>, into: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => into.extend(mentions(text).into_iter().map(|mention| (pointer(way), mention.path))),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                way.push(Inwards::Item(index));
                collect(item, way, into);
                way.pop();
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                way.push(Inwards::Field(name));
                collect(field, way, into);
                way.pop();
            }
        }
        _ => {}
    }
}

fn pointer(way: &[Inwards<'_>]) -> String {
    let step = |step: &Inwards<'_>| match step {
        Inwards::Field(name) => format!("/{}", token(name)),
        Inwards::Item(index) => format!("/{index}"),
    };
    way.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::{Quotes, mentions, problem, with_mention};

    #[test]
    fn an_assets_path_is_plain_and_below_its_folder() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(problem(path).map(|(code, _)| code), expected, "{path}");
        };
        check("assets/a.md", None);
        check("assets/deep/er/A-1_b.v2.yaml", None);
        check("assets/Stil & Töne (2).md", None);
        check("assets/.gitignore.md", None);
        for path in [
            "notes/a.md",
            "assets//a.md",
            "assets/../a.md",
            "assets/./a.md",
            "/assets/a.md",
            "assets/a`b.md",
            "assets/{a}.md",
            "assets/a?.md",
            "assets/a /b.md",
            "assets/ b.md",
            "assets/a\u{a0}b.md",
            "assets/a\u{202e}b.md",
            "assets\\a.md",
            "assets/.git/x.md",
            "assets/.GIT/x.md",
            "assets/",
            "assets",
            "assets/a.md/",
            "C:assets/a.md",
            "assets/a\0.md",
        ] {
            check(path, Some("ASSET_PATH"));
        }
        for path in ["assets/a.exe", "assets/a", "assets/.md", "assets/a.md.sh", "assets/a.MD"] {
            check(path, Some("ASSET_EXTENSION"));
        }
    }

    #[test]
    fn a_name_with_spaces_stands_between_quotes() {
        let with = |text: &str| with_mention(text, "assets/a.md", "assets/a b.md", Quotes::No);
        assert_eq!(with("`assets/a.md`, <assets/a.md>").as_deref(), Some("`assets/a b.md`, <assets/a b.md>"));
        assert_eq!(with("see assets/a.md"), None);
        assert_eq!(with("see assets/a.md or `assets/a.md`").as_deref(), Some("see assets/a.md or `assets/a b.md`"));
        let other = with_mention("see assets/a.md", "assets/a.md", "assets/ä.md", Quotes::No);
        assert_eq!(other.as_deref(), Some("see assets/ä.md"));
    }

    #[test]
    fn a_mention_in_markdown_gets_the_quotes_that_it_needs() {
        let check = |text: &str, expected: &str| {
            let with = with_mention(text, "assets/a.md", "assets/a, b.md", Quotes::From(0));
            assert_eq!(with.as_deref(), Some(expected), "{text}");
            // What follows is named as before.
            let again: Vec<String> = mentions(expected).into_iter().map(|m| m.path).collect();
            assert!(again.iter().all(|path| path == "assets/a, b.md"), "{expected}: {again:?}");
        };
        check("see assets/a.md.", "see `assets/a, b.md`.");
        check("assets/a.md and `assets/a.md`", "`assets/a, b.md` and `assets/a, b.md`");
        check("[x](../assets/a.md)", "[x](<../assets/a, b.md>)");
        check("[x]: assets/a.md \"T\"", "[x]: <assets/a, b.md> \"T\"");
        check("<img src='assets/a.md'>", "<img src='assets/a, b.md'>");
        for kept in ["```sh\ncat assets/a.md\n```", "run `cat assets/a.md`", "<img src=assets/a.md>"] {
            assert_eq!(with_mention(kept, "assets/a.md", "assets/a, b.md", Quotes::From(0)), None, "{kept}");
        }
        check("{project-root}/assets/a.md: ./assets/a.md", "`{project-root}/assets/a, b.md`: `./assets/a, b.md`");
        let all = |text: &str| with_mention(text, "assets/a.md", "assets/a b.md", Quotes::From(0));
        assert_eq!(all("assets/a.md").as_deref(), Some("assets/a b.md"), "a field has no quotes");
        assert_eq!(all("../assets/a.md").as_deref(), Some("../assets/a b.md"));
        let back = with_mention("[x](assets/a%20b.md)", "assets/a b.md", "assets/c d.md", Quotes::No);
        assert_eq!(back.as_deref(), Some("[x](assets/c%20d.md)"));
        let front = "file: assets/a.md\n---\nassets/a.md";
        let with = with_mention(front, "assets/a.md", "assets/a b.md", Quotes::From(20));
        assert_eq!(with.as_deref(), Some("file: assets/a.md\n---\n`assets/a b.md`"));
    }

    /// A text full of mentions is gone through once. Looking through all of it for each would take hours.
    #[test]
    fn a_large_text_of_mentions_is_followed() {
        let count = 40_000;
        for one in ["assets/a.md ", "}/assets/a.md ", "](assets/", "<assets/", "assets/a "] {
            let text = one.repeat(count);
            let found = mentions(&text).len();
            let with = with_mention(&text, "assets/a.md", "assets/a b.md", Quotes::From(0));
            assert_eq!(found == count, one.contains(".md"), "{one}");
            assert_eq!(with.is_some(), one.contains(".md"), "{one}");
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
        check(
            "`assets/a b.md`, <assets/c (1).png>, \"assets/d, e.csv\" and assets/Größe.md",
            &[("assets/a b.md", 0), ("assets/c (1).png", 0), ("assets/d, e.csv", 0), ("assets/Größe.md", 0)],
        );
        check("`assets/a.md is read` and \"assets/b.md, then more.\"", &[("assets/a.md", 0), ("assets/b.md", 0)]);
        check("assets/my guide.md", &[("assets/my guide.md", 0)]);
        check("../assets/my guide, new.md", &[("assets/my guide, new.md", 0)]);
        check("assets/a.md and assets/b.md", &[("assets/a.md", 0), ("assets/b.md", 0)]);
        check("assets/a.md is read.md", &[("assets/a.md", 0)]);
        check("see assets/my guide.md", &[]);
        check("[x](assets/a%20b.md) [y](../assets/%C3%B6.md)", &[("assets/a b.md", 0), ("assets/ö.md", 0)]);
        check("[x](assets/a%zz.md)", &[]);
        check("the folder assets/ and my/assets/x.md, myassets/x.md, https://x.org/assets/y.md", &[]);
    }
}
