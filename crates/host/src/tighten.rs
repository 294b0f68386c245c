//! `toolhost.toml` in a project's root: it may tighten what the operator grants, never loosen it.
//!
//! It is read once, when the host starts: what an agent writes there later changes nothing for this host.

use crate::error::{Error, Result};
use crate::policy::{Decide, RawRule, Rule};
use crate::registry::Registry;
use serde::Deserialize;

/// What a project takes away from every profile.
#[derive(Debug, Clone, Default)]
pub struct Tightening {
    pub(crate) rules: Vec<Rule>,
    pub(crate) without_tools: Vec<String>,
    pub(crate) read_only: bool,
    pub(crate) no_network: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rules: Vec<RawRule>,
    /// Names or globs of tools that no profile has here.
    #[serde(default)]
    without_tools: Vec<String>,
    #[serde(default)]
    fence: Option<FencePart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FencePart {
    #[serde(default)]
    workspace: Option<String>,
    #[serde(default)]
    network: Option<Vec<String>>,
}

impl Tightening {
    /// Reads the file's text; anything that would grant something is refused, not passed over.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|error| Error::toml(&format!("toolhost.toml: {error}")))?;
        let mut rules = Vec::new();
        for (n, raw) in file.rules.iter().enumerate() {
            if raw.decide == Decide::Allow {
                return Err(Error::Loosens(format!("rule {} decides `allow`", n + 1)));
            }
            let profile = "toolhost.toml".to_owned();
            rules.push(Rule::new(raw, registry).map_err(|problem| Error::Rule { profile, rule: n + 1, problem })?);
        }
        let fence = file.fence.unwrap_or(FencePart { workspace: None, network: None });
        match fence.workspace.as_deref() {
            None | Some("read") => {}
            Some(other) => {
                return Err(Error::Loosens(format!("`fence.workspace` can only be \"read\", not \"{other}\"")));
            }
        }
        if fence.network.as_ref().is_some_and(|hosts| !hosts.is_empty()) {
            return Err(Error::Loosens("`fence.network` can only be empty".to_owned()));
        }
        let mut without_tools = Vec::new();
        for name in &file.without_tools {
            let found = registry.matching(name).map_err(|unmatched| Error::UnknownTool {
                profile: "toolhost.toml".to_owned(),
                tool: name.clone(),
                hint: unmatched.hint(),
            })?;
            without_tools.extend(found.iter().map(|tool| tool.info.name.to_string()));
        }
        Ok(Self { rules, without_tools, read_only: fence.workspace.is_some(), no_network: fence.network.is_some() })
    }
}
