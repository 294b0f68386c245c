//! HTTP clients that go where the operator says and nowhere else.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A URL that requests may be sent to. An error does not quote it: its path is a password with some services.
pub(crate) fn checked(url: &str) -> Result<reqwest::Url, String> {
    let url = checked_or_plain(url)?;
    if is_private(&url) {
        return Ok(url);
    }
    Err("begins with http://, so others could read what is sent on its way: use https://".to_owned())
}

/// The same for requests that others may read on their way.
pub(crate) fn checked_or_plain(url: &str) -> Result<reqwest::Url, String> {
    let url = reqwest::Url::parse(url.trim()).map_err(|error| format!("is not a URL: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user or a password in it".to_owned());
    }
    match url.scheme() {
        "https" | "http" => Ok(url),
        _ => Err("does not begin with https://".to_owned()),
    }
}

/// Whether nobody else can read what is sent there.
pub(crate) fn is_private(url: &reqwest::Url) -> bool {
    url.scheme() == "https" || is_loopback(url)
}

fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// A client for one URL: no proxy from the environment and no redirects. TLS by ring, handed in, so that nothing is installed for the
/// process.
pub(crate) fn new(url: &reqwest::Url, idle_connections: usize) -> Result<reqwest::Client, String> {
    let disabled = |why: &dyn Error| chain(why);
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| disabled(&error))?;
    let tls = if url.scheme() == "https" {
        let builder = builder.with_platform_verifier().map_err(|error| disabled(&error))?;
        builder.with_no_client_auth()
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
    };
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(idle_connections)
        .tcp_nodelay(true)
        .user_agent(concat!("toolhost/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| disabled(&error))
}

/// What an error says, with its causes: the outermost alone says only that a request failed.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn requests_go_to_https_or_to_this_machine() {
        for url in ["https://hooks.example.org/a?b=c", "http://127.0.0.1:1/x", "http://[::1]/", "http://localhost/x"] {
            assert!(checked(url).is_ok(), "{url}");
        }
        for url in [
            "http://example.org/s3cret",
            "ftp://h/s3cret",
            "s3cret",
            "https://me:s3cret@h/",
            "http://127.0.0.1.e.org/s3cret",
        ] {
            let error = checked(url).expect_err(url);
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
