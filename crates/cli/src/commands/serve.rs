//! `toolhost serve`

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde_json::{Value, json};
use toolhost_contract::{BoxFuture, ErrorKind, SystemClock, ToolError};
use toolhost_host::CallObserver;
use toolhost_server::http::{
    Documents, LoginClient, Metrics, Network, OauthConfig, OauthLimits, Serving, SignIn, serve, serve_metrics,
};
use toolhost_store::Store;

use crate::hosting::Hosting;
use crate::idle::GiveMemoryBack;
use crate::logins::{self, LINK_LIVES};
use crate::settings::Settings;
use crate::socket::Socket;
use crate::tls::{Certificate, TlsSocket};
use crate::traces::Tracing;
use crate::webhook::Notifying;
use crate::{Usage, print};

/// Where it listens where nobody says.
const LISTEN_DEFAULT: &str = "127.0.0.1:7420";
/// Holds the secret of this server at the identity provider: what stands on the command line is seen by every user of the machine.
const OPENID_SECRET: &str = "TOOLHOST_OPENID_SECRET";

/// Serve every project over HTTP: MCP at `/mcp`, a JSON API at `/api/v1`
///
/// Without --root it serves all projects of this machine's user, with it that one, and with --database those of a shared database.
/// Each is opened when it is first needed. Callers send a token of `toolhost token create` as `Authorization: Bearer TOKEN`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN_DEFAULT, env = "TOOLHOST_LISTEN")]
    listen: SocketAddr,
    /// A name that clients reach this server by, besides localhost; several times
    #[arg(long, value_name = "NAME", env = "TOOLHOST_HOSTS", value_delimiter = ',')]
    host: Vec<String>,
    /// The server's certificate in PEM, with those that lead to its authority: it then speaks TLS. It is read again when it changes
    #[arg(long, value_name = "FILE", env = "TOOLHOST_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate in PEM
    #[arg(long, value_name = "FILE", env = "TOOLHOST_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// This server's own address as clients know it, such as https://tools.example.org
    #[arg(long, value_name = "URL", env = "TOOLHOST_PUBLIC_URL")]
    public_url: Option<String>,
    /// Take OAuth access tokens of this authorization server, too
    #[arg(long, value_name = "URL", env = "TOOLHOST_OAUTH_ISSUER", requires = "public_url")]
    oauth_issuer: Option<String>,
    /// An audience of such tokens besides this server's own address; several times
    #[arg(
        long,
        value_name = "AUDIENCE",
        env = "TOOLHOST_OAUTH_AUDIENCES",
        value_delimiter = ',',
        requires = "oauth_issuer"
    )]
    oauth_audience: Vec<String>,
    /// The claim of such tokens that holds the name of the user here
    #[arg(
        long,
        value_name = "CLAIM",
        env = "TOOLHOST_OAUTH_USER_CLAIM",
        default_value = "sub",
        requires = "oauth_issuer"
    )]
    oauth_user_claim: String,
    /// A scope that each such token has besides its own, such as toolhost:profile:developer; several times
    #[arg(long, value_name = "SCOPE", env = "TOOLHOST_OAUTH_SCOPES", value_delimiter = ',', requires = "oauth_issuer")]
    oauth_scope: Vec<String>,
    /// Let people sign in at that authorization server: the name by which it knows this server. Its secret is in TOOLHOST_OPENID_SECRET, if it has
    /// one, and it sends people back to PUBLIC_URL/login/openid/callback
    #[arg(long, value_name = "CLIENT", env = "TOOLHOST_OPENID_CLIENT", requires = "oauth_issuer")]
    openid_client: Option<String>,
    /// A proxy in front of this server speaks TLS with its clients: without TLS of its own, only then may it listen on an address that
    /// others reach
    #[arg(long, env = "TOOLHOST_BEHIND_TLS_PROXY")]
    behind_tls_proxy: bool,
    /// A proxy that is believed about where requests come from, or a network of them, such as 10.0.0.0/8; several times. Failed logins are
    /// then counted for each client, by `X-Forwarded-For`
    #[arg(long, value_name = "NETWORK", env = "TOOLHOST_TRUSTED_PROXIES", value_delimiter = ',')]
    trusted_proxy: Vec<Network>,
    /// Address and port where Prometheus reads `/metrics`. It asks for no token: anybody who reaches it sees the names of projects and tools
    #[arg(long, value_name = "ADDRESS", env = "TOOLHOST_METRICS")]
    metrics: Option<SocketAddr>,
}

impl Args {
    fn certificate(&self) -> Option<Certificate> {
        let (chain, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(Certificate { chain, key })
    }

    fn oauth(&self) -> anyhow::Result<Option<OauthConfig>> {
        let Some((issuer, public_url)) = self.oauth_issuer.clone().zip(self.public_url.clone()) else {
            return Ok(None);
        };
        if public_url.ends_with('/') || !public_url.contains("://") {
            return Err(Usage::error(format!(
                "--public-url is an address without a slash at its end, such as https://tools.example.org, not `{public_url}`"
            )));
        }
        Ok(Some(OauthConfig {
            issuer,
            public_url,
            audiences: self.oauth_audience.clone(),
            user_claim: self.oauth_user_claim.clone(),
            // Whoever registers under this name would own what was made at a terminal.
            refused_users: vec![crate::settings::USER_DEFAULT.to_owned()],
            scopes: self.oauth_scope.clone(),
            login: self.openid_client.clone().map(|id| LoginClient { id, secret: std::env::var(OPENID_SECRET).ok() }),
            documents: Arc::new(Outgoing),
            limits: OauthLimits::default(),
        }))
    }
}

/// Documents of the authorization server, over HTTP.
struct Outgoing;

impl Documents for Outgoing {
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            toolhost_outbound::document(url).await.map_err(|error| ToolError::new(ErrorKind::Io, error.to_string()))
        })
    }

    fn post<'a>(
        &'a self,
        url: &'a str,
        form: &'a [(&'a str, &'a str)],
        client: Option<(&'a str, &'a str)>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let answer = toolhost_outbound::answer_to_form(url, form, client).await;
            answer.map_err(|error| ToolError::new(ErrorKind::Io, error.to_string()))
        })
    }
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let certificate = args.certificate();
    if !args.listen.ip().is_loopback() && !args.behind_tls_proxy && certificate.is_none() {
        return Err(Usage::error(format!(
            "{} can be reached by others, who could read the tokens on their way: name a certificate with --tls-cert and --tls-key, listen \
             on 127.0.0.1 behind a proxy that speaks TLS, or say --behind-tls-proxy if one stands before it",
            args.listen
        )));
    }
    let oauth = args.oauth()?;
    let table = settings.server()?;
    let metrics = Metrics::new(env!("CARGO_PKG_VERSION"));
    let counter: Arc<dyn CallObserver> = Arc::<Metrics>::clone(&metrics);
    let of_spans = Arc::clone(&metrics);
    let tracing = Tracing::counting(Box::new(move |count| of_spans.lost_spans(count)));
    let hosting = Hosting::new(settings.with_root(None), tracing.observers(Some(counter))).await?;
    let telling = Notifying::of_served(settings)?;
    let is_tls = certificate.is_some() || args.behind_tls_proxy;
    let kept = logins::open(settings).await?;
    let logins = logins::of(&kept);
    let serving = Serving {
        projects: Arc::<Hosting>::clone(&hosting),
        clock: Arc::new(SystemClock::default()),
        hosts: args.host,
        proxies: table.proxies(&args.trusted_proxy),
        oauth,
        sign_in: Some(SignIn { logins: logins.clone(), is_tls }),
        limits: table.limits(),
        when_idle: Arc::new(GiveMemoryBack(None)),
        metrics,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let stop = crate::signals::ended_by_signal();
    let scraped = match args.metrics {
        Some(address) => {
            let socket = bound(address, "--metrics").await?;
            let address = socket.address()?;
            Some((address, tokio::spawn(serve_metrics(serving.clone(), socket, stop.clone()))))
        }
        None => None,
    };
    let metrics = scraped.as_ref().map(|(address, _)| *address);
    let closing = tokio::spawn(Arc::clone(&hosting).close_idle());
    match certificate {
        Some(certificate) => {
            let socket = TlsSocket::bind(args.listen, certificate).await?;
            tell(settings, "https", socket.address(), metrics)?;
            serve(serving, socket, stop).await;
        }
        None => {
            let socket = bound(args.listen, "--listen").await?;
            tell(settings, "http", socket.address()?, metrics)?;
            if socket.address()?.ip().is_loopback() && !args.behind_tls_proxy {
                tell_link(settings, &kept, socket.address()?).await?;
            }
            serve(serving, socket, stop).await;
        }
    }
    closing.abort();
    if let Some((_, scraping)) = scraped {
        scraping.abort();
    }
    if let Some(telling) = telling {
        telling.close().await;
    }
    hosting.close().await;
    kept.close().await?;
    tracing.close().await;
    Ok(ExitCode::SUCCESS)
}

/// A link for the person who starts the server. Where nobody looks, it would only stand in a log.
async fn tell_link(settings: &Settings, store: &Store, address: SocketAddr) -> anyhow::Result<()> {
    if settings.json {
        return Ok(());
    }
    if !std::io::stderr().is_terminal() {
        print::note(format_args!("`toolhost login --server http://{address}` signs a browser in"));
        return Ok(());
    }
    let shared = settings.shared_database()?.map(|url| settings.login_file(&url)).transpose()?;
    // Who starts the server of a shared database is nobody until they have signed in.
    let Ok(login) = logins::signed_in(store, shared.as_deref(), settings).await else { return Ok(()) };
    let link = logins::new_link(&logins::of(store), &format!("http://{address}"), (&login.user, LINK_LIVES)).await?;
    print::note("sign your browser in with this link, once, within ten minutes:");
    print::address_aside(&link);
    Ok(())
}

/// `option` is the one that named the address.
async fn bound(address: SocketAddr, option: &str) -> anyhow::Result<Socket> {
    let failed = || format!("{address} cannot be listened on: name another address with {option}");
    Socket::bind(address).await.with_context(failed)
}

fn tell(settings: &Settings, scheme: &str, address: SocketAddr, metrics: Option<SocketAddr>) -> anyhow::Result<()> {
    if settings.json {
        let metrics = metrics.map(|address| address.to_string());
        return print::json(&json!({
            "address": address.to_string(), "scheme": scheme, "mcp": "/mcp", "api": "/api/v1", "metrics": metrics,
        }));
    }
    print::note(format_args!("serving at {scheme}://{address}: MCP at /mcp, the API at /api/v1; Ctrl-C ends it"));
    if let Some(address) = metrics {
        print::note(format_args!("metrics at http://{address}/metrics"));
    }
    Ok(())
}
