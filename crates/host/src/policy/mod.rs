//! Allow, ask or deny: rules over tool and arguments, the strictest match wins, no match goes by effect.
//!
//! A rule over a shell command looks at what it runs: to allow, every simple command in it must match; to ask or deny,
//! it is enough that one may, and a command that is not analyzable may run anything. This is a convenience: the fence
//! protects.

mod pattern;
mod permission;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_contract::{Effect, Facts};
use toolhost_sandbox::{Analyzed, WsPath, analyze};

pub(crate) use self::permission::suggest;
use crate::policy::pattern::{Pattern, glob};
use crate::registry::{Registry, did_you_mean};

/// The tool and argument whose text is a shell command.
const SHELL_TOOL: &str = "bash";
pub(crate) const SHELL_ARGUMENT: &str = "command";

/// What only tells what it would do needs nobody's permission.
const DRY_RUN_ARGUMENT: &str = "dryRun";

/// Arguments that are paths: a rule sees them as the tools do, `./a//b` as `a/b`.
pub(crate) const PATH_ARGUMENTS: &[&str] = &["path", "from", "to", "cwd", "files"];

/// In order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decide {
    Allow,
    Ask,
    Deny,
}

/// A rule as the operator writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRule {
    /// Name or glob of tools.
    tool: String,
    /// Argument name to glob; all must match.
    #[serde(default)]
    when: BTreeMap<String, String>,
    pub(crate) decide: Decide,
    #[serde(default)]
    why: Option<String>,
    /// Texts (or argument tables) that the rule must match.
    #[serde(default, rename = "match")]
    matches: Vec<toml::Value>,
    #[serde(default)]
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
    tool: Pattern,
    when: Vec<(String, Pattern)>,
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

/// A call as rules look at it. Its command is taken apart once, however many rules there are.
pub(crate) struct Looked<'a> {
    tool: &'a str,
    arguments: &'a Value,
    command: OnceCell<Analyzed>,
}

impl<'a> Looked<'a> {
    pub(crate) fn new(tool: &'a str, arguments: &'a Value) -> Self {
        Self { tool, arguments, command: OnceCell::new() }
    }

    fn analyzed(&self, text: &str) -> &Analyzed {
        self.command.get_or_init(|| analyze(text))
    }

    /// Why its command may run anything, where a rule has asked.
    fn not_analyzable(&self) -> Option<&'static str> {
        match self.command.get()? {
            Analyzed::NotAnalyzable { why } => Some(why),
            Analyzed::Commands(_) => None,
        }
    }
}

impl Rule {
    /// Compiles a rule and runs its own tests.
    pub(crate) fn new(raw: &RawRule, registry: &Registry) -> Result<Self, String> {
        let name = check_names(raw, registry)?;
        let when =
            raw.when.iter().map(|(name, pattern)| Ok((name.clone(), glob(pattern)?))).collect::<Result<_, String>>()?;
        let conditions: Vec<String> = raw.when.iter().map(|(name, pattern)| format!("{name} = {pattern}")).collect();
        let text = if conditions.is_empty() { name.clone() } else { format!("{name} when {}", conditions.join(", ")) };
        let rule = Self { tool: glob(&name)?, when, decide: raw.decide, why: raw.why.clone(), text };
        for (examples, expected) in [(&raw.matches, true), (&raw.not_match, false)] {
            for example in examples {
                let arguments = rule.example(example)?;
                let tool = if rule.tool.is_match(SHELL_TOOL) { SHELL_TOOL } else { &*name };
                if rule.matches_arguments(&Looked::new(tool, &arguments)) != expected {
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

    pub(crate) fn matches(&self, call: &Looked<'_>) -> bool {
        self.tool.is_match(call.tool) && self.matches_arguments(call)
    }

    fn matches_arguments(&self, call: &Looked<'_>) -> bool {
        self.when.iter().all(|(name, glob)| match call.arguments.get(name) {
            Some(Value::String(text)) if call.tool == SHELL_TOOL && name == SHELL_ARGUMENT => {
                self.matches_command(glob, call.analyzed(text))
            }
            Some(Value::String(text)) => self.matches_text(name, glob, text),
            Some(Value::Array(items)) => {
                let strings = items.iter().all(Value::is_string) && !items.is_empty();
                let mut texts = items.iter().filter_map(Value::as_str);
                // As with commands: allowing needs all, asking and denying needs one.
                match self.decide {
                    Decide::Allow => strings && texts.all(|text| self.matches_text(name, glob, text)),
                    Decide::Ask | Decide::Deny => texts.any(|text| self.matches_text(name, glob, text)),
                }
            }
            Some(Value::Null) | None => glob.is_match(""),
            Some(other) => glob.is_match(&other.to_string()),
        })
    }

    fn matches_text(&self, name: &str, glob: &Pattern, text: &str) -> bool {
        if !PATH_ARGUMENTS.contains(&name) {
            return glob.is_match(text);
        }
        match WsPath::parse(text) {
            Ok(path) => glob.is_match(path.as_str()),
            // No path at all: the tool will say so; until then it is not allowed by a rule, and denied by one.
            Err(_) => self.decide != Decide::Allow,
        }
    }

    fn matches_command(&self, glob: &Pattern, command: &Analyzed) -> bool {
        match (command, self.decide) {
            (Analyzed::NotAnalyzable { .. }, decide) => decide != Decide::Allow,
            (Analyzed::Commands(commands), Decide::Allow) => {
                !commands.is_empty() && commands.iter().all(|c| c.literal && glob.is_match(&c.text))
            }
            (Analyzed::Commands(commands), Decide::Ask | Decide::Deny) => {
                commands.iter().any(|c| c.may_match(|text| glob.is_match(text), glob.start()))
            }
        }
    }
}

/// The rule's tool by its canonical name. A name or argument that does not exist is a rule that would silently do
/// nothing, so it is an error.
fn check_names(raw: &RawRule, registry: &Registry) -> Result<String, String> {
    let Some(tool) = registry.get(&raw.tool) else {
        let matcher = glob(&raw.tool)?;
        let names = registry.tools().iter().map(|tool| &*tool.facts.name);
        // The built-in profiles speak of tools that a host may lack.
        if raw.tool.contains(['*', '?', '[', '{']) || names.clone().any(|name| matcher.is_match(name)) {
            return Ok(raw.tool.clone());
        }
        let hint = did_you_mean(&raw.tool, names);
        return Err(format!("there is no tool `{}`{hint}", raw.tool));
    };
    let properties = tool.facts.input_schema.get("properties").and_then(Value::as_object);
    for name in raw.when.keys() {
        if properties.is_none_or(|properties| !properties.contains_key(name)) {
            return Err(format!("`{}` has no argument `{name}`", tool.facts.name));
        }
    }
    Ok(tool.facts.name.to_string())
}

/// Step 6 of the gate.
pub(crate) fn decide(rules: &[Rule], facts: &Facts, arguments: &Value) -> Verdict {
    let verdict = by_rules(rules, facts, arguments);
    let dry_run = arguments.get(DRY_RUN_ARGUMENT) == Some(&Value::Bool(true));
    if facts.always_asks && !dry_run && verdict.decide == Decide::Allow {
        return Verdict { decide: Decide::Ask, why: "a person allows each of these".to_owned(), rule: None };
    }
    verdict
}

fn by_rules(rules: &[Rule], facts: &Facts, arguments: &Value) -> Verdict {
    let call = Looked::new(&facts.name, arguments);
    let strictest = rules
        .iter()
        .filter(|rule| rule.matches(&call))
        .reduce(|strictest, rule| if rule.decide > strictest.decide { rule } else { strictest });
    match strictest {
        Some(rule) => {
            let mut why = rule.why.clone().unwrap_or_else(|| format!("the rule `{}`", rule.text));
            if let Some(unclear) =
                call.not_analyzable().filter(|_| rule.when.iter().any(|(name, _)| name == SHELL_ARGUMENT))
            {
                why = format!("{why}; it applies as what the command runs cannot be told: {unclear}");
            }
            Verdict { decide: rule.decide, why, rule: Some(rule.text.clone()) }
        }
        None => by_effect(facts.effect),
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
mod tests {
    use super::*;

    /// Just enough of `bash` for rules about it.
    struct FakeBash;

    impl toolhost_contract::AnyTool for FakeBash {
        fn facts(&self) -> Facts {
            Facts {
                name: "bash".into(),
                title: "Run".into(),
                description: "runs".to_owned(),
                effect: Effect::Executes,
                version: 1,
                people_only: false,
                owners_only: false,
                always_asks: false,
                by_rule: true,
                waits: false,
                trace: toolhost_contract::Trace::None,
                aliases: Vec::new(),
                input_schema: serde_json::json!({"type": "object", "properties": {"command": {"type": "string"}}}),
                output_schema: toolhost_contract::Packed::new(&serde_json::json!({})),
                examples: Vec::new(),
            }
        }

        fn run<'a>(
            &'a self,
            _: &'a toolhost_contract::Ctx<'a>,
            _: Value,
        ) -> toolhost_sandbox::BoxFuture<'a, Result<toolhost_contract::Success, toolhost_contract::ToolError>> {
            Box::pin(std::future::ready(Err(toolhost_contract::ToolError::internal("never run"))))
        }
    }

    #[test]
    fn a_rule_about_what_is_not_there_is_refused() {
        let none = rule("tool = 'bsh'\ndecide = 'deny'").map(|_| ());
        assert_eq!(none, Err("there is no tool `bsh`; did you mean `bash`?".to_owned()));
        let none = rule("tool = 'bash'\nwhen = { comand = 'x' }\ndecide = 'deny'").map(|_| ());
        assert_eq!(none, Err("`bash` has no argument `comand`".to_owned()));
    }

    fn rule(text: &str) -> Result<Rule, String> {
        let raw: RawRule = toml::from_str(text).map_err(|error| error.to_string())?;
        Rule::new(&raw, &Registry::new(vec![Box::new(FakeBash)]).expect("one tool"))
    }

    fn matches(rule: &Rule, command: &str) -> bool {
        rule.matches(&Looked::new("bash", &serde_json::json!({ "command": command })))
    }

    #[test]
    fn an_allowing_rule_needs_every_simple_command() {
        let rule = rule("tool = 'bash'\nwhen = { command = 'cargo test*' }\ndecide = 'allow'").expect("a rule");
        for yes in [
            "cargo test",
            "cargo test --workspace",
            "cargo test && cargo test -p x",
            "(cargo test; cargo test a) 2>&1",
            "cargo 'test' \"a b\"",
        ] {
            assert!(matches(&rule, yes), "{yes}");
        }
        for no in [
            "cargo test; curl example.org",
            "cargo test | sh",
            "cargo test $(curl example.org)",
            "cargo test `id`",
            "cargo test $X",
            "LD_PRELOAD=./x.so cargo test",
            "cargo test > /tmp/x",
            "cargo test <(id)",
            "if true; then cargo test; fi",
            "cargo() { rm x; }; cargo test",
            "cargo test &&",
            "",
            "echo cargo test",
            "eval cargo test",
            "for PATH in .; do cargo test x; done",
            "for ((x=0;;)); do cargo test a; done",
            "cargo test a <<< ${x@P}",
            "cargo test a << E\n${x@P}\nE",
            "case ${x@P} in *) cargo test a;; esac",
            "cargo test a >& important.txt",
            "((x=1)); cargo test a",
            "'cargo test x'",
            "\"carg\\o\" test a",
            "select x in a; do cargo test a; done",
        ] {
            assert!(!matches(&rule, no), "{no}");
        }
    }

    #[test]
    fn a_denying_rule_needs_one_simple_command() {
        let rule = rule("tool = 'bash'\nwhen = { command = 'curl *' }\ndecide = 'deny'").expect("a rule");
        for yes in [
            "curl example.org",
            "cd x && curl $URL",
            "echo $(curl example.org)",
            "while true; do curl x; done",
            "broken ' quote",
            "FOO=1 curl x",
            "$X example.org",
            "curl$X",
        ] {
            assert!(matches(&rule, yes), "{yes}");
        }
        for no in ["echo curl", "ls", "echo 'curl example.org'", "echo $X", "ls *", "FOO=$X ls"] {
            assert!(!matches(&rule, no), "{no}");
        }
    }

    /// What bash and a reader may take for different things.
    const UNCLEAR: &[&str] = &[
        "echo test a\u{b}# ; touch X",
        "echo test a\u{c}# ; touch X",
        "echo test a\r# ; touch X",
        "echo test a\\\n# ; touch X",
        "echo test a\\\u{b}# ; touch X",
        "echo test a << E\n`touch X`\nE",
        "[[ -v 'a[$(touch E)]' ]]",
        "echo test `touch X`",
        "eval touch X",
        "$X a",
        "RANDOM='a[$(touch E)]'",
    ];

    #[test]
    fn what_is_not_analyzable_is_allowed_by_no_rule_and_matched_by_every_other() {
        for pattern in ["echo test *", "*", "touch *", "cargo test", "[[]*"] {
            for (decide, expected) in [("allow", false), ("ask", true), ("deny", true)] {
                let text = format!("tool = 'bash'\nwhen = {{ command = '{pattern}' }}\ndecide = '{decide}'");
                let rule = rule(&text).expect("a rule");
                for command in UNCLEAR {
                    assert_eq!(matches(&rule, command), expected, "{decide} {pattern}: {command:?}");
                }
            }
        }
        let facts = toolhost_contract::AnyTool::facts(&FakeBash);
        for command in UNCLEAR {
            let arguments = serde_json::json!({ "command": command });
            assert_eq!(suggest(&facts, &arguments), None, "{command:?}");
            let permission = BTreeMap::from([("command".to_owned(), "*".to_owned())]);
            let permission = Rule::permission("bash", &permission).expect("a permission");
            assert!(!permission.matches(&Looked::new("bash", &arguments)), "{command:?}");
        }
        let offered = |command: &str| suggest(&facts, &serde_json::json!({ "command": command }));
        let rule = |pattern: &str| Some(BTreeMap::from([("command".to_owned(), pattern.to_owned())]));
        assert_eq!(offered("echo test a"), rule("echo test *"));
        assert_eq!(offered("git push"), rule("git push"));
        assert_eq!(offered("echo 'a b' c"), rule("echo a b *"), "a word with a blank is one word");
        assert_eq!(offered("echo $X"), None);
        assert_eq!(offered("ls; ls"), None);
        assert_eq!(offered("ls > f"), None);
    }

    #[test]
    fn a_rule_s_pattern_has_limits() {
        let deep = format!("{}b{}", "{a,".repeat(200), "}".repeat(200));
        let refused = rule(&format!("tool = 'bash'\nwhen = {{ command = '{deep}' }}\ndecide = 'deny'")).map(|_| ());
        assert_eq!(refused, Err("glob: it nests braces more than 10 deep".to_owned()));
    }

    #[test]
    fn a_rule_that_fails_its_own_examples_is_refused() {
        let broken =
            rule("tool = 'bash'\nwhen = { command = 'cargo *' }\ndecide = 'allow'\nnot_match = ['cargo publish']");
        assert_eq!(broken.map(|_| ()), Err("it matches its own example \"cargo publish\"".to_owned()));
        let broken =
            rule("tool = 'bash'\nwhen = { command = 'cargo test*' }\ndecide = 'allow'\nmatch = ['cargo build']");
        assert_eq!(broken.map(|_| ()), Err("it does not match its own example \"cargo build\"".to_owned()));
    }
}
