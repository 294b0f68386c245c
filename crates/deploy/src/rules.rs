//! What ships, what is never deleted, and what counts as an orphan.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use toolhost_contract::workspace::{Glob, GlobStyle, Result};

/// What ships unless the project says otherwise: pages, scripts, data, texts, images and fonts.
pub const SHIP_DEFAULT: &[&str] = &[
    ".html", ".css", ".js", ".ts", ".tsx", ".json", ".md", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".ico",
    ".avif", ".bmp", ".woff", ".woff2", ".ttf", ".otf", ".eot",
];
/// What a deploy never deletes unless the project says otherwise: what a project has that no workspace brings, and every
/// hidden file and folder.
pub const PROTECT_DEFAULT: &[&str] = &[
    ".git/",
    "config.toml",
    "README.md",
    "LICENSE",
    "AGENT.md",
    "litho.docs/",
    "Cargo.toml",
    "Cargo.lock",
    "**/Dockerfile",
    "**/.*",
];
const FILES_MAX_DEFAULT: usize = 200_000;

/// What a deploy may do, from the project's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeployRules {
    /// Extensions such as `.html`, in any case, or exact file names such as `Dockerfile`.
    pub ship: Vec<String>,
    /// Globs of paths in the target that are never deleted, each with all that is below. What git ignores in the target
    /// is never deleted either.
    pub protect: Vec<String>,
    pub orphans: Orphans,
    /// Most files that one deploy may ship.
    pub files_max: usize,
}

/// Which files of the target are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Orphans {
    /// Only what an earlier deploy put there and nobody has changed since.
    Ours,
    /// Whatever is not in the workspace.
    Everything,
}

impl Default for DeployRules {
    fn default() -> Self {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        Self {
            ship: owned(SHIP_DEFAULT),
            protect: owned(PROTECT_DEFAULT),
            orphans: Orphans::Ours,
            files_max: FILES_MAX_DEFAULT,
        }
    }
}

/// The rules, ready to be asked.
pub(super) struct Filter<'a> {
    extensions: HashSet<String>,
    names: HashSet<&'a str>,
    protect: Vec<Glob>,
    patterns: &'a [String],
}

impl<'a> Filter<'a> {
    pub(super) fn new(rules: &'a DeployRules) -> Result<Self> {
        let mut protect = Vec::new();
        for pattern in &rules.protect {
            let bare = pattern.trim_end_matches('/');
            // In any case: to protect too much costs a file that stays, to protect too little costs a file.
            protect.push(Glob::new(bare, GlobStyle::PathAnyCase)?);
        }
        let (extensions, names) = rules.ship.iter().partition::<Vec<_>, _>(|entry| entry.starts_with('.'));
        Ok(Self {
            extensions: extensions.into_iter().map(|entry| entry.to_lowercase()).collect(),
            names: names.into_iter().map(String::as_str).collect(),
            protect,
            patterns: &rules.protect,
        })
    }

    /// Whether a file of this name ships. `.d.ts` is an extension too, and `.env` a name that is all extension.
    pub(super) fn ships(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        self.names.contains(name) || lower.match_indices('.').any(|(at, _)| self.extensions.contains(&lower[at..]))
    }

    /// Why this very path is never deleted, if it is not.
    pub(super) fn protects(&self, path: &str) -> Option<String> {
        let first = self.protect.iter().position(|glob| glob.is_match(path))?;
        Some(format!("protected by `{}`", self.patterns[first]))
    }

    /// The same for a path and the folders it is in.
    pub(super) fn protects_below(&self, path: &str) -> Option<String> {
        lineage(path).find_map(|part| self.protects(part))
    }
}

/// A path's folders from the outermost on, and the path itself.
pub(super) fn lineage(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain(std::iter::once(path))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn ships_by_extension_in_any_case_and_by_exact_name() {
        let rules = DeployRules {
            ship: vec![".HTML".into(), ".d.ts".into(), "Dockerfile".into(), ".env".into()],
            ..DeployRules::default()
        };
        let filter = Filter::new(&rules).unwrap();
        for name in ["a.html", "A.Html", "x.d.ts", "Dockerfile", ".env", "a.b.html"] {
            assert!(filter.ships(name), "{name}");
        }
        for name in ["html", "a.html5", "x.ts", "dockerfile", "a.htm", "env"] {
            assert!(!filter.ships(name), "{name}");
        }
    }

    /// Rules: 002.34, 002.64.
    #[test]
    fn protects_hidden_names_at_any_depth_and_the_rest_at_the_root() {
        let rules = DeployRules::default();
        let filter = Filter::new(&rules).unwrap();
        for path in [".env", "a/.env", ".github/workflows/x.yml", "a/.b/c/d.js", "readme.md", "config.toml", ".git/x"] {
            assert!(filter.protects_below(path).is_some(), "{path}");
        }
        for path in ["docs/README.md", "a/config.toml", "index.html", "a.git/x"] {
            assert!(filter.protects_below(path).is_none(), "{path}");
        }
    }
}
