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

use toolhost_contract::BoxFuture;

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

/// What a command does. Each is in a box of its own: without that, each command would take stack from all others, since a build without
/// optimization keeps room for all of them while one runs.
pub(crate) fn run(command: Command, settings: &Settings) -> BoxFuture<'_, anyhow::Result<ExitCode>> {
    match command {
        Command::Init(args) => Box::pin(async move { init::run(args, &settings.staying_here()).await }),
        Command::Demo(args) => Box::pin(async move { demo::run(args, &settings.staying_here()).await }),
        Command::Mcp(args) => Box::pin(async move { mcp::run(args, &settings.staying_here()).await }),
        Command::Serve(args) => Box::pin(async move { serve::run(args, settings).await }),
        Command::Token(args) => Box::pin(async move { token::run(args, settings).await }),
        Command::Login(args) => Box::pin(async move { login::run(args, settings).await }),
        Command::Logout(args) => Box::pin(async move { login::log_out(args, settings).await }),
        Command::Run(args) => Box::pin(async move { run::run(*args, &settings.staying_here()).await }),
        Command::Session(args) => Box::pin(async move { session::run(args, settings).await }),
        Command::Key(args) => Box::pin(async move { key::run(args, settings) }),
        Command::Call(args) => Box::pin(async move { call::run(args, &settings.staying_here()).await }),
        Command::Tools(args) => Box::pin(async move { tools::run(args, settings).await }),
        Command::Profiles(args) => Box::pin(async move { profiles::run(args, settings).await }),
        Command::Project(args) => Box::pin(async move { project::run(args, settings).await }),
        Command::Backup(args) => Box::pin(async move { backup::back_up(args, &settings.staying_here()).await }),
        Command::Restore(args) => Box::pin(async move { backup::restore(args, &settings.staying_here()).await }),
        Command::Policy(args) => Box::pin(async move { policy::run(args, settings).await }),
        Command::Review(args) => Box::pin(async move { review::run(args, settings).await }),
        Command::Approvals(args) => Box::pin(async move { approvals::run(args, settings).await }),
        Command::Deploy(args) => Box::pin(async move { deploy::run(args, settings).await }),
        Command::Undo(args) => Box::pin(async move { undo::run(args, settings).await }),
        Command::Package(args) => Box::pin(async move { package::run(args, settings).await }),
        Command::Change(args) => Box::pin(async move { change::run(args, settings).await }),
        Command::Schema(args) => Box::pin(async move { schema::run(&args) }),
        Command::Audit(args) => Box::pin(async move { audit::run(args, settings).await }),
        Command::Import(args) => Box::pin(async move { import::run(args, settings).await }),
        Command::Export(args) => Box::pin(async move { export::run(args, settings).await }),
        Command::Member(args) => Box::pin(async move { member::run(args, settings).await }),
        Command::Quota(args) => Box::pin(async move { quota::run(args, settings).await }),
        Command::Webhook(args) => Box::pin(async move { webhook::run(args, settings).await }),
        Command::Doctor(args) => Box::pin(async move { doctor::run(args, settings).await }),
        Command::Completions(args) => Box::pin(async move { completions::run(args) }),
        Command::Man(args) => Box::pin(async move { man::run(&args) }),
    }
}
