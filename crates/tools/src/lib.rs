//! The built-in tools: one file each, one list.
//!
//! A tool knows what it does and refuses to know policy, audit and who is calling. [`all`] answers the question "what
//! can this host do?".

mod bash;
mod file;
mod git;
mod interactive;
mod page;
mod tool;

use toolhost_contract::AnyTool;

/// Every built-in tool, in the order lists show them.
pub fn all() -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(file::list::List),
        Box::new(file::read::Read),
        Box::new(file::search::Search),
        Box::new(file::write::Write),
        Box::new(file::edit::Edit),
        Box::new(file::move_file::Move),
        Box::new(file::delete::Delete),
        Box::new(bash::Bash),
        Box::new(git::status::Status),
        Box::new(git::diff::Diff),
        Box::new(git::log::Log),
        Box::new(git::commit::Commit),
        Box::new(git::push::Push),
        Box::new(tool::list::List),
        Box::new(tool::describe::Describe),
    ]
}
