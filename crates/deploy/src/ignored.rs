//! What git ignores in a tree, read through the tree's handle.
//!
//! The walker of listings does the same by path, and one path at a time cannot be asked of it: a deploy must know of a
//! single file of the target whether git would ignore it. The user's global excludes are outside of both trees and do
//! not count.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::root::Root;
use super::rules::lineage;
use toolhost_contract::workspace::{Error, Result};
use toolhost_sandbox::from_io;
use toolhost_sandbox::{IGNORE_BYTES_MAX, repository_around};

/// The rules that hold in one folder: its own, then those of the folders above.
pub(super) struct Rules {
    /// The folder they were written in, with a slash at its end unless it is the root.
    prefix: String,
    own: Gitignore,
    above: Inherited,
}

pub(super) type Inherited = Option<Arc<Rules>>;

/// What holds in the root before its own `.gitignore`: the excludes of its repository, and where the root is a folder of
/// a larger repository, what is written above it.
pub(super) fn above_root(root: &Root, path: &Path, reach: Reach) -> Result<Inherited> {
    let mut rules = None;
    if reach == Reach::Repository
        && let Some(repository) = repository_around(path)
    {
        let below = path.strip_prefix(repository).ok().and_then(Path::to_str).unwrap_or_default();
        let outer = Root::open(repository)?;
        let mut outer_rules = Folders::new(&outer, read(&outer, ".git/info/exclude", "", None)?);
        if outer_rules.ignores_below(below, true)? {
            // A folder that git ignores as a whole: then the rules above say nothing about what is in it.
            return read(root, ".git/info/exclude", "", None);
        }
        rules = outer_rules.of(super::root::split(below).0)?.map(|above| Arc::new(Rules::moved(&above, below)));
    }
    read(root, ".git/info/exclude", "", rules)
}

/// How far up the rules are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The tree alone: a workspace is often a folder that the project around it ignores.
    Tree,
    Repository,
}

impl Rules {
    /// The rules of `folder`, whose `.gitignore` may add to what is inherited.
    pub(super) fn of(root: &Root, folder: &str, above: Inherited) -> Result<Inherited> {
        let file = if folder.is_empty() { ".gitignore".to_owned() } else { format!("{folder}/.gitignore") };
        read(root, &file, folder, above)
    }

    /// Rules of folders above another root, asked with paths below that root.
    fn moved(above: &Arc<Self>, below: &str) -> Self {
        // A path `x` below the root is `below/x` to them: a negative prefix, so to speak.
        Self { prefix: format!("\0{below}/"), own: Gitignore::empty(), above: Some(Arc::clone(above)) }
    }

    /// Whether git ignores this entry, its folder not being ignored.
    pub(super) fn ignore(self: &Arc<Self>, path: &str, folder: bool) -> bool {
        let mut path = std::borrow::Cow::Borrowed(path);
        let mut next = Some(self);
        while let Some(rules) = next {
            if let Some(below) = rules.prefix.strip_prefix('\0') {
                path = format!("{below}{path}").into();
            } else {
                let relative = path.strip_prefix(rules.prefix.as_str()).unwrap_or(&path);
                match rules.own.matched(relative, folder) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            next = rules.above.as_ref();
        }
        false
    }
}

/// Adds the rules of one file, if there is such a file.
fn read(root: &Root, file: &str, folder: &str, above: Inherited) -> Result<Inherited> {
    let (opened, stat) = match root.file(file) {
        Ok(opened) => opened,
        // Git follows no link here either.
        Err(Error::NotFound { .. } | Error::Escape { .. } | Error::NotRegular { what: "a folder", .. }) => {
            return Ok(above);
        }
        Err(e) => return Err(e),
    };
    if stat.bytes > IGNORE_BYTES_MAX {
        return Err(Error::NotRegular { path: file.to_owned(), what: "too large" });
    }
    let mut bytes = Vec::new();
    opened.take(IGNORE_BYTES_MAX).read_to_end(&mut bytes).map_err(|e| from_io(file, e))?;
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern is passed over, as git does.
        let _ = builder.add_line(None, line);
    }
    let own = builder.build().map_err(|e| Error::Pattern { what: "an ignore file", message: e.to_string() })?;
    if own.is_empty() {
        return Ok(above);
    }
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    Ok(Some(Arc::new(Rules { prefix, own, above })))
}

/// The rules of single folders, as they are asked for.
pub(super) struct Folders<'a> {
    root: &'a Root,
    above: Inherited,
    known: HashMap<String, Inherited>,
}

impl<'a> Folders<'a> {
    pub(super) fn new(root: &'a Root, above: Inherited) -> Self {
        Self { root, above, known: HashMap::new() }
    }

    fn of(&mut self, folder: &str) -> Result<Inherited> {
        let mut rules = self.above.clone();
        for part in std::iter::once("").chain(lineage(folder).filter(|part| !part.is_empty())) {
            rules = match self.known.get(part) {
                Some(known) => known.clone(),
                None => {
                    let found = Rules::of(self.root, part, rules)?;
                    self.known.insert(part.to_owned(), found.clone());
                    found
                }
            };
        }
        Ok(rules)
    }

    /// Whether git ignores a path or a folder it is in.
    pub(super) fn ignores_below(&mut self, path: &str, folder: bool) -> Result<bool> {
        for part in lineage(path) {
            let rules = self.of(super::root::split(part).0)?;
            if rules.is_some_and(|rules| rules.ignore(part, folder || part.len() < path.len())) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
