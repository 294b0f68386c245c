//! What a host must know of a tool to make a call safe: [`Facts`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What running a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    Reads,
    Writes,
    /// Starts processes.
    Executes,
    /// Leaves the machine.
    Reaches,
    /// Asks a person.
    Asks,
}

impl Effect {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Executes => "executes",
            Self::Reaches => "reaches",
            Self::Asks => "asks",
        }
    }

    /// Whether a call may change anything, here or elsewhere.
    pub fn may_change(self) -> bool {
        self != Self::Reads
    }
}

/// What a call leaves behind by which its end can be decided when its host dies before it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trace {
    /// Nothing that decides it: processes, git, what leaves the machine, more than one transaction.
    None,
    /// The call changes files through its workspace and nothing else: each change is logged before it is made.
    Files,
    /// The call changes records or change sets in one transaction, and the history names the call. A call without a row in
    /// the history may be repeated: it has not happened, or happening twice comes to the same.
    Records,
    /// The call deploys the workspace: the journal at the target names the call.
    Deploy,
}

/// Who may call a tool, where a profile grants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Callers {
    /// Models and people.
    Anyone,
    /// People. A model that calls it is refused; the profile alone cannot grant it.
    People,
    /// People who own the project.
    Owners,
}

/// When a person is asked before a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Approval {
    /// As policy decides. A person may allow a call and its like for a while.
    ByPolicy,
    /// As policy decides. A person allows one call at a time: the arguments say too little of what a call does.
    OneByOne,
    /// For each call: no rule of policy and no standing permission does it instead.
    Always,
}

/// The argument that is a shell command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CommandArgument {
    /// The name of the command's argument.
    pub name: &'static str,
    /// The name of the argument with the command's standard input.
    pub input: &'static str,
}

/// What a call may wait for before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Waits {
    Nothing,
    /// For as long as people are waited for.
    Person,
    /// For a command in the background, as long as the caller says.
    Command,
}

/// What callers are told to use a tool for, in hints of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Help {
    /// It lists the tools of the caller.
    ListsTools,
    /// It finds tools of the caller by words. Whoever is told all of its tools is not told of this one.
    FindsTools,
    /// It waits for the answer about a call that a person has to allow, and runs the call.
    AwaitsApproval,
}

/// The safety facts of a tool. No field has a default: a tool that leaves one out does not compile. All of them are in
/// `docs/generated/tools.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// What a call can do.
    pub effect: Effect,
    /// Who may call it.
    pub callers: Callers,
    /// When a person is asked.
    pub approval: Approval,
    /// What a call may wait for. It then takes no place among the calls that run at once.
    pub waits: Waits,
    /// How the end of a call is decided whose host died.
    pub trace: Trace,
    /// The arguments that are paths in the workspace: each a text or a list of texts. Policy sees them as the tool does.
    pub paths: &'static [&'static str],
    /// The argument that is a shell command.
    pub command: Option<CommandArgument>,
    /// The argument that, where it is true, makes a call only tell what it would do. `Approval::Always` is then not meant.
    pub dry_run: Option<&'static str>,
    /// Whether a call runs a program, which may wait for what an agent has put in its way until the call's time is over.
    pub runs_program: bool,
    /// What callers are told to use it for.
    pub help: Option<Help>,
}

/// Facts that many tools share. Each tool names its own: one of these, or one of these with what differs.
impl Facts {
    /// Reads: records, packages, what the host keeps. A tool that reads the workspace names its paths besides.
    pub const READS: Self = Self {
        effect: Effect::Reads,
        callers: Callers::Anyone,
        approval: Approval::ByPolicy,
        waits: Waits::Nothing,
        trace: Trace::None,
        paths: &[],
        command: None,
        dry_run: None,
        runs_program: false,
        help: None,
    };

    /// Changes records or a package, in one transaction.
    pub const WRITES_RECORDS: Self = Self { effect: Effect::Writes, trace: Trace::Records, ..Self::READS };

    /// Changes the file or folder `path` of the workspace, through nothing but the workspace.
    pub const WRITES_FILE: Self = Self { effect: Effect::Writes, trace: Trace::Files, paths: &["path"], ..Self::READS };

    /// Reads a repository through git.
    pub const READS_REPOSITORY: Self = Self { runs_program: true, ..Self::READS };

    /// Changes a repository and the workspace through git.
    pub const CHANGES_REPOSITORY: Self = Self { effect: Effect::Writes, ..Self::READS_REPOSITORY };

    /// Speaks with the server of a repository.
    pub const REACHES_SERVER: Self = Self { effect: Effect::Reaches, ..Self::READS_REPOSITORY };

    /// Asks a person, and waits for the answer as its question says.
    pub const ASKS: Self = Self { effect: Effect::Asks, ..Self::READS };

    /// Whether calls may run beside others, and again: the tool changes nothing, and does not wait for what may, such as
    /// a call that a person allows.
    pub fn only_reads(&self) -> bool {
        self.effect == Effect::Reads && self.waits != Waits::Person
    }

    /// Whether a model that calls it is refused.
    pub fn is_for_people(&self) -> bool {
        self.callers != Callers::Anyone
    }
}
