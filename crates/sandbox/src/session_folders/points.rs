//! Where other mounts begin inside a session's folders: the workspace and toolchains are often below the home.
//!
//! `bwrap` makes missing folders on the way to a mount, and follows links. A command could put a link on that way for the next command,
//! and `bwrap` would make folders wherever it leads, outside the fence. So the whole way is made before the first command, and each
//! folder on it is a mount itself, in every command of the session: the kernel moves and removes no folder in a view in which it is a mount.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Kind;

/// What is mounted in the two folders.
#[derive(Debug, Default)]
pub(super) struct Points {
    /// Where the two folders are seen.
    roots: Vec<(Kind, PathBuf)>,
    points: Vec<Point>,
    /// Folders above them, the outer ones first: which of the two they are in, where there, and as commands see them.
    pins: Vec<(Kind, PathBuf, PathBuf)>,
}

/// One place of a mount.
#[derive(Debug)]
pub(super) struct Point {
    kind: Kind,
    /// As commands see it.
    seen: PathBuf,
    /// Folders on the way to it.
    pub(super) ancestors: Vec<String>,
    pub(super) name: String,
    pub(super) is_folder: bool,
}

/// Where a path is.
pub(super) enum Found<'a> {
    Elsewhere,
    /// In one of the folders, and made.
    Point(Kind, &'a Path),
    Unknown,
}

impl Points {
    /// `mounts` are paths of this machine; those that are not there are no mounts.
    pub(super) fn new(home: &Path, mounts: &[PathBuf]) -> Self {
        let roots = vec![(Kind::Tmp, PathBuf::from("/tmp")), (Kind::Home, home.to_owned())];
        let mut made = Self { roots, ..Self::default() };
        // A home below `/tmp` is a mount in it.
        let all = || mounts.iter().filter(|path| path.exists()).chain([&made.roots[1].1]);
        let mut seen = BTreeSet::new();
        let mut pins = BTreeSet::new();
        let mut points = Vec::new();
        for path in all() {
            let Some((kind, root)) = made.root_of(path) else { continue };
            let Ok(inside) = path.strip_prefix(root) else { continue };
            // What lies in another mount is made there.
            let in_another = |above: &&Path| above.starts_with(root) && *above != root;
            let mut above = path.ancestors().skip(1).filter(in_another);
            if above.any(|above| all().any(|other| other == above)) || !seen.insert(path.to_owned()) {
                continue;
            }
            let names: Option<Vec<String>> = inside.iter().map(|name| name.to_str().map(str::to_owned)).collect();
            let Some((name, ancestors)) = names.as_deref().and_then(<[String]>::split_last) else { continue };
            pins.extend(path.ancestors().skip(1).filter(in_another).map(|above| (kind, above.to_owned())));
            let (ancestors, name) = (ancestors.to_vec(), name.clone());
            let is_folder = path == &made.roots[1].1 || path.is_dir();
            points.push(Point { kind, seen: path.clone(), ancestors, name, is_folder });
        }
        let pin = |(kind, seen): (Kind, PathBuf)| {
            let (_, root) = made.roots.iter().find(|(of, _)| *of == kind)?;
            Some((kind, seen.strip_prefix(root).ok()?.to_owned(), seen))
        };
        made.pins = pins.into_iter().filter_map(pin).collect();
        made.points = points;
        made
    }

    /// The folder that a path lies in, the inner one of two.
    fn root_of(&self, path: &Path) -> Option<(Kind, &Path)> {
        let below = self.roots.iter().filter(|(_, root)| path.starts_with(root) && path != root);
        below.max_by_key(|(_, root)| root.as_os_str().len()).map(|(kind, root)| (*kind, root.as_path()))
    }

    pub(super) fn in_folder(&self, kind: Kind) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(move |point| point.kind == kind)
    }

    pub(super) fn pinned(&self) -> impl Iterator<Item = (Kind, &Path, &Path)> {
        self.pins.iter().map(|(kind, inside, seen)| (*kind, inside.as_path(), seen.as_path()))
    }

    pub(super) fn find<'a>(&'a self, path: &'a Path) -> Found<'a> {
        let Some((kind, root)) = self.root_of(path) else { return Found::Elsewhere };
        // One in another mount has its place there.
        let is_in = |point: &Point| path != point.seen && path.starts_with(&point.seen);
        if self.points.iter().any(is_in) {
            return Found::Elsewhere;
        }
        let is_made = self.points.iter().any(|point| point.seen == path);
        match path.strip_prefix(root) {
            Ok(inside) if is_made => Found::Point(kind, inside),
            _ => Found::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_each_mount_is_made_and_pinned() {
        let check = |home: &str, mounts: &[&str], points: &[&str], pins: &[&str]| {
            let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
            let real = |path: &str| PathBuf::from(path.replace("~", &folder.path().to_string_lossy()));
            for mount in mounts {
                std::fs::create_dir_all(real(mount)).expect("a mount");
            }
            let mounts: Vec<PathBuf> = mounts.iter().map(|mount| real(mount)).collect();
            let made = Points::new(&real(home), &mounts);
            let found: Vec<PathBuf> = made.points.iter().map(|point| point.seen.clone()).collect();
            assert_eq!(found, points.iter().map(|point| real(point)).collect::<Vec<_>>(), "{home} {mounts:?}");
            let found: Vec<PathBuf> = made.pinned().map(|(_, _, seen)| seen.to_owned()).collect();
            assert_eq!(found, pins.iter().map(|pin| real(pin)).collect::<Vec<_>>(), "{home} {mounts:?}");
        };
        check("~", &["~/src/a/project", "~/.cargo"], &["~/src/a/project", "~/.cargo"], &["~/src", "~/src/a"]);
        // What is in another mount is not in the home.
        check("~", &["~/p", "~/p/.venv/bin"], &["~/p"], &[]);
        // The home itself, or a folder above it.
        check("~/home", &["~/home"], &[], &[]);
        check("~/home", &["~"], &[], &[]);
        check("/tmp/h", &[], &["/tmp/h"], &[]);
    }
}
