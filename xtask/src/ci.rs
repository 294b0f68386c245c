//! `cargo xtask test`: everything that must hold before a change is good, in the order that fails soonest.
//!
//! The CI script is this one command, so that no machine checks something a person cannot.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::{packages, shell};

/// `layers` and `tidy` are not listed: they are tests of this crate.
const STEPS: [Step; 8] = [
    Step { name: "fmt", cargo: &["fmt", "--all", "--check"], environment: &[] },
    Step {
        name: "clippy",
        cargo: &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        environment: &[],
    },
    Step { name: "recipes", cargo: &["xtask", "recipes"], environment: &[] },
    // A log that is cut keeps what failed, and not where the frames of the runtime are.
    Step {
        name: "test",
        cargo: &["test", "--workspace", "--locked", "--no-fail-fast"],
        environment: &[("RUST_BACKTRACE", "0")],
    },
    // Other agents' loops: what they bring along has a house of its own.
    Step { name: "examples", cargo: &["xtask", "examples"], environment: &[] },
    Step { name: "package", cargo: &["xtask", "package"], environment: &[] },
    Step { name: "gen", cargo: &["xtask", "gen", "--check"], environment: &[] },
    Step {
        name: "doc",
        cargo: &["doc", "--workspace", "--no-deps", "--locked"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
];

struct Step {
    name: &'static str,
    cargo: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// How a step went; a step that is missing from the list of results was not reached.
struct Went {
    took: Duration,
    exit_code: u8,
}

/// Stops at the first failing step, with its exit code.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    packages::ensure()?;
    // A server that does not start is then a failure; without the programs, the tests say that they skip.
    let may_demand = [
        (packages::has_postgresql(), ("TOOLHOST_TEST_POSTGRES", "required")),
        (packages::has_browser(), ("TOOLHOST_TEST_BROWSER", "required")),
    ];
    let demanded: Vec<(&str, &str)> =
        may_demand.into_iter().filter_map(|(is_there, demand)| is_there.then_some(demand)).collect();
    let mut results = Vec::new();
    for step in &STEPS {
        let went = run_step(root, step, &demanded)?;
        let failed = went.exit_code != 0;
        results.push(went);
        if failed {
            break;
        }
    }
    println!("\n{}", table(&STEPS, &results));
    Ok(ExitCode::from(results.last().map_or(0, |went| went.exit_code)))
}

fn run_step(root: &Path, step: &Step, demanded: &[(&str, &str)]) -> Result<Went> {
    println!("{}", shell::bold(&format!("== {}: cargo {}", step.name, step.cargo.join(" "))));
    let began = Instant::now();
    let status = shell::cargo(root)
        .args(step.cargo)
        .envs(step.environment.iter().chain(demanded).copied())
        .status()
        .with_context(|| format!("cannot start cargo for the step `{}`", step.name))?;
    Ok(Went { took: began.elapsed(), exit_code: shell::exit_code(status) })
}

fn table(steps: &[Step], results: &[Went]) -> String {
    let rows = steps.iter().enumerate().map(|(index, step)| match results.get(index) {
        Some(went) => {
            let said = if went.exit_code == 0 { "ok" } else { "failed" };
            format!("{:<10}{said:<10}{:>8.1} s", step.name, went.took.as_secs_f64())
        }
        None => format!("{:<10}not run", step.name),
    });
    rows.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{STEPS, Went, table};
    use std::time::Duration;

    #[test]
    fn the_table_says_what_passed_what_failed_and_what_was_not_reached() {
        let went = |seconds, exit_code| Went { took: Duration::from_secs(seconds), exit_code };
        let expected = "fmt       ok             1.0 s\nclippy    failed        62.0 s\nrecipes   not run\ntest      not run\nexamples  not run\npackage   not run\ngen       not run\ndoc       not run";
        assert_eq!(table(&STEPS, &[went(1, 0), went(62, 101)]), expected);
    }
}
