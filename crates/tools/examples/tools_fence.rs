//! The program that begins each fenced command of this crate's tests.

fn main() -> std::process::ExitCode {
    toolhost_testkit::be_the_fence()
}
