//! The tests that gain by lasting longer: crashes, races, random chains, and everything again and again.
//!
//! `cargo xtask test` runs each of them briefly; a test that fails once in a hundred is a bug today, not bad luck.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::{shell, vm};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    alone: Option<Alone>,
    /// How often a host, and a writer of records on each engine, is killed in the middle of its writes.
    #[arg(long, default_value_t = 200)]
    crashes: u32,
    /// How many times the races between a tool and somebody who swaps links are run.
    #[arg(long, default_value_t = 10)]
    races: u32,
    /// How many made-up inputs each property is tried with (256 is what the suite does).
    #[arg(long, default_value_t = 10_000)]
    cases: u32,
    /// How many made-up shell commands are compared with what bash runs of them.
    #[arg(long, default_value_t = 100_000)]
    commands: u32,
    /// How many random chains of change sets are compared with a model, on each engine.
    #[arg(long, default_value_t = 1000)]
    chains: u32,
    /// How many random requests for what is somebody else's a server over HTTP is asked.
    #[arg(long, default_value_t = 10_000)]
    requests: u32,
    /// How many calls a server answers over HTTP, with memory that stays as it is.
    #[arg(long, default_value_t = 1_000_000)]
    calls: u32,
    /// How often PostgreSQL is restarted under a server that answers calls.
    #[arg(long, default_value_t = 20)]
    restarts: u32,
    /// How many times the whole suite runs after that.
    #[arg(long, default_value_t = 0)]
    suites: u32,
}

impl Arguments {
    /// How much of each kind was run.
    fn told(&self) -> String {
        let counts = [
            (self.crashes, "crashes"),
            (self.races, "rounds of races"),
            (self.cases, "inputs of each property"),
            (self.commands, "shell commands"),
            (self.chains, "chains of change sets"),
            (self.requests, "random requests"),
            (self.restarts, "restarts of PostgreSQL"),
            (self.calls, "calls over HTTP"),
            (self.suites, "suites"),
        ];
        counts.map(|(count, what)| format!("{count} {what}")).join(", ")
    }
}

/// What is not run with the others, for what it needs.
#[derive(clap::Subcommand)]
enum Alone {
    /// Takes memory in delegated cgroups, in an emulated machine with a kernel of its own.
    Cgroup(vm::Arguments),
}

/// One kind of soak: a cargo command, how often, and what it is told by environment.
struct Soak {
    name: &'static str,
    cargo: &'static [&'static str],
    rounds: u32,
    environment: Vec<(&'static str, String)>,
}

/// Stops at the first round that fails, with its exit code.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    if let Some(Alone::Cgroup(arguments)) = &arguments.alone {
        return vm::run(root, arguments);
    }
    for soak in soaks(arguments).iter().chain(&over_http(arguments)).chain(&[suite(arguments)]) {
        for round in 1..=soak.rounds {
            println!("{}", shell::bold(&format!("== {}, round {round} of {}", soak.name, soak.rounds)));
            let status = shell::cargo(root).args(soak.cargo).envs(soak.environment.iter().cloned()).status()?;
            if !status.success() {
                println!("soak: {} failed in round {round}", soak.name);
                return Ok(ExitCode::from(shell::exit_code(status)));
            }
        }
    }
    println!("soak: {} passed", arguments.told());
    Ok(ExitCode::SUCCESS)
}

fn soaks(arguments: &Arguments) -> Vec<Soak> {
    let crashes = |name, cargo| Soak {
        name,
        cargo,
        rounds: u32::from(arguments.crashes > 0),
        environment: vec![("TOOLHOST_CRASH_ROUNDS", arguments.crashes.to_string())],
    };
    vec![
        // Of hosts, and of hosts with approved calls.
        crashes("kill -9", &["test", "--locked", "-p", "toolhost-cli", "--test", "it", "--", "crash::", "--nocapture"]),
        crashes(
            "kill -9 of writers of records",
            &["test", "--locked", "-p", "toolhost-store", "--test", "it", "--", "killed::", "--nocapture"],
        ),
        crashes(
            "kill -9 of deploys",
            &["test", "--locked", "-p", "toolhost-sandbox", "--test", "it", "--", "killed", "--nocapture"],
        ),
        Soak {
            name: "races",
            cargo: &["test", "--locked", "-p", "toolhost-sandbox", "--test", "it", "--", "races"],
            rounds: arguments.races,
            environment: Vec::new(),
        },
        Soak {
            name: "properties",
            cargo: &["test", "--locked", "-p", "toolhost-builder", "-p", "toolhost-agent"],
            rounds: u32::from(arguments.cases > 0),
            environment: vec![("PROPTEST_CASES", arguments.cases.to_string())],
        },
        Soak {
            name: "made-up packages",
            cargo: &["test", "--locked", "-p", "toolhost-builder", "--test", "it", "--", "made_up_packages"],
            rounds: u32::from(arguments.cases > 0),
            environment: vec![("PROPTEST_CASES", arguments.cases.to_string())],
        },
        Soak {
            name: "shell commands",
            cargo: &["test", "--locked", "-p", "toolhost-sandbox", "--test", "it", "--", "shell::", "--nocapture"],
            rounds: u32::from(arguments.commands > 0),
            environment: vec![("TOOLHOST_SHELL_TEXTS", arguments.commands.to_string())],
        },
        Soak {
            name: "chains of change sets",
            cargo: &["test", "--locked", "-p", "toolhost-builder", "--test", "it", "--", "walk::", "--nocapture"],
            rounds: u32::from(arguments.chains > 0),
            environment: vec![("TOOLHOST_CHAIN_ROUNDS", arguments.chains.to_string())],
        },
    ]
}

/// Of a server over HTTP.
fn over_http(arguments: &Arguments) -> Vec<Soak> {
    vec![
        Soak {
            name: "requests for what is somebody else's",
            cargo: &["test", "--locked", "-p", "toolhost-server", "--test", "it", "--", "strangers::", "--nocapture"],
            rounds: u32::from(arguments.requests > 0),
            environment: vec![("TOOLHOST_HTTP_REQUESTS", arguments.requests.to_string())],
        },
        Soak {
            name: "restarts of PostgreSQL",
            cargo: &[
                "test",
                "--locked",
                "-p",
                "toolhost-cli",
                "--test",
                "it",
                "--",
                "serve_lasts::a_server_whose",
                "--nocapture",
            ],
            rounds: u32::from(arguments.restarts > 0),
            environment: vec![("TOOLHOST_RESTARTS", arguments.restarts.to_string())],
        },
        Soak {
            name: "calls over HTTP",
            cargo: &[
                "test",
                "--locked",
                "-p",
                "toolhost-cli",
                "--test",
                "it",
                "--",
                "serve_lasts::the_memory",
                "--nocapture",
            ],
            rounds: u32::from(arguments.calls > 0),
            environment: vec![("TOOLHOST_HTTP_CALLS", arguments.calls.to_string())],
        },
    ]
}

fn suite(arguments: &Arguments) -> Soak {
    Soak {
        name: "suite",
        cargo: &["test", "--workspace", "--locked", "--quiet"],
        rounds: arguments.suites,
        environment: Vec::new(),
    }
}
