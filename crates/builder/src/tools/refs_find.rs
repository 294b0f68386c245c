//! `builder.refs.find`

use crate::packages::{FoundRefs, ProjectPackage};
use crate::refs::{Locator, Object};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError, did_you_mean};

use super::given::PACKAGE;
use super::session;
use super::tool::{PackageAnswer, PackageTool};

pub(crate) struct RefsFind;

/// Finds what refers to a workflow, step, agent, asset or variable, and what it refers to: each reference with its file,
/// its place and its kind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What to look for.
    locator: Where,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Where {
    /// Whether `value` is an id or a path.
    #[serde(rename = "type")]
    kind: WhereKind,
    /// An id (of a workflow, a node, an agent or a variable; `workflow/node` for one step; `agent:ada` for one object), or
    /// the path of a file in the package.
    #[schemars(length(min = 1, max = 1000))]
    value: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WhereKind {
    Id,
    Path,
}

/// The two directions.
const NAMES: [&str; 2] = ["inbound", "outbound"];

fn names(objects: &[Object]) -> String {
    objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl PackageAnswer for FoundRefs {
    fn text(&self) -> String {
        let mut text = format!("{} of {}\n", NAMES.join(" and "), names(&self.refs.objects));
        for (name, refs) in NAMES.into_iter().zip([&self.refs.inbound, &self.refs.outbound]) {
            text.push_str(&format!("{name}: {}\n", refs.len()));
            for one in refs {
                let line = one.line.map(|line| format!(":{line}")).unwrap_or_default();
                let missing = if one.resolved { "" } else { " (is not there)" };
                let kind = serde_json::to_value(one.kind).ok().and_then(|kind| Some(kind.as_str()?.to_owned()));
                let (from, to, kind) = (&one.from, &one.to, kind.unwrap_or_default());
                text.push_str(&format!("  {from} -> {to} ({kind}) in {}{line}{}{missing}\n", one.file, one.pointer));
            }
        }
        if self.truncated {
            text.push_str("there are more: name one object to see those of it alone\n");
        }
        text
    }
}

impl PackageTool for RefsFind {
    type Input = Input;
    type Output = FoundRefs;
    const NAME: &'static str = "builder.refs.find";
    const TITLE: &'static str = "Find references";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            PACKAGE.example(
                "who uses an agent",
                json!({"locator": {"type": "id", "value": "ada"}}),
                Expect::Data(&[("/objects/0", "\"agent:ada\""), ("/inbound/0/from", "\"step:main/begin\"")]),
            ),
            PACKAGE.example(
                "who mentions an asset",
                json!({"locator": {"type": "path", "value": "assets/guide.md"}}),
                Expect::Data(&[("/inbound/0/kind", "\"asset\""), ("/inbound/0/file", "\"steps/begin.md\"")]),
            ),
            PACKAGE.example(
                "nothing of that name",
                json!({"locator": {"type": "id", "value": "nobody"}}),
                Expect::Fails(ErrorKind::NotFound),
            ),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<FoundRefs, ToolError> {
        let value = input.locator.value;
        let locator = match input.locator.kind {
            WhereKind::Path => Locator::Path(value),
            WhereKind::Id => match Object::parse(&value) {
                Some(object) if value.contains(':') => Locator::Object(object),
                _ => Locator::Id(value),
            },
        };
        let named = match &locator {
            Locator::Id(name) | Locator::Path(name) => name.clone(),
            Locator::Object(_) => String::new(),
        };
        let found = package.find_refs(&locator, session(ctx)).await?;
        if found.refs.objects.is_empty() && found.refs.inbound.is_empty() {
            let near = did_you_mean(&package.near_names(&named, session(ctx)).await?);
            let message = format!("there is nothing with the {locator} in the package{near}");
            return Err(ToolError::new(ErrorKind::NotFound, message)
                .hint("an id is that of a workflow, a node, an agent or a variable; a path is that of a file"));
        }
        Ok(found)
    }
}
