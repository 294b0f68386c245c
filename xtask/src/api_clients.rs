//! Clients of the HTTP API that public generators make of its OpenAPI document: the document is checked by two public validators, a
//! TypeScript and a Python client are generated from it, and the tours in `clients/` use them against a server.
//!
//! What is generated stays below the target folder. It is long, follows from the document, and its generators have versions of their own.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell;

/// The package that the tours bring in.
const PACKAGE: &str = "examples/research-report";
/// How long a tour may take, as `timeout` has it.
const TIME_MAX: &str = "120";
/// An ask comes back as pending at once: the tours answer it afterwards.
const CONFIG: &str = "[approvals]\nhold_seconds = 0\n";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the generators are installed; a relative path begins at the root of the repository
    #[arg(long, value_name = "DIR", default_value = "target/api-clients")]
    folder: PathBuf,
    /// Read the document from a file instead of the program, to see what is found in it
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let folder = root.join(&arguments.folder);
    let program = shell::program(root)?;
    let document = match &arguments.document {
        Some(file) => fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?,
        None => shell::stdout_of(Command::new(&program).args(["schema", "openapi"]))?,
    };
    let typescript = Place::typescript(root, &folder, &document)?;
    let python = Place::python(root, &folder, &document)?;
    typescript.must("validate-api", &["openapi.json"]).context("the document is not valid")?;
    python.must("openapi-spec-validator", &["openapi.json"]).context("the document is not valid")?;
    typescript.must("openapi-typescript", &["openapi.json", "--output", "schema.d.ts"])?;
    typescript.must("tsc", &["--noEmit"])?;
    generate_python(&python)?;
    for (place, tour) in [(&typescript, ["node", "tour.ts"]), (&python, ["python", "tour.py"])] {
        println!("{}", shell::bold(&tour.join(" ")));
        let server = Server::start(root, &program)?;
        let mut limited = place.command("timeout");
        limited.args([TIME_MAX]).args(tour);
        server.tell(&mut limited);
        shell::must_run(&mut limited)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The generator warns of what it leaves out and ends well all the same.
fn generate_python(python: &Place) -> Result<()> {
    let mut generator = python.command("openapi-python-client");
    generator.args(["generate", "--path", "openapi.json", "--config", "config.yaml", "--meta", "none", "--overwrite"]);
    let output = generator.args(["--output-path", "toolhost_client"]).output().context("cannot start the generator")?;
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    ensure!(output.status.success() && !said.contains("WARNING"), "the Python client is not whole:\n{said}");
    Ok(())
}

/// A copy of a folder of `clients/`, with what it needs.
struct Place {
    folder: PathBuf,
    programs: PathBuf,
}

impl Place {
    fn typescript(root: &Path, folder: &Path, document: &str) -> Result<Self> {
        let place = Self::copied(root, folder, "typescript", document)?;
        place.installed("package.json", |place| {
            let mut npm = Command::new("npm");
            npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--prefix"]).arg(place);
            shell::must_run(&mut npm)
        })?;
        Ok(Self { programs: place.folder.join("node_modules/.bin"), ..place })
    }

    fn python(root: &Path, folder: &Path, document: &str) -> Result<Self> {
        let place = Self::copied(root, folder, "python", document)?;
        place.installed("requirements.txt", |place| {
            shell::must_run(Command::new("python3").args(["-m", "venv"]).arg(place.join("venv")))?;
            let mut pip = Command::new(place.join("venv/bin/pip"));
            shell::must_run(pip.args(["install", "--quiet", "-r"]).arg(place.join("requirements.txt")))
        })?;
        Ok(Self { programs: place.folder.join("venv/bin"), ..place })
    }

    fn copied(root: &Path, folder: &Path, name: &str, document: &str) -> Result<Self> {
        let (from, folder) = (root.join("clients").join(name), folder.join(name));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for entry in fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
        fs::write(folder.join("openapi.json"), document).context("cannot write the document")?;
        Ok(Self { folder, programs: PathBuf::new() })
    }

    /// Installs what a file lists, unless this very list is installed.
    fn installed(&self, list: &str, install: impl Fn(&Path) -> Result<()>) -> Result<()> {
        let listed = fs::read_to_string(self.folder.join(list)).with_context(|| format!("cannot read {list}"))?;
        let done = self.folder.join(".installed");
        if fs::read_to_string(&done).is_ok_and(|before| before == listed) {
            return Ok(());
        }
        install(&self.folder)?;
        fs::write(&done, listed).with_context(|| format!("cannot write {}", done.display()))
    }

    /// A program, which finds those of this place first.
    fn command(&self, name: &str) -> Command {
        let own = self.programs.join(name);
        let mut command = Command::new(if own.is_file() { own } else { name.into() });
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(std::iter::once(self.programs.clone()).chain(env::split_paths(&others)));
        // Of a path that cannot be joined, the person's own is left.
        if let Ok(path) = path {
            command.env("PATH", path);
        }
        command.current_dir(&self.folder);
        command
    }

    fn must(&self, name: &str, arguments: &[&str]) -> Result<()> {
        println!("{}", shell::bold(&format!("{name} {}", arguments.join(" "))));
        shell::must_run(self.command(name).args(arguments))
    }
}

/// A server of a project of its own, and two tokens for it. Dropped, it ends.
struct Server {
    child: Child,
    settings: Vec<(&'static str, String)>,
    _room: tempfile::TempDir,
}

impl Server {
    fn start(root: &Path, program: &Path) -> Result<Self> {
        let room = tempfile::tempdir_in("/var/tmp").context("cannot make a folder")?;
        let (config, zip) = (room.path().join("config.toml"), room.path().join("package.zip"));
        fs::write(&config, CONFIG).context("cannot write the configuration")?;
        let ours = |project: &str| -> Result<Command> {
            let workspace = room.path().join(project);
            fs::create_dir_all(&workspace).context("cannot make a workspace")?;
            let mut command = Command::new(program);
            command.env("TOOLHOST_CONFIG", &config).arg("--root").arg(workspace);
            command.arg("--state").arg(room.path().join(format!("{project}-state"))).arg("--json");
            Ok(command)
        };
        // As a zip, it comes from another project.
        shell::stdout_of(ours("other")?.args(["package", "import"]).arg(root.join(PACKAGE)))?;
        shell::stdout_of(ours("other")?.args(["package", "export"]).arg(&zip))?;
        let token = |name: &str, rights: &[&str]| -> Result<String> {
            let mut make = ours("project")?;
            make.args(["token", "create", name, "--profile", "all"]);
            make.args(rights.iter().flat_map(|right| ["--right", right]));
            let made: Value = serde_json::from_str(&shell::stdout_of(&mut make)?).context("the token")?;
            Ok(made["token"].as_str().context("there is no token")?.to_owned())
        };
        let mut settings = vec![
            ("TOOLHOST_TOKEN", token("agent", &["call", "read"])?),
            ("TOOLHOST_PERSON_TOKEN", token("person", &["read", "approve", "manage"])?),
            ("TOOLHOST_PACKAGE", zip.display().to_string()),
        ];
        let mut serve = ours("project")?;
        let serve = serve.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = serve.spawn().context("cannot start the server")?;
        let mut said = BufReader::new(child.stdout.take().context("its output was piped above")?);
        let mut text = String::new();
        let told: Value = loop {
            ensure!(said.read_line(&mut text)? > 0, "the server ended: {text}");
            if let Ok(told) = serde_json::from_str(&text) {
                break told;
            }
        };
        let address = told["address"].as_str().context("the server says no address")?;
        settings.push(("TOOLHOST_URL", format!("http://{address}")));
        Ok(Self { child, settings, _room: room })
    }

    fn tell(&self, command: &mut Command) {
        command.envs(self.settings.iter().map(|(name, value)| (*name, value)));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where it has ended before, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
