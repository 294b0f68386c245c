//! Tools made to be watched.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::{WriteGuard, WsPath};
use toolhost_contract::{Alias, AnyTool, Callers, Ctx, ErrorKind, Example, Facts, Preview, Tool, ToolError};
use toolhost_store::{Filter, Reader};
use toolhost_testkit::HouseBuilder;

/// What the probes share with the test.
#[derive(Clone, Default)]
pub(crate) struct Watched {
    /// How often a probe ran.
    pub(crate) runs: Arc<AtomicU64>,
    /// Where a probe looks for its own row.
    pub(crate) reader: Arc<Mutex<Option<Reader>>>,
    /// Told when a waiting probe runs.
    pub(crate) waiting: Arc<tokio::sync::Notify>,
}

impl Watched {
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    fn ran(&self) {
        self.runs.fetch_add(1, Ordering::SeqCst);
    }
}

/// A house with all probes.
pub(crate) fn house() -> (HouseBuilder, Watched) {
    let watched = Watched::default();
    (HouseBuilder::new(tools(&watched)), watched)
}

pub(crate) fn tools(watched: &Watched) -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(Echo(watched.clone())),
        Box::new(Put(watched.clone())),
        Box::new(Panics(watched.clone())),
        Box::new(Waits(watched.clone())),
        Box::new(Stuck(watched.clone())),
        Box::new(Grows),
        Box::new(Sends(watched.clone())),
        Box::new(Fails),
        Box::new(Looks(watched.clone())),
        Box::new(Applies(watched.clone())),
    ]
}

/// Says its text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    /// The text.
    text: String,
    /// In capitals.
    #[serde(default)]
    loud: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Said {
    text: String,
}

/// Takes nothing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

pub(crate) struct Echo(Watched);

impl Tool for Echo {
    type Input = Text;
    type Output = Said;
    const NAME: &'static str = "probe.echo";
    const TITLE: &'static str = "Echo";
    const FACTS: Facts = toolhost_testkit::facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![
            Alias::new("echo_text"),
            Alias::new("echo_loud").preset(json!({ "loud": true })),
            Alias::new("echo_with_limit").calls_per_session(10),
        ]
    }

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, input: Text) -> Result<Said, ToolError> {
        self.0.ran();
        Ok(Said { text: if input.loud { input.text.to_uppercase() } else { input.text } })
    }
}

/// Writes the text to `made.txt`.
pub(crate) struct Put(Watched);

impl Tool for Put {
    type Input = Text;
    type Output = Said;
    const NAME: &'static str = "probe.put";
    const TITLE: &'static str = "Put";
    const FACTS: Facts = toolhost_testkit::facts::WRITES;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn preview(&self, ctx: &Ctx<'_>, _: Text) -> Result<Option<Preview>, ToolError> {
        let span = toolhost_contract::workspace::ReadSpan { start: 0, bytes_max: 100 };
        let there = ctx.workspace.read(&WsPath::parse("made.txt")?, span).await.map(|content| content.bytes);
        let rests_on = json!(there.ok());
        Ok(Some(Preview { summary: "put".to_owned(), detail: String::new(), left_out: 0, rests_on }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Text) -> Result<Said, ToolError> {
        self.0.ran();
        let path = WsPath::parse("made.txt")?;
        ctx.workspace.write(&path, input.text.clone().into_bytes(), WriteGuard::default()).await?;
        Ok(Said { text: input.text })
    }
}

/// Panics with words of its own.
pub(crate) struct Panics(Watched);

impl Tool for Panics {
    type Input = Nothing;
    type Output = Said;
    const NAME: &'static str = "probe.panic";
    const TITLE: &'static str = "Panic";
    const FACTS: Facts = toolhost_testkit::facts::WRITES;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, _: Nothing) -> Result<Said, ToolError> {
        self.0.ran();
        std::panic::resume_unwind(Box::new("words of the panic: private words"))
    }
}

/// Runs until it is cancelled, and fails with that.
pub(crate) struct Waits(Watched);

impl Tool for Waits {
    type Input = Nothing;
    type Output = Said;
    const NAME: &'static str = "probe.wait";
    const TITLE: &'static str = "Wait";
    const FACTS: Facts = toolhost_testkit::facts::READS;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, ctx: &Ctx<'_>, _: Nothing) -> Result<Said, ToolError> {
        self.0.ran();
        self.0.waiting.notify_one();
        ctx.cancel.cancelled().await;
        Err(ToolError::new(ErrorKind::Cancelled, "saw the cancellation"))
    }
}

/// Never ends and never looks at its cancel token.
pub(crate) struct Stuck(Watched);

impl Tool for Stuck {
    type Input = Nothing;
    type Output = Said;
    const NAME: &'static str = "probe.stuck";
    const TITLE: &'static str = "Stuck";
    const FACTS: Facts = toolhost_testkit::facts::WRITES;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, _: Nothing) -> Result<Said, ToolError> {
        self.0.ran();
        self.0.waiting.notify_one();
        std::future::pending().await
    }
}

/// Answers with so many bytes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Size {
    /// Bytes of text.
    text: usize,
    /// Bytes of data.
    data: usize,
}

pub(crate) struct Grows;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Grown {
    data: String,
    #[serde(skip)]
    text: String,
}

impl Tool for Grows {
    type Input = Size;
    type Output = Grown;
    const NAME: &'static str = "probe.grow";
    const TITLE: &'static str = "Grow";
    const FACTS: Facts = toolhost_testkit::facts::READS;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Grown) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, input: Size) -> Result<Grown, ToolError> {
        Ok(Grown { data: "d".repeat(input.data), text: "t".repeat(input.text) })
    }
}

/// Leaves the machine, or would.
pub(crate) struct Sends(Watched);

impl Tool for Sends {
    type Input = Text;
    type Output = Said;
    const NAME: &'static str = "probe.send";
    const TITLE: &'static str = "Send";
    const FACTS: Facts = toolhost_testkit::facts::REACHES;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, input: Text) -> Result<Said, ToolError> {
        self.0.ran();
        Ok(Said { text: input.text })
    }
}

/// Fails with its text in the message, the hint and the details.
pub(crate) struct Fails;

impl Tool for Fails {
    type Input = Text;
    type Output = Said;
    const NAME: &'static str = "probe.fail";
    const TITLE: &'static str = "Fail";
    const FACTS: Facts = toolhost_testkit::facts::READS;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, input: Text) -> Result<Said, ToolError> {
        let text = input.text;
        Err(ToolError::new(ErrorKind::Conflict, format!("message {text}"))
            .hint(format!("hint {text}"))
            .details(json!({ "text": text })))
    }
}

/// Looks for its own row while it runs: the answer is the events that are committed.
pub(crate) struct Looks(Watched);

impl Tool for Looks {
    type Input = Nothing;
    type Output = Said;
    const NAME: &'static str = "probe.look";
    const TITLE: &'static str = "Look";
    const FACTS: Facts = toolhost_testkit::facts::WRITES;

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, ctx: &Ctx<'_>, _: Nothing) -> Result<Said, ToolError> {
        let reader = self.0.reader.lock().unwrap().clone().unwrap();
        let filter = Filter { call: Some(ctx.call.id.to_string()), limit: 10, ..Filter::default() };
        let rows = reader.audit(ctx.call.scope.project_id, &filter).await.map_err(ToolError::internal)?;
        Ok(Said { text: rows.iter().map(|row| row.event.as_str()).collect::<Vec<_>>().join(",") })
    }
}

/// For people only.
pub(crate) struct Applies(Watched);

impl Tool for Applies {
    type Input = Nothing;
    type Output = Said;
    const NAME: &'static str = "probe.apply";
    const TITLE: &'static str = "Apply";
    const FACTS: Facts = Facts { callers: Callers::People, ..toolhost_testkit::facts::WRITES };

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Said) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, _: Nothing) -> Result<Said, ToolError> {
        self.0.ran();
        Ok(Said { text: "applied".to_owned() })
    }
}
