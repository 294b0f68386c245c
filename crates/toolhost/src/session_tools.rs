//! The tools that the loop of sessions calls itself.

use toolhost_agent::SessionTools;

/// By their canonical names; the loop knows none of its own.
pub const SESSION_TOOLS: SessionTools = SessionTools {
    read_ticket: "ticket.read",
    list_files: "file.list",
    read_file: "file.read",
    repository: "git.status",
    remotes: &["git.push", "git.fetch", "git.pull"],
    read_context: "builder.context.get",
    stage: "builder.change.stage",
    validate: "builder.change.validate",
    discard: "builder.change.discard",
    read_result: "session_result",
    on_package: &BUILDER_LOOP_TOOLS,
};

/// The tools of a session on a workflow package (CrewAgent seed BAI-2, 3.5): the six reads and three writes that the seed
/// freezes; how a change set is written; what asks a person and waits for the answer; what reads an earlier result again.
/// `builder.change.apply` is a person's.
pub const BUILDER_LOOP_TOOLS: [&str; 15] = [
    "builder.context.get",
    "builder.workflow.read",
    "builder.step.read",
    "builder.agent.read",
    "builder.asset.read",
    "builder.refs.find",
    "builder.change.stage",
    "builder.change.validate",
    "builder.change.discard",
    "builder.schema.read",
    "approval.wait",
    "session.result",
    "human.ask",
    "review.content",
    "review.file",
];

/// Waits for the answer to what a call has asked, and uses it: `approvalId`.
pub(crate) const WAIT: &str = "approval.wait";
