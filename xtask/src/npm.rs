//! Programs from npm, each in a folder of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// A Node that is newer than many systems have. The package is nothing but the program.
pub(crate) const NODE: &str = "node@22.23.3";

/// Installs packages, each with its version, if they are not there.
pub(crate) fn install(place: &Path, packages: &[&str]) -> Result<()> {
    let done = place.join(format!("installed-{}", packages.join("-").replace(['/', '@'], "")));
    if done.is_file() {
        return Ok(());
    }
    std::fs::create_dir_all(place).with_context(|| format!("cannot make {}", place.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(place).args(packages);
    shell::must_run(&mut npm)?;
    std::fs::write(&done, "").with_context(|| format!("cannot write {}", done.display()))
}
