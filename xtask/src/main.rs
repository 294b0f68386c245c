//! The house's own commands, in Rust rather than in scripts: what proves it, measures it and writes its documents.
//!
//! Nothing here ships. Each command is one module; `main` only reads the arguments and turns the answer into an exit
//! code. `layers` and `tidy` also run as tests of this crate, so `cargo test` alone holds the house's rules.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "these commands talk to the person at the terminal")]

mod api_clients;
mod bench;
mod ci;
mod clients;
mod commands;
mod configuration;
mod conformance;
mod dist;
mod docs;
mod examples;
mod finding;
mod generate;
mod layers;
mod mcp_conformance;
mod npm;
mod packages;
mod publish;
mod recipes;
mod scratch;
mod shell;
mod sign_in;
mod soak;
mod tidy;
mod vm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The house's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Proves the house: system packages, format, lints, tests and documentation.
    #[command(alias = "ci")]
    Test,
    /// Says which crate imports what it may not.
    Layers,
    /// Says which file breaks a rule of the house.
    Tidy,
    /// Writes docs/conformance.md, and docs/generated/ from the built program.
    Gen(generate::Arguments),
    /// Makes pages of the book: docs/book with the decisions, the tools and the commands.
    Docs(docs::Arguments),
    /// Breaks recorded rules in a copy of the repository, and expects their tests to fail.
    Breaks(conformance::breaks::Arguments),
    /// Follows what CONTRIBUTING.md says of a new tool and a new kind of record, in a copy of the repository.
    Recipes,
    /// Runs the tests again and again, to find the one that does not always pass.
    Soak(soak::Arguments),
    /// Runs the examples of other agents' loops, against a model that plays a script.
    Examples(examples::Arguments),
    /// Lets real clients read a file by our server: Claude Code, Codex, opencode, the Inspector and Python's.
    Clients(clients::Arguments),
    /// Checks the OpenAPI document with public validators, and uses generated clients: TypeScript's and Python's.
    ApiClients(api_clients::Arguments),
    /// Runs the conformance suite of MCP against our server, in both eras of the protocol.
    McpConformance(mcp_conformance::Arguments),
    /// Lets a person sign in at a real OpenID provider, and a client get a token of it.
    SignIn(sign_in::Arguments),
    /// Packs each crate that is published, as `cargo publish` would.
    Package(publish::Arguments),
    /// Makes what is handed out: an archive, a Debian package, manual pages and completions; and tries the package.
    Dist(dist::Arguments),
    /// Measures the budgets against their peers, built as it is for packages.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let root = shell::root();
    let answer = match arguments.task {
        Task::Test => ci::run(root),
        Task::Layers => {
            layers::read(root).map(|house| finding::show("layers", &layers::check(&house), &layers::notes(&house)))
        }
        Task::Tidy => tidy::read(root).map(|tree| finding::show("tidy", &tidy::check(&tree), &[])),
        Task::Gen(arguments) => generate::run(root, &arguments),
        Task::Docs(arguments) => docs::run(root, &arguments),
        Task::Breaks(arguments) => conformance::breaks::run(root, &arguments),
        Task::Soak(arguments) => soak::run(root, &arguments),
        Task::Examples(arguments) => examples::run(root, &arguments),
        Task::Clients(arguments) => clients::run(root, &arguments),
        Task::ApiClients(arguments) => api_clients::run(root, &arguments),
        Task::McpConformance(arguments) => mcp_conformance::run(root, &arguments),
        Task::SignIn(arguments) => sign_in::run(root, &arguments),
        Task::Recipes => recipes::run(root),
        Task::Package(arguments) => publish::run(root, &arguments),
        Task::Dist(arguments) => dist::run(root, &arguments),
        Task::Bench(arguments) => bench::run(root, &arguments),
    };
    answer.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
