//! An HTTP server of this machine that answers JSON documents.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Answers `GET` of known paths, until it is dropped.
pub struct JsonServer {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl JsonServer {
    /// The documents by path; they are made when it is known where the server is.
    pub async fn start(documents: impl FnOnce(&str) -> BTreeMap<String, Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let documents = documents(&format!("http://{address}"));
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).await.is_ok() {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let (status, body) = match documents.get(path) {
                    Some(document) => ("200 OK", document.to_string()),
                    None => ("404 Not Found", "{}".to_owned()),
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                // A client that has gone has seen enough.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { address, serving }
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for JsonServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
