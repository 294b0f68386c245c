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
    /// How many times the whole suite runs after that.
    #[arg(long, default_value_t = 0)]
    suites: u32,
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
    let crashes = |name, cargo| Soak {
        name,
        cargo,
        rounds: u32::from(arguments.crashes > 0),
        environment: vec![("TOOLHOST_CRASH_ROUNDS", arguments.crashes.to_string())],
    };
    let soaks = [
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
        Soak {
            name: "suite",
            cargo: &["test", "--workspace", "--locked", "--quiet"],
            rounds: arguments.suites,
            environment: Vec::new(),
        },
    ];
    for soak in &soaks {
        for round in 1..=soak.rounds {
            println!("{}", shell::bold(&format!("== {}, round {round} of {}", soak.name, soak.rounds)));
            let status = shell::cargo(root).args(soak.cargo).envs(soak.environment.iter().cloned()).status()?;
            if !status.success() {
                println!("soak: {} failed in round {round}", soak.name);
                return Ok(ExitCode::from(shell::exit_code(status)));
            }
        }
    }
    println!(
        "soak: {} crashes, {} rounds of races, {} inputs of each property, {} shell commands, {} chains of change sets, {} suites passed",
        arguments.crashes, arguments.races, arguments.cases, arguments.commands, arguments.chains, arguments.suites
    );
    Ok(ExitCode::SUCCESS)
}
