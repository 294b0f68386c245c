//! The table `[server]` of the configuration: how `toolhost serve` serves, and how much of it its callers may have.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolhost_server::http::{ForwardedBy, HttpLimits, Network, TrustedProxies};

use crate::size::Size;

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const MILLION: u64 = 1_000_000;

/// How `toolhost serve` serves.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerTable {
    /// Addresses and networks of proxies that are believed about where a request comes from, such as `["127.0.0.1", "10.0.0.0/8"]`.
    #[serde(default)]
    trusted_proxies: Vec<Proxy>,
    /// The header in which they say so; `x-forwarded-for` if left out. The other one is never read.
    #[serde(default)]
    client_header: ClientHeader,
    /// How much of the server its callers may have.
    #[serde(default)]
    limits: LimitsTable,
}

/// How much of the server its callers may have.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    /// Connections that are open at once; further ones wait to be taken. 4096 if left out.
    connections: Option<Number<1, MILLION>>,
    /// The same of one address; further ones are closed. A trusted proxy may have all. 2048 if left out.
    connections_of_address: Option<Number<1, MILLION>>,
    /// The longest head of a request, 8K to 16M; `64K` if left out.
    head: Option<Bytes<{ 8 * KIB }, { 16 << 20 }>>,
    /// How long a client may take for the head of a request; 10 if left out.
    head_seconds: Option<Number<1, HOUR>>,
    /// The longest body of a request, 1K to 1G; `16M` if left out.
    body: Option<Bytes<KIB, GIB>>,
    /// How long a client may take for the body of a request; 30 if left out.
    body_seconds: Option<Number<1, HOUR>>,
    /// Requests of one token that are served at once; 256 if left out.
    requests_of_token: Option<Number<1, MILLION>>,
    /// MCP sessions of one token; 64 if left out.
    sessions_of_token: Option<Number<1, MILLION>>,
    /// MCP sessions of all; 4096 if left out.
    sessions: Option<Number<1, MILLION>>,
    /// How long an MCP session may be idle, with no request under way and nobody listening; 1800 if left out.
    session_idle_seconds: Option<Number<1, { 30 * DAY }>>,
    /// How long one may be so before it is kept small: its next request takes a moment more; 60 if left out.
    session_rest_seconds: Option<Number<60, { 30 * DAY }>>,
    /// Pages of one person that hear at once what changes; 32 if left out.
    streams_of_person: Option<Number<1, MILLION>>,
    /// The same of all people; 2048 if left out.
    streams: Option<Number<1, MILLION>>,
    /// Failed logins of one address in a minute; 30 if left out.
    failed_logins: Option<Number<1, MILLION>>,
    /// How long a request waits for the first call with the same `Idempotency-Key` to end; 20 if left out.
    keyed_wait_seconds: Option<Number<0, HOUR>>,
    /// How long requests under way may take when the server ends; 30 if left out.
    drain_seconds: Option<Number<0, HOUR>>,
}

/// Who is believed, checked where it is read, so that the error names the line.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", inline)]
struct Proxy(Network);

impl TryFrom<String> for Proxy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// [`ForwardedBy`], as the operator writes it.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ClientHeader {
    #[default]
    XForwardedFor,
    Forwarded,
}

impl ServerTable {
    /// Who is believed about where a request comes from: those of the options, or else of the file.
    pub(crate) fn proxies(&self, said: &[Network]) -> TrustedProxies {
        let header = match self.client_header {
            ClientHeader::XForwardedFor => ForwardedBy::XForwardedFor,
            ClientHeader::Forwarded => ForwardedBy::Forwarded,
        };
        let networks = match said {
            [] => self.trusted_proxies.iter().map(|proxy| proxy.0).collect(),
            said => said.to_vec(),
        };
        TrustedProxies { networks, header }
    }

    /// How much of the server its callers may have.
    pub(crate) fn limits(&self) -> HttpLimits {
        let (said, usual) = (&self.limits, HttpLimits::default());
        HttpLimits {
            connections: count(said.connections, usual.connections),
            connections_of_address: count(said.connections_of_address, usual.connections_of_address),
            head_bytes: said.head.map_or(usual.head_bytes, Bytes::get),
            head_timeout: seconds(said.head_seconds, usual.head_timeout),
            body_bytes: said.body.map_or(usual.body_bytes, Bytes::get),
            body_timeout: seconds(said.body_seconds, usual.body_timeout),
            requests_of_token: count(said.requests_of_token, usual.requests_of_token),
            sessions_of_token: count(said.sessions_of_token, usual.sessions_of_token),
            sessions: count(said.sessions, usual.sessions),
            session_idle: seconds(said.session_idle_seconds, usual.session_idle),
            session_rest: seconds(said.session_rest_seconds, usual.session_rest),
            streams_of_person: count(said.streams_of_person, usual.streams_of_person),
            streams: count(said.streams, usual.streams),
            failed_logins: said.failed_logins.map_or(usual.failed_logins, |said| said.0),
            keyed_wait: seconds(said.keyed_wait_seconds, usual.keyed_wait),
            drain: seconds(said.drain_seconds, usual.drain),
        }
    }
}

fn count<const MOST: u64>(said: Option<Number<1, MOST>>, usual: usize) -> usize {
    said.map_or(usual, |said| said.0 as usize)
}

fn seconds<const LEAST: u64, const MOST: u64>(said: Option<Number<LEAST, MOST>>, usual: Duration) -> Duration {
    said.map_or(usual, |said| Duration::from_secs(said.0.into()))
}

/// A number within bounds. It is checked where it is read, so that the error names the line.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "u64")]
#[schemars(with = "u64", inline)]
struct Number<const LEAST: u64, const MOST: u64>(u32);

impl<const LEAST: u64, const MOST: u64> TryFrom<u64> for Number<LEAST, MOST> {
    type Error = String;

    fn try_from(said: u64) -> Result<Self, String> {
        let within = (LEAST..=MOST).contains(&said).then_some(said);
        let number = within.and_then(|said| u32::try_from(said).ok());
        number.map(Self).ok_or_else(|| format!("it goes from {LEAST} to {MOST}"))
    }
}

/// A size within bounds.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "Size")]
#[schemars(with = "Size", inline)]
struct Bytes<const LEAST: u64, const MOST: u64>(usize);

impl<const LEAST: u64, const MOST: u64> Bytes<LEAST, MOST> {
    fn get(self) -> usize {
        self.0
    }
}

impl<const LEAST: u64, const MOST: u64> TryFrom<Size> for Bytes<LEAST, MOST> {
    type Error = String;

    fn try_from(Size(said): Size) -> Result<Self, String> {
        let within = (LEAST..=MOST).contains(&said).then_some(said);
        let bytes = within.and_then(|said| usize::try_from(said).ok());
        bytes.map(Self).ok_or_else(|| format!("it goes from {} to {}", size_text(LEAST), size_text(MOST)))
    }
}

/// A size as an operator would write it.
fn size_text(bytes: u64) -> String {
    let units = [(GIB, "G"), (1 << 20, "M"), (KIB, "K")];
    let unit = units.into_iter().find(|(unit, _)| bytes.is_multiple_of(*unit) && bytes > 0);
    unit.map_or_else(|| bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::toml_file;

    fn read(text: &str) -> anyhow::Result<ServerTable> {
        #[derive(Deserialize)]
        struct File {
            server: ServerTable,
        }
        Ok(toml_file::parse::<File>(Path::new("config.toml"), text)?.server)
    }

    /// Every limit of the server, one line each, with another value than the usual one.
    const ALL: &str = "[server.limits]\nconnections = 3\nconnections_of_address = 2\nhead = \"9K\"\nhead_seconds = 4\nbody = \"2M\"\nbody_seconds = 5\n\
        requests_of_token = 6\nsessions_of_token = 7\nsessions = 8\nsession_idle_seconds = 9\nsession_rest_seconds = 61\nstreams_of_person = 10\nstreams = 11\n\
        failed_logins = 12\nkeyed_wait_seconds = 13\ndrain_seconds = 14\n";

    #[test]
    fn each_limit_of_the_server_can_be_set() {
        let set = format!("{:?}", read(ALL).unwrap().limits());
        let expected = "HttpLimits { connections: 3, connections_of_address: 2, head_bytes: 9216, head_timeout: 4s, body_timeout: 5s, body_bytes: 2097152, \
            requests_of_token: 6, sessions_of_token: 7, sessions: 8, session_idle: 9s, session_rest: 61s, streams_of_person: 10, streams: 11, \
            failed_logins: 12, keyed_wait: 13s, drain: 14s }";
        assert_eq!(set, expected);
        let usual = format!("{:?}", HttpLimits::default());
        assert_eq!(format!("{:?}", read("[server.limits]\n").unwrap().limits()), usual);
    }

    #[test]
    fn what_cannot_be_a_limit_is_named_with_its_line() {
        for (line, said) in [
            ("connections = 0", "(`connections`): it goes from 1 to 1000000"),
            ("drain_seconds = 3601", "(`drain_seconds`): it goes from 0 to 3600"),
            ("failed_logins = -1", "(`failed_logins`): invalid value"),
            ("head = \"1K\"", "(`head`): it goes from 8K to 16M"),
            ("body = \"2T\"", "(`body`): "),
            ("session = 1", "(`session`): unknown field `session`"),
        ] {
            let error = read(&format!("# What our server takes\n[server.limits]\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains("config.toml is not valid: line 3 ") && error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn trusted_proxies_are_those_of_the_options_or_else_of_the_file() {
        let table =
            read("[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\"]\nclient_header = \"forwarded\"\n").unwrap();
        let of_file = table.proxies(&[]);
        let said = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Network>>();
        assert_eq!((of_file.networks, of_file.header), (said(&["10.0.0.0/8", "::1"]), ForwardedBy::Forwarded));
        let of_options = said(&["192.0.2.1"]);
        assert_eq!(table.proxies(&of_options).networks, of_options);
        for wrong in ["trusted_proxies = [\"10.0.0.0/8\", \"10.0.0.1/8\"]", "client_header = \"x-real-ip\""] {
            let error = read(&format!("[server]\n{wrong}\n")).unwrap_err().to_string();
            assert!(error.contains("is not valid: line 2 "), "{error}");
        }
    }
}
