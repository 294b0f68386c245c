//! The PostgreSQL server of the tests: an empty database for each, and nothing left behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use toolhost_testkit::{Postgres, processes_named, until};

/// Set in the process that is started to be killed.
const HOLDS: &str = "TOOLHOST_TESTKIT_HOLDS";

const FOLDER: &str = "folder: ";

#[test]
fn each_test_gets_an_empty_database() {
    let Some(postgres) = Postgres::shared() else { return };
    let (one, other) = (postgres.fresh_database(), postgres.fresh_database());
    postgres.psql(&one, "create table a (n bigint, t text); insert into a values (1, 'x'), (2, null)");
    assert_eq!(postgres.psql(&one, "select n, t from a order by n"), "1|x\n2|");
    assert_eq!(postgres.psql(&other, "select count(*) from pg_tables where schemaname = 'public'"), "0");
}

#[test]
fn a_server_that_died_comes_back_with_what_was_committed() {
    if Postgres::shared().is_none() {
        return;
    }
    let postgres = Postgres::start().unwrap();
    let url = postgres.fresh_database();
    postgres.psql(&url, "create table a (n bigint); insert into a values (7)");
    postgres.stop_hard();
    postgres.start_again();
    assert_eq!(postgres.psql(&url, "select n from a"), "7");
    let folder = postgres.folder().to_owned();
    drop(postgres);
    assert!(is_gone(&folder));
}

#[tokio::test]
async fn a_server_is_gone_with_the_process_that_started_it() {
    let Some(postgres) = Postgres::shared() else { return };
    if std::env::var_os(HOLDS).is_some() {
        return hold(postgres);
    }
    let itself = "postgres::a_server_is_gone_with_the_process_that_started_it";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", itself]).env(HOLDS, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let folder = lines.find_map(|line| Some(line.unwrap().strip_prefix(FOLDER)?.to_owned())).unwrap();
    assert!(!is_gone(Path::new(&folder)));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the server and its folder are gone", || is_gone(Path::new(&folder))).await;
}

/// Says where the server is, and stays until killed.
fn hold(postgres: &Postgres) {
    // Past the test runner, in a line of its own.
    let mut stdout = std::io::stdout();
    writeln!(stdout, "\n{FOLDER}{}", postgres.folder().display()).unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn is_gone(folder: &Path) -> bool {
    !folder.exists() && processes_named(folder.to_str().unwrap()) == 0
}
