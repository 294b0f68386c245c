//! The one way out for commands whose profile grants hosts.
//!
//! Inside the fence there is an empty network namespace. A bridge listens there on a loopback port and carries bytes to
//! a unix socket; behind it, on the host, this proxy speaks HTTP: `CONNECT host:port`, or an absolute-form request. It
//! looks the name up once, refuses addresses that are not public unless the rule names the address itself, and
//! connects to the very address it checked.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolhost_contract::workspace::HostRule;

/// The bridge's port inside the fence.
pub(crate) const PORT_INSIDE: u16 = 3128;
/// The host's socket as it appears inside the fence.
pub(crate) const SOCKET_INSIDE: &str = "/run/toolhost-proxy.sock";
/// Longest request head.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 100;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most connections one command may have open.
const CONNECTIONS_MAX: usize = 64;

/// A proxy for one command; gone when dropped.
pub(crate) struct Proxy {
    socket: PathBuf,
    task: tokio::task::JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Proxy {
    pub(crate) fn start(temp: &Path, rules: Vec<HostRule>) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("toolhost-net-").tempdir_in(temp)?;
        let socket = folder.path().join("proxy.sock");
        let listener = tokio::net::UnixListener::bind(&socket)?;
        // The command may run as another user; the folder keeps everybody else out.
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666))?;
        let rules: Arc<[HostRule]> = rules.into();
        let slots = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
                let rules = Arc::clone(&rules);
                connections.spawn(async move {
                    serve(stream, &rules).await;
                    drop(slot);
                });
            }
        });
        Ok(Self { socket, task, _folder: folder })
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A request's destination, and what to send there first.
struct Request {
    host: String,
    port: u16,
    /// Empty for `CONNECT`.
    first: Vec<u8>,
}

async fn serve(mut client: tokio::net::UnixStream, rules: &[HostRule]) {
    match open(&mut client, rules).await {
        // Either side closing ends the connection; there is nobody to tell.
        Ok(mut server) => drop(tokio::io::copy_bidirectional(&mut client, &mut server).await),
        Err((status, reason)) => {
            let body = format!("toolhost: {reason}\n");
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = client.write_all((head + &body).as_bytes()).await;
        }
    }
}

async fn open(
    client: &mut tokio::net::UnixStream,
    rules: &[HostRule],
) -> Result<tokio::net::TcpStream, (&'static str, String)> {
    let (head, rest) = read_head(client).await.map_err(|reason| ("400 Bad Request", reason))?;
    let request = parse(&head).map_err(|reason| ("400 Bad Request", reason))?;
    let refuse = |reason: String| ("403 Forbidden", reason);
    if !rules.iter().any(|rule| rule.grants(&request.host, request.port)) {
        return Err(refuse(format!("{}:{} is not among the hosts this profile grants", request.host, request.port)));
    }
    let address = resolve(&request.host, request.port).await.map_err(refuse)?;
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, tokio::net::TcpStream::connect(address)).await;
    let bad_gateway = |reason: String| ("502 Bad Gateway", reason);
    let mut server = match connecting {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => return Err(bad_gateway(format!("{}: {error}", request.host))),
        Err(_) => return Err(bad_gateway(format!("{}: timed out", request.host))),
    };
    let io = |error: std::io::Error| bad_gateway(error.to_string());
    if request.first.is_empty() {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.map_err(io)?;
    } else {
        server.write_all(&request.first).await.map_err(io)?;
    }
    server.write_all(&rest).await.map_err(io)?;
    Ok(server)
}

/// One address for the name. Not public: only if the rule named the address, which it then is.
async fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, port));
    }
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| format!("{host}: {error}"))?;
    let found: Vec<SocketAddr> = found.collect();
    // One private address among public ones is how a name is bent to the inside.
    if let Some(bad) = found.iter().find(|address| !is_public(address.ip())) {
        return Err(format!("{host} leads to {}, which is not a public address", bad.ip()));
    }
    found.first().copied().ok_or_else(|| format!("{host} has no address"))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && (64..128).contains(&b);
            let benchmark = a == 198 && (b == 18 || b == 19);
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                || shared
                || benchmark)
        }
        IpAddr::V6(v6) => {
            let [a, b, ..] = v6.segments();
            let embedded = v6
                .to_ipv4_mapped()
                .or_else(|| (a == 0x2002 || (a == 0x64 && b == 0xff9b)).then(|| v6.to_ipv4()).flatten());
            let inside = v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local();
            let tunnel = a == 0x2002 || a == 0x64 || (a == 0x2001 && b == 0);
            !inside && !tunnel && embedded.is_none_or(|v4| is_public(IpAddr::V4(v4)))
        }
    }
}

/// The request head, and what came after it.
async fn read_head(client: &mut tokio::net::UnixStream) -> Result<(Vec<u8>, Vec<u8>), String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let n = client.read(&mut chunk).await.map_err(|error| error.to_string())?;
        if n == 0 {
            return Err("the request ended early".to_owned());
        }
        bytes.extend_from_slice(&chunk[..n]);
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(format!("the request head is longer than {HEAD_BYTES_MAX} bytes"));
        }
    }
}

fn parse(head: &[u8]) -> Result<Request, String> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).map_err(|error| error.to_string())?;
    let (method, target) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
    if method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        return Ok(Request { host, port, first: Vec::new() });
    }
    let rest = target.strip_prefix("http://").ok_or("this proxy takes CONNECT and http:// requests only")?;
    let (place, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let (host, port) = authority(place, Some(80))?;
    let mut first = format!("{method} {path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n").into_bytes();
    for header in request.headers.iter() {
        // `Host` is set from the target, so that the two cannot differ; one request a connection, so that each is checked.
        let ours = ["host", "connection", "proxy-connection", "proxy-authorization"];
        if ours.iter().any(|name| header.name.eq_ignore_ascii_case(name)) {
            continue;
        }
        first.extend_from_slice(header.name.as_bytes());
        first.extend_from_slice(b": ");
        first.extend_from_slice(header.value);
        first.extend_from_slice(b"\r\n");
    }
    first.extend_from_slice(b"\r\n");
    Ok(Request { host, port, first })
}

/// Splits `host:port`; only characters of a name or an address, so that no parser further on reads it differently.
fn authority(text: &str, default_port: Option<u16>) -> Result<(String, u16), String> {
    let rule = HostRule::parse(text)?;
    if rule.host.starts_with("*.") {
        return Err(format!("`{text}` is not a host"));
    }
    let port = rule.port.or(default_port).ok_or_else(|| format!("`{text}` names no port"))?;
    let host = rule.host.strip_suffix('.').unwrap_or(&rule.host).to_owned();
    // `127.1`, `0x7f000001` and `2130706433` are addresses to some resolvers: only full names and full addresses here.
    let numeric = host.split('.').next_back().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
    if numeric && host.parse::<IpAddr>().is_err() {
        return Err(format!("`{text}` is not a host"));
    }
    Ok((host, port))
}

/// Inside the fence: the loopback port that programs are told is their proxy.
pub(crate) fn bridge_listener() -> std::io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", PORT_INSIDE))
}

/// Inside the fence: carries each connection to the host's socket, until the fence is gone.
pub(crate) fn bridge(listener: &TcpListener) {
    for client in listener.incoming().flatten() {
        std::thread::spawn(move || {
            let Ok(server) = UnixStream::connect(SOCKET_INSIDE) else {
                let mut client = client;
                // The program inside sees a closed connection either way.
                let _ = client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
                return;
            };
            carry(client, server);
        });
    }
}

fn carry(client: TcpStream, server: UnixStream) {
    let (Ok(mut client_reader), Ok(mut server_writer)) = (client.try_clone(), server.try_clone()) else { return };
    let up = std::thread::spawn(move || {
        let _ = std::io::copy(&mut client_reader, &mut server_writer);
        let _ = server_writer.shutdown(std::net::Shutdown::Write);
    });
    let (mut client, mut server) = (client, server);
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(std::net::Shutdown::Write);
    // A panic in the other direction has closed its half already.
    let _ = up.join();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_inside_are_not_public() {
        for inside in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fd00::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "255.255.255.255",
        ] {
            assert!(!is_public(inside.parse().expect("an address")), "{inside}");
        }
        for outside in ["93.184.216.34", "2606:2800:220:1::1"] {
            assert!(is_public(outside.parse().expect("an address")), "{outside}");
        }
    }

    #[test]
    fn destinations_that_other_parsers_read_differently_are_refused() {
        for bad in [
            "127.1:80",
            "2130706433:80",
            "0x7f.0.0.1:80",
            "a\0.example.org:80",
            "example.org",
            "*.example.org:80",
            "user@example.org:80",
        ] {
            assert!(authority(bad, None).is_err(), "{bad}");
        }
        assert_eq!(authority("Example.ORG.:443", None), Ok(("example.org".to_owned(), 443)));
    }
}
