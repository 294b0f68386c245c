//! The programs the house needs from the system, and how Debian gets them.
//!
//! Looked for by program rather than by package: a git built by hand is a git. As root, which is what a CI container
//! is, missing ones are installed; anybody else is told the line to type.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use crate::shell;

const NEEDS: [Need; 4] = [
    Need { program: "bwrap", packages: &["bubblewrap"] },
    Need { program: "git", packages: &["git"] },
    // The C library's headers are only recommended by gcc, and recommended packages are left out.
    Need { program: "cc", packages: &["gcc", "libc6-dev"] },
    Need { program: "bash", packages: &["bash"] },
];

/// Mirrors fail now and then, and a second try costs less than a red build.
const TRIES: u32 = 2;
/// Another apt may be at work in a machine that just started.
const LOCK_WAIT: &str = "DPkg::Lock::Timeout=60";

#[derive(Debug, PartialEq, Eq)]
struct Need {
    program: &'static str,
    packages: &'static [&'static str],
}

/// Makes sure the programs are there, or says what to do. Other systems than Debian get a remark, not a failure: the
/// tests will tell what they cannot do without.
pub(crate) fn ensure() -> Result<()> {
    let lacking = lacking(shell::has_program);
    if lacking.is_empty() {
        return Ok(());
    }
    let programs = lacking.iter().map(|need| need.program).collect::<Vec<_>>().join(", ");
    if !is_debian(&fs::read_to_string("/etc/os-release").unwrap_or_default()) {
        eprintln!("note: missing programs: {programs}; install them with your system's package manager");
        return Ok(());
    }
    let packages = packages(&lacking);
    if !is_root()? {
        bail!("missing programs: {programs}; install them with\n  {}", install_line(&packages));
    }
    println!("{}", shell::bold(&format!("== packages: {}", packages.join(" "))));
    install(&packages)?;
    let still = self::lacking(shell::has_program);
    if let Some(need) = still.first() {
        bail!("`{}` is not on the PATH although {} was installed", need.program, need.packages.join(" "));
    }
    Ok(())
}

fn lacking(has_program: impl Fn(&str) -> bool) -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !has_program(need.program)).collect()
}

fn packages(needs: &[&Need]) -> Vec<&'static str> {
    needs.iter().flat_map(|need| need.packages.iter().copied()).collect()
}

fn install_line(packages: &[&str]) -> String {
    format!("sudo apt-get install --no-install-recommends -y {}", packages.join(" "))
}

/// Debian, or one of its children, which name it in `ID_LIKE`.
fn is_debian(os_release: &str) -> bool {
    os_release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .any(|value| value.trim_matches('"').split(' ').any(|id| id == "debian"))
}

/// The owner of our own entry in /proc is our effective user; std has no `geteuid`.
fn is_root() -> Result<bool> {
    Ok(fs::metadata("/proc/self").context("cannot read /proc/self to see who runs this")?.uid() == 0)
}

fn install(packages: &[&str]) -> Result<()> {
    let mut output = try_install(packages)?;
    for _ in 1..TRIES {
        if output.status.success() {
            break;
        }
        eprintln!("note: apt-get failed with {}, trying again", output.status);
        output = try_install(packages)?;
    }
    if !output.status.success() {
        eprintln!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("apt-get could not install {}; its output is above", packages.join(" "));
    }
    Ok(())
}

/// A container's package lists are usually deleted, so they are always fetched first.
fn try_install(packages: &[&str]) -> Result<Output> {
    let updated = apt_get(&["update"])?;
    if !updated.status.success() {
        return Ok(updated);
    }
    let mut install = vec!["install", "--no-install-recommends", "-y"];
    install.extend(packages);
    apt_get(&install)
}

fn apt_get(arguments: &[&str]) -> Result<Output> {
    Command::new("apt-get")
        .args(["-o", LOCK_WAIT])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()
        .context("cannot start apt-get")
}

#[cfg(test)]
mod tests {
    use super::{install_line, is_debian, lacking, packages};

    #[test]
    fn only_missing_programs_are_installed() {
        assert_eq!(lacking(|_| true), Vec::<&super::Need>::new());
        assert_eq!(
            packages(&lacking(|program| program == "git" || program == "bash")),
            ["bubblewrap", "gcc", "libc6-dev"]
        );
    }

    #[test]
    fn the_line_to_type_is_complete() {
        let line = install_line(&packages(&lacking(|program| program != "bwrap")));
        assert_eq!(line, "sudo apt-get install --no-install-recommends -y bubblewrap");
    }

    #[test]
    fn debian_and_its_children_are_known() {
        for (os_release, expected) in [
            ("NAME=\"Debian GNU/Linux\"\nID=debian\n", true),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", true),
            ("ID=fedora\n", false),
            ("NAME=debian\n", false),
            ("", false),
        ] {
            assert_eq!(is_debian(os_release), expected, "{os_release:?}");
        }
    }
}
