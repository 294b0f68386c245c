//! Nobody reads or changes what is not theirs, or can tell that it is there: each operation, by each kind of caller, in both protocols.

use std::sync::Arc;

use serde_json::{Value, json};
use toolhost_contract::Clock;
use toolhost_server::http::{HttpLimits, OauthConfig, OauthLimits};
use toolhost_store::{NewSession, NewToken, Role};
use toolhost_testkit::{HttpReply, TokenKey};

use crate::issuer::{ISSUER, Issuer};
use crate::rig::{HOUR_MS, Rig, house};

pub(crate) const RIGHTS: [&str; 5] = ["call", "read", "run", "approve", "manage"];

/// Two projects, callers of the first, and what there is in the second.
pub(crate) struct Tenants {
    pub(crate) rig: Rig,
    /// Who they are, and their tokens.
    pub(crate) callers: Vec<(&'static str, String)>,
    /// A part of a path, and what of the second project it names.
    pub(crate) theirs: Vec<(&'static str, String)>,
}

pub(crate) async fn tenants() -> Tenants {
    tenants_of(None).await
}

/// The same in one PostgreSQL database, if one is named.
pub(crate) async fn tenants_of(database: Option<String>) -> Tenants {
    let key = TokenKey::new("EdDSA");
    let config = OauthConfig {
        issuer: ISSUER.to_owned(),
        public_url: "https://tools.example".to_owned(),
        audiences: Vec::new(),
        user_claim: "sub".to_owned(),
        refused_users: Vec::new(),
        scopes: Vec::new(),
        login: None,
        documents: Arc::new(Issuer::of(vec![key.public("k")])),
        limits: OauthLimits::default(),
    };
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
    let houses = vec![house().database(database.clone()), house().database(database).project_policy(policy)];
    let rig = Rig::start_with(houses, HttpLimits::default(), Some(config)).await;
    let mut callers = vec![("owner", rig.token(&RIGHTS).await), ("without rights", rig.token(&[]).await)];
    let first = &rig.houses[0];
    let members = [
        ("editor", Role::Editor, None),
        ("viewer", Role::Viewer, None),
        ("editor without the right to answer", Role::Editor, Some(false)),
        ("viewer who answers", Role::Viewer, Some(true)),
    ];
    for (name, role, approver) in members {
        let people = first.store.people();
        let user = people.add_user(name).await.unwrap();
        people.set_member(first.project.id, user, role, approver).await.unwrap();
        let secret = toolhost_server::http::Secret::new("p0").unwrap();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let new = NewToken {
            project_id: first.project.id,
            account_id: user,
            id: format!("tok-{user}"),
            name: name.to_owned(),
            hash: secret.hash(),
            profiles: words(&["all"]),
            scopes: words(&RIGHTS),
            expires_at_ms: first.clock.unix_ms() + HOUR_MS,
        };
        first.store.tokens().create(&new).await.unwrap();
        callers.push((name, secret.as_str().to_owned()));
    }
    let claims = json!({
        "iss": ISSUER, "sub": "editor", "aud": "https://tools.example", "exp": first.clock.unix_ms() / 1000 + 3600,
        "scope": "toolhost:call toolhost:read toolhost:run toolhost:approve toolhost:manage toolhost:profile:all",
    });
    callers.push(("of the identity provider", key.token(&json!({ "alg": "EdDSA", "kid": "k" }), &claims)));
    let theirs = filled(&rig).await;
    Tenants { rig, callers, theirs }
}

/// Puts something of each kind into the second project.
async fn filled(rig: &Rig) -> Vec<(&'static str, String)> {
    let (second, their_token) = (&rig.houses[1], rig.token_of(1, "theirs", &["all"], &RIGHTS).await);
    let body = json!({ "tool": "file.write", "arguments": { "path": "a", "content": "" } }).to_string();
    let asked = rig.send(&their_token, ("POST", "/api/v1/projects/p1/calls"), &body).await;
    let ask = asked.json()["data"]["approvalId"].as_str().unwrap().to_owned();
    let tokens = rig.send(&their_token, ("GET", "/api/v1/projects/p1/tokens"), "").await.json();
    let session = NewSession {
        project_id: second.project.id,
        user_id: toolhost_testkit::USER,
        id: "as_0123456789abcdef".to_owned(),
        profile: "all".to_owned(),
        model: "script:x".to_owned(),
        title: "theirs".to_owned(),
        steps: Vec::new(),
    };
    second.store.sessions().create(&session).await.unwrap();
    vec![
        ("{ask}", ask),
        ("{token}", tokens["data"][0]["id"].as_str().unwrap().to_owned()),
        ("{session}", session.id),
        ("{change}", "cs-1".to_owned()),
        ("{member}", "local".to_owned()),
        ("{moment}", "1".to_owned()),
    ]
}

/// Method and path of each operation, with a content type that it takes.
pub(crate) async fn operations(rig: &Rig, token: &str) -> Vec<(String, String, &'static str)> {
    let document = rig.send(token, ("GET", "/api/v1/openapi.json"), "").await.json();
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let is_zip = operation["requestBody"]["content"].get("application/zip").is_some();
            let kind = if is_zip { "application/zip" } else { "application/json" };
            found.push((method.to_uppercase(), path.clone(), kind));
        }
    }
    found
}

fn said(reply: HttpReply) -> (u16, String) {
    (reply.status, reply.body)
}

#[tokio::test]
async fn somebody_else_s_project_is_a_project_that_is_not_there() {
    let Tenants { rig, callers, theirs } = tenants().await;
    let operations = operations(&rig, &callers[0].1).await;
    let of_projects: Vec<_> = operations.iter().filter(|(_, path, _)| path.contains("{project}")).collect();
    assert!(of_projects.len() > 30, "{operations:?}");
    for (who, token) in &callers {
        for (method, path, kind) in &of_projects {
            let path = theirs.iter().fold(path.clone(), |path, (part, value)| path.replace(part, value));
            let headers = [("content-type", *kind), ("if-match", "*")];
            let at = async |project: &str| {
                let path = path.replace("{project}", project);
                said(rig.send_with(token, (method, &path), &headers, "{}").await)
            };
            let missing = at("nowhere").await;
            assert_eq!(missing.0, 404, "{who}: {method} {path}: {missing:?}");
            for theirs in ["p1", "project%201"] {
                assert_eq!(at(theirs).await, missing, "{who}: {method} {path}: {theirs}");
            }
        }
    }
    // What was theirs is still as it was.
    let second = &rig.houses[1];
    assert_eq!(second.store.people().members(second.project.id).await.unwrap().len(), 1);
    let open = second.store.asks().open_after(second.project.id, 0, 10).await.unwrap();
    assert_eq!(open.asks.len(), 1);
}

#[tokio::test]
async fn what_is_in_somebody_else_s_project_is_not_in_one_s_own() {
    let Tenants { rig, callers, theirs } = tenants().await;
    let operations = operations(&rig, &callers[0].1).await;
    for (who, token) in &callers {
        for (method, path, kind) in &operations {
            for (part, value) in theirs.iter().filter(|(part, _)| ["{ask}", "{token}", "{session}"].contains(part)) {
                if !path.contains(part) {
                    continue;
                }
                let at = async |id: &str| {
                    let path = path.replace("{project}", "p0").replace(part, id);
                    let headers = [("content-type", *kind)];
                    let (status, body) = said(rig.send_with(token, (method, &path), &headers, "{}").await);
                    (status, body.replace(id, "ID"))
                };
                let missing = match *part {
                    "{ask}" => "ask-999",
                    "{token}" => "tok-00000000",
                    _ => "as_ffffffffffffffff",
                };
                let (of_theirs, of_none) = (at(value).await, at(missing).await);
                assert_eq!(of_theirs, of_none, "{who}: {method} {path}");
                assert!(of_theirs.0 >= 400 || path.ends_with("/steps"), "{who}: {method} {path}: {of_theirs:?}");
            }
        }
    }
}

#[tokio::test]
async fn mcp_of_somebody_else_s_project_is_not_there_in_either_protocol() {
    let Tenants { rig, callers, .. } = tenants().await;
    let with_session = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } },
    });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "1" },
    });
    let stateless = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    for (who, token) in &callers {
        for (message, version) in [(&with_session, None), (&stateless, Some("2026-07-28"))] {
            let at = async |path: &str| {
                let mut headers = vec![("accept", "application/json, text/event-stream")];
                headers.extend(version.map(|version| ("mcp-protocol-version", version)));
                headers.push(("mcp-method", "tools/list"));
                said(rig.send_with(token, ("POST", path), &headers, &message.to_string()).await)
            };
            for (theirs, nowhere) in [("/mcp/p1", "/mcp/nowhere"), ("/mcp/p1/all", "/mcp/nowhere/all")] {
                let missing = at(nowhere).await;
                assert!(missing.0 == 404 || missing.0 == 403, "{who}: {missing:?}");
                assert_eq!(at(theirs).await, missing, "{who}: {theirs}");
            }
            let own = at("/mcp/p0/all").await;
            assert_eq!(own.0 == 200, *who != "without rights", "{who}: {own:?}");
        }
    }
}

#[tokio::test]
async fn lists_hold_nothing_of_others() {
    let Tenants { rig, callers, theirs } = tenants().await;
    for (who, token) in &callers {
        for path in ["", "/asks", "/audit", "/sessions", "/members", "/quota", "/tokens", "/webhooks"] {
            let reply = rig.send(token, ("GET", &format!("/api/v1/projects/p0{path}")), "").await;
            let of_session: &Value = &json!(theirs[2].1);
            assert!(
                !reply.body.contains("theirs") && !reply.body.contains(of_session.as_str().unwrap()),
                "{who}: {path}: {reply:?}"
            );
        }
    }
}
