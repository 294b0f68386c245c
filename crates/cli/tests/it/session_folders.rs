//! `/tmp` and home of commands last for a session of a client, and for no other.

use serde_json::{Value, json};
use toolhost_testkit::{Era, HttpReply, McpProcess, TempWorkspace, http, until};

use crate::room::program;
use crate::served::{Served, token};

const LEAVE: &str = "echo tmp > /tmp/left; echo home > ~/.left; git config --global user.name planted";
const LOOK: &str = "cat /tmp/left ~/.left 2>/dev/null || echo nothing";

async fn said(host: &mut McpProcess, command: &str) -> String {
    let result = host.call("bash", json!({ "command": command })).await;
    result["structuredContent"]["data"]["stdout"].as_str().unwrap_or_else(|| unreachable!("{result}")).to_owned()
}

/// Whether the `/tmp` of some session has a file of this name.
fn is_marked(mark: &str) -> bool {
    std::fs::read_dir("/var/tmp").unwrap().any(|entry| entry.unwrap().path().join("tmp").join(mark).exists())
}

fn mark(workspace: &TempWorkspace) -> String {
    workspace.root().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_commands_of_one_client_share_tmp_and_home_and_another_client_does_not() {
    for era in [Era::Session, Era::Stateless] {
        let workspace = TempWorkspace::repository(&[]);
        // The workspace and a toolchain below the home, as people have them.
        let home = workspace.root().parent().unwrap().to_owned();
        std::fs::create_dir_all(home.join(".cargo/bin")).unwrap();
        let program = program(&workspace).variable("HOME", home);
        let mut one = McpProcess::open(&program, &["--profile", "developer"], era).await;
        let mut other = McpProcess::open(&program, &["--profile", "developer"], era).await;
        assert_eq!(said(&mut one, LOOK).await, "nothing\n", "{era:?}");
        said(&mut one, LEAVE).await;
        assert_eq!(said(&mut one, LOOK).await, "tmp\nhome\n", "{era:?}");
        assert_eq!(said(&mut other, LOOK).await, "nothing\n", "{era:?}");
        let called = program.run(&["--json", "call", "bash", &json!({ "command": LOOK }).to_string()]);
        assert!(called.stdout.contains("nothing"), "{called:?}");
        // What a command leaves in its home is nothing to the git of the host's tools.
        workspace.write("a.txt", "x");
        let committed = one.call("git_commit", json!({ "message": "mine" })).await;
        assert!(!committed.to_string().contains("planted"), "{committed}");
        let author = workspace.git(&["log", "-1", "--format=%an"]);
        assert!(!author.contains("planted"), "{author}");

        let mark = mark(&workspace);
        said(&mut one, &format!("touch /tmp/{mark}")).await;
        assert!(is_marked(&mark), "{era:?}");
        assert!(one.close().await.success() && other.close().await.success());
        assert!(!is_marked(&mark), "{era:?}: they go with their client");
    }
}

/// One client over HTTP, with a token and perhaps a session.
struct OverHttp<'a> {
    server: &'a Served,
    token: &'a str,
    session: Option<String>,
}

impl OverHttp<'_> {
    async fn send(&self, method: &str, message: &Value) -> HttpReply {
        let bearer = format!("Bearer {}", self.token);
        let mut headers = vec![("authorization", bearer.as_str()), ("accept", "application/json, text/event-stream")];
        match &self.session {
            Some(session) => {
                headers.extend([("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")]);
            }
            None if message["method"] == "tools/call" => headers.extend([
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", "bash"),
            ]),
            None => {}
        }
        http(self.server.address("address"), (method, "/mcp"), &headers, &message.to_string()).await
    }

    async fn open(server: &Served, token: &str) -> String {
        let client = OverHttp { server, token, session: None };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let reply = client.send("POST", &message).await;
        reply.header("mcp-session-id").unwrap_or_else(|| unreachable!("{reply:?}")).to_owned()
    }

    async fn said(&self, command: &str) -> String {
        let mut params = json!({ "name": "bash", "arguments": { "command": command } });
        if self.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
        }
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        let reply = self.send("POST", &message).await;
        let text = reply.body.lines().find_map(|line| line.strip_prefix("data: {")).map(|json| format!("{{{json}"));
        let json: Value = serde_json::from_str(text.as_ref().unwrap_or(&reply.body)).unwrap();
        json["result"]["structuredContent"]["data"]["stdout"]
            .as_str()
            .unwrap_or_else(|| unreachable!("{reply:?}"))
            .to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_session_over_http_has_its_own_and_calls_without_one_share_their_tokens() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let ((one, key), (two, _)) = (token(&program, &[]), token(&program, &[]));
    let server = Served::start(&program, &[]);
    let of = |token, session| OverHttp { server: &server, token, session };
    let first = of(&one, Some(OverHttp::open(&server, &one).await));
    let second = of(&one, Some(OverHttp::open(&server, &one).await));
    let (stateless, other) = (of(&one, None), of(&two, None));
    for (client, who) in [(&first, "a session"), (&second, "another session"), (&stateless, "no session")] {
        assert_eq!(client.said(LOOK).await, "nothing\n", "{who}");
        client.said(LEAVE).await;
        assert_eq!(client.said(LOOK).await, "tmp\nhome\n", "{who}");
    }
    assert_eq!(other.said(LOOK).await, "nothing\n", "another token");
    let called = server.call(&one, &key, "bash", json!({ "command": LOOK })).await;
    assert!(called.body.contains("nothing"), "the JSON API has no session: {called:?}");
    // A mark by which the folder of this session is known.
    let mark = mark(&workspace);
    first.said(&format!("touch /tmp/{mark}")).await;
    assert!(is_marked(&mark));
    assert!(first.send("DELETE", &json!({})).await.status < 300);
    until("the session has ended", || !is_marked(&mark)).await;
    second.said(&format!("touch /tmp/{mark}")).await;
    assert!(is_marked(&mark));
    assert_eq!(server.end(), Some(0));
    assert!(!is_marked(&mark), "the server has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_fills_them_is_told_what_is_full_and_what_to_do() {
    let workspace = TempWorkspace::new();
    workspace.write_beside("config.toml", "[commands]\ntmp = '16M'\ntmp_files = 1000\nsession_folders = 4\n");
    let program = program(&workspace).argument("--config").argument(workspace.beside("config.toml"));
    let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
    for (fills, told) in [
        ("head -c 20M /dev/zero > /tmp/f", "`/tmp` held more than its limit of 16 MiB or 1000 files (limit"),
        ("head -c 20M /dev/zero > ~/f", "`~` held more than its limit of 16 MiB or 1000 files (limit"),
        ("head -c 90M /dev/zero > ~/f", "`~` held more than its limit of 16 MiB or 1000 files, and was emptied (limit"),
    ] {
        let full = host.call("bash", json!({ "command": format!("{fills}; sleep 1000") })).await;
        let text = full["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(told) && text.contains("hint: "), "{text}");
        assert_eq!(full["structuredContent"]["error"]["kind"], "limit", "{full}");
        assert_eq!(said(&mut host, "rm -f /tmp/f ~/f; ls /tmp ~ | grep -w f || echo room").await, "room\n", "{fills}");
    }
    assert!(host.close().await.success());
}

/// A host that is killed leaves them to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_host_left_the_next_one_removes() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let mark = mark(&workspace);
    let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
    said(&mut host, &format!("{LEAVE}; touch /tmp/{mark}")).await;
    assert!(is_marked(&mark));
    host.kill().await;
    let mut next = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
    assert_eq!(said(&mut next, LOOK).await, "nothing\n");
    until("it is swept", || !is_marked(&mark)).await;
    assert!(next.close().await.success());
}
