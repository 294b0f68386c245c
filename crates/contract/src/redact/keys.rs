//! Private keys in text: the lines that are taken out.

use std::ops::Range;

use regex::Regex;

/// Shorter lines are none of a private key, but for its last one.
const KEY_LINE_CHARS_MIN: usize = 40;
/// How a private key of OpenSSH begins, in Base64.
const OPENSSH_KEY: &str = "b3BlbnNzaC1rZXk";
/// The fields of a key of PGP (RFC 9580, section 6.2.2).
const PGP_FIELDS: [&str; 5] = ["Version", "Comment", "MessageID", "Hash", "Charset"];
/// The checksum of a key of PGP, with its sign (RFC 9580, section 6.1).
const PGP_SUM_CHARS: usize = 5;
/// Longer beginnings of a line, before the text of a key, are not looked for in the lines that follow.
const LEAD_BYTES_MAX: usize = 256;

/// The lines of a private key's text that begins here, each by itself: whatever else stands between them stays to be seen.
/// Their breaks may be those of JSON, in which a text may stand several times over. What stands before the mark in its line,
/// such as the sign of a patch or a number, may stand before each line.
pub(super) fn key_lines(text: &str, begin: Range<usize>) -> Vec<Range<usize>> {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    let lead = lead(&text[..begin.start]);
    // The bytes up to the text of the next line.
    let skipped = |rest: &str| {
        let space = breaks(rest);
        let lead = lead.as_ref().and_then(|lead| lead.find(&rest[space..])).map_or(0, |lead| lead.end());
        space + lead + breaks(&rest[space + lead..])
    };
    let ends = |behind: &str| behind[skipped(behind)..].starts_with("-----END ");
    let is_pgp = text[begin.clone()].contains("PGP");
    let fields: &[&str] = if is_pgp { &PGP_FIELDS } else { &["Proc-Type", "DEK-Info"] };
    let mut lines: Vec<Range<usize>> = Vec::new();
    let (mut at, mut is_encrypted) = (begin.end, false);
    loop {
        at += skipped(&text[at..]);
        let rest = &text[at..];
        // Fields of the older form, RFC 1421: `Proc-Type: 4,ENCRYPTED`.
        let name = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic() && c != '-').unwrap_or(rest.len())];
        if lines.is_empty() && fields.contains(&name) && rest[name.len()..].starts_with(':') {
            let field = &rest[..rest.find(['\n', '\r', '\\']).unwrap_or(rest.len())];
            is_encrypted |= field.ends_with("ENCRYPTED");
            at += field.len();
            continue;
        }
        let line = &rest[..rest.find(|c| !is_base64(c)).unwrap_or(rest.len())];
        let behind = &rest[line.len()..];
        // A checksum of PGP stands before the end: `=njUN`.
        let sum = &behind[skipped(behind)..];
        let is_sum = sum.starts_with('=') && sum.get(PGP_SUM_CHARS..).is_some_and(&ends);
        let is_last = !lines.is_empty() && (ends(behind) || (is_pgp && is_sum));
        // A sequence of ASN.1 and a packet of PGP, by their first byte.
        let is_key = is_encrypted
            || line.starts_with(OPENSSH_KEY)
            || (is_pgp && line.starts_with(['l', 'x']))
            || (line.starts_with('M') && line[1..].starts_with(|c: char| ('A'..='P').contains(&c)));
        let is_line = !lines.is_empty() || is_key;
        if line.is_empty() || !is_line || (line.len() < KEY_LINE_CHARS_MIN && !is_last) {
            return lines;
        }
        lines.push(at..at + line.len());
        at += line.len();
    }
}

/// What stands before a mark in its line, as a shape of what stands before the lines that follow: numbers may differ.
fn lead(before: &str) -> Option<Regex> {
    let from = before.len().saturating_sub(LEAD_BYTES_MAX);
    let near = &before[before.ceil_char_boundary(from)..];
    // Also behind a line end as JSON writes it, which may stand in a text several times over.
    let ends = ["\n", "\r", "\\n", "\\r", "\"", "'"].iter().filter_map(|end| Some(near.rfind(end)? + end.len()));
    let start = ends.max().unwrap_or(if from == 0 { 0 } else { near.len() });
    let found = near[start..].trim_start();
    let lead = found.trim_end();
    let is_apart = lead.len() < found.len() || lead.ends_with("\\t");
    if lead.is_empty() || (!is_apart && lead.ends_with(|c: char| c.is_ascii_alphanumeric())) {
        return None;
    }
    let mut shape = String::from("^");
    let mut rest = lead;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric();
        let run = match first {
            c if is_word(c) => &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())],
            c => &rest[..c.len_utf8()],
        };
        match run {
            // Numbers of lines and of commits differ.
            _ if run.bytes().any(|byte| byte.is_ascii_digit()) => shape.push_str("[0-9A-Za-z]{1,40}"),
            // `grep` writes one before what it found and the other before the lines around.
            ":" | "-" => shape.push_str("[:-]"),
            _ if first.is_whitespace() => shape.push_str(r"\s*"),
            _ => shape.push_str(&regex::escape(run)),
        }
        rest = &rest[run.len()..];
    }
    if lead.len() < found.len() {
        shape.push_str(r"\s");
    }
    Regex::new(&shape).ok()
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
