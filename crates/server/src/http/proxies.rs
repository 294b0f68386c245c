//! Where a request comes from, if proxies that are trusted passed it on.
//!
//! Anybody can write a header. What a proxy of the operator says of a client is believed, and what that client said of itself is not:
//! addresses are read from the right, where the nearest proxy has written, and the first one that is no trusted proxy is the client.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName, header};

/// Where nginx, HAProxy, Caddy and most others write the client's address.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Which header proxies write the client's address to. The other one is passed on as the client sent it, so only one can be believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedBy {
    /// `X-Forwarded-For`
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239)
    Forwarded,
}

/// The proxies that are believed.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    pub networks: Vec<Network>,
    pub header: ForwardedBy,
}

/// Addresses that begin with the same bits, or one address: `10.0.0.0/8`, `2001:db8::/32`, `127.0.0.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "it is an address or a network, such as 127.0.0.1, 10.0.0.0/8 or 2001:db8::/32".to_owned();
        let (address, bits) = text.trim().split_once('/').map_or((text.trim(), None), |(at, bits)| (at, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().map_err(|_| wrong())?,
            Some(_) => return Err(wrong()),
        };
        let network = Self { address, bits };
        match bits <= most && masked(address, bits) == address {
            true => Ok(network),
            false => Err(wrong()),
        }
    }
}

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.bits) == self.address
    }
}

/// An address without what follows its first bits.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

/// By what an address is counted: whoever has one IPv6 address has the other 2^64 of its network, too.
pub(crate) fn counted_by(address: IpAddr) -> IpAddr {
    if address.is_ipv4() { address } else { masked(address, 64) }
}

impl TrustedProxies {
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.has(address))
    }

    /// Whose request it is that came from this address: the nearest one that is no trusted proxy. What cannot be read ends the search
    /// at the proxy that passed it on.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let (name, of_element): (_, fn(&str) -> Option<IpAddr>) = match self.header {
            ForwardedBy::XForwardedFor => (X_FORWARDED_FOR, node),
            ForwardedBy::Forwarded => (header::FORWARDED, forwarded_for),
        };
        if !self.trusts(client) {
            return client;
        }
        for value in headers.get_all(name).iter().rev() {
            let Ok(value) = value.to_str() else { return client };
            for element in elements(value, ',').into_iter().rev() {
                let Some(before) = of_element(element) else { return client };
                client = before;
                if !self.trusts(client) {
                    return client;
                }
            }
        }
        client
    }
}

/// What stands between the separators that are in no quotes.
fn elements(text: &str, separator: char) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let split = text.split(|c: char| {
        let is_end = c == separator && !is_quoted;
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        is_end
    });
    split.map(str::trim).collect()
}

/// The address of the `for` of an element of `Forwarded`. What hides itself (`unknown`, `_hidden`) has none.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = elements(element, ';');
    let mut said = pairs.into_iter().filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    });
    let value = said.next()?;
    if said.next().is_some() {
        return None;
    }
    let inside = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    node(inside.unwrap_or(value))
}

/// An address, with a port or without: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn node(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match bare {
        Some(inside) => inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse().ok().or_else(|| text.parse::<std::net::SocketAddr>().ok().map(|socket| socket.ip())),
    };
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn client(header: ForwardedBy, peer: &str, said: &[(&'static str, &str)]) -> String {
        let networks = ["10.0.0.0/8", "2001:db8::/32", "127.0.0.1"].map(|text| text.parse().unwrap()).to_vec();
        let headers = said.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        TrustedProxies { networks, header }.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn the_nearest_address_that_is_no_trusted_proxy_is_the_client() {
        for (peer, said, expected) in [
            // A stranger is what it is, whatever it writes.
            ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
            ("10.1.1.1", "198.51.100.1", "198.51.100.1"),
            ("::ffff:10.1.1.1", "::ffff:198.51.100.1", "198.51.100.1"),
            // The client has forged what stands before the address that the proxy has written.
            ("10.1.1.1", "192.0.2.66, 198.51.100.1", "198.51.100.1"),
            ("10.1.1.1", "192.0.2.66, 198.51.100.1, 10.2.2.2,127.0.0.1", "198.51.100.1"),
            ("10.1.1.1", "10.3.3.3, 10.2.2.2", "10.3.3.3"),
            ("2001:db8::1", "2a00:1::7", "2a00:1::7"),
            ("2001:db8::1", "[2a00:1::7]:4711", "2a00:1::7"),
            ("10.1.1.1", "198.51.100.1:4711", "198.51.100.1"),
            // What cannot be read is counted by the proxy that passed it on.
            ("10.1.1.1", "rubbish", "10.1.1.1"),
            ("10.1.1.1", "198.51.100.1, rubbish, 10.2.2.2", "10.2.2.2"),
            ("10.1.1.1", "", "10.1.1.1"),
            ("10.1.1.1", "198.51.100.1,", "10.1.1.1"),
            ("10.1.1.1", "[198.51.100.1]", "10.1.1.1"),
        ] {
            let said = [("x-forwarded-for", said)];
            assert_eq!(client(ForwardedBy::XForwardedFor, peer, &said), expected, "{peer} {said:?}");
        }
    }

    #[test]
    fn several_lines_of_a_header_are_one_list_and_only_one_header_is_believed() {
        let lines = [("x-forwarded-for", "192.0.2.66"), ("x-forwarded-for", "198.51.100.1, 10.2.2.2")];
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value.parse().unwrap());
        }
        let networks = vec!["10.0.0.0/8".parse().unwrap()];
        let trusted = TrustedProxies { networks, header: ForwardedBy::XForwardedFor };
        assert_eq!(trusted.client("10.1.1.1".parse().unwrap(), &headers).to_string(), "198.51.100.1");
        let forged = [("forwarded", "for=192.0.2.66"), ("x-forwarded-for", "198.51.100.1")];
        assert_eq!(client(ForwardedBy::XForwardedFor, "10.1.1.1", &forged), "198.51.100.1");
        assert_eq!(client(ForwardedBy::Forwarded, "10.1.1.1", &forged), "192.0.2.66");
    }

    #[test]
    fn the_standard_header_is_read_as_its_standard_says() {
        for (said, expected) in [
            ("for=198.51.100.1", "198.51.100.1"),
            ("For=\"198.51.100.1:4711\";proto=https;by=10.1.1.1", "198.51.100.1"),
            ("proto=https ; for = \"[2a00:1::7]:4711\"", "2a00:1::7"),
            ("for=192.0.2.66, for=198.51.100.1;host=\"a,b;for=1.1.1.1\", for=10.2.2.2", "198.51.100.1"),
            ("for=unknown", "10.1.1.1"),
            ("for=_hidden, for=10.2.2.2", "10.2.2.2"),
            ("for=192.0.2.66;for=198.51.100.1", "10.1.1.1"),
            ("proto=https", "10.1.1.1"),
        ] {
            assert_eq!(client(ForwardedBy::Forwarded, "10.1.1.1", &[("forwarded", said)]), expected, "{said}");
        }
    }

    #[test]
    fn a_network_is_written_as_one() {
        for good in ["127.0.0.1", "0.0.0.0/0", "::/0", "::1", "10.0.0.0/8", "2001:db8::/32", "10.1.2.3/32"] {
            assert!(good.parse::<Network>().is_ok(), "{good}");
        }
        // With bits beyond its length it would be another network than the one that is meant.
        for wrong in ["", "10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "proxy", "10.0.0.0/8/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_network_of_ipv6_is_counted_as_one() {
        let by = |text: &str| counted_by(text.parse().unwrap());
        assert_eq!(by("2a00:1::7"), by("2a00:1::8"));
        assert_ne!(by("2a00:1::7"), by("2a00:1:0:1::7"));
        assert_ne!(by("192.0.2.1"), by("192.0.2.2"));
    }
}
