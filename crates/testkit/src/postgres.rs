//! A PostgreSQL server of the tests' own, which never outlives them.
//!
//! It stands under a watchdog: a shell that takes its orders from a pipe whose other end only this process holds. When
//! the pipe closes, because the tests ended, panicked or were killed, the watchdog stops the server and removes its
//! folder. Where PostgreSQL cannot be had, [`Postgres::shared`] says so once and the tests skip what needs it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use tempfile::TempDir;

/// With the value `required`, a server that cannot be had fails the tests instead of skipping them.
const DEMAND: &str = "TOOLHOST_TEST_POSTGRES";

/// Where Debian puts them: a folder for each version, none of them on the PATH.
const VERSIONS: &str = "/usr/lib/postgresql";

/// They must be of one version, so they are looked for in one folder.
const PROGRAMS: [&str; 4] = ["initdb", "pg_ctl", "postgres", "psql"];

/// PostgreSQL refuses to run as root. The first of these that the machine knows runs it then.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// Somebody else may take a free port before the server does.
const PORT_TRIES: u32 = 5;

/// Enough of a log to see why a server does not start.
const LOG_LINES_MAX: usize = 20;

/// No flushing: these data need not survive the machine, and what a crash of the server does is the same without.
const SETTINGS: &str = "-c listen_addresses=127.0.0.1 -c max_connections=300 -c fsync=off";

/// Answers each order with a line. The signals are those that would end it before it has cleaned up: a key pressed in
/// the terminal, and its own answer to somebody who is gone.
const WATCHDOG: &str = r#"
trap '' HUP INT PIPE TERM
programs=$1 folder=$2 settings=$3
stop() {
    "$programs/pg_ctl" stop --pgdata="$folder/data" --mode=immediate --wait --timeout=60
}
while read -r order port; do
    case $order in
        make)
            "$programs/initdb" --pgdata="$folder/data" --username=toolhost --auth=trust --locale=C --encoding=UTF8 \
                --no-sync
            ;;
        start)
            "$programs/pg_ctl" start --pgdata="$folder/data" --log="$folder/log" --wait --timeout=60 \
                --options="$settings -c unix_socket_directories=$folder -p $port"
            ;;
        stop) stop ;;
        *) false ;;
    esac </dev/null >>"$folder/log" 2>&1 && echo done || echo failed
done
stop </dev/null >>"$folder/log" 2>&1
cd / && rm -rf "$folder"
"#;

/// A server with data of its own. It is stopped and its folder removed when dropped, or when this process ends.
pub struct Postgres {
    programs: PathBuf,
    port: u16,
    databases: AtomicU32,
    watchdog: Mutex<Watchdog>,
    /// After the watchdog, which removes it: this is for when that could not.
    folder: TempDir,
}

impl Postgres {
    /// The one server of this process, started for whoever asks first.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Result<Postgres, String>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            let started = Self::start();
            if let Err(reason) = &started {
                // Not `eprintln!`, which the test runner keeps to itself when a test passes. A closed stderr is fine.
                let _ = writeln!(std::io::stderr(), "SKIPPED: the tests on PostgreSQL; {reason}");
            }
            started
        });
        match shared {
            Ok(postgres) => Some(postgres),
            Err(reason) => {
                let is_demanded = std::env::var_os(DEMAND).is_some_and(|value| value == "required");
                assert!(!is_demanded, "{DEMAND}=required, but {reason}");
                None
            }
        }
    }

    /// A server for one test alone, which may break it.
    pub fn start() -> Result<Self, String> {
        let programs = programs()?;
        let folder = tempfile::Builder::new()
            .prefix("toolhost-postgres-")
            .tempdir_in("/var/tmp")
            .map_err(|error| format!("no folder for its data below /var/tmp: {error}"))?;
        let mut watchdog = Watchdog::over(&programs, folder.path())?;
        watchdog.obey("make").map_err(|error| told(&error, folder.path()))?;
        let port = start_on_free_port(&mut watchdog, folder.path())?;
        Ok(Self { programs, port, databases: AtomicU32::new(0), watchdog: Mutex::new(watchdog), folder })
    }

    /// Makes an empty database that nobody else uses; answers its URL.
    pub fn fresh_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql(&self.url("postgres"), &format!("create database {name}"));
        self.url(&name)
    }

    /// Runs SQL, several statements in one transaction; answers the rows, a line each, columns parted by `|`.
    pub fn psql(&self, database_url: &str, sql: &str) -> String {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"]);
        command.args(["--set", "ON_ERROR_STOP=1", "--dbname", database_url, "--command", sql]);
        let output = command.env_clear().current_dir("/").stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
    }

    /// The server dies in the middle of whatever it does. Its data stay as they are.
    pub fn stop_hard(&self) {
        self.watchdog.lock().unwrap().obey("stop").unwrap();
    }

    /// Starts it again after [`Self::stop_hard`], with the same data and URLs.
    pub fn start_again(&self) {
        let started = self.watchdog.lock().unwrap().obey(&format!("start {}", self.port));
        let failure = started.err().map(|error| told(&error, self.folder()));
        assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder().join("log")).unwrap()).into_owned()
    }

    /// What belongs to the server lies below it, and its processes have it in their command lines.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://toolhost@127.0.0.1:{}/{database}", self.port)
    }
}

/// The shell that runs the server.
struct Watchdog {
    shell: Child,
    answers: BufReader<ChildStdout>,
}

impl Watchdog {
    /// In a process group of its own: what the terminal ends is the tests, and with them the pipe.
    fn over(programs: &Path, folder: &Path) -> Result<Self, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WATCHDOG, "watchdog"]).args([programs, folder]).arg(SETTINGS);
        // Variables may turn PostgreSQL's programs to another server, or make them speak another language.
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some((user, group)) = account()? {
            std::os::unix::fs::chown(folder, Some(user), Some(group))
                .map_err(|error| format!("its folder cannot be given to user {user}: {error}"))?;
            command.uid(user).gid(group);
        }
        let mut shell = command.spawn().map_err(|error| format!("its watchdog does not start: {error}"))?;
        let answers = BufReader::new(shell.stdout.take().unwrap());
        Ok(Self { shell, answers })
    }

    /// Hands it an order and waits until that is done.
    fn obey(&mut self, order: &str) -> Result<(), String> {
        let mut answer = String::new();
        let orders = self.shell.stdin.as_mut().unwrap();
        let asked = writeln!(orders, "{order}").and_then(|()| self.answers.read_line(&mut answer));
        match (asked, answer.as_str()) {
            (Ok(_), "done\n") => Ok(()),
            (Ok(_), _) => Err(format!("its watchdog could not `{order}`")),
            (Err(error), _) => Err(format!("its watchdog does not answer to `{order}`: {error}")),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Waiting closes the pipe, which is the order to end. Nobody is left to hear of a failure.
        let _ = self.shell.wait();
    }
}

fn start_on_free_port(watchdog: &mut Watchdog, folder: &Path) -> Result<u16, String> {
    let mut failure = String::new();
    for _ in 0..PORT_TRIES {
        let port = free_port().map_err(|error| format!("no free port: {error}"))?;
        match watchdog.obey(&format!("start {port}")) {
            Ok(()) => return Ok(port),
            Err(error) => failure = told(&error, folder),
        }
        if !failure.contains("Address already in use") {
            break;
        }
    }
    Err(failure)
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The failure with the end of the log, which knows why.
fn told(failure: &str, folder: &Path) -> String {
    let log = std::fs::read(folder.join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    format!("{failure}; its log ends:\n{}", lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n"))
}

/// The folder with the newest set of programs: Debian's, or else one of the PATH.
fn programs() -> Result<PathBuf, String> {
    let debian = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let mut versions: Vec<(Vec<u32>, PathBuf)> =
        debian.filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path().join("bin")))).collect();
    versions.sort_by(|one, other| other.cmp(one));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = versions.into_iter().map(|(_, folder)| folder).chain(std::env::split_paths(&path));
    folders
        .find(|folder| PROGRAMS.iter().all(|program| folder.join(program).is_file()))
        .ok_or_else(|| format!("{} were not found: install Debian's package `postgresql`", PROGRAMS.join(", ")))
}

/// `15` or `9.6`, so that 10 is newer than 9.
fn version(name: &str) -> Option<Vec<u32>> {
    name.split('.').map(|part| part.parse().ok()).collect()
}

/// The user and group that must run the server; nothing where we may run it ourselves.
fn account() -> Result<Option<(u32, u32)>, String> {
    // The owner of our own entry in /proc is our effective user; std has no `geteuid`.
    let ourselves = std::fs::metadata("/proc/self").map_err(|error| format!("/proc/self cannot be read: {error}"))?;
    if ourselves.uid() != 0 {
        return Ok(None);
    }
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let entry = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|entry| entry[0] == name)?;
        Some((entry.get(2)?.parse().ok()?, entry.get(3)?.parse().ok()?))
    };
    let found = ACCOUNTS.into_iter().find_map(ids);
    found.map(Some).ok_or_else(|| format!("it does not run as root, and there is no user {}", ACCOUNTS.join(" or ")))
}
