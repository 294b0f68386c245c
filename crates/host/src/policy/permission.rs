//! Permissions by rule: what a person allows for a while, as a generalisation of the call before them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolhost_contract::shell::{Analyzed, SimpleCommand, Word};
use toolhost_contract::{Approval, Effect, ToolInfo};

use super::pattern::glob;
use super::{Decide, Looked, Rule};

/// Words of a command that its generalisation keeps: the program and what it is to do.
const WORDS_KEPT: usize = 2;
/// Programs that start what their arguments name, or run their arguments as a program: the first words do not say what is done.
const RUNNERS: [&str; 43] = [
    "awk", "bash", "busybox", "bun", "chroot", "dash", "deno", "doas", "docker", "env", "eval", "exec", "find",
    "flock", "fish", "gawk", "ionice", "ksh", "lua", "make", "nice", "node", "nohup", "npx", "parallel", "perl", "php",
    "podman", "python", "ruby", "script", "setsid", "sh", "ssh", "stdbuf", "strace", "sudo", "taskset", "time",
    "timeout", "watch", "xargs", "zsh",
];
/// Longest pattern that is offered to a person, bytes: a rule is to be read before it is allowed.
const PATTERN_BYTES_MAX: usize = 4096;

impl Rule {
    /// A rule that allows one tool under conditions: argument name to glob.
    pub(crate) fn permission(tool: &str, conditions: &BTreeMap<String, String>) -> Result<Self, String> {
        let when =
            conditions.iter().map(|(name, text)| Ok((name.clone(), glob(text)?))).collect::<Result<_, String>>()?;
        let shown: Vec<String> = conditions.iter().map(|(name, pattern)| format!("{name} = {pattern}")).collect();
        let text = if shown.is_empty() { tool.to_owned() } else { format!("{tool} when {}", shown.join(", ")) };
        Ok(Self {
            tools: [tool.to_owned()].into(),
            when,
            defaults: BTreeMap::new(),
            changing: BTreeSet::new(),
            names_paths: false,
            decide: Decide::Allow,
            why: None,
            text,
        })
    }
}

/// The rule that would allow this call and its like. `None` for a tool that no rule allows, and for a call that no rule
/// would match, such as a command that is not analyzable, or that nobody would read.
///
/// A command keeps its first words, `cargo test *`, where these say what it does; else it is kept whole. Any other text must be
/// the same, and what was left out stays out.
pub(crate) fn suggest(info: &ToolInfo, call: &Looked<'_>) -> Option<BTreeMap<String, String>> {
    if info.facts.approval != Approval::ByPolicy {
        return None;
    }
    let properties = info.input_schema.get("properties")?.as_object()?;
    let mut conditions = BTreeMap::new();
    for (name, schema) in properties {
        let pattern = match call.arguments.get(name) {
            Some(Value::String(_)) if call.command.is_some() && call.kinds.is_command(name) => command(call.command?)?,
            Some(Value::String(text)) if call.kinds.is_path(name) => {
                globset::escape(toolhost_contract::workspace::WsPath::parse(text).ok()?.as_str())
            }
            Some(Value::String(text)) => globset::escape(text),
            // A list would need each of its items named.
            Some(Value::Array(_) | Value::Object(_)) => return None,
            // A limit that is given next time reaches no further.
            Some(Value::Null) | None if is_of(schema, &["integer", "number"]) => continue,
            // Which remote, which branch: what is left out is looked up anew each time, and may be another then.
            Some(Value::Null) | None if info.facts.effect == Effect::Reaches && is_of(schema, &["string"]) => {
                return None;
            }
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        if pattern.len() > PATTERN_BYTES_MAX {
            return None;
        }
        conditions.insert(name.clone(), pattern);
    }
    Rule::permission(&info.name, &conditions).ok()?.matches(call).then_some(conditions)
}

fn is_of(schema: &Value, types: &[&str]) -> bool {
    let is = |word: &Value| word.as_str().is_some_and(|word| types.contains(&word));
    match schema.get("type") {
        Some(Value::Array(words)) => words.iter().any(is),
        Some(word) => is(word),
        None => false,
    }
}

fn command(analyzed: &Analyzed) -> Option<String> {
    let Analyzed::Commands(commands) = analyzed else { return None };
    let [command] = commands.as_slice() else { return None };
    let words: Vec<&Word> = command.assignments.iter().chain(&command.words).collect();
    // `git push` is not `git push --force`, and `sh -c *` is everything.
    if words.len() <= WORDS_KEPT || !command.assignments.is_empty() || !is_told_by_first_words(&words) {
        return Some(globset::escape(&command.told_apart()));
    }
    // A pattern of its first words would lose their quotes.
    if !words.iter().take(WORDS_KEPT).all(|word| word.is_one()) {
        return Some(globset::escape(&command.told_apart()));
    }
    let kept: Vec<&str> = words.iter().take(WORDS_KEPT).map(|word| word.text.as_str()).collect();
    Some(format!("{} *", globset::escape(&kept.join(" "))))
}

/// Whether what a command does may be in its input, of which a rule over its text says nothing: a file or a here-document, and
/// what a program that runs programs gets from a pipe.
pub(super) fn runs_its_input(command: &SimpleCommand) -> bool {
    command.redirected || (command.fed && command.words.first().is_some_and(is_runner))
}

pub(super) fn is_runner(program: &Word) -> bool {
    let name = program.text.rsplit('/').next().unwrap_or_default();
    // `python3.11` is `python`.
    RUNNERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-')))
}

/// Programs whose first argument says what is done, with those of their first arguments that a permission may be widened after:
/// what follows names no program, or the project's own code runs in any case.
const TOLD: &[(&str, &[&str])] = &[
    ("git", &["add", "blame", "branch", "ls-files", "mv", "rev-parse", "rm", "status"]),
    ("cargo", &["bench", "build", "check", "clippy", "doc", "test"]),
    ("go", &["test"]),
    ("npm", &["test"]),
    ("pnpm", &["test"]),
    ("yarn", &["test"]),
];
/// Programs that start no others, whatever their arguments are.
const PLAIN: &[&str] = &[
    "basename", "cat", "cmp", "cut", "date", "diff", "dirname", "du", "echo", "file", "grep", "head", "jq", "ls",
    "mkdir", "nl", "realpath", "stat", "tail", "touch", "tr", "uniq", "wc",
];

/// Whether a program and its first argument say what is done: `cargo test`, and neither `tar tf` nor `git -c`. A list of those that
/// do: of those that do not, many have an option that names a program.
fn is_told_by_first_words(words: &[&Word]) -> bool {
    let [program, first, ..] = words else { return false };
    let is_of = |(name, firsts): &(&str, &[&str])| *name == program.text && firsts.contains(&first.text.as_str());
    (PLAIN.contains(&program.text.as_str()) && !first.text.starts_with('-')) || TOLD.iter().any(is_of)
}
