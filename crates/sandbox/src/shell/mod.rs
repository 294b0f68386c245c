//! What a shell command runs, as far as that is certain: for rules, hints and previews. It protects nothing; the fence
//! does.
//!
//! A reader of our own takes a small part of bash apart, byte by byte and in one pass. Whatever is not in that part is
//! *not analyzable*, however harmless: bash has too many corners to list what is dangerous, so what is understood is
//! listed instead. Tests hold the reader against bash itself with texts that are made up.

mod builtins;
mod handed;
mod heredocs;
mod reader;
mod words;

#[cfg(test)]
mod tests;

pub use words::Word;

/// Longer commands are not analyzed, bytes.
const COMMAND_BYTES_MAX: usize = 32 * 1024;
/// Most simple commands in one command.
const COMMANDS_MAX: usize = 500;
/// Deepest nesting of groups, conditions, loops and substitutions, counted together.
const DEPTH_MAX: usize = 24;

/// How often a command is followed into one that it runs: `env nohup timeout 5 bash -c 'vim x'`.
const HANDED_DEPTH_MAX: usize = 8;

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

/// Takes a command apart as bash would. The time and the memory it takes grow with its length alone.
pub fn analyze(text: &str) -> Analyzed {
    match reader::read(text) {
        Ok(mut commands) => {
            commands.iter_mut().for_each(|command| handed::find(command, HANDED_DEPTH_MAX));
            Analyzed::Commands(commands)
        }
        Err(why) => Analyzed::NotAnalyzable { why },
    }
}

impl SimpleCommand {
    fn new(assignments: Vec<Word>, words: Vec<Word>) -> Self {
        let literal = assignments.iter().chain(&words).all(|word| word.known);
        let text = joined(assignments.iter().chain(&words));
        Self { assignments, words, text, literal, fed: false, redirected: false, handed: Vec::new(), runs_more: false }
    }

    /// No command, but a deed that a rule may speak of: `> file`.
    fn deed(what: &'static str, object: Word) -> Self {
        let deed = Self::new(Vec::new(), vec![Word::literal(what), object]);
        Self { literal: false, ..deed }
    }

    /// Whether it is a shell.
    pub fn is_shell(&self) -> bool {
        self.words.first().is_some_and(handed::is_shell)
    }

    /// Whether it has an option `-c`, behind which stands what it runs.
    pub fn has_text(&self) -> bool {
        self.words.iter().skip(1).any(handed::is_text_option)
    }

    /// Whether it is a shell that reads its commands from an input of which its text says nothing.
    pub fn runs_its_input(&self) -> bool {
        (self.fed || self.redirected)
            && self.is_shell()
            && !self.has_text()
            && self.words.iter().skip(1).all(handed::is_no_script)
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
