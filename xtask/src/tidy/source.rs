//! Tells code from comments and literals, so that a rule about code is not broken by a sentence that names it.
//!
//! Not a parser: it knows only where comments and literals begin and end, which is all the rules need, and cannot fail.

/// A source file taken apart. Both texts have the lines and offsets of the original, blanks where the other parts were.
pub(crate) struct Source {
    pub(crate) code: String,
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

/// Takes a file apart.
pub(crate) fn split(text: &str) -> Source {
    let mut source = Source { code: String::with_capacity(text.len()), comments: String::with_capacity(text.len()) };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (part, length) = comment(rest)
            .map(|length| (Part::Comment, length))
            .or_else(|| literal(rest).map(|length| (Part::Literal, length)))
            .unwrap_or_else(|| (Part::Code, word(rest).unwrap_or(first.len_utf8())));
        let (taken, left) = rest.split_at(length);
        source.code.push_str(&shown(taken, part == Part::Code));
        source.comments.push_str(&shown(taken, part == Part::Comment));
        rest = left;
    }
    source
}

/// The words of a text (keywords, names, numbers) with their offsets. A lifetime is no word: `'static` is not `static`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(first) = text[at..].chars().next() {
            let start = at;
            let length = word(&text[at..]).unwrap_or(first.len_utf8());
            at += length;
            if is_word(first) && !text[..start].ends_with('\'') {
                return Some((start, &text[start..at]));
            }
        }
        None
    })
}

/// The paths in some code, with groups of `use` taken apart: `use std::{env, io}` has `std::env` and `std::io`.
pub(crate) fn paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Prefixes of the groups that are open; none for a brace that opens no group.
    let mut open: Vec<Option<String>> = Vec::new();
    let mut path = String::new();
    let mut began = 0;
    let mut at = 0;
    let close = |found: &mut Vec<(usize, String)>, path: &mut String, began: usize| {
        if path.contains("::") {
            found.push((began, path.trim_end_matches("::").to_owned()));
        }
        path.clear();
    };
    while let Some(c) = code[at..].chars().next() {
        let rest = &code[at..];
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if length > 0 {
            if !path.is_empty() && !path.ends_with("::") {
                close(&mut found, &mut path, began);
            }
            if path.is_empty() {
                began = at;
                path = open
                    .iter()
                    .rev()
                    .find_map(Option::clone)
                    .filter(|_| open.last().is_some_and(Option::is_some))
                    .unwrap_or_default();
            }
            path.push_str(&rest[..length]);
            at += length;
        } else if rest.starts_with("::") {
            path.push_str("::");
            at += 2;
        } else {
            match c {
                '{' => {
                    let is_group = path.ends_with("::");
                    open.push(is_group.then(|| path.clone()));
                    path.clear();
                }
                '}' => {
                    close(&mut found, &mut path, began);
                    open.pop();
                }
                c if c.is_whitespace() && path.ends_with("::") => {}
                _ => close(&mut found, &mut path, began),
            }
            at += c.len_utf8();
        }
    }
    close(&mut found, &mut path, began);
    found
}

/// The part itself, or blanks as long as it is; line breaks stay.
fn shown(taken: &str, keep: bool) -> String {
    if keep {
        return taken.to_owned();
    }
    taken.chars().flat_map(|char| std::iter::repeat_n(if char == '\n' { '\n' } else { ' ' }, char.len_utf8())).collect()
}

/// The length of the comment that begins here. Block comments nest.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next()?.len_utf8();
        }
    }
}

/// The length of the string or character that begins here, its prefix included.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(['"', '\'']) || (prefix.ends_with('r') && rest.starts_with("#")))
    })?;
    let rest = &text[prefix.len()..];
    let length = if prefix.ends_with('r') {
        raw_string(rest)?
    } else if rest.starts_with('"') {
        quoted(rest, '"')
    } else {
        // A quote with neither an escape nor a closing quote behind one character is a lifetime.
        let mut chars = rest.chars().skip(1);
        let escaped = chars.next()? == '\\';
        if !escaped && chars.next() != Some('\'') {
            return None;
        }
        quoted(rest, '\'')
    };
    Some(prefix.len() + length)
}

fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.bytes().take_while(|byte| *byte == b'#').count();
    let body = text[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(body.find(&close).map_or(text.len(), |end| hashes + 1 + end + close.len()))
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the word that begins here: taken whole, so that the end of a name is not read as a literal's prefix.
fn word(text: &str) -> Option<usize> {
    let end = text.find(|char| !is_word(char)).unwrap_or(text.len());
    (end > 0).then_some(end)
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::{paths, split, words};

    #[test]
    fn code_comments_and_literals_are_told_apart() {
        for (text, code, comments) in [
            ("a // b\nc", "a c", "// b"),
            ("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */"),
            (r#"f("// \" no") // yes"#, "f( )", "// yes"),
            (r##"r#"a " b"# c"##, "c", ""),
            ("br\"x\" b'y' '\\'' '\"' z", "z", ""),
            ("&'static str 'a'", "&'static str", ""),
            ("for_r\"x\"", "for_r", ""),
            ("r#type", "r#type", ""),
            ("\"é\" é", "é", ""),
        ] {
            let source = split(text);
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(squeezed(&source.code), code, "{text}");
            assert_eq!(squeezed(&source.comments), comments, "{text}");
        }
    }

    #[test]
    fn offsets_and_lines_stay() {
        let text = "a /* é\n */ \"\n\" b";
        let source = split(text);
        assert_eq!(source.code.find('b'), text.find('b'));
        assert_eq!(source.code.matches('\n').count(), 2);
        assert_eq!((source.code.len(), source.comments.len()), (text.len(), text.len()));
    }

    #[test]
    fn an_open_end_is_taken_to_the_end() {
        for text in ["\"a", "r#\"a", "'\\", "/* a", "'", "b'"] {
            assert_eq!(split(text).code.len(), text.len());
        }
    }

    #[test]
    fn a_lifetime_is_no_word() {
        let found = words("static A: &'static str = x_1").map(|(_, word)| word).collect::<Vec<_>>();
        assert_eq!(found, ["static", "A", "str", "x_1"]);
    }

    #[test]
    fn groups_are_taken_apart() {
        let named = |code: &str| paths(code).into_iter().map(|(_, path)| path).collect::<Vec<_>>();
        assert_eq!(
            named("use std::{env, io::{self, Read}};\nuse a::b;"),
            ["std::env", "std::io::self", "std::io::Read", "a::b"]
        );
        assert_eq!(named("if x { std::fs::read(a) } else { b::c }"), ["std::fs::read", "b::c"]);
    }
}
