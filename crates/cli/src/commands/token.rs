//! `toolhost token`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use toolhost::{Connection, Need};
use toolhost_contract::{Clock, SystemClock};
use toolhost_server::http::{Right, Secret};
use toolhost_store::{NewToken, Role, Token};

use crate::settings::{Resolved, Settings};
use crate::{Usage, hosting, print, wire};

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
        let mut rights: Vec<Right> = said.into_iter().map(Right::from).collect();
        rights.sort_unstable();
        rights.dedup();
        let user = self.acts_for.unwrap_or_else(|| connection.user().name.clone());
        let account_id = member(connection, &user).await?;
        let key = hosting::key_of(resolved);
        let secret = Secret::new(&key).context("this system gives no random bytes")?;
        let hash = secret.hash();
        let lives_ms = i64::try_from(self.expires.as_millis())?;
        let new = NewToken {
            project_id: project.id,
            account_id,
            id: format!("tok-{}", &hash[..8]),
            name: self.name,
            hash,
            profiles,
            scopes: rights.iter().map(|right| right.as_str().to_owned()).collect(),
            expires_at_ms: SystemClock::default().unix_ms().saturating_add(lives_ms),
        };
        let mut told = json!({
            "id": new.id, "name": new.name, "for": user, "profiles": new.profiles, "rights": new.scopes,
            "expiresAtMs": new.expires_at_ms,
        });
        let work = async { anyhow::Ok(connection.store().tokens().create(&new).await?) };
        connection.record(&connection.who(), "token.create", told.clone(), work).await?;
        if settings.json {
            told["token"] = secret.as_str().into();
            told["project"] = key.into();
            return print::json(&told);
        }
        print::line(secret.as_str());
        let (of, project) = (print::visible_line(&new.profiles.join(", ")), print::visible_line(&project.name));
        print::note(format_args!(
            "{}: {of} of {project}, for {}; it is not shown again",
            new.id,
            new.scopes.join(", ")
        ));
        if rights.contains(&Right::Approve) {
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
    let (tokens, project) = (connection.store().tokens(), connection.project().clone());
    match args.command {
        Command::Create(create) => create.run(settings, &resolved, &connection).await?,
        Command::List => list(&tokens.list(project.id).await?, settings.json)?,
        Command::Revoke { id } => {
            let work = async {
                if tokens.revoke(project.id, &id).await? {
                    return Ok(());
                }
                let id = print::visible_line(&id);
                Err(Usage::error(format!("there is no valid token `{id}`; `toolhost token list` shows all tokens")))
            };
            connection.record(&connection.who(), "token.revoke", json!({ "id": id }), work).await?;
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

/// The user of this name, who belongs to the project.
async fn member(connection: &Connection, user: &str) -> anyhow::Result<i64> {
    let members = connection.store().people().members(connection.project().id).await?;
    let found = members.into_iter().find(|member| member.name == user);
    found.map(|member| member.id).ok_or_else(|| {
        let (project, user) = (print::visible_line(&connection.project().name), print::visible_line(user));
        Usage::error(format!("{project} has no member `{user}`: `toolhost member add {user}` makes them one"))
    })
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
                Some(at) => format!("revoked {}", print::time(at)),
                None if token.is_valid_at(now) => format!("until {}", print::time(token.expires_at_ms)),
                None => format!("ended {}", print::time(token.expires_at_ms)),
            };
            vec![
                token.id.clone(),
                print::visible_line(&token.name),
                print::visible_line(&token.user),
                print::visible_line(&token.profiles.join(" ")),
                token.scopes.join(" "),
                holds,
                token.last_used_at_ms.map_or_else(|| "never".to_owned(), print::time),
            ]
        })
        .collect();
    print::table(&["id", "name", "user", "profiles", "rights", "valid", "last used"], &rows);
    Ok(())
}
