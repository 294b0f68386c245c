//! HTTP/1.1 by hand, as little as a model's client needs, so that a test may break it at any byte.

use std::fmt::Write as _;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes read at once.
const READ: usize = 64 * 1024;

/// A request as it came.
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Reads the next request of a connection. None when the client is gone.
pub(crate) async fn read(stream: &mut TcpStream, held: &mut Vec<u8>) -> Option<Incoming> {
    let head = loop {
        if let Some(at) = held.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, held).await?;
    };
    let text = String::from_utf8_lossy(&held[..head]).into_owned();
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers =
        headers.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned())).collect::<Vec<_>>();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse::<usize>().ok()).unwrap_or(0);
    while held.len() < head + length {
        more(stream, held).await?;
    }
    let body = held[head..head + length].to_vec();
    held.drain(..head + length);
    Some(Incoming { method, path, headers, body })
}

async fn more(stream: &mut TcpStream, held: &mut Vec<u8>) -> Option<()> {
    held.reserve(READ);
    match stream.read_buf(held).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

/// The beginning of a body in chunks.
pub(crate) fn head(content_type: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes()
}

/// A piece of such a body.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Its end.
pub(crate) const END: &[u8] = b"0\r\n\r\n";

/// A whole answer of known length.
pub(crate) fn whole(code: u16, headers: &[(String, String)], content_type: &str, body: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {code} Whatever\r\ncontent-type: {content_type}\r\n");
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Writes; whether the client is still there.
pub(crate) async fn write(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).await.is_ok()
}
