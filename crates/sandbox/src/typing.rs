//! The terminal at the standard input of this process, where a person types.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcsetattr,
};

/// Lines that are read to be forgotten, so that who types without end cannot keep a question from being asked.
const LINES_MAX: usize = 64;

/// Forgets what was typed and not read: no answer to a question was meant before it was asked. True if the end of the input
/// (Ctrl-D) was among it: a program that has nothing to type, such as `script` without input, types that once, at the
/// beginning. No other thread may be reading.
pub fn forget_typed() -> bool {
    let stdin = std::io::stdin();
    let ended =
        tcgetattr(stdin.as_fd()).is_ok() && (0..LINES_MAX).map_while(|_| next_line(&stdin)).any(|length| length == 0);
    forget_keys();
    ended
}

/// As [`forget_typed`], while another thread reads: that one has the whole lines, and the end.
pub fn forget_keys() {
    // Where there is no terminal, nothing was typed.
    let _ = tcflush(std::io::stdin().as_fd(), QueueSelector::IFlush);
}

/// The length of the next line that was typed, which is read; `None` where none is whole.
fn next_line(stdin: &std::io::Stdin) -> Option<usize> {
    let mut polled = [PollFd::new(stdin, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut polled, Some(&now)).ok()? == 0 {
        return None;
    }
    read(stdin, &mut [0; 4096]).ok()
}

/// The character code of a key that does nothing (`_POSIX_VDISABLE`).
const NO_KEY: u8 = 0;

/// The terminal gives each key as it is typed, and does not show it, until this is dropped. What was typed before is forgotten.
/// Ctrl-Z is a key without a meaning: a process that it stopped would leave the terminal so.
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
        single.special_codes[SpecialCodeIndex::VSUSP] = NO_KEY;
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
