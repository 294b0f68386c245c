//! Commands that others run for somebody: `env vim x`, `timeout 5 less x`, `bash -c 'vim x'`.

use super::{SimpleCommand, Word, reader};

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
    wrapper("xargs", &["-I", "-L", "-n", "-P", "-s", "-d", "-E", "-a"], 0),
    wrapper("busybox", &[], 0),
];
/// They run the text behind `-c`.
const SHELLS: &[&str] = &["bash", "sh", "dash", "zsh", "ksh", "su", "script"];

/// Adds to a command those that it runs, and to them theirs.
pub(super) fn find(command: &mut SimpleCommand, depth_max: usize) {
    if depth_max == 0 {
        return;
    }
    command.handed = handed(command);
    command.handed.iter_mut().for_each(|inner| find(inner, depth_max - 1));
}

fn handed(command: &SimpleCommand) -> Vec<SimpleCommand> {
    let Some((program, arguments)) = command.words.split_first().filter(|(program, _)| program.known) else {
        return Vec::new();
    };
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if SHELLS.contains(&name) {
        // What is not understood runs, as elsewhere.
        let mut inner = text_of(arguments).and_then(|text| reader::read(text).ok()).unwrap_or_default();
        inner.iter_mut().for_each(|inner| {
            inner.fed |= command.fed;
            inner.redirected |= command.redirected;
        });
        return inner;
    }
    let found = WRAPPERS.iter().find(|wrapper| wrapper.name == name);
    let Some(words) = found.and_then(|wrapper| wrapper.command(arguments)) else { return Vec::new() };
    let mut inner = SimpleCommand::new(Vec::new(), words.to_vec());
    // What `xargs` runs gets its input as arguments.
    inner.fed = command.fed || name == "xargs";
    vec![inner]
}

impl Wrapper {
    /// The words of the command; `None` where it is not certain where they begin.
    fn command<'w>(&self, arguments: &'w [Word]) -> Option<&'w [Word]> {
        let mut rest = arguments;
        let mut operands = self.operands;
        loop {
            let (word, after) = rest.split_first().filter(|(word, _)| word.known)?;
            let text = word.text.as_str();
            rest = if self.with_value.contains(&text) {
                after.get(1..)?
            } else if text == "--" || (text.starts_with('-') && text.len() > 1) || is_assignment(text) {
                after
            } else if operands > 0 {
                operands -= 1;
                after
            } else {
                return Some(rest);
            };
        }
    }
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(reader::is_name_byte))
}

/// The text behind `-c`, or behind a cluster of options that ends in it: `-lc`.
fn text_of(arguments: &[Word]) -> Option<&str> {
    let is_c = |word: &Word| {
        word.known && word.text.starts_with('-') && !word.text.starts_with("--") && word.text.ends_with('c')
    };
    let at = arguments.iter().position(is_c)?;
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
