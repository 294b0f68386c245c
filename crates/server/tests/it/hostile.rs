//! Clients that mean harm, or do not know better.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolhost_server::http::HttpLimits;
use toolhost_testkit::{HttpStream, http, request};

use crate::rig::{Rig, house};

const ASKED: (&str, &str) = ("GET", "/api/v1/projects");

#[tokio::test]
async fn a_page_of_another_name_or_origin_reaches_nothing() {
    let rig = Rig::one().await;
    let token = rig.token(&["call", "read"]).await;
    let site = ("sec-fetch-site", "cross-site");
    for header in [("host", "evil.example"), ("origin", "http://evil.example"), ("origin", "null"), site] {
        for path in ["/api/v1/projects", "/mcp", "/healthz"] {
            let reply = rig.send_with(&token, ("GET", path), &[header], "").await;
            assert_eq!(reply.status, 403, "{header:?} {path}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn a_header_that_says_two_things_is_refused() {
    let rig = Rig::one().await;
    let (token, other) = (rig.token(&["read"]).await, rig.token_of(0, "other", &["all"], &["read"]).await);
    let bearer = format!("Bearer {other}");
    let reply = rig.send_with(&token, ASKED, &[("authorization", &bearer)], "").await;
    assert_eq!(reply.status, 403, "{reply:?}");
    let origins = [("origin", "http://localhost"), ("origin", "http://evil.example")];
    assert_eq!(rig.send_with(&token, ASKED, &origins, "").await.status, 403);
}

#[tokio::test]
async fn a_token_in_an_address_is_refused() {
    let rig = Rig::one().await;
    let token = rig.token(&["read"]).await;
    let reply = http(rig.address, ("GET", &format!("/api/v1/projects?access_token={token}")), &[], "").await;
    assert_eq!(reply.status, 400, "{reply:?}");
    assert!(!reply.body.contains(&token));
}

#[tokio::test]
async fn a_body_that_is_too_long_is_not_read_whole() {
    let limits = HttpLimits { body_bytes: 1000, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let token = rig.token(&["call"]).await;
    let body = "x".repeat(1001);
    for path in ["/api/v1/projects/p0/calls", "/mcp"] {
        let reply = rig.send(&token, ("POST", path), &body).await;
        assert_eq!(reply.status, 413, "{path}: {reply:?}");
        // Nobody's body is read before it is known who they are.
        assert_eq!(http(rig.address, ("POST", path), &[], &body).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn a_client_that_takes_too_long_is_let_go() {
    let second = Duration::from_secs(1);
    let limits = HttpLimits { head_timeout: second, body_timeout: second, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let token = rig.token(&["call"]).await;
    let mut head = HttpStream::open(rig.address, b"GET / HTTP/1.1\r\nhost: localhost\r\n").await;
    let (text, _) = head.until("\0 never").await;
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
    let bearer = format!("Bearer {token}");
    let whole = request(("POST", "/api/v1/projects/p0/calls"), &[("authorization", &bearer)], "0123456789");
    let slow = HttpStream::open(rig.address, &whole.as_bytes()[..whole.len() - 5]).await;
    assert_eq!(slow.whole().await.status, 408);
}

#[tokio::test]
async fn requests_that_two_readers_could_read_differently_are_refused() {
    let rig = Rig::one().await;
    let forms = [
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n12345",
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost : localhost\r\n\r\n",
    ];
    for form in forms {
        let reply = HttpStream::open(rig.address, form.as_bytes()).await;
        let mut reply = reply;
        let (text, _) = reply.until("\r\n\r\n").await;
        let status = text.split(' ').nth(1).unwrap_or_default().to_owned();
        assert!(["400", "403"].contains(&status.as_str()), "{form:?}: {text}");
    }
    let head = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(200_000));
    let mut huge = HttpStream::open(rig.address, b"").await;
    let _ = huge.send(head.as_bytes()).await;
    let (text, _) = huge.until("\r\n\r\n").await;
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{text}");
    assert_eq!(http(rig.address, ASKED, &[], "").await.status, 401, "others are served as before");
}

#[tokio::test]
async fn one_token_has_so_many_requests_under_way_and_no_more() {
    let limits = HttpLimits { requests_of_token: 2, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let (token, other) = (rig.token(&["read"]).await, rig.token_of(0, "other", &["all"], &["read"]).await);
    let bearer = format!("Bearer {token}");
    let text = request(("GET", "/api/v1/projects/p0/events"), &[("authorization", &bearer)], "");
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = HttpStream::open(rig.address, text.as_bytes()).await;
        assert!(stream.until("text/event-stream").await.1);
        streams.push(stream);
    }
    let reply = rig.send(&token, ASKED, "").await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")), "{reply:?}");
    assert_eq!(rig.send(&other, ASKED, "").await.status, 200);
    drop(streams);
    while rig.send(&token, ASKED, "").await.status != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
#[expect(clippy::disallowed_types, reason = "a client that comes from another address of this machine")]
async fn one_address_has_no_more_than_its_connections_and_others_have_theirs() {
    let limits = HttpLimits { connections_of_address: 2, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let connect = async |from: &str| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
        socket.connect(rig.address).await.unwrap()
    };
    // The answer of a request on the connection, which stays open; nothing, if the server has closed it.
    let asked = async |stream: &mut tokio::net::TcpStream| {
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", rig.address);
        let mut answer = vec![0; 4096];
        if stream.write_all(request.as_bytes()).await.is_err() {
            return 0;
        }
        stream.read(&mut answer).await.unwrap_or(0)
    };
    let (mut first, mut second) = (connect("127.0.0.1").await, connect("127.0.0.1").await);
    assert!(asked(&mut first).await > 0 && asked(&mut second).await > 0);
    let mut third = connect("127.0.0.1").await;
    assert_eq!(asked(&mut third).await, 0, "one too much is closed");
    let mut other = connect("127.0.0.2").await;
    assert!(asked(&mut other).await > 0, "another address has its own");
    assert!(asked(&mut first).await > 0, "those that are open stay");
    // What has ended makes room; the server may hear of it a moment later.
    drop(second);
    loop {
        let mut next = connect("127.0.0.1").await;
        if asked(&mut next).await > 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
}
