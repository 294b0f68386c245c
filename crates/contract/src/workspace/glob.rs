//! Globs that somebody else has written: limits first, for the machine behind them fails where they are nested deeply.

use globset::{GlobBuilder, GlobMatcher};

use super::{Error, Result};

/// Longest glob, bytes.
pub const GLOB_BYTES_MAX: usize = 4096;
/// Deepest nesting of `{a,b}` in a glob.
pub const GLOB_BRACES_MAX: usize = 10;

/// A glob over texts.
#[derive(Debug, Clone)]
pub struct Glob(GlobMatcher);

/// How a glob is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobStyle {
    /// Over paths: `*` stays in one folder.
    Path,
    /// As `Path`, in any case.
    PathAnyCase,
    /// Over any text: `*` is anything, and a backslash takes its meaning from what follows.
    Text,
}

impl Glob {
    pub fn new(pattern: &str, style: GlobStyle) -> Result<Self> {
        check(pattern).map_err(|message| Error::Pattern { what: "glob", message })?;
        // The pattern is not told again: it may be long, and this is said to whoever wrote it.
        let bad = |error: globset::Error| Error::Pattern { what: "glob", message: error.kind().to_string() };
        let mut builder = GlobBuilder::new(pattern);
        match style {
            GlobStyle::Path => builder.literal_separator(true),
            GlobStyle::PathAnyCase => builder.literal_separator(true).case_insensitive(true),
            GlobStyle::Text => builder.literal_separator(false).backslash_escape(true),
        };
        // This would panic where the machine cannot be built, which the limits are for.
        Ok(Self(builder.build().map_err(bad)?.compile_matcher()))
    }

    pub fn is_match(&self, text: impl AsRef<std::path::Path>) -> bool {
        self.0.is_match(text)
    }
}

fn check(pattern: &str) -> std::result::Result<(), String> {
    if pattern.len() > GLOB_BYTES_MAX {
        return Err(format!("it has {} bytes, and {GLOB_BYTES_MAX} at most are taken", pattern.len()));
    }
    let mut depth = 0_usize;
    let mut bytes = pattern.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > GLOB_BRACES_MAX {
            return Err(format!("it nests braces more than {GLOB_BRACES_MAX} deep"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{GLOB_BRACES_MAX, GLOB_BYTES_MAX, Glob, GlobStyle};

    #[test]
    fn what_is_nested_too_deeply_or_too_long_is_refused_by_its_limit() {
        let nested = |depth: usize| format!("{}b{}", "{a,".repeat(depth), "}".repeat(depth));
        for style in [GlobStyle::Path, GlobStyle::PathAnyCase, GlobStyle::Text] {
            let said = |pattern: &str| Glob::new(pattern, style).map(|_| ()).map_err(|error| error.to_string());
            assert_eq!(said(&nested(GLOB_BRACES_MAX)), Ok(()));
            for depth in [GLOB_BRACES_MAX + 1, 200, 1000] {
                let refused = said(&nested(depth));
                assert_eq!(refused, Err("glob: it nests braces more than 10 deep".to_owned()), "{depth}");
            }
            for large in ["*", "?", "*a", "**/", "[!a]", "[a-\u{10ffff}]", "{a,b}", "{,?*[!b]}", "\u{10ffff}"] {
                assert_eq!(said(&large.repeat(GLOB_BYTES_MAX / large.len())), Ok(()), "{large}");
            }
            let wide = format!("{}{}{}", "{".repeat(10), "?*[!b],".repeat(580), "}".repeat(10));
            assert_eq!(said(&wide), Ok(()));
            let refused = said(&"a".repeat(GLOB_BYTES_MAX + 1));
            assert_eq!(refused, Err("glob: it has 4097 bytes, and 4096 at most are taken".to_owned()));
            assert_eq!(said(&"[{]x[}]".repeat(20)), Ok(()), "what is escaped nests nothing");
        }
    }
}
