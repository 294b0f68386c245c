//! `git http-backend` behind a small server of HTTP/1.1.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use super::{PATH, Repositories};
use crate::model_server::http::{Incoming, read};

/// A server of repositories; it ends when it is dropped.
pub struct HttpGit {
    pub repositories: Arc<Repositories>,
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub authorization: Option<String>,
}

struct Serving {
    repositories: Arc<Repositories>,
    backend: PathBuf,
    /// What `Authorization` must be; `None`: anybody may do everything.
    authorization: Option<String>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl HttpGit {
    /// `authorization` is the whole header that a client must send. A path that begins with `echo/` is refused with that
    /// header in the answer, one that begins with `moved/` leads to the same path without it.
    pub async fn start(authorization: Option<&str>) -> Self {
        let repositories = Arc::new(Repositories::new());
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let folder = std::process::Command::new("git").arg("--exec-path").output().unwrap();
        let folder = String::from_utf8(folder.stdout).unwrap();
        let serving = Arc::new(Serving {
            repositories: Arc::clone(&repositories),
            backend: PathBuf::from(folder.trim()).join("git-http-backend"),
            authorization: authorization.map(str::to_owned),
            requests: Arc::clone(&requests),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self { repositories, address, requests, task }
    }

    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for HttpGit {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, serving: Arc<Serving>) {
    let mut held = Vec::new();
    while let Some(request) = read(&mut stream, &mut held).await {
        let answer = serving.answer(&request).await;
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

impl Serving {
    async fn answer(&self, request: &Incoming) -> Vec<u8> {
        let header = |name: &str| {
            let found = request.headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let authorization = header("authorization");
        let seen = Request { path: request.path.clone(), authorization: authorization.clone() };
        self.requests.lock().unwrap().push(seen);
        if self.authorization.is_some() && authorization != self.authorization {
            return whole("401 Unauthorized", &["www-authenticate: Basic realm=\"git\""], b"who are you?\n");
        }
        if request.path.starts_with("/echo/") {
            let body = format!("refused: {}\n", authorization.unwrap_or_default());
            return whole("403 Forbidden", &["content-type: text/plain; charset=utf-8"], body.as_bytes());
        }
        if let Some(path) = request.path.strip_prefix("/moved") {
            return whole("301 Moved Permanently", &[&format!("location: {path}")], b"");
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let mut command = Command::new(&self.backend);
        command.env_clear().env("PATH", PATH).env("HOME", "/nonexistent");
        for (name, value) in [
            ("GIT_PROJECT_ROOT", self.repositories.path("").to_string_lossy().into_owned()),
            ("GIT_HTTP_EXPORT_ALL", "1".to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("REMOTE_USER", "somebody".to_owned()),
            ("REMOTE_ADDR", "127.0.0.1".to_owned()),
            ("REQUEST_METHOD", request.method.clone()),
            ("PATH_INFO", path.to_owned()),
            ("QUERY_STRING", query.to_owned()),
            ("CONTENT_TYPE", header("content-type").unwrap_or_default()),
            ("CONTENT_LENGTH", request.body.len().to_string()),
            ("HTTP_CONTENT_ENCODING", header("content-encoding").unwrap_or_default()),
            ("GIT_PROTOCOL", header("git-protocol").unwrap_or_default()),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let body = request.body.clone();
        // A backend that refuses does not read what it was sent.
        let feeding = tokio::spawn(async move { drop(stdin.write_all(&body).await) });
        let output = child.wait_with_output().await.unwrap();
        feeding.await.unwrap();
        let end = output.stdout.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&output.stdout[..end]).into_owned();
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
        let headers: Vec<&str> = head.lines().filter(|line| !line.starts_with("Status: ")).collect();
        whole(&status, &headers, &output.stdout[end + 4..])
    }
}

fn whole(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
