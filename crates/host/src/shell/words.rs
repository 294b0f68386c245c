//! Words: quotes, escapes and what is only known when the command runs.

use toolhost_contract::shell::Word;

use super::reader::{IN_HEREDOC_LINE, Reader, Step, is_meta, is_name_byte};

/// How a word is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Argument,
    /// The value of `NAME=value`: no globs and no braces.
    Assignment,
}

/// A word under way.
struct Making {
    value: String,
    /// How much of the value is in front of the first thing that is not known.
    certain: Option<usize>,
    single: bool,
    bare: bool,
    braces: bool,
    substituted: bool,
}

impl Making {
    fn unknown(&mut self, quoted: bool) {
        self.certain.get_or_insert(self.value.len());
        self.single &= quoted;
    }
}

impl Reader<'_> {
    /// The word that begins here. There is one: the caller has looked.
    pub(super) fn word(&mut self, reading: Reading) -> Step<Word> {
        let began = self.at;
        let mut word =
            Making { value: String::new(), certain: None, single: true, bare: true, braces: false, substituted: false };
        while let Some(byte) = self.peek() {
            if is_meta(byte) {
                break;
            }
            self.piece(byte, began, reading, &mut word)?;
        }
        let raw = self.text.get(began..self.at).unwrap_or_default();
        if raw.is_empty() {
            return Err("it is not a whole command");
        }
        if word.braces && (raw.contains(',') || raw.contains("..")) {
            if word.substituted {
                return Err("it has braces around a substitution");
            }
            let brace = word.value.find('{').unwrap_or(0);
            word.certain = Some(word.certain.map_or(brace, |certain| certain.min(brace)));
            word.single = false;
        }
        if word.braces && matches!(self.peek(), Some(b'<' | b'>')) {
            return Err("it opens a stream by a variable");
        }
        let start = word.value.get(..word.certain.unwrap_or(word.value.len())).unwrap_or_default().to_owned();
        let known = word.certain.is_none();
        let text = if known { word.value } else { raw.to_owned() };
        Ok(Word { text, known, start, single: word.single, bare: word.bare })
    }

    fn piece(&mut self, byte: u8, began: usize, reading: Reading, word: &mut Making) -> Step<()> {
        let argument = reading == Reading::Argument;
        match byte {
            b'\'' => {
                word.bare = false;
                let rest = self.text.get(self.at + 1..).unwrap_or_default();
                let inside = rest.find('\'').and_then(|end| rest.get(..end)).ok_or("a quote does not end")?;
                self.check_quoted(inside)?;
                word.value.push_str(inside);
                self.at += inside.len() + 2;
                return Ok(());
            }
            b'"' => return self.double_quoted(word),
            b'\\' => {
                word.bare = false;
                let escaped = self.peek_after(1).filter(|byte| (b' '..=b'~').contains(byte));
                let escaped = escaped.ok_or("it has an escaped line end within a word")?;
                self.check_backtick(escaped)?;
                word.value.push(char::from(escaped));
                self.at += 2;
                return Ok(());
            }
            b'$' => return self.dollar(false, word),
            b'`' => return Err("it has backticks"),
            b'[' if argument && !(self.at == began && self.peek_after(1).is_none_or(is_meta)) => word.unknown(false),
            b'*' | b'?' if argument => word.unknown(false),
            b'~' => {
                let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
                if self.at == began || matches!(before, Some(b'=' | b':')) {
                    word.unknown(!argument);
                }
            }
            b'{' if argument => word.braces = true,
            byte if byte >= 0x80 => {
                let c = self.text.get(self.at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
                if !c.is_alphanumeric() {
                    return Err("it has a sign outside of quotes that is not ASCII");
                }
                word.value.push(c);
                self.at += c.len_utf8();
                return Ok(());
            }
            _ => {}
        }
        word.value.push(char::from(byte));
        self.at += 1;
        Ok(())
    }

    fn double_quoted(&mut self, word: &mut Making) -> Step<()> {
        word.bare = false;
        self.at += 1;
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest.find(['"', '\\', '$', '`']).ok_or("a quote does not end")?;
            let inside = rest.get(..plain).unwrap_or_default();
            self.check_quoted(inside)?;
            word.value.push_str(inside);
            self.at += plain;
            match (self.peek(), self.peek_after(1)) {
                (Some(b'"'), _) => {
                    self.at += 1;
                    return Ok(());
                }
                (Some(b'$'), _) => self.dollar(true, word)?,
                (Some(b'\\'), Some(escaped @ (b'$' | b'`' | b'"' | b'\\'))) => {
                    self.check_backtick(escaped)?;
                    word.value.push(char::from(escaped));
                    self.at += 2;
                }
                (Some(b'\\'), Some(b'\n')) => return Err("it has an escaped line end in quotes"),
                (Some(b'\\'), Some(_)) => {
                    word.value.push('\\');
                    self.at += 1;
                }
                (Some(b'`'), _) => return Err("it has backticks"),
                _ => return Err("a quote does not end"),
            }
        }
    }

    /// What begins with a `$`.
    fn dollar(&mut self, quoted: bool, word: &mut Making) -> Step<()> {
        let literal = match self.peek_after(1) {
            Some(b'(') => {
                if self.peek_after(2) == Some(b'(') {
                    return Err("it has arithmetic");
                }
                word.unknown(quoted);
                word.substituted = true;
                self.at += 2;
                return self.substitution();
            }
            Some(b'{') => {
                let name = self.name_at(self.at + 2);
                if name.is_empty() || self.peek_after(2 + name.len()) != Some(b'}') {
                    return Err("it has an expansion in braces other than `${NAME}`");
                }
                self.at += name.len() + 3;
                false
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => {
                self.at += 1 + self.name_at(self.at + 1).len();
                false
            }
            Some(byte) if byte.is_ascii_digit() || b"*#?$!-".contains(&byte) => {
                self.at += 2;
                false
            }
            Some(b'@') => {
                self.at += 2;
                word.single = false;
                false
            }
            Some(b' ' | b'\t' | b'\n' | b'|' | b')') | None => true,
            Some(b'"' | b'/' | b'.' | b',' | b'\\') if quoted => true,
            _ => return Err("it has a `$` with another meaning than a variable's"),
        };
        if literal {
            word.value.push('$');
            self.at += 1;
        } else {
            word.unknown(quoted);
            word.substituted = true;
        }
        Ok(())
    }

    /// The name of a variable that begins there, or nothing.
    pub(super) fn name_at(&self, at: usize) -> &str {
        let rest = self.text.get(at..).unwrap_or_default();
        let end = rest.bytes().position(|byte| !is_name_byte(byte)).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        if name.starts_with(|c: char| c.is_ascii_digit()) { "" } else { name }
    }

    fn check_quoted(&self, inside: &str) -> Step<()> {
        if inside.contains('\n') && !self.heredocs.is_empty() { Err(IN_HEREDOC_LINE) } else { Ok(()) }
    }

    /// Older versions of bash look into a substitution for backticks, escaped or not.
    fn check_backtick(&self, escaped: u8) -> Step<()> {
        if escaped == b'`' && self.substitutions > 0 { Err("it has backticks in a substitution") } else { Ok(()) }
    }
}
