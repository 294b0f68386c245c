//! A client of HTTP/1.1 that sends exactly what a test says, also what no library would send.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A socket on a free port of loopback, for a server in this process.
pub struct TestSocket(TcpListener);

/// A connection to it.
pub type TestStream = TcpStream;

impl TestSocket {
    pub async fn bind() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// The socket that a server had before, for the next one.
    pub async fn bind_at(address: SocketAddr) -> Self {
        Self(TcpListener::bind(address).await.unwrap())
    }

    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    pub async fn accept(&mut self) -> std::io::Result<(TestStream, SocketAddr)> {
        let (stream, address) = self.0.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, address))
    }
}

/// An answer, whole.
#[derive(Debug, Clone)]
pub struct HttpReply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl HttpReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| unreachable!("{error}: {self:?}"))
    }
}

/// A connection on which a request was sent.
pub struct HttpStream {
    stream: TcpStream,
    read: Vec<u8>,
}

impl HttpStream {
    /// Sends these bytes.
    pub async fn open(address: SocketAddr, request: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        Self { stream, read: Vec::new() }
    }

    pub async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads until the text stands there, or the other side closes. What was read, and whether the text stands there.
    pub async fn until(&mut self, text: &str) -> (String, bool) {
        let mut buffer = [0; 4096];
        loop {
            let so_far = String::from_utf8_lossy(&self.read).into_owned();
            if so_far.contains(text) {
                return (so_far, true);
            }
            match self.stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return (so_far, false),
                Ok(count) => self.read.extend_from_slice(&buffer[..count]),
            }
        }
    }

    /// The answer, if the other side closes after it.
    pub async fn whole(mut self) -> HttpReply {
        // A connection that breaks has said what it has said.
        let _ = self.stream.read_to_end(&mut self.read).await;
        parse(&self.read)
    }
}

/// A connection that is kept, for one request after the other.
pub struct HttpConnection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl HttpConnection {
    pub async fn open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::new() })
    }

    /// A request, and its answer, which must say how long it is.
    pub async fn ask(
        &mut self,
        asked: (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> std::io::Result<HttpReply> {
        let headers: Vec<_> = [("connection", "keep-alive")].iter().chain(headers).copied().collect();
        self.stream.write_all(request(asked, &headers, body).as_bytes()).await?;
        loop {
            if let Some((reply, length)) = whole(&self.read) {
                self.read.drain(..length);
                return Ok(reply);
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// An answer that is whole, and how many bytes it has.
fn whole(read: &[u8]) -> Option<(HttpReply, usize)> {
    let head = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let length: usize = parse(&read[..head]).header("content-length")?.parse().ok()?;
    let end = head + length;
    (read.len() >= end).then(|| (parse(&read[..end]), end))
}

/// One request on a connection of its own.
pub async fn http(
    address: SocketAddr,
    (method, target): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> HttpReply {
    HttpStream::open(address, request((method, target), headers, body).as_bytes()).await.whole().await
}

/// The same at a server that may be killed; `None` if there is no whole answer.
pub async fn try_http(
    address: SocketAddr,
    (method, target): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Option<HttpReply> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(request((method, target), headers, body).as_bytes()).await.ok()?;
    let reply = HttpStream { stream, read: Vec::new() }.whole().await;
    let length: usize = reply.header("content-length")?.parse().ok()?;
    (reply.body.len() == length).then_some(reply)
}

/// The same with a body of any bytes.
pub async fn http_bytes(
    address: SocketAddr,
    (method, target): (&str, &str),
    headers: &[(&str, &str)],
    body: &[u8],
) -> HttpReply {
    let head =
        request((method, target), headers, "").replace("content-length: 0", &format!("content-length: {}", body.len()));
    HttpStream::open(address, &[head.as_bytes(), body].concat()).await.whole().await
}

/// The text of a request. Where no header says otherwise, it is for `localhost`, has JSON, and is the last of its connection.
pub fn request((method, target): (&str, &str), headers: &[(&str, &str)], body: &str) -> String {
    let usual = [("host", "localhost"), ("connection", "close"), ("content-type", "application/json")];
    let has = |name: &str| headers.iter().any(|(said, _)| said.eq_ignore_ascii_case(name));
    let mut text = format!("{method} {target} HTTP/1.1\r\n");
    for (name, value) in usual.iter().filter(|(name, _)| !has(name)).chain(headers) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    text
}

fn parse(bytes: &[u8]) -> HttpReply {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return HttpReply { status: 0, headers: Vec::new(), body: text.into_owned() };
    };
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    HttpReply { status, headers, body }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}
