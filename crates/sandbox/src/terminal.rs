//! A command has no terminal, and a program that waits for one is ended.
//!
//! Its input is at its end, and `/dev/tty` cannot be opened: it has a session of its own without a terminal. Most programs
//! give up then. Some, such as `vim`, look for the terminal on their error stream next, as if they were called behind
//! `xargs`: they make it their input and wait. It is the pipe that the host reads, so nothing ever comes.

use std::collections::BTreeMap;
use std::fs::read_to_string;

use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::memory::tree;

/// Longest name of a program that is told, as in the kernel.
const NAME_CHARS_MAX: usize = 15;

/// How often a process is seen to wait with an end before it is ended: `vim` first waits for four seconds to write its swap
/// file, and a program that asks for a key within a second or two goes on by itself.
const LOOKS_MIN: u32 = 20;

/// How often a process is seen to wait for somebody at the other end of a FIFO before it is ended: one second.
const FIFO_LOOKS_MIN: u32 = 10;
/// The function of the kernel in which the opening of a FIFO waits (`fs/pipe.c`).
const FIFO_OPENING: &str = "wait_for_partner";

/// How a system call waits for input: the number of streams that it waits for, and whether without an end.
struct Waiting {
    streams: u64,
    endless: bool,
}

/// What was seen of one command's processes.
#[derive(Default)]
pub(crate) struct Waiters {
    /// How often each was seen waiting, one look after the other.
    seen: BTreeMap<u32, u32>,
    /// The names of those that were ended.
    pub(crate) ended: Vec<String>,
    /// Whether one that waits for a FIFO is ended, too.
    ends_fifo_waits: bool,
    /// Whether one was.
    pub(crate) fifo_wait_ended: bool,
}

impl Waiters {
    pub(crate) fn new(ends_fifo_waits: bool) -> Self {
        Self { ends_fifo_waits, ..Self::default() }
    }

    /// Ends each process below `root` that waits for input from one of `outputs`, the pipes that the host reads.
    pub(crate) fn look(&mut self, root: u32, outputs: &[u64]) {
        let before = std::mem::take(&mut self.seen);
        for pid in tree(root) {
            let looks = before.get(&pid).copied().unwrap_or(0) + 1;
            let at_fifo = self.ends_fifo_waits && opens_fifo(pid);
            let found = if at_fifo {
                // By SIGTERM: git then removes its lock files.
                end_at((pid, Signal::TERM), looks >= FIFO_LOOKS_MIN, &|| opens_fifo(pid))
            } else {
                end_one(pid, outputs, looks)
            };
            self.fifo_wait_ended |= at_fifo && matches!(found, Look::Ended(_));
            match found {
                Look::Ended(name) => self.ended.push(name),
                Look::Waits => {
                    self.seen.insert(pid, looks);
                }
                Look::Works => {}
            }
        }
    }
}

/// What a look at one process has found.
enum Look {
    Works,
    Waits,
    Ended(String),
}

fn end_one(pid: u32, outputs: &[u64], looks: u32) -> Look {
    if !is_output(pid, outputs) {
        return Look::Works;
    }
    let waits = || {
        let call = read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        waiting(&call).filter(|waiting| waiting.streams == 1 && is_output(pid, outputs))
    };
    match waits() {
        Some(first) => end_at((pid, Signal::KILL), first.endless || looks >= LOOKS_MIN, &|| waits().is_some()),
        None => Look::Works,
    }
}

/// Ends a process that still waits, if it is time.
fn end_at((pid, signal): (u32, Signal), is_time: bool, still_waits: &dyn Fn() -> bool) -> Look {
    let process = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(process) = process else { return Look::Works };
    // Whatever gets the number of a process that ends meanwhile is not what this handle ends.
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else { return Look::Works };
    if !still_waits() {
        return Look::Works;
    }
    if !is_time {
        return Look::Waits;
    }
    let name = read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if pidfd_send_signal(handle, signal).is_err() {
        return Look::Works;
    }
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    Look::Ended(name.trim_end().chars().take(NAME_CHARS_MAX).map(plain).collect())
}

/// Whether a process opens a FIFO that nobody has open at the other end. Where the kernel does not tell, nobody does.
fn opens_fifo(pid: u32) -> bool {
    read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|place| place == FIFO_OPENING)
}

/// Whether the input of a process is a pipe that the host reads, open for writing only.
fn is_output(pid: u32, outputs: &[u64]) -> bool {
    let target = std::fs::read_link(format!("/proc/{pid}/fd/0")).unwrap_or_default();
    let pipe = target.to_str().and_then(|text| text.strip_prefix("pipe:[")?.strip_suffix(']')?.parse::<u64>().ok());
    if !pipe.is_some_and(|pipe| outputs.contains(&pipe)) {
        return false;
    }
    let info = read_to_string(format!("/proc/{pid}/fdinfo/0")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE == libc::O_WRONLY)
}

/// Reads `/proc/<pid>/syscall`: a number and its arguments in hexadecimal. `None` where it is no wait for input.
fn waiting(call: &str) -> Option<Waiting> {
    let mut words = call.split_whitespace();
    let number: libc::c_long = words.next()?.parse().ok()?;
    let arguments: Vec<u64> = words.map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect();
    let argument = |n: usize| arguments.get(n).copied();
    match number {
        libc::SYS_pselect6 => Some(Waiting { streams: argument(0)?, endless: argument(4)? == 0 }),
        libc::SYS_ppoll => Some(Waiting { streams: argument(1)?, endless: argument(2)? == 0 }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => Some(Waiting { streams: argument(0)?, endless: argument(4)? == 0 }),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => {
            // The sign is in the lower half.
            #[expect(clippy::cast_possible_truncation, reason = "an int in a register")]
            let endless = (argument(2)? as u32).cast_signed() < 0;
            Some(Waiting { streams: argument(1)?, endless })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_as_the_kernel_writes_it() {
        let check = |call: &str, expected: Option<(u64, bool)>| {
            assert_eq!(waiting(call).map(|waiting| (waiting.streams, waiting.endless)), expected, "{call}");
        };
        let number = libc::SYS_pselect6;
        check(&format!("{number} 0x1 0x7ffc 0x0 0x7ffd 0x0 0x0 0x7ffe 0x7f6a\n"), Some((1, true)));
        check(&format!("{number} 0x1 0x7ffc 0x0 0x7ffd 0x7fff 0x0 0x7ffe 0x7f6a\n"), Some((1, false)));
        check(&format!("{} 0x7ffc 0x2 0x0 0x0 0x8 0x0 0x7ffe 0x7f6a\n", libc::SYS_ppoll), Some((2, true)));
        check(&format!("{} 0x0 0x7ffe 0x1 0x0 0x0 0x0 0x7ffe 0x7f6a\n", libc::SYS_read), None);
        check("running\n", None);
        check("", None);
    }
}
