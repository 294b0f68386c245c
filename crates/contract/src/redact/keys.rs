//! Private keys in text: the lines that are taken out.

use std::collections::HashMap;
use std::ops::Range;

use regex::Regex;

/// Shorter lines are none of a private key, but for its last one.
const KEY_LINE_CHARS_MIN: usize = 40;
/// How a private key of OpenSSH begins, in Base64.
const OPENSSH_KEY: &str = "b3BlbnNzaC1rZXk";
/// The fields of a key of PGP (RFC 9580, section 6.2.2).
const PGP_FIELDS: [&str; 5] = ["Version", "Comment", "MessageID", "Hash", "Charset"];
/// Lines after the mark that are looked at: the longest keys have a few hundred.
const KEY_LINES_MAX: usize = 2000;
/// After so many other lines in a row nothing more of the key is looked for: a text may have many marks.
const OTHER_LINES_MAX: usize = 64;
/// Longer beginnings of a line, before the text of a key, are not looked for in the lines that follow.
const LEAD_BYTES_MAX: usize = 256;
/// Longer lines are none of a key and none between its lines: a text of many marks may have no line ends.
const LINE_BYTES_MAX: usize = 4096;
/// Lines of a text that are looked at, over all of its marks: one for each so many bytes, and as many as a key has. The lines of keys
/// are four times as long.
const LINE_BYTES_USUAL: usize = 16;
/// So many different ones are looked for in one text.
const LEADS_MAX: usize = 256;

/// The lines of a private key's text that begins here, each by itself: whatever else stands between them stays to be seen.
/// Their breaks may be those of JSON, in which a text may stand several times over. What stands before the mark in its line,
/// such as a number, may stand before each line, and so may the signs of a patch, which may take out one key and bring another.
pub(super) fn key_lines(text: &str, begin: Range<usize>, search: &mut KeySearch<'_>) -> Vec<Range<usize>> {
    if is_mark(&text[begin.end + skipped(&text[begin.end..], None)..]) {
        // A text may have nothing but marks.
        return Vec::new();
    }
    let lead = search.lead(&text[..begin.start]);
    let lead = lead.as_ref();
    let is_pgp = text[begin.clone()].contains("PGP");
    let fields: &[&str] = if is_pgp { &PGP_FIELDS } else { &["Proc-Type", "DEK-Info"] };
    let mut lines: Vec<Range<usize>> = Vec::new();
    let (mut at, mut is_encrypted, mut follows, mut others) = (begin.end, false, false, 0);
    for _ in 0..KEY_LINES_MAX {
        let Some(left) = search.lines_left.checked_sub(1) else { return lines };
        search.lines_left = left;
        at += skipped(&text[at..], lead);
        let rest = &text[at..];
        if rest.is_empty() || is_mark(rest) {
            return lines;
        }
        // Fields of the older form, RFC 1421: `Proc-Type: 4,ENCRYPTED`.
        let name = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic() && c != '-').unwrap_or(rest.len())];
        if lines.is_empty() && fields.contains(&name) && rest[name.len()..].starts_with(':') {
            let rest = line_of(rest);
            let field = &rest[..rest.find(['\n', '\r', '\\']).unwrap_or(rest.len())];
            is_encrypted |= field.contains("ENCRYPTED");
            at += field.len();
            continue;
        }
        let line = &rest[..rest.find(|c| !is_base64(c)).unwrap_or(rest.len())];
        let behind = &rest[line.len()..];
        let (gap, next) = behind.split_at(breaks(behind));
        let is_whole = behind.is_empty() || ends_line(gap) || (!gap.is_empty() && is_mark(next));
        if line.is_empty() && is_whole {
            // What stands before each line stands before an empty one, too.
            continue;
        }
        // A sequence of ASN.1 and a packet of PGP, by their first byte.
        let is_key = is_encrypted
            || line.starts_with(OPENSSH_KEY)
            || (is_pgp && line.starts_with(['l', 'x']))
            || (line.starts_with('M') && line[1..].starts_with(|c: char| ('A'..='P').contains(&c)));
        let is_long = line.len() >= KEY_LINE_CHARS_MIN;
        if lines.is_empty() && !(is_key && is_long) {
            return lines;
        }
        // The last line of a key is shorter than the others.
        if is_long || (follows && is_whole && !line.is_empty()) {
            lines.push(at..at + line.len());
            (follows, others) = (true, 0);
            at += line.len();
        } else {
            (follows, others) = (false, others + 1);
            if others > OTHER_LINES_MAX {
                return lines;
            }
            let behind = line_of(behind);
            let Some(end) = [behind.find('\n'), behind.find("\\n")].into_iter().flatten().min() else { return lines };
            at += line.len() + end;
        }
    }
    lines
}

/// Whether a gap between two words has a line end, which may be written as in JSON.
fn ends_line(gap: &str) -> bool {
    gap.contains(['\n', '\r', 'n', 'r'])
}

/// Whether a line is the first or the last one of a key, also behind the sign of a patch.
fn is_mark(line: &str) -> bool {
    let text = line.trim_start_matches('-');
    line.len() - text.len() >= 5 && (text.starts_with("END ") || text.starts_with("BEGIN "))
}

/// The bytes up to the text of the next line: its break, and what stands before each line.
fn skipped(rest: &str, lead: Option<&Regex>) -> usize {
    let mut at = breaks(rest);
    if ends_line(&rest[..at]) {
        at += match lead.and_then(|lead| lead.find(&rest[at..])) {
            Some(lead) => lead.end(),
            None if is_mark(&rest[at..]) => 0,
            None => usize::from(rest[at..].starts_with(['+', '-'])),
        };
        at += blanks(&rest[at..]);
    }
    at
}

/// What a search or `cat -n` writes before each line: a path, a number.
pub(super) const NUMBERED: &str = r"^(?:[^\s:]{1,256}[:-])?[ \t]*[0-9]{1,9}(?:[:-][0-9]{1,9})?[:\t-][ \t]*";

/// What is known while the keys of one text are looked for. A text may have thousands of marks: shapes are compiled once, and the lines that
/// are looked at are bounded together.
pub(super) struct KeySearch<'r> {
    numbered: &'r Regex,
    /// What stands before marks, as shapes.
    known: HashMap<String, Option<Regex>>,
    lines_left: usize,
}

impl<'r> KeySearch<'r> {
    /// `numbered` is [`NUMBERED`].
    pub(super) fn new(numbered: &'r Regex, text: &str) -> Self {
        Self { numbered, known: HashMap::new(), lines_left: KEY_LINES_MAX + text.len() / LINE_BYTES_USUAL }
    }

    /// What stands before a mark in its line, as a shape of what stands before the lines that follow: numbers may differ.
    fn lead(&mut self, before: &str) -> Option<Regex> {
        let near = &before[before.ceil_char_boundary(before.len().saturating_sub(LEAD_BYTES_MAX + 1))..];
        let line = near.rfind('\n').map(|end| &near[end + 1..]).or((near.len() == before.len()).then_some(near));
        // `3:KEY = """`: of what stands there only the number comes again.
        let is_numbered =
            line.is_some_and(|line| self.numbered.find(line).is_some_and(|found| found.end() < line.len()));
        if is_numbered {
            return Some(self.numbered.clone());
        }
        let shape = lead_alike(before)?;
        if let Some(known) = self.known.get(&shape) {
            return known.clone();
        }
        if self.known.len() >= LEADS_MAX {
            return None;
        }
        let lead = Regex::new(&shape).ok();
        self.known.insert(shape, lead.clone());
        lead
    }
}

/// The shape of what stands before a mark, as text.
fn lead_alike(before: &str) -> Option<String> {
    let from = before.len().saturating_sub(LEAD_BYTES_MAX);
    let near = &before[before.ceil_char_boundary(from)..];
    // Also behind a line end as JSON writes it, which may stand in a text several times over.
    let ends = ["\n", "\r", "\\n", "\\r", "\"", "'"].iter().filter_map(|end| Some(near.rfind(end)? + end.len()));
    let start = ends.max().unwrap_or(if from == 0 { 0 } else { near.len() });
    let found = near[start..].trim_start();
    if found.contains('\u{1b}') {
        // Colors, which only a patch has: its signs are known.
        return None;
    }
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
    Some(shape)
}

/// The lines of a key directly before its last mark, where a cut has taken its first one.
pub(super) fn lines_before(text: &str, end: usize) -> Vec<Range<usize>> {
    let mut lines: Vec<Range<usize>> = Vec::new();
    let mut rest = text[..end].trim_end();
    for _ in 0..KEY_LINES_MAX {
        let near = rest.ceil_char_boundary(rest.len().saturating_sub(LINE_BYTES_MAX));
        let start = match rest[near..].rfind('\n') {
            Some(at) => near + at + 1,
            None if near == 0 => 0,
            None => break,
        };
        let line = rest[start..].trim_start();
        let from = rest.len() - line.len();
        let is_key = !line.is_empty() && line.chars().all(is_base64);
        // The last line is shorter than the others, behind it PGP has a sum, and of the first line a cut has left a part.
        if !is_key || !(lines.len() < 2 || start == 0 || line.len() >= KEY_LINE_CHARS_MIN) {
            break;
        }
        lines.push(from..rest.len());
        rest = rest[..start].trim_end();
    }
    let has_long = lines.iter().any(|line| line.len() >= KEY_LINE_CHARS_MIN);
    if has_long { lines } else { Vec::new() }
}

/// The beginning of a text, in which its line ends if it is one that is looked at.
fn line_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(LINE_BYTES_MAX)]
}

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')
}

/// The bytes at the start of a text that stand between two lines of a key: white space, and what joins two texts in the source
/// of a program.
fn breaks(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = &rest[line_ends(rest)..];
        match joint(rest) {
            Some(bytes) => rest = &rest[bytes..],
            None => return text.len() - rest.len(),
        }
    }
}

/// The bytes from the end of a quoted text to the start of the next one: `" +`, a line end and `"`.
fn joint(text: &str) -> Option<usize> {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`');
    let signs = [' ', '\t', '+', ',', '.', '&', ';'];
    let behind = text.trim_start_matches('\\').strip_prefix(is_quote)?.trim_start_matches(signs);
    // A line of the shell or of C that goes on.
    let behind = behind.strip_prefix("\\\n").unwrap_or(behind);
    let next = behind[line_ends(behind)..].trim_start_matches(signs).trim_start_matches('\\');
    Some(text.len() - next.strip_prefix(is_quote)?.len())
}

/// The bytes of white space at the start of a text, also as JSON writes it, and of colors (ECMA-48).
fn line_ends(text: &str) -> usize {
    let mut rest = text;
    loop {
        let next = &rest[blanks_and_ends(rest)..];
        let escape = next.trim_start_matches('\\');
        let is_escape = escape.len() < next.len() && escape.starts_with(['n', 'r', 't']);
        match is_escape {
            true => rest = &escape[1..],
            false => return text.len() - next.len(),
        }
    }
}

fn blanks_and_ends(text: &str) -> usize {
    let mut rest = text;
    loop {
        let next = uncolored(rest.trim_start());
        if next.len() == rest.len() {
            return text.len() - rest.len();
        }
        rest = next;
    }
}

/// The same without line ends.
fn blanks(text: &str) -> usize {
    let mut rest = text;
    loop {
        let next = uncolored(rest.trim_start_matches([' ', '\t']));
        if next.len() == rest.len() {
            return text.len() - rest.len();
        }
        rest = next;
    }
}

/// The text behind one sequence that sets a color, if it begins with one.
fn uncolored(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("\u{1b}[") else { return text };
    let parameters = inside.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    parameters.strip_prefix(['m', 'K']).unwrap_or(text)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn of_a_text_with_thousands_of_marks_few_shapes_are_compiled() {
        let numbered = Regex::new(NUMBERED).unwrap();
        let mut search = KeySearch::new(&numbered, "");
        let lead = |search: &mut KeySearch<'_>, before: &str| search.lead(before).map(|lead| lead.as_str().to_owned());
        for _ in 0..1000 {
            assert_eq!(lead(&mut search, "12:KEY = "), Some(NUMBERED.to_owned()));
            assert!(lead(&mut search, "> ").is_some());
        }
        assert_eq!(search.known.len(), 1);
        for number in 0..1000 {
            let letters: String = format!("{number:04}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
            lead(&mut search, &format!("{letters}> "));
        }
        assert_eq!(search.known.len(), LEADS_MAX);
    }

    #[test]
    fn of_a_text_with_thousands_of_marks_the_lines_are_looked_at_a_few_times_each() {
        let numbered = Regex::new(NUMBERED).unwrap();
        let (line, begin) = ("MIIEpAIBAAKCAQEAx7Qm2Zx9Kq2Lm8Vb4Nc7Ws1Er5Ty6Ui3Op0A", "-----BEGIN PRIVATE KEY-----");
        let text = format!("{line}> {begin}\n{line}\n").repeat(1000);
        let mut search = KeySearch::new(&numbered, &text);
        let found: usize =
            text.match_indices(begin).map(|(at, _)| key_lines(&text, at..at + begin.len(), &mut search).len()).sum();
        assert_eq!(search.lines_left, 0);
        assert!(found > 2000 && found <= KEY_LINES_MAX + text.len() / LINE_BYTES_USUAL, "{found}");
    }
}
