//! The operator's collector of telemetry (OTLP over HTTP), which is sent bytes and answers with some.

use std::fmt;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Request, StatusCode};

use crate::client::{self, chain};

/// The content type of messages.
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// Messages are sent one after the other.
const IDLE_CONNECTIONS: usize = 1;
/// Longest answer that is read, bytes; of a longer one the first part.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Why a message was not taken. No text has a header in it.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    #[error("the address of the collector {0}")]
    Url(String),
    #[error(
        "the address begins with http://, so others could read the headers on their way: use https://, or send no headers"
    )]
    ReadableHeaders,
    #[error("`{0}` is not the name of a header with a value that can be sent")]
    Header(String),
    #[error("no TLS for the collector: {0}")]
    Tls(String),
    #[error("the collector cannot be reached: {0}")]
    Unreachable(String),
    #[error("the collector did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the collector answered with the status {status}")]
    Refused { status: u16, retry_after: Option<Duration> },
}

impl CollectorError {
    /// Whether the same message may be taken later, and the wait that the collector asks for (OTLP, "Failures").
    #[must_use]
    pub fn may_pass(&self) -> Option<Option<Duration>> {
        match self {
            Self::Unreachable(_) => Some(None),
            Self::Refused { status: 429 | 502 | 503 | 504, retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}

/// Where messages go.
pub struct Collector {
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
    timeout: Duration,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("origin", &self.origin()).finish_non_exhaustive()
    }
}

impl Collector {
    /// Opens nothing yet: the first message does. `timeout` is for one message, from the connection to the end of the answer.
    ///
    /// # Errors
    /// For a URL that is neither `https` nor `http`, headers that others could read or that are none, or TLS that this machine has not.
    pub fn new(url: &str, headers: &[(String, String)], timeout: Duration) -> Result<Self, CollectorError> {
        // Spans hold nothing that is secret, so a collector in the same cluster may speak plain HTTP; headers are usually passwords.
        let url = client::checked_or_plain(url).map_err(CollectorError::Url)?;
        if !headers.is_empty() && !client::is_private(&url) {
            return Err(CollectorError::ReadableHeaders);
        }
        let mut sent = HeaderMap::new();
        sent.insert(CONTENT_TYPE, PROTOBUF);
        for (name, value) in headers {
            let bad = || CollectorError::Header(name.clone());
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            sent.insert(key, value);
        }
        let client = client::new(&url, IDLE_CONNECTIONS).map_err(CollectorError::Tls)?;
        Ok(Self { client, url, headers: sent, timeout })
    }

    /// Scheme, host and port: the rest of the URL may be a password.
    #[must_use]
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Sends a message once; the answer. A redirect is not followed.
    ///
    /// # Errors
    /// If nothing answers in time, or with anything but a success.
    pub async fn send(&self, message: Vec<u8>) -> Result<Vec<u8>, CollectorError> {
        let sent = tokio::time::timeout(self.timeout, self.exchange(message)).await;
        sent.map_err(|_| CollectorError::Timeout(self.timeout))?
    }

    async fn exchange(&self, message: Vec<u8>) -> Result<Vec<u8>, CollectorError> {
        let unreachable = |error: reqwest::Error| CollectorError::Unreachable(chain(&error.without_url()));
        let mut request = Request::new(Method::POST, self.url.clone());
        request.headers_mut().clone_from(&self.headers);
        *request.body_mut() = Some(message.into());
        let mut answer = self.client.execute(request).await.map_err(unreachable)?;
        if !answer.status().is_success() {
            return Err(refused(answer.status(), answer.headers()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            let room = ANSWER_BYTES_MAX - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if bytes.len() == ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(bytes)
    }
}

fn refused(status: StatusCode, headers: &HeaderMap) -> CollectorError {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    CollectorError::Refused { status: status.as_u16(), retry_after: seconds.map(Duration::from_secs) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Collector;

    #[test]
    fn headers_go_only_where_nobody_else_reads_them() {
        let headers = [("authorization".to_owned(), "Bearer s3cret".to_owned())];
        let open = |url: &str, headers: &[(String, String)]| Collector::new(url, headers, Duration::from_secs(1));
        for url in ["https://collector.example.org/v1/traces", "http://127.0.0.1:4318/v1/traces"] {
            let collector = open(url, &headers).expect(url);
            assert!(!format!("{collector:?}").contains("s3cret"));
        }
        assert!(open("http://collector:4318/v1/traces", &[]).is_ok());
        let error = open("http://collector:4318/v1/traces", &headers).expect_err("others could read it").to_string();
        assert!(error.contains("https://") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn what_is_no_header_is_refused_and_not_quoted() {
        for (name, value) in [("a b", "s3cret"), ("x", "s3cret\n")] {
            let headers = [(name.to_owned(), value.to_owned())];
            let error =
                Collector::new("http://127.0.0.1/", &headers, Duration::from_secs(1)).expect_err(name).to_string();
            assert!(error.contains(name) && !error.contains("s3cret"), "{error}");
        }
        assert!(Collector::new("ftp://127.0.0.1/", &[], Duration::from_secs(1)).is_err());
    }
}
