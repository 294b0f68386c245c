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

/// Of the secret below, as the one who listens has it.
const KEY: &[u8] = b"thirty-two bytes that are shared";
const SECRET: &str = "whsec_dGhpcnR5LXR3byBieXRlcyB0aGF0IGFyZSBzaGFyZWQ=";
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
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let pad = |with: u8| (0..64).map(|at| KEY.get(at).unwrap_or(&0) ^ with).collect::<Vec<u8>>();
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

/// Listens on loopback. Each request is answered with the next status, and with 200 when there is none left.
struct Listener {
    url: String,
    requests: mpsc::UnboundedReceiver<Request>,
}

impl Listener {
    async fn new<const N: usize>(answers: [&'static str; N]) -> Self {
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
