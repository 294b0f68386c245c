//! Somebody who types at a terminal and reads what stands there.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use toolhost_testkit::Program;

/// Nothing that a person sees takes longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Somebody at a terminal.
pub(crate) struct Typist {
    child: Child,
    keys: ChildStdin,
    screen: Receiver<String>,
    shown: String,
}

impl Typist {
    pub(crate) fn of(program: &Program, arguments: &[&str]) -> Self {
        let mut terminal = program.at_terminal(100, "exec {}", arguments);
        let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (keys, mut terminal) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (shows, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = terminal.read(&mut buffer) {
                if shows.send(String::from_utf8_lossy(&buffer[..read]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, screen, shown: String::new() }
    }

    /// Reads on until this stands on the screen; what stood there before is not looked at again.
    pub(crate) fn sees(&mut self, text: &str) {
        self.sees_before(text);
    }

    /// The same, and what stood there before it.
    pub(crate) fn sees_before(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.shown.find(text) {
                let before = self.shown[..at].to_owned();
                self.shown.drain(..at + text.len());
                return before;
            }
            match self.screen.recv_timeout(PATIENCE) {
                Ok(shown) => self.shown.push_str(&shown),
                Err(_) => {
                    let _ = self.child.kill();
                    unreachable!("{text:?} does not come: {:?}", self.shown)
                }
            }
        }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// The exit code, when the program has ended.
    pub(crate) fn leaves(mut self) -> Option<i32> {
        drop(self.keys);
        while self.screen.recv_timeout(PATIENCE).is_ok() {}
        self.child.wait().unwrap().code()
    }
}
