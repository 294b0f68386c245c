//! What the tools for records have in common: whose records they work on, and how their answers read.

use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolhost_contract::cursor::number_cursor;
use toolhost_contract::{Alias, AnyTool, Ctx, Example, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{changing, desk};
use crate::tools::sheet::{sheet, sheets};
use crate::{Body, Page, ProjectRecords, RecordId, Records, Removed, Saved};

/// A tool that works on the records of the caller's project, in the caller's name.
///
/// The schema of `Input` must be closed. A struct with flattened parts, such as [`super::arguments`] has them, says so by
/// `extend("additionalProperties" = false)`: serde cannot deny unknown fields there, and the gate does by the schema.
pub(crate) trait RecordTool: Send + Sync + 'static {
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: RecordAnswer;

    /// As [`Tool::NAME`].
    const NAME: &'static str;
    const TITLE: &'static str;
    const FACTS: Facts;

    fn aliases(&self) -> Vec<Alias> {
        Vec::new()
    }

    fn examples(&self) -> Vec<Example>;

    /// The record that a call changes. A person who has to allow the call is shown it as it is now.
    fn changes(&self, _: &Ctx<'_>, _: &Self::Input) -> Result<Option<RecordId>, ToolError> {
        Ok(None)
    }

    /// As [`Tool::preview`]: the record that the call changes, where it changes one.
    fn preview(
        &self,
        ctx: &Ctx<'_>,
        desk: &ProjectRecords,
        input: Self::Input,
    ) -> impl Future<Output = Result<Option<Preview>, ToolError>> + Send {
        async move {
            match self.changes(ctx, &input)? {
                Some(id) => changing(ctx, desk, id, Self::TITLE).await.map(Some),
                None => Ok(None),
            }
        }
    }

    fn run(
        &self,
        ctx: &Ctx<'_>,
        desk: &ProjectRecords,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// What a tool for records answers.
pub(crate) trait RecordAnswer: Serialize + JsonSchema + Send + Sized {
    /// As [`Tool::render`].
    fn text(&self) -> String {
        sheet(self)
    }

    /// As [`Tool::revision`].
    fn revision(&self) -> Option<String> {
        None
    }
}

/// A tool, and the records it works on.
struct OnRecords<T> {
    records: Records,
    tool: T,
}

/// The tool as the host holds it.
pub(crate) fn on<T: RecordTool>(records: &Records, tool: T) -> Box<dyn AnyTool> {
    Box::new(OnRecords { records: records.clone(), tool })
}

impl<T: RecordTool> Tool for OnRecords<T> {
    type Input = T::Input;
    type Output = T::Output;
    const NAME: &'static str = T::NAME;
    const TITLE: &'static str = T::TITLE;
    const FACTS: Facts = T::FACTS;

    fn aliases(&self) -> Vec<Alias> {
        self.tool.aliases()
    }

    fn examples(&self) -> Vec<Example> {
        self.tool.examples()
    }

    fn render(&self, output: &Self::Output) -> String {
        output.text()
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Self::Input) -> Result<Option<Preview>, ToolError> {
        self.tool.preview(ctx, &desk(&self.records, ctx)?, input).await
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Self::Input) -> Result<Self::Output, ToolError> {
        self.tool.run(ctx, &desk(&self.records, ctx)?, input).await
    }
}

impl<T: Serialize + JsonSchema + Send> RecordAnswer for Saved<T> {
    fn revision(&self) -> Option<String> {
        Saved::revision(self)
    }
}

impl RecordAnswer for Removed {
    fn text(&self) -> String {
        let deleted = self.deleted.join(", ");
        if self.unlinked.is_empty() {
            format!("deleted {deleted}")
        } else {
            format!("deleted {deleted}; no longer named by {}", self.unlinked.join(", "))
        }
    }
}

/// A page of a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed<T> {
    /// What they are called, several of them.
    #[serde(skip)]
    what: &'static str,
    items: Vec<T>,
    /// Pass it as `cursor` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl<T> Listed<T> {
    pub(crate) fn new(what: &'static str, page: Page<T>) -> Self {
        Self { what, items: page.items, next_cursor: number_cursor(page.next) }
    }
}

impl<T: Serialize + JsonSchema + Send> RecordAnswer for Listed<T> {
    fn text(&self) -> String {
        sheets(self.what, &self.items, self.next_cursor.as_ref())
    }
}

/// What is kept once: the record, new or as it was.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Once<T> {
    #[serde(flatten)]
    saved: Saved<T>,
    /// It was already there, and nothing was added.
    duplicate: bool,
}

impl<T: Body> Once<T> {
    /// Keeps it where nothing like it is there.
    pub(crate) async fn keep(desk: &ProjectRecords, content: T, iteration: i64) -> Result<Self, ToolError> {
        let (saved, new) = desk.create_once(content, iteration).await?;
        Ok(Self { saved, duplicate: !new })
    }
}

impl<T: Serialize + JsonSchema + Send> RecordAnswer for Once<T> {
    fn text(&self) -> String {
        let note = if self.duplicate { "already there\n" } else { "" };
        format!("{note}{}", sheet(&self.saved))
    }

    fn revision(&self) -> Option<String> {
        self.saved.revision()
    }
}
