//! The tools a host has, and every name they answer to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::Value;
use toolhost_contract::workspace::{Glob, GlobStyle};
use toolhost_contract::{
    Alias, AnyTool, Effect, Help, NAME_COMPARED_MAX, SIMILARITY_MIN, SUGGESTIONS_MAX, ToolError, ToolInfo, ToolSummary,
    Waits, did_you_mean, nearest, told_arguments,
};

use crate::error::{Error, Result};
use crate::fit::{fit, fit_paths, shortened, without_nulls};
use crate::kinds::ArgumentKinds;
use crate::validate::validate;

/// How much of two names' words must be the same, where their letters are not.
const WORDS_MIN: f64 = 0.5;
/// How much less alike than the best one a tool may be to be suggested beside it.
const FURTHER_OFF_MAX: f64 = 0.05;

/// All tools, in a fixed order, by all their names.
pub struct Registry {
    tools: Vec<Registered>,
    names: BTreeMap<String, Named>,
    /// What other hosts call them, in the spelling of [`snake_case`]; two for one name have none.
    elsewhere: BTreeMap<String, Option<usize>>,
}

/// A tool with what is known of it.
pub struct Registered {
    pub info: ToolInfo,
    pub wire_name: String,
    /// How rules look at its arguments.
    pub(crate) kinds: ArgumentKinds,
    pub(crate) tool: Arc<dyn AnyTool>,
    /// Compiled when first needed: a host that only lists its tools need not pay for it.
    validator: OnceLock<Validator>,
}

#[derive(Clone, Copy)]
struct Named {
    tool: usize,
    alias: Option<usize>,
}

/// A tool as it was asked for.
pub(crate) struct Resolved<'a> {
    pub(crate) tool: &'a Registered,
    pub(crate) alias: Option<&'a Alias>,
    /// Whether the name is one that only other hosts have for it.
    pub(crate) is_elsewhere: bool,
}

/// Why a name or glob means no tool.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unmatched {
    #[error("{0}")]
    Glob(String),
    /// With what may have been meant.
    #[error("there is no tool `{pattern}`{hint}")]
    None { pattern: String, hint: String },
}

impl Unmatched {
    /// What follows a sentence that names the tool.
    pub(crate) fn hint(self) -> String {
        match self {
            Self::Glob(problem) => format!(": {problem}"),
            Self::None { hint, .. } => hint,
        }
    }
}

/// The name of a tool where dots are forbidden: `file.read` is `file_read` (Bonsai's names).
pub fn wire_name(canonical: &str) -> String {
    canonical.replace('.', "_")
}

impl Registry {
    /// Refuses two tools that answer to one name, wire names and aliases included.
    pub fn new(tools: Vec<Box<dyn AnyTool>>) -> Result<Self> {
        let mut registry = Self { tools: Vec::new(), names: BTreeMap::new(), elsewhere: BTreeMap::new() };
        for tool in tools {
            let info = tool.info();
            registry.add(tool.into(), info)?;
        }
        Ok(registry)
    }

    /// A call as a sentence for people: the tool's title, and what it works on, such as `("Edit a file", "a.txt, edits (2)")`.
    /// `None` where no tool has this name.
    pub fn told_call(&self, tool: &str, arguments: &Value) -> Option<(String, String)> {
        let info = &self.get(tool)?.info;
        let command = info.facts.command.map(|command| command.name);
        Some((info.title.to_string(), told_arguments(info.facts.paths, command, arguments)))
    }

    fn add(&mut self, tool: Arc<dyn AnyTool>, info: ToolInfo) -> Result<()> {
        check_name(&info.name)?;
        let at = self.tools.len();
        let wire_name = wire_name(&info.name);
        self.claim(&info.name, Named { tool: at, alias: None })?;
        if wire_name != info.name {
            self.claim(&wire_name, Named { tool: at, alias: None })?;
        }
        for (n, alias) in info.aliases.iter().enumerate() {
            self.claim(alias.name, Named { tool: at, alias: Some(n) })?;
        }
        for called in info.called_elsewhere {
            self.elsewhere.entry(snake_case(called)).and_modify(|one| *one = None).or_insert(Some(at));
        }
        let kinds = ArgumentKinds::of(&info.facts);
        self.tools.push(Registered { info, wire_name, kinds, tool, validator: OnceLock::new() });
        Ok(())
    }

    fn claim(&mut self, name: &str, named: Named) -> Result<()> {
        match self.names.insert(name.to_owned(), named) {
            // An alias may equal the tool's own wire name: it is the same tool either way.
            Some(before) if before.tool != named.tool => Err(Error::NameTaken(name.to_owned())),
            _ => Ok(()),
        }
    }

    /// The tool that callers are told to use for this, by its canonical name, if there is one.
    pub(crate) fn helper(&self, help: Help) -> Option<&str> {
        self.tools.iter().find(|tool| tool.info.facts.help == Some(help)).map(|tool| &*tool.info.name)
    }

    /// Adds to an error what shows the tools that a caller has.
    pub(crate) fn with_list(&self, error: ToolError) -> ToolError {
        match self.helper(Help::ListsTools) {
            Some(list) => error.hint(format!("`{list}` shows the tools you have")),
            None => error,
        }
    }

    /// In the order they were given.
    pub fn tools(&self) -> &[Registered] {
        &self.tools
    }

    /// Step 1 of the gate.
    pub(crate) fn resolve(&self, name: &str) -> Option<Resolved<'_>> {
        let named = self.names.get(name).copied();
        let is_elsewhere = named.is_none();
        let named = named.or_else(|| self.called_elsewhere(name))?;
        let tool = &self.tools[named.tool];
        Some(Resolved { tool, alias: named.alias.map(|n| &tool.info.aliases[n]), is_elsewhere })
    }

    /// The tool behind any of its names, those of other hosts included.
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.resolve(name).map(|resolved| resolved.tool)
    }

    fn called_elsewhere(&self, name: &str) -> Option<Named> {
        let tool = (name.len() <= NAME_COMPARED_MAX).then(|| self.elsewhere.get(&snake_case(name)).copied())??;
        tool.map(|tool| Named { tool, alias: None })
    }

    /// The tools that somebody speaks of by one of their names, or by a glob over all of them (`file.*`, `file_*`), in
    /// their order. None is an error: whoever wrote it meant some.
    pub(crate) fn matching(&self, pattern: &str) -> std::result::Result<Vec<&Registered>, Unmatched> {
        if let Some(tool) = self.get(pattern) {
            return Ok(vec![tool]);
        }
        let glob = Glob::new(pattern, GlobStyle::Text).map_err(|error| Unmatched::Glob(error.to_string()))?;
        let found: BTreeSet<usize> =
            self.names.iter().filter(|(name, _)| glob.is_match(name)).map(|(_, named)| named.tool).collect();
        if found.is_empty() {
            let names = self.tools.iter().map(|tool| &*tool.info.name);
            return Err(Unmatched::None { pattern: pattern.to_owned(), hint: did_you_mean(&nearest(pattern, names)) });
        }
        Ok(found.into_iter().map(|at| &self.tools[at]).collect())
    }
}

impl Registered {
    fn validator(&self) -> std::result::Result<&Validator, ToolError> {
        if let Some(validator) = self.validator.get() {
            return Ok(validator);
        }
        let compiled = compile(&self.info).map_err(ToolError::internal)?;
        Ok(self.validator.get_or_init(|| compiled))
    }

    /// How rules look at its arguments.
    pub fn kinds(&self) -> &ArgumentKinds {
        &self.kinds
    }

    /// The arguments as the tool's schema looks at them: null is left out where it says nothing, and what an alias sets is in them.
    pub(crate) fn given(&self, arguments: &Value, alias: Option<&Alias>) -> Value {
        let mut arguments = match arguments {
            // Many clients send nothing, or null, for a tool without required arguments.
            Value::Null => Value::Object(serde_json::Map::new()),
            other => other.clone(),
        };
        without_nulls(&mut arguments, &self.info.input_schema);
        let preset = alias.and_then(|alias| alias.preset.as_object());
        if let (Some(object), Some(preset)) = (arguments.as_object_mut(), preset) {
            for (name, value) in preset {
                object.entry(name).or_insert_with(|| value.clone());
            }
        }
        arguments
    }

    /// Step 4 of the gate: arguments that pass the tool's published schema, and how they were read where they were not written so.
    pub(crate) fn fitted(
        &self,
        mut arguments: Value,
        folder: &[String],
    ) -> std::result::Result<(Value, Vec<String>), ToolError> {
        let mut notes = Vec::new();
        if !self.validator()?.is_valid(&arguments) {
            notes = fit(&mut arguments, &self.info);
            self.check(&arguments)?;
        }
        notes.extend(fit_paths(&mut arguments, &self.info, folder)?);
        Ok((arguments, shortened(notes)))
    }

    /// Whether these arguments pass the tool's published schema; every violation is named.
    pub fn check(&self, arguments: &Value) -> std::result::Result<(), ToolError> {
        validate(self.validator()?, &self.info, arguments)
    }

    /// Whether it may wait for a person.
    pub fn waits_for_a_person(&self) -> bool {
        self.info.facts.effect == Effect::Asks || self.info.facts.waits == Waits::Person
    }

    /// Whether it may wait for something that takes its own time.
    pub(crate) fn waits(&self) -> bool {
        self.waits_for_a_person() || self.info.facts.waits == Waits::Command
    }

    /// Whether it is told to a caller that is told of all its tools: nobody has to find what they were told.
    pub fn is_told(&self) -> bool {
        self.info.facts.help != Some(Help::FindsTools)
    }

    pub fn summary(&self) -> ToolSummary {
        ToolSummary {
            name: self.info.name.to_string(),
            wire_name: self.wire_name.clone(),
            aliases: self.info.aliases.iter().map(|alias| alias.name.to_owned()).collect(),
            called_elsewhere: self.info.called_elsewhere,
            title: self.info.title.to_string(),
            description: self.info.description.clone(),
            effect: self.info.facts.effect,
            input_schema: self.info.input_schema.clone(),
            output_schema: self.info.output_schema.value(),
            examples: self.info.examples.clone(),
        }
    }
}

fn compile(info: &ToolInfo) -> Result<Validator> {
    jsonschema::draft202012::new(&info.input_schema)
        .map_err(|error| Error::Schema { tool: info.name.to_string(), message: error.to_string() })
}

fn check_name(name: &str) -> Result<()> {
    let good = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    // `bash` is the one tool without a family: the seed's own name.
    let parts: Vec<&str> = name.split('.').collect();
    if parts.len() <= 3 && parts.iter().all(|part| good(part)) { Ok(()) } else { Err(Error::BadName(name.to_owned())) }
}

/// The tools that a name may stand for, best first, by any of their names: one that is written almost like it, or that
/// has half of its words, such as `ask_user` and `human_ask`. Those that are clearly less like it are left out.
pub(crate) fn nearest_tools<'a>(name: &str, tools: impl Iterator<Item = &'a Registered>) -> Vec<&'a Registered> {
    if name.len() > NAME_COMPARED_MAX {
        return Vec::new();
    }
    let name = snake_case(name);
    let likeness = |candidate: &str| {
        let words = shared_words(&name, candidate);
        let by_words = if words < WORDS_MIN { 0.0 } else { SIMILARITY_MIN + words * (1.0 - SIMILARITY_MIN) };
        strsim::jaro_winkler(&name, candidate).max(by_words)
    };
    let best_of = |tool: &Registered| {
        if tool.info.called_elsewhere.iter().any(|called| snake_case(called) == name) {
            return 1.0;
        }
        let aliases = tool.info.aliases.iter().map(|alias| alias.name);
        let names = aliases.chain([&*tool.info.name, tool.wire_name.as_str()]);
        names.map(likeness).fold(0.0, f64::max)
    };
    let mut scored: Vec<(f64, &Registered)> = tools.map(|tool| (best_of(tool), tool)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let least = scored.first().map_or(1.0, |best| best.0 - FURTHER_OFF_MAX).max(SIMILARITY_MIN);
    scored.into_iter().filter(|(score, _)| *score >= least).take(SUGGESTIONS_MAX).map(|(_, tool)| tool).collect()
}

/// `ask_user` for `askUser` and `AskUser`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut after_lower = false;
    for char in name.chars() {
        if char.is_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = char.is_lowercase() || char.is_numeric();
        snake.extend(char.to_lowercase());
    }
    snake
}

/// The part of the longer name's words that both have.
fn shared_words(one: &str, other: &str) -> f64 {
    let words = |name: &str| -> BTreeSet<String> {
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (one, other) = (words(one), words(other));
    let longer = one.len().max(other.len()).max(1);
    #[expect(clippy::cast_precision_loss, reason = "a name has a handful of words")]
    let part = one.intersection(&other).count() as f64 / longer as f64;
    part
}
