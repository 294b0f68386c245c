//! `toolhost member`

use std::process::ExitCode;

use anyhow::ensure;
use serde_json::json;
use toolhost::{Connection, Need};
use toolhost_store::{Member, Role};

use crate::logins::{self, INVITATION_LIVES, SERVER_DEFAULT};
use crate::settings::{Resolved, Settings};
use crate::wire;
use crate::{Usage, print};

/// Who may do what in the project
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the members
    List,
    /// Make somebody a member, or change what they are; a new name becomes a user
    Add {
        name: String,
        #[arg(value_enum, default_value = "editor")]
        role: RoleName,
        /// Whether they may answer what people are asked [default: unchanged; of a new member: owners and editors may]
        #[arg(long, value_name = "YES", value_parser = clap::builder::BoolishValueParser::new())]
        approver: Option<bool>,
    },
    /// Make a link that signs in a member of a shared database who has never signed in: it works once, within a day
    Invite {
        name: String,
        /// The address of the server, as their browser reaches it
        #[arg(long, value_name = "URL", default_value = SERVER_DEFAULT, env = "TOOLHOST_PUBLIC_URL")]
        server: String,
    },
    /// Take somebody's membership away
    Remove { name: String },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum RoleName {
    /// Manages members, and everything below
    Owner,
    /// Reads and writes
    Editor,
    /// Reads
    Viewer,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = settings.resolve()?;
    let need = if matches!(args.command, Command::List) { Need::Reading } else { Need::Writing };
    let connection = wire::connect(&resolved, need).await?;
    let (people, project) = (connection.store().people(), connection.project());
    match args.command {
        Command::List => {
            connection.need_role(Role::Viewer).await?;
            list(people.members(project.id).await?, settings.json)?;
        }
        Command::Add { name, role, approver } => {
            connection.need_role(Role::Owner).await?;
            let role = match role {
                RoleName::Owner => Role::Owner,
                RoleName::Editor => Role::Editor,
                RoleName::Viewer => Role::Viewer,
            };
            let arguments = json!({ "name": name, "role": role.as_str(), "approver": approver });
            let work = async {
                let id = people.add_user(&name).await?;
                anyhow::Ok((id, people.set_member(project.id, id, role, approver).await?))
            };
            let (id, approver) = connection.record(&connection.who(), "member.add", arguments, work).await?;
            if settings.json {
                print::json(&json!({ "id": id, "name": name, "role": role.as_str(), "approver": approver }))?;
            } else {
                let answers = match (approver, role.approves()) {
                    (true, false) => ", and answers what people are asked",
                    (false, true) => ", and does not answer what people are asked",
                    _ => "",
                };
                print::line(format_args!(
                    "{} is {} of {}{answers}",
                    print::visible_line(&name),
                    role.as_str(),
                    print::visible_line(&project.name)
                ));
            }
        }
        Command::Invite { name, server } => invite(&connection, &resolved, (&name, &server), settings.json).await?,
        Command::Remove { name } => {
            connection.need_role(Role::Owner).await?;
            let id = people.user(&name).await?;
            let work = async {
                let removed = match id {
                    Some(id) => people.remove(project.id, id).await?,
                    None => false,
                };
                if removed {
                    return Ok(());
                }
                Err(Usage::error(format!("{} has no member `{}`", project.name, print::visible_line(&name))))
            };
            let arguments = json!({ "name": name });
            connection.record(&connection.who(), "member.remove", arguments, work).await?;
            if settings.json {
                print::json(&json!({ "id": id, "name": name, "role": null }))?;
            } else {
                print::line(format_args!(
                    "{} is removed from {}",
                    print::visible_line(&name),
                    print::visible_line(&project.name)
                ));
            }
        }
    }
    connection.close().await?;
    Ok(ExitCode::SUCCESS)
}

fn list(members: Vec<Member>, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return print::json(&members);
    }
    let row = |member: Member| {
        let answers = if member.approver { "yes" } else { "no" };
        vec![print::visible_line(&member.name), member.role.as_str().to_owned(), answers.to_owned()]
    };
    print::table(&["name", "role", "answers asks"], &members.into_iter().map(row).collect::<Vec<_>>());
    Ok(())
}

/// Makes a link for a member who cannot make one. An owner of all their projects may: nobody else's projects are opened by it.
async fn invite(
    connection: &Connection,
    resolved: &Resolved,
    (name, server): (&str, &str),
    is_json: bool,
) -> anyhow::Result<()> {
    connection.need_role(Role::Owner).await?;
    let server = logins::checked_address(server)?;
    if resolved.database.is_none() {
        return Err(Usage::error("a database of this machine has one person: `toolhost login` signs their browser in"));
    }
    let (store, shown) = (connection.store(), print::visible_line(name));
    let people = store.people();
    let members = people.members(connection.project().id).await?;
    let Some(member) = members.into_iter().find(|member| member.name == name) else {
        return Err(Usage::error(format!("{} has no member `{shown}`: add them first", connection.project().name)));
    };
    let work = async {
        ensure!(!store.terminals().is_proven(name).await?, "{shown} has signed in before: they sign in themselves");
        ensure!(
            !people.is_elsewhere(member.id, connection.user().id).await?,
            "{shown} is a member of projects that you do not own: an owner of all of them has to invite them"
        );
        logins::new_link(&logins::of(store), server, (name, INVITATION_LIVES)).await
    };
    let link = connection.record(&connection.who(), "member.invite", json!({ "name": name }), work).await?;
    if is_json {
        return print::json(&json!({ "link": link, "user": name, "seconds": INVITATION_LIVES.as_secs() }));
    }
    print::address(&link);
    print::note(format_args!("it signs one browser in as {shown}, once, within a day: give it to nobody else"));
    Ok(())
}
