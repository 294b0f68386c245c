//! The mark on all processes of a command, by which they are found where their supervisor was killed.
//!
//! Without a namespace of processes the kernel holds nothing together that a process wants to leave: it may fork, leave its
//! group and session, and change its name and environment. A limit is the one thing that each child inherits and that a filter of
//! calls can keep from being changed. `RLIMIT_LOCKS` takes 64 bits, and has limited nothing since Linux 2.4.25.

use std::collections::BTreeSet;
use std::fs::{File, read_dir};
use std::hash::{BuildHasher, RandomState};
use std::io::{Error, ErrorKind, Read, Result};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// The name of the limit in `/proc`.
const LIMIT_IN_PROC: &str = "Max file locks";
/// More than any file in `/proc` has that is read here: a page, which the kernel fills at most by one call.
const PROC_FILE_BYTES_MAX: usize = 4096;
/// Bits that tell the commands of a workspace apart.
const COMMAND_BITS: u32 = 31;
/// The highest bit stays unset: `unlimited` is all bits.
const WORKSPACE_BITS: u32 = 63 - COMMAND_BITS;
/// The pause between two looks for killed processes that are still there.
const LOOK_PAUSE: Duration = Duration::from_millis(2);

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

    /// The same part for commands after which nothing is put back: those that only read, and git's own. They go on while the processes
    /// that other commands have left are ended.
    pub(crate) fn of_harmless(self) -> Self {
        Self { value: self.value ^ (1 << 62), is_command: false }
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

    /// Ends all processes that have this mark.
    ///
    /// # Errors
    /// `TimedOut`: some were still there at the time `until`, as what waits in the kernel for a disk is.
    pub(crate) fn end_processes(self, until: Instant) -> Result<()> {
        let mut sweep = Sweep { mark: self, passed: BTreeSet::new(), stopped: BTreeSet::new() };
        // All processes stop before one is killed: each killed process of a fork bomb makes room for a new one.
        while sweep.stop_fresh() > 0 && Instant::now() < until {}
        loop {
            sweep.stop_fresh();
            let left = sweep.kill_stopped();
            if left == 0 && sweep.is_over() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Error::from(ErrorKind::TimedOut));
            }
            if left > 0 {
                std::thread::sleep(LOOK_PAUSE);
            }
        }
    }

    /// Whether a process carries this mark and still runs.
    fn is_on_process(self, pid: Pid) -> bool {
        let folder = format!("/proc/{}", pid.as_raw_nonzero());
        let limits = read_in_proc(&format!("{folder}/limits"));
        let line = limits.lines().find_map(|line| line.strip_prefix(LIMIT_IN_PROC));
        let hard = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        hard.is_some_and(|hard| self.is_on(hard)) && !has_ended(&folder, &stat_of(&folder))
    }
}

/// The search for all processes with one mark. A process may fork and exit within a millisecond, so that a slow search finds
/// none of its children either. That is why the search looks at the newest processes first, and at each process once.
struct Sweep {
    mark: Mark,
    /// The numbers of processes that need no second look: those without the mark, and those that have ended.
    passed: BTreeSet<i32>,
    stopped: BTreeSet<i32>,
}

impl Sweep {
    /// Stops the processes that were not stopped before; answers how many.
    fn stop_fresh(&mut self) -> usize {
        let mut fresh = 0;
        for number in newest_first() {
            if self.passed.contains(&number) || self.stopped.contains(&number) {
                continue;
            }
            // The handle comes first: what is read after it belongs to this process, or the process has ended.
            let process = Pid::from_raw(number).and_then(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)));
            let Some((pid, process)) = process.filter(|(pid, _)| self.mark.is_on_process(*pid)) else {
                self.passed.insert(number);
                continue;
            };
            // It may have ended by itself meanwhile.
            let _ = pidfd_send_signal(process, Signal::STOP);
            self.stop_group(pid);
            self.stopped.insert(number);
            fresh += 1;
        }
        fresh
    }

    /// Stops the whole process group in one call, in the middle of which no member can fork. All members belong to the command,
    /// because a command begins a session of its own. The number of the group stays in use as long as this stopped member lives.
    fn stop_group(&self, pid: Pid) {
        let stat = stat_of(&format!("/proc/{}", pid.as_raw_nonzero()));
        let group = behind_name(&stat).nth(2).and_then(|group| Pid::from_raw(group.parse().ok()?));
        if let Some(group) = group.filter(|_| self.mark.is_on_process(pid)) {
            let _ = kill_process_group(group, Signal::STOP);
        }
    }

    /// Kills what was stopped; answers how many are still there.
    fn kill_stopped(&mut self) -> usize {
        let mut left = BTreeSet::new();
        for number in std::mem::take(&mut self.stopped) {
            let Some(pid) = Pid::from_raw(number) else { continue };
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
                && self.mark.is_on_process(pid)
            {
                let _ = pidfd_send_signal(process, Signal::KILL);
                left.insert(number);
            }
        }
        self.stopped = left;
        self.stopped.len()
    }

    /// Whether a look at every process, without skipping one, finds no further process. A number that was skipped may belong to
    /// another process by now.
    fn is_over(&mut self) -> bool {
        self.passed.clear();
        self.stop_fresh() == 0
    }
}

/// The numbers of all processes, the newest first. The kernel gives numbers in ascending order, and begins again after the highest.
fn newest_first() -> Vec<i32> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let newest = read_in_proc("/proc/loadavg");
    let newest: i32 = newest.split_whitespace().last().and_then(|last| last.parse().ok()).unwrap_or(i32::MAX);
    numbers.sort_unstable_by_key(|number| (*number > newest, std::cmp::Reverse(*number)));
    numbers
}

/// The line about the process of a folder in `/proc`; none, if it has ended and was waited for.
pub(crate) fn stat_of(folder: &str) -> String {
    read_in_proc(&format!("{folder}/stat"))
}

/// Whether a process has ended, whose line is `stat`: it is a zombie without a living thread. The main thread alone may exit while
/// others run.
pub(crate) fn has_ended(folder: &str, stat: &str) -> bool {
    match behind_name(stat).next() {
        None | Some("X") => true,
        Some("Z") => read_dir(format!("{folder}/task")).into_iter().flatten().count() <= 1,
        Some(_) => false,
    }
}

/// A short file in `/proc` by one call, since the kernel writes it anew for each. It is empty where the process is gone.
fn read_in_proc(path: &str) -> String {
    let mut text = [0; PROC_FILE_BYTES_MAX];
    let length = File::open(path).and_then(|mut file| file.read(&mut text)).unwrap_or_default();
    String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned()
}

/// The state of a process, its parent, its group and so on, from its line in `/proc`. The name before them may hold anything, so
/// this begins behind its closing parenthesis.
pub(crate) fn behind_name(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit(')').next().unwrap_or_default().split_whitespace()
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
