//! `toolhost token`

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use toolhost::{Connection, Need};
use toolhost_contract::{Clock, ErrorKind, SystemClock, ToolError};
use toolhost_server::http::{Right, TokenWish};
use toolhost_store::{Role, Token};

use crate::settings::{Resolved, Settings};
use crate::{Usage, hosting, print, tokens, wire};

/// How long a token holds where nobody says.
const LIVES_DEFAULT: &str = "90d";
/// The longest.
const LIVES_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// What programs prove with who they are, to `toolhost serve`
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a token for this project and show it, once
    Create(Create),
    /// List the tokens of this project, without their secrets
    List,
    /// Revoke a token: within a second it is refused
    Revoke {
        /// As `toolhost token list` shows it
        id: String,
    },
}

#[derive(clap::Args)]
struct Create {
    /// What it is for: the author of the commits of its agent
    name: String,
    /// The profile of its agent; several times: the first is that of a client that names none [default: developer]
    #[arg(long, value_name = "PROFILE")]
    profile: Vec<String>,
    /// What it may do; several times [default: call and read]
    #[arg(long, value_enum, value_name = "RIGHT")]
    right: Vec<RightName>,
    /// The member of the project whose name and role its calls have [default: you]
    #[arg(long = "for", value_name = "USER")]
    acts_for: Option<String>,
    /// How long it holds, such as `30d` or `12h`
    #[arg(long, value_name = "DURATION", default_value = LIVES_DEFAULT, value_parser = lives)]
    expires: Duration,
}

impl Create {
    async fn run(self, settings: &Settings, resolved: &Resolved, connection: &Connection) -> anyhow::Result<()> {
        let project = connection.project();
        let profiles = if self.profile.is_empty() { vec!["developer".to_owned()] } else { self.profile };
        check_profiles(settings, &profiles).await?;
        let said = if self.right.is_empty() { vec![RightName::Call, RightName::Read] } else { self.right };
        let rights: Vec<Right> = said.into_iter().map(Right::from).collect();
        let wish = TokenWish { name: self.name, profiles, rights, acts_for: self.acts_for, lives: self.expires };
        let made = tokens::make(connection, &hosting::key_of(resolved), wish).await?;
        if settings.json {
            return print::json(&made);
        }
        print::line(&made.token);
        let (of, project) = (print::visible_line(&made.profiles.join(", ")), print::visible_line(&project.name));
        print::note(format_args!(
            "{}: {of} of {project}, for {}; it is not shown again",
            made.id,
            made.rights.join(", ")
        ));
        if made.rights.iter().any(|right| right == Right::Approve.as_str()) {
            print::note(format_args!(
                "{} this token can approve what agents ask for: never give it to an agent",
                print::paint(print::WARN, "note:")
            ));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum RightName {
    /// Call the tools of its profiles
    Call,
    /// Read the project: asks, audit, sessions, members, its workflow package
    Read,
    /// Start sessions of models and steer them, at the operator's cost
    Run,
    /// Answer approvals and reviews and apply changes in its user's name: never for an agent
    Approve,
    /// Manage members, tokens and the whole package
    Manage,
}

impl From<RightName> for Right {
    fn from(name: RightName) -> Self {
        match name {
            RightName::Call => Self::Call,
            RightName::Read => Self::Read,
            RightName::Run => Self::Run,
            RightName::Approve => Self::Approve,
            RightName::Manage => Self::Manage,
        }
    }
}

fn lives(text: &str) -> Result<Duration, String> {
    let lives = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let fits = !lives.is_zero() && lives <= LIVES_MAX;
    fits.then_some(lives).ok_or_else(|| "a token holds for a second at least and ten years at most".to_owned())
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = settings.resolve()?;
    let need = if matches!(args.command, Command::List) { Need::Reading } else { Need::Writing };
    let connection = wire::connect(&resolved, need).await?;
    connection.need_role(Role::Owner).await?;
    match args.command {
        Command::Create(create) => create.run(settings, &resolved, &connection).await?,
        Command::List => list(&connection.store().tokens().list(connection.project().id).await?, settings.json)?,
        Command::Revoke { id } => {
            tokens::revoke(&connection, &id).await.map_err(mistyped)?;
            if settings.json {
                print::json(&json!({ "id": id, "revoked": true }))?;
            } else {
                print::line(format_args!("{} is revoked", print::visible_line(&id)));
            }
        }
    }
    connection.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// A token with a profile that does not exist would open nothing.
async fn check_profiles(settings: &Settings, profiles: &[String]) -> anyhow::Result<()> {
    let (kit, _) = wire::kit(settings).await?;
    for profile in profiles {
        kit.profiles.get(profile)?;
    }
    Ok(())
}

/// An id that no valid token has was typed wrongly.
fn mistyped(error: ToolError) -> anyhow::Error {
    match (error.kind, &error.hint) {
        (ErrorKind::NotFound, Some(hint)) => Usage::error(format!("{}: {hint}", error.message)),
        _ => error.into(),
    }
}

fn list(tokens: &[Token], json: bool) -> anyhow::Result<()> {
    if json {
        return print::json(&tokens);
    }
    if tokens.is_empty() {
        print::line("no tokens: `toolhost token create NAME` makes one");
        return Ok(());
    }
    let now = SystemClock::default().unix_ms();
    let rows: Vec<Vec<String>> = tokens
        .iter()
        .map(|token| {
            let holds = match token.revoked_at_ms {
                Some(at) => format!("revoked {}", print::local_time(at)),
                None if token.is_valid_at(now) => format!("until {}", print::local_time(token.expires_at_ms)),
                None => format!("ended {}", print::local_time(token.expires_at_ms)),
            };
            vec![
                token.id.clone(),
                print::visible_line(&token.name),
                print::visible_line(&token.user),
                print::visible_line(&token.profiles.join(" ")),
                token.scopes.join(" "),
                holds,
                token.last_used_at_ms.map_or_else(|| "never".to_owned(), print::local_time),
            ]
        })
        .collect();
    print::table(&["id", "name", "user", "profiles", "rights", "valid", "last used"], &rows);
    Ok(())
}
