//! An HTTP server of this machine that takes messages, as a collector of telemetry does.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What a collector answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// That it has taken the message.
    Taken,
    /// This status once, and then that it has taken the message.
    First(u16),
    /// Nothing: the connection stays open.
    Nothing,
}

/// A message that was sent.
#[derive(Debug, Clone)]
pub struct Posted {
    /// The request line and the headers, as they came.
    pub head: String,
    pub body: Vec<u8>,
}

/// Takes every `POST`, until it is dropped.
pub struct CollectorServer {
    address: SocketAddr,
    posted: Arc<Mutex<Vec<Posted>>>,
    serving: JoinHandle<()>,
}

impl CollectorServer {
    pub async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let posted: Arc<Mutex<Vec<Posted>>> = Arc::default();
        let taken = Arc::clone(&posted);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&taken), answers));
            }
        });
        Self { address, posted, serving }
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The messages that have come so far.
    pub fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }
}

impl Drop for CollectorServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One message, and the end of the connection.
async fn serve(mut stream: TcpStream, posted: Arc<Mutex<Vec<Posted>>>, answers: Answers) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).await.is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let is_first = {
        let mut posted = posted.lock().unwrap();
        posted.push(Posted { head, body });
        posted.len() == 1
    };
    let status = match answers {
        Answers::Nothing => return std::future::pending().await,
        Answers::First(status) if is_first => status,
        Answers::First(_) | Answers::Taken => 200,
    };
    let answer = format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nretry-after: 0\r\nconnection: close\r\n\r\n"
    );
    // A client that has gone has seen enough.
    let _ = stream.write_all(answer.as_bytes()).await;
}
