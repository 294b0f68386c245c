//! The terminal at the standard input of this process, where a person types.

use std::os::fd::AsFd;

use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};

/// Forgets what was typed and not read: no answer to a question was meant before it was asked.
pub fn forget_typed() {
    // Where there is no terminal, nothing was typed.
    let _ = tcflush(std::io::stdin().as_fd(), QueueSelector::IFlush);
}

/// The terminal gives each key as it is typed, and does not show it, until this is dropped. What was typed before is forgotten.
pub struct SingleKeys(Termios);

impl SingleKeys {
    /// `None` where the terminal gives only lines.
    pub fn on() -> Option<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(stdin.as_fd()).ok()?;
        let mut single = before.clone();
        single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        single.special_codes[SpecialCodeIndex::VMIN] = 1;
        single.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin.as_fd(), OptionalActions::Flush, &single).ok()?;
        Some(Self(before))
    }
}

impl Drop for SingleKeys {
    fn drop(&mut self) {
        // A terminal that has gone needs no mode.
        let _ = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}
