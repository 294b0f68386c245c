//! Forms with files, as browsers send them: `multipart/form-data` (RFC 7578), from a body that is at hand as a whole.

use std::collections::BTreeMap;

use toolhost_contract::{ErrorKind, ToolError};

/// Fields and files of one form.
const PARTS_MAX: usize = 32;
/// Bytes of the head of one of them.
const HEAD_BYTES_MAX: usize = 4096;

/// What a form with files says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) fields: BTreeMap<String, String>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

/// What separates the parts of a form with files; `None`: it is another kind of form.
pub(super) fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let mut named = parameters.split(';').filter_map(|parameter| parameter.trim().split_once('='));
    let (_, value) = named.find(|(name, _)| name.eq_ignore_ascii_case("boundary"))?;
    Some(value.trim_matches('"')).filter(|value| (1..=70).contains(&value.len()))
}

/// Reads a form with files.
///
/// # Errors
/// If it is none, has too many parts, or one of its fields is no text or stands there twice.
pub(super) fn parse(body: &[u8], boundary: &str) -> Result<Sent, ToolError> {
    let wrong = || ToolError::new(ErrorKind::Validation, "The form with its file could not be read.");
    let line = format!("--{boundary}");
    let separator = format!("\r\n{line}");
    let mut sent = Sent::default();
    let mut rest = body.strip_prefix(line.as_bytes()).ok_or_else(wrong)?;
    for _ in 0..=PARTS_MAX {
        if rest.starts_with(b"--") {
            return Ok(sent);
        }
        rest = rest.strip_prefix(b"\r\n").ok_or_else(wrong)?;
        let head = find(&rest[..rest.len().min(HEAD_BYTES_MAX)], b"\r\n\r\n").ok_or_else(wrong)?;
        let (name, is_file) = named(&rest[..head]).ok_or_else(wrong)?;
        rest = &rest[head + 4..];
        let end = find(rest, separator.as_bytes()).ok_or_else(wrong)?;
        let content = rest[..end].to_vec();
        rest = &rest[end + separator.len()..];
        let is_second = match is_file {
            true => sent.files.insert(name, content).is_some(),
            false => sent.fields.insert(name, String::from_utf8(content).map_err(|_| wrong())?).is_some(),
        };
        if is_second {
            return Err(wrong());
        }
    }
    Err(wrong())
}

/// The name of a part, and whether it is a file.
fn named(head: &[u8]) -> Option<(String, bool)> {
    let head = std::str::from_utf8(head).ok()?;
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-disposition").then(|| value.trim())
    })?;
    let parameters = disposition.strip_prefix("form-data;")?;
    let value = |name: &str| {
        let begin = format!(" {name}=\"");
        let (_, rest) = parameters.split_once(&begin)?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    Some((value("name")?, value("filename").is_some()))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{PARTS_MAX, boundary, parse};

    fn part(head: &str, content: &str) -> String {
        format!("--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n")
    }

    #[test]
    fn fields_and_files_are_read_byte_for_byte() {
        let file = "name=\"file\"; filename=\"a.zip\"\r\nContent-Type: application/zip";
        let body = format!("{}{}--x--\r\n", part("name=\"a\"", "one\r\n--y"), part(file, "P\r\n\r\nK"));
        let sent = parse(body.as_bytes(), "x").unwrap();
        assert_eq!((&*sent.fields["a"], &*sent.files["file"]), ("one\r\n--y", &b"P\r\n\r\nK"[..]));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let one = part("name=\"a\"", "1");
        let many: String = (0..=PARTS_MAX).map(|number| part(&format!("name=\"{number}\""), "1")).collect();
        for body in ["", "--x", "--x\r\n", "--y--", &one, &format!("{one}{one}--x--"), &format!("{many}--x--")] {
            assert!(parse(body.as_bytes(), "x").is_err(), "{body}");
        }
        assert!(parse(format!("{}--x--", part("a=\"b\"", "1")).as_bytes(), "x").is_err());
    }

    #[test]
    fn the_boundary_is_that_of_a_form_with_files() {
        assert_eq!(boundary("multipart/form-data; boundary=ab"), Some("ab"));
        assert_eq!(boundary("Multipart/Form-Data; charset=utf-8; boundary=\"a b\""), Some("a b"));
        for other in ["multipart/mixed; boundary=a", "multipart/form-data", "multipart/form-data; boundary="] {
            assert_eq!(boundary(other), None, "{other}");
        }
    }
}
