//! A started `toolhost serve`, for tests.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toolhost_testkit::{HttpReply, Program, http};

/// A server, started as a person starts it. It is killed if a test forgets it.
pub(crate) struct Served {
    child: Child,
    /// Reads what it logs: a server whose log nobody reads would wait.
    log: Option<JoinHandle<String>>,
    /// What it says of itself.
    pub(crate) told: Value,
}

impl Served {
    pub(crate) fn start(program: &Program, arguments: &[&str]) -> Self {
        Self::start_at(program, "127.0.0.1:0", arguments)
    }

    pub(crate) fn start_at(program: &Program, address: &str, arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["--json", "serve", "--listen", address].iter().chain(arguments).copied().collect();
        let mut child = program.command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        let told = loop {
            assert_ne!(output.read_line(&mut text).unwrap(), 0, "it ended: {text}");
            if let Ok(told) = serde_json::from_str(&text) {
                break told;
            }
        };
        let mut errors = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut text = String::new();
            // What is no text ends the log.
            let _ = errors.read_to_string(&mut text);
            text
        });
        Self { child, log: Some(log), told }
    }

    /// An address that it tells of.
    pub(crate) fn address(&self, name: &str) -> SocketAddr {
        self.told[name].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn send(&self, token: &str, asked: (&str, &str), body: &str) -> HttpReply {
        self.send_with(token, asked, &[], body).await
    }

    pub(crate) async fn send_with(
        &self,
        token: &str,
        asked: (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> HttpReply {
        let bearer = format!("Bearer {token}");
        let headers: Vec<(&str, &str)> = [("authorization", bearer.as_str())].iter().chain(headers).copied().collect();
        http(self.address("address"), asked, &headers, body).await
    }

    pub(crate) async fn call(&self, token: &str, project: &str, tool: &str, arguments: Value) -> HttpReply {
        let body = json!({ "tool": tool, "arguments": arguments }).to_string();
        self.send(token, ("POST", &format!("/api/v1/projects/{project}/calls")), &body).await
    }

    /// Ends it as an operator does; how it ended.
    #[expect(clippy::disallowed_methods, reason = "an operator's shell")]
    pub(crate) fn end(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    /// Its resident memory, KiB.
    pub(crate) fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills it at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Kills it; what it wrote to its log.
    pub(crate) fn log(mut self) -> String {
        self.kill();
        self.log.take().unwrap().join().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The arguments of a token that may do everything.
pub(crate) const ALL_RIGHTS: [&str; 12] = [
    "--profile",
    "all",
    "--right",
    "call",
    "--right",
    "read",
    "--right",
    "run",
    "--right",
    "approve",
    "--right",
    "manage",
];

/// A token for the program's project, and the project's key.
pub(crate) fn token(program: &Program, arguments: &[&str]) -> (String, String) {
    let all: Vec<&str> = ["--json", "token", "create", "agent"].iter().chain(arguments).copied().collect();
    let made = program.run(&all);
    assert_eq!(made.code, Some(0), "{made:?}");
    let made = made.json();
    (made["token"].as_str().unwrap().to_owned(), made["project"].as_str().unwrap().to_owned())
}
