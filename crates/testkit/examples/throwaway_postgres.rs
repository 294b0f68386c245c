//! A throwaway PostgreSQL server for whoever holds this program's standard input: prints the URL of an empty database,
//! and is gone when the input ends. The benchmarks use it; so may a person who wants to try `--database`.

use std::io::{Read, Write};
use std::process::ExitCode;

use toolhost_testkit::Postgres;

fn main() -> ExitCode {
    let postgres = match Postgres::start() {
        Ok(postgres) => postgres,
        Err(problem) => {
            // Nothing else is to be said, and nobody to say it to if this fails.
            let _ = writeln!(std::io::stderr(), "{problem}");
            return ExitCode::FAILURE;
        }
    };
    let told = writeln!(std::io::stdout(), "{}", postgres.fresh_database()).and_then(|()| std::io::stdout().flush());
    if told.is_err() {
        return ExitCode::FAILURE;
    }
    // An input that breaks has ended, too.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}
