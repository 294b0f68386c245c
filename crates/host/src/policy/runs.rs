//! What a command may run beyond its own first word, for rules that ask or deny: a wrapper's command, a shell's text.

use toolhost_sandbox::{SimpleCommand, Word};

use super::pattern::Pattern;
use super::permission::is_runner;

/// Programs that run what is among their arguments, beside those that a permission is not generalised over.
const ALSO_RUN: &[&str] =
    &["nsenter", "runuser", "setarch", "setpriv", "su", "systemd-run", "unbuffer", "unshare", "chronic"];
/// They read commands from their input where nothing names a script.
const SHELLS: &[&str] = &["bash", "sh", "dash", "zsh", "ksh", "fish", "busybox"];
/// Settings of git that run nothing, for `git -c`; beginnings, in small letters.
const SETTINGS_PLAIN: &[&str] = &[
    "advice.",
    "color.",
    "column.",
    "commit.gpgsign",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.quotepath",
    "core.symlinks",
    "core.untrackedcache",
    "diff.algorithm",
    "diff.context",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "fetch.prune",
    "gc.auto",
    "i18n.",
    "init.defaultbranch",
    "log.date",
    "log.decorate",
    "log.showsignature",
    "maintenance.auto",
    "merge.conflictstyle",
    "merge.ff",
    "merge.renames",
    "protocol.version",
    "pull.ff",
    "pull.rebase",
    "push.default",
    "rebase.autostash",
    "safe.directory",
    "status.",
    "tag.gpgsign",
    "user.",
];

/// Whether a command, or one that it runs in its turn, may be what a rule names.
pub(super) fn may_run(command: &SimpleCommand, glob: &Pattern) -> bool {
    let mut open = vec![command];
    while let Some(command) = open.pop() {
        if command.may_match(|text| glob.is_match(text), glob.start()) || is_uncertain(command) || names(command, glob)
        {
            return true;
        }
        open.extend(&command.handed);
    }
    false
}

fn name_of(program: &Word) -> &str {
    program.text.rsplit('/').next().unwrap_or_default()
}

/// Whether its program without the folder it is in, or what stands among a wrapper's arguments, begins what the rule names.
fn names(command: &SimpleCommand, glob: &Pattern) -> bool {
    let Some((program, arguments)) = command.words.split_first().filter(|(program, _)| program.known) else {
        return false;
    };
    let name = name_of(program);
    let text = |first: &str, rest: &[Word]| {
        let words = std::iter::once(first).chain(rest.iter().map(|word| word.text.as_str()));
        glob.is_match(&words.collect::<Vec<_>>().join(" "))
    };
    if name != program.text && text(name, arguments) {
        return true;
    }
    if !is_runner(program) && !ALSO_RUN.contains(&name) {
        return false;
    }
    // Where in its arguments the command begins is the wrapper's own affair.
    (0..arguments.len()).any(|at| {
        let (first, rest) = (&arguments[at], &arguments[at + 1..]);
        first.known && (text(&first.text, rest) || text(name_of(first), rest))
    })
}

/// Whether it surely runs commands of which its text says nothing.
fn is_uncertain(command: &SimpleCommand) -> bool {
    let Some((program, arguments)) = command.words.split_first().filter(|(program, _)| program.known) else {
        return false;
    };
    let name = name_of(program);
    let is_option = |word: &Word| word.known && word.text.starts_with('-');
    if SHELLS.contains(&name) {
        let is_c = |word: &Word| is_option(word) && !word.text.starts_with("--") && word.text.ends_with('c');
        // A text behind `-c` that is known has been taken apart.
        let has_text = arguments.iter().any(is_c);
        return if has_text {
            command.handed.is_empty()
        } else {
            (command.fed || command.redirected) && arguments.iter().all(is_option)
        };
    }
    if name == "git" {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "-c" if words.next().is_none_or(|setting| !is_plain(setting)) => return true,
                "-c" => {}
                "-C" | "--git-dir" | "--work-tree" | "--namespace" => drop(words.next()),
                text if text == "--exec-path"
                    || text.starts_with("--exec-path=")
                    || text.starts_with("--config-env") =>
                {
                    return true;
                }
                text if text.starts_with('-') => {}
                _ => return false,
            }
        }
    }
    false
}

/// Whether a setting such as `color.ui=never` runs nothing.
fn is_plain(setting: &Word) -> bool {
    let name = setting.text.split('=').next().unwrap_or_default().to_ascii_lowercase();
    setting.known && SETTINGS_PLAIN.iter().any(|plain| name.starts_with(plain))
}
