//! The mark on all processes of a command, by which they are found where their supervisor was killed.
//!
//! Without a namespace of processes the kernel holds nothing together that a process wants to leave: it may fork, leave its
//! group and session, and change its name and environment. A limit is the one thing that each child inherits and that a filter of
//! calls can keep from being changed. `RLIMIT_LOCKS` takes 64 bits, and has limited nothing since Linux 2.4.25.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::hash::{BuildHasher, RandomState};
use std::io::{Error, ErrorKind, Result};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};

/// The name of the limit in `/proc`.
const LIMIT_IN_PROC: &str = "Max file locks";
/// Bits that tell the commands of a workspace apart.
const COMMAND_BITS: u32 = 31;
/// The highest bit stays unset: `unlimited` is all bits.
const WORKSPACE_BITS: u32 = 63 - COMMAND_BITS;
/// Most rounds in which new processes are stopped before all are killed.
const STOPS_MAX: usize = 100;
/// How often it is looked whether those that were killed have gone.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// The mark of one workspace, or of one command in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    value: u64,
    is_command: bool,
}

impl Mark {
    /// The part that all commands of a workspace have, from the workspace's name among the guards, which is a hash.
    pub(crate) fn of_workspace(id: &str) -> Self {
        let hash = id.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default();
        Self { value: hash >> (64 - WORKSPACE_BITS) << COMMAND_BITS, is_command: false }
    }

    /// A mark for one command there.
    pub(crate) fn of_command(self) -> Self {
        let random = RandomState::new().hash_one(self.value) >> (64 - COMMAND_BITS);
        Self { value: self.value | random, is_command: true }
    }

    pub(crate) fn value(self) -> u64 {
        self.value
    }

    fn is_on(self, limit: u64) -> bool {
        if self.is_command { limit == self.value } else { limit >> COMMAND_BITS == self.value >> COMMAND_BITS }
    }

    /// The live processes that have this mark.
    fn processes(self) -> Vec<Pid> {
        let entries = read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        pids.filter(|pid| self.is_process(*pid)).collect()
    }

    fn is_process(self, pid: Pid) -> bool {
        let folder = format!("/proc/{}", pid.as_raw_nonzero());
        // One that has ended meanwhile has none.
        let limits = read_to_string(format!("{folder}/limits")).unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix(LIMIT_IN_PROC));
        let hard = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        hard.is_some_and(|hard| self.is_on(hard)) && !has_ended(&folder)
    }

    /// Ends all processes that have this mark.
    ///
    /// # Errors
    /// `TimedOut`: some were still there at the time `until`, as what waits in the kernel for a disk is.
    pub(crate) fn end_processes(self, until: Instant) -> Result<()> {
        // What is killed makes room for others, and a fork bomb would start them faster than this kills.
        let mut stopped = BTreeSet::new();
        for _ in 0..STOPS_MAX {
            let mut fresh = self.processes();
            fresh.retain(|pid| stopped.insert(pid.as_raw_nonzero()));
            if fresh.is_empty() {
                break;
            }
            fresh.into_iter().for_each(|pid| self.signal(pid, Signal::STOP));
        }
        loop {
            let left = self.processes();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Error::from(ErrorKind::TimedOut));
            }
            left.into_iter().for_each(|pid| self.signal(pid, Signal::KILL));
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// Through a handle, looked at again: the number may be another's by now.
    fn signal(self, pid: Pid, signal: Signal) {
        if let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty())
            && self.is_process(pid)
        {
            // It may have ended by itself meanwhile.
            let _ = rustix::process::pidfd_send_signal(process, signal);
        }
    }
}

/// Whether it is only left for its parent to be read.
fn has_ended(folder: &str) -> bool {
    let stat = read_to_string(format!("{folder}/stat")).unwrap_or_default();
    // The name may hold anything, so read from behind its closing parenthesis.
    stat.rsplit(')').next().is_none_or(|fields| matches!(fields.trim_start().chars().next(), None | Some('Z' | 'X')))
}

/// Marks this process and what it starts.
///
/// # Errors
/// The user has a limit of its own that is lower.
pub(crate) fn set(value: u64) -> std::result::Result<(), String> {
    let limit = Rlimit { current: Some(value), maximum: Some(value) };
    rustix::process::setrlimit(Resource::Locks, limit).map_err(|error| {
        format!(
            "the limit `locks` (`ulimit -x`), by which a command's processes are found again, cannot be set: {error}; \
             it must be `unlimited` for the user who runs toolhost"
        )
    })
}
