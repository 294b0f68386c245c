//! The one way out: a profile's hosts, through the proxy, in the full tier.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Error, Executor, Fence, Watch};
use toolhost_sandbox::FenceChoice;

use crate::room::Room;

/// A web server on this machine's loopback that tells who asked for what.
struct Server {
    port: u16,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // Ends with the test program.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    head.push(byte[0]);
                }
                let said = format!("served: {}", String::from_utf8_lossy(&head).replace("\r\n", "|"));
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len());
                // Whoever has gone does not need the answer.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { port }
    }
}

/// Says `request` (in the escapes of `printf`) to the proxy and prints the answer.
fn ask(request: &str) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/3128; printf '{request}' >&3; timeout 10 cat <&3")
}

fn get(url: &str, host: &str) -> String {
    ask(&format!(r"GET {url} HTTP/1.1\r\nHost: {host}\r\nX-Mine: yes\r\n\r\n"))
}

fn tunnel(place: &str) -> String {
    ask(&format!(r"CONNECT {place} HTTP/1.1\r\n\r\nGET /in HTTP/1.1\r\n\r\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_host_is_reached_through_the_proxy() {
    let server = Server::start();
    let place = format!("127.0.0.1:{}", server.port);
    let room = Room::fenced(FenceChoice::Full);
    let hosts = [place.clone()];
    for (script, expected) in [
        (get(&format!("http://{place}/a/b?c=d"), &place), "served: GET /a/b?c=d HTTP/1.1|"),
        (get(&format!("http://{place}"), &place), "served: GET / HTTP/1.1|"),
        (tunnel(&place), "served: GET /in HTTP/1.1|"),
    ] {
        let result = room.bash_with_hosts(&script, &hosts).await.unwrap();
        assert!(result.stdout.text.contains(expected), "{script}: {result:?}");
    }
    // The header that names the host is the proxy's, whatever the command wrote.
    let result = room.bash_with_hosts(&get(&format!("http://{place}/"), "elsewhere.example"), &hosts).await.unwrap();
    assert!(result.stdout.text.contains(&format!("Host: {place}|")), "{result:?}");
    assert!(result.stdout.text.contains("X-Mine: yes|") && !result.stdout.text.contains("elsewhere"), "{result:?}");
    let told = room.bash_with_hosts("echo $http_proxy $HTTPS_PROXY", &hosts).await.unwrap();
    assert_eq!(told.stdout.text, "http://127.0.0.1:3128 http://127.0.0.1:3128\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_else_is_refused_by_the_proxy() {
    let server = Server::start();
    let other = Server::start();
    let port = server.port;
    let room = Room::fenced(FenceChoice::Full);
    // By name it is granted and still refused: it leads to an address that is not public.
    let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "*.example.org".to_owned()];
    for (place, status) in [
        (format!("localhost:{port}"), "403"),
        (format!("127.0.0.1:{}", other.port), "403"),
        ("127.0.0.1:22".to_owned(), "403"),
        ("127.0.0.1:80".to_owned(), "403"),
        (format!("127.0.0.2:{port}"), "403"),
        (format!("0.0.0.0:{port}"), "403"),
        ("example.org:80".to_owned(), "403"),
        ("169.254.169.254:80".to_owned(), "403"),
        (format!("[::ffff:127.0.0.1]:{port}"), "403"),
        (format!("[::1]:{port}"), "403"),
        (format!("[::]:{port}"), "403"),
        (format!("2130706433:{port}"), "400"),
        (format!("0x7f000001:{port}"), "40"),
        (format!("0x7f.0.0.1:{port}"), "400"),
        (format!("017700000001:{port}"), "400"),
        (format!("127.1:{port}"), "400"),
        (format!("127.0.0.1.:{port}0"), "40"),
        (format!("127.0.0.1@elsewhere.example:{port}"), "400"),
        (format!(r"127.0.0.1\000.example.org:{port}"), "400"),
        (format!("*.example.org:{port}"), "400"),
        (format!("127.0.0.1%%00:{port}"), "400"),
        ("127.0.0.1".to_owned(), "40"),
        (String::new(), "400"),
    ] {
        for script in [tunnel(&place), get(&format!("http://{place}/"), "x")] {
            let result = room.bash_with_hosts(&script, &hosts).await.unwrap();
            let refused = result.stdout.text.starts_with(&format!("HTTP/1.1 {status}"));
            assert!(refused && !result.stdout.text.contains("served"), "{script}: {result:?}");
        }
    }
    for request in [
        "GET / HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n",
        "nonsense\\r\\n\\r\\n",
        "GET ftp://127.0.0.1/ HTTP/1.1\\r\\n\\r\\n",
    ] {
        let result = room.bash_with_hosts(&ask(request), &hosts).await.unwrap();
        assert!(result.stdout.text.starts_with("HTTP/1.1 400"), "{request}: {result:?}");
    }
    let endless = "exec 3<>/dev/tcp/127.0.0.1/3128; head -c 100000 /dev/zero | tr '\\0' x >&3; timeout 10 cat <&3";
    let result = room.bash_with_hosts(endless, &hosts).await.unwrap();
    assert!(!result.timed_out && !result.stdout.text.contains("200"), "{result:?}");
}

/// What a command may try to reach something outside its own network. The probe and a `socket` that listens are in the workspace.
const WAYS_OUT: [&str; 9] = [
    "exec 3<>/dev/tcp/1.1.1.1/80",
    "exec 3<>/dev/tcp/169.254.169.254/80",
    "./probe unix-path socket",
    "./probe unix",
    "./probe netlink",
    "./probe vsock",
    "./probe packet",
    "./probe unshare-net",
    "getent ahosts example.org",
];
/// SCTP, MPTCP and raw sockets.
const OTHER_PROTOCOLS: [&str; 3] = [
    "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)'",
    "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)'",
    "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
];

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_way_past_the_proxy() {
    let server = Server::start();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let room = Room::fenced(FenceChoice::Full);
    room.bring_probe();
    let listener = std::os::unix::net::UnixListener::bind(room.ws().join("socket")).unwrap();
    let hosts = [format!("127.0.0.1:{}", server.port)];
    let direct = format!("exec 3<>/dev/tcp/127.0.0.1/{}", server.port);
    for script in WAYS_OUT.iter().copied().chain([&*direct, "./probe unix-path /run/toolhost-proxy.sock"]) {
        let result = room.bash_with_hosts(script, &hosts).await.unwrap();
        assert!((1..126).contains(&result.exit_code), "{script}: {result:?}");
    }
    // A datagram may be sent, but only into the empty network of the command's own.
    let send = format!("echo sent > /dev/udp/127.0.0.1/{}", udp.local_addr().unwrap().port());
    room.bash_with_hosts(&send, &hosts).await.unwrap();
    assert!(udp.recv(&mut [0; 16]).is_err(), "a datagram came out");
    drop(listener);
    let links = room.bash_with_hosts("cat /proc/net/dev | tail -n +3 | cut -d: -f1", &hosts).await.unwrap();
    assert_eq!(links.stdout.text.trim(), "lo");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_end_or_replace_the_bridge() {
    let server = Server::start();
    let place = format!("127.0.0.1:{}", server.port);
    let room = Room::fenced(FenceChoice::Full);
    let script = format!(
        "for pid in $(ls /proc | grep '^[0-9]*$'); do [ $pid = $$ ] || kill -KILL $pid; done 2>/dev/null
        rm -f /run/toolhost-proxy.sock; {}",
        get(&format!("http://{place}/"), &place)
    );
    let result = room.bash_with_hosts(&script, &[place]).await.unwrap();
    assert!(result.stdout.text.contains("served: GET /"), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_not_granted_where_nothing_can_hold_a_command_to_them() {
    let room = Room::fenced(FenceChoice::Landlock);
    let refused = room.bash_with_hosts("true", &["example.org".to_owned()]).await;
    assert!(matches!(refused, Err(Error::NoFence { .. })), "{refused:?}");
    let report = room.executor.report().await;
    assert!(report.holes.iter().any(|hole| hole.contains("no host can be granted")), "{report:?}");
}

/// Answers one connection with `hello`, and asks for it from another process of the same command.
const SERVE_AND_ASK: &str = r#"python3 - <<'E'
import os, socket
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
six = socket.socket(socket.AF_INET6); six.bind(("::1", 0)); six.listen()
if os.fork() == 0:
    for listener in (server, six):
        client, _ = listener.accept(); client.sendall(b"hello "); client.close()
    os._exit(0)
for listener in (server, six):
    print(socket.create_connection(listener.getsockname()[:2]).recv(16).decode(), end="")
E"#;

async fn with_loopback(room: &Room, script: &str) -> toolhost_contract::workspace::CommandResult {
    let fence = Fence { loopback: true, ..Fence::closed(Access::Write) };
    let command = Command::new(["bash", "-c", script], Duration::from_secs(20));
    room.executor.run(command, &fence, Watch::unattended()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_one_command_reach_each_other_over_its_own_loopback() {
    let room = Room::fenced(FenceChoice::Full);
    let result = with_loopback(&room, SERVE_AND_ASK).await;
    assert_eq!(result.stdout.text, "hello hello ", "{result:?}");
    // Nobody grants it by granting nothing.
    let refused = room.bash(SERVE_AND_ASK, Access::Write).await;
    assert!(refused.exit_code != 0 && refused.stderr.text.contains("Operation not permitted"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loopback_leads_nowhere_else() {
    let server = Server::start();
    let room = Room::fenced(FenceChoice::Full);
    room.bring_probe();
    let _listener = std::os::unix::net::UnixListener::bind(room.ws().join("socket")).unwrap();
    let direct = ["127.0.0.1", "localhost"].map(|name| format!("exec 3<>/dev/tcp/{name}/{}", server.port));
    for script in WAYS_OUT.iter().copied().chain(direct.iter().map(String::as_str)).chain(OTHER_PROTOCOLS) {
        let result = with_loopback(&room, script).await;
        assert!((1..126).contains(&result.exit_code), "{script}: {result:?}");
    }
    // A server of one command is not there for the next, nor for another that runs meanwhile.
    let serving = "python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 &
        until exec 3<>/dev/tcp/127.0.0.1/8765; do sleep 0.05; done 2>/dev/null; touch up
        until test -e tried; do sleep 0.05; done";
    let asking =
        "until test -e up; do sleep 0.05; done; (exec 3<>/dev/tcp/127.0.0.1/8765); code=$?; touch tried; exit $code";
    let (served, asked) = tokio::join!(with_loopback(&room, serving), with_loopback(&room, asking));
    assert_eq!((served.exit_code, asked.exit_code), (0, 1), "{served:?} {asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mounts_there_is_no_loopback() {
    let room = Room::fenced(FenceChoice::Landlock);
    let refused = with_loopback(&room, SERVE_AND_ASK).await;
    assert!(refused.exit_code != 0 && refused.stderr.text.contains("Operation not permitted"), "{refused:?}");
}
