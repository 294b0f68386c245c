//! The part of the API that reads single things: objects of the workflow package and what refers to them, records, and schemas.
//!
//! Reads of packages and records are calls of the tools that agents read with, by the token's user as a person.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};
use toolhost_builder::schema;
use toolhost_builder::tools::answer_schema;
use toolhost_contract::{ErrorKind, ToolError};

use super::api_work::by_person;
use super::envelope::{Reply, data};
use super::routes::{Answer, Asked, Kind, LIMIT, Method, NOTHING, Parameter, Route, Takes, run, schema};
use super::token::Right;

/// The kinds of records that are listed, each by the tool `KIND.list`.
const KINDS: &[&str] = &["ticket", "task", "feature", "requirement", "milestone", "iteration", "persona"];

const WORKFLOW: Parameter =
    Parameter::text("workflow", "The workflow that the question is about: its number or its id");
const ASSET: Parameter = Parameter::text("path", "The path of the asset, from `assets/` on");
const ID: Parameter = Parameter::text(
    "id",
    "An id of a workflow, a node, an agent or a variable; `workflow/node` for one step; `agent:ada` for one object",
);
const PATH: Parameter = Parameter::text("path", "The path of a file in the package. Pass this or `id`, not both");
const KIND: Parameter = Parameter {
    name: "kind",
    description: "Which kind of records",
    kind: Kind::Words(KINDS),
    default: Some("\"ticket\""),
};
const CURSOR: Parameter = Parameter::text("cursor", "`nextCursor` of the page before");
const BEFORE: Parameter = Parameter::number("before", "Only versions before this one");

/// The operations of this part.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/projects/{project}/package/workflows/{workflow}",
        name: "readWorkflow",
        summary: "A workflow of the package: its document, its graph and its steps",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Call(|generator| answer_schema("builder.workflow.read", generator)),
        run: run!(workflow),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/package/workflows/{workflow}/steps/{step}",
        name: "readStep",
        summary: "A step of a workflow, by the id of its node: its text and its place in the graph",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Call(|generator| answer_schema("builder.step.read", generator)),
        run: run!(step),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/package/agents/{agent}",
        name: "readAgent",
        summary: "An agent of the package, and the steps that it does",
        right: Some(Right::Read),
        takes: Takes { query: &[WORKFLOW], ..NOTHING },
        answer: Answer::Call(|generator| answer_schema("builder.agent.read", generator)),
        run: run!(agent),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/package/asset",
        name: "readAsset",
        summary: "An asset of the package, and what refers to it",
        right: Some(Right::Read),
        takes: Takes { query: &[ASSET, WORKFLOW], ..NOTHING },
        answer: Answer::Call(|generator| answer_schema("builder.asset.read", generator)),
        run: run!(asset),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/package/references",
        name: "findReferences",
        summary: "What refers to an object or a file of the package, and what it refers to",
        right: Some(Right::Read),
        takes: Takes { query: &[ID, PATH], ..NOTHING },
        answer: Answer::Call(|generator| answer_schema("builder.refs.find", generator)),
        run: run!(references),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/records",
        name: "listRecords",
        summary: "Records of one kind",
        right: Some(Right::Read),
        takes: Takes { query: &[KIND, LIMIT, CURSOR], ..NOTHING },
        answer: Answer::Call(schema!(RecordList)),
        run: run!(records),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/records/{record}",
        name: "getRecord",
        summary: "A record of any kind, by its id, such as TKT-001",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Call(schema!(RecordInfo)),
        run: run!(record),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/records/{record}/history",
        name: "getRecordHistory",
        summary: "What a record was before, the newest version first",
        right: Some(Right::Read),
        takes: Takes { query: &[LIMIT, BEFORE], ..NOTHING },
        answer: Answer::Call(schema!(RecordHistory)),
        run: run!(record_history),
    },
    Route {
        method: Method::Get,
        path: "/schemas",
        name: "listSchemas",
        summary: "The names of the published JSON Schemas: of what workflow packages are made of, and of change sets",
        right: None,
        takes: NOTHING,
        answer: Answer::Data(schema!(Vec<String>)),
        run: run!(schemas),
    },
    Route {
        method: Method::Get,
        path: "/schemas/{schema}",
        name: "getSchema",
        summary: "A published JSON Schema (2020-12)",
        right: None,
        takes: NOTHING,
        answer: Answer::Data(schema!(Map<String, Value>)),
        run: run!(one_schema),
    },
];

/// Who works on a record.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what a tool answers")]
#[schemars(rename_all = "camelCase")]
struct Holder {
    name: String,
    /// Then the record is free again; milliseconds since 1970.
    lease_until_ms: i64,
}

/// A record. The further fields are those of its kind.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what a tool answers")]
#[schemars(rename_all = "camelCase")]
struct RecordInfo {
    /// Such as `TKT-001`.
    id: String,
    /// Grows by one with each change.
    version: i64,
    /// The number of its iteration; null for what belongs to the project as a whole.
    #[schemars(skip_serializing_if = "Option::is_none")]
    iteration: Option<i64>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    holder: Option<Holder>,
    /// Milliseconds since 1970.
    created_at_ms: i64,
    updated_at_ms: i64,
    #[schemars(flatten)]
    content: Map<String, Value>,
}

/// Records of one kind. Requirements stand in `requirements`, the others in `items`.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what a tool answers")]
#[schemars(rename_all = "camelCase")]
struct RecordList {
    #[schemars(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<RecordInfo>>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    requirements: Option<Vec<RecordInfo>>,
    /// For the next page; null on the last.
    #[schemars(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[schemars(flatten)]
    more: BTreeMap<String, Value>,
}

/// What a record was.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what a tool answers")]
struct RecordHistory {
    id: String,
    versions: Vec<RecordVersion>,
}

/// A record as it was once.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what a tool answers")]
#[schemars(rename_all = "camelCase")]
struct RecordVersion {
    version: i64,
    /// Milliseconds since 1970.
    at_ms: i64,
    user_id: i64,
    /// The persona or person.
    by: String,
    call_id: String,
    /// `create`, `update`, `state`, `claim`, `delete`, `restore`, `inherit` or `import`.
    change: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    content: Value,
}

/// A workflow as tools take it: by its number or its id.
fn named(workflow: &str) -> Value {
    workflow.parse::<i64>().map_or_else(|_| workflow.into(), Value::from)
}

/// Arguments with the workflow that the query names.
fn in_workflow(asked: &Asked, mut arguments: Value) -> Value {
    if let Some(workflow) = asked.query.get(WORKFLOW.name) {
        arguments["workflowId"] = named(workflow);
    }
    arguments
}

async fn workflow(asked: Asked) -> Result<Reply, ToolError> {
    let arguments = json!({ "workflowId": named(asked.part("workflow")) });
    Ok(by_person(&asked, "builder.workflow.read", arguments).await)
}

async fn step(asked: Asked) -> Result<Reply, ToolError> {
    let arguments = json!({ "workflowId": named(asked.part("workflow")), "nodeId": asked.part("step") });
    Ok(by_person(&asked, "builder.step.read", arguments).await)
}

async fn agent(asked: Asked) -> Result<Reply, ToolError> {
    let arguments = in_workflow(&asked, json!({ "agentId": asked.part("agent") }));
    Ok(by_person(&asked, "builder.agent.read", arguments).await)
}

async fn asset(asked: Asked) -> Result<Reply, ToolError> {
    let Some(path) = asked.query.get(ASSET.name) else {
        return Err(ToolError::new(ErrorKind::Validation, "`path` names the asset, such as `assets/style.md`"));
    };
    let arguments = in_workflow(&asked, json!({ "path": path }));
    Ok(by_person(&asked, "builder.asset.read", arguments).await)
}

async fn references(asked: Asked) -> Result<Reply, ToolError> {
    let locator = match (asked.query.get("id"), asked.query.get("path")) {
        (Some(id), None) => json!({ "type": "id", "value": id }),
        (None, Some(path)) => json!({ "type": "path", "value": path }),
        _ => return Err(ToolError::new(ErrorKind::Validation, "pass one of `id` and `path`")),
    };
    Ok(by_person(&asked, "builder.refs.find", json!({ "locator": locator })).await)
}

async fn records(asked: Asked) -> Result<Reply, ToolError> {
    let kind = asked.query.get("kind").map_or("ticket", String::as_str);
    let Some(kind) = KINDS.iter().find(|known| **known == kind) else {
        let message = format!("a kind of records is one of {}", KINDS.join(", "));
        return Err(ToolError::new(ErrorKind::Validation, message));
    };
    let mut arguments = json!({ "limit": asked.limit()? });
    if let Some(cursor) = asked.query.get(CURSOR.name) {
        arguments["cursor"] = cursor.as_str().into();
    }
    Ok(by_person(&asked, &format!("{kind}.list"), arguments).await)
}

async fn record(asked: Asked) -> Result<Reply, ToolError> {
    Ok(by_person(&asked, "record.get", json!({ "id": asked.part("record") })).await)
}

async fn record_history(asked: Asked) -> Result<Reply, ToolError> {
    let mut arguments = json!({ "id": asked.part("record"), "limit": asked.limit()? });
    if let Some(before) = asked.number("before")? {
        arguments["before"] = before.into();
    }
    Ok(by_person(&asked, "record.history", arguments).await)
}

async fn schemas(_: Asked) -> Result<Reply, ToolError> {
    data(&schema::ALL.iter().map(|schema| schema.name).collect::<Vec<_>>())
}

async fn one_schema(asked: Asked) -> Result<Reply, ToolError> {
    let name = asked.part("schema");
    let found = schema::ALL.iter().find(|schema| schema.name == name);
    let missing = || {
        let names: Vec<&str> = schema::ALL.iter().map(|schema| schema.name).collect();
        ToolError::new(ErrorKind::NotFound, "there is no such schema").hint(format!("there is {}", names.join(", ")))
    };
    data(&found.ok_or_else(missing)?.value())
}
