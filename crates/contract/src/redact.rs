//! Secrets, taken out of what leaves the host and of what is written down.
//!
//! Two sources: shapes that are secrets wherever they stand (tokens of well-known issuers, private keys, `SECRET_…=`),
//! and the values of the host's own variables whose names look secret. What is taken out is replaced by [`REDACTED`].

use std::collections::HashSet;
use std::sync::OnceLock;

use crate::outcome::REDACTED;
use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;
use serde_json::Value;

/// Shorter values are not redacted: they would turn up everywhere.
const VALUE_CHARS_MIN: usize = 8;

/// Shapes that are secrets wherever they stand. The first group, if there is one, is kept.
const SHAPES: &[&str] = &[
    r"()\bsk-[A-Za-z0-9_-]{16,}",
    r"()\bgh[opsur]_[A-Za-z0-9]{20,}",
    r"()\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"()\bglpat-[A-Za-z0-9_-]{16,}",
    r"()\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"()\bAIza[0-9A-Za-z_-]{35}",
    r"()\bnpm_[A-Za-z0-9]{30,}",
    r"()\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}",
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
    // The beginning of a key, without its end.
    r"(-----BEGIN [A-Z ]*PRIVATE KEY-----\s+)(?:[A-Za-z-]+: [^\n]*\s+)*(?:[A-Za-z0-9+/=]{16,}\s*)+",
    r#"(\b[A-Z0-9_]*(?:API_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|PRIVATE_KEY)[A-Z0-9_]*=["']?)[^\s"'$(){}<>\[\]]{8,}"#,
];

/// What every secret shape has at least one of, so that most text is passed over in one quick look.
const MARKS: &[&str] = &[
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "ASIA",
    "AIza",
    "npm_",
    "eyJ",
    "earer",
    "PRIVATE KEY",
    "KEY",
    "SECRET",
    "TOKEN",
    "PASSW",
    "CREDENTIAL",
];

/// Takes secrets out of text.
pub struct Redactor {
    marks: AhoCorasick,
    /// Compiled when first needed: most texts have no mark, and a host that only lists its tools need not pay for them.
    shapes: OnceLock<Vec<Regex>>,
    values: Option<AhoCorasick>,
}

impl Default for Redactor {
    /// Knows shapes only, and no values.
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// `environment`: the host's own variables; those whose names look secret lend their values.
    pub fn new(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut values: Vec<String> = environment
            .into_iter()
            .filter(|(name, value)| looks_secret(name) && value.len() >= VALUE_CHARS_MIN)
            .map(|(_, value)| value)
            .collect();
        values.sort();
        values.dedup();
        let values = (!values.is_empty()).then(|| {
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&values).expect("plain strings compile")
        });
        Self {
            marks: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostFirst)
                .build(MARKS)
                .expect("plain strings compile"),
            shapes: OnceLock::new(),
            values,
        }
    }

    /// How many secrets stand in a text.
    pub fn count(&self, text: &str) -> usize {
        let mut redacted = text.to_owned();
        self.redact(&mut redacted);
        masks(&redacted).saturating_sub(masks(text))
    }

    /// Redacts in place; most text is left as it is, without a copy.
    pub fn redact(&self, text: &mut String) {
        if let Some(values) = &self.values
            && values.is_match(text.as_str())
        {
            *text = values.replace_all(text, &vec![REDACTED; values.patterns_len()]);
        }
        if !self.marks.is_match(text.as_str()) {
            return;
        }
        for shape in self.shapes() {
            if shape.is_match(text) {
                *text = shape.replace_all(text, format!("${{1}}{REDACTED}")).into_owned();
            }
        }
    }

    fn shapes(&self) -> &[Regex] {
        self.shapes
            .get_or_init(|| SHAPES.iter().map(|shape| Regex::new(shape).expect("the shapes are valid")).collect())
    }

    /// Redacts every string of a JSON value, keys included.
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => {
                let leaky: Vec<String> = fields.keys().filter(|key| !self.is_clean(key)).cloned().collect();
                for key in leaky {
                    let mut clean = key.clone();
                    self.redact(&mut clean);
                    if let Some(value) = fields.remove(&key) {
                        fields.insert(clean, value);
                    }
                }
                fields.values_mut().for_each(|field| self.redact_json(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether there is nothing to look closer at: true for nearly all text.
    fn is_clean(&self, text: &str) -> bool {
        !self.marks.is_match(text) && self.values.as_ref().is_none_or(|values| !values.is_match(text))
    }
}

/// How often the mark stands in a text.
fn masks(text: &str) -> usize {
    text.matches(REDACTED).count()
}

/// Whether a text writes the mark over a secret that its author was not shown. It does if it holds the mark more often than
/// the text it replaces, or holds it in a line where it was not and has fewer secrets of a known shape.
#[must_use]
pub fn masks_secret(before: &str, after: &str) -> bool {
    if masks(after) > masks(before) {
        return true;
    }
    let known: HashSet<&str> = before.lines().map(str::trim).collect();
    let moved = after.lines().any(|line| line.contains(REDACTED) && !known.contains(line.trim()));
    if !moved {
        return false;
    }
    let shapes = Redactor::new([]);
    shapes.count(after) < shapes.count(before)
}

/// Whether a variable of this name holds a secret, by the way such names are made.
fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "SECRET", "TOKEN", "PASS", "CREDENTIAL", "DATABASE_URL"].iter().any(|mark| name.contains(mark))
        || ["_PAT", "AUTH"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new([
            ("MY_API_KEY".to_owned(), "hunter2hunter2".to_owned()),
            ("HOME".to_owned(), "/home/somebody".to_owned()),
            ("SHORT_TOKEN".to_owned(), "abc".to_owned()),
        ]);
        let mut redacted = text.to_owned();
        redactor.redact(&mut redacted);
        assert_eq!(redacted, expected);
    }

    #[test]
    fn secrets_are_taken_out_and_the_rest_is_left() {
        check("plain text, abc, /home/somebody", "plain text, abc, /home/somebody");
        check("the value hunter2hunter2 here", "the value [redacted] here");
        check("key sk-abcdefghijklmnop1234 end", "key [redacted] end");
        check("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [redacted]");
        check("export DB_PASSWORD='correct horse'", "export DB_PASSWORD='correct horse'");
        check("export DB_PASSWORD=correcthorse", "export DB_PASSWORD=[redacted]");
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----[redacted]",
        );
    }

    #[test]
    fn code_that_only_speaks_of_secrets_is_left() {
        check("const TOKEN_LIMIT: usize = 1000;", "const TOKEN_LIMIT: usize = 1000;");
        check("let key = env(\"API_KEY\")?; token.refresh()", "let key = env(\"API_KEY\")?; token.refresh()");
        check("API_KEY=$OTHER_API_KEY", "API_KEY=$OTHER_API_KEY");
    }

    #[test]
    fn json_is_redacted_through_and_through() {
        let redactor = Redactor::new([]);
        let mut value = serde_json::json!({"a": ["sk-abcdefghijklmnop1234"], "sk-abcdefghijklmnop1234": 1, "n": 5});
        redactor.redact_json(&mut value);
        assert_eq!(value, serde_json::json!({"a": ["[redacted]"], "[redacted]": 1, "n": 5}));
    }

    #[test]
    fn a_mark_is_not_written_over_a_secret_wherever_else_one_stands() {
        let secret = format!("ghp_{}", "a1B2c3D4".repeat(5));
        let before = format!("Write {REDACTED} for names.\ntoken {secret}\n");
        let over = format!("Write it for names.\ntoken {REDACTED}\n");
        assert!(masks_secret(&before, &over));
        assert!(masks_secret("token x\n", &over), "a mark more");
        for fine in [format!("Write {REDACTED} for names.\ntoken\n"), before.replace("for names", "for each name")] {
            assert!(!masks_secret(&before, &fine), "{fine}");
        }
    }
}
