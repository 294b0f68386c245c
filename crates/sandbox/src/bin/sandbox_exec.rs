//! The helper on its own, for this crate's tests; the product re-executes itself (`toolhost sandbox-exec`).

use std::process::ExitCode;

fn main() -> ExitCode {
    toolhost_sandbox::helper::main(std::env::args_os().skip(2).collect())
}
