//! What the doors over HTTP cost beside peers, and how soon an event is heard.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use crate::bench::http::{Connection, HttpServer};
use crate::bench::playground::PAGE;
use crate::bench::records::{self, Engine};
use crate::bench::rows::{HTTP_CONNECTIONS, READS, READS_PER_TURN, Stage, WARM_UP, median_ms, reads_over_http};
use crate::bench::table::Measured;

/// A peer's name for its tool that reads a file.
const READ: &str = "read_text_file";
/// What mcp-proxy calls the server behind it, and puts before its tools.
const BEHIND: &str = "files";
/// How long a peer may take to start.
const START_MAX: Duration = Duration::from_secs(30);
const EVENTS: usize = 300;

/// A peer that listens. Dropped, it ends.
pub(crate) struct PeerServer {
    child: Child,
    name: &'static str,
    address: String,
    path: &'static str,
    tool: String,
    arguments: Value,
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        // Where it has ended before, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Copy)]
pub(crate) enum HttpPeer {
    /// A gateway in Rust, in front of `rust-mcp-filesystem`.
    McpProxy,
    /// The framework that most servers in Python are made with.
    Fastmcp,
}

impl PeerServer {
    /// `None`: it is not installed.
    fn start(stage: &Stage, peer: HttpPeer) -> Result<Option<Self>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (name, path, tool, mut command) = match peer {
            HttpPeer::McpProxy => {
                let Some((program, server)) = stage.peers.mcp_proxy() else { return Ok(None) };
                let config = stage.playground.state("mcp-proxy").with_extension("toml");
                std::fs::create_dir_all(config.parent().context("it is below the playground")?)?;
                std::fs::write(&config, proxy_config(port, &server, &stage.playground.pages()))?;
                let mut command = Command::new(program);
                command.arg("--config").arg(config);
                ("mcp-proxy", "/", format!("{BEHIND}/{READ}"), command)
            }
            HttpPeer::Fastmcp => {
                let Some(mut command) = stage.peers.fastmcp_server(&stage.root) else { return Ok(None) };
                command.arg(port.to_string());
                ("fastmcp", "/mcp", READ.to_owned(), command)
            }
        };
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("cannot start {name}"))?;
        let address = format!("127.0.0.1:{port}");
        let arguments = json!({ "path": stage.playground.page() });
        let mut server = Self { child, name, address, path, tool, arguments };
        server.wait_until_it_listens()?;
        Ok(Some(server))
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let given_up = Instant::now() + START_MAX;
        while TcpStream::connect(&self.address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(anyhow!("{} ended: {status}", self.name));
            }
            if Instant::now() >= given_up {
                return Err(anyhow!("{} does not listen", self.name));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// A connection on which a file was read.
    fn connect(&self) -> Result<Connection> {
        let mut connection = Connection::to_peer(&self.address, self.path).with_context(|| self.name)?;
        for _ in 0..WARM_UP {
            self.read(&mut connection)?;
        }
        Ok(connection)
    }

    fn read(&self, connection: &mut Connection) -> Result<Duration> {
        connection.call_peer(&self.tool, &self.arguments)
    }
}

fn proxy_config(port: u16, server: &std::path::Path, pages: &std::path::Path) -> String {
    format!(
        "[proxy]\nname = \"bench\"\nseparator = \"/\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\
         [[backends]]\nname = \"{BEHIND}\"\ntransport = \"stdio\"\ncommand = {server:?}\nargs = [{pages:?}]\n"
    )
}

/// A read of ours over HTTP beside a peer's, one at a time.
pub(crate) fn read_beside(stage: &Stage, peer: HttpPeer) -> Result<Measured> {
    let (server, peer) = (HttpServer::start(stage, 1)?, PeerServer::start(stage, peer)?);
    let mut ours = server.connect(0)?;
    for _ in 0..WARM_UP {
        ours.read(PAGE)?;
    }
    let mut theirs = peer.as_ref().map(|peer| Ok::<_, anyhow::Error>((peer, peer.connect()?))).transpose()?;
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    for _ in 0..READS / READS_PER_TURN {
        for _ in 0..READS_PER_TURN {
            our_times.push(ours.read(PAGE)?);
        }
        if let Some((peer, connection)) = &mut theirs {
            for _ in 0..READS_PER_TURN {
                peer_times.push(peer.read(connection)?);
            }
        }
    }
    let peer = theirs.map(|(peer, _)| Ok::<_, anyhow::Error>((peer.name, median_ms(peer_times)?))).transpose()?;
    Ok(Measured { ours: median_ms(our_times)?, peer })
}

/// Reads a second at 16 connections, ours beside a peer's.
pub(crate) fn reads_beside(stage: &Stage, peer: HttpPeer) -> Result<Measured> {
    let ours = reads_over_http(stage)?.ours;
    let Some(peer) = PeerServer::start(stage, peer)? else { return Ok(Measured { ours, peer: None }) };
    let connections = (0..HTTP_CONNECTIONS).map(|_| peer.connect()).collect::<Result<Vec<_>>>()?;
    // A tenth as many: some take a millisecond for each.
    let each = READS / 10;
    let began = Instant::now();
    thread::scope(|scope| {
        let reading = connections.into_iter().map(|mut connection| {
            let peer = &peer;
            scope.spawn(move || (0..each).try_for_each(|_| peer.read(&mut connection).map(drop)))
        });
        let reading: Vec<_> = reading.collect();
        reading.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?)
    })?;
    let count = (HTTP_CONNECTIONS * each) as f64;
    Ok(Measured { ours, peer: Some((peer.name, count / began.elapsed().as_secs_f64())) })
}

/// From the answer of a call that writes until a subscriber has heard of its end, which was committed before the answer: of a hundred,
/// the ninety-fifth.
pub(crate) fn event(stage: &Stage, engine: Engine) -> Result<Measured> {
    let database = match engine {
        Engine::Sqlite => None,
        Engine::Postgres => Some(records::postgres(&stage.root)?),
    };
    let server = HttpServer::start_on(stage, 1, database.as_ref().map(|(url, _)| url.as_str()))?;
    let (mut connection, subscriber) = (server.connect(0)?, server.subscribe()?);
    let mut times = Vec::new();
    for number in 0..EVENTS {
        let arguments = json!({ "path": "written.txt", "content": number.to_string() });
        let (call, answered) = server.call(&mut connection, "file.write", &arguments)?;
        times.push(subscriber.heard(&call)?.saturating_duration_since(answered));
    }
    times.sort_unstable();
    let time = times.get(times.len() * 95 / 100).context("nothing was measured")?;
    Ok(Measured { ours: time.as_secs_f64() * 1000.0, peer: None })
}
