//! The programs the house needs from the system, and how Debian gets them.
//!
//! Looked for by program rather than by package: a git built by hand is a git. As root, which is what a CI container
//! is, missing ones are installed; anybody else is told the line to type.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use crate::shell;

const NEEDS: [Need; 10] = [
    Need::of("bwrap", &["bubblewrap"]),
    Need::of("git", &["git"]),
    // The C library's headers are only recommended by gcc, and recommended packages are left out.
    Need::of("cc", &["gcc", "libc6-dev"]),
    Need::of("bash", &["bash"]),
    Need::of("ssh", &["openssh-client"]),
    // Not on everybody's PATH.
    Need { also_in: Some("/usr/sbin"), ..Need::of("sshd", &[OPENSSH_SERVER]) },
    // Debian keeps several versions side by side and none on the PATH.
    Need { versions_in: Some("/usr/lib/postgresql"), without: Without::Skip, ..Need::of("initdb", &[POSTGRESQL]) },
    Need { without: Without::Skip, ..Need::of("chromium", &["chromium"]) },
    Need { without: Without::Skip, ..Need::of("chromedriver", &["chromium-driver"]) },
    // Fetches axe-core, which says whether the pages are accessible.
    Need { without: Without::Skip, ..Need::of("npm", &["npm"]) },
];

const POSTGRESQL: &str = "postgresql";
const OPENSSH_SERVER: &str = "openssh-server";

/// Debian makes and starts a server when it installs PostgreSQL, unless it finds this setting. No test uses that one.
const NO_SERVER: &str = "create_main_cluster = false\n";
/// What Debian runs to ask whether a server may be started.
const SERVERS_POLICY: &str = "/usr/sbin/policy-rc.d";
const POSTGRESQL_SETTINGS: &str = "/etc/postgresql-common";

/// Mirrors fail now and then, and a second try costs less than a red build.
const TRIES: u32 = 2;
/// Another apt may be at work in a machine that just started.
const LOCK_WAIT: &str = "DPkg::Lock::Timeout=60";

#[derive(Debug, PartialEq, Eq)]
struct Need {
    program: &'static str,
    packages: &'static [&'static str],
    /// A folder beside the PATH, where each version has a folder with a `bin` of its own.
    versions_in: Option<&'static str>,
    /// Another folder beside the PATH.
    also_in: Option<&'static str>,
    without: Without,
}

/// What the tests do without a program that we cannot install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Fail,
    /// They say so and go on.
    Skip,
}

impl Need {
    const fn of(program: &'static str, packages: &'static [&'static str]) -> Self {
        Self { program, packages, versions_in: None, also_in: None, without: Without::Fail }
    }

    fn is_met(&self) -> bool {
        shell::has_program(self.program)
            || self.versions_in.is_some_and(|folder| has_version(folder, self.program))
            || self.also_in.is_some_and(|folder| Path::new(folder).join(self.program).is_file())
    }
}

/// Makes sure the programs are there, or says what to do. Other systems than Debian get a remark, not a failure: the
/// tests will tell what they cannot do without.
pub(crate) fn ensure() -> Result<()> {
    let lacking = lacking(Need::is_met);
    if lacking.is_empty() {
        return Ok(());
    }
    let programs = lacking.iter().map(|need| need.program).collect::<Vec<_>>().join(", ");
    if !is_debian(&fs::read_to_string("/etc/os-release").unwrap_or_default()) {
        eprintln!("note: missing programs: {programs}; install them with your system's package manager");
        return Ok(());
    }
    let packages = packages(&lacking);
    if !is_root()? && can_go_on(&lacking) {
        eprintln!(
            "note: missing programs: {programs}; the tests that need them are skipped until you install them with\n  {}",
            install_line(&packages)
        );
        return Ok(());
    }
    if !is_root()? {
        bail!("missing programs: {programs}; install them with\n  {}", install_line(&packages));
    }
    println!("{}", shell::bold(&format!("== packages: {}", packages.join(" "))));
    let servers = [POSTGRESQL, OPENSSH_SERVER].iter().any(|server| packages.contains(server));
    match (packages.contains(&POSTGRESQL), servers) {
        (true, _) => without_its_server(|| without_servers(|| install(&packages)))?,
        (false, true) => without_servers(|| install(&packages))?,
        (false, false) => install(&packages)?,
    }
    let still = self::lacking(Need::is_met);
    if let Some(need) = still.first() {
        bail!("`{}` is not found although {} was installed", need.program, need.packages.join(" "));
    }
    Ok(())
}

/// Whether the tests on PostgreSQL can run here; where they can, they must.
pub(crate) fn has_postgresql() -> bool {
    NEEDS.iter().filter(|need| need.packages.contains(&POSTGRESQL)).all(Need::is_met)
}

/// Whether the tests in a browser can run here; where they can, they must.
pub(crate) fn has_browser() -> bool {
    NEEDS.iter().filter(|need| ["chromium", "chromedriver", "npm"].contains(&need.program)).all(Need::is_met)
}

fn lacking(is_met: impl Fn(&Need) -> bool) -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !is_met(need)).collect()
}

fn can_go_on(lacking: &[&Need]) -> bool {
    lacking.iter().all(|need| need.without == Without::Skip)
}

fn has_version(folder: &str, program: &str) -> bool {
    let mut versions = fs::read_dir(folder).into_iter().flatten().flatten();
    versions.any(|version| version.path().join("bin").join(program).is_file())
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

/// Lets packages be installed without their servers being started: what Debian asks before it starts one answers no. Whoever
/// has an answer of their own keeps it.
fn without_servers(install: impl FnOnce() -> Result<()>) -> Result<()> {
    let policy = Path::new(SERVERS_POLICY);
    if policy.exists() {
        return install();
    }
    fs::write(policy, "#!/bin/sh\nexit 101\n")
        .and_then(|()| fs::set_permissions(policy, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {SERVERS_POLICY}"))?;
    let installed = install();
    fs::remove_file(policy).with_context(|| format!("cannot remove {SERVERS_POLICY}"))?;
    installed
}

/// Lets PostgreSQL be installed without the server. A machine that had it once keeps its own settings.
fn without_its_server(install: impl FnOnce() -> Result<()>) -> Result<()> {
    let folder = Path::new(POSTGRESQL_SETTINGS);
    if folder.exists() {
        return install();
    }
    let settings = folder.join("createcluster.d/toolhost.conf");
    fs::create_dir_all(folder.join("createcluster.d"))
        .and_then(|()| fs::write(&settings, NO_SERVER))
        .with_context(|| format!("cannot write {}", settings.display()))?;
    let installed = install();
    // Whoever installs another version later gets the server they expect.
    fs::remove_file(&settings).with_context(|| format!("cannot remove {}", settings.display()))?;
    installed
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
    use super::{can_go_on, has_version, install_line, is_debian, lacking, packages};
    use std::fs;

    #[test]
    fn only_missing_programs_are_installed() {
        assert_eq!(lacking(|_| true), Vec::<&super::Need>::new());
        assert_eq!(
            packages(&lacking(|need| need.program == "git" || need.program == "bash")),
            [
                "bubblewrap",
                "gcc",
                "libc6-dev",
                "openssh-client",
                "openssh-server",
                "postgresql",
                "chromium",
                "chromium-driver",
                "npm"
            ]
        );
    }

    #[test]
    fn the_line_to_type_is_complete() {
        let line = install_line(&packages(&lacking(|need| need.program != "bwrap")));
        assert_eq!(line, "sudo apt-get install --no-install-recommends -y bubblewrap");
    }

    #[test]
    fn a_program_is_also_found_beside_the_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let versions = folder.path().to_str().expect("a plain path");
        assert!(!has_version(versions, "initdb"));
        fs::create_dir_all(folder.path().join("15/bin")).expect("a version");
        assert!(!has_version(versions, "initdb"));
        fs::write(folder.path().join("15/bin/initdb"), "").expect("a program");
        assert!(has_version(versions, "initdb"));
        assert!(!has_version("/nonexistent", "initdb"));
    }

    #[test]
    fn postgresql_or_a_browser_is_no_reason_to_stop() {
        for program in ["initdb", "chromium", "chromedriver", "npm"] {
            assert!(can_go_on(&lacking(|need| need.program != program)));
        }
        assert!(!can_go_on(&lacking(|need| need.program != "initdb" && need.program != "git")));
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
