//! Random requests for what is somebody else's: each is answered as one for what is not there, and nothing of theirs is read or changed.
//!
//! `TOOLHOST_HTTP_REQUESTS` asks for more of them, `TOOLHOST_SEED` for others.

use serde_json::{Value, json};
use toolhost_testkit::engines::{engines, exported};
use toolhost_testkit::{HttpReply, Seed, rounds};

use crate::rig::Rig;
use crate::tenants::{RIGHTS, Tenants, operations, tenants_of};

const REQUESTS: u64 = 400;
/// Limits count by the minute.
const MS_OF_EACH: i64 = 20;
/// What stands in each text of the second project.
const MARK: &str = "theirs";
const MODERN: &str = "2026-07-28";

/// What there is in the second project.
struct Theirs {
    /// A part of a path, what it may name of theirs, and what is nowhere.
    parts: Vec<(&'static str, String, &'static str)>,
    /// Of an MCP session of theirs.
    session: String,
    token: String,
}

/// A random request, once for what is theirs and once for what is nowhere.
struct Pair {
    /// For the message of a failure.
    what: String,
    theirs: Sent,
    nowhere: Sent,
}

struct Sent {
    method: String,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    /// Words that are not compared.
    names: Vec<String>,
}

struct Dice<'a> {
    seed: Seed,
    theirs: &'a Theirs,
    operations: &'a [(String, String, &'static str)],
}

impl Dice<'_> {
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.seed.below(all.len() as u64)).unwrap()]
    }

    fn pair(&mut self) -> Pair {
        match self.seed.below(6) {
            0..3 => self.of_api(),
            3 => self.of_mcp(),
            4 => self.of_session(),
            _ => self.of_a_tool(),
        }
    }

    /// An operation of the API, on their project or on one of their things.
    fn of_api(&mut self) -> Pair {
        let place = usize::try_from(self.seed.below(self.operations.len() as u64)).unwrap();
        let (method, template, kind) = self.operations[place].clone();
        let of_project = !self.theirs.parts.iter().any(|(part, ..)| template.contains(part)) || self.seed.below(2) == 0;
        let project = self.one_of(&["p1", "project%201"]);
        let body = self.body();
        let query = self.one_of(&["", "?after=0", "?limit=5", "?after=-1&limit=1000", "?unknown=1", "?after=x"]);
        let key = format!("7fdab023-1123-49c5-b4a5-{:012x}", self.seed.below(4));
        let sent = |is_theirs: bool| {
            let (mut path, mut names) = (template.clone(), Vec::new());
            for (part, theirs, nowhere) in &self.theirs.parts {
                let named = if is_theirs || of_project { theirs.as_str() } else { nowhere };
                if path.contains(part) {
                    names.push(named.to_owned());
                }
                path = path.replace(part, named);
            }
            let project = match (of_project, is_theirs) {
                (true, true) => project,
                (true, false) => "nowhere",
                (false, _) => "p0",
            };
            let headers =
                vec![("content-type", kind.to_owned()), ("if-match", "*".to_owned()), ("idempotency-key", key.clone())];
            let path = format!("{}{query}", path.replace("{project}", project));
            Sent { method: method.clone(), path, headers, body: body.clone(), names }
        };
        // What would be done to a project of one's own is no question of this test, and streams have no end.
        let is_streamed = template.ends_with("/events") && !of_project;
        if (!of_project && !template.contains('{')) || is_streamed {
            return self.pair();
        }
        Pair { what: format!("{method} {template}{query} {body}"), theirs: sent(true), nowhere: sent(false) }
    }

    /// Their project over MCP, of either era.
    fn of_mcp(&mut self) -> Pair {
        let profile = self.one_of(&["", "/all", "/developer", "/nothing"]);
        let message = if self.seed.below(2) == 0 {
            initialize()
        } else {
            modern(self.one_of(&["tools/list", "prompts/list", "resources/list"]), json!({}))
        };
        let sent = |project: &str| Sent {
            method: "POST".to_owned(),
            path: format!("/mcp/{project}{profile}"),
            headers: message.0.clone(),
            body: message.1.to_string(),
            names: Vec::new(),
        };
        Pair { what: format!("MCP {profile} {}", message.1), theirs: sent("p1"), nowhere: sent("nowhere") }
    }

    /// A session of theirs.
    fn of_session(&mut self) -> Pair {
        let method = self.one_of(&["GET", "POST", "DELETE"]);
        let named = |session: &str| Sent {
            method: method.to_owned(),
            path: "/mcp".to_owned(),
            headers: vec![
                ("accept", ACCEPT.to_owned()),
                ("mcp-session-id", session.to_owned()),
                ("mcp-protocol-version", "2025-11-25".to_owned()),
            ],
            body: json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string(),
            names: vec![session.to_owned()],
        };
        let nowhere = named("00000000-0000-4000-8000-000000000000");
        Pair { what: format!("{method} a session"), theirs: named(&self.theirs.session), nowhere }
    }

    /// A tool on one's own project that is told a thing of theirs.
    fn of_a_tool(&mut self) -> Pair {
        let (tool, argument, theirs, nowhere) = self.one_of(&[
            ("ticket.get", "id", "TKT-001", "TKT-999"),
            ("memory.query", "query", MARK, "nowhere"),
            ("file.read", "path", "../ws1/theirs.txt", "../ws9/nowhere.txt"),
            ("approval.wait", "id", "ask-1", "ask-999"),
        ]);
        let is_modern = self.seed.below(2) == 0;
        let sent = |named: &str| {
            let arguments = json!({ argument: named });
            let (path, (mut headers, message)) = if is_modern {
                ("/mcp", modern("tools/call", json!({ "name": tool.replace('.', "_"), "arguments": arguments })))
            } else {
                let body = json!({ "tool": tool, "arguments": arguments });
                ("/api/v1/projects/p0/calls", (vec![("content-type", "application/json".to_owned())], body))
            };
            if is_modern {
                headers.push(("mcp-name", tool.replace('.', "_")));
            }
            Sent {
                method: "POST".to_owned(),
                path: path.to_owned(),
                headers,
                body: message.to_string(),
                names: vec![named.to_owned()],
            }
        };
        Pair { what: format!("{tool} {theirs}"), theirs: sent(theirs), nowhere: sent(nowhere) }
    }

    fn body(&mut self) -> String {
        let profile = self.one_of(&["all", "developer", "nothing"]);
        let tool = self.one_of(&["file.read", "ticket.get", "file.write", "no.such"]);
        let all = [
            json!({}),
            json!({ "tool": tool, "arguments": { "path": "a", "content": "x", "id": "TKT-001" }, "profile": profile }),
            json!({ "decision": self.one_of(&["allow", "deny"]), "digest": "0".repeat(64) }),
            json!({ "text": "go on" }),
            json!({ "goal": "read a", "profile": profile, "model": "script:x" }),
            json!({ "role": self.one_of(&["owner", "editor", "viewer"]) }),
            json!({ "turns": 1 }),
            json!([1]),
            Value::Null,
        ];
        all[usize::try_from(self.seed.below(all.len() as u64)).unwrap()].to_string()
    }
}

const ACCEPT: &str = "application/json, text/event-stream";

type Message = (Vec<(&'static str, String)>, Value);

fn initialize() -> Message {
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    (vec![("accept", ACCEPT.to_owned())], message)
}

fn modern(method: &str, mut params: Value) -> Message {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "1" },
    });
    let headers = vec![
        ("accept", ACCEPT.to_owned()),
        ("mcp-protocol-version", MODERN.to_owned()),
        ("mcp-method", method.to_owned()),
    ];
    (headers, json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

/// Puts more into the second project.
async fn more(rig: &Rig, theirs: Vec<(&'static str, String)>) -> Theirs {
    let token = rig.token_of(1, MARK, &["all"], &RIGHTS).await;
    rig.houses[1].workspace.write("theirs.txt", MARK.as_bytes());
    for (tool, arguments) in [
        ("ticket.create", json!({ "title": MARK, "description": MARK })),
        ("memory.save_learning", json!({ "content": MARK })),
    ] {
        let body = json!({ "tool": tool, "arguments": arguments }).to_string();
        let made = rig.send(&token, ("POST", "/api/v1/projects/p1/calls"), &body).await;
        assert_eq!(made.status, 200, "{tool}: {made:?}");
    }
    let (headers, message) = initialize();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let opened = rig.send_with(&token, ("POST", "/mcp/p1/all"), &headers, &message.to_string()).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let nowhere = |part: &str| match part {
        "{ask}" => "ask-999",
        "{token}" => "tok-00000000",
        "{session}" => "as_ffffffffffffffff",
        "{change}" => "cs-999",
        "{member}" => "nobody",
        _ => "999",
    };
    let parts = theirs.into_iter().map(|(part, value)| (part, value, nowhere(part))).collect();
    Theirs { parts, session, token }
}

/// An answer, without what it was asked for and the numbers of calls.
fn said(reply: &HttpReply, names: &[String]) -> (u16, String) {
    let body = match serde_json::from_str::<Value>(&reply.body) {
        Ok(mut body) => {
            without_meta(&mut body);
            body.to_string()
        }
        Err(_) => reply.body.clone(),
    };
    (reply.status, names.iter().fold(body, |body, name| without_word(&body, name)))
}

/// A name, where it is a word of its own: `1` is a part of many numbers.
fn without_word(text: &str, word: &str) -> String {
    let (mut rest, mut kept) = (text, String::new());
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let is_part = before.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric);
        kept.push_str(before);
        kept.push_str(if is_part { word } else { "NAME" });
        rest = after;
    }
    kept + rest
}

/// Of a call, its number and how long it took.
fn without_meta(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("meta");
            fields.values_mut().for_each(without_meta);
        }
        Value::Array(items) => items.iter_mut().for_each(without_meta),
        _ => {}
    }
}

async fn send(rig: &Rig, token: &str, sent: &Sent) -> HttpReply {
    let headers: Vec<(&str, &str)> = sent.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    rig.send_with(token, (&sent.method, &sent.path), &headers, &sent.body).await
}

/// All that the second project keeps, but for how often it was read.
async fn kept(rig: &Rig) -> (i64, usize, Vec<String>) {
    let house = &rig.houses[1];
    let end = house.store.reader().stream_end(house.project.id).await.unwrap().number();
    let members = house.store.people().members(house.project.id).await.unwrap().len();
    (end, members, exported(&house.store, house.project.id).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_for_what_is_somebody_else_s_find_nothing() {
    for engine in engines() {
        // On PostgreSQL both projects are in one database.
        ask_at_random(tenants_of(engine.url.clone()).await).await;
    }
}

async fn ask_at_random(Tenants { rig, callers, theirs }: Tenants) {
    let operations = operations(&rig, &callers[0].1).await;
    let theirs = more(&rig, theirs).await;
    let before = kept(&rig).await;
    let seed = Seed::of_this_run();
    let number = seed.value();
    let mut dice = Dice { seed, theirs: &theirs, operations: &operations };
    for round in 0..rounds("TOOLHOST_HTTP_REQUESTS", REQUESTS) {
        let place = usize::try_from(dice.seed.below(callers.len() as u64)).unwrap();
        let (who, token) = &callers[place];
        let pair = dice.pair();
        let what = format!("seed {number}, request {round}, {who}: {}", pair.what);
        let of_theirs = send(&rig, token, &pair.theirs).await;
        let of_none = send(&rig, token, &pair.nowhere).await;
        assert_eq!(said(&of_theirs, &pair.theirs.names), said(&of_none, &pair.nowhere.names), "{what}");
        let names: Vec<String> = pair.theirs.names.clone();
        assert!(!said(&of_theirs, &names).1.contains(MARK), "{what}: {of_theirs:?}");
        rig.advance(MS_OF_EACH);
    }
    assert_eq!(kept(&rig).await, before, "seed {number}: something of theirs was changed");
    let headers =
        [("accept", ACCEPT), ("mcp-session-id", theirs.session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }).to_string();
    let still = rig.send_with(&theirs.token, ("POST", "/mcp/p1/all"), &headers, &list).await;
    assert_eq!(still.status, 200, "seed {number}: their session was ended: {still:?}");
}
