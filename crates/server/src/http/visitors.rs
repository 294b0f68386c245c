//! Who may knock at all: names that this server is reached by, pages that may send requests, and addresses that fail to log in.

use std::net::IpAddr;
use std::num::NonZeroU32;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use toolhost_contract::{ErrorKind, ToolError};

use super::proxies::counted_by;

/// Addresses whose failures are counted; beyond, those that have recovered are forgotten.
const ADDRESSES_MAX: usize = 10_000;
/// Fetch Metadata (W3C).
const SENT_BY: &str = "sec-fetch-site";
const SENT_FOR: &str = "sec-fetch-mode";
const LOOPBACK: [&str; 4] = ["localhost", "127.0.0.1", "::1", "[::1]"];

pub(crate) struct Visitors {
    hosts: Vec<String>,
    failures: DefaultKeyedRateLimiter<IpAddr>,
}

impl Visitors {
    pub(crate) fn new(hosts: Vec<String>, failures_a_minute: u32) -> Self {
        let quota = Quota::per_minute(NonZeroU32::new(failures_a_minute).unwrap_or(NonZeroU32::MIN));
        Self {
            hosts: hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect(),
            failures: RateLimiter::keyed(quota),
        }
    }

    /// Refuses a request for a name that is none of this server's, and one that a page of another origin sends.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), ToolError> {
        let refused = |message: String| ToolError::new(ErrorKind::Security, message);
        let named = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let host = uri.authority().map(Authority::as_str).or_else(|| named(header::HOST)).unwrap_or_default();
        let authority: Authority = host.parse().map_err(|_| refused("the request names no host".to_owned()))?;
        let twice = [header::HOST, header::ORIGIN, header::AUTHORIZATION]
            .into_iter()
            .find(|name| headers.get_all(name).iter().count() > 1);
        if let Some(name) = twice {
            return Err(refused(format!("the header `{name}` stands there twice")));
        }
        // A port is a number: `localhost:7420.evil.example` is another host.
        let port = authority.as_str().strip_prefix(authority.host());
        if !port.is_some_and(|port| port.is_empty() || authority.port_u16().is_some()) {
            return Err(refused("the request names no host".to_owned()));
        }
        if !self.is_own(authority.host()) {
            return Err(refused(format!("this server is not `{}`", toolhost_contract::visible_line(authority.host())))
                .hint("`toolhost serve --host NAME` serves a name"));
        }
        let of_another = || refused("a page of another origin may not call this server".to_owned());
        // What a browser says of a request that a page of another site makes it send. A link that a person follows is none: the page of
        // the other site is left, and sees nothing of the answer.
        let is_followed = *method == Method::GET && headers.get(SENT_FOR).is_some_and(|mode| mode == "navigate");
        if headers.get(SENT_BY).is_some_and(|site| site == "cross-site") && !is_followed {
            return Err(of_another());
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let of_here = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok()).is_some_and(|origin| {
            origin.authority().is_some_and(|of| of.as_str().eq_ignore_ascii_case(authority.as_str()))
        });
        if of_here { Ok(()) } else { Err(of_another()) }
    }

    fn is_own(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        LOOPBACK.contains(&host.as_str()) || self.hosts.contains(&host)
    }

    /// Counts a login that failed. Says whether this address may try again now.
    pub(crate) fn failed(&self, address: IpAddr) -> bool {
        if self.failures.len() >= ADDRESSES_MAX {
            self.failures.retain_recent();
        }
        self.failures.check_key(&counted_by(address)).is_ok()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        Visitors::new(vec!["tools.example".to_owned()], 1)
            .check(&Method::GET, &Uri::from_static("/mcp"), &headers)
            .is_ok()
    }

    #[test]
    fn only_names_of_this_server_are_served() {
        for own in ["localhost", "localhost:7420", "127.0.0.1:7420", "[::1]:7420", "TOOLS.example:443"] {
            assert!(check(own, None), "{own}");
        }
        for other in [
            "evil.example",
            "127.0.0.1.evil.example",
            "tools.example.evil",
            "localhost@evil.example",
            "x y",
            "127.0.0.1:7420.evil.example",
            "localhost:x",
            "localhost:99999",
        ] {
            assert!(!check(other, None), "{other}");
        }
    }

    #[test]
    fn only_pages_of_this_server_may_send_requests() {
        assert!(check("localhost:7420", Some("http://localhost:7420")));
        for other in ["http://evil.example", "http://localhost:7421", "null", "http://localhost", "file://"] {
            assert!(!check("localhost:7420", Some(other)), "{other}");
        }
    }

    #[test]
    fn a_page_of_another_site_leads_here_and_sends_nothing() {
        let sent = |method: &Method, mode: &str| {
            let headers = [("host", "localhost"), (SENT_BY, "cross-site"), (SENT_FOR, mode)];
            let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            Visitors::new(Vec::new(), 1).check(method, &Uri::from_static("/"), &headers.into_iter().collect()).is_ok()
        };
        assert!(sent(&Method::GET, "navigate"));
        for (method, mode) in
            [(&Method::POST, "navigate"), (&Method::GET, "no-cors"), (&Method::GET, "cors"), (&Method::PUT, "cors")]
        {
            assert!(!sent(method, mode), "{method} {mode}");
        }
    }
}
