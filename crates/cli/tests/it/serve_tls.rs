//! `toolhost serve` with a certificate, with metrics, and with a log for machines.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use toolhost_testkit::{JsonServer, TempWorkspace, TokenKey, http, request};

use crate::room::program;
use crate::served::Served;

/// A certificate for `localhost` in files, and a client that believes it alone.
fn certificate(workspace: &TempWorkspace) -> (String, String, TlsConnector) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (workspace.beside("chain.pem"), workspace.beside("key.pem"));
    std::fs::write(&chain, cert.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    (text(chain), text(key), TlsConnector::from(Arc::new(config)))
}

/// The answer to one request over TLS.
async fn over_tls(connector: &TlsConnector, address: SocketAddr, asked: (&str, &str)) -> String {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(request(asked, &[], "").as_bytes()).await.unwrap();
    let mut text = Vec::new();
    // The server may close without saying so in TLS.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_server_with_a_certificate_speaks_tls_and_a_client_that_says_nothing_holds_nobody_up() {
    let workspace = TempWorkspace::new();
    let (chain, key, connector) = certificate(&workspace);
    let server = Served::start(&program(&workspace), &["--tls-cert", &chain, "--tls-key", &key]);
    assert_eq!(server.told["scheme"], "https");
    let silent = TcpStream::connect(server.address("address")).await.unwrap();
    let answer = over_tls(&connector, server.address("address"), ("GET", "/healthz")).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"{"ok":true}"#), "{answer}");
    let plain = http(server.address("address"), ("GET", "/healthz"), &[], "").await;
    assert_ne!(plain.status, 200, "{plain:?}");
    drop(silent);
}

#[test]
fn a_certificate_and_a_key_that_do_not_belong_together_are_an_error() {
    let workspace = TempWorkspace::new();
    let (chain, key, _) = certificate(&workspace);
    let other = TempWorkspace::new();
    let (_, other_key, _) = certificate(&other);
    for (chain, key, said) in [
        (&*chain, &*other_key, "is not that of the certificate"),
        (&*chain, "/none.pem", "private key /none.pem cannot be read"),
        (&*key, &*key, "has no certificate in it"),
    ] {
        let ran = program(&workspace).run(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", chain, "--tls-key", key]);
        assert!(ran.code == Some(1) && ran.stderr.contains(said), "{ran:?}");
    }
    let alone = program(&workspace).run(&["serve", "--tls-cert", &chain]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--tls-key"), "{alone:?}");
}

#[tokio::test]
async fn prometheus_reads_what_the_calls_of_a_token_came_to_and_the_log_names_them() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "hello");
    let program = program(&workspace);
    let made = program.run(&["--json", "token", "create", "agent"]).json();
    let (token, key) = (made["token"].as_str().unwrap(), made["project"].as_str().unwrap());
    let program = program.variable("TOOLHOST_LOG_FORMAT", "json").variable("TOOLHOST_LOG", "info");
    let server = Served::start(&program, &["--metrics", "127.0.0.1:0"]);
    let bearer = format!("Bearer {token}");
    let body = r#"{"tool": "file.read", "arguments": {"path": "a.txt"}}"#;
    let at = format!("/api/v1/projects/{key}/calls");
    let reply = http(server.address("address"), ("POST", &at), &[("authorization", &bearer)], body).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let page = http(server.address("metrics"), ("GET", "/metrics"), &[], "").await;
    let series = "toolhost_calls_total{tool=\"file.read\",effect=\"reads\",outcome=\"ok\",door=\"http\"} 1";
    assert!(page.status == 200 && page.body.contains(series), "{page:?}");
    let call = reply.json()["meta"]["callId"].as_str().unwrap().to_owned();
    let log = server.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended = lines.iter().find(|line| line["message"] == "a call ended").unwrap();
    assert_eq!((&ended["call"], &ended["outcome"]), (&Value::from(call), &Value::from("ok")), "{log}");
    assert!(!log.contains(token), "{log}");
}

#[tokio::test]
async fn an_access_token_of_the_identity_provider_opens_the_project_of_its_member() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "hello");
    let program = program(&workspace);
    assert_eq!(program.run(&["member", "add", "anna", "viewer"]).code, Some(0));
    let key = TokenKey::new("ES256");
    let public = key.public("k1");
    let issuer = JsonServer::start(|url| {
        BTreeMap::from([
            (
                "/.well-known/openid-configuration".to_owned(),
                json!({ "issuer": url, "jwks_uri": format!("{url}/keys") }),
            ),
            ("/keys".to_owned(), json!({ "keys": [public] })),
        ])
    })
    .await;
    let server = Served::start(
        &program,
        &[
            "--public-url",
            "https://tools.example",
            "--oauth-issuer",
            &issuer.url(),
            "--oauth-user-claim",
            "preferred_username",
        ],
    );
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({
        "iss": issuer.url(), "sub": "8f2", "aud": "https://tools.example/mcp", "exp": now + 600, "preferred_username": "anna",
        "client_id": "an-agent", "scope": "toolhost:call toolhost:profile:developer",
    });
    let token = key.token(&json!({ "alg": "ES256", "kid": "k1" }), &claims);
    // One project is served, so its name can be left out.
    let listed = server.send(&token, ("GET", "/api/v1/projects"), "").await;
    assert_eq!(listed.status, 200, "{listed:?}");
    let (project, role) = (&listed.json()["data"][0]["key"], &listed.json()["data"][0]["role"]);
    assert_eq!(role, "viewer");
    let read = server.call(&token, project.as_str().unwrap(), "file.read", json!({ "path": "a.txt" })).await;
    assert_eq!(read.status, 200, "{read:?}");
    let written =
        server.call(&token, project.as_str().unwrap(), "file.write", json!({ "path": "b", "content": "" })).await;
    assert_eq!(written.status, 403, "{written:?}");
    let found = http(server.address("address"), ("GET", "/.well-known/oauth-protected-resource/mcp"), &[], "").await;
    assert_eq!(found.json()["authorization_servers"], json!([issuer.url()]), "{found:?}");
}
