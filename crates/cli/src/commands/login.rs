//! `toolhost login` and `toolhost logout`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use toolhost::Error;
use toolhost_server::http::SignIn;
use toolhost_store::{Store, TERMINAL_ASK_LIVES, TerminalLogin, Terminals};

use crate::logins::{self, LINK_LIVES, SERVER_DEFAULT};
use crate::settings::Settings;
use crate::{Usage, print, terminals};

/// How often it is looked whether the terminal was confirmed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Sign in to a shared database, or sign a browser in to `toolhost serve`
///
/// On a shared database (--database), commands act as the user you are signed in as. Without a login, this prints an address, where you
/// confirm this terminal in a browser in which you have signed in; the login then holds for 30 days. With a login, and on a database of this
/// machine, this prints a link that signs one browser in.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The address of the server, as your browser reaches it
    #[arg(long, value_name = "URL", default_value = SERVER_DEFAULT, env = "TOOLHOST_PUBLIC_URL")]
    server: String,
    /// Show who this terminal is signed in as; exit code 1 if it is not
    #[arg(long, conflicts_with = "end_all")]
    status: bool,
    /// Sign all your browsers and terminals out instead, and end the links that were not used
    #[arg(long)]
    end_all: bool,
}

/// Sign this terminal out of a shared database
#[derive(clap::Args)]
pub(crate) struct LogoutArgs {}

/// Who is at this terminal.
struct Here {
    store: Store,
    /// The shared database's login file; `None` for a database of this machine.
    shared: Option<PathBuf>,
    is_json: bool,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let server = logins::checked_address(&args.server)?;
    let here = Here::open(settings).await?;
    let done = here.run(&args, server, settings).await;
    here.store.close().await?;
    done
}

pub(crate) async fn log_out(_: LogoutArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let here = Here::open(settings).await?;
    let done = here.log_out().await;
    here.store.close().await?;
    done
}

impl Here {
    async fn open(settings: &Settings) -> anyhow::Result<Self> {
        let url = settings.shared_database()?;
        let shared = url.map(|url| settings.login_file(&url)).transpose()?;
        Ok(Self { store: logins::open(settings).await?, shared, is_json: settings.json })
    }

    async fn run(&self, args: &Args, server: &str, settings: &Settings) -> anyhow::Result<ExitCode> {
        if let Some(file) = self.shared.as_deref().filter(|_| args.status) {
            let login = match terminals::hash(file) {
                Some(hash) => self.store.terminals().valid(&hash).await?,
                None => None,
            };
            let signed_out = || Error::NotSignedIn { place: self.store.place().to_owned() };
            return self.status(login.ok_or_else(signed_out).map_err(Into::into));
        }
        let login = logins::signed_in(&self.store, self.shared.as_deref(), settings).await;
        if args.status {
            return self.status(login);
        }
        match login {
            Ok(login) if args.end_all => self.end_all(&login.user).await?,
            Ok(login) => self.link(server, &login.user).await?,
            Err(error) if !args.end_all && is_signed_out(&error) => return self.sign_in(server, settings).await,
            Err(error) => return Err(error),
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a link that signs a browser in.
    async fn link(&self, server: &str, user: &str) -> anyhow::Result<()> {
        let link = logins::new_link(&logins::of(&self.store), server, (user, LINK_LIVES)).await?;
        if self.is_json {
            return print::json(&json!({ "link": link, "user": user, "seconds": LINK_LIVES.as_secs() }));
        }
        print::address(&link);
        let minutes = LINK_LIVES.as_secs() / 60;
        let user = print::visible_line(user);
        print::note(format_args!(
            "it signs one browser in as {user}, once, within {minutes} minutes: give it to nobody"
        ));
        Ok(())
    }

    /// Waits until a person confirms this terminal in a browser.
    async fn sign_in(&self, server: &str, settings: &Settings) -> anyhow::Result<ExitCode> {
        let Some(file) = &self.shared else { return Ok(ExitCode::FAILURE) };
        let terminals = self.store.terminals();
        let (secret, hash) = SignIn::new_secret()?;
        let (path, code) = SignIn::new_code()?;
        terminals.ask(&code, &hash, &terminals::name()).await?;
        let link = format!("{}{path}", server.trim_end_matches('/'));
        let seconds = TERMINAL_ASK_LIVES.as_secs();
        if self.is_json {
            print::json_line(&json!({ "link": link, "code": code, "seconds": seconds }))?;
        } else {
            print::address(&link);
            let minutes = seconds / 60;
            print::note(format_args!(
                "open it in a browser in which you are signed in, and compare the code {code}; waiting for {minutes} minutes"
            ));
        }
        let Some(login) = confirmed(&terminals, &hash, &code).await? else {
            anyhow::bail!("nobody has confirmed this terminal: start `toolhost login` again");
        };
        if let Some(named) = settings.named_user()?.filter(|named| *named != login.user) {
            terminals.end(&hash).await?;
            return Err(Error::SignedInAsOther { named, user: login.user, place: self.store.place().to_owned() }.into());
        }
        if let Err(error) = terminals::write(file, &secret) {
            terminals.end(&hash).await?;
            return Err(error);
        }
        self.status(Ok(login))
    }

    fn status(&self, login: anyhow::Result<TerminalLogin>) -> anyhow::Result<ExitCode> {
        let place = self.store.place();
        let login = match login {
            Ok(login) => login,
            Err(error) if is_signed_out(&error) => {
                if self.is_json {
                    print::json_line(&json!({ "user": null, "place": place }))?;
                } else {
                    print::line(format_args!("not signed in to {place}: sign in with `toolhost login`"));
                }
                return Ok(ExitCode::FAILURE);
            }
            Err(error) => return Err(error),
        };
        let is_shared = self.shared.is_some();
        let (expires, used) = (login.expires_at_ms, login.used_at_ms);
        if self.is_json {
            let until = |at: i64| is_shared.then_some(at);
            print::json_line(&json!({
                "user": login.user, "place": place, "expiresAtMs": until(expires), "usedAtMs": until(used),
            }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let user = print::visible_line(&login.user);
        if is_shared {
            let (until, used) = (print::local_time(expires), print::local_time(used));
            print::line(format_args!("signed in to {place} as {user} until {until}, last used {used}"));
        } else {
            print::line(format_args!("{place} is on this machine: you are its user {user}, without a login"));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn end_all(&self, user: &str) -> anyhow::Result<()> {
        let ended = logins::of(&self.store).end_all(user).await?;
        let terminals = self.store.terminals().end_all(user).await?;
        if self.is_json {
            return match &self.shared {
                Some(_) => print::json(&json!({ "user": user, "ended": ended, "terminals": terminals })),
                None => print::json(&json!({ "user": user, "ended": ended })),
            };
        }
        let count = print::count(usize::try_from(ended)?, "browser");
        let terminals = match &self.shared {
            Some(_) => format!(" and {}", print::count(usize::try_from(terminals)?, "terminal")),
            None => String::new(),
        };
        print::line(format_args!("{count}{terminals} of {} signed out", print::visible_line(user)));
        Ok(())
    }

    async fn log_out(&self) -> anyhow::Result<ExitCode> {
        let Some(file) = &self.shared else {
            return Err(Usage::error("only a shared database has logins of terminals: name one with --database"));
        };
        let ended = match terminals::hash(file) {
            Some(hash) => self.store.terminals().end(&hash).await?,
            None => false,
        };
        terminals::remove(file)?;
        if self.is_json {
            print::json(&json!({ "ended": ended }))?;
        } else {
            print::line(if ended { "this terminal is signed out" } else { "this terminal was not signed in" });
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn is_signed_out(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::NotSignedIn { .. }))
}

/// Waits for the answer of a person. `None` if it was no, or none came in time.
async fn confirmed(terminals: &Terminals, hash: &str, code: &str) -> anyhow::Result<Option<TerminalLogin>> {
    loop {
        if let Some(login) = terminals.valid(hash).await? {
            return Ok(Some(login));
        }
        if terminals.asked(code).await?.is_none() {
            // It may have been confirmed between the two looks.
            return Ok(terminals.valid(hash).await?);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
