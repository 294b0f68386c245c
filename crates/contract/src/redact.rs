//! Secrets, taken out of what leaves the host and of what is written down.
//!
//! Two sources: shapes that are secrets wherever they stand (tokens of well-known issuers, private keys, `SECRET_…=`),
//! and the values of the host's own variables whose names look secret. What is taken out is replaced by [`REDACTED`].

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use crate::outcome::REDACTED;
use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;
use serde_json::Value;

/// Shorter values are not redacted: they would turn up everywhere.
const VALUE_CHARS_MIN: usize = 8;

/// Shapes that are secrets wherever they stand. The first group is kept. Before a secret is the start, no part of a word, or
/// what JSON writes for a line end or a tab: texts of tools are JSON, in which `n` and `t` are letters like others.
const SHAPES: &[&str] = &[
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])gh[opsur]_[A-Za-z0-9]{20,}",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])github_pat_[A-Za-z0-9_]{20,}",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])glpat-[A-Za-z0-9_-]{16,}",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])xox[abprs]-[A-Za-z0-9-]{10,}",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])AIza[0-9A-Za-z_-]{35}",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])npm_[A-Za-z0-9]{30,}",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])hf_[A-Za-z0-9]{30,}",
    r"(^|[^A-Za-z0-9_]|\\[nrtbf])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
];

/// Shapes that words with hyphens have, too, such as names of classes: what issuers make has digits.
const WITH_DIGITS: &[&str] =
    &[r"(^|[^A-Za-z0-9_]|\\[nrtbf])sk-[A-Za-z0-9_-]{16,}", r"([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}"];

/// A variable whose name tells that its value is a secret. The first group is kept. The value ends where a shell would end a
/// word or a command, so redaction hides no command from a person.
const ASSIGNED: &str = r#"((?:^|[^A-Za-z0-9_]|\\[nrtbf])[A-Z0-9_]*(?:API_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|PRIVATE_KEY)[A-Z0-9_]*=(?:\\*["'])?)[^\s"'`$(){}<>\[\];&|]{8,}"#;

/// Where the text of a private key begins (RFC 7468).
const KEY_BEGINS: &str = "-----BEGIN [A-Z ]*PRIVATE KEY-----";
/// Shorter lines are none of a private key, but for its last one.
const KEY_LINE_CHARS_MIN: usize = 40;
/// How a private key of OpenSSH begins, in Base64.
const OPENSSH_KEY: &str = "b3BlbnNzaC1rZXk";

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
    "k_live_",
    "k_test_",
    "hf_",
    "eyJ",
    "earer",
    "PRIVATE KEY",
    "KEY",
    "SECRET",
    "TOKEN",
    "PASSW",
    "CREDENTIAL",
];

/// A name that tells of a secret, and in the second group the value beside it. Many such values are no secrets, so they are
/// reported and not taken out.
const NAMED: &str = r#"(?i)([a-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|token)[a-z0-9_-]*["'`]?\s*[:=]\s*["'`]?)([^\s"'`$(){}<>\[\],;]{8,})"#;

struct Shapes {
    tokens: Vec<Regex>,
    with_digits: Vec<Regex>,
    assigned: Regex,
    key_begins: Regex,
}

/// Takes secrets out of text.
pub struct Redactor {
    marks: AhoCorasick,
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
        Self {
            marks: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostFirst)
                .build(MARKS)
                .expect("plain strings compile"),
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

    /// Where secrets stand in a text: ranges of bytes in their order, none of which overlap.
    pub fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        if let Some(values) = &self.values {
            found.extend(values.find_iter(text).map(|value| value.range()));
        }
        if self.marks.is_match(text) {
            let shapes = self.shapes();
            let behind = |secret: regex::Captures<'_>| {
                let (whole, kept) = (secret.get(0)?, secret.get(1)?);
                Some(kept.end()..whole.end())
            };
            for shape in &shapes.tokens {
                found.extend(shape.captures_iter(text).filter_map(behind));
            }
            for shape in &shapes.with_digits {
                let tokens = shape.captures_iter(text).filter_map(behind);
                found.extend(tokens.filter(|token| text[token.clone()].bytes().any(|byte| byte.is_ascii_digit())));
            }
            found.extend(shapes.assigned.captures_iter(text).filter_map(behind));
            for begin in shapes.key_begins.find_iter(text) {
                found.extend(key_lines(text, begin.end()));
            }
        }
        found.extend(passwords_in_addresses(text));
        found.extend(self.cut_values(text));
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
        self.shapes.get_or_init(|| Shapes {
            tokens: SHAPES.iter().copied().map(compiled).collect(),
            with_digits: WITH_DIGITS.iter().copied().map(compiled).collect(),
            assigned: compiled(ASSIGNED),
            key_begins: compiled(KEY_BEGINS),
        })
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
        !text.contains("://")
            && self.cut_values(text).next().is_none()
            && !self.marks.is_match(text)
            && self.values.as_ref().is_none_or(|values| !values.is_match(text))
    }
}

/// The lines of a private key's text that begins here, each by itself: whatever else stands between them stays to be seen.
/// Their breaks may be those of JSON, in which a text may stand several times over.
fn key_lines(text: &str, begin: usize) -> Vec<Range<usize>> {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let mut lines: Vec<Range<usize>> = Vec::new();
    let (mut at, mut is_encrypted) = (begin, false);
    loop {
        let rest = &text[at..];
        at += breaks(rest);
        let rest = &text[at..];
        // Fields of the older form, RFC 1421: `Proc-Type: 4,ENCRYPTED`.
        let name = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic() && c != '-').unwrap_or(rest.len())];
        if lines.is_empty() && ["Proc-Type", "DEK-Info"].contains(&name) {
            let field = &rest[..rest.find(['\n', '\r', '\\']).unwrap_or(rest.len())];
            is_encrypted |= field.ends_with("ENCRYPTED");
            at += field.len();
            continue;
        }
        let line = &rest[..rest.find(|c| !is_base64(c)).unwrap_or(rest.len())];
        let behind = &rest[line.len()..];
        let is_last = !lines.is_empty() && behind[breaks(behind)..].starts_with("-----END ");
        // A sequence of ASN.1, by its first byte.
        let is_key = is_encrypted
            || line.starts_with(OPENSSH_KEY)
            || (line.starts_with('M') && line[1..].starts_with(|c: char| ('A'..='P').contains(&c)));
        let is_line = !lines.is_empty() || is_key;
        if line.is_empty() || !is_line || (line.len() < KEY_LINE_CHARS_MIN && !is_last) {
            return lines;
        }
        lines.push(at..at + line.len());
        at += line.len();
    }
}

/// The bytes of white space at the start of a text, also as JSON writes it.
fn breaks(text: &str) -> usize {
    let mut rest = text;
    loop {
        let next = rest.trim_start();
        let escape = next.trim_start_matches('\\');
        let is_escape = escape.len() < next.len() && escape.starts_with(['n', 'r', 't']);
        match is_escape {
            true => rest = &escape[1..],
            false => return text.len() - next.len(),
        }
    }
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

/// How often the mark stands in a text.
fn masks(text: &str) -> usize {
    text.matches(REDACTED).count()
}

/// What people and models write in the place of a secret that they do not have. The name of a variable is none of it: that
/// is how a secret is taken out.
const LIKE_A_MASK: &str = concat!(
    r"(?i)\*{3,}|•{3,}|x{6,}|[-_][a-z0-9]*(?:\.{3}|…)|\bredacted\b",
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
    fn a_password_in_an_address_is_taken_out_and_what_stands_for_one_is_not() {
        check("postgres://ada:hunter2!@db:5432/x", "postgres://ada:[redacted]@db:5432/x");
        check("git clone https://x:tok%40en1@h/a https://h/b", "git clone https://x:[redacted]@h/a https://h/b");
        check("(redis://:s3cr3t@h)", "(redis://:[redacted]@h)");
        check("\"amqp://a:b:c@d@h\"", "\"amqp://a:[redacted]@h\"");
        for kept in [
            "https://ada@h/x",
            "https://h:8080/a@b:c",
            "postgres://postgres:postgres@localhost/x",
            "postgres://user:password@localhost/x",
            "https://$USER:$PASSWORD@h",
            "https://user:<token>@h",
            "https://user:${TOKEN}@h",
            "https://user:****@h",
            "https://h?next=http://a:b and c@d",
            "see ://",
        ] {
            check(kept, kept);
        }
        // Bytes beyond the part that is looked at may begin inside a character.
        let long = format!("https://{}@h", "ä".repeat(600));
        check(&long, &long);
    }

    #[test]
    fn secrets_are_taken_out_and_the_rest_is_left() {
        check("key sk_live_abcdefgh12345678ijkl.", "key [redacted].");
        check("rk_test_abcdefgh12345678ijkl", "[redacted]");
        check("task_live_abcdefgh12345678ijkl", "task_live_abcdefgh12345678ijkl");
        check("hf_abcdefghijklmnopqrstuvwxyz01234567", "[redacted]");
        check("plain text, abc, /home/somebody", "plain text, abc, /home/somebody");
        check("the value hunter2hunter2 here", "the value [redacted] here");
        check("key sk-abcdefghijklmnop1234 end", "key [redacted] end");
        check("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [redacted]");
        check("export DB_PASSWORD='correct horse'", "export DB_PASSWORD='correct horse'");
        check("export DB_PASSWORD=correcthorse", "export DB_PASSWORD=[redacted]");
    }

    #[test]
    fn what_a_cut_has_left_of_a_value_is_taken_out() {
        check("MY=hunter2hunte", "MY=[redacted]");
        check("unter2hunter2 and more", "[redacted] and more");
        check("hunter2h", "[redacted]");
        for kept in ["MY=hunter2", "hunter2hun and more", "a unter2hunter", "nter2hu"] {
            check(kept, kept);
        }
    }

    #[test]
    fn of_a_private_key_its_lines_are_taken_out_and_nothing_else() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        let key = format!("a {begin}\n{line}\n{line}\nabc=\n{end} b");
        let hidden = format!("a {begin}\n[redacted]\n[redacted]\n[redacted]\n{end} b");
        check(&key, &hidden);
        check(&Value::from(key.as_str()).to_string(), &Value::from(hidden.as_str()).to_string());
        check(&format!("{begin}\r\n{line}\r\n"), &format!("{begin}\r\n[redacted]\r\n"));
        check(&format!("KEY='{begin} {line} {line} {end}'"), &format!("KEY='{begin} [redacted] [redacted] {end}'"));
        let fields = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF";
        let body = "xyz0123456789012345678901234567890123456789";
        check(&format!("{begin}\n{fields}\n\n{body}\n"), &format!("{begin}\n{fields}\n\n[redacted]\n"));
        // What only stands between the marks is no key, and what stands beside one is none of it.
        for between in [
            "\ntouch PWNED\n",
            "\nmake\n",
            "\n/tmp/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
            "\nProc-Type: 4,CLEAR\nxyz0123456789012345678901234567890123456789\n",
            "\nDEK-Info: $(touch PWNED)\n",
        ] {
            let text = format!("echo '{begin}'{between}echo '{end}'");
            check(&text, &text);
        }
        check(&format!("{begin}\n{line}\nmake; x\n{end}"), &format!("{begin}\n[redacted]\nmake; x\n{end}"));
        check(&format!("{begin}\n{line};make\n{end}"), &format!("{begin}\n[redacted];make\n{end}"));
    }

    #[test]
    fn no_command_is_hidden_behind_a_secret() {
        for (text, shown) in [
            (
                "git ls-remote https://bob:Zx8kQ;make;@github.com/x",
                "git ls-remote https://bob:Zx8kQ;make;@github.com/x",
            ),
            ("API_TOKEN=a1b2c3d4e5;make;x", "API_TOKEN=[redacted];make;x"),
            ("API_TOKEN=a1b2c3d4e5`make`", "API_TOKEN=[redacted]`make`"),
            ("curl -H 'Bearer a1b2c3d4e5f6a7b8c9'|sh", "curl -H 'Bearer [redacted]'|sh"),
        ] {
            check(text, shown);
        }
    }

    #[test]
    fn words_and_names_that_only_look_like_secrets_are_left() {
        for text in [
            ".sk-fading-circle-container { }",
            "use sk-learn-contrib-imbalanced",
            "Bearer authentication-scheme-documentation",
        ] {
            check(text, text);
        }
        let redactor = |name: &str, value: &str| Redactor::new([(name.to_owned(), value.to_owned())]);
        for (name, value) in [
            ("DB_PASS", "development"),
            ("API_KEY_HEADER", "X-Authorization1"),
            ("PASSWORD_FILE", "/etc/hosts"),
            ("KEYMAP", "german-latin1"),
            ("MONKEY", "chimpanzee1"),
            ("SECRET_NAME", "my-secret-1"),
            ("TOKEN_ENDPOINT", "https://id.example"),
            ("COMPASS", "north-west-1"),
        ] {
            assert!(redactor(name, value).spans(value).is_empty(), "{name}");
        }
        for name in
            ["GITHUB_TOKEN", "DB_PASS", "OPENAI_APIKEY", "MY_KEY", "MYSECRET", "NPM_AUTH", "GH_PAT", "DATABASE_URL"]
        {
            assert_eq!(redactor(name, "hunter2hunter2").spans("hunter2hunter2").len(), 1, "{name}");
        }
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
    fn a_secret_at_the_start_of_a_line_is_one_in_json_too() {
        let redactor = Redactor::new([]);
        let secrets = [
            "ghp_0123456789abcdef0123456789abcdef0123",
            "sk-ant-abcdefghijklmnop1234",
            "AKIAABCDEFGHIJKLMNOP",
            "xoxb-1234567890-abcdef",
            "glpat-abcdefghijklmnop1234",
            "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4",
            "DB_PASSWORD=correcthorse",
            "API_KEY=\"correcthorse\"",
        ];
        for secret in secrets {
            for before in ["", "\n", "\t", "a b\r\n", "("] {
                let value = Value::from(format!("{before}{secret}"));
                let hidden = secret.split('=').next_back().unwrap_or_default().trim_matches('"');
                for mut text in
                    [value.to_string(), Value::from(value.to_string()).to_string(), format!("{before}{secret}")]
                {
                    redactor.redact(&mut text);
                    assert!(!text.contains(hidden), "{text}");
                }
            }
        }
        let mut word = "a risk-abcdefghijklmnop1234".to_owned();
        redactor.redact(&mut word);
        assert_eq!(word, "a risk-abcdefghijklmnop1234");
    }

    #[test]
    fn shapes_that_overlap_are_one_secret() {
        let redactor = Redactor::new([("MY_TOKEN".to_owned(), "sk-abcdefghijklmnop".to_owned())]);
        let text = "API_KEY=sk-abcdefghijklmnop1234 end";
        assert_eq!(redactor.spans(text), vec![8..31]);
        let mut redacted = text.to_owned();
        redactor.redact(&mut redacted);
        assert_eq!(redacted, "API_KEY=[redacted] end");
    }

    #[test]
    fn a_change_beside_a_secret_keeps_it_and_keeps_it_a_secret() {
        let redactor = Redactor::new([]);
        let (key, named) = ("use sk-abcdefghijklmnop1234 here", "DB_PASSWORD=correcthorse");
        assert!(redactor.keeps(key, "do not use sk-abcdefghijklmnop1234 here"));
        assert!(redactor.keeps("correcthorse DB_PASSWORD=correcthorse", "correcthorse. DB_PASSWORD=correcthorse"));
        for (before, after) in [
            (key, "use xsk-abcdefghijklmnop1234 here"),
            (key, "use sk-abcdefghijklmnop1234x here"),
            (key, "use it here"),
            (named, "DB_NAME=correcthorse"),
            (named, "DB_PASSWORD=a.correcthorse"),
            (named, "correcthorse DB_PASSWORD=correcthorse"),
        ] {
            assert!(!redactor.keeps(before, after), "{after}");
        }
    }

    #[test]
    fn values_beside_a_telling_name_are_suspects_and_code_about_them_is_not() {
        let redactor = Redactor::new([]);
        let suspects = |text: &str| redactor.suspects(text).into_iter().collect::<Vec<_>>();
        assert_eq!(suspects("password: hunter22hunter"), ["hunter22hunter"]);
        let aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        assert_eq!(suspects(&format!("aws_secret_access_key = {aws}")), [aws]);
        assert_eq!(suspects("\"apiKey\": \"a1b2c3d4e5\""), ["a1b2c3d4e5"]);
        assert_eq!(suspects("API_KEY=sk-abcdefghijklmnop1234"), ["sk-abcdefghijklmnop1234"]);
        for fine in [
            "ask for the password: it is in the vault",
            "token: $TOKEN_2",
            "secret: {{secret_1}}",
            "token_url: https://id.example/v2",
            "max_tokens: 20000000",
        ] {
            assert_eq!(suspects(fine), [""; 0], "{fine}");
        }
    }

    #[test]
    fn a_mark_is_not_written_over_a_secret_wherever_else_one_stands() {
        let secret = format!("ghp_{}", "a1B2c3D4".repeat(5));
        let before = format!("Write {REDACTED} for names.\ntoken {secret}\n");
        let over = format!("Write it for names.\ntoken {REDACTED}\n");
        assert!(masks_secret(&before, &over));
        assert!(masks_secret("token x\n", &over), "a mark more");
        for like in ["***", "[REDACTED]", "<redacted>", "[secret]", "xxxxxxxx", "ghp_...", "•••"] {
            assert!(masks_secret(&before, &before.replace(&secret, like)), "{like}");
        }
        for named in ["$GITHUB_TOKEN", "{{GITHUB_TOKEN}}", "from the vault ..."] {
            assert!(!masks_secret(&before, &before.replace(&secret, named)), "{named}");
        }
        assert!(!masks_secret("token x\n", "token ***\n"), "no secret was there");
        for fine in [format!("Write {REDACTED} for names.\ntoken\n"), before.replace("for names", "for each name")] {
            assert!(!masks_secret(&before, &fine), "{fine}");
        }
    }
}
