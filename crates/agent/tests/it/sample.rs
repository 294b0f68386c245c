//! The package that we show to people, and envelopes of its objects.

use std::path::Path;

use serde_json::Value;
use toolhost_agent::prompt::{BuilderInput, ComposeInput, WritePolicy};
use toolhost_builder::domain::resolve_domain_profile;
use toolhost_builder::envelope::{Mode, Request, Scope, TargetType, build_initial_context_envelope};
use toolhost_builder::{Files, Package};

pub(crate) const TARGETS: [(TargetType, &str); 4] = [
    (TargetType::Workflow, "research-report"),
    (TargetType::Step, "enough"),
    (TargetType::Agent, "critic"),
    (TargetType::Asset, "assets/style-guide.md"),
];

/// The files of `examples/research-report`.
#[expect(clippy::disallowed_methods, reason = "the sample is in the repository, not in a workspace")]
pub(crate) fn files() -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report");
    let mut files = Files::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

pub(crate) fn envelope(target_type: TargetType, target_id: &str, mode: Mode) -> Value {
    let package = Package::read(files());
    let request = Request {
        package: &package,
        target_type,
        target_id,
        mode,
        workflow_id: None,
        tools: &["builder.step.read", "builder.change.stage"],
        scope: Scope::default(),
    };
    build_initial_context_envelope(&request).unwrap()
}

pub(crate) fn input(target_type: TargetType, target_id: &str, mode: Mode) -> ComposeInput {
    ComposeInput::Builder(BuilderInput {
        entrypoint: target_type,
        target_type,
        mode,
        domain_profile: resolve_domain_profile(&Package::read(files()), None).unwrap(),
        context_envelope: envelope(target_type, target_id, mode),
        write_policy: WritePolicy,
        reply_limits: None,
    })
}
