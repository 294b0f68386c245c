//! What is handed out: an archive, a Debian package, manual pages and completions, all in `target/dist`.
//!
//! The package is installed into a root of its own and tried there, so that one that lacks a file is not handed out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::{commands, shell};

/// The programs of the package. The small one begins each fenced command.
const PROGRAMS: [&str; 2] = ["toolhost", "toolhost-fence"];
/// What the programs need to be there.
const DEPENDS: &str = "bubblewrap, git, libc6 (>= 2.34), libgcc-s1";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What a package of programs may weigh, unpacked: bytes.
const PROGRAM_BYTES_MAX: u64 = 40_000_000;

/// Completions: the shell, and where Debian's shells look for them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/toolhost"),
    ("zsh", "usr/share/zsh/vendor-completions/_toolhost"),
    ("fish", "usr/share/fish/vendor_completions.d/toolhost.fish"),
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Take the programs from this folder instead of building them.
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let programs = match &arguments.programs {
        Some(folder) => folder.clone(),
        None => {
            let mut cargo = shell::cargo(root);
            cargo.args(["build", "--profile", "dist", "--locked", "--package", "toolhost-cli"]);
            shell::must_run(&mut cargo)?;
            shell::target(root).join("dist")
        }
    };
    let out = shell::target(root).join("dist/packages");
    let staged = out.join("root");
    if out.exists() {
        shell::must_run(Command::new("rm").arg("-r").arg(&out))?;
    }
    stage(root, &programs, &staged)?;
    let archive = archive(&out, &staged)?;
    let package = package(&out, &staged)?;
    try_package(&out, &package)?;
    for file in [&archive, &package] {
        println!("{} ({} bytes)", file.display(), fs::metadata(file)?.len());
    }
    println!(
        "tried: installed into a root of its own, the programs start, `demo` runs through, `man` formats the pages"
    );
    Ok(ExitCode::SUCCESS)
}

/// Puts all files where the package has them.
fn stage(root: &Path, programs: &Path, staged: &Path) -> Result<()> {
    for name in PROGRAMS {
        let file = put(&staged.join("usr/bin").join(name), &fs::read(programs.join(name)).context(name)?)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        let bytes = fs::metadata(&file)?.len();
        ensure!(bytes <= PROGRAM_BYTES_MAX, "{name} has {bytes} bytes, and {PROGRAM_BYTES_MAX} are the most");
    }
    let program = staged.join("usr/bin/toolhost");
    let pages = std::iter::once(Vec::new()).chain(commands::all(&program)?.into_iter().map(|(command, _)| command));
    for command in pages {
        let page = shell::stdout_of(Command::new(&program).arg("man").args(&command))?;
        let name = std::iter::once("toolhost").chain(command.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
        put(&staged.join(format!("usr/share/man/man1/{name}.1")), page.as_bytes())?;
    }
    shell::must_run(Command::new("gzip").args(["-9", "-n", "-r"]).arg(staged.join("usr/share/man/man1")))?;
    for (name, place) in COMPLETIONS {
        let text = shell::stdout_of(Command::new(&program).args(["completions", name]))?;
        put(&staged.join(place), text.as_bytes())?;
    }
    let documents = staged.join("usr/share/doc/toolhost");
    for name in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        put(&documents.join(name), &fs::read(root.join(name))?)?;
    }
    put(
        &documents.join("copyright"),
        b"Toolhost is licensed under MIT or Apache-2.0, as you like: see the files beside this one.\n",
    )?;
    Ok(())
}

fn put(file: &Path, bytes: &[u8]) -> Result<PathBuf> {
    let told = || format!("cannot write {}", file.display());
    fs::create_dir_all(file.parent().unwrap_or(file)).with_context(told)?;
    fs::write(file, bytes).with_context(told)?;
    Ok(file.to_owned())
}

/// The same files as an archive, with `bin` and `share` side by side.
fn archive(out: &Path, staged: &Path) -> Result<PathBuf> {
    let name = format!("toolhost-{VERSION}-{}-linux", std::env::consts::ARCH);
    let file = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--transform=s,^\\./usr,{name},")).arg("--file").arg(&file).arg("-C").arg(staged).arg("./usr");
    shell::must_run(&mut tar)?;
    Ok(file)
}

fn package(out: &Path, staged: &Path) -> Result<PathBuf> {
    let machine = shell::stdout_of(Command::new("dpkg").arg("--print-architecture"))?;
    let machine = machine.trim();
    let control = format!(
        "Package: toolhost\nVersion: {VERSION}\nArchitecture: {machine}\nMaintainer: Toolhost <packages@toolhost.dev>\n\
         Section: devel\nPriority: optional\nDepends: {DEPENDS}\nHomepage: https://toolhost.dev\n\
         Description: tools that AI agents are given and people can trust\n \
         Toolhost serves files, shell, git, tickets and plans to AI agents. Every call\n \
         passes one gate, runs in a fence that the kernel enforces, and is recorded.\n"
    );
    put(&staged.join("DEBIAN/control"), control.as_bytes())?;
    let file = out.join(format!("toolhost_{VERSION}_{machine}.deb"));
    shell::must_run(Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).arg(staged).arg(&file))?;
    Ok(file)
}

/// Installs the package into a root of its own, and runs what it brings.
fn try_package(out: &Path, package: &Path) -> Result<()> {
    let scratch = out.join("installed");
    for folder in ["var/lib/dpkg/updates", "var/lib/dpkg/info", "home"] {
        fs::create_dir_all(scratch.join(folder))?;
    }
    put(&scratch.join("var/lib/dpkg/status"), b"")?;
    let mut dpkg = Command::new("dpkg");
    // The packages it depends on are the machine's own: the root has nothing else.
    dpkg.arg("--root").arg(&scratch).args(["--force-not-root", "--force-depends", "--install"]).arg(package);
    shell::must_run(&mut dpkg)?;
    let installed = |name: &str| {
        let mut command = Command::new(scratch.join("usr/bin").join(name));
        command.env("HOME", scratch.join("home")).env("NO_COLOR", "1");
        command
    };
    let version = shell::stdout_of(installed("toolhost").arg("--version"))?;
    ensure!(version.contains(VERSION), "the installed program says `{}`", version.trim());
    // It fails by itself where a step goes otherwise than it must, and shows the audit at its end.
    let demo = shell::stdout_of(installed("toolhost").args(["demo", "--remove"]))?;
    ensure!(demo.contains("git.push"), "the demo of the installed program shows no audit");
    let page = scratch.join("usr/share/man/man1/toolhost.1.gz");
    let shown = shell::stdout_of(Command::new("man").arg("--local-file").arg(&page).env("MANPAGER", "cat"))?;
    ensure!(shown.contains("toolhost") && shown.contains("SYNOPSIS"), "`man` does not show {}", page.display());
    Ok(())
}
