//! Tools of each kind, in miniature: notes that are read, written, waited for, and thrown away by people only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhost_contract::{AnyTool, Callers, Ctx, ErrorKind, Example, Facts, Progress, Tool, ToolError};

/// The notes, by name.
pub(crate) type Notes = Arc<Mutex<BTreeMap<String, String>>>;

pub(crate) fn tools(notes: &Notes) -> Vec<Box<dyn AnyTool>> {
    let notes = || Arc::clone(notes);
    vec![Box::new(Read(notes())), Box::new(Write(notes())), Box::new(Wait), Box::new(Clear(notes()))]
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Said {
    text: String,
}

/// Takes nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Reads a note.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    /// The name of the note.
    name: String,
}

struct Read(Notes);

impl Tool for Read {
    type Input = Named;
    type Output = Said;
    const NAME: &'static str = "note.read";
    const TITLE: &'static str = "Read a note";
    const FACTS: Facts = toolhost_testkit::facts::READS;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, input: Named) -> Result<Said, ToolError> {
        let text = self.0.lock().unwrap().get(&input.name).cloned();
        let missing = || ToolError::new(ErrorKind::NotFound, format!("there is no note `{}`", input.name));
        text.map(|text| Said { text }).ok_or_else(missing)
    }
}

/// Writes a note.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    /// The name of the note.
    name: String,
    /// What it is to say.
    text: String,
}

struct Write(Notes);

impl Tool for Write {
    type Input = Written;
    type Output = Said;
    const NAME: &'static str = "note.write";
    const TITLE: &'static str = "Write a note";
    const FACTS: Facts = toolhost_testkit::facts::WRITES;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Written) -> Result<Said, ToolError> {
        ctx.progress.report(Progress {
            done: 1.0,
            total: Some(1.0),
            message: format!("writing {}", input.name),
            output: None,
        });
        self.0.lock().unwrap().insert(input.name, input.text.clone());
        Ok(Said { text: input.text })
    }
}

/// Waits for a person, whom nobody knows.
struct Wait;

impl Tool for Wait {
    type Input = Nothing;
    type Output = Said;
    const NAME: &'static str = "note.wait";
    const TITLE: &'static str = "Wait for a note";
    const FACTS: Facts = Facts { waits: toolhost_contract::Waits::Person, ..toolhost_testkit::facts::READS };

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, ctx: &Ctx<'_>, _: Nothing) -> Result<Said, ToolError> {
        ctx.progress.report(Progress { done: 0.0, total: None, message: "waiting".to_owned(), output: None });
        ctx.cancel.cancelled().await;
        Err(ToolError::new(ErrorKind::Cancelled, "nobody wrote one"))
    }
}

struct Clear(Notes);

impl Tool for Clear {
    type Input = Nothing;
    type Output = Said;
    const NAME: &'static str = "note.clear";
    const TITLE: &'static str = "Throw all notes away";
    const FACTS: Facts = Facts { callers: Callers::People, ..toolhost_testkit::facts::WRITES };

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, _: Nothing) -> Result<Said, ToolError> {
        self.0.lock().unwrap().clear();
        Ok(Said { text: "gone".to_owned() })
    }
}
