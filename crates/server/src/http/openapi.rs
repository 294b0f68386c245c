//! The OpenAPI 3.1 document: made of the table of routes and the schemas of the types that they take and answer.

use serde_json::{Map, Value, json};

use super::api_work::ZIP;
use super::routes::{Input, Method, PREFIX, Route};

/// The document of these operations.
pub(crate) fn document<'r>(version: &str, routes: impl Iterator<Item = &'r Route>) -> Value {
    let mut schemas = Map::new();
    schemas.insert("Problem".to_owned(), envelope(&json!({ "type": "null" }), &problem()));
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(format!("{PREFIX}{}", route.path)).or_insert_with(|| json!({}));
        path[method(route.method)] = operation(route, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Toolhost",
            "version": version,
            "description": "Tools for agents behind one gate. Every answer is an envelope: `ok`, `data`, `error`, `meta`.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A token of `toolhost token create`" },
            },
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

fn operation(route: &Route, schemas: &mut Map<String, Value>) -> Value {
    let of_path = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let of_query = route.query.iter().map(|query| {
        let kind = if query.is_number { "integer" } else { "string" };
        json!({ "name": query.name, "in": "query", "description": query.description, "schema": { "type": kind } })
    });
    let mut parameters: Vec<Value> = of_path.chain(of_query).collect();
    if route.name == "importPackage" {
        parameters.push(json!({
            "name": "If-Match", "in": "header", "schema": { "type": "string" },
            "description": "The `ETag` of the package that is replaced, or `*`",
        }));
    }
    if route.name == "makeCall" {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "schema": { "type": "string", "format": "uuid" },
            "description": "The number of the call: asking again with it makes no second one",
        }));
    }
    let answer = match route.answer {
        Some(answer) => {
            let data = taken_out(answer(), schemas);
            json!({ "application/json": { "schema": envelope(&data, &json!({ "type": "null" })) } })
        }
        None if route.name == "events" => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
        None if route.name == "exportPackage" => json!({ ZIP: {} }),
        None => json!({ "application/json": { "schema": { "type": "object" } } }),
    };
    let problem = json!({
        "description": "What is wrong, in `error`",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    });
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": { "description": "The answer", "content": answer },
            "4XX": problem,
            "5XX": problem,
        },
    });
    if route.name == "makeCall" {
        operation["responses"]["202"] = json!({ "description": "It waits for a person", "content": answer });
    }
    match route.body {
        Some(Input::Json(body)) => {
            let schema = taken_out(body(), schemas);
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        Some(Input::Zip) => operation["requestBody"] = json!({ "required": true, "content": { ZIP: {} } }),
        None => {}
    }
    if let Some(right) = route.right {
        operation["description"] = format!("Needs a token with the right to {}.", right.as_str()).into();
    }
    operation
}

/// A schema whose definitions stand among those of the document.
fn taken_out(mut schema: Value, schemas: &mut Map<String, Value>) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.remove("$schema");
        if let Some(Value::Object(definitions)) = fields.remove("$defs") {
            for (name, definition) in definitions {
                let definition = moved(definition);
                schemas.insert(name, definition);
            }
        }
    }
    moved(schema)
}

/// References to definitions of a schema of its own become those of the document.
fn moved(schema: Value) -> Value {
    // The schemas are this program's own and contain that text nowhere else.
    let text = schema.to_string().replace("\"#/$defs/", "\"#/components/schemas/");
    serde_json::from_str(&text).unwrap_or(schema)
}

fn envelope(data: &Value, error: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["ok", "data", "error", "meta"],
        "properties": { "ok": { "type": "boolean" }, "data": data, "error": error, "meta": { "type": "object" } },
    })
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["code", "kind", "message"],
        "properties": {
            "code": { "type": "string", "description": "A stable code" },
            "kind": { "type": "string", "description": "The family of the failure" },
            "message": { "type": "string" },
            "hint": { "type": "string", "description": "What to try next" },
            "details": {},
        },
    })
}
