//! Commands that others run for somebody: `env vim x`, `timeout 5 less x`, `bash -c 'vim x'`.

use toolhost_contract::shell::{SHELLS, SimpleCommand, Word};

use super::{builtins, reader};

/// A program that runs the command which follows its own options.
struct Wrapper {
    name: &'static str,
    /// Options that take the next word as their value, where none is attached.
    with_value: &'static [&'static str],
    /// Words of its own in front of the command.
    operands: usize,
}

const fn wrapper(name: &'static str, with_value: &'static [&'static str], operands: usize) -> Wrapper {
    Wrapper { name, with_value, operands }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("env", &["-u", "--unset", "-C", "--chdir"], 0),
    wrapper("sudo", &["-u", "--user", "-g", "--group", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t"], 0),
    wrapper("doas", &["-u", "-C"], 0),
    wrapper("nohup", &[], 0),
    wrapper("setsid", &[], 0),
    wrapper("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
    wrapper("nice", &["-n", "--adjustment"], 0),
    wrapper("ionice", &["-c", "-n"], 0),
    wrapper("stdbuf", &["-i", "-o", "-e"], 0),
    wrapper("time", &["-f", "-o"], 0),
    wrapper(
        "xargs",
        &[
            "-I",
            "-L",
            "-n",
            "-P",
            "-s",
            "-d",
            "-E",
            "-a",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-procs",
            "--max-chars",
            "--process-slot-var",
        ],
        0,
    ),
    wrapper(
        "parallel",
        &["-I", "-L", "-n", "-N", "-j", "--jobs", "-a", "--arg-file", "-d", "--delimiter", "--max-args", "--max-procs"],
        0,
    ),
    wrapper("busybox", &[], 0),
    wrapper("choom", &["-n", "-p"], 0),
    wrapper("chrt", &["-T", "-P", "-D", "-p"], 1),
    wrapper("fakeroot", &["-l", "-i", "-s", "-b"], 0),
    wrapper("linux32", &[], 0),
    wrapper("linux64", &[], 0),
    wrapper("i386", &[], 0),
    wrapper("x86_64", &[], 0),
    wrapper("prlimit", &["-p", "-o"], 0),
    wrapper("ssh-agent", &["-a", "-E", "-O", "-P", "-t"], 0),
];
/// Programs that give what they run arguments which they read.
const ADD_ARGUMENTS: &[&str] = &["xargs", "parallel"];
/// Variables whose value other programs run as a command.
const COMMANDS_IN: &[&str] = &[
    "AR",
    "AS",
    "BROWSER",
    "CC",
    "CPP",
    "CVS_RSH",
    "CXX",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LD",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "RSYNC_CONNECT_PROG",
    "RSYNC_RSH",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "SSH_ASKPASS",
    "VISUAL",
];
/// The beginnings of variables that hold settings or options of other programs, of which some name commands, and of those that
/// say what a loader or an interpreter loads besides.
const SETTINGS_IN: &[&str] = &[
    "CARGO_ALIAS_",
    "CARGO_BUILD_",
    "CARGO_HOME",
    "CARGO_TARGET_",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GNUMAKEFLAGS",
    "GOFLAGS",
    "JAVA_TOOL_OPTIONS",
    "LD_",
    "MAKEFILES",
    "MAKEFLAGS",
    "NODE_OPTIONS",
    "NPM_CONFIG_",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RIPGREP_CONFIG_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "TAR_OPTIONS",
    "_JAVA_OPTIONS",
    "npm_config_",
];
/// What stands for an argument, unless an option names something else.
const PLACEHOLDER: &str = "{}";

/// What a command runs beside itself.
#[derive(Default)]
struct Handed {
    commands: Vec<SimpleCommand>,
    /// And what its text does not say.
    more: bool,
}

/// Adds to a command those that it runs, and to them theirs.
pub(super) fn find(command: &mut SimpleCommand, depth_max: usize) {
    if depth_max == 0 {
        return;
    }
    let mut found = handed(command);
    for assignment in &command.assignments {
        found.add_variable(assignment);
    }
    command.runs_more |= found.more;
    command.handed = found.commands;
    command.handed.iter_mut().for_each(|inner| find(inner, depth_max - 1));
}

impl Handed {
    /// What a variable makes another program run.
    fn add_variable(&mut self, assignment: &Word) {
        let Some((name, value)) = assignment.text.split_once('=') else { return };
        let is_found_by = builtins::FOUND_BY.contains(&name) || name == "ENV";
        if is_found_by || SETTINGS_IN.iter().any(|begin| name.starts_with(begin)) {
            self.more = true;
        } else if COMMANDS_IN.contains(&name) && !value.is_empty() {
            match reader::read(value) {
                Ok(mut commands) if assignment.known => {
                    // The program that runs it gives it arguments.
                    if let Some(last) = commands.last_mut() {
                        let mut words = std::mem::take(&mut last.words);
                        words.push(Word::unknown());
                        *last = SimpleCommand::new(std::mem::take(&mut last.assignments), words);
                    }
                    self.commands.extend(commands);
                }
                _ => self.more = true,
            }
        }
    }
}

fn handed(command: &SimpleCommand) -> Handed {
    let Some((program, arguments)) = command.words.split_first().filter(|(program, _)| program.known) else {
        return Handed::default();
    };
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if SHELLS.contains(&name) {
        // What is not understood runs, as elsewhere.
        let attached = ATTACHED.contains(&name).then(|| attached_text(arguments)).flatten();
        let text = attached.or_else(|| text_of(arguments));
        let read = text.map(reader::read);
        let more = attached.is_some() && !matches!(read, Some(Ok(_)));
        let mut commands = read.and_then(Result::ok).unwrap_or_default();
        commands.iter_mut().for_each(|inner| {
            inner.fed |= command.fed;
            inner.redirected |= command.redirected;
        });
        return Handed { commands, more };
    }
    let mut found = Handed::default();
    match name {
        "export" | "make" | "gmake" | "remake" => arguments.iter().for_each(|argument| found.add_variable(argument)),
        "find" => found.commands = of_find(arguments),
        _ => {}
    }
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) else { return found };
    let adds = ADD_ARGUMENTS.contains(&name);
    // Without a command it runs the lines of its input.
    found.more |= name == "parallel" && command.fed && wrapper.command(arguments, &mut Handed::default()).is_none();
    match wrapper.command(arguments, &mut found) {
        Some(mut words) => {
            if adds {
                // `parallel` has many, such as `{1}` and `{.}`.
                fill(&mut words, if name == "parallel" { "{" } else { placeholder(arguments) });
                words.push(Word::unknown());
            }
            let mut inner = SimpleCommand::new(Vec::new(), words);
            // What `xargs` runs gets its input as arguments.
            inner.fed = command.fed || adds;
            found.commands.push(inner);
        }
        // The program that it runs is known when it runs, and not before.
        None => found.more |= arguments.iter().any(|word| !word.known),
    }
    found
}

/// The commands behind `-exec` and its like, with each file that is found unknown.
fn of_find(arguments: &[Word]) -> Vec<SimpleCommand> {
    const ACTIONS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
    let mut commands = Vec::new();
    let mut rest = arguments;
    while let Some(at) = rest.iter().position(|word| ACTIONS.contains(&word.text.as_str())) {
        rest = &rest[at + 1..];
        let end = rest.iter().position(|word| word.text == ";" || word.text == "+").unwrap_or(rest.len());
        let mut words = rest[..end].to_vec();
        fill(&mut words, PLACEHOLDER);
        if !words.is_empty() {
            commands.push(SimpleCommand::new(Vec::new(), words));
        }
        rest = &rest[end..];
    }
    commands
}

/// What stands in the place of the placeholder is not known; a program of which only the folder is known may be any.
fn fill(words: &mut [Word], placeholder: &str) {
    words.iter_mut().for_each(|word| word.filled(placeholder));
    if let Some(program) = words.first_mut().filter(|program| !program.known) {
        *program = Word::unknown();
    }
}

/// What stands for an argument in the command that `xargs` runs: `-I R`, `-rI R`, `-IR`, `-iR`, `--replace=R` and its beginnings.
fn placeholder(arguments: &[Word]) -> &str {
    let said = arguments.iter().enumerate().find_map(|(at, word)| {
        if let Some((name, attached)) = word.text.split_once('=').filter(|(name, _)| name.starts_with("--")) {
            return (name.len() > 2 && "--replace".starts_with(name)).then_some(attached);
        }
        let cluster = word.text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'))?;
        let (letter, attached) = cluster.split_at(cluster.find(['I', 'i'])? + 1);
        match attached {
            "" if letter.ends_with('I') => arguments.get(at + 1).map(|word| word.text.as_str()),
            attached => Some(attached),
        }
    });
    said.filter(|said| !said.is_empty()).unwrap_or(PLACEHOLDER)
}

/// Shells that take the text of `-c` also in the same word: `script -c'rm x'`.
const ATTACHED: &[&str] = &["script", "su"];

/// The text that is attached to a `-c`.
fn attached_text(arguments: &[Word]) -> Option<&str> {
    arguments.iter().find_map(|word| {
        let cluster = word.text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'))?;
        let (_, attached) = cluster.split_once('c')?;
        Some(attached).filter(|attached| !attached.is_empty())
    })
}

impl Wrapper {
    /// Whether the next word is the value of an option: one by its name or the beginning of it, or the last of a cluster, `-rI`.
    fn takes_value(&self, text: &str) -> bool {
        if text.starts_with("--") {
            let is_beginning = |option: &&&str| option.starts_with("--") && option.starts_with(text);
            return text.len() > 2 && self.with_value.iter().any(|option| is_beginning(&option));
        }
        let Some(cluster) = text.strip_prefix('-') else { return false };
        let of_letter = |letter: char| {
            self.with_value.iter().any(|option| option.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4])))
        };
        // What follows a letter that takes a value is its value.
        let first = cluster.char_indices().find(|(_, letter)| of_letter(*letter));
        first.is_some_and(|(at, letter)| at + letter.len_utf8() == cluster.len())
    }

    /// The words of the command; `None` where there are none, or where it is not certain where they begin.
    fn command(&self, arguments: &[Word], found: &mut Handed) -> Option<Vec<Word>> {
        let mut rest = arguments.to_vec();
        let mut operands = self.operands;
        loop {
            let (word, after) = rest.split_first().filter(|(word, _)| word.known)?;
            let text = word.text.as_str();
            rest = if self.name == "env" && splits(text) {
                let Some(words) = split_string(text, after) else {
                    found.more = true;
                    return None;
                };
                words
            } else if self.takes_value(text) {
                after.get(1..)?.to_vec()
            } else if is_assignment(text) {
                found.more |= text.split('=').next().is_some_and(builtins::is_obeyed);
                found.add_variable(word);
                after.to_vec()
            } else if text == "--" || (text.starts_with('-') && text.len() > 1) {
                after.to_vec()
            } else if operands > 0 {
                operands -= 1;
                after.to_vec()
            } else {
                return Some(rest);
            };
        }
    }
}

/// Whether an option of `env` takes a text apart into words: `-S`, also behind others.
fn splits(text: &str) -> bool {
    split_by_name(text).is_some() || (text.starts_with('-') && !text.starts_with("--") && text.contains('S'))
}

/// What is attached to the option by its name, of which the beginning is enough.
fn split_by_name(text: &str) -> Option<&str> {
    let (name, attached) = text.split_once('=').unwrap_or((text, ""));
    (name.len() > 2 && "--split-string".starts_with(name)).then_some(attached)
}

/// The words of such a text, and those that follow; `None` where the text has quotes, escapes or variables, or options stand
/// before it in the same word.
fn split_string(text: &str, after: &[Word]) -> Option<Vec<Word>> {
    let attached = split_by_name(text).or_else(|| text.strip_prefix("-S"))?;
    let (string, after) = match attached.strip_prefix('=').unwrap_or(attached) {
        "" => {
            let (string, after) = after.split_first().filter(|(string, _)| string.known)?;
            (string.text.as_str(), after)
        }
        string => (string, after),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-./=:@%+,~".contains(c);
    let words = string.split_ascii_whitespace().map(Word::literal);
    string.chars().all(is_plain).then(|| words.chain(after.iter().cloned()).collect())
}

fn is_assignment(text: &str) -> bool {
    // `env` takes any name, such as that of a function of bash's: `BASH_FUNC_x%%=`.
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| reader::is_name_byte(byte) || byte == b'%')
    })
}

/// The text behind `-c`, or behind a cluster of options that ends in it: `-lc`.
fn text_of(arguments: &[Word]) -> Option<&str> {
    if let Some(text) = arguments.iter().find_map(|word| word.text.strip_prefix("--command=").filter(|_| word.known)) {
        return Some(text);
    }
    let at = arguments.iter().position(Word::is_text_option)?;
    // Behind a script it is the script's. `-o` and `-euo` take the next word.
    let is_option = |word: &Word| word.known && word.text.starts_with(['-', '+']);
    let mut is_value = false;
    for word in arguments.get(..at)? {
        if !is_value && !is_option(word) {
            return None;
        }
        is_value = !is_value && word.text.ends_with(['o', 'O']);
    }
    let text = arguments.get(at + 1..)?.iter().find(|word| !is_option(word))?;
    text.known.then_some(text.text.as_str())
}
