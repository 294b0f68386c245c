//! `toolhost serve`

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde_json::json;
use toolhost_contract::SystemClock;
use toolhost_server::http::{HttpLimits, Serving, serve};

use crate::hosting::Hosting;
use crate::settings::Settings;
use crate::socket::Socket;
use crate::{Usage, print};

/// Where it listens where nobody says.
const LISTEN_DEFAULT: &str = "127.0.0.1:7420";

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
    /// A proxy in front of this server speaks TLS with its clients: only then may it listen on an address that others reach
    #[arg(long, env = "TOOLHOST_BEHIND_TLS_PROXY")]
    behind_tls_proxy: bool,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    if !args.listen.ip().is_loopback() && !args.behind_tls_proxy {
        return Err(Usage::error(format!(
            "{} can be reached by others, who could read the tokens on their way: listen on 127.0.0.1 behind a proxy that speaks TLS, \
             or say --behind-tls-proxy if one stands before it",
            args.listen
        )));
    }
    let hosting = Hosting::new(settings.with_root(None)).await?;
    let listener = Socket::bind(args.listen).await.with_context(|| format!("{} cannot be listened on", args.listen))?;
    let address = listener.address()?;
    if settings.json {
        print::json(&json!({ "address": address.to_string(), "mcp": "/mcp", "api": "/api/v1" }))?;
    } else {
        print::note(format_args!("serving at http://{address}: MCP at /mcp, the API at /api/v1; Ctrl-C ends it"));
    }
    let serving = Serving {
        projects: Arc::<Hosting>::clone(&hosting),
        clock: Arc::new(SystemClock::default()),
        hosts: args.host,
        limits: HttpLimits::default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let closing = tokio::spawn(Arc::clone(&hosting).close_idle());
    serve(serving, listener, crate::signals::ended_by_signal()).await;
    closing.abort();
    hosting.close().await;
    Ok(ExitCode::SUCCESS)
}
