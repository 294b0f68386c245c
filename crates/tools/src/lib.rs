//! The tools for files, shell, git, people and the host itself: one file each, three lists.
//!
//! A tool knows what it does and refuses to know policy, audit and who may call. Tools for records, packages and deploys stand
//! beside these, in the crates `records`, `builder` and `deploy`; the facade `toolhost` puts all of them in one list.

mod approval;
mod background;
mod bash;
mod file;
mod git;
mod git_hint;
mod human;
mod interactive;
mod network_hint;
mod review;
mod session;
mod tool;

use toolhost_contract::AnyTool;
use toolhost_store::Steps;

/// The built-in profiles: which tools each has, of all families.
pub const PROFILES: &str = include_str!("profiles.toml");

/// The tools for the files and the repository of a workspace, in the order lists show them.
pub fn of_the_workspace() -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(file::list::List),
        Box::new(file::read::Read),
        Box::new(file::search::Search),
        Box::new(file::write::Write),
        Box::new(file::edit::Edit),
        Box::new(file::move_file::Move),
        Box::new(file::delete::Delete),
        Box::new(bash::Bash),
        Box::new(background::output::Output),
        Box::new(background::kill::Kill),
        Box::new(git::status::Status),
        Box::new(git::diff::Diff),
        Box::new(git::log::Log),
        Box::new(git::commit::Commit),
        Box::new(git::push::Push),
        Box::new(git::fetch::Fetch),
        Box::new(git::pull::Pull),
        Box::new(git::show::Show),
        Box::new(git::init::Init),
        Box::new(git::branch::Branch),
        Box::new(git::switch::Switch),
        Box::new(git::restore::Restore),
        Box::new(git::stash::Stash),
    ]
}

/// What takes a person.
pub fn of_people() -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(review::file::File),
        Box::new(review::content::Content),
        Box::new(human::ask::Ask),
        Box::new(approval::wait::Wait),
    ]
}

/// What a host says of itself and of the sessions of agents.
pub fn of_the_host(steps: &Steps) -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(tool::list::List),
        Box::new(tool::describe::Describe),
        Box::new(tool::search::Search),
        Box::new(session::result::SessionResult(steps.clone())),
    ]
}
