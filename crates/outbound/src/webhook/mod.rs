//! Signed webhooks, as the specification Standard Webhooks has them (<https://www.standardwebhooks.com>): one URL, asked again while that
//! may help. Start with [`Endpoint`].

mod allowed;
mod error;
mod key;

pub use allowed::AllowedUrls;
pub use error::{Error, Result};
pub use key::SigningKey;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use toolhost_contract::Clock;

use crate::client::{self, chain};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// How often a message is sent at most, the first time included. With the waits between, that takes half a minute, and longer where
/// the other side is slow.
const ATTEMPTS_MAX: u32 = 7;
/// The first wait; each further one is twice as long.
const WAIT_FIRST: Duration = Duration::from_millis(500);
/// From the connection to the head of the answer.
const ANSWER_SECONDS_MAX: u64 = 15;
/// Messages are sent one after the other.
const IDLE_CONNECTIONS: usize = 1;

/// A message. Whoever gets it twice knows it by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Visible ASCII characters without a dot.
    pub id: String,
    /// JSON.
    pub body: String,
}

/// The URL that messages go to.
pub struct Endpoint {
    client: reqwest::Client,
    url: reqwest::Url,
    key: SigningKey,
    clock: Arc<dyn Clock>,
}

impl Endpoint {
    /// Opens nothing yet: the first message does.
    ///
    /// # Errors
    /// For a URL that is neither `https` nor of this machine, or TLS that this machine has not.
    pub fn new(url: &str, key: SigningKey, clock: Arc<dyn Clock>) -> Result<Self> {
        let url = client::checked(url).map_err(Error::Url)?;
        let client = client::new(&url, IDLE_CONNECTIONS).map_err(Error::Tls)?;
        Ok(Self { client, url, key, clock })
    }

    /// Scheme, host and port: the rest of the URL may be a password.
    #[must_use]
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The same of a URL; nothing of what is none.
    #[must_use]
    pub fn origin_of(url: &str) -> Option<String> {
        client::checked(url).ok().map(|url| url.origin().ascii_serialization())
    }

    /// Sends a message until it is taken or there is no more reason to hope; at most a bounded number of times.
    ///
    /// # Errors
    /// That of the last attempt.
    pub async fn deliver(&self, message: &Message) -> Result<()> {
        let mut attempt = 1;
        loop {
            let error = match self.send(message).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if attempt == ATTEMPTS_MAX || !error.may_pass() {
                return Err(error);
            }
            tracing::debug!(id = message.id, attempt, %error, "the message is sent again");
            tokio::time::sleep(wait(attempt)).await;
            attempt += 1;
        }
    }

    /// Sends a message once. Returns the status of the answer, whose body is not read.
    ///
    /// # Errors
    /// If nothing answers in time, or with anything but a success. A redirect is not followed: it would carry the message to
    /// whom the other side names.
    pub async fn send(&self, message: &Message) -> Result<u16> {
        let request = self.request(message)?;
        let limit = Duration::from_secs(ANSWER_SECONDS_MAX);
        let sent = tokio::time::timeout(limit, self.client.execute(request)).await;
        let answer = sent.map_err(|_| Error::Timeout(ANSWER_SECONDS_MAX))?;
        let answer = answer.map_err(|error| Error::Unreachable(chain(&error.without_url())))?;
        match answer.status() {
            status if status.is_success() => Ok(status.as_u16()),
            reqwest::StatusCode::GONE => Err(Error::Gone),
            status => Err(Error::Refused(status.as_u16())),
        }
    }

    /// Signed anew for each attempt: who gets it refuses a message with an old time.
    fn request(&self, message: &Message) -> Result<reqwest::Request> {
        let seconds = self.clock.unix_ms() / 1000;
        let signature = self.key.signature(&message.id, seconds, &message.body);
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| Error::Unreachable(error.to_string()));
        let mut request = reqwest::Request::new(reqwest::Method::POST, self.url.clone());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ID, value(&message.id)?);
        headers.insert(TIMESTAMP, HeaderValue::from(seconds));
        headers.insert(SIGNATURE, value(&signature)?);
        *request.body_mut() = Some(message.body.clone().into());
        Ok(request)
    }
}

/// The wait after an attempt, counted from 1. Half of it is by chance: those who were turned away together shall not come back
/// together.
fn wait(attempt: u32) -> Duration {
    let full = WAIT_FIRST.saturating_mul(1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX));
    full / 2 + (full / 2).mul_f64(fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::{ATTEMPTS_MAX, WAIT_FIRST, wait};

    #[test]
    fn waits_double() {
        for attempt in 1..ATTEMPTS_MAX {
            let full = WAIT_FIRST * 2_u32.pow(attempt - 1);
            assert!((full / 2..=full).contains(&wait(attempt)), "{attempt}");
        }
    }
}
