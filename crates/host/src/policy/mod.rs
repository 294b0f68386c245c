//! Allow, ask or deny: rules over tool and arguments, the strictest match wins, no match goes by effect.
//!
//! A rule over a shell command looks at what it runs: to allow, every simple command in it must match; to ask or deny,
//! it is enough that one may, and a command that is not analyzable may run anything. This is a convenience: the fence
//! protects.

mod pattern;
mod permission;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_contract::shell::Analyzed;
use toolhost_contract::workspace::WsPath;
use toolhost_contract::{Approval, Effect, ErrorKind, ToolError, ToolInfo, visible_line};

pub(crate) use self::pattern::is_one_text;
use self::permission::runs_its_input;
pub(crate) use self::permission::suggest;
use crate::kinds::{ArgumentKinds, MOVED, ONE_OR_SEVERAL};
use crate::policy::pattern::{Pattern, glob};
use crate::registry::{Registered, Registry};

/// What rules call each of the two paths of a move, and each file of a tool that takes one or several.
const ANY_PATH: &str = "path";

/// In order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decide {
    Allow,
    Ask,
    Deny,
}

/// A rule as the operator writes it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRule {
    /// Name or glob of tools.
    tool: String,
    /// Argument name to glob; all must match.
    #[serde(default)]
    when: BTreeMap<String, String>,
    /// What the rule decides.
    pub(crate) decide: Decide,
    /// The reason, which a caller is told.
    #[serde(default)]
    why: Option<String>,
    /// Texts (or tables of arguments) that the rule must match, or the configuration is refused.
    #[serde(default, rename = "match")]
    #[schemars(with = "Vec<serde_json::Value>")]
    matches: Vec<toml::Value>,
    /// The same that it must not match.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    not_match: Vec<toml::Value>,
}

impl RawRule {
    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }
}

/// A rule, compiled and tested by its own examples.
#[derive(Debug, Clone)]
pub struct Rule {
    /// By their own names.
    tools: BTreeSet<String>,
    when: Vec<(String, Pattern)>,
    /// What an argument is that is left out, by tool and name; text, as a rule sees it. Others may then be anything.
    defaults: BTreeMap<(String, String), String>,
    /// Those of the tools that change files: of a folder, all that is in it.
    changing: BTreeSet<String>,
    /// Whether one of its conditions is about a path.
    names_paths: bool,
    pub decide: Decide,
    pub why: Option<String>,
    /// As written, for people: `bash when command = cargo test*`.
    pub text: String,
}

/// What policy says of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub decide: Decide,
    pub why: String,
    /// The rule that decided; `None`: the tool's effect did.
    pub rule: Option<String>,
}

impl Verdict {
    /// # Errors
    /// The call is denied.
    pub(crate) fn check_denied(&self, tool: &str) -> Result<(), ToolError> {
        if self.decide != Decide::Deny {
            return Ok(());
        }
        let message = format!("policy denies this call of `{tool}`: {}", self.why);
        Err(ToolError::new(ErrorKind::Denied, message)
            .hint("do the task another way, or tell the person what you need"))
    }
}

/// A call as rules look at it.
#[derive(Clone, Copy)]
pub(crate) struct Looked<'a> {
    tool: &'a str,
    kinds: &'a ArgumentKinds,
    arguments: &'a Value,
    /// The same with the places that its paths lead to, where that was looked up.
    places: Option<&'a Value>,
    command: Option<&'a Analyzed>,
}

impl<'a> Looked<'a> {
    /// `command`: what the call's shell command runs, if it has one. Rules never analyze it themselves: a command without
    /// its analysis counts as not analyzable.
    pub(crate) fn new(
        tool: &'a str,
        kinds: &'a ArgumentKinds,
        arguments: &'a Value,
        command: Option<&'a Analyzed>,
    ) -> Self {
        let has_command = kinds.command_in(arguments).is_some();
        let command = has_command.then(|| command.unwrap_or(NOT_ANALYZED));
        Self { tool, kinds, arguments, places: None, command }
    }

    /// With the places that its paths lead to: a path may be a link's.
    pub(crate) fn leading_to(self, places: Option<&'a Value>) -> Self {
        Self { places, ..self }
    }

    pub(crate) fn tool(&self) -> &'a str {
        self.tool
    }

    /// Why its command may run anything.
    fn not_analyzable(&self) -> Option<&'static str> {
        match self.command? {
            Analyzed::NotAnalyzable { why } => Some(why),
            Analyzed::Commands(_) => None,
        }
    }
}

/// A command that was not analyzed.
const NOT_ANALYZED: &Analyzed = &Analyzed::NotAnalyzable { why: "it was not analyzed" };

/// What the shell command of a call runs, analyzed here and now: for rules that are loaded or explained. A call under way
/// has [`Arguments`](crate::arguments::Arguments).
#[expect(clippy::disallowed_methods, reason = "no call is under way")]
pub(crate) fn analyzed(kinds: &ArgumentKinds, arguments: &Value) -> Option<Analyzed> {
    let command = kinds.command_in(arguments).map(crate::analyze)?;
    Some(with_input(command, kinds, arguments))
}

/// A command with the input that its call gives it.
pub(crate) fn with_input(command: Analyzed, kinds: &ArgumentKinds, arguments: &Value) -> Analyzed {
    if kinds.has_input(arguments) { command.with_input() } else { command }
}

impl Rule {
    /// Compiles a rule and runs its own tests.
    pub(crate) fn new(raw: &RawRule, registry: &Registry) -> Result<Self, String> {
        let (name, tools) = check_names(raw, registry)?;
        let when: Vec<(String, Pattern)> =
            raw.when.iter().map(|(name, pattern)| Ok((name.clone(), glob(pattern)?))).collect::<Result<_, String>>()?;
        // What a file says stands within lines of the host: in one line, and with no codes for a terminal.
        let conditions: Vec<String> =
            raw.when.iter().map(|(name, pattern)| visible_line(&format!("{name} = {pattern}"))).collect();
        let text = if conditions.is_empty() { name.clone() } else { format!("{name} when {}", conditions.join(", ")) };
        let why = raw.why.as_deref().map(visible_line);
        let defaults = defaults(&tools, raw, registry);
        let changes = |tool: &&String| registry.get(tool).is_some_and(|tool| tool.info.facts.effect == Effect::Writes);
        let changing = tools.iter().filter(changes).cloned().collect();
        let kinds: Vec<(String, ArgumentKinds)> =
            tools.iter().filter_map(|tool| Some((tool.clone(), registry.get(tool)?.kinds.clone()))).collect();
        let is_path =
            |name: &String| kinds.iter().any(|(_, kinds)| kinds.is_path(name) || (name == ANY_PATH && kinds.is_move()));
        let names_paths = when.iter().any(|(name, _)| is_path(name));
        let rule = Self { tools, when, defaults, changing, names_paths, decide: raw.decide, why, text };
        // Of several tools, examples are calls of the one that runs commands.
        let shown = kinds.iter().find(|(_, kinds)| rule.when.iter().any(|(name, _)| kinds.is_command(name)));
        let (tool, kinds) = shown.or(kinds.first()).ok_or("it is about no tool")?;
        for (examples, expected) in [(&raw.matches, true), (&raw.not_match, false)] {
            for example in examples {
                let arguments = rule.example(example)?;
                let command = analyzed(kinds, &arguments);
                if rule.matches_arguments(&Looked::new(tool, kinds, &arguments, command.as_ref())) != expected {
                    let word = if expected { "does not match" } else { "matches" };
                    return Err(format!("it {word} its own example {example}"));
                }
            }
        }
        Ok(rule)
    }

    /// A bare text stands for the one argument that the rule looks at.
    fn example(&self, example: &toml::Value) -> Result<Value, String> {
        match (example, self.when.as_slice()) {
            (toml::Value::String(text), [(name, _)]) => Ok(serde_json::json!({ name: text })),
            (toml::Value::Table(_), _) => serde_json::to_value(example).map_err(|error| error.to_string()),
            _ => Err(format!(
                "the example {example} must be a table of arguments, for the rule looks at {}",
                self.when.len()
            )),
        }
    }

    pub(crate) fn is_about(&self, tool: &str) -> bool {
        self.tools.contains(tool)
    }

    pub(crate) fn names_paths(&self) -> bool {
        self.names_paths
    }

    pub(crate) fn matches(&self, call: &Looked<'_>) -> bool {
        self.tools.contains(call.tool) && self.matches_arguments(call)
    }

    fn matches_arguments(&self, call: &Looked<'_>) -> bool {
        self.when.iter().all(|(name, glob)| self.matches_argument(name, glob, call))
    }

    fn matches_argument(&self, name: &str, glob: &Pattern, call: &Looked<'_>) -> bool {
        if call.kinds.is_command(name)
            && let (Some(Value::String(_)), Some(command)) = (call.arguments.get(name), call.command)
        {
            return self.matches_command(glob, command);
        }
        // What a move names it names twice.
        let is_moved_by_path = name == ANY_PATH && call.kinds.is_move();
        // One file or a list of them: a rule about the one holds for each of the list.
        let is_of_several = is_one_or_several(call, name) && !is_left_out(call, name);
        if self.decide != Decide::Allow && !is_moved_by_path && is_left_out(call, name) {
            return self.may_mean(name, glob, call);
        }
        let is_of_a_move = is_moved_by_path && self.decide != Decide::Allow;
        if !call.kinds.is_path(name) && !is_of_a_move {
            return self.matches_value(glob, call.arguments.get(name), |text| self.matches_text(glob, text));
        }
        let names: Vec<&str> = match (is_of_a_move, is_of_several) {
            (true, _) => MOVED.to_vec(),
            (_, true) => ONE_OR_SEVERAL.into_iter().filter(|name| is_given(call, name)).collect(),
            _ => vec![name],
        };
        let is_whole = is_of_a_move || self.changing.contains(call.tool);
        let sides = std::iter::once(call.arguments).chain(call.places);
        let mut found = names
            .iter()
            .flat_map(|name| sides.clone().map(move |arguments| arguments.get(*name)))
            .map(|value| self.matches_value(glob, value, |text| self.matches_path(glob, text, is_whole)));
        // A path as it is written, and the place that it leads to: allowing needs both, asking and denying needs one.
        if self.decide == Decide::Allow { found.all(|matches| matches) } else { found.any(|matches| matches) }
    }

    /// Whether an argument that is left out may be what the rule names: the branch that is checked out, all files.
    fn may_mean(&self, name: &str, glob: &Pattern, call: &Looked<'_>) -> bool {
        match self.defaults.get(&(call.tool.to_owned(), name.to_owned())) {
            Some(text) if call.kinds.is_path(name) => self.matches_path(glob, text, false),
            Some(text) => glob.is_match(text),
            None => !MEANS_NOTHING.contains(&name) || glob.is_match(""),
        }
    }

    /// The argument that is left out, where the rule applies because of that alone.
    fn left_out(&self, call: &Looked<'_>) -> Option<&str> {
        let mut names = self.when.iter().map(|(name, _)| name.as_str());
        names.find(|name| {
            let is_known = self.defaults.contains_key(&(call.tool.to_owned(), (*name).to_owned()));
            self.decide != Decide::Allow && is_left_out(call, name) && !is_known && !MEANS_NOTHING.contains(name)
        })
    }

    fn matches_value(&self, glob: &Pattern, value: Option<&Value>, is_match: impl Fn(&str) -> bool) -> bool {
        match value {
            Some(Value::String(text)) => is_match(text),
            Some(Value::Array(items)) => {
                let strings = items.iter().all(Value::is_string) && !items.is_empty();
                let mut texts = items.iter().filter_map(Value::as_str);
                // As with commands: allowing needs all, asking and denying needs one.
                match self.decide {
                    Decide::Allow => strings && texts.all(is_match),
                    Decide::Ask | Decide::Deny => texts.any(is_match),
                }
            }
            Some(Value::Null) | None => glob.is_match(""),
            Some(other) => glob.is_match(&other.to_string()),
        }
    }

    /// A text as it is written, and as the id of a record that it may be: tools take `tkt-3` for `TKT-003`.
    fn matches_text(&self, glob: &Pattern, text: &str) -> bool {
        let is_other = || glob.is_match(text.trim()) || id_forms(text).iter().any(|form| glob.is_match(form));
        glob.is_match(text) || (self.decide != Decide::Allow && is_other())
    }

    fn matches_path(&self, glob: &Pattern, text: &str, is_whole: bool) -> bool {
        let Ok(path) = WsPath::parse(text) else {
            // No path at all: the tool will say so; until then it is not allowed by a rule, and denied by one.
            return self.decide != Decide::Allow;
        };
        let path = path.as_str();
        if self.decide == Decide::Allow || glob.is_match(path) {
            return glob.is_match(path);
        }
        // A folder is what is in it: `secret` as `secret/**`, and what is moved or put back takes all below it along.
        let folder = if path == "." { String::new() } else { format!("{path}/") };
        (!folder.is_empty() && glob.is_match(&folder)) || (is_whole && glob.start().starts_with(&folder))
    }

    fn matches_command(&self, glob: &Pattern, command: &Analyzed) -> bool {
        match (command, self.decide) {
            (Analyzed::NotAnalyzable { .. }, decide) => decide != Decide::Allow,
            (Analyzed::Commands(commands), Decide::Allow) => {
                !commands.is_empty()
                    && commands.iter().all(|c| {
                        let is_told = glob.is_one_text() || !runs::runs_others(c);
                        c.literal && !runs_its_input(c) && is_told && glob.is_match(&c.told_apart())
                    })
            }
            (Analyzed::Commands(commands), Decide::Ask | Decide::Deny) => {
                commands.iter().any(|command| runs::may_run(command, glob))
            }
        }
    }
}

/// Arguments that the tool does not choose itself: a call without `stdin` has no input.
const MEANS_NOTHING: &[&str] = &["stdin", "reason", "comment", "note", "message", "expectedSha256"];

fn is_left_out(call: &Looked<'_>, name: &str) -> bool {
    let given = if is_one_or_several(call, name) { ONE_OR_SEVERAL.as_slice() } else { &[name] };
    !given.iter().any(|name| is_given(call, name))
}

fn is_given(call: &Looked<'_>, name: &str) -> bool {
    call.arguments.get(name).is_some_and(|value| !value.is_null())
}

/// Whether a rule means by the name both the one path and the list of them.
fn is_one_or_several(call: &Looked<'_>, name: &str) -> bool {
    name == ANY_PATH && call.kinds.takes_several()
}

/// The ways in which the id of a record may be written, such as `TKT-003`, `TKT-3` and `tkt-3`.
fn id_forms(text: &str) -> Vec<String> {
    // Tools take white space around it.
    let Some((prefix, number)) = text.trim().split_once('-') else { return Vec::new() };
    let is_id = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_alphabetic());
    match number.parse::<u64>() {
        Ok(number) if is_id => {
            let (upper, lower) = (prefix.to_ascii_uppercase(), prefix.to_ascii_lowercase());
            vec![format!("{upper}-{number:03}"), format!("{upper}-{number}"), format!("{lower}-{number}")]
        }
        _ => Vec::new(),
    }
}

/// What the arguments of a rule are where they are left out, as the schemas of its tools say it.
fn defaults(tools: &BTreeSet<String>, raw: &RawRule, registry: &Registry) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for tool in tools.iter().filter_map(|tool| registry.get(tool)) {
        for name in raw.when.keys() {
            let default = tool.info.input_schema.pointer(&format!("/properties/{name}/default"));
            let text = match default {
                Some(Value::String(text)) => text.clone(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
                _ => continue,
            };
            found.insert((tool.info.name.to_string(), name.clone()), text);
        }
    }
    found
}

/// How the rule's tools are called for people, and their own names. A name or argument that does not exist is a rule that
/// would silently do nothing, so it is an error.
fn check_names(raw: &RawRule, registry: &Registry) -> Result<(String, BTreeSet<String>), String> {
    let tools = registry.matching(&raw.tool).map_err(|problem| problem.to_string())?;
    for name in raw.when.keys() {
        let has = |tool: &&Registered| {
            let properties = tool.info.input_schema.get("properties").and_then(Value::as_object);
            properties.is_some_and(|properties| properties.contains_key(name))
        };
        if !tools.iter().any(has) {
            return Err(format!("`{}` has no argument `{name}`", raw.tool));
        }
    }
    let called = registry.get(&raw.tool).map_or_else(|| raw.tool.clone(), |tool| tool.info.name.to_string());
    Ok((called, tools.iter().map(|tool| tool.info.name.to_string()).collect()))
}

/// Step 6 of the gate.
pub(crate) fn decide(rules: &[Rule], info: &ToolInfo, call: &Looked<'_>) -> Verdict {
    let verdict = by_rules(rules, info, call);
    let dry_run = info.facts.dry_run.and_then(|name| call.arguments.get(name)) == Some(&Value::Bool(true));
    if info.facts.approval == Approval::Always && !dry_run && verdict.decide == Decide::Allow {
        return Verdict { decide: Decide::Ask, why: "a person allows each of these".to_owned(), rule: None };
    }
    verdict
}

fn by_rules(rules: &[Rule], info: &ToolInfo, call: &Looked<'_>) -> Verdict {
    let strictest = rules
        .iter()
        .filter(|rule| rule.matches(call))
        .reduce(|strictest, rule| if rule.decide > strictest.decide { rule } else { strictest });
    match strictest {
        Some(rule) => {
            let mut why = rule.why.clone().unwrap_or_else(|| {
                let does = match rule.decide {
                    Decide::Allow => "allows",
                    Decide::Ask => "asks a person about",
                    Decide::Deny => "denies",
                };
                format!("a rule of the policy {does} `{}`", rule.text)
            });
            let is_about_command = || rule.when.iter().any(|(name, _)| call.kinds.is_command(name));
            if let Some(unclear) = call.not_analyzable().filter(|_| is_about_command()) {
                why = format!("{why}; it applies as what the command runs cannot be told: {unclear}");
            }
            if let Some(name) = rule.left_out(call) {
                why = format!("{why}; it applies as `{name}` is left out, and may be what the rule names: name it");
            }
            Verdict { decide: rule.decide, why, rule: Some(rule.text.clone()) }
        }
        None => by_effect(info.facts.effect),
    }
}

/// The profile has granted the tool and the fence holds it; what leaves the machine is for a person to allow.
fn by_effect(effect: Effect) -> Verdict {
    let (decide, why) = match effect {
        Effect::Reads => (Decide::Allow, "it only reads"),
        Effect::Writes => (Decide::Allow, "the profile may write"),
        Effect::Executes => (Decide::Allow, "the fence holds it"),
        Effect::Reaches => (Decide::Ask, "it leaves this machine"),
        Effect::Asks => (Decide::Allow, "it asks a person itself"),
    };
    Verdict { decide, why: why.to_owned(), rule: None }
}

#[cfg(test)]
mod tests;
