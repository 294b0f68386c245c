//! HTTP with a provider: where keys go, and how much comes back.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;
use serde::Serialize;
use toolhost_contract::Clock;

use super::config::{ProviderConfig, Timeouts};
use super::failure::{Failure, chain};
use super::retry;
use crate::model::{ModelError, Phase, Secret};

/// Bytes of what a server says that says no.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Connections that wait for the next request. Parallel sessions of one model use one each.
const IDLE_CONNECTIONS: usize = 8;

/// The way to one provider.
pub(super) struct Transport {
    client: reqwest::Client,
    url: reqwest::Url,
    headers: HeaderMap,
    timeouts: Timeouts,
    reply_bytes_max: usize,
}

/// A reply while it comes.
pub(super) struct Incoming<'t> {
    transport: &'t Transport,
    response: reqwest::Response,
    read: usize,
}

impl Transport {
    pub(super) fn new(
        config: &ProviderConfig,
        path: &str,
        own: fn(&Secret) -> Vec<(&'static str, String)>,
    ) -> Result<Self, ModelError> {
        let url = format!("{}{path}", config.address());
        let url = reqwest::Url::parse(&url).map_err(|error| ModelError::Disabled(format!("`{url}`: {error}")))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in own(&config.key) {
            insert(&mut headers, name, &value)?;
        }
        for (name, value) in &config.headers {
            insert(&mut headers, name, value.reveal())?;
        }
        Ok(Self {
            client: client(config)?,
            url,
            headers,
            timeouts: config.timeouts,
            reply_bytes_max: config.reply_bytes_max,
        })
    }

    /// The request with this body, to be sent as often as needed.
    pub(super) fn request(&self, body: &impl Serialize) -> Result<reqwest::Request, ModelError> {
        let body = serde_json::to_vec(body).map_err(|error| ModelError::Disabled(error.to_string()))?;
        let mut request = reqwest::Request::new(reqwest::Method::POST, self.url.clone());
        request.headers_mut().clone_from(&self.headers);
        *request.body_mut() = Some(body.into());
        Ok(request)
    }

    /// Sends it and waits for a reply to begin.
    pub(super) async fn send(&self, request: &reqwest::Request, clock: &dyn Clock) -> Result<Incoming<'_>, Failure> {
        let Some(request) = request.try_clone() else {
            return Err(Failure::for_good(ModelError::Disabled("the request cannot be sent twice".to_owned())));
        };
        let limit = self.timeouts.first_byte;
        let sent = tokio::time::timeout(limit, self.client.execute(request));
        let response = match sent.await {
            Err(_) => return Err(late(Phase::FirstByte, limit)),
            Ok(Err(error)) => return Err(self.unsent(error)),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        let asked = retry::asked(response.headers(), clock);
        let is_stream = response.headers().get(CONTENT_TYPE).is_none_or(is_event_stream);
        let incoming = Incoming { transport: self, response, read: 0 };
        if status == reqwest::StatusCode::OK && is_stream {
            return Ok(incoming);
        }
        let body = incoming.refusal().await;
        let status = Some(status.as_u16()).filter(|status| *status != 200);
        let failure = match status {
            // A server that failed behind a gateway that did not: what it says is an error, or nothing we can read.
            None if !body.contains("\"error\"") => {
                Failure::for_good(ModelError::Broken("it is no stream of events".to_owned()))
            }
            status => Failure::said(status, &body, asked),
        };
        Err(failure)
    }

    /// Why a request could not be sent, or its reply not begin.
    fn unsent(&self, error: reqwest::Error) -> Failure {
        if error.is_connect() && error.is_timeout() {
            late(Phase::Connect, self.timeouts.connect)
        } else if error.is_builder() || error.is_redirect() {
            Failure::for_good(ModelError::Unreachable(chain(&error.without_url())))
        } else {
            Failure::again(ModelError::Unreachable(chain(&error.without_url())))
        }
    }
}

impl Incoming<'_> {
    /// The next bytes of the reply; none at its end.
    pub(super) async fn piece(
        &mut self,
    ) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]> + use<>>, Failure> {
        let timeouts = self.transport.timeouts;
        let (phase, limit) = match self.read {
            0 => (Phase::FirstByte, timeouts.first_byte),
            _ => (Phase::Stall, timeouts.stall),
        };
        let piece = match tokio::time::timeout(limit, self.response.chunk()).await {
            Err(_) => return Err(late(phase, limit)),
            Ok(Err(error)) => {
                let why = format!("it breaks off: {}", chain(&error.without_url()));
                return Err(Failure::broken(why));
            }
            Ok(Ok(piece)) => piece,
        };
        self.read += piece.as_ref().map_or(0, |piece| piece.len());
        let max = self.transport.reply_bytes_max;
        if self.read > max {
            // The next one would be as long, and is paid for.
            return Err(Failure::for_good(ModelError::Broken(format!("it is longer than {max} bytes"))));
        }
        Ok(piece)
    }

    /// Reads what is left.
    pub(super) async fn drain(&mut self) {
        while let Ok(Some(_)) = self.piece().await {}
    }

    /// What a server says that says no, as far as we read it.
    async fn refusal(mut self) -> String {
        let mut body = Vec::new();
        // One that trickles is not waited for longer than one that stalls.
        let deadline = tokio::time::Instant::now() + self.transport.timeouts.stall;
        while let Ok(Ok(Some(piece))) = tokio::time::timeout_at(deadline, self.piece()).await {
            body.extend_from_slice(&piece);
            if body.len() >= REFUSAL_BYTES_MAX {
                body.truncate(REFUSAL_BYTES_MAX);
                break;
            }
        }
        String::from_utf8_lossy(&body).into_owned()
    }
}

pub(super) fn late(phase: Phase, limit: Duration) -> Failure {
    Failure::again(ModelError::Timeout { phase, limit })
}

fn is_event_stream(content_type: &HeaderValue) -> bool {
    // Only what is certainly something else is refused: small servers are careless with this header.
    content_type.to_str().is_ok_and(|kind| !kind.starts_with("application/json") && !kind.starts_with("text/html"))
}

fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), ModelError> {
    let known = HeaderName::from_bytes(name.as_bytes());
    let name = known.map_err(|_| ModelError::Disabled(format!("`{name}` cannot be the name of a header")))?;
    // The value may be a key: it is not shown.
    let value = HeaderValue::from_str(value);
    let mut value =
        value.map_err(|_| ModelError::Disabled(format!("the value for `{name}` cannot be sent as a header")))?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// A client that goes where it is told and nowhere else: no proxy from the environment, and no redirects, which would
/// carry keys to whom the first server names. TLS by ring, handed in, so that nothing is installed for the process.
pub(super) fn client(config: &ProviderConfig) -> Result<reqwest::Client, ModelError> {
    let disabled = |why: String| ModelError::Disabled(format!("no TLS for models: {why}"));
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| disabled(error.to_string()))?;
    let tls = if config.address().starts_with("https://") {
        let builder = builder.with_platform_verifier().map_err(|error| disabled(error.to_string()))?;
        builder.with_no_client_auth()
    } else {
        // Reading the machine's certificates takes longer than a local model's reply, and nobody shows one here.
        builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
    };
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(config.timeouts.connect)
        .tcp_nodelay(true)
        // Compressed, a word would wait for the words behind it.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .user_agent(concat!("toolhost/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| disabled(chain(&error)))
}
