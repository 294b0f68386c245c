//! Every operation of the API, answered as its document says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use toolhost_testkit::{HttpReply, HttpStream, Program, TempWorkspace, http_bytes, request};

use crate::room::program;
use crate::served::{ALL_RIGHTS, Served, token};
use crate::webhook::{Listener, SECRET};

const ZIP: &str = "application/zip";
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/research-report");

/// Looks at answers as somebody does who knows nothing but the document.
struct Reader {
    document: Value,
    /// The statuses that each operation has answered with.
    seen: BTreeMap<String, BTreeSet<u16>>,
}

impl Reader {
    /// The schemas of the document do not take fields that they do not name: what is answered and not described is found.
    fn new(mut document: Value) -> Self {
        close(&mut document);
        Self { document, seen: BTreeMap::new() }
    }

    fn operation(&self, method: &str, target: &str) -> &Value {
        let path = target.split('?').next().unwrap();
        let fits = |template: &str| {
            let parts: Vec<&str> = template.split('/').collect();
            let given: Vec<&str> = path.split('/').collect();
            parts.len() == given.len()
                && parts.iter().zip(&given).all(|(part, given)| part.starts_with('{') || part == given)
        };
        let paths = self.document["paths"].as_object().unwrap();
        let mut found: Vec<&String> = paths.keys().filter(|template| fits(template)).collect();
        // One that is written out stands before one with names.
        found.sort_by_key(|template| template.matches('{').count());
        found.first().map_or(&Value::Null, |template| &paths[template.as_str()][method.to_lowercase()])
    }

    fn check(&mut self, (method, target): (&str, &str), reply: &HttpReply) {
        let operation = self.operation(method, target).clone();
        assert!(operation.is_object(), "no operation {method} {target}");
        let name = operation["operationId"].as_str().unwrap().to_owned();
        let response = self.found(&operation["responses"][reply.status.to_string()]);
        assert!(response.is_object(), "{name} has no status {}: {reply:?}", reply.status);
        for (header, about) in response["headers"].as_object().into_iter().flatten() {
            assert!(reply.header(&header.to_lowercase()).is_some() || about["required"] != true, "{name}: no {header}");
        }
        let kind = reply.header("content-type").unwrap();
        let content = &response["content"][kind];
        assert!(content.is_object(), "{name} has no content {kind}");
        if kind == "application/json" {
            let problems = self.problems(&content["schema"], &reply.json());
            assert!(problems.is_empty(), "{name} {}: {problems:#?}\n{}", reply.status, reply.body);
        }
        self.seen.entry(name).or_default().insert(reply.status);
    }

    fn found(&self, value: &Value) -> Value {
        match value["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap().clone(),
            None => value.clone(),
        }
    }

    fn problems(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut whole = schema.as_object().unwrap().clone();
        whole.insert("components".to_owned(), self.document["components"].clone());
        let validator = jsonschema::draft202012::new(&Value::Object(whole)).unwrap();
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    /// The schema of the data of each event of an operation.
    fn of_events(&self, path: &str) -> Value {
        let events = &self.document["paths"][path]["get"]["responses"]["200"]["content"]["text/event-stream"];
        events["schema"]["contentSchema"]["items"]["properties"]["data"]["contentSchema"].clone()
    }

    /// The operations that have not answered with success.
    fn missing(&self) -> Vec<&str> {
        let paths = self.document["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|item| item.as_object().unwrap().values());
        let names = operations.map(|operation| operation["operationId"].as_str().unwrap());
        let succeeded = |name: &&str| self.seen.get(*name).is_some_and(|seen| seen.iter().any(|status| *status < 300));
        names.filter(|name| !succeeded(name)).collect()
    }
}

/// An object with fields of its own, and no choice among several, takes no others.
fn close(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_choice =
                ["oneOf", "anyOf", "allOf", "additionalProperties"].iter().any(|name| fields.contains_key(*name));
            if fields.get("type") == Some(&json!("object"))
                && fields.get("properties").is_some_and(Value::is_object)
                && !is_choice
            {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

struct Walk {
    workspace: TempWorkspace,
    program: Program,
    server: Served,
    token: String,
    at: String,
    reader: Reader,
    /// Takes the messages of webhooks.
    listener: Listener,
}

impl Walk {
    async fn new() -> Self {
        let workspace = TempWorkspace::new();
        let script = workspace.beside("script.json");
        let turns = json!({ "turns": [
            { "calls": [{ "tool": "file_read", "arguments": { "path": "a.txt" } }] },
            { "text": "It says hello." }, { "text": "And hello again." }, { "text": "And once more." },
        ] });
        std::fs::write(&script, turns.to_string()).unwrap();
        let config = workspace.beside("config.toml");
        let listener = Listener::new([]).await;
        let notify = format!("[notify]\nproject_webhooks = ['{}']\n", listener.url.split_once("/hook").unwrap().0);
        let text = format!("model = \"script:{}\"\n[approvals]\nhold_seconds = 0\n{notify}", script.display());
        std::fs::write(&config, text).unwrap();
        workspace.write("a.txt", "hello");
        let program =
            program(&workspace).variable("TOOLHOST_CONFIG", &config).variable("TOOLHOST_WEBHOOK_SECRET", SECRET);
        let (token, key) = token(&program, &ALL_RIGHTS);
        let server = Served::start(&program, &[]);
        let document = server.send(&token, ("GET", "/api/v1/openapi.json"), "").await.json();
        let of_command = program.run(&["schema", "openapi"]).json();
        assert_eq!(document, of_command);
        let at = format!("/api/v1/projects/{key}");
        Self { workspace, program, server, token, at, reader: Reader::new(document), listener }
    }

    fn address(&self) -> std::net::SocketAddr {
        self.server.address("address")
    }

    async fn send(&mut self, method: &str, path: &str, body: Value) -> HttpReply {
        let target = if path.starts_with("/api/") { path.to_owned() } else { format!("{}{path}", self.at) };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let reply = self.server.send(&self.token, (method, &target), &body).await;
        self.reader.check((method, &target), &reply);
        reply
    }

    /// The data of a success.
    async fn data(&mut self, method: &str, path: &str, body: Value) -> Value {
        let reply = self.send(method, path, body).await;
        assert!(reply.status < 300, "{method} {path}: {reply:?}");
        reply.json()["data"].clone()
    }

    async fn get(&mut self, path: &str) -> Value {
        self.data("GET", path, Value::Null).await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.data("POST", "/calls", json!({ "tool": tool, "arguments": arguments })).await
    }

    async fn send_zip(&mut self, method: &str, path: &str, tag: Option<&str>, zip: &[u8]) -> HttpReply {
        let (target, bearer) = (format!("{}{path}", self.at), format!("Bearer {}", self.token));
        let mut headers = vec![("content-type", ZIP), ("authorization", bearer.as_str())];
        headers.extend(tag.map(|tag| ("if-match", tag)));
        let reply = http_bytes(self.address(), (method, &target), &headers, zip).await;
        self.reader.check((method, &target), &reply);
        reply
    }

    /// The data of events, each as its schema says, until one has this text.
    async fn events(&mut self, (path, query): (&str, &str), until: &str) -> Vec<Value> {
        let (target, bearer) = (format!("{}{path}{query}", self.at), format!("Bearer {}", self.token));
        let asked = request(("GET", &target), &[("authorization", &bearer)], "");
        let mut stream = HttpStream::open(self.address(), asked.as_bytes()).await;
        let (text, _) = stream.until(until).await;
        assert!(text.contains("text/event-stream"), "{text}");
        let template = match path.split('/').collect::<Vec<_>>()[..] {
            ["", "sessions", _, "events"] => "/api/v1/projects/{project}/sessions/{session}/events",
            _ => "/api/v1/projects/{project}/events",
        };
        let schema = self.reader.of_events(template);
        let data: Vec<Value> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter_map(|data| serde_json::from_str(data).ok())
            .collect();
        for event in &data {
            let problems = self.reader.problems(&schema, event);
            assert!(problems.is_empty(), "{problems:#?}\n{event}");
        }
        let name = self.reader.document["paths"][template]["get"]["operationId"].as_str().unwrap().to_owned();
        self.reader.seen.entry(name).or_default().insert(200);
        data
    }

    async fn ended(&mut self, id: &str) {
        loop {
            let standing = self.get(&format!("/sessions/{id}")).await;
            if standing["running"] == false && standing["state"] != "active" {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

/// Calls, asks and the audit of them.
async fn calls(walk: &mut Walk) {
    walk.get("/api/v1/projects").await;
    walk.get("").await;
    walk.get("/tools?profile=all").await;
    walk.call("file.write", json!({ "path": "b.txt", "content": "x" })).await;
    walk.call("file.read", json!({ "path": "b.txt" })).await;
    let waits = walk.send("POST", "/calls", json!({ "tool": "human.ask", "arguments": { "question": "Tea?" } })).await;
    assert_eq!(waits.status, 202, "{waits:?}");
    let id = waits.json()["data"]["approvalId"].as_str().unwrap().to_owned();
    assert_eq!(walk.get("/asks").await["asks"][0]["kind"], "question");
    let ask = walk.get(&format!("/asks/{id}")).await;
    let answer = json!({ "decision": "answer", "text": "green", "digest": ask["digest"] });
    let decided = walk.send("POST", &format!("/asks/{id}/decision"), answer).await;
    assert_eq!(decided.status, 200, "{ask} {decided:?}");
    walk.call("approval.wait", json!({ "approvalId": id })).await;
    walk.get(&format!("/asks/{id}")).await;
    let review = json!({ "title": "Plan", "content": "Tea at five." });
    walk.call("review.content", review).await;
    let kinds = async |walk: &mut Walk, query: &str| {
        let listed = walk.get(&format!("/asks{query}")).await;
        let kinds = listed["asks"].as_array().unwrap().iter().map(|ask| ask["kind"].as_str().unwrap().to_owned());
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(kinds(walk, "?all=true").await, ["review", "question"]);
    assert_eq!(kinds(walk, "").await, ["review"]);
    assert_eq!(kinds(walk, "?kind=question").await, Vec::<String>::new());
    assert_eq!(kinds(walk, "?kind=question&all=true").await, ["question"]);
    assert_eq!(walk.send("GET", "/asks?kind=menu", Value::Null).await.status, 400);
    let again = json!({ "path": "b.txt", "content": "y", "createOnly": true });
    let failed = walk.send("POST", "/calls", json!({ "tool": "file.write", "arguments": again })).await;
    assert_eq!(failed.status, 409, "{failed:?}");
    let rows = walk.get("/audit?limit=500").await;
    let kinds: BTreeSet<&str> = rows.as_array().unwrap().iter().filter_map(|row| row["event"].as_str()).collect();
    assert!(kinds.is_superset(&BTreeSet::from(["started", "finished", "decision"])), "{kinds:?}");
    let failures = walk.get("/audit?failed=true").await;
    assert!(!failures.as_array().unwrap().is_empty());
    assert!(failures.as_array().unwrap().iter().all(|row| row["body"]["outcome"]["ok"] == false), "{failures}");
    assert_eq!(walk.get("/audit?since=99999999999999").await, json!([]));
    walk.get("/audit/verification").await;
    let last = rows.as_array().unwrap().last().unwrap()["seq"].as_i64().unwrap();
    let heard = walk.events(("/events", "?after=0"), &format!("id: {last}\n")).await;
    assert!(heard.len() > 5, "{heard:?}");
}

/// The package, its objects and its changes.
async fn package(walk: &mut Walk) {
    let out = walk.workspace.beside("package.zip");
    assert_eq!(walk.program.run(&["package", "import", PACKAGE]).code, Some(0));
    assert_eq!(walk.program.run(&["package", "export", out.to_str().unwrap()]).code, Some(0));
    let zip = std::fs::read(&out).unwrap();
    let (target, at) = (format!("{}/package", walk.at), walk.at.clone());
    let got = walk.server.send(&walk.token, ("GET", &target), "").await;
    walk.reader.check(("GET", &target), &got);
    let tag = got.header("etag").unwrap().to_owned();
    assert_eq!(walk.send_zip("PUT", "/package", None, &zip).await.status, 409);
    assert_eq!(walk.send_zip("PUT", "/package", Some(&tag), &zip).await.status, 200);
    assert_eq!(walk.send_zip("POST", "/package/validation", None, &zip).await.status, 200);
    assert_eq!(walk.send_zip("POST", "/package/validation", None, b"no zip").await.status, 200);
    let workflows = walk.get("/workflows").await;
    let workflow = workflows[0]["id"].as_str().unwrap().to_owned();
    let read = walk.get(&format!("/package/workflows/{workflow}")).await;
    let step = read["step_index"][0]["node_id"].as_str().unwrap().to_owned();
    let of_step = walk.get(&format!("/package/workflows/{workflow}/steps/{step}")).await;
    let agent = of_step["node_meta"]["agentId"].as_str().unwrap().to_owned();
    walk.get(&format!("/package/agents/{agent}?workflow={workflow}")).await;
    let asset = walk.get("/package/asset?path=assets/review-checklist.md").await;
    let found = walk.get("/package/references?path=assets/review-checklist.md").await;
    assert!(!found["inbound"].as_array().unwrap().is_empty(), "{found}");
    assert_eq!(walk.send("GET", "/package/references", Value::Null).await.status, 400);
    assert_eq!(walk.send("GET", "/package/agents/nobody", Value::Null).await.status, 404);
    let set = |content: &str, revisions: &Value| {
        json!({ "changeSet": {
            "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize", "revisions": revisions,
            "operations": [{ "op": "upsert", "targetType": "asset", "target": { "path": "assets/review-checklist.md" },
                "payload": { "content": content } }],
        } })
    };
    let staged = walk.data("POST", "/changes", set("Be brief.\n", &asset["revisions"])).await;
    let id = staged["changeSetId"].as_str().unwrap().to_owned();
    walk.get("/changes?all=true").await;
    let shown = walk.get(&format!("/changes/{id}?operations=0")).await;
    walk.data("POST", &format!("/changes/{id}/validation"), Value::Null).await;
    let wish = json!({ "digest": shown["digest"], "operations": [0] });
    let changed = walk.send("POST", &format!("/changes/{id}/application"), wish).await;
    // Its status is shown, and validated now.
    assert_eq!(changed.status, 409, "{changed:?}");
    let shown = walk.get(&format!("/changes/{id}?operations=0")).await;
    let wish = json!({ "digest": shown["digest"], "operations": [0] });
    walk.data("POST", &format!("/changes/{id}/application"), wish).await;
    let history = walk.get("/history").await;
    walk.data("POST", &format!("/history/{}/undo", history[0]["moment"]), Value::Null).await;
    let staged = walk.data("POST", "/changes", set("Be briefer.\n", &asset["revisions"])).await;
    let id = staged["changeSetId"].as_str().unwrap();
    walk.data("DELETE", &format!("/changes/{id}"), Value::Null).await;
    assert_eq!(walk.at, at);
}

async fn records(walk: &mut Walk) {
    let made = walk.call("ticket.create", json!({ "title": "Brew" })).await;
    let id = made["id"].as_str().unwrap().to_owned();
    for kind in ["ticket", "task", "feature", "requirement", "milestone", "iteration", "persona"] {
        walk.get(&format!("/records?kind={kind}&limit=5")).await;
    }
    assert_eq!(walk.send("GET", "/records?kind=menu", Value::Null).await.status, 400);
    assert_eq!(walk.get(&format!("/records/{id}")).await["title"], "Brew");
    walk.get(&format!("/records/{id}/history")).await;
    assert_eq!(walk.send("GET", "/records/TKT-999", Value::Null).await.status, 404);
    assert!(!walk.get("/api/v1/schemas").await.as_array().unwrap().is_empty());
    assert!(walk.get("/api/v1/schemas/graph").await["$schema"].is_string());
    assert_eq!(walk.send("GET", "/api/v1/schemas/menu", Value::Null).await.status, 404);
}

async fn sessions(walk: &mut Walk) {
    let id = walk.data("POST", "/sessions", json!({ "goal": "What does a.txt say?" })).await;
    let id = id["id"].as_str().unwrap().to_owned();
    let heard = walk.events((&format!("/sessions/{id}/events"), ""), "It says hello.").await;
    assert_eq!(heard[0]["seq"], 0);
    let heard = walk.events((&format!("/sessions/{id}/events"), "?after=0"), "It says hello.").await;
    assert_eq!(heard[0]["seq"], 1);
    walk.ended(&id).await;
    walk.get("/sessions").await;
    let steps = walk.get(&format!("/sessions/{id}/steps")).await;
    assert_eq!(steps[0]["seq"], 0, "{steps}");
    assert_eq!(walk.send("GET", "/sessions/none/steps", Value::Null).await.status, 404);
    let later = walk.get(&format!("/sessions/{id}/steps?after=0&limit=1")).await;
    assert_eq!(later[0]["seq"], 1, "{later}");
    walk.data("POST", &format!("/sessions/{id}/messages"), json!({ "text": "Again?" })).await;
    walk.ended(&id).await;
    for what in ["resume", "cancel"] {
        let fork = walk.data("POST", &format!("/sessions/{id}/fork"), json!({})).await;
        let fork = fork["session"]["id"].as_str().unwrap().to_owned();
        walk.data("POST", &format!("/sessions/{fork}/pause"), Value::Null).await;
        walk.data("POST", &format!("/sessions/{fork}/{what}"), Value::Null).await;
        walk.ended(&fork).await;
    }
    assert_eq!(walk.send("POST", &format!("/sessions/{id}/cancel"), Value::Null).await.status, 409);
    assert_eq!(walk.send("GET", "/sessions/none", Value::Null).await.status, 404);
}

async fn people(walk: &mut Walk) {
    walk.data("PUT", "/members/anna", json!({ "role": "editor" })).await;
    walk.get("/members").await;
    let quota = json!({ "callsPerMinute": 50_000, "callsOpen": 900 });
    assert_eq!(walk.data("PUT", "/quota", quota.clone()).await, quota);
    assert_eq!(walk.get("/quota").await, quota);
    let webhook = walk.data("POST", "/webhooks", json!({ "url": walk.listener.url })).await;
    let path = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    assert_eq!(walk.get("/webhooks").await[0]["url"], webhook["url"]);
    assert_eq!(walk.data("POST", &format!("{path}/test"), Value::Null).await["status"], 200);
    walk.data("DELETE", &path, Value::Null).await;
    assert_eq!(walk.send("DELETE", &path, Value::Null).await.status, 404);
    let wish =
        json!({ "name": "ci", "profiles": ["developer"], "rights": ["read", "call"], "for": "anna", "seconds": 60 });
    let made = walk.data("POST", "/tokens", wish.clone()).await;
    let (of_anna, path) = (made["token"].as_str().unwrap().to_owned(), walk.at.clone());
    assert_eq!(walk.server.send(&of_anna, ("GET", &path), "").await.json()["data"]["role"], "editor");
    assert!(!walk.get("/tokens").await.to_string().contains(&of_anna));
    let refused = walk.server.send(&of_anna, ("POST", &format!("{path}/tokens")), &wish.to_string()).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    for (field, wrong) in
        [("profiles", json!(["none"])), ("rights", json!(["all"])), ("for", json!("nobody")), ("seconds", json!(0))]
    {
        let mut wish: Map<String, Value> = wish.as_object().unwrap().clone();
        wish.insert(field.to_owned(), wrong);
        assert_eq!(walk.send("POST", "/tokens", Value::Object(wish)).await.status, 400, "{field}");
    }
    let id = made["id"].as_str().unwrap().to_owned();
    walk.data("DELETE", &format!("/tokens/{id}"), Value::Null).await;
    assert_eq!(walk.send("DELETE", &format!("/tokens/{id}"), Value::Null).await.status, 404);
    for deed in ["token.create", "token.revoke"] {
        let rows = walk.get(&format!("/audit?tool={deed}")).await;
        assert!(rows.to_string().contains(&id) || deed == "token.create", "{deed}: {rows}");
        assert!(rows.as_array().unwrap().len() >= 2, "{deed}: {rows}");
    }
    walk.data("DELETE", "/members/anna", Value::Null).await;
}

/// What is refused before an operation begins.
async fn refusals(walk: &mut Walk) {
    let target = format!("{}/asks", walk.at);
    let cases = [("thp_00000000_00", 401), (&*walk.token.clone(), 200)];
    for (token, status) in cases {
        let reply = walk.server.send(token, ("GET", &target), "").await;
        assert_eq!(reply.status, status, "{reply:?}");
        walk.reader.check(("GET", &target), &reply);
    }
    let (small, _) = token(&walk.program, &["--right", "call"]);
    let reply = walk.server.send(&small, ("GET", &target), "").await;
    assert_eq!(reply.status, 403);
    walk.reader.check(("GET", &target), &reply);
    let calls = format!("{}/calls", walk.at);
    let header = [("content-type", "text/plain")];
    let reply = walk.server.send_with(&walk.token, ("POST", &calls), &header, "{}").await;
    assert_eq!(reply.status, 415);
    walk.reader.check(("POST", &calls), &reply);
    assert_eq!(walk.send("POST", "/calls", json!({})).await.status, 400);
}

#[tokio::test]
async fn every_operation_answers_as_the_document_says() {
    let mut walk = Walk::new().await;
    walk.send("GET", "/api/v1/openapi.json", Value::Null).await;
    calls(&mut walk).await;
    package(&mut walk).await;
    records(&mut walk).await;
    sessions(&mut walk).await;
    people(&mut walk).await;
    refusals(&mut walk).await;
    assert_eq!(walk.reader.missing(), Vec::<&str>::new());
}

#[test]
fn an_answer_that_is_not_described_is_found() {
    let workspace = TempWorkspace::new();
    let reader = Reader::new(program(&workspace).run(&["schema", "openapi"]).json());
    let schema = json!({ "$ref": "#/components/schemas/MemberInfo" });
    let right = json!({ "id": 1, "name": "anna", "role": "editor", "approver": true });
    assert_eq!(reader.problems(&schema, &right), Vec::<String>::new());
    for (field, wrong) in [("id", Value::Null), ("role", json!("king")), ("more", json!(1))] {
        let mut member = right.clone();
        member[field] = wrong;
        assert!(!reader.problems(&schema, &member).is_empty(), "{field}");
    }
    let row = json!({ "$ref": "#/components/schemas/AuditRow" });
    let other = json!({ "seq": 1, "atMs": 1, "callId": "x", "event": "begun", "tool": "x", "body": {}, "hash": "x" });
    assert!(!reader.problems(&row, &other).is_empty());
}
