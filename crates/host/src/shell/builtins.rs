//! What the shell runs itself, and variables that mean something to it.

use toolhost_contract::shell::Word;

use super::reader::{Step, is_name_byte};

/// They run what is not written there as a command, or change what words mean later.
const UNCLEAR: &[&str] = &[
    ".",
    "alias",
    "bg",
    "bind",
    "builtin",
    "caller",
    "command",
    "compgen",
    "complete",
    "compopt",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "readarray",
    "readonly",
    "return",
    "shift",
    "shopt",
    "source",
    "suspend",
    "times",
    "trap",
    "typeset",
    "ulimit",
    "unalias",
];

/// Variables of the shell's own: assigning to one evaluates its value, or changes how what follows is read.
const VARIABLES: &[&str] = &[
    "CHILD_MAX",
    "COLUMNS",
    "COPROC",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "EXECIGNORE",
    "FIGNORE",
    "FUNCNAME",
    "FUNCNEST",
    "GLOBIGNORE",
    "GLOBSORT",
    "GROUPS",
    "HISTCMD",
    "HISTCONTROL",
    "HISTFILE",
    "HISTFILESIZE",
    "HISTIGNORE",
    "HISTSIZE",
    "HISTTIMEFORMAT",
    "HOSTFILE",
    "IFS",
    "IGNOREEOF",
    "INSIDE_EMACS",
    "LINENO",
    "LINES",
    "MAILCHECK",
    "MAPFILE",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "PIPESTATUS",
    "POSIXLY_CORRECT",
    "PPID",
    "PROMPT_COMMAND",
    "PROMPT_DIRTRIM",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "RANDOM",
    "READLINE_ARGUMENT",
    "READLINE_LINE",
    "READLINE_MARK",
    "READLINE_POINT",
    "REPLY",
    "SECONDS",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "TEXTDOMAIN",
    "TEXTDOMAINDIR",
    "TIMEFORMAT",
    "TMOUT",
    "UID",
    "histchars",
    "ignoreeof",
];

/// As above, where it lasts: the rest of the text would be read with another set of characters.
const LOCALE: &[&str] = &["LANG", "LANGUAGE"];

/// By these programs, and the files that say what those run, are found.
pub(super) const FOUND_BY: &[&str] = &["HOME", "PATH", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME"];

const TESTS_OF_ONE: &[&str] = &[
    "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-n", "-p", "-r", "-s", "-t", "-u", "-w", "-x", "-z", "-G", "-L",
    "-N", "-O", "-S",
];
const TESTS_OF_TWO: &[&str] = &["=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

const OBEYED: &str = "it sets a variable that the shell itself obeys";

/// Of a variable that is set from here on.
pub(super) fn check_variable(name: &str) -> Step<()> {
    if name.starts_with("LC_") || LOCALE.contains(&name) {
        return Err(OBEYED);
    }
    if FOUND_BY.contains(&name) || name.starts_with("LD_") {
        return Err("it sets a variable by which programs are found");
    }
    check_assignment(name)
}

/// Whether the shell runs what such a variable holds, where another program hands it on: `env BASH_ENV=x bash`.
pub(super) fn is_obeyed(name: &str) -> bool {
    check_assignment(name).is_err() || name == "ENV"
}

/// Of a variable that is set for one command.
fn check_assignment(name: &str) -> Step<()> {
    if name.starts_with("BASH") || name.starts_with("COMP_") || VARIABLES.contains(&name) {
        return Err(OBEYED);
    }
    Ok(())
}

pub(super) fn check(assignments: &[Word], words: &[Word]) -> Step<()> {
    let mut names = assignments.iter().filter_map(|word| word.text.split('=').next());
    let Some((program, arguments)) = words.split_first() else {
        return names.try_for_each(check_variable);
    };
    // How `read` splits its line is nobody else's matter.
    names.filter(|name| !(*name == "IFS" && program.is("read"))).try_for_each(check_assignment)?;
    if !program.known {
        return Err("which program it runs is only known when it runs");
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./+-".contains(&byte);
    if !matches!(program.text.as_str(), ":" | "[") && (program.text.is_empty() || !program.text.bytes().all(plain)) {
        return Err("the name of a program is not plain");
    }
    // `/proc/self/exe` is the shell itself, and `/dev/fd/3` whatever it has opened.
    if program.text.contains('/') && program.text.split('/').any(|part| matches!(part, "proc" | "fd")) {
        return Err("the name of a program may stand for any other");
    }
    if UNCLEAR.contains(&program.text.as_str()) {
        return Err("it uses a command of the shell that runs or changes others");
    }
    let understood = match program.text.as_str() {
        "[" => arguments.split_last().is_some_and(|(last, inside)| last.is("]") && is_plain_test(inside)),
        "test" => is_plain_test(arguments),
        // `-v` assigns, to an array at an index that is evaluated.
        "printf" => arguments.first().is_some_and(|format| !format.start.is_empty() && !format.start.starts_with('-')),
        "read" => is_plain_read(arguments),
        // Written otherwise, the shell splits its values into more words.
        "export" => program.bare && assignments.is_empty() && arguments.iter().all(is_name_value),
        "unset" => arguments.iter().all(is_name),
        "set" => is_plain_set(arguments),
        "break" | "continue" => {
            arguments.iter().all(|word| word.known && word.text.bytes().all(|b| b.is_ascii_digit()))
        }
        "wait" => arguments.is_empty(),
        _ => true,
    };
    if understood { Ok(()) } else { Err("it uses a command of the shell in a way that may run others") }
}

/// The forms of `test` in which no word can become an operator, and no text an index of an array.
fn is_plain_test(words: &[Word]) -> bool {
    let words = match words.split_first() {
        Some((first, rest)) if first.is("!") => rest,
        _ => words,
    };
    let is_one_of = |word: &Word, list: &[&str]| word.known && list.contains(&word.text.as_str());
    match words {
        [word] => word.single,
        [operator, word] => is_one_of(operator, TESTS_OF_ONE) && word.single,
        [left, operator, right] => is_one_of(operator, TESTS_OF_TWO) && left.single && right.single,
        _ => false,
    }
}

fn is_plain_read(words: &[Word]) -> bool {
    let names = match words.split_first() {
        Some((first, rest)) if first.is("-r") => rest,
        _ => words,
    };
    !names.is_empty() && names.iter().all(is_name)
}

fn is_plain_set(words: &[Word]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.text.strip_prefix(['-', '+']).filter(|letters| word.known && !letters.is_empty())
        else {
            return false;
        };
        let (letters, named) = match letters.strip_suffix('o') {
            Some(before) => (before, true),
            None => (letters, false),
        };
        let name = |word: &Word| ["pipefail", "errexit", "nounset"].iter().any(|name| word.is(name));
        if !letters.bytes().all(|letter| b"eu".contains(&letter)) || (named && !words.next().is_some_and(name)) {
            return false;
        }
    }
    true
}

fn is_name(word: &Word) -> bool {
    word.known && is_variable(&word.text)
}

/// `NAME` or `NAME=value`.
fn is_name_value(word: &Word) -> bool {
    match word.start.split_once('=') {
        Some((name, _)) => is_variable(name),
        None => is_name(word),
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(is_name_byte)
        && check_variable(name).is_ok()
}
