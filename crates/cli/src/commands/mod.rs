//! The commands, one file each.

mod approvals;
mod audit;
mod backup;
mod call;
mod change;
mod checkpoint;
mod completions;
mod demo;
mod deploy;
mod doctor;
mod export;
pub(crate) mod families;
mod help;
mod import;
mod init;
mod key;
mod login;
mod man;
mod mcp;
mod member;
mod package;
mod policy;
mod profiles;
mod project;
mod quota;
mod review;
mod run;
mod schema;
mod serve;
mod session;
mod token;
mod tools;
mod undo;
mod webhook;

use std::process::ExitCode;

use crate::settings::Settings;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Init(init::Args),
    Demo(demo::Args),
    Mcp(mcp::Args),
    Serve(serve::Args),
    Token(token::Args),
    Login(login::Args),
    Logout(login::LogoutArgs),
    Run(Box<run::Args>),
    Session(session::Args),
    Key(key::Args),
    Call(call::Args),
    Tools(tools::Args),
    Profiles(profiles::Args),
    Project(project::Args),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Policy(policy::Args),
    Review(review::Args),
    Approvals(approvals::Args),
    Deploy(deploy::Args),
    Undo(undo::Args),
    Package(package::Args),
    Change(change::Args),
    Schema(schema::Args),
    Audit(audit::Args),
    Import(import::Args),
    Export(export::Args),
    Member(member::Args),
    Quota(quota::Args),
    Webhook(webhook::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Commands with what their help texts have in common.
pub(crate) fn with_help(command: clap::Command) -> clap::Command {
    help::dressed(command)
}

pub(crate) async fn run(command: Command, settings: &Settings) -> anyhow::Result<ExitCode> {
    match command {
        Command::Init(args) => init::run(args, &settings.staying_here()).await,
        Command::Demo(args) => demo::run(args, &settings.staying_here()).await,
        Command::Mcp(args) => mcp::run(args, &settings.staying_here()).await,
        Command::Serve(args) => serve::run(args, settings).await,
        Command::Token(args) => token::run(args, settings).await,
        Command::Login(args) => login::run(args, settings).await,
        Command::Logout(args) => login::log_out(args, settings).await,
        Command::Run(args) => run::run(*args, &settings.staying_here()).await,
        Command::Session(args) => session::run(args, settings).await,
        Command::Key(args) => key::run(args, settings),
        Command::Call(args) => call::run(args, &settings.staying_here()).await,
        Command::Tools(args) => tools::run(args, settings).await,
        Command::Profiles(args) => profiles::run(args, settings).await,
        Command::Project(args) => project::run(args, settings).await,
        Command::Backup(args) => backup::back_up(args, &settings.staying_here()).await,
        Command::Restore(args) => backup::restore(args, &settings.staying_here()).await,
        Command::Policy(args) => policy::run(args, settings).await,
        Command::Review(args) => review::run(args, settings).await,
        Command::Approvals(args) => approvals::run(args, settings).await,
        Command::Deploy(args) => deploy::run(args, settings).await,
        Command::Undo(args) => undo::run(args, settings).await,
        Command::Package(args) => package::run(args, settings).await,
        Command::Change(args) => change::run(args, settings).await,
        Command::Schema(args) => schema::run(&args),
        Command::Audit(args) => audit::run(args, settings).await,
        Command::Import(args) => import::run(args, settings).await,
        Command::Export(args) => export::run(args, settings).await,
        Command::Member(args) => member::run(args, settings).await,
        Command::Quota(args) => quota::run(args, settings).await,
        Command::Webhook(args) => webhook::run(args, settings).await,
        Command::Doctor(args) => doctor::run(args, settings).await,
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(&args),
    }
}
