//! The program that begins each fenced command, for tests of crates that have no program of their own.
//!
//! Such a crate has an example, `examples/<crate>_fence.rs`, whose `main` is [`be_the_fence`]. `cargo test` builds a package's
//! examples before it runs its tests, so that the helper is made of the same sources as the test.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// The whole of such an example.
pub fn be_the_fence() -> ExitCode {
    toolhost_sandbox::helper::main(std::env::args_os().skip(2).collect())
}

/// The built example of this name, beside the test that is running.
///
/// `cargo test --test it` alone builds no examples. Then the example is missing, or is of earlier sources than the
/// test, which would try a fence that is no longer there: both end the test.
pub fn fence_helper(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let helper = test.parent().unwrap().with_file_name("examples").join(example);
    let built = helper.metadata().and_then(|file| file.modified()).ok();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sandbox/src");
    assert!(
        built.is_some_and(|built| built >= newest(&sources)),
        "{} is missing or older than {}: run `cargo build --workspace --example {example}`, or `cargo test` without `--test`",
        helper.display(),
        sources.display()
    );
    helper
}

/// When the file below this folder was written that was written last.
fn newest(folder: &Path) -> SystemTime {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let times =
        entries.map(|path| if path.is_dir() { newest(&path) } else { path.metadata().unwrap().modified().unwrap() });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}
