//! An agent's side of a call, as adk-rust's own runner would be it.

use std::sync::{Arc, Mutex};

use adk_core::{Artifacts, CallbackContext, Content, EventActions, MemoryEntry, ReadonlyContext, Tool, ToolContext};
use async_trait::async_trait;
use toolhost_adk::Toolset;
use toolhost_contract::{Caller, CallerKind, Scope};
use toolhost_testkit::{House, HouseBuilder, USER};

use crate::notes::{Notes, tools};

/// The context of a call, in the agent's own session.
pub(crate) struct Context {
    content: Content,
    pub(crate) progress: Mutex<Vec<String>>,
}

pub(crate) const SESSION: &str = "adk-session";

pub(crate) fn context() -> Arc<Context> {
    Arc::new(Context { content: Content::new("user"), progress: Mutex::default() })
}

impl ReadonlyContext for Context {
    fn invocation_id(&self) -> &str {
        "invocation-1"
    }

    fn agent_name(&self) -> &str {
        "tester"
    }

    fn user_id(&self) -> &str {
        "somebody"
    }

    fn app_name(&self) -> &str {
        "toolhost-tests"
    }

    fn session_id(&self) -> &str {
        SESSION
    }

    fn branch(&self) -> &str {
        ""
    }

    fn user_content(&self) -> &Content {
        &self.content
    }
}

impl CallbackContext for Context {
    fn artifacts(&self) -> Option<Arc<dyn Artifacts>> {
        None
    }
}

#[async_trait]
impl ToolContext for Context {
    fn function_call_id(&self) -> &str {
        "call-of-the-model"
    }

    fn actions(&self) -> EventActions {
        EventActions::default()
    }

    fn set_actions(&self, _: EventActions) {}

    async fn search_memory(&self, _: &str) -> adk_core::Result<Vec<MemoryEntry>> {
        Ok(Vec::new())
    }

    async fn emit_progress(&self, stream: &str, chunk: &str) {
        self.progress.lock().unwrap().push(format!("{stream}: {chunk}"));
    }
}

/// What the profiles are that agents here have.
const PROFILES: &str = "[profiles.reader]\ntools = ['note.read']\n[profiles.writer]\ntools = ['note.*']\n";

/// A house with notes.
pub(crate) fn house() -> (HouseBuilder, Notes) {
    let notes = Notes::default();
    (HouseBuilder::new(tools(&notes)).operator(PROFILES), notes)
}

/// The same, where a person is asked about every note that is written.
pub(crate) fn asking_house() -> (HouseBuilder, Notes) {
    let (builder, notes) = house();
    let rule = "[[profiles.writer.rules]]\ntool = 'note.write'\ndecide = 'ask'\n";
    (builder.operator(&format!("{PROFILES}{rule}")), notes)
}

/// In whose name an agent works.
pub(crate) fn scope(house: &House) -> Scope {
    Scope { user_id: USER, project_id: house.project.id, session_id: None, workflow_id: None, ticket_id: None }
}

/// Somebody who says of themselves to be a person.
pub(crate) fn caller(profile: &str) -> Caller {
    Caller {
        kind: CallerKind::Person,
        door: "elsewhere".into(),
        profile: profile.to_owned(),
        persona: "adk agent".to_owned(),
    }
}

pub(crate) fn toolset(house: &House, profile: &str) -> Toolset {
    Toolset::new(&house.gate, scope(house), caller(profile)).unwrap()
}

/// The tool of this name.
pub(crate) fn tool(set: &Toolset, name: &str) -> Arc<dyn Tool> {
    set.tools().into_iter().find(|tool| tool.name() == name).unwrap()
}
