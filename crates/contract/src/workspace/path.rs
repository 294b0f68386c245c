//! The one function that turns a model's string into a path of the workspace.
//!
//! A [`WsPath`] promises only what can be known from the text: it is relative, has no `..` component, no NUL and no
//! component a file system would refuse. That it stays inside the workspace is decided where it is opened, beneath a
//! directory handle: text alone cannot see links.

use std::fmt;

/// Longest accepted path in bytes (`PATH_MAX` on Linux).
pub const PATH_BYTES_MAX: usize = 4096;
/// Longest accepted component in bytes (`NAME_MAX` on Linux).
pub const NAME_BYTES_MAX: usize = 255;

/// A path relative to the workspace root, normalized: `/` between components, no `.`, no `..`, never absolute.
///
/// The root itself is `"."`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WsPath(String);

/// Why a string is not a path of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("`{0}` is an absolute path")]
    Absolute(String),
    #[error("`{0}` has a `..` component")]
    Parent(String),
    #[error("the path has a NUL byte")]
    Nul,
    #[error("the path is {0} bytes long; {PATH_BYTES_MAX} is the most")]
    TooLong(usize),
    #[error("a name in the path is {0} bytes long; {NAME_BYTES_MAX} is the most")]
    NameTooLong(usize),
}

impl WsPath {
    /// The workspace root.
    pub fn root() -> Self {
        Self(".".to_owned())
    }

    /// Parses what a model wrote. `\\?\` prefixes are stripped first; on Unix `\` is an ordinary character of a name,
    /// but Windows' absolute forms are refused everywhere.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.contains('\0') {
            return Err(PathError::Nul);
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong(text.len()));
        }
        let bare = strip_unc_prefix(text);
        if is_absolute(&bare) {
            return Err(PathError::Absolute(text.to_owned()));
        }
        let mut parts = Vec::new();
        for part in bare.split(is_separator) {
            match part {
                "" | "." => {}
                ".." => return Err(PathError::Parent(text.to_owned())),
                name if name.len() > NAME_BYTES_MAX => return Err(PathError::NameTooLong(name.len())),
                name => parts.push(name),
            }
        }
        if parts.is_empty() {
            return Ok(Self::root());
        }
        Ok(Self(parts.join("/")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// The last component, or `"."` for the root.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The directory that holds it; the root for a top-level name.
    pub fn parent(&self) -> Self {
        match self.0.rsplit_once('/') {
            Some((parent, _)) => Self(parent.to_owned()),
            None => Self::root(),
        }
    }

    /// The path of a name in this folder.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        Self::parse(&format!("{}/{name}", self.0))
    }

    /// A path that a directory walk found below the root; walks never yield `..`.
    pub fn from_walk(relative: &std::path::Path) -> Option<Self> {
        Self::parse(relative.to_str()?).ok()
    }
}

impl fmt::Display for WsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The project's own policy, in the workspace root: it tightens what an agent may do, so no agent may change it.
pub const POLICY_FILE: &str = "toolhost.toml";

/// Where deploys into a folder keep their state; a workspace may be such a folder.
pub const STATE_FOLDER: &str = ".toolhost";

/// Whether a path is in the state of deploys at the workspace root.
pub fn is_state(path: &str) -> bool {
    path.split('/').next().is_some_and(|top| top.eq_ignore_ascii_case(STATE_FOLDER))
}

/// Whether any component names git's own folder, in any spelling a file system might fold into `.git`.
///
/// Covers case, NTFS short names and streams, trailing dots and spaces, and HFS+'s ignored code points, as git's own
/// `is_ntfs_dotgit` and `is_hfs_dotgit` do.
pub fn is_git_internal(path: &str) -> bool {
    path.split(['/', '\\']).any(is_dot_git)
}

fn is_dot_git(name: &str) -> bool {
    let visible: String = name.chars().filter(|c| !is_ignored_by_hfs(*c)).collect();
    let stem = visible.split(':').next().unwrap_or("");
    let stem = stem.trim_end_matches([' ', '.']);
    stem.eq_ignore_ascii_case(".git") || stem.eq_ignore_ascii_case("git~1")
}

fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

fn strip_unc_prefix(text: &str) -> String {
    match text.strip_prefix(r"\\?\") {
        // `\\?\UNC\server\share` is `\\server\share`: still absolute, and said so.
        Some(rest) if rest.to_ascii_uppercase().starts_with(r"UNC\") => format!(r"\\{}", &rest[4..]),
        Some(rest) => rest.to_owned(),
        None => text.to_owned(),
    }
}

fn is_separator(c: char) -> bool {
    c == '/' || (cfg!(windows) && c == '\\')
}

fn is_absolute(text: &str) -> bool {
    let bytes = text.as_bytes();
    let drive =
        bytes.len() >= 3 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && matches!(bytes[2], b'\\' | b'/');
    let drive_relative = cfg!(windows) && bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    text.starts_with('/') || text.starts_with(r"\\") || drive || drive_relative
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, PathError>) {
        assert_eq!(WsPath::parse(text).map(|p| p.0), expected.map(str::to_owned), "{text:?}");
    }

    /// Rules: 002.47, 002.48.
    #[test]
    fn accepts_what_frameworks_really_use() {
        check("src/main.rs", Ok("src/main.rs"));
        check("./a//b/", Ok("a/b"));
        check(".", Ok("."));
        check("./", Ok("."));
        check("app/[...slug]/page.tsx", Ok("app/[...slug]/page.tsx"));
        check("src/iterations/x.rs", Ok("src/iterations/x.rs"));
        check("..hidden/a..b", Ok("..hidden/a..b"));
        check(r"\\?\src\main.rs", Ok(if cfg!(windows) { "src/main.rs" } else { r"src\main.rs" }));
        check("名前/é.txt", Ok("名前/é.txt"));
    }

    /// Rules: 002.47, 002.48, 002.49, 004.6.
    #[test]
    fn refuses_what_leaves_the_workspace_by_its_text() {
        check("", Err(PathError::Empty));
        check("/etc/passwd", Err(PathError::Absolute("/etc/passwd".into())));
        check(r"C:\Windows", Err(PathError::Absolute(r"C:\Windows".into())));
        check("c:/Windows", Err(PathError::Absolute("c:/Windows".into())));
        check(r"\\server\share", Err(PathError::Absolute(r"\\server\share".into())));
        check(r"\\?\C:\x", Err(PathError::Absolute(r"\\?\C:\x".into())));
        check(r"\\?\UNC\server\share", Err(PathError::Absolute(r"\\?\UNC\server\share".into())));
        check("..", Err(PathError::Parent("..".into())));
        check("a/../../b", Err(PathError::Parent("a/../../b".into())));
        check("a\0b", Err(PathError::Nul));
        check(&"a/".repeat(3000), Err(PathError::TooLong(6000)));
        check(&"n".repeat(300), Err(PathError::NameTooLong(300)));
    }

    #[test]
    fn sees_git_folders_in_every_spelling() {
        for name in [
            ".git",
            ".GIT/hooks",
            "a/.git/config",
            ".g\u{200c}it",
            ".git.",
            ".git ",
            ".git::$INDEX_ALLOCATION",
            "GIT~1/x",
        ] {
            assert!(is_git_internal(name), "{name:?}");
        }
        for name in [".gitignore", ".github/workflows", "git", "a.git/x", "legit/.gitkeep"] {
            assert!(!is_git_internal(name), "{name:?}");
        }
    }
}
