//! A proxy on loopback that adds a token to each request: the suite sends none, and the door takes no request without one. Everything
//! else passes as it was sent, `Host` and `Origin` too.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, bail};

/// Longest head of a request, bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Starts it before a server; its address. It ends with this process.
pub(crate) fn start(server: SocketAddr, token: String) -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let address = listener.local_addr().context("the proxy has no address")?;
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let token = token.clone();
            // A client that goes away in the middle ends its connection and nothing else.
            std::thread::spawn(move || pass(&client, server, &token));
        }
    });
    Ok(address)
}

/// Passes the requests of one connection on, and what comes back as it is.
fn pass(client: &TcpStream, server: SocketAddr, token: &str) -> Result<()> {
    let server = TcpStream::connect(server).context("cannot reach the server")?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        // Either side may end first; then the other is told.
        let _ = std::io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    let mut requests = BufReader::new(client);
    let passed = (|| {
        while let Some(head) = head(&mut requests)? {
            (&server).write_all(&with_token(&head, token)).context("the server has gone")?;
            let length = body_length(&head)?;
            std::io::copy(&mut requests.by_ref().take(length), &mut &server).context("the body")?;
        }
        Ok(())
    })();
    let _ = server.shutdown(std::net::Shutdown::Both);
    passed
}

/// The head of the next request, with the empty line that ends it; `None`: there is no other.
fn head(requests: &mut impl BufRead) -> Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    loop {
        let before = head.len();
        requests.read_until(b'\n', &mut head).context("the head of a request")?;
        match &head[before..] {
            [] if before == 0 => return Ok(None),
            [] => bail!("a request ended within its head"),
            b"\r\n" | b"\n" => return Ok(Some(head)),
            _ if head.len() > HEAD_BYTES_MAX => bail!("the head of a request has more than {HEAD_BYTES_MAX} bytes"),
            _ => {}
        }
    }
}

/// The head with the token, after its first line.
fn with_token(head: &[u8], token: &str) -> Vec<u8> {
    let first = head.iter().position(|byte| *byte == b'\n').map_or(head.len(), |end| end + 1);
    [&head[..first], format!("Authorization: Bearer {token}\r\n").as_bytes(), &head[first..]].concat()
}

/// How many bytes of body follow a head.
fn body_length(head: &[u8]) -> Result<u64> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = |name: &str| head.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()));
    if value("transfer-encoding:").is_some() {
        bail!("a body in chunks, which this proxy does not pass");
    }
    value("content-length:").map_or(Ok(0), |length| length.parse().with_context(|| format!("content-length {length}")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{body_length, head, with_token};

    const REQUEST: &[u8] =
        b"POST /mcp HTTP/1.1\r\nHost: evil.example.com\r\nContent-Length: 2\r\nOrigin: http://evil\r\n\r\n{}";

    #[test]
    fn a_request_gets_a_token_and_nothing_else_changes() {
        let mut rest = REQUEST;
        let head = head(&mut rest).unwrap().unwrap();
        assert_eq!((rest, body_length(&head).unwrap()), (&b"{}"[..], 2));
        let passed = String::from_utf8(with_token(&head, "t")).unwrap();
        let added = "Authorization: Bearer t\r\n";
        assert!(passed.starts_with(&format!("POST /mcp HTTP/1.1\r\n{added}Host: evil.example.com\r\n")), "{passed}");
        assert_eq!(passed.replace(added, "").as_bytes(), &REQUEST[..REQUEST.len() - 2]);
    }

    #[test]
    fn what_it_cannot_pass_is_refused() {
        assert!(head(&mut &b""[..]).unwrap().is_none());
        assert!(head(&mut &b"GET / HTTP/1.1\r\n"[..]).is_err());
        assert!(body_length(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert_eq!(body_length(b"GET / HTTP/1.1\r\n\r\n").unwrap(), 0);
    }
}
