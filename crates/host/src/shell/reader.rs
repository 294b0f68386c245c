//! The grammar: lists, pipelines, groups, conditions, loops and redirections.

use toolhost_contract::shell::{SimpleCommand, Word};

use super::builtins;
use super::heredocs::Heredoc;
use super::words::Reading;
use super::{COMMAND_BYTES_MAX, COMMANDS_MAX, DEPTH_MAX};

/// An error is what is not understood, for people.
pub(super) type Step<T> = Result<T, &'static str>;

/// What the shell knows as words of its own where a command may begin.
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "time", "coproc", "in", "{", "}", "!", "[[", "]]",
];

pub(super) const IN_HEREDOC_LINE: &str = "it goes on over a line end where a here-document should begin";
/// Longest number of a stream in front of a redirection.
const STREAM_DIGITS_MAX: usize = 3;
const UNFINISHED: &str = "it is not a whole command";

/// One pass over the text.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    pub(super) at: usize,
    depth: usize,
    /// How many substitutions this place is in.
    pub(super) substitutions: usize,
    pub(super) heredocs: Vec<Heredoc>,
    commands: Vec<SimpleCommand>,
}

/// How a list ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Paren,
    Word(&'static str),
}

pub(super) fn read(text: &str) -> Step<Vec<SimpleCommand>> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err("it is too long");
    }
    check_characters(text)?;
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        depth: 0,
        substitutions: 0,
        heredocs: Vec::new(),
        commands: Vec::new(),
    };
    reader.list(&[End::Text])?;
    Ok(reader.commands)
}

/// Blanks that look like others, characters that cannot be seen, and what a terminal obeys: bash, a reader and a person
/// may each take them for something else.
fn check_characters(text: &str) -> Step<()> {
    for c in text.chars() {
        match c {
            '\n' | '\t' | ' '..='~' => {}
            _ if c.is_control() => return Err("it has a control character"),
            '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{ffff}'
            | '\u{e0000}'..='\u{e0fff}' => return Err("it has a character that cannot be seen"),
            _ if c.is_whitespace() => return Err("it has a blank that is not ASCII"),
            _ => {}
        }
    }
    Ok(())
}

/// What ends a word.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// What a path is written with that means the same however often it is expanded.
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"%+,-./:@_".contains(&byte)
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

impl<'t> Reader<'t> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_after(0)
    }

    pub(super) fn peek_after(&self, more: usize) -> Option<u8> {
        self.bytes.get(self.at + more).copied()
    }

    fn goes_on(&self, text: &str) -> bool {
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with(text))
    }

    fn skip(&mut self, text: &str) -> bool {
        let there = self.goes_on(text);
        self.at += if there { text.len() } else { 0 };
        there
    }

    /// Blanks, and an escaped line end between two words.
    pub(super) fn blanks(&mut self) -> Step<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_after(1) == Some(b'\n') => {
                    let blank = |byte: Option<u8>| matches!(byte, Some(b' ' | b'\t'));
                    let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at).copied());
                    let after = self.peek_after(2);
                    let word = after.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-./_'\"|&>".contains(&byte));
                    if !blank(before) || !(blank(after) || word) {
                        return Err("it has an escaped line end that is not between two words");
                    }
                    if !self.heredocs.is_empty() {
                        return Err(IN_HEREDOC_LINE);
                    }
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Everything there may be between two commands but `;`.
    fn gap(&mut self) -> Step<()> {
        loop {
            self.blanks()?;
            match self.peek() {
                Some(b'\n') => self.line_end()?,
                Some(b'#') => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn line_end(&mut self) -> Step<()> {
        self.at += 1;
        self.bodies()
    }

    /// The caller knows that a word would begin here.
    fn comment(&mut self) -> Step<()> {
        if self.substitutions > 0 || !self.heredocs.is_empty() {
            return Err("it has a comment in a substitution, or before a here-document");
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.find('\n').unwrap_or(rest.len());
        Ok(())
    }

    fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.depth == DEPTH_MAX {
            return Err("it is nested too deeply");
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// What stands in `$(` and `)`.
    pub(super) fn substitution(&mut self) -> Step<()> {
        if !self.heredocs.is_empty() {
            return Err(IN_HEREDOC_LINE);
        }
        self.substitutions += 1;
        let result = self.list(&[End::Paren]);
        self.substitutions -= 1;
        result.map(|_| ())
    }

    /// Commands up to one of these ends, which is read too. There is at least one, but in a text of comments alone.
    fn list(&mut self, ends: &[End]) -> Step<End> {
        self.deeper(|reader| {
            let mut any = false;
            // After `&&` and `||`.
            let mut needed = false;
            loop {
                reader.gap()?;
                if let Some(end) = reader.end() {
                    let early = needed || (!any && end != End::Text) || !reader.heredocs.is_empty();
                    return if early || !ends.contains(&end) { Err(UNFINISHED) } else { Ok(end) };
                }
                reader.pipeline()?;
                any = true;
                reader.blanks()?;
                needed = reader.skip("&&") || reader.skip("||");
                if needed {
                    continue;
                }
                match (reader.peek(), reader.peek_after(1)) {
                    (Some(b';'), Some(b';' | b'&')) => return Err("it has the end of a case"),
                    (Some(b';' | b'&'), _) => reader.at += 1,
                    (None | Some(b'\n' | b'#' | b')'), _) => {}
                    _ => return Err("a command does not end where it should"),
                }
            }
        })
    }

    /// The end of a list that stands here, and behind it. A text has no end but its own.
    fn end(&mut self) -> Option<End> {
        if self.at >= self.bytes.len() {
            return Some(End::Text);
        }
        if self.skip(")") {
            return Some(End::Paren);
        }
        let word = self.reserved()?;
        let ends = ["then", "elif", "else", "fi", "do", "done", "}"].contains(&word);
        if !ends {
            return None;
        }
        self.at += word.len();
        Some(End::Word(word))
    }

    /// The reserved word that stands here.
    fn reserved(&self) -> Option<&'static str> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.iter().position(|byte| is_meta(*byte)).unwrap_or(rest.len());
        let word = rest.get(..end)?;
        RESERVED.iter().copied().find(|reserved| reserved.as_bytes() == word)
    }

    fn pipeline(&mut self) -> Step<()> {
        while self.reserved() == Some("!") {
            self.at += 1;
            self.blanks()?;
        }
        let mut first = true;
        loop {
            let began = self.commands.len();
            self.command()?;
            if !first {
                self.feed(began, false);
            }
            first = false;
            self.blanks()?;
            if self.goes_on("||") || !self.skip("|") {
                return Ok(());
            }
            self.skip("&");
            self.gap()?;
        }
    }

    /// All commands since then get their input from elsewhere.
    fn feed(&mut self, began: usize, redirected: bool) {
        for command in self.commands.iter_mut().skip(began) {
            command.fed = true;
            command.redirected |= redirected;
        }
    }

    fn push(&mut self, command: SimpleCommand) -> Step<()> {
        if self.commands.len() == COMMANDS_MAX {
            return Err("it has too many commands");
        }
        self.commands.push(command);
        Ok(())
    }

    fn command(&mut self) -> Step<()> {
        let began = self.commands.len();
        if self.peek() == Some(b'(') {
            if self.peek_after(1) == Some(b'(') {
                return Err("it has arithmetic");
            }
            self.at += 1;
            self.list(&[End::Paren])?;
            return self.redirects(began);
        }
        let Some(word) = self.reserved() else { return self.simple() };
        self.at += word.len();
        match word {
            "{" if matches!(self.peek(), Some(b' ' | b'\t' | b'\n')) => {
                self.list(&[End::Word("}")])?;
            }
            "if" => self.condition()?,
            "while" | "until" => {
                self.list(&[End::Word("do")])?;
                self.list(&[End::Word("done")])?;
            }
            "for" => self.for_loop()?,
            "[[" => return Err("it has `[[`"),
            "case" | "select" | "function" | "time" | "coproc" => {
                return Err("it has `case`, `select`, `function`, `time` or `coproc`");
            }
            _ => return Err("a word of the shell's own stands where none belongs"),
        }
        self.redirects(began)
    }

    fn condition(&mut self) -> Step<()> {
        loop {
            self.list(&[End::Word("then")])?;
            match self.list(&[End::Word("elif"), End::Word("else"), End::Word("fi")])? {
                End::Word("elif") => {}
                End::Word("else") => return self.list(&[End::Word("fi")]).map(|_| ()),
                _ => return Ok(()),
            }
        }
    }

    fn for_loop(&mut self) -> Step<()> {
        self.blanks()?;
        let name = self.name_at(self.at).to_owned();
        if name.is_empty() || !self.peek_after(name.len()).is_some_and(is_meta) {
            return Err("the variable of a loop is not plain");
        }
        builtins::check_variable(&name)?;
        self.at += name.len();
        self.blanks()?;
        self.push(SimpleCommand::deed("for", Word::literal(&name)))?;
        if self.reserved() == Some("in") {
            self.at += 2;
            self.blanks()?;
            while self.peek().is_some_and(|byte| byte != b'#' && !is_meta(byte)) {
                self.word(Reading::Argument)?;
                self.blanks()?;
            }
        }
        match self.peek() {
            Some(b';') => self.at += 1,
            Some(b'\n') => {}
            _ => return Err("the words of a loop are not plain"),
        }
        self.gap()?;
        if self.reserved() != Some("do") {
            return Err(UNFINISHED);
        }
        self.at += 2;
        self.list(&[End::Word("done")]).map(|_| ())
    }

    /// What follows a group, a condition or a loop.
    fn redirects(&mut self, began: usize) -> Step<()> {
        loop {
            self.blanks()?;
            let digits = self.digits_before_redirect()?;
            if digits == 0 && !self.at_redirect() {
                return Ok(());
            }
            self.at += digits;
            if self.redirect()? {
                self.feed(began, true);
            }
        }
    }

    fn at_redirect(&self) -> bool {
        matches!(self.peek(), Some(b'<' | b'>')) || self.goes_on("&>")
    }

    /// How many digits stand here in front of `<` or `>`: the number of a stream.
    fn digits_before_redirect(&self) -> Step<usize> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        match rest.get(digits) {
            // A number that is too large is a word.
            Some(b'<' | b'>') if digits > STREAM_DIGITS_MAX => Err("the number of a stream is too large"),
            Some(b'<' | b'>') => Ok(digits),
            _ => Ok(0),
        }
    }

    fn simple(&mut self) -> Step<()> {
        let began = self.commands.len();
        let (mut assignments, mut words) = (Vec::new(), Vec::<Word>::new());
        // It stands before what is substituted in it.
        self.push(SimpleCommand::new(Vec::new(), Vec::new()))?;
        let (mut fed, mut any) = (false, false);
        loop {
            self.blanks()?;
            let digits = self.digits_before_redirect()?;
            match self.peek() {
                _ if digits > 0 || self.at_redirect() => {
                    self.at += digits;
                    fed |= self.redirect()?;
                }
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                // Here a word would begin.
                Some(b'#') => break,
                Some(b'(') => return Err("it has a function, an array or a pattern of bash's own"),
                Some(_) => {
                    if words.is_empty() && self.reserved().is_some() {
                        return Err("a word of the shell's own stands where none belongs");
                    }
                    if words.is_empty() && self.is_assignment() {
                        assignments.push(self.word(Reading::Assignment)?);
                    } else {
                        words.push(self.word(Reading::Argument)?);
                    }
                    if self.peek() == Some(b'(') {
                        return Err("it has a function, an array or a pattern of bash's own");
                    }
                }
            }
            any = true;
        }
        if !any {
            return Err(UNFINISHED);
        }
        builtins::check(&assignments, &words)?;
        if assignments.is_empty() && words.is_empty() {
            self.commands.remove(began);
        } else if let Some(command) = self.commands.get_mut(began) {
            *command = SimpleCommand::new(assignments, words);
        }
        if fed {
            self.feed(began, true);
        }
        Ok(())
    }

    fn is_assignment(&self) -> bool {
        let name = self.name_at(self.at);
        !name.is_empty() && self.peek_after(name.len()) == Some(b'=')
    }

    /// A redirection; whether it is one of input. One into a file is a deed of its own; one to `/dev/null` or another
    /// stream is not.
    fn redirect(&mut self) -> Step<bool> {
        const OPERATORS: &[&str] = &["<<<", "<<-", "<<", "<&", "<>", "<", "&>>", "&>", ">>", ">&", ">|", ">"];
        let operator = OPERATORS.iter().copied().find(|operator| self.goes_on(operator)).ok_or(UNFINISHED)?;
        self.at += operator.len();
        if self.peek() == Some(b'(') {
            return Err("it has a process substitution");
        }
        if let "<<" | "<<-" = operator {
            return self.heredoc(operator == "<<-").map(|()| true);
        }
        self.blanks()?;
        if self.peek().is_none_or(|byte| byte == b'#' || is_meta(byte)) || self.digits_before_redirect()? > 0 {
            return Err("the target of a redirection is not plain");
        }
        if operator.ends_with('&') && self.peek() == Some(b'-') && self.peek_after(1).is_some_and(|byte| !is_meta(byte))
        {
            // `>&-` is a word of its own, and what follows it another.
            return Err("the target of a redirection is not plain");
        }
        let target = self.word(Reading::Argument)?;
        let input = operator.starts_with('<');
        if operator == "<<<" {
            return Ok(true);
        }
        if ["/dev/tcp/", "/dev/udp/"].iter().any(|device| target.start.starts_with(device)) {
            return Err("it opens a connection by a redirection");
        }
        let plain = target.bare && target.known;
        // `2`, `2-` and `-`.
        let stream = target.text.strip_suffix('-').unwrap_or(&target.text).bytes().all(|byte| byte.is_ascii_digit());
        let harmless = match operator {
            ">&" | "<&" if plain && stream => true,
            // Where `>&` names a file, bash expands what it has already expanded a second time.
            ">&" if plain && target.text.bytes().all(is_path_byte) => target.is("/dev/null"),
            ">&" | "<&" => return Err("the target of a redirection is not plain"),
            "<>" => false,
            _ => operator == "<" || target.is("/dev/null"),
        };
        if !harmless {
            self.push(SimpleCommand::deed(">", target))?;
        }
        Ok(input)
    }
}
