//! The webhook of the configuration: who listens there is told of asks, signed, and of nothing else.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use toolhost_testkit::{Program, TempWorkspace, TestSocket};

use crate::room::program;
use crate::served::{ALL_RIGHTS, Served, token};

/// Of the secret below, as the one who listens has it.
const KEY: &[u8] = b"thirty-two bytes that are shared";
pub(crate) const SECRET: &str = "whsec_dGhpcnR5LXR3byBieXRlcyB0aGF0IGFyZSBzaGFyZWQ=";
/// Stands in the arguments of a call.
const IN_ARGUMENTS: &str = "only-in-the-arguments";

/// A request that came.
#[derive(Debug)]
struct Request {
    head: String,
    body: String,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| unreachable!("no {name}: {self:?}"))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| unreachable!("{error}: {self:?}"))
    }

    /// Whether the signature is that of Standard Webhooks, computed here from what arrived.
    fn is_signed(&self) -> bool {
        self.is_signed_by(KEY)
    }

    fn is_signed_by(&self, key: &[u8]) -> bool {
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let pad = |with: u8| (0..64).map(|at| key.get(at).unwrap_or(&0) ^ with).collect::<Vec<u8>>();
        let inner = Sha256::digest([pad(0x36), signed.into_bytes()].concat());
        let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
        let given = self.header("webhook-signature").strip_prefix("v1,").map(from_base64);
        given == Some(outer.to_vec())
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String = text.chars().filter_map(|digit| Some(format!("{:06b}", DIGITS.find(digit)?))).collect();
    let bytes = bits.len() / 8;
    (0..bytes).map(|at| u8::from_str_radix(&bits[at * 8..at * 8 + 8], 2).unwrap()).collect()
}

fn key_of(secret: &str) -> Vec<u8> {
    from_base64(secret.strip_prefix("whsec_").unwrap().trim_end_matches('='))
}

/// Listens on loopback. Each request is answered with the next status, and with 200 when there is none left.
pub(crate) struct Listener {
    pub(crate) url: String,
    requests: mpsc::UnboundedReceiver<Request>,
}

impl Listener {
    pub(crate) async fn new<const N: usize>(answers: [&'static str; N]) -> Self {
        let mut socket = TestSocket::bind().await;
        let url = format!("http://{}/hook?token=in-the-url", socket.address());
        let (seen, requests) = mpsc::unbounded_channel();
        let mut answers = answers.into_iter();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = socket.accept().await {
                let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
                let request = loop {
                    let count = stream.read(&mut buffer).await.unwrap_or(0);
                    read.extend_from_slice(&buffer[..count]);
                    let text = String::from_utf8_lossy(&read).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                    if body.len() >= length.parse().unwrap() {
                        break Request { head: head.replace("\r\n", "\n"), body: body.to_owned() };
                    }
                };
                let answer = answers.next().unwrap_or("200 OK");
                let answer = format!("HTTP/1.1 {answer}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = seen.send(request);
            }
        });
        Self { url, requests }
    }

    async fn next(&mut self) -> Request {
        // So that a test without it ends.
        tokio::time::timeout(Duration::from_secs(60), self.requests.recv()).await.unwrap().unwrap()
    }
}

/// A program that asks before each command, and whose configuration names the webhook.
fn asking(workspace: &TempWorkspace, url: &str) -> Program {
    asking_for(workspace, url, 3000)
}

fn asking_for(workspace: &TempWorkspace, url: &str, expire_seconds: u32) -> Program {
    let notify = format!("[notify]\nwebhook = '{url}'\nsecret = 'HOOK_KEY'\n");
    let approvals = format!("[approvals]\nhold_seconds = 0\nexpire_seconds = {expire_seconds}\n");
    let rules = "[[profiles.all.rules]]\ntool = 'bash'\ndecide = 'ask'\nwhy = 'a test'\n";
    workspace.write_beside("operator.toml", &[notify.as_str(), approvals.as_str(), rules].concat());
    program(workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml")).variable("HOOK_KEY", SECRET)
}

fn ask(program: &Program, command: &str) -> String {
    let ran = program.run(&["--json", "call", "bash", &json!({ "command": command }).to_string()]);
    let id = ran.json()["data"]["approvalId"].as_str().map(str::to_owned);
    assert!(id.is_some(), "{ran:?}");
    id.unwrap()
}

/// Ends a program as an operator does; what it wrote to standard error.
fn end(workspace: &TempWorkspace, child: Child) -> String {
    Program::new("/bin/kill", workspace).bare().run(&["-TERM", &child.id().to_string()]);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    errors
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_is_told_of_an_ask_and_of_its_end_and_can_check_who_says_so() {
    let workspace = TempWorkspace::new();
    let mut listener = Listener::new(["500 Internal Server Error", "302 Found\r\nlocation: /elsewhere"]).await;
    let program = asking(&workspace, &listener.url);
    let mut watching = program.command(&["--json", "review", "watch", "--webhook"]);
    let mut watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let id = ask(&program, &format!("echo {IN_ARGUMENTS}"));
    lines.next().unwrap().unwrap();
    let mut first = listener.next().await;
    let opened = first.json();
    assert_eq!((&opened["type"], &opened["data"]["id"]), (&json!("ask.opened"), &json!(id)), "{opened}");
    let expected =
        json!({ "kind": "approval", "state": "open", "tool": "bash", "title": "Run a command", "risk": "executes" });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&opened["data"][field], value, "{field}: {opened}");
    }
    // Neither a failure nor a redirect is a success: it comes again, as the same message.
    for _ in 0..2 {
        let again = listener.next().await;
        assert!(first.is_signed() && again.is_signed(), "{again:?}");
        assert_eq!((again.header("webhook-id"), &again.body), (first.header("webhook-id"), &first.body));
        assert!(again.head.starts_with("POST /hook?token=in-the-url "), "{again:?}");
        first = again;
    }
    assert_eq!(program.run(&["review", "decide", &id, "--deny=a comment of the person"]).code, Some(0));
    let decided = listener.next().await;
    assert!(decided.is_signed() && decided.header("webhook-id") != first.header("webhook-id"), "{decided:?}");
    let told = decided.json();
    assert_eq!((&told["type"], &told["data"]["id"]), (&json!("ask.decided"), &json!(id)), "{told}");
    assert_eq!((&told["data"]["answer"], &told["data"]["answeredBy"]), (&json!("deny"), &json!("local")), "{told}");
    for request in [&first, &decided] {
        for hidden in [IN_ARGUMENTS, "comment of the person", "whsec_", "dGhpcnR5"] {
            assert!(!format!("{request:?}").contains(hidden), "{hidden}: {request:?}");
        }
    }
    let errors = end(&workspace, watching);
    assert!(!errors.contains("whsec_") && !errors.contains("in-the-url"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_tells_of_the_asks_of_its_projects_also_of_those_that_another_host_opens() {
    let workspace = TempWorkspace::new();
    let mut listener = Listener::new([]).await;
    let program = asking(&workspace, &listener.url);
    let before = ask(&program, "echo before");
    let mut serving = program.command(&["--json", "serve", "--listen", "127.0.0.1:0"]);
    let serving = serving.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let opened = listener.next().await;
    assert!(opened.is_signed(), "{opened:?}");
    assert_eq!((&opened.json()["type"], &opened.json()["data"]["id"]), (&json!("ask.opened"), &json!(before)));
    let after = ask(&program, "echo after");
    assert_eq!(listener.next().await.json()["data"]["id"], json!(after));
    assert_eq!(program.run(&["review", "decide", &before, "--allow"]).code, Some(0));
    let decided = listener.next().await.json();
    assert_eq!((&decided["type"], &decided["data"]["id"]), (&json!("ask.decided"), &json!(before)), "{decided}");
    // Told at the end, though the next look would have been later.
    assert_eq!(program.run(&["review", "decide", &after, "--deny"]).code, Some(0));
    end(&workspace, serving);
    assert_eq!(listener.next().await.json()["data"]["id"], json!(after));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ask_that_nobody_answers_in_time_is_told_as_expired() {
    let workspace = TempWorkspace::new();
    let mut listener = Listener::new([]).await;
    let program = asking_for(&workspace, &listener.url, 2);
    let mut watching = program.command(&["--json", "review", "watch", "--webhook"]);
    let watching = watching.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let id = ask(&program, "echo late");
    for event in ["ask.opened", "ask.expired"] {
        let told = listener.next().await.json();
        assert_eq!((&told["type"], &told["data"]["id"]), (&json!(event), &json!(id)), "{told}");
    }
    end(&workspace, watching);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_webhook_is_said_without_its_secrets() {
    let workspace = TempWorkspace::new();
    let mut listener = Listener::new(["200 OK", "410 Gone"]).await;
    let program = asking(&workspace, &listener.url);
    let test = program.run(&["review", "webhook-test"]);
    assert_eq!(test.code, Some(0), "{test:?}");
    let request = listener.next().await;
    assert!(request.is_signed() && request.json()["type"] == "toolhost.test", "{request:?}");
    let gone = program.run(&["review", "webhook-test"]);
    assert!(gone.code == Some(1) && gone.stderr.contains("410"), "{gone:?}");
    let listed = program.run(&["key", "list"]);
    assert!(listed.stdout.contains("HOOK_KEY"), "{listed:?}");
    for (url, key, said) in [
        ("http://hooks.example.org/in-the-url", SECRET, "https://"),
        (listener.url.as_str(), "whsec_c2hvcnQ=", "the key HOOK_KEY in the environment"),
        (listener.url.as_str(), "", "toolhost key set HOOK_KEY"),
    ] {
        let program = asking(&workspace, url).variable("HOOK_KEY", key);
        for command in ["review webhook-test", "review watch --webhook", "serve --listen 127.0.0.1:0"] {
            let ran = program.run(&command.split(' ').collect::<Vec<_>>());
            assert!(matches!(ran.code, Some(1 | 2)) && ran.stderr.contains(said), "{said}: {ran:?}");
            assert!(!ran.stderr.contains("c2hvcnQ") && !ran.stderr.contains("in-the-url"), "{ran:?}");
        }
    }
    workspace.write_beside("operator.toml", "");
    let none = program.run(&["review", "watch", "--webhook"]);
    assert!(none.code == Some(2) && none.stderr.contains("[notify]"), "{none:?}");
}

/// A program that asks before each command, and whose operator lets webhooks of projects go to this listener.
fn allowing(workspace: &TempWorkspace, allowed: &str) -> Program {
    let notify = format!("[notify]\nproject_webhooks = ['{allowed}']\nsecret = 'HOOK_KEY'\n");
    let rules =
        "[approvals]\nhold_seconds = 0\n[[profiles.all.rules]]\ntool = 'bash'\ndecide = 'ask'\nwhy = 'a test'\n";
    workspace.write_beside("operator.toml", &[&notify, rules].concat());
    program(workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml")).variable("HOOK_KEY", SECRET)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_has_the_asks_of_a_project_told_to_a_server_of_theirs() {
    let workspace = TempWorkspace::new();
    let (mut mine, mut other) = (Listener::new([]).await, Listener::new([]).await);
    let program = allowing(&workspace, mine.url.split_once("/hook").unwrap().0);
    let (token, key) = token(&program, &ALL_RIGHTS);
    let server = Served::start(&program, &[]);
    let address = format!("/api/v1/projects/{key}/webhooks");
    let body = json!({ "url": mine.url }).to_string();
    let added = server.send(&token, ("POST", &address), &body).await.json()["data"].clone();
    let id = added["id"].as_str().unwrap().to_owned();
    let secret = key_of(added["secret"].as_str().unwrap());
    // Its own secret, and not the operator's.
    assert!(secret != KEY && secret.len() == 32, "{added}");
    let listed = server.send(&token, ("GET", &address), "").await;
    assert_eq!(listed.json()["data"][0]["id"], json!(id), "{listed:?}");
    assert!(!listed.body.contains("whsec_"), "{listed:?}");
    let tested = server.send(&token, ("POST", &format!("{address}/{id}/test")), "").await.json();
    assert_eq!(tested["data"]["status"], json!(200), "{tested}");
    let test = mine.next().await;
    assert!(test.json()["type"] == "toolhost.test" && test.is_signed_by(&secret) && !test.is_signed(), "{test:?}");
    let first = ask(&program, "echo first");
    let opened = mine.next().await;
    assert_eq!((&opened.json()["type"], &opened.json()["data"]["id"]), (&json!("ask.opened"), &json!(first)));
    assert!(opened.is_signed_by(&secret), "{opened:?}");
    // One that is added later is told of what is open then, by a secret of its own.
    let body = json!({ "url": other.url }).to_string();
    let refused = server.send(&token, ("POST", &address), &body).await;
    assert_eq!(refused.status, 403, "the operator has not listed it: {refused:?}");
    let more = program.run(&["--json", "webhook", "add", &mine.url]).json();
    let more_secret = key_of(more["secret"].as_str().unwrap());
    let again = mine.next().await;
    assert!(again.is_signed_by(&more_secret) && !again.is_signed_by(&secret), "{again:?}");
    // One that is removed is told nothing more.
    let removed = server.send(&token, ("DELETE", &format!("{address}/{id}")), "").await;
    assert_eq!(removed.status, 200, "{removed:?}");
    let gone = server.send(&token, ("DELETE", &format!("{address}/{id}")), "").await;
    assert_eq!(gone.status, 404, "{gone:?}");
    let audit = program.run(&["--json", "audit", "show", "--tool", "webhook.add"]).stdout;
    assert!(audit.contains(&id) && !audit.contains("in-the-url") && !audit.contains("whsec_"), "{audit}");
    assert_eq!(server.end(), Some(0));
    // A list that the operator has made shorter holds for those that are there.
    let program = allowing(&workspace, other.url.split_once("/hook").unwrap().0);
    let test = program.run(&["webhook", "test", more["id"].as_str().unwrap()]);
    assert!(test.code == Some(3) && test.stderr.contains("the operator does not let"), "{test:?}");
    let listed = program.run(&["webhook", "list"]);
    assert!(listed.stdout.contains(more["id"].as_str().unwrap()), "{listed:?}");
    assert!(other.requests.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_owners_have_webhooks_and_only_where_the_operator_lets_them() {
    let workspace = TempWorkspace::new();
    let listener = Listener::new([]).await;
    let program = allowing(&workspace, &listener.url.replace("?token=in-the-url", ""));
    assert_eq!(program.run(&["member", "add", "eve", "editor"]).code, Some(0));
    let eve = ["--for", "eve", "--right", "read", "--right", "call", "--right", "manage"];
    let (of_eve, key) = token(&program, &eve);
    let (reading, _) = token(&program, &["--right", "read", "--right", "call"]);
    let server = Served::start(&program, &[]);
    let address = format!("/api/v1/projects/{key}/webhooks");
    let body = json!({ "url": listener.url }).to_string();
    for token in [&of_eve, &reading] {
        for (method, path, body) in [
            ("GET", address.clone(), ""),
            ("POST", address.clone(), body.as_str()),
            ("DELETE", format!("{address}/wh_1"), ""),
            ("POST", format!("{address}/wh_1/test"), ""),
        ] {
            assert_eq!(server.send(token, (method, &path), body).await.status, 403, "{method} {path}");
        }
    }
    assert_ne!(program.run(&["--user", "eve", "webhook", "add", &listener.url]).code, Some(0));
    for url in ["http://169.254.169.254/latest", "https://hooks.example.org/", "file:///etc/passwd", "x"] {
        let added = program.run(&["webhook", "add", url]);
        assert_ne!(added.code, Some(0), "{url}: {added:?}");
    }
    for count in 0..10 {
        assert_eq!(program.run(&["webhook", "add", &listener.url]).code, Some(0), "{count}");
    }
    let full = program.run(&["webhook", "add", &listener.url]);
    assert!(full.code != Some(0) && full.stderr.contains("10 webhooks"), "{full:?}");
    workspace.write_beside("operator.toml", "");
    let none = program.run(&["webhook", "add", &listener.url]);
    assert!(none.code != Some(0) && none.stderr.contains("project_webhooks"), "{none:?}");
}
