//! Other processes: this test program again, told by its environment to work instead of testing.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// What a process that was started to work is to do, as JSON.
const WORK: &str = "TOOLHOST_STORE_WORK";
/// How a line of a worker's begins, so that the test runner's are not taken for one.
const MARK: &str = "worker: ";

/// A process that works.
pub(crate) struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

/// What this process was started for; `None` in the one that tests.
#[expect(clippy::disallowed_methods, reason = "a worker is this program again, and told by its environment")]
pub(crate) fn work() -> Option<Value> {
    serde_json::from_str(&std::env::var(WORK).ok()?).unwrap()
}

/// A number that a person may set for a longer run.
#[expect(clippy::disallowed_methods, reason = "how long to try is the business of whoever starts the tests")]
pub(crate) fn rounds(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// In a worker: tells the test something.
pub(crate) fn tell(what: &Value) {
    let mut stdout = std::io::stdout().lock();
    // In a line of its own, past the test runner; written in one piece, so that it is there or not.
    stdout.write_all(format!("\n{MARK}{what}\n").as_bytes()).unwrap();
    stdout.flush().unwrap();
}

/// In a worker: waits for the test's word.
pub(crate) fn await_word() {
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
}

impl Worker {
    /// Starts this program again, to run `test` alone, which finds `work`.
    #[expect(
        clippy::disallowed_methods,
        reason = "only another process can die, or wait for a file's lock, as one does"
    )]
    pub(crate) fn start(test: &str, work: &Value) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test]).env(WORK, work.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let orders = child.stdin.take();
        Self { child, orders, lines }
    }

    /// The next thing it tells; `None` when it has ended.
    pub(crate) fn told(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            // A line that death has cut off was never told.
            if let Some(told) = line.strip_prefix(MARK).filter(|told| told.ends_with('\n')) {
                return Some(serde_json::from_str(told).unwrap());
            }
            line.clear();
        }
        None
    }

    /// Gives it the word it waits for.
    pub(crate) fn go(&mut self) {
        self.orders.take().unwrap().write_all(b"go\n").unwrap();
    }

    /// Waits for its end, which must be a good one; answers what it said, should it not be.
    pub(crate) fn finish(mut self) {
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.lines, &mut said).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "a worker failed:\n{said}");
    }

    /// `kill -9`; answers what it had told until then.
    pub(crate) fn kill(mut self) -> Vec<Value> {
        self.child.kill().unwrap();
        let mut rest = Vec::new();
        while let Some(told) = self.told() {
            rest.push(told);
        }
        self.child.wait().unwrap();
        rest
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Of a test that failed: it has ended already otherwise.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
