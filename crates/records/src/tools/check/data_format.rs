//! `check.data_format`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::sheet::listed;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Component, Design, Feature, Milestone, ProjectRecords, Requirement, Task};

/// Findings of one answer.
const FINDINGS_MAX: usize = 200;

pub(crate) struct DataFormat;

/// Checks the data of an iteration against its JSON Schema: titles that are empty, requirements without criteria,
/// features without a requirement, a design without components, a plan without tasks. Each finding says where.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which data.
    data_type: DataType,
    #[serde(flatten)]
    within: InIteration,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DataType {
    Requirements,
    Features,
    Design,
    Plan,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    valid: bool,
    /// Records looked at.
    records: usize,
    findings: Vec<Finding>,
    /// Findings beyond those listed.
    left_out: usize,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        if self.valid {
            return format!("nothing is wrong with {} records", self.records);
        }
        let more = if self.left_out > 0 { format!("\n\nand {} more", self.left_out) } else { String::new() };
        format!("{}{more}", listed("findings", &self.findings))
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Finding {
    /// The record, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// A JSON pointer into the data.
    path: String,
    /// What was expected.
    expected: String,
}

impl RecordTool for DataFormat {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "check.data_format";
    const TITLE: &'static str = "Check the format of data";
    const FACTS: Facts = Facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("check_data_format")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a requirement without criteria",
                arguments: json!({"dataType": "requirements"}),
                files: &[],
                before: &[(
                    "requirement.create",
                    r#"{"title":"Sign in","description":"","priority":"high","category":"functional","acceptanceCriteria":[]}"#,
                )],
                expect: Expect::Data(&[
                    ("/valid", "false"),
                    ("/findings/0/id", "\"REQ-001\""),
                    ("/findings/1/path", "\"/requirements/0/acceptanceCriteria\""),
                ]),
            },
            Example {
                says: "a plan without tasks",
                arguments: json!({"dataType": "plan"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/findings/0/path", "\"/tasks\"")]),
            },
            Example {
                says: "data that is not there",
                arguments: json!({"dataType": "ideas"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Output, ToolError> {
        let of = Some(input.within.number(desk).await?);
        let data = match input.data_type {
            DataType::Requirements => json!({ "requirements": desk.all::<Requirement>(of).await? }),
            DataType::Features => json!({ "features": desk.all::<Feature>(of).await? }),
            DataType::Design => json!({
                "design": desk.all::<Design>(of).await?,
                "components": desk.all::<Component>(of).await?,
            }),
            DataType::Plan => json!({
                "milestones": desk.all::<Milestone>(of).await?,
                "tasks": desk.all::<Task>(of).await?,
            }),
        };
        let schema = schema(input.data_type);
        let checked = tokio::task::spawn_blocking(move || examine(&schema, &data)).await;
        checked.map_err(ToolError::internal)?
    }
}

fn examine(schema: &Value, data: &Value) -> Result<Output, ToolError> {
    let validator = jsonschema::draft202012::new(schema).map_err(|error| ToolError::internal(error.to_string()))?;
    let mut findings = Vec::new();
    let mut total = 0;
    for error in validator.iter_errors(data) {
        total += 1;
        if findings.len() < FINDINGS_MAX {
            let path = error.instance_path().to_string();
            findings.push(Finding { id: id_at(data, &path), path, expected: expected(&error) });
        }
    }
    let records = data.as_object().map_or(0, |lists| lists.values().filter_map(Value::as_array).map(Vec::len).sum());
    Ok(Output { valid: total == 0, records, left_out: total - findings.len(), findings })
}

/// What would have been right, by the word of the schema that is broken.
fn expected(error: &jsonschema::ValidationError<'_>) -> String {
    match error.schema_path().to_string().rsplit('/').next() {
        Some("pattern") => "a text that says something".to_owned(),
        Some("minItems") => "at least one".to_owned(),
        _ => error.to_string(),
    }
}

/// The id of the record that a path leads into.
fn id_at(data: &Value, path: &str) -> Option<String> {
    let record: String = path.split('/').take(3).collect::<Vec<_>>().join("/");
    data.pointer(&record)?.get("id")?.as_str().map(str::to_owned)
}

/// What complete data looks like. The types hold when a record is written; this is about what it should say.
fn schema(of: DataType) -> Value {
    let text = json!({ "type": "string", "pattern": "\\S" });
    let some = json!({ "type": "array", "minItems": 1, "items": text });
    let list = |fields: Value| {
        let required: Vec<&String> = fields.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
        json!({ "type": "array", "items": { "type": "object", "properties": fields, "required": required } })
    };
    let some_of = |fields: Value| {
        let mut list = list(fields);
        list["minItems"] = json!(1);
        list
    };
    let lists = match of {
        DataType::Requirements => {
            json!({ "requirements": some_of(json!({ "title": text, "description": text, "acceptanceCriteria": some })) })
        }
        DataType::Features => {
            json!({ "features": some_of(json!({
                "name": text, "description": text, "requirementIds": some, "completionCriteria": some,
            })) })
        }
        DataType::Design => json!({
            "components": some_of(json!({ "name": text, "responsibilities": some, "technology": text })),
        }),
        DataType::Plan => json!({
            "milestones": list(json!({ "name": text, "features": some })),
            "tasks": some_of(json!({
                "title": text, "description": text, "featureId": text, "componentId": text, "acceptanceCriteria": some,
            })),
        }),
    };
    json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": lists })
}
