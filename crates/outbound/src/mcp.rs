//! The way to an MCP server over streamable HTTP: one message there, and the messages that come back.

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::client::{self, chain};

/// Longest message from a server, bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Connections that wait for the next message.
const IDLE_CONNECTIONS: usize = 8;
/// The header that names a session (MCP 2025-11-25, "Session Management").
const SESSION: &str = "mcp-session-id";
const EVENT_STREAM: &str = "text/event-stream";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the address of the server {0}")]
    Url(String),
    #[error("no TLS: {0}")]
    Tls(String),
    #[error("the token has characters that no token has")]
    Token,
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("a message of the server is longer than {MESSAGE_BYTES_MAX} bytes")]
    TooLong,
}

/// A server, and the token for it.
pub struct Remote {
    client: reqwest::Client,
    url: reqwest::Url,
    token: HeaderValue,
}

/// What comes back.
pub struct Answer {
    response: reqwest::Response,
    is_stream: bool,
    /// What has come and is no whole message yet.
    left: Vec<u8>,
    has_ended: bool,
}

impl Remote {
    /// Opens nothing yet: the first message does.
    ///
    /// # Errors
    /// For a URL that is neither `https` nor of this machine, or TLS that this machine has not.
    pub fn new(url: &str, token: &str) -> Result<Self, Error> {
        let url = client::checked(url).map_err(Error::Url)?;
        let client = client::new(&url, IDLE_CONNECTIONS).map_err(Error::Tls)?;
        let mut token = HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|_| Error::Token)?;
        token.set_sensitive(true);
        Ok(Self { client, url, token })
    }

    /// Sends a message, with these headers.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn post(&self, message: String, headers: &[(&'static str, String)]) -> Result<Answer, Error> {
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(message);
        self.send(request, headers).await
    }

    /// Asks for messages that the server sends by itself.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn listen(&self, headers: &[(&'static str, String)]) -> Result<Answer, Error> {
        self.send(self.client.get(self.url.clone()), headers).await
    }

    /// Ends a session.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn end(&self, headers: &[(&'static str, String)]) -> Result<(), Error> {
        self.send(self.client.delete(self.url.clone()), headers).await.map(drop)
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        headers: &[(&'static str, String)],
    ) -> Result<Answer, Error> {
        let mut all = HeaderMap::new();
        all.insert(AUTHORIZATION, self.token.clone());
        all.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                all.insert(HeaderName::from_static(name), value);
            }
        }
        let sent = request.headers(all).send().await;
        let response = sent.map_err(|error| Error::Unreachable(chain(&error.without_url())))?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with(EVENT_STREAM);
        Ok(Answer { response, is_stream, left: Vec::new(), has_ended: false })
    }
}

impl Answer {
    /// Its HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The session that it has begun.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.response.headers().get(SESSION).and_then(|session| session.to_str().ok())
    }

    /// The next message, as text; `None` at the end.
    ///
    /// # Errors
    /// If the connection breaks, or a message is too long.
    pub async fn next(&mut self) -> Result<Option<String>, Error> {
        loop {
            if self.is_stream {
                while let Some(event) = self.event() {
                    let data = data_of(&event);
                    if !data.is_empty() {
                        return Ok(Some(data));
                    }
                }
            }
            if self.has_ended {
                let rest = String::from_utf8_lossy(&std::mem::take(&mut self.left)).into_owned();
                // An event without an empty line behind it was cut off.
                return Ok(Some(rest).filter(|rest| !self.is_stream && !rest.trim().is_empty()));
            }
            match self.response.chunk().await.map_err(|error| Error::Unreachable(chain(&error.without_url())))? {
                Some(chunk) if self.left.len() + chunk.len() > MESSAGE_BYTES_MAX => return Err(Error::TooLong),
                Some(chunk) => self.left.extend_from_slice(&chunk),
                None => self.has_ended = true,
            }
        }
    }

    /// The text of the next whole event, taken out of what has come.
    fn event(&mut self) -> Option<String> {
        let ends = [&b"\n\n"[..], b"\r\n\r\n"];
        let found = ends.iter().filter_map(|end| Some((find(&self.left, end)?, end.len()))).min()?;
        let rest = self.left.split_off(found.0 + found.1);
        let event = std::mem::replace(&mut self.left, rest);
        Some(String::from_utf8_lossy(&event).into_owned())
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The data of an event, its lines joined (HTML, "Server-sent events").
fn data_of(event: &str) -> String {
    let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
    lines.map(|data| data.strip_prefix(' ').unwrap_or(data)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::data_of;

    #[test]
    fn the_data_of_an_event_are_its_data_lines() {
        assert_eq!(data_of("id: 1\ndata: {\"a\":\ndata:1}\n\n"), "{\"a\":\n1}");
        assert_eq!(data_of(": a comment\nretry: 3\n\n"), "");
    }
}
