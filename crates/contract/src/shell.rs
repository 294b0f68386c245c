//! What a shell command runs, as the host has taken it apart: for rules, hints and previews.

/// They run the text behind `-c`.
pub const SHELLS: &[&str] = &["bash", "sh", "dash", "zsh", "ksh", "rbash", "ash", "mksh", "su", "script"];
/// They read commands from their input, and their text is not taken apart.
const OTHER_SHELLS: &[&str] = &["fish", "busybox"];
/// Names under which a program finds its own input.
const INPUTS: &[&str] = &["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// A shell command, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Analyzed {
    /// Every simple command in it, wherever it stands: in lists, pipes, loops and substitutions. It runs no others.
    Commands(Vec<SimpleCommand>),
    /// It may run anything.
    NotAnalyzable {
        /// What in it is not understood, for people: `it has backticks`.
        why: &'static str,
    },
}

/// One simple command; also what changes later ones (an assignment, a loop's variable) or a file (a redirection).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Assignments in front of it.
    pub assignments: Vec<Word>,
    /// The program and its arguments; empty for assignments alone.
    pub words: Vec<Word>,
    /// All of it, unquoted where that is known, joined by single spaces.
    pub text: String,
    /// Whether this is a command and each of its words is known as it stands: no variables, no substitutions, no globs.
    pub literal: bool,
    /// Its input comes from a pipe, a file or a here-document.
    pub fed: bool,
    /// That input is a file or a here-document, of which the text of the command says nothing.
    pub redirected: bool,
    /// The commands that it runs in its turn, as far as that is certain: `vim x` of `env vim x` and of `bash -c 'vim x'`.
    /// Rules that ask or deny look at them, and none that allows.
    pub handed: Vec<SimpleCommand>,
    /// Whether it surely runs more than its text says: `env $X`, `GIT_CONFIG_COUNT=1 git x`.
    pub runs_more: bool,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Unquoted where the word is known, else as it was written.
    pub text: String,
    /// Whether it is one word with this very text, whatever the state of things when it runs.
    pub known: bool,
    /// What it begins with for certain.
    pub start: String,
    /// Whether it is one word, known or not.
    pub single: bool,
    /// Whether it was written without quotes and escapes.
    pub bare: bool,
}

impl Analyzed {
    /// The same commands with an input that is not in their text: any of them may read it.
    #[must_use]
    pub fn with_input(mut self) -> Self {
        let mut open: Vec<&mut SimpleCommand> = match &mut self {
            Self::Commands(commands) => commands.iter_mut().collect(),
            Self::NotAnalyzable { .. } => Vec::new(),
        };
        while let Some(command) = open.pop() {
            command.fed = true;
            open.extend(&mut command.handed);
        }
        self
    }
}

impl SimpleCommand {
    /// A command with these assignments in front of it.
    pub fn new(assignments: Vec<Word>, words: Vec<Word>) -> Self {
        let literal = assignments.iter().chain(&words).all(|word| word.known);
        let text = joined(assignments.iter().chain(&words));
        Self { assignments, words, text, literal, fed: false, redirected: false, handed: Vec::new(), runs_more: false }
    }

    /// No command, but a deed that a rule may speak of: `> file`.
    pub fn deed(what: &'static str, object: Word) -> Self {
        let deed = Self::new(Vec::new(), vec![Word::literal(what), object]);
        Self { literal: false, ..deed }
    }

    /// Whether it is a shell.
    pub fn is_shell(&self) -> bool {
        self.words.first().is_some_and(Word::is_shell)
    }

    /// Whether it has an option `-c`, behind which stands what it runs.
    pub fn has_text(&self) -> bool {
        self.words.iter().skip(1).any(Word::is_text_option)
    }

    /// Whether it is a shell that reads its commands from an input of which its text says nothing.
    pub fn runs_its_input(&self) -> bool {
        (self.fed || self.redirected)
            && self.is_shell()
            && !self.has_text()
            && self.words.iter().skip(1).all(Word::is_no_script)
    }

    /// Whether one of its texts, with and without its assignments, matches; or could, by what is known of it, where a
    /// match has to begin with `start`.
    pub fn may_match(&self, matches: impl Fn(&str) -> bool, start: &str) -> bool {
        if matches(&self.text)
            || matches(&self.told_apart())
            || could_begin(self.assignments.iter().chain(&self.words), start)
        {
            return true;
        }
        // `FOO=1 curl x` runs curl no less.
        !self.assignments.is_empty()
            && !self.words.is_empty()
            && (matches(&joined(self.words.iter())) || could_begin(self.words.iter(), start))
    }

    /// As [`text`](Self::text), with quotes around each word that would be read as several, or as none, without them. What a
    /// rule allows is compared with this one: `rm -rf 'my build'` is not `rm -rf my build`.
    pub fn told_apart(&self) -> String {
        let words = self.assignments.iter().chain(&self.words).map(|word| {
            if word.is_one() || !word.known {
                word.text.clone()
            } else {
                format!("'{}'", word.text.replace('\'', r"'\''"))
            }
        });
        words.collect::<Vec<String>>().join(" ")
    }

    /// It as people are shown it: quoted where that is needed to tell its words apart.
    pub fn shown(&self) -> String {
        // The name of a program is plain, or it would not be here.
        let program = self.words.first().map(|word| word.text.clone());
        let arguments = self.words.iter().skip(1).map(Word::shown);
        let words = self.assignments.iter().map(Word::as_assignment).chain(program).chain(arguments);
        words.collect::<Vec<String>>().join(" ")
    }
}

impl Word {
    /// One that is known.
    pub fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), known: true, start: text.to_owned(), single: true, bare: true }
    }

    /// Any number of words of which nothing is known.
    pub fn unknown() -> Self {
        Self { text: "...".to_owned(), known: false, start: String::new(), single: false, bare: false }
    }

    /// What a program puts in the place of `placeholder` is not known.
    pub fn filled(&mut self, placeholder: &str) {
        if let Some(at) = self.text.find(placeholder).filter(|_| self.known) {
            self.start = self.text[..at].to_owned();
            self.known = false;
        }
    }

    /// Whether it is known to be this text.
    pub fn is(&self, text: &str) -> bool {
        self.known && self.text == text
    }

    /// Whether its text is read as one word without quotes.
    pub fn is_one(&self) -> bool {
        !self.text.is_empty() && !self.text.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c))
    }

    /// As people are shown it: quoted where that is needed.
    pub fn shown(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(&byte) || byte >= 0x80;
        let plain = !self.text.is_empty() && self.text.bytes().all(plain);
        if !self.known || plain || matches!(self.text.as_str(), "[" | "]" | "{}") {
            return self.text.clone();
        }
        format!("'{}'", self.text.replace('\'', r"'\''"))
    }

    /// As [`shown`](Self::shown), with quotes around the value alone.
    pub fn as_assignment(&self) -> String {
        match self.text.split_once('=') {
            Some((name, value)) if self.known => format!("{name}={}", Self::literal(value).shown_value()),
            _ => self.text.clone(),
        }
    }

    fn shown_value(&self) -> String {
        if self.text.is_empty() { String::new() } else { self.shown() }
    }

    /// Whether it names a shell.
    pub fn is_shell(&self) -> bool {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        self.known && (SHELLS.contains(&name) || OTHER_SHELLS.contains(&name))
    }

    /// `-c`, a cluster of options that ends in it, such as `-lc`, and `--command`.
    pub fn is_text_option(&self) -> bool {
        let is_cluster = self.text.starts_with('-') && !self.text.starts_with("--") && self.text.ends_with('c');
        self.known && (is_cluster || self.text == "--command")
    }

    /// An option, or a name of the program's own input.
    pub fn is_no_script(&self) -> bool {
        self.known && (self.text.starts_with('-') || INPUTS.contains(&self.text.as_str()))
    }
}

fn joined<'w>(words: impl Iterator<Item = &'w Word>) -> String {
    words.map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Whether words of which not all are known could be a text that begins with `start`.
fn could_begin<'w>(words: impl Iterator<Item = &'w Word>, start: &str) -> bool {
    let mut certain = String::new();
    for word in words {
        if word.known {
            certain.push_str(&word.text);
            certain.push(' ');
            continue;
        }
        // Where the word comes to nothing, so does the blank in front of it: what matches that is shorter still.
        certain.push_str(&word.start);
        return certain.starts_with(start) || start.starts_with(&certain);
    }
    false
}
