//! Patterns of rules: globs, most of which are plain texts.

use toolhost_contract::workspace::{Glob, GlobStyle};

/// What `globset::escape` puts in brackets.
const ESCAPED: &str = "?*[]{}";

/// A glob over a text.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Nothing in it is special: it is compared. A compiled glob is a machine that takes long to build.
    Text(String),
    Glob {
        glob: Glob,
        /// What every text that matches begins with.
        start: String,
    },
}

impl Pattern {
    pub(super) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Text(same) => same == text,
            Self::Glob { glob, .. } => glob.is_match(text),
        }
    }

    /// Whether no other text than one matches.
    pub(super) fn is_one_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// What every text that matches begins with.
    pub(super) fn start(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Glob { start, .. } => start,
        }
    }
}

pub(super) fn glob(pattern: &str) -> Result<Pattern, String> {
    if let Some(text) = plain(pattern) {
        return Ok(Pattern::Text(text));
    }
    let glob = Glob::new(pattern, GlobStyle::Text).map_err(|error| error.to_string())?;
    // Up to whatever means more than itself.
    let start = pattern.split(['?', '*', '[', ']', '{', '}', '\\']).next().unwrap_or_default().to_owned();
    Ok(Pattern::Glob { glob, start })
}

/// Whether the pattern stands for one text, and no other matches it.
pub(crate) fn is_one_text(pattern: &str) -> bool {
    plain(pattern).is_some()
}

/// The one text that the pattern stands for, if it is easily told.
fn plain(pattern: &str) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '[' => {
                let inside = characters.next().filter(|c| ESCAPED.contains(*c))?;
                characters.next().filter(|c| *c == ']')?;
                text.push(inside);
            }
            '\\' | '?' | '*' | ']' | '{' | '}' => return None,
            other => text.push(other),
        }
    }
    Some(text)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use globset::GlobBuilder;

    use super::{Pattern, glob, plain};

    #[test]
    fn a_plain_text_matches_itself_and_nothing_else_as_its_glob_would() {
        let texts = [
            "", "a", "a/b.txt", "a,b", "!a", "^a$", "a b\n", "*", "?", "[", "]", "{", "}", "[*]", "{a,b}", "ä", "[!a]",
            "a.b", "axb",
        ];
        for pattern in texts.iter().map(|text| globset::escape(text)).chain([
            "a*".to_owned(),
            "[ab]".to_owned(),
            "[!*]".to_owned(),
        ]) {
            let real = GlobBuilder::new(&pattern).literal_separator(false).backslash_escape(true).build();
            let real = real.unwrap().compile_matcher();
            let ours = glob(&pattern).unwrap();
            for text in texts {
                assert_eq!(ours.is_match(text), real.is_match(text), "`{pattern}` over `{text}`");
            }
        }
    }

    #[test]
    fn what_is_special_is_left_to_the_glob() {
        for pattern in ["a*", "a?", "[ab]", "[!a]", "{a,b}", "a\\*", "[*", "[a]", "**/x"] {
            assert_eq!(plain(pattern), None, "{pattern}");
        }
        assert_eq!(plain("[*]x[[]"), Some("*x[".to_owned()));
        assert!(matches!(glob("cargo test [*]").unwrap(), Pattern::Text(text) if text == "cargo test *"));
        assert!(glob("[*").is_err(), "what is no glob is refused as before");
    }
}
