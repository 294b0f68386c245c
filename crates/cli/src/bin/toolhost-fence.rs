//! `toolhost-fence`: the inside of the fence, as a program of its own beside `toolhost`.
//!
//! Each command starts it once. The whole program would do as well (`toolhost sandbox-exec`), and does where this one is
//! not there; but to start it costs some milliseconds more.

use std::io::{self, Write as _};
use std::process::ExitCode;

use toolhost_sandbox::helper;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == helper::SUBCOMMAND => helper::main(args.collect()),
        Some(first) if first == helper::FORMAT_ARGUMENT => helper::say_format(),
        _ => {
            let _ = writeln!(io::stderr(), "toolhost-fence: for the host's own use; see `toolhost --help`");
            ExitCode::from(2)
        }
    }
}
