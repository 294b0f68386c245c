//! The names of the tools that a session calls itself. The program that wires the host passes them.

/// Tools by their canonical names, such as `file.read`. One that the host does not have is not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTools {
    /// Reads the ticket that a session is about: `ticketId`.
    pub read_ticket: &'static str,
    /// Lists files: `pattern`, `recursive`.
    pub list_files: &'static str,
    /// Reads a file: `path`.
    pub read_file: &'static str,
    /// Who has it is told the branch.
    pub repository: &'static str,
    /// Who has one of them is told the remote.
    pub remotes: &'static [&'static str],
    /// Reads the context of an object of a workflow package.
    pub read_context: &'static str,
    /// Stages a change set: `changeSet`.
    pub stage: &'static str,
    /// Validates a change set: `changeSetId`.
    pub validate: &'static str,
    /// Discards a change set: `changeSetId`.
    pub discard: &'static str,
    /// Reads an earlier result again: `handle`. By its wire name, as a model is told of it.
    pub read_result: &'static str,
    /// The tools of a session on a workflow package, and no others.
    pub on_package: &'static [&'static str],
}
