//! `toolhost login`

use std::process::ExitCode;

use serde_json::json;

use crate::Usage;
use crate::logins::{self, LINK_LIVES};
use crate::print;
use crate::settings::Settings;

/// The address of a server where nobody says.
const SERVER_DEFAULT: &str = "http://127.0.0.1:7420";

/// Sign a browser in to `toolhost serve`: prints a link that works once
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The address of the server, as your browser reaches it
    #[arg(long, value_name = "URL", default_value = SERVER_DEFAULT, env = "TOOLHOST_PUBLIC_URL")]
    server: String,
    /// Sign all your browsers out instead, and end the links that were not used
    #[arg(long)]
    end_all: bool,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let user = settings.user_name()?;
    let is_address = ["http://", "https://"].iter().any(|scheme| args.server.starts_with(scheme));
    if !is_address || args.server.contains(['?', '#', '@', ' ']) || args.server.chars().any(char::is_control) {
        return Err(Usage::error("--server is an address such as https://tools.example.org"));
    }
    let store = logins::open(settings).await?;
    let logins = logins::of(&store);
    let done = match args.end_all {
        true => end_all(&logins, &user, settings.json).await,
        false => link(&logins, &args.server, &user, settings.json).await,
    };
    store.close().await?;
    done.map(|()| ExitCode::SUCCESS)
}

async fn link(logins: &toolhost_store::Logins, server: &str, user: &str, is_json: bool) -> anyhow::Result<()> {
    let link = logins::new_link(logins, server, user).await?;
    if is_json {
        return print::json(&json!({ "link": link, "user": user, "seconds": LINK_LIVES.as_secs() }));
    }
    print::address(&link);
    let minutes = LINK_LIVES.as_secs() / 60;
    let user = print::visible_line(user);
    print::note(format_args!("it signs one browser in as {user}, once, within {minutes} minutes: give it to nobody"));
    Ok(())
}

async fn end_all(logins: &toolhost_store::Logins, user: &str, is_json: bool) -> anyhow::Result<()> {
    let ended = logins.end_all(user).await?;
    if is_json {
        return print::json(&json!({ "user": user, "ended": ended }));
    }
    let count = print::count(usize::try_from(ended)?, "browser");
    print::line(format_args!("{count} of {} signed out", print::visible_line(user)));
    Ok(())
}
