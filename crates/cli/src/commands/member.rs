//! `toolhost member`

use std::process::ExitCode;

use serde_json::json;
use toolhost::Need;
use toolhost_store::Role;

use crate::settings::Settings;
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
            let members = people.members(project.id).await?;
            if settings.json {
                print::json(&members)?;
            } else {
                let rows: Vec<Vec<String>> = members
                    .into_iter()
                    .map(|member| vec![print::visible_line(&member.name), member.role.as_str().to_owned()])
                    .collect();
                print::table(&["name", "role"], &rows);
            }
        }
        Command::Add { name, role } => {
            connection.need_role(Role::Owner).await?;
            let role = match role {
                RoleName::Owner => Role::Owner,
                RoleName::Editor => Role::Editor,
                RoleName::Viewer => Role::Viewer,
            };
            let arguments = json!({ "name": name, "role": role.as_str() });
            let work = async {
                let id = people.add_user(&name).await?;
                people.set_role(project.id, id, role).await?;
                anyhow::Ok(id)
            };
            let id = connection.record(&connection.who(), "member.add", arguments, work).await?;
            if settings.json {
                print::json(&json!({ "id": id, "name": name, "role": role.as_str() }))?;
            } else {
                print::line(format_args!(
                    "{} is {} of {}",
                    print::visible_line(&name),
                    role.as_str(),
                    print::visible_line(&project.name)
                ));
            }
        }
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
