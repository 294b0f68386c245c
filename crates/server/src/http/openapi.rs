//! The OpenAPI 3.1 document: made of the table of routes and the schemas of the types that they take and answer.

use std::collections::BTreeMap;

use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{ReplaceBoolSchemas, RestrictFormats};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use toolhost_contract::{Meta, OutcomeError};

use super::api_work::ZIP;
use super::envelope::{JSON, PendingData};
use super::events::EVENTS;
use super::routes::{Answer, Input, Kind, Method, PREFIX, PROJECT, Parameter, Route, SchemaOf};

/// A UUID as RFC 9562 writes it.
const UUID: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
/// Where the schemas of types stand.
const SCHEMAS: &str = "/components/schemas";

/// What operations are about, in the order in which pages show them.
const TAGS: [(&str, &str); 13] = [
    ("projects", "The projects that a token opens"),
    ("tools", "The tools of a profile, and calls of them"),
    ("asks", "Approvals, reviews and questions, and the answers of people"),
    ("audit", "What has happened, and what happens"),
    ("sessions", "Sessions of models that run on the server"),
    ("package", "The workflow package: as a whole, and its objects"),
    ("changes", "Change sets of the package, and its history"),
    ("records", "What agents and people keep: tickets, tasks, requirements"),
    ("members", "Who may do what"),
    ("quota", "How many calls a project may make"),
    ("webhooks", "Where the owners of a project want its asks to be told"),
    ("tokens", "What programs prove with who they are"),
    ("documents", "What describes the API and the files of packages"),
];

/// Ways in which a request fails: the status, the name in the document, and what it says.
const FAILURES: [(u16, &str, &str); 13] = [
    (400, "Invalid", "The request is not as this document says, or makes no sense"),
    (401, "NoToken", "The request has no token that is valid"),
    (403, "Forbidden", "The token has no right to this, or policy, a person, a role or the fence says no"),
    (404, "NotFound", "There is no such thing for this token"),
    (408, "BodyTooSlow", "The body took too long"),
    (409, "Conflict", "It does not fit what is there now, or whether it has happened is not known"),
    (413, "BodyTooLong", "The body is longer than the server takes"),
    (415, "BodyOfAnotherType", "The body is of another content type"),
    (422, "Failed", "The machine that the tools work on could not do it, or it was cancelled"),
    (429, "TooMany", "A limit: wait as long as `Retry-After` says"),
    (500, "Internal", "A mistake of the server: its log says more"),
    (503, "Unavailable", "The token cannot be checked now"),
    (504, "TooLong", "It took longer than it may"),
];
/// Those of each operation.
const ALWAYS: [u16; 9] = [400, 401, 403, 404, 409, 422, 429, 500, 503];
/// Those of an operation that is a call.
const OF_CALLS: [u16; 1] = [504];
/// Those of an operation with a body.
const OF_BODIES: [u16; 3] = [408, 413, 415];

/// The document of these operations.
pub(crate) fn document<'r>(version: &str, routes: impl Iterator<Item = &'r Route>) -> Value {
    let mut schemas = Schemas::new();
    let mut paths = BTreeMap::new();
    let mut order = Vec::new();
    for route in routes {
        let path = format!("{PREFIX}{}", route.path);
        if !paths.contains_key(&path) {
            order.push(path.clone());
        }
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[method(route.method)] = operation(route, &mut schemas);
    }
    let paths: Map<String, Value> =
        order.into_iter().filter_map(|path| paths.remove(&path).map(|item| (path, item))).collect();
    let responses: Map<String, Value> =
        FAILURES.iter().map(|(status, name, about)| ((*name).to_owned(), failure(*status, about))).collect();
    let problem = problem(&mut schemas);
    let mut schemas = schemas.taken();
    schemas.insert("Problem".to_owned(), problem);
    schemas.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Toolhost",
            "version": version,
            "description": "Tools for agents behind one gate. Every answer in JSON is an envelope: `ok`, `data`, `error`, `meta`.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The server that this document comes from" }],
        "security": [{ "token": [] }],
        "tags": TAGS.map(|(name, description)| json!({ "name": name, "description": description })),
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http", "scheme": "bearer",
                    "description": "A token of `toolhost token create`, or an access token of the server's identity provider",
                },
            },
            "responses": responses,
            "schemas": schemas,
        },
    })
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Delete => "delete",
    }
}

/// What an operation is about: the first part of its path behind the project's.
fn tag(path: &str) -> &'static str {
    let mut parts = path.split('/').skip(1);
    let first = parts.next().unwrap_or_default();
    match (first, parts.nth(1)) {
        ("projects", None) => "projects",
        ("projects", Some("tools" | "calls")) => "tools",
        ("projects", Some("audit" | "events")) => "audit",
        ("projects", Some("package" | "workflows")) => "package",
        ("projects", Some("changes" | "history")) => "changes",
        ("projects", Some(other)) => TAGS.into_iter().find(|(name, _)| *name == other).map_or("", |(name, _)| name),
        _ => "documents",
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let of_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).map(|name| {
        let about = if name == PROJECT { "The key of the project, as `GET /api/v1/projects` tells it" } else { "" };
        let mut parameter = json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
        if !about.is_empty() {
            parameter["description"] = about.into();
        }
        parameter
    });
    let of_query = route.takes.query.iter().map(|query| parameter(query, "query"));
    let of_headers = route.takes.headers.iter().map(|header| parameter(header, "header"));
    let mut operation = json!({
        "operationId": route.name,
        "tags": [tag(route.path)],
        "summary": route.summary,
        "parameters": of_path.chain(of_query).chain(of_headers).collect::<Vec<_>>(),
        "responses": responses(route, schemas),
    });
    if let Some(input) = route.takes.body {
        operation["requestBody"] = json!({ "required": true, "content": body(input, schemas) });
    }
    if let Some(right) = route.right {
        operation["description"] = format!("Needs a token with the right to {}.", right.as_str()).into();
        operation["x-right"] = right.as_str().into();
    }
    operation
}

fn parameter(parameter: &Parameter, place: &str) -> Value {
    let mut schema = match parameter.kind {
        Kind::Text => json!({ "type": "string" }),
        // Not the format: a generated Python client puts a value of its own type into the header, and fails.
        Kind::Uuid => json!({ "type": "string", "pattern": UUID }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Number(from, i64::MAX) => json!({ "type": "integer", "format": "int64", "minimum": from }),
        Kind::Number(from, to) => json!({ "type": "integer", "minimum": from, "maximum": to }),
        Kind::Words(words) => json!({ "type": "string", "enum": words }),
    };
    let default = parameter.default.and_then(|default| serde_json::from_str::<Value>(default).ok());
    if let Some(default) = default {
        schema["default"] = default;
    }
    json!({ "name": parameter.name, "in": place, "description": parameter.description, "schema": schema })
}

fn body(input: Input, schemas: &mut Schemas) -> Value {
    match input {
        Input::Json(schema) => json!({ JSON: { "schema": schemas.of_request(schema) } }),
        Input::Zip => json!({ ZIP: { "schema": { "type": "string", "format": "binary" } } }),
    }
}

/// The answers of an operation by status.
fn responses(route: &Route, schemas: &mut Schemas) -> Value {
    let mut responses = match route.answer {
        Answer::Data(schema) => {
            let data = schemas.of_answer(schema);
            json!({ "200": in_json("The answer", &envelope(&data, &json!({ "type": "object" }))) })
        }
        Answer::Call(schema) => {
            let (data, waits) = (schemas.of_answer(schema), schemas.of_type::<PendingData>());
            json!({
                "200": in_json("The call has run", &outcome(&data, schemas)),
                "202": in_json("The call waits for a person, and has not run", &outcome(&waits, schemas)),
            })
        }
        Answer::Package => json!({ "200": {
            "description": "The package",
            "headers": { "ETag": {
                "description": "The revision of the package, in double quotes", "required": true, "schema": { "type": "string" },
            } },
            "content": { ZIP: { "schema": { "type": "string", "format": "binary" } } },
        } }),
        Answer::Events(schema) => {
            let data = schemas.of_answer(schema);
            json!({ "200": { "description": "The events, for as long as the connection lasts", "content": { EVENTS: { "schema": events(&data) } } } })
        }
        Answer::Document => json!({ "200": in_json("The document", &json!({ "type": "object" })) }),
    };
    let of_call = matches!(route.answer, Answer::Call(_));
    let of_kind = OF_CALLS.iter().filter(|_| of_call).chain(OF_BODIES.iter().filter(|_| route.takes.body.is_some()));
    let mut failures: Vec<u16> = ALWAYS.iter().chain(of_kind).copied().collect();
    failures.sort_unstable();
    for status in failures {
        if let Some((_, name, _)) = FAILURES.iter().find(|(known, ..)| *known == status) {
            responses[status.to_string()] = json!({ "$ref": format!("#/components/responses/{name}") });
        }
    }
    responses
}

fn in_json(about: &str, schema: &Value) -> Value {
    json!({ "description": about, "content": { JSON: { "schema": schema } } })
}

/// A stream of events as text. JSON Schema has words for what a text holds, and OpenAPI 3.1 has none for events.
fn events(data: &Value) -> Value {
    json!({
        "type": "string",
        "contentMediaType": EVENTS,
        "contentSchema": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "event", "data"],
                "properties": {
                    "id": { "type": "string", "description": "The number to go on after" },
                    "event": { "type": "string" },
                    "data": { "type": "string", "contentMediaType": JSON, "contentSchema": data },
                },
            },
        },
    })
}

fn failure(status: u16, about: &str) -> Value {
    let mut response = in_json(about, &json!({ "$ref": "#/components/schemas/Problem" }));
    let text = json!({ "type": "string" });
    match status {
        401 => {
            response["headers"] = json!({ "WWW-Authenticate": { "description": "RFC 6750, RFC 9728", "required": true, "schema": text } });
        }
        429 | 503 => {
            response["headers"] =
                json!({ "Retry-After": { "description": "Seconds", "required": true, "schema": text } });
        }
        _ => {}
    }
    response
}

fn envelope(data: &Value, meta: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["ok", "data", "error", "meta"],
        "properties": {
            "ok": { "type": "boolean", "const": true }, "data": data, "error": { "type": "null" }, "meta": meta,
        },
    })
}

/// The outcome of a call that has not failed.
fn outcome(data: &Value, schemas: &mut Schemas) -> Value {
    let mut envelope = envelope(data, &schemas.of_type::<Meta>());
    let fields = &mut envelope["properties"];
    fields["text"] = json!({ "type": "string", "description": "The same for a reader, complete on its own" });
    fields["attachments"] = schemas.of_type::<Vec<toolhost_contract::Attachment>>();
    envelope["required"] = json!(["ok", "data", "error", "meta", "text"]);
    envelope
}

/// The envelope of what has failed. Of a call, `meta` is that of its outcome.
fn problem(schemas: &mut Schemas) -> Value {
    json!({
        "type": "object",
        "description": "What is wrong, in `error`. Of a call, `meta` and `text` are those of its outcome.",
        "required": ["ok", "data", "error", "meta"],
        "properties": {
            "ok": { "type": "boolean", "const": false },
            "data": { "type": "null" },
            "error": schemas.of_type::<OutcomeError>(),
            "meta": { "type": "object" },
            "text": { "type": "string" },
        },
    })
}

/// The schemas of types. What is taken may leave out what has a default, and what is answered has all of it, so that a type is
/// described as one or the other.
struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let generator = |contract: Contract| {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = SCHEMAS.into();
                settings.meta_schema = None;
                settings.contract = contract;
            });
            settings.into_generator()
        };
        Self { requests: generator(Contract::Deserialize), answers: generator(Contract::Serialize) }
    }

    fn of_request(&mut self, schema: SchemaOf) -> Value {
        told(schema(&mut self.requests))
    }

    fn of_answer(&mut self, schema: SchemaOf) -> Value {
        told(schema(&mut self.answers))
    }

    fn of_type<T: JsonSchema>(&mut self) -> Value {
        told(self.answers.subschema_for::<T>())
    }

    /// All that were named.
    fn taken(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(false);
        all.extend(self.answers.take_definitions(false));
        all.into_iter().map(|(name, schema)| (name, Schema::try_from(schema).map_or(json!({}), told))).collect()
    }
}

/// A schema as generators of clients read it best.
fn told(mut schema: Schema) -> Value {
    use schemars::transform::{RecursiveTransform, Transform};
    let mut formats = RestrictFormats::default();
    formats.infer_from_meta_schema = false;
    formats.allowed_formats = ["int32", "int64", "double"].map(Into::into).into();
    formats.transform(&mut schema);
    let mut booleans = ReplaceBoolSchemas::default();
    booleans.skip_additional_properties = true;
    booleans.transform(&mut schema);
    RecursiveTransform(words).transform(&mut schema);
    RecursiveTransform(paragraphs).transform(&mut schema);
    schema.to_value()
}

/// An enum whose words have descriptions is one schema for each word: generators make types of them that nobody can use.
fn words(schema: &mut Schema) {
    let Some(fields) = schema.as_object_mut() else { return };
    let Some(Value::Array(choices)) = fields.get("oneOf") else { return };
    let word = |choice: &Value| {
        let fields = choice.as_object()?;
        let mut rest = fields.keys().filter(|name| !matches!(name.as_str(), "type" | "const" | "enum" | "description"));
        if rest.next().is_some() {
            return None;
        }
        let about = fields.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let words = match (fields.get("const"), fields.get("enum")) {
            (Some(word), _) => vec![word.clone()],
            (None, Some(Value::Array(words))) => words.clone(),
            _ => return None,
        };
        words.iter().all(Value::is_string).then_some((words, about))
    };
    let Some(choices) = choices.iter().map(word).collect::<Option<Vec<_>>>() else { return };
    let mut about = fields.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (words, said) in choices.iter().filter(|(_, said)| !said.is_empty()) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        about.push_str(&format!("\n\n`{}`: {said}", words.join("`, `")));
    }
    fields.remove("oneOf");
    fields.insert("type".to_owned(), "string".into());
    fields.insert("enum".to_owned(), choices.into_iter().flat_map(|(words, _)| words).collect());
    fields.insert("description".to_owned(), about.trim_start().into());
}

/// Doc comments are broken into lines for who reads the source; who reads the document gets whole paragraphs.
fn paragraphs(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let whole: Vec<String> = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *text = whole.join("\n\n");
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeSet;

    use super::super::api::routes;
    use super::*;

    /// What is only in the table, and what is only in the document: method, path and name of each operation.
    fn differences(table: &[&Route], document: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
        let told = |method: &str, path: &str, name: &str| format!("{method} {path} {name}");
        let of_table: BTreeSet<String> = table
            .iter()
            .map(|route| told(method(route.method), &format!("{PREFIX}{}", route.path), route.name))
            .collect();
        let mut of_document = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                of_document.insert(told(method, path, operation["operationId"].as_str().unwrap()));
            }
        }
        (&of_table - &of_document, &of_document - &of_table)
    }

    fn whole() -> (Vec<&'static Route>, Value) {
        (routes().collect(), document("1", routes()))
    }

    #[test]
    fn the_document_has_each_route_of_the_table_and_no_other() {
        let (table, document) = whole();
        assert_eq!(differences(&table, &document), (BTreeSet::new(), BTreeSet::new()));
        assert!(table.len() > 40, "{}", table.len());
    }

    #[test]
    fn a_route_that_one_side_lacks_is_found() {
        let (table, mut document) = whole();
        for lacking in 0..table.len() {
            let mut fewer = table.clone();
            let gone = fewer.remove(lacking);
            let (only_table, only_document) = differences(&fewer, &document);
            assert!(only_table.is_empty() && only_document.len() == 1, "{only_table:?} {only_document:?}");
            assert!(only_document.iter().all(|operation| operation.ends_with(gone.name)), "{only_document:?}");
        }
        let item = document["paths"]["/api/v1/projects/{project}/asks"].as_object_mut().unwrap();
        item.remove("get").unwrap();
        let (only_table, only_document) = differences(&table, &document);
        assert_eq!(only_table.into_iter().collect::<Vec<_>>(), ["get /api/v1/projects/{project}/asks listAsks"]);
        assert_eq!(only_document, BTreeSet::new());
    }

    #[test]
    fn each_operation_is_about_something_that_the_document_names() {
        let names: BTreeSet<&str> = TAGS.into_iter().map(|(name, _)| name).collect();
        let used: BTreeSet<&str> = routes().map(|route| tag(route.path)).collect();
        assert_eq!(used, names);
    }

    #[test]
    fn a_type_that_is_taken_and_answered_is_described_once() {
        let mut schemas = Schemas::new();
        for route in routes() {
            operation(route, &mut schemas);
        }
        let (requests, answers) = (schemas.requests.take_definitions(false), schemas.answers.take_definitions(false));
        for (name, schema) in &requests {
            assert!(answers.get(name).is_none_or(|other| other == schema), "{name} is two types");
        }
    }

    #[test]
    fn what_tools_answer_is_described() {
        let mut generator = SchemaGenerator::default();
        for route in routes() {
            let Answer::Call(schema) = route.answer else { continue };
            let is_open = schema(&mut generator).to_value() == json!(true);
            assert_eq!(is_open, route.name == "makeCall", "{}", route.name);
        }
    }
}
