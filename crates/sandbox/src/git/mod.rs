//! A person's git never runs an agent's program.
//!
//! What git obeys (configuration, hooks, attributes, the files that say where a repository is) stays as the person has it,
//! whatever a command does. [`places`] finds it all, with git's own words: `.git` of the workspace, of its linked worktrees
//! and of its submodules at any depth, of the repositories that it lies in ([`around`]), and what links, `include.path` and
//! `core.hooksPath` name inside the workspace, for each working tree and also in settings outside.
//!
//! In the full tier each place is a read-only mount, and what is not there is held by a [`placeholder`]: nothing can be
//! planted, so nothing has to be put back. A link cannot be mounted over: it is put back, as in the Landlock tier. Without mounts, in the Landlock tier, a [`snapshot`] is kept on disk before a
//! command and put back after it by the [`guard`], which is shared by all hosts and finished by the next one.
//!
//! A file of these that has a second name (a hard link) could be changed through that one: the full tier refuses commands then
//! ([`shared`]), and the Landlock tier replaces the file by a copy.
//!
//! Not held: other repositories in the workspace, such as clones side by side and those that commands make.

mod accepted;
mod around;
mod guard;
mod hold;
mod mounted;
mod packed;
mod placeholder;
mod places;
mod read;
mod refs;
mod shared;
mod snapshot;

pub(crate) use accepted::strange;
pub(crate) use around::{Around, Outer, around, repository_around};
pub(crate) use guard::{Begun, Guard, NAMED_MAX, Reach, Turn};
pub(crate) use hold::{Held, Started, hold, of_git_itself};
pub(crate) use placeholder::Placeholder;
pub(crate) use places::{FOUND_BYTES_MAX, Places, Seen, find, forget, is_repository, read_places, refused, unreadable};
pub(crate) use read::Top;
pub(crate) use refs::Refs;
pub(crate) use shared::refuse_shared;
