//! Secrets, taken out of what leaves the host and of what is written down.
//!
//! Two sources: shapes that are secrets wherever they stand (tokens of well-known issuers, private keys, `SECRET_…=`),
//! and the values of the host's own variables whose names look secret. What is taken out is replaced by [`REDACTED`].

mod bare;
mod keys;
mod shapes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use self::bare::Bare;
use self::keys::{KeySearch, NUMBERED, key_lines, lines_before};
use self::shapes::{
    ASSIGNED, AUTHORIZATION, BASIC, BEFORE, BEHIND, KEY_BEGINS, KEY_ENDS, LONG_NAMED, NAMED, NAMES, PASSWORD, SHAPES,
    SHORT_NAMED, WITH_DIGITS, is_measured, is_named, is_no_name, is_password, is_random, names_password,
};
use crate::outcome::REDACTED;
use aho_corasick::{AhoCorasick, MatchKind, packed};
use regex::Regex;
use serde_json::Value;

/// Shorter values are not redacted: they would turn up everywhere.
const VALUE_CHARS_MIN: usize = 8;

/// Most patterns of one search: so many are looked for at once with instructions for vectors, at ten times the speed of more.
const PATTERNS_TOGETHER_MAX: usize = 32;

/// Looks for any of some plain strings.
struct Quick(Vec<Search>);

enum Search {
    Vectors(packed::Searcher),
    /// Where the machine has no such instructions.
    Plain(AhoCorasick),
}

impl Quick {
    fn new(patterns: &[&str]) -> Self {
        let search = |some: &[&str]| match packed::Searcher::new(some) {
            Some(searcher) => Search::Vectors(searcher),
            None => Search::Plain(AhoCorasick::new(some).expect("plain strings compile")),
        };
        // The shortest of a group decides how fast the group is looked for.
        let mut patterns = patterns.to_vec();
        patterns.sort_unstable_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        Self(patterns.chunks(PATTERNS_TOGETHER_MAX).map(search).collect())
    }

    fn is_in(&self, text: &str) -> bool {
        self.0.iter().any(|search| match search {
            Search::Vectors(search) => search.find(text).is_some(),
            Search::Plain(search) => search.is_match(text),
        })
    }
}

/// Of each shape the first group is kept.
struct Shapes {
    tokens: Vec<Regex>,
    /// The rest is a secret if it has digits.
    with_digits: Vec<Regex>,
    named: Vec<Regex>,
    /// The rest is a secret if it has digits.
    authorization: Regex,
    /// The second group is a secret if it is random.
    long_named: Regex,
    password: Regex,
    /// The second group is a secret if it is no name.
    short_named: Regex,
    key_begins: Regex,
    key_ends: Regex,
    numbered: Regex,
}

/// Takes secrets out of text.
pub struct Redactor {
    /// The marks of the shapes of tokens.
    marks: Quick,
    /// The names that the other shapes have.
    names: Quick,
    /// Compiled when first needed: most texts have no mark, and a host that only lists its tools need not pay for them.
    shapes: OnceLock<Shapes>,
    named: OnceLock<Regex>,
    values: Option<AhoCorasick>,
    /// The values themselves, for what a cut has left of one.
    plain: Vec<String>,
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
            .filter(|(name, value)| looks_secret(name) && value.len() >= VALUE_CHARS_MIN && !is_word(value))
            .map(|(_, value)| value)
            .collect();
        values.sort();
        values.dedup();
        let plain = values.clone();
        let values = (!values.is_empty()).then(|| {
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&values).expect("plain strings compile")
        });
        let marks = [SHAPES, BEHIND, WITH_DIGITS].into_iter().flatten().map(|(mark, _)| *mark);
        Self {
            marks: Quick::new(&marks.collect::<Vec<_>>()),
            names: Quick::new(NAMES),
            shapes: OnceLock::new(),
            named: OnceLock::new(),
            values,
            plain,
        }
    }

    /// What is left of a value where a text was cut: its beginning at the text's end, or its end at the text's beginning.
    fn cut_values(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let first = text.get(..VALUE_CHARS_MIN);
        let last = text.len().checked_sub(VALUE_CHARS_MIN).and_then(|at| text.get(at..));
        self.plain.iter().flat_map(move |value| {
            let begins = last.and_then(|last| value.rfind(last)).map(|at| &value[..at + VALUE_CHARS_MIN]);
            let ends = first.and_then(|first| value.find(first)).map(|at| &value[at..]);
            let begins = begins.filter(|part| text.ends_with(*part)).map(|part| text.len() - part.len()..text.len());
            let ends = ends.filter(|part| text.starts_with(*part)).map(|part| 0..part.len());
            begins.into_iter().chain(ends)
        })
    }

    /// Where secrets stand in a text: ranges of bytes in their order, none of which overlap. A secret with characters inside that
    /// are not seen, such as the colours of `grep`, is one too.
    pub fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = self.spans_as_written(text);
        for bare in Bare::all_of(text).filter(|bare| !self.is_clean_as_written(&bare.text)) {
            found.extend(self.spans_as_written(&bare.text).into_iter().flat_map(|span| bare.places(text, span)));
        }
        found.sort_by_key(|span| (span.start, span.end));
        let mut spans: Vec<Range<usize>> = Vec::new();
        for span in found {
            match spans.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => spans.push(span),
            }
        }
        spans
    }

    /// In any order, and some may overlap.
    fn spans_as_written(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        if let Some(values) = &self.values {
            found.extend(values.find_iter(text).map(|value| value.range()));
        }
        let behind = |secret: regex::Captures<'_>| {
            let (whole, kept) = (secret.get(0)?, secret.get(1)?);
            Some(kept.end()..whole.end())
        };
        if self.marks.is_in(text) {
            let shapes = self.shapes();
            for shape in &shapes.tokens {
                found.extend(shape.captures_iter(text).filter_map(behind));
            }
            for shape in &shapes.with_digits {
                found
                    .extend(shape.captures_iter(text).filter_map(behind).filter(|token| is_made(&text[token.clone()])));
            }
        }
        if self.names.is_in(text) {
            let shapes = self.shapes();
            for shape in &shapes.named {
                found.extend(shape.captures_iter(text).filter_map(behind));
            }
            let sent = shapes.authorization.captures_iter(text).filter_map(behind);
            found.extend(sent.filter(|token| is_made(&text[token.clone()])));
            for value in shapes.long_named.captures_iter(text) {
                let (Some(name), Some(value)) = (value.get(1), value.get(2)) else { continue };
                if is_named(name.as_str()) && is_random(value.as_str()) {
                    found.push(value.range());
                }
            }
            for beside in shapes.password.captures_iter(text) {
                let (Some(name), Some(value)) = (beside.get(1), beside.get(2)) else { continue };
                let (name, value_text) = (name.as_str(), value.as_str());
                if is_password(value_text, &text[value.end()..]) && !is_measured(name, value_text) {
                    found.push(value.range());
                }
            }
            for beside in shapes.short_named.captures_iter(text) {
                let (Some(name), Some(value)) = (beside.get(1), beside.get(2)) else { continue };
                if is_named(name.as_str()) && is_no_name((name.as_str(), value.as_str()), &text[value.end()..]) {
                    found.push(value.range());
                }
            }
            let mut search = KeySearch::new(&shapes.numbered, text);
            let begins: Vec<Range<usize>> = shapes.key_begins.find_iter(text).map(|begin| begin.range()).collect();
            let (mut begun, mut last) = (begins.iter().map(|begin| begin.start).peekable(), 0);
            for end in shapes.key_ends.find_iter(text) {
                // An end of its own: a cut has taken the beginning.
                let mut is_begun = false;
                while begun.next_if(|begin| *begin < end.start()).is_some_and(|begin| begin >= last) {
                    is_begun = true;
                }
                if !is_begun {
                    found.extend(lines_before(text, end.start()));
                }
                last = end.end();
            }
            for begin in begins {
                found.extend(key_lines(text, begin, &mut search));
            }
        }
        found.extend(passwords_in_addresses(text));
        found.extend(self.cut_values(text));
        found
    }

    /// Redacts in place; most text is left as it is, without a copy.
    pub fn redact(&self, text: &mut String) {
        if self.is_clean(text) {
            return;
        }
        let spans = self.spans(text);
        if spans.is_empty() {
            return;
        }
        let (mut clean, mut from) = (String::with_capacity(text.len()), 0);
        for span in spans {
            clean.push_str(&text[from..span.start]);
            clean.push_str(REDACTED);
            from = span.end;
        }
        clean.push_str(&text[from..]);
        *text = clean;
    }

    /// Whether every secret of a text is still one, letter for letter, after a change beside it: none goes, none becomes a
    /// part of another word, and none stands where its shape is not recognized any more.
    pub fn keeps(&self, before: &str, after: &str) -> bool {
        self.keeps_but(before, after, &[])
    }

    /// The same, where these secrets may go, each once.
    pub fn keeps_but(&self, before: &str, after: &str, gone: &[&str]) -> bool {
        let is = self.spans(after);
        let bare = |text: &str, spans: &[Range<usize>], secret: &str| {
            let inside = |at: usize| spans.iter().any(|span| span.start <= at && at + secret.len() <= span.end);
            text.match_indices(secret).filter(|(at, _)| !inside(*at)).count()
        };
        let was = self.spans(before);
        let count = |text: &str, spans: &[Range<usize>], secret: &str| {
            spans.iter().filter(|span| &text[(*span).clone()] == secret).count()
        };
        let secrets: BTreeSet<&str> = was.iter().map(|span| &before[span.clone()]).collect();
        secrets.into_iter().all(|secret| {
            let goes = gone.iter().filter(|gone| **gone == secret).count();
            count(after, &is, secret) + goes >= count(before, &was, secret)
                && bare(after, &is, secret) <= bare(before, &was, secret)
        })
    }

    /// What looks like a secret, with the values beside telling names, which [`Redactor::redact`] leaves in the text.
    pub fn suspects(&self, text: &str) -> BTreeSet<String> {
        let mut found: BTreeSet<String> = self.spans(text).into_iter().map(|span| text[span].to_owned()).collect();
        let named = self.named.get_or_init(|| Regex::new(NAMED).expect("the shape is valid"));
        let values = named.captures_iter(text).filter_map(|secret| Some(secret.get(2)?.as_str()));
        let is_made = |value: &&str| {
            let has = |kind: fn(&char) -> bool| value.chars().any(|c| kind(&c));
            has(char::is_ascii_digit) && has(char::is_ascii_alphabetic) && !value.contains("://")
        };
        let is_new = |value: &&str| !found.iter().any(|known| known.contains(*value) || value.contains(known.as_str()));
        let values: Vec<String> = values.filter(is_made).filter(is_new).map(str::to_owned).collect();
        found.extend(values);
        found
    }

    fn shapes(&self) -> &Shapes {
        let compiled = |shape: &str| Regex::new(shape).expect("the shapes are valid");
        self.shapes.get_or_init(|| {
            let tokens: Vec<&str> = SHAPES.iter().map(|(_, shape)| *shape).collect();
            let tokens = format!("({BEFORE})(?:{})", tokens.join("|"));
            let behind = BEHIND.iter().map(|(_, shape)| *shape);
            Shapes {
                tokens: behind.chain([tokens.as_str()]).map(compiled).collect(),
                with_digits: WITH_DIGITS.iter().map(|(_, shape)| compiled(shape)).collect(),
                named: [ASSIGNED, BASIC].into_iter().map(compiled).collect(),
                authorization: compiled(AUTHORIZATION),
                long_named: compiled(LONG_NAMED),
                password: compiled(PASSWORD),
                short_named: compiled(SHORT_NAMED),
                key_begins: compiled(KEY_BEGINS),
                key_ends: compiled(KEY_ENDS),
                numbered: compiled(NUMBERED),
            }
        })
    }

    /// Redacts every string of a JSON value, keys included, and what stands under a key that tells of a secret as it would be
    /// in the value's text.
    pub fn redact_json(&self, value: &mut Value) {
        self.redact_json_beside(value, "");
    }

    /// The same beside a text that is redacted: a string that is equal to it is not searched again.
    pub fn redact_json_beside(&self, value: &mut Value, redacted: &str) {
        match value {
            Value::String(text) if text == redacted => {}
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json_beside(item, redacted)),
            Value::Object(fields) => {
                let leaky: Vec<String> = fields.keys().filter(|key| !self.is_clean(key)).cloned().collect();
                for key in leaky {
                    let mut clean = key.clone();
                    self.redact(&mut clean);
                    if let Some(value) = fields.remove(&key) {
                        fields.insert(clean, value);
                    }
                }
                // A variable and its value are often fields beside each other: `{"name": "DB_PASSWORD", "value": "…"}`.
                let of_value = ["name", "key"].into_iter().find_map(|field| fields.get(field)?.as_str());
                let of_value = of_value.map(str::to_owned);
                for (key, field) in fields {
                    let name = if key == "value" { of_value.as_ref().unwrap_or(key) } else { key };
                    match field {
                        Value::String(text) if self.names_secret(name, text) => REDACTED.clone_into(text),
                        _ => self.redact_json_beside(field, redacted),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether the value of a field with this name is a secret.
    fn names_secret(&self, name: &str, value: &str) -> bool {
        self.names.is_in(name)
            && ((is_named(name) && (is_random(value) || is_no_name((name, value), "")))
                || (names_password(name) && is_password(value, "")))
    }

    /// Whether there is nothing to look closer at: true for nearly all text.
    fn is_clean(&self, text: &str) -> bool {
        self.is_clean_as_written(text) && Bare::all_of(text).all(|bare| self.is_clean_as_written(&bare.text))
    }

    fn is_clean_as_written(&self, text: &str) -> bool {
        !text.contains("://")
            && self.cut_values(text).next().is_none()
            && !self.marks.is_in(text)
            && !self.names.is_in(text)
            && self.values.as_ref().is_none_or(|values| !values.is_match(text))
    }
}

/// Whether a byte may stand in a secret: between two that may not, a text may be cut. What is not seen may stand in one, too.
#[must_use]
pub fn is_of_secret(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-')
        || !byte.is_ascii()
        || (byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

/// Longest part of an address before its path that is looked at.
const AUTHORITY_BYTES_MAX: usize = 512;
/// What people write in the place of a password, in examples.
const NO_PASSWORDS: &[&str] = &["password", "passwd", "pass", "pwd", "pw", "secret", "token", "changeme"];

/// The passwords of addresses such as `postgres://ada:hunter2@host/db` (RFC 3986, section 3.2.1). None that is a variable, a
/// word that stands for one, or the name again, as in settings for tests.
fn passwords_in_addresses(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices("://").filter_map(|(at, mark)| {
        let start = at + mark.len();
        let rest = &text[start..text.floor_char_boundary(start + AUTHORITY_BYTES_MAX)];
        // The password ends where a shell would end a word or a command, so redaction hides no command from a person.
        let ends = |c: char| c.is_whitespace() || "/?#\\\"'`<>{}[]()$;&|".contains(c);
        let (user, _) = rest[..rest.find(ends).unwrap_or(rest.len())].rsplit_once('@')?;
        let (name, password) = user.split_once(':')?;
        let word = password.to_ascii_lowercase();
        let is_none = password.is_empty()
            || password == name
            || NO_PASSWORDS.contains(&word.as_str())
            || password.bytes().all(|byte| byte == b'*' || byte == b'x' || byte == b'.');
        let from = start + name.len() + 1;
        (!is_none).then(|| from..from + password.len())
    })
}

/// Fewer are in names with a version, such as `sk-learn-pipeline-v2`.
const DIGITS_MIN: usize = 3;

/// Whether a value looks like a key that a program made, and not like a name of several words.
fn is_made(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_digit).count() >= DIGITS_MIN || is_random(text)
}

/// How often the mark stands in a text.
fn masks(text: &str) -> usize {
    text.matches(REDACTED).count()
}

/// What people and models write in the place of a secret that they do not have. The name of a variable is none of it: that
/// is how a secret is taken out.
const LIKE_A_MASK: &str = concat!(
    r"(?i)\*{3,}|•{3,}|x{4,}|[-_][a-z0-9]*(?:\.{3}|…)|\bredacted\b",
    r"|<[a-z _-]{0,24}(?:token|key|password)[a-z _-]{0,24}>|\byour[-_][a-z0-9_-]{1,40}",
    r"|[\[<(][ a-z-]{0,24}(?:masked|hidden|secret|removed|omitted)[ a-z-]{0,24}[\])>]",
);

/// Whether a text writes the mark, or something like it, over a secret that its author was not shown. It does if it holds
/// the mark more often than the text it replaces; or if it has fewer secrets, and the mark or one like it in a line that is
/// new.
#[must_use]
pub fn masks_secret(before: &str, after: &str) -> bool {
    if masks(after) > masks(before) {
        return true;
    }
    let shapes = Redactor::new([]);
    if shapes.spans(after).len() >= shapes.spans(before).len() {
        return false;
    }
    let like = Regex::new(LIKE_A_MASK).expect("the shape is valid");
    let known: HashSet<&str> = before.lines().map(str::trim).collect();
    after.lines().any(|line| like.is_match(line) && !known.contains(line.trim()))
}

/// Words of a name that tell of a secret, wherever they stand in it.
const TELLING: &[&str] = &["SECRET", "TOKEN", "PASSW", "PASSPHRASE", "CREDENTIAL", "APIKEY"];
/// Parts of a name that tell of a secret by themselves.
const TELLING_PARTS: &[&str] = &["KEY", "KEYS", "PASS", "PAT"];
/// What a name ends in that is about a secret, and not one.
const ABOUT: &[&str] = &[
    "FILE",
    "PATH",
    "DIR",
    "HEADER",
    "NAME",
    "ENDPOINT",
    "URL",
    "URI",
    "TYPE",
    "ALGORITHM",
    "TTL",
    "LENGTH",
    "COUNT",
    "LIMIT",
    "MAX",
];
/// A word of that many small letters is a word, such as `development`.
const WORD_CHARS_MAX: usize = 11;

/// Whether a variable of this name holds a secret, by the way such names are made.
fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if name.contains("DATABASE_URL") {
        return true;
    }
    let parts: Vec<&str> = name.split('_').collect();
    if parts.last().is_some_and(|last| ABOUT.contains(last)) {
        return false;
    }
    TELLING.iter().any(|mark| name.contains(mark))
        || parts.iter().any(|part| TELLING_PARTS.contains(part))
        || name.ends_with("AUTH")
}

/// Whether a value is so plain that it stands in texts which have nothing to do with it.
fn is_word(value: &str) -> bool {
    value.len() <= WORD_CHARS_MAX && value.bytes().all(|byte| byte.is_ascii_lowercase())
}
