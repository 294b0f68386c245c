//! JSON documents of the operator's identity provider.

use std::time::Duration;

use percent_encoding::NON_ALPHANUMERIC;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;

use crate::client::{self, chain};

/// From the connection to the last byte.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest document, bytes.
const DOCUMENT_BYTES_MAX: usize = 512 * 1024;

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {why}")]
pub struct DocumentError {
    url: String,
    why: String,
}

/// Fetches a JSON document from `https`, or from this machine.
///
/// # Errors
/// If there is none in time, it is no JSON, or too long.
pub async fn document(url: &str) -> Result<Value, DocumentError> {
    answered(url, |client, to| client.get(to)).await
}

/// The JSON document that answers a form. `login` is the name of the client and its secret.
///
/// # Errors
/// As [`document`], and if the form is refused.
pub async fn answer_to_form(
    url: &str,
    form: &[(&str, &str)],
    login: Option<(&str, &str)>,
) -> Result<Value, DocumentError> {
    let encoded = |text: &str| percent_encoding::utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let body: Vec<String> = form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let body = body.join("&");
    answered(url, |client, to| {
        let request = client.post(to).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body);
        match login {
            // Both are written as in a form (RFC 6749, section 2.3.1).
            Some((name, secret)) => request.basic_auth(encoded(name), Some(encoded(secret))),
            None => request,
        }
    })
    .await
}

async fn answered(
    url: &str,
    ask: impl FnOnce(reqwest::Client, reqwest::Url) -> reqwest::RequestBuilder,
) -> Result<Value, DocumentError> {
    let failed = |why: String| DocumentError { url: url.to_owned(), why };
    let fetched = async {
        let to = client::checked(url)?;
        // Documents are fetched every ten minutes: no connection waits for the next.
        let sent = ask(client::new(&to, 0)?, to).header(ACCEPT, "application/json").send().await;
        let mut answer = sent.map_err(|error| chain(&error.without_url()))?;
        if !answer.status().is_success() {
            return Err(format!("it answered with the status {}", answer.status().as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| chain(&error.without_url()))? {
            if bytes.len() + chunk.len() > DOCUMENT_BYTES_MAX {
                return Err(format!("it is longer than {DOCUMENT_BYTES_MAX} bytes"));
            }
            bytes.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&bytes).map_err(|error| format!("it is no JSON: {error}"))
    };
    match tokio::time::timeout(ANSWER_TIME_MAX, fetched).await {
        Ok(fetched) => fetched.map_err(failed),
        Err(_) => Err(failed(format!("there is no answer within {} seconds", ANSWER_TIME_MAX.as_secs()))),
    }
}
