//! What a tool is: [`Tool`], typed, for people to write; [`AnyTool`], erased, for the host to hold.

use std::borrow::Cow;
use std::future::Future;

use crate::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ctx::Ctx;
use crate::error::{ErrorKind, ToolError};
use crate::example::Example;
use crate::facts::Facts;
use crate::other_names::OtherName;
use crate::outcome::{Attachment, Success, WorkflowRef};
use crate::people::Preview;
use crate::schema::{description_of, input_schema_of, schema_of, without_description};

/// A tool, typed.
///
/// The doc comment of `Input` is the description that models read, those of its fields describe the arguments. Its schema must
/// be closed: by `deny_unknown_fields`, or by `additionalProperties` where parts are flattened into it.
pub trait Tool: Send + Sync + 'static {
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize + JsonSchema + Send;

    /// Canonical: `family.verb` or `family.object.verb`.
    const NAME: &'static str;
    /// For people, in a list.
    const TITLE: &'static str;
    /// What the host must know to make a call safe.
    const FACTS: Facts;
    /// Part of what an approval is bound to: raise it when the same arguments come to mean something else.
    const VERSION: u32 = 1;

    /// Names of other systems for this tool.
    fn aliases(&self) -> Vec<Alias> {
        Vec::new()
    }

    /// What models call its arguments.
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[];
    /// What other hosts call such a tool. A call by one of them is a call of this tool, and the answer says so.
    const CALLED_ELSEWHERE: &'static [&'static str] = &[];

    /// Shown to people and models, and run as tests.
    fn examples(&self) -> Vec<Example>;

    /// The answer as text, complete on its own: some clients show a model nothing else.
    fn render(&self, output: &Self::Output) -> String;

    /// What the answer has beside its text. The text says what they are.
    fn attachments(&self, _: &Self::Output) -> Vec<Attachment> {
        Vec::new()
    }

    /// SHA-256 of the canonical JSON (RFC 8785) of the one object that the answer is about.
    fn revision(&self, _: &Self::Output) -> Option<String> {
        None
    }

    /// The workflow that the answer is about.
    fn workflow(&self, _: &Self::Output) -> Option<WorkflowRef> {
        None
    }

    /// What the call would do, for the person who has to allow it; it changes nothing. `None`: what its arguments say.
    fn preview(&self, _: &Ctx<'_>, _: Self::Input) -> impl Future<Output = Result<Option<Preview>, ToolError>> + Send {
        std::future::ready(Ok(None))
    }

    fn run(&self, ctx: &Ctx<'_>, input: Self::Input) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// Another name for a tool, perhaps with arguments set.
#[derive(Debug, Clone, PartialEq)]
pub struct Alias {
    pub name: &'static str,
    /// Arguments that hold unless the caller gives others.
    pub preset: Value,
    /// How often a session may call by this name.
    pub calls_per_session: Option<u32>,
}

/// Everything there is to know about a tool without running it.
#[derive(Debug, Clone)]
pub struct ToolInfo {
    pub name: Cow<'static, str>,
    pub title: Cow<'static, str>,
    pub description: String,
    pub facts: Facts,
    pub version: u32,
    pub aliases: Vec<Alias>,
    pub other_names: &'static [&'static [OtherName]],
    pub called_elsewhere: &'static [&'static str],
    pub input_schema: Value,
    pub output_schema: Packed,
    pub examples: Vec<Example>,
}

/// A JSON value as text: for what is looked at now and then, and would take ten times the room as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed(Box<str>);

impl Packed {
    pub fn new(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).expect("it was written from a value")
    }
}

/// A tool, erased. Every [`Tool`] is one; a tool from elsewhere may implement it by hand.
pub trait AnyTool: Send + Sync {
    fn info(&self) -> ToolInfo;

    /// As [`Tool::preview`], with arguments that have passed the published schema.
    fn preview<'a>(&'a self, _: &'a Ctx<'a>, _: Value) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Runs with arguments that have passed the published schema.
    fn run<'a>(&'a self, ctx: &'a Ctx<'a>, arguments: Value) -> BoxFuture<'a, Result<Success, ToolError>>;
}

impl<T: Tool> AnyTool for T {
    fn info(&self) -> ToolInfo {
        let input_schema = input_schema_of::<T::Input>();
        ToolInfo {
            name: T::NAME.into(),
            title: T::TITLE.into(),
            description: description_of(&input_schema),
            facts: T::FACTS,
            version: T::VERSION,
            aliases: self.aliases(),
            other_names: T::OTHER_NAMES,
            called_elsewhere: T::CALLED_ELSEWHERE,
            input_schema: without_description(input_schema),
            output_schema: Packed::new(&without_description(schema_of::<T::Output>())),
            examples: self.examples(),
        }
    }

    fn preview<'a>(&'a self, ctx: &'a Ctx<'a>, arguments: Value) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(async move { Tool::preview(self, ctx, input_of::<T>(arguments)?).await })
    }

    fn run<'a>(&'a self, ctx: &'a Ctx<'a>, arguments: Value) -> BoxFuture<'a, Result<Success, ToolError>> {
        Box::pin(async move {
            let input = input_of::<T>(arguments)?;
            let output = Tool::run(self, ctx, input).await?;
            let (text, revision, workflow) = (self.render(&output), self.revision(&output), self.workflow(&output));
            let attachments = self.attachments(&output);
            let data = serde_json::to_value(output).map_err(ToolError::internal)?;
            Ok(Success { data, text, attachments, revision, workflow })
        })
    }
}

/// The largest number up to which every whole one has a float of its own.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

fn input_of<T: Tool>(mut arguments: Value) -> Result<T::Input, ToolError> {
    // JSON Schema takes 1.0 for an integer, and some clients write all numbers so.
    for value in arguments.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        let Some(whole) = value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0) else { continue };
        if whole.abs() <= WHOLE_MAX {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and in the range")]
            let number = whole as i64;
            *value = number.into();
        }
    }
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::new(ErrorKind::Validation, format!("the arguments do not fit: {error}")))
}

impl Alias {
    pub fn new(name: &'static str) -> Self {
        Self { name, preset: Value::Object(serde_json::Map::new()), calls_per_session: None }
    }

    pub fn preset(mut self, preset: Value) -> Self {
        self.preset = preset;
        self
    }

    pub fn calls_per_session(mut self, calls: u32) -> Self {
        self.calls_per_session = Some(calls);
        self
    }
}
