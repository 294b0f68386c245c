//! A database of 100,000 tasks and as many memories, on each engine, filled by `toolhost import`.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::bench::client::Server;
use crate::shell;

const TASKS: u64 = 100_000;
/// What each task depends on; together half a million.
const DEPENDENCIES: u64 = 5;
/// The first half is done, so that something of the rest is ready.
const COMPLETED: u64 = TASKS / 2;
const MEMORIES: u64 = 100_000;
/// Words of the memories: the first ones stand in most of them, the last ones in a few.
const WORDS: u64 = 5_000;
const WORDS_PER_MEMORY: u64 = 12;
/// 2026-01-01T00:00:00Z, in milliseconds.
const SINCE_MS: u64 = 1_767_225_600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// The filled databases, made when they are first asked for.
#[derive(Default)]
pub(crate) struct Shelves {
    sqlite: OnceCell<Shelf>,
    postgres: OnceCell<Shelf>,
}

/// A filled database.
pub(crate) struct Shelf {
    folder: PathBuf,
    database: Option<(String, ThrowawayPostgres)>,
}

/// A server for as long as this stands.
pub(crate) struct ThrowawayPostgres {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Drop for ThrowawayPostgres {
    fn drop(&mut self) {
        self.stdin.take();
        // It ends when its input does.
        let _ = self.child.wait();
    }
}

impl Shelves {
    pub(crate) fn get(&self, engine: Engine, root: &Path, program: &Path, playground: &Path) -> Result<&Shelf> {
        let cell = match engine {
            Engine::Sqlite => &self.sqlite,
            Engine::Postgres => &self.postgres,
        };
        if let Some(shelf) = cell.get() {
            return Ok(shelf);
        }
        let shelf = Shelf::fill(engine, root, program, playground)?;
        Ok(cell.get_or_init(|| shelf))
    }
}

impl Shelf {
    fn fill(engine: Engine, root: &Path, program: &Path, playground: &Path) -> Result<Self> {
        let folder = playground.join(format!("records-{engine:?}").to_lowercase());
        fs::create_dir_all(folder.join("ws"))?;
        let database = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(postgres(root)?),
        };
        let shelf = Self { folder, database };
        let lines = shelf.folder.join("records.jsonl");
        fs::write(&lines, records()?)?;
        let began = Instant::now();
        let mut import = Command::new(program);
        shelf.place(|argument| {
            import.arg(argument);
        });
        let output = import.args(["import", "--partial"]).arg(&lines).output().context("cannot start the import")?;
        ensure!(output.status.success(), "the import failed: {}", String::from_utf8_lossy(&output.stderr));
        println!("imported {} records into {engine:?} in {:.1} s", TASKS + MEMORIES, began.elapsed().as_secs_f64());
        Ok(shelf)
    }

    /// Where the database of this machine is, and the workspace of its project.
    pub(crate) fn state_and_root(&self) -> (PathBuf, PathBuf) {
        (self.folder.join("state"), self.folder.join("ws"))
    }

    pub(crate) fn place(&self, mut argument: impl FnMut(&Path)) {
        argument("--root".as_ref());
        argument(&self.folder.join("ws"));
        argument("--state".as_ref());
        argument(&self.folder.join("state"));
        if let Some((url, _)) = &self.database {
            argument("--database".as_ref());
            argument(url.as_ref());
        }
    }

    /// An agent's host over this database.
    pub(crate) fn server(&self, program: &Path) -> Server {
        let mut server = Server::new("toolhost", program).arg("mcp").arg("--profile").arg("all");
        self.place(|argument| server = server.clone().arg(argument));
        server
    }
}

/// testkit's server, as its example keeps it.
pub(crate) fn postgres(root: &Path) -> Result<(String, ThrowawayPostgres)> {
    let example = ["--example", "throwaway_postgres", "--package", "toolhost-testkit"];
    shell::must_run(shell::cargo(root).args(["build", "--locked"]).args(example))?;
    let target = shell::target(root);
    let mut child = Command::new(target.join("debug/examples/throwaway_postgres"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start PostgreSQL")?;
    let stdin = child.stdin.take();
    let mut stdout = child.stdout.take().context("its stdout was piped above")?;
    let server = ThrowawayPostgres { child, stdin };
    let (mut url, mut byte) = (Vec::new(), [0]);
    while stdout.read(&mut byte)? == 1 && byte != *b"\n" {
        url.push(byte[0]);
    }
    let url = String::from_utf8(url)?;
    ensure!(url.starts_with("postgres://"), "PostgreSQL did not start");
    Ok((url, server))
}

/// The lines of an export that holds all of it.
fn records() -> Result<String> {
    let mut lines = String::from("{\"line\":\"toolhost\",\"version\":1}\n");
    let mut random = Random(7);
    for number in 1..=TASKS {
        let dependencies: Vec<String> = (0..DEPENDENCIES.min(number - 1))
            .map(|n| {
                let below = number - 1;
                // Each in its own part, so that all are different.
                let from = below * n / DEPENDENCIES;
                let to = (below * (n + 1) / DEPENDENCIES).max(from + 1);
                format!("TASK-{:03}", 1 + from + random.below(to - from))
            })
            .collect();
        let status = if number <= COMPLETED { "completed" } else { "pending" };
        let content = json!({
            "title": format!("task {number}"), "description": "as it is", "status": status,
            "dependencies": dependencies, "filesToCreate": [], "acceptanceCriteria": ["done"],
            "estimatedEffort": format!("{}h", 1 + number % 8),
        });
        record(&mut lines, "TASK", number, &content)?;
    }
    for number in 1..=MEMORIES / 2 {
        let words = words(&mut random);
        record(&mut lines, "INS", number, &json!({ "stage": "coding", "content": words, "importance": "normal" }))?;
        let words = self::words(&mut random);
        record(&mut lines, "LRN", number, &json!({ "content": words }))?;
    }
    Ok(lines)
}

fn record(lines: &mut String, prefix: &str, number: u64, content: &serde_json::Value) -> Result<()> {
    let at = SINCE_MS + number * 1000;
    let line = json!({
        "line": "record", "id": format!("{prefix}-{number:03}"), "version": 1, "iteration": 0, "createdAtMs": at,
        "updatedAtMs": at, "content": content,
    });
    Ok(writeln!(lines, "{line}")?)
}

/// Words of which low numbers are much more frequent than high ones.
fn words(random: &mut Random) -> String {
    let one = |random: &mut Random| {
        let (a, b) = (random.below(WORDS), random.below(WORDS));
        word(a.min(b).min(random.below(WORDS)))
    };
    (0..WORDS_PER_MEMORY).map(|_| one(random)).collect::<Vec<_>>().join(" ")
}

/// A word that no stemmer shortens: consonants and vowels by turns.
pub(crate) fn word(number: u64) -> String {
    let mut number = number + 77;
    let mut word = String::from("k");
    while number > 0 {
        word.push(char::from(b"aiou"[(number % 4) as usize]));
        word.push(char::from(b"bdgklmnprtvz"[(number / 4 % 12) as usize]));
        number /= 48;
    }
    word.push('o');
    word
}

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}
