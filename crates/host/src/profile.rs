//! Profiles: the tools a role gets, its rules and its fence, from tables of configuration.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolhost_contract::workspace::{Access, Executor, Fence, HostRule};
use toolhost_contract::{ErrorCode, ErrorKind, ToolError};

use crate::arguments::Arguments;
use crate::error::{Error, Result};
use crate::limits::CallLimits;
use crate::policy::{Decide, Looked, RawRule, Rule, Verdict, analyzed, decide};
use crate::registry::{Registered, Registry, Unmatched};
use crate::tighten::Tightening;

/// Longest chain of `extends`.
const EXTENDS_DEPTH_MAX: usize = 8;
const COMMAND_TIMEOUT_MS_DEFAULT: u64 = 120_000;

/// A call that is explained and not made.
pub struct Explained {
    pub verdict: Verdict,
    pub(crate) arguments: Arguments,
}

/// What one role may do.
#[derive(Debug, Clone)]
pub struct Profile {
    pub name: String,
    pub description: String,
    /// Canonical names, in the registry's order.
    pub tools: Vec<String>,
    pub fence: Fence,
    pub rules: Vec<Rule>,
    pub limits: CallLimits,
}

/// All profiles of a host.
#[derive(Debug, Clone)]
pub struct Profiles {
    profiles: BTreeMap<String, Profile>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// Profiles by name. One of a built-in profile's name changes that profile.
    #[serde(default)]
    profiles: BTreeMap<String, RawProfile>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawProfile {
    /// What the profile is for, in a sentence.
    #[serde(default)]
    description: Option<String>,
    /// The profile that this one adds to.
    #[serde(default)]
    extends: Option<String>,
    /// Names of tools, or globs of them. With `!` in front, a tool is taken out.
    #[serde(default)]
    tools: Vec<String>,
    /// What commands may do.
    #[serde(default)]
    fence: Option<RawFence>,
    /// Rules, of which the first that denies, else the first that asks, else the first that allows decides.
    #[serde(default)]
    rules: Vec<RawRule>,
    /// Limits of calls.
    #[serde(default)]
    limits: RawLimits,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RawAccess {
    Read,
    Write,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawFence {
    /// What commands may do with the workspace.
    workspace: RawAccess,
    /// Hosts that commands may reach: `example.org`, `*.example.org`, `127.0.0.1:8080`.
    #[serde(default)]
    network: Vec<String>,
    /// Whether the processes of one command may reach each other over a loopback of its own, as tests with a server need. Nothing
    /// else is on it. Only the full fence has one.
    #[serde(default)]
    loopback: bool,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    /// Longest time that a command may take, milliseconds.
    command_timeout_ms: Option<u64>,
    /// Calls of one session.
    calls_per_session: Option<u64>,
}

/// Where a table came from decides whether a tool it names must exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    BuiltIn,
    Operator,
}

impl Profiles {
    /// The JSON Schema of `[profiles.NAME]` tables.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(File).into()
    }

    /// The built-in profiles (`[profiles.NAME]` in TOML, of which a tool may be missing), then the operator's tables over them,
    /// then what the project tightens.
    pub fn load(
        registry: &Registry,
        built_in: &str,
        operator: &[&str],
        tightening: Option<&Tightening>,
    ) -> Result<Self> {
        let mut tables = Tables::new();
        let texts =
            std::iter::once((built_in, Origin::BuiltIn)).chain(operator.iter().map(|text| (*text, Origin::Operator)));
        for (text, origin) in texts {
            let file: File = toml::from_str(text).map_err(|error| Error::toml(&error.to_string()))?;
            for (name, raw) in file.profiles {
                tables.entry(name).or_default().push((raw, origin));
            }
        }
        let mut profiles = BTreeMap::new();
        for (name, layers) in &tables {
            let mut profile = resolve(name, layers.len(), &tables, registry, 0)?;
            if let Some(tightening) = tightening {
                profile.tighten(tightening);
            }
            profiles.insert(name.clone(), profile);
        }
        Ok(Self { profiles })
    }

    pub fn get(&self, name: &str) -> Result<&Profile> {
        self.profiles.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
            Error::UnknownProfile { name: name.to_owned(), known: known.join(", ") }
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values()
    }
}

impl Profile {
    /// Takes away what the project's own file does.
    fn tighten(&mut self, tightening: &Tightening) {
        self.rules.extend(tightening.rules.iter().cloned());
        self.tools.retain(|tool| !tightening.without_tools.contains(tool));
        if tightening.read_only {
            self.fence.workspace = Access::Read;
        }
        if tightening.no_network {
            self.fence.network.clear();
            self.fence.loopback = false;
        }
    }

    /// Whether whatever this profile allows, `wider` allows as well: its tools, its fence, and each rule of `wider` that asks
    /// or denies.
    pub fn is_within(&self, wider: &Profile) -> bool {
        let tools = self.tools.iter().all(|tool| wider.has(tool));
        let access = self.fence.workspace == Access::Read || wider.fence.workspace == Access::Write;
        let network = self.fence.network.iter().all(|host| wider.fence.network.contains(host))
            && (wider.fence.loopback || !self.fence.loopback);
        let strict = |rule: &&Rule| rule.decide != Decide::Allow;
        let held = |rule: &Rule| self.rules.iter().any(|own| (&own.text, own.decide) == (&rule.text, rule.decide));
        // What is allowed without asking there is what its own rules allow, too.
        let freed =
            |rule: &Rule| wider.rules.iter().any(|other| (&other.text, other.decide) == (&rule.text, rule.decide));
        let rules = wider.rules.iter().filter(strict).all(held)
            && self.rules.iter().filter(|rule| rule.decide == Decide::Allow).all(freed);
        tools && access && network && rules
    }

    pub fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name == tool)
    }

    /// What this profile's rules say of a call in a workspace, without making it.
    pub async fn explain(&self, tool: &Registered, arguments: Value, workspace: Option<&dyn Executor>) -> Explained {
        // What no call can be made with is explained as it was written.
        let fitted = tool.fitted(tool.given(&arguments, None), names_of_root(workspace));
        let arguments = fitted.map_or(arguments, |(arguments, _)| arguments);
        self.explain_fitted(tool, arguments, workspace).await
    }

    async fn explain_fitted(&self, tool: &Registered, arguments: Value, workspace: Option<&dyn Executor>) -> Explained {
        let arguments = Arguments::explained(&tool.kinds, arguments, workspace).await;
        Explained { verdict: self.decide(tool, &arguments.looked(tool)), arguments }
    }

    /// Whether the gate would let a call through, but for a person's yes.
    ///
    /// # Errors
    /// The tool does not take the arguments, a path leads out of the workspace as it is written, or a rule denies them.
    pub async fn check_denied(
        &self,
        tool: &Registered,
        arguments: Value,
        workspace: Option<&dyn Executor>,
    ) -> std::result::Result<(), ToolError> {
        let (arguments, _) = tool.fitted(tool.given(&arguments, None), names_of_root(workspace))?;
        tool.kinds.check_paths(&arguments)?;
        self.explain_fitted(tool, arguments, workspace).await.verdict.check_denied(&tool.info.name)
    }

    /// The same of arguments as they are written: where paths lead is not looked at.
    pub fn verdict(&self, tool: &Registered, arguments: &Value) -> Verdict {
        let command = analyzed(&tool.kinds, arguments);
        self.decide(tool, &Looked::new(&tool.info.name, &tool.kinds, arguments, command.as_ref()))
    }

    /// Whether a rule about this tool depends on where a path leads: one that names paths, or one that asks, which a person may
    /// have answered for a path.
    pub(crate) fn looks_at_paths(&self, tool: &str) -> bool {
        self.rules.iter().any(|rule| rule.is_about(tool) && (rule.decide == Decide::Ask || rule.names_paths()))
    }

    /// Step 6 of the gate.
    pub(crate) fn decide(&self, tool: &Registered, call: &Looked<'_>) -> Verdict {
        decide(&self.rules, &tool.info, call)
    }

    /// Step 2 of the gate: enforced at the call, not only in the listing.
    pub(crate) fn admit(&self, tool: &Registered, registry: &Registry) -> std::result::Result<(), ToolError> {
        if self.has(&tool.info.name) {
            return Ok(());
        }
        let message = format!("`{}` is not among the tools of the profile `{}`", tool.info.name, self.name);
        let error = ToolError::new(ErrorKind::Permission, message).code(ErrorCode::ToolNotAllowed);
        Err(registry.with_list(error))
    }
}

/// Each profile's tables, the built-in one first.
type Tables = BTreeMap<String, Vec<(RawProfile, Origin)>>;

/// Builds a profile from the first `layers` tables of its name.
fn resolve(name: &str, layers: usize, tables: &Tables, registry: &Registry, depth: usize) -> Result<Profile> {
    let unknown = || Error::UnknownProfile {
        name: name.to_owned(),
        known: tables.keys().cloned().collect::<Vec<_>>().join(", "),
    };
    let (raw, origin) = tables.get(name).and_then(|all| all.get(layers.checked_sub(1)?)).ok_or_else(unknown)?;
    let mut profile = match base_of(name, raw, layers) {
        None => Profile {
            name: name.to_owned(),
            description: String::new(),
            tools: Vec::new(),
            // What is not granted is not given.
            fence: Fence::closed(Access::Read),
            rules: Vec::new(),
            limits: CallLimits { command_timeout_ms: COMMAND_TIMEOUT_MS_DEFAULT, calls_per_session: u64::MAX },
        },
        Some(base) => {
            let fail = |problem| Error::Extends { profile: name.to_owned(), base: base.to_owned(), problem };
            let below = if base == name { layers - 1 } else { tables.get(base).map_or(0, Vec::len) };
            if depth >= EXTENDS_DEPTH_MAX || (base == name && below == 0) {
                return Err(fail("which leads in a circle"));
            }
            if below == 0 {
                return Err(fail("which does not exist"));
            }
            resolve(base, below, tables, registry, depth + 1)?
        }
    };
    name.clone_into(&mut profile.name);
    if let Some(description) = &raw.description {
        profile.description.clone_from(description);
    }
    add_tools(&mut profile, raw, *origin, registry)?;
    if let Some(fence) = &raw.fence {
        profile.fence = fence.compile(name)?;
    }
    for (n, rule) in raw.rules.iter().enumerate() {
        if *origin == Origin::BuiltIn && registry.get(rule.tool()).is_none() {
            continue;
        }
        let rule = Rule::new(rule, registry).map_err(|problem| Error::Rule {
            profile: name.to_owned(),
            rule: n + 1,
            problem,
        })?;
        profile.rules.push(rule);
    }
    profile.limits.command_timeout_ms = raw.limits.command_timeout_ms.unwrap_or(profile.limits.command_timeout_ms);
    profile.limits.calls_per_session = raw.limits.calls_per_session.unwrap_or(profile.limits.calls_per_session);
    Ok(profile)
}

/// What a table builds on. One that names no tools of its own adds to the built-in profile of its name: who writes a
/// rule for `developer` does not mean to take its tools away.
fn base_of<'a>(name: &'a str, raw: &'a RawProfile, layers: usize) -> Option<&'a str> {
    match &raw.extends {
        Some(base) => Some(base),
        None if layers > 1 && raw.tools.is_empty() => Some(name),
        None => None,
    }
}

fn add_tools(profile: &mut Profile, raw: &RawProfile, origin: Origin, registry: &Registry) -> Result<()> {
    let mut wanted = std::mem::take(&mut profile.tools);
    for pattern in &raw.tools {
        match registry.matching(pattern) {
            Ok(found) => wanted.extend(found.iter().map(|tool| tool.info.name.to_string())),
            // The built-in profiles speak of tools that a host may lack.
            Err(Unmatched::None { .. }) if origin == Origin::BuiltIn => {}
            Err(unmatched) => {
                let (profile, tool) = (profile.name.clone(), pattern.clone());
                return Err(Error::UnknownTool { profile, tool, hint: unmatched.hint() });
            }
        }
    }
    let order = registry.tools().iter().map(|tool| tool.info.name.to_string());
    profile.tools = order.filter(|name| wanted.contains(name)).collect();
    Ok(())
}

fn names_of_root(workspace: Option<&dyn Executor>) -> &[String] {
    workspace.map(Executor::names_of_root).unwrap_or_default()
}

impl RawFence {
    fn compile(&self, profile: &str) -> Result<Fence> {
        let hosts = self
            .network
            .iter()
            .map(|host| HostRule::parse(host).map_err(|problem| Error::Fence { profile: profile.to_owned(), problem }));
        let workspace = match self.workspace {
            RawAccess::Read => Access::Read,
            RawAccess::Write => Access::Write,
        };
        Ok(Fence { workspace, network: hosts.collect::<Result<_>>()?, loopback: self.loopback })
    }
}
