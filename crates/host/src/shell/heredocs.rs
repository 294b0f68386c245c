//! Here-documents: their bodies begin after the line that names them.

use super::reader::{Reader, Step, is_meta};

/// Most here-documents of one line; bash has the same limit.
const HEREDOCS_MAX: usize = 16;

/// A here-document whose body is still to come.
pub(super) struct Heredoc {
    end: String,
    /// Nothing in the body means anything but itself.
    quoted: bool,
    /// `<<-`: tabs in front of its lines are left out.
    tabs: bool,
}

impl Reader<'_> {
    /// What follows `<<` or `<<-`.
    pub(super) fn heredoc(&mut self, tabs: bool) -> Step<()> {
        if self.substitutions > 0 {
            return Err("it has a here-document in a substitution");
        }
        self.blanks()?;
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
        self.at += usize::from(quote.is_some());
        let rest = self.text.get(self.at..).unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let end = rest.bytes().position(|byte| !plain(byte)).unwrap_or(rest.len());
        let end = rest.get(..end).unwrap_or_default().to_owned();
        self.at += end.len();
        if quote.is_some() && self.peek() == quote {
            self.at += 1;
        } else if quote.is_some() {
            return Err("the end of a here-document is not plain");
        }
        if end.is_empty() || self.peek().is_some_and(|byte| !is_meta(byte)) {
            return Err("the end of a here-document is not plain");
        }
        if self.heredocs.len() == HEREDOCS_MAX {
            return Err("it has too many here-documents");
        }
        self.heredocs.push(Heredoc { end, quoted: quote.is_some(), tabs });
        Ok(())
    }

    /// The bodies that begin on this line.
    pub(super) fn bodies(&mut self) -> Step<()> {
        for heredoc in std::mem::take(&mut self.heredocs) {
            loop {
                let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty());
                let rest = rest.ok_or("a here-document does not end")?;
                let line = rest.split('\n').next().unwrap_or_default();
                self.at = (self.at + line.len() + 1).min(self.bytes.len());
                let line = if heredoc.tabs { line.trim_start_matches('\t') } else { line };
                if line == heredoc.end {
                    break;
                }
                if !heredoc.quoted && line.contains(['$', '`', '\\']) {
                    return Err("it has a here-document with expansions");
                }
            }
        }
        Ok(())
    }
}
