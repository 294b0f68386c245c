//! The lines below everything printed that tell what a session does right now.
//!
//! They are drawn over again and again, and the cursor stands at their beginning: whatever is printed next takes their place.

use std::io::{IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};

use crate::fold::fitting;
use crate::print;

/// What spins while something runs.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

#[derive(Debug, Default)]
pub(super) struct Status {
    is_on: bool,
    /// While a person is asked something.
    is_hidden: bool,
    is_drawn: bool,
    frame: usize,
}

impl Status {
    /// Drawn where a person is at the terminal who wants to see it.
    pub(super) fn new() -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        // Another program that shows the output there (`| tee log`) would print into it.
        let is_alone = std::io::stdout().is_terminal() || !print::is_shown_beside_notes();
        let is_on = std::io::stderr().is_terminal() && is_alone && print::has_asides() && !is_dumb;
        Self { is_on, ..Self::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) fn hide(&mut self, is_hidden: bool) {
        self.erase();
        self.is_hidden = is_hidden;
    }

    pub(super) fn spinner(&mut self) -> char {
        self.frame = (self.frame + 1) % SPINNER.len();
        SPINNER[self.frame]
    }

    /// Draws these lines in the place of the last ones.
    pub(super) fn draw(&mut self, lines: &[String]) {
        if !self.is_on || self.is_hidden || lines.is_empty() {
            return;
        }
        let mut text = "\r\x1b[J".to_owned();
        for (n, line) in lines.iter().enumerate() {
            let line = fitting(line, &std::io::stderr());
            let line = match AutoStream::choice(&std::io::stderr()) {
                ColorChoice::Never => anstream::adapter::strip_str(&line).to_string(),
                _ => format!("{line}\x1b[0m"),
            };
            text.push_str(if n > 0 { "\n" } else { "" });
            text.push_str(&line);
        }
        if lines.len() > 1 {
            text.push_str(&format!("\x1b[{}A", lines.len() - 1));
        }
        text.push('\r');
        write(&text);
        self.is_drawn = true;
    }

    pub(super) fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            write("\r\x1b[J");
        }
    }
}

fn write(text: &str) {
    // A terminal that has gone needs no lines.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
