//! A command does not take the machine's memory.
//!
//! The kernel holds a limit for each process; this watches the sum over a command's tree, which no limit of a process holds,
//! and how much the machine has left. What is read is `/proc`: it needs no right, and no cgroup that was delegated to us.
//!
//! Memory that is no process's own counts too: files without a name (`memfd_create`) that a process of the tree has open, what
//! waits in pipes, by the number of open files, and files in the fence's private folders. So does what the kernel takes for a process's
//! page tables and mappings, and for names in those folders. A part of those may also be mapped, so the larger of the two sums is taken.

use std::collections::{HashMap, HashSet};
use std::fs::{File, Metadata, metadata, read_to_string};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How often the tree is looked at, where the machine's memory does not say that it can be spared.
pub(crate) const WATCH_EVERY: std::time::Duration = std::time::Duration::from_millis(50);
/// Every so many times it is looked at in any case: others may have given back what this one has taken.
const LOOKS_SPARED: u32 = 10;
/// Processes after which the machine's memory is looked at again.
const PROCESSES_BETWEEN: usize = 16;
/// Where the machine itself has less than this part left, a command is ended that uses a [`LARGE_PART`] of it, or while which
/// so much of it was taken.
const LOW_PART: u64 = 12;
const LARGE_PART: u64 = 8;
/// Without `/proc` there is no telling; a machine with less runs no agents.
const UNKNOWN_BYTES: u64 = 1 << 30;
/// Most processes that are looked at; a tree of more is large by their number.
const PROCESSES_MAX: usize = 20_000;
/// What an open file counts for. The kernel keeps two pages for a pipe at the least, shows them in no process, and a pipe has
/// two ends.
const DESCRIPTOR_BYTES: u64 = 4096;
/// Most open files that are looked at.
const DESCRIPTORS_MAX: usize = 200_000;
/// What a name in a private folder takes besides its content: an inode and an entry of the kernel's, and the text of a short
/// link. They are no part of what the folder says that it holds.
const NAME_BYTES: u64 = 1024;
/// What the kernel takes for one mapping of a process, whether anything in it is touched or not.
const MAPPING_BYTES: u64 = 224;
/// The unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// Memory of one process or of several, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    own: u64,
    /// Shared memory that is mapped.
    mapped: u64,
}

impl std::iter::Sum for Used {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self { own: sum.own + part.own, mapped: sum.mapped + part.mapped })
    }
}

impl Used {
    fn with(self, files: u64) -> u64 {
        self.own.saturating_add(self.mapped.max(files))
    }
}

/// The memory of this machine or, where that is less, of the container that this process runs in. Bytes.
pub fn machine_memory_bytes() -> u64 {
    Machine::now().total()
}

/// What the kernel tells of the whole machine's memory at one time: it takes much longer to tell it than to read it.
struct Machine(String);

impl Machine {
    fn now() -> Self {
        Self(read_to_string("/proc/meminfo").unwrap_or_default())
    }

    /// The sum of these lines in bytes; `None` where the first is not there.
    fn sum(&self, names: &[&str]) -> Option<u64> {
        names.first().is_some_and(|name| self.0.contains(name)).then(|| sum_of(&self.0, names))
    }

    fn total(&self) -> u64 {
        let total = self.sum(&["MemTotal:"]).unwrap_or(UNKNOWN_BYTES);
        of_container().map_or(total, |limit| limit.min(total))
    }

    /// What is left.
    fn left(&self) -> u64 {
        self.sum(&["MemAvailable:"]).unwrap_or(u64::MAX)
    }

    /// The bytes that all files in memory use. The kernel may have swapped some of them out.
    fn shared_by_all(&self) -> u64 {
        let [all, free] = ["SwapTotal:", "SwapFree:"].map(|name| self.sum(&[name]).unwrap_or(0));
        let swapped = all.saturating_sub(free);
        self.sum(&["Shmem:", "Hugetlb:"]).map_or(u64::MAX, |files| files.saturating_add(swapped))
    }

    /// What the kernel has taken for itself and cannot give back at once, without what it takes for pages.
    fn kernel(&self) -> u64 {
        self.sum(&["SUnreclaim:"]).unwrap_or(0)
    }
}

/// The limit of the container that this process runs in, in bytes.
fn of_container() -> Option<u64> {
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|path| read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .min()
}

/// Whether the machine runs out although it had enough when the command began. The command may have taken it where no
/// process shows it, such as in sockets, and the kernel would end whatever it finds.
fn ran_short(total: u64, left_before: u64, left: u64) -> bool {
    left < total / LOW_PART && left_before.saturating_sub(left) > total / LARGE_PART
}

/// Looks at the memory of one command.
pub(crate) struct Watch {
    /// The tree of processes below this one.
    root: u32,
    /// Most bytes of all of it.
    limit: u64,
    /// The folders that the fence keeps in memory.
    private: Vec<PathBuf>,
    total: u64,
    /// What the machine had left when the command began.
    left_before: u64,
    /// What the kernel had taken for itself when the command began.
    kernel_before: u64,
    /// What files in memory used on the machine then.
    shared_before: u64,
    looks: u32,
}

impl Watch {
    pub(crate) fn new(root: u32, limit: u64, private: Vec<PathBuf>) -> Self {
        let machine = Machine::now();
        Self {
            root,
            limit,
            private,
            total: machine.total(),
            left_before: machine.left(),
            kernel_before: machine.kernel(),
            shared_before: machine.shared_by_all(),
            looks: 0,
        }
    }

    /// Whether the tree uses more than it may, or so much that the machine runs out.
    ///
    /// Hundreds of processes leave this one little of the processors, and fill the machine in seconds: one file says whether
    /// there is a reason to look at each of them, and is read again after every few.
    pub(crate) fn is_too_large(&mut self) -> bool {
        let machine = Machine::now();
        let left = machine.left();
        if self.ran_short(left) {
            return true;
        }
        let (low, taken) = (left < self.total / LOW_PART, self.left_before.saturating_sub(left));
        self.looks = self.looks.wrapping_add(1);
        if !low && taken < self.limit / 2 && !self.looks.is_multiple_of(LOOKS_SPARED) {
            return false;
        }
        let tree: Vec<u32> = tree(self.root).into_iter().map(that_has_memory).collect();
        let private = private_files(&tree, &self.private);
        // Mappings are counted only where the kernel has taken much meanwhile: they are listed one by one.
        let much = machine.kernel().saturating_sub(self.kernel_before) > self.limit / 2;
        let kernel = private.names.saturating_add(if much { mappings_bytes(&tree, self.limit) } else { 0 });
        let of_kernel = Used { own: kernel, mapped: 0 };
        let Some(rough) = self.sum(&tree, rough, None) else { return true };
        let rough = [rough, of_kernel].into_iter().sum::<Used>();
        // Its files are not larger than those of the whole machine: most of the time there is no need to look for them.
        if !low && rough.with(0).saturating_add(Machine::now().shared_by_all()) <= self.limit {
            return false;
        }
        let files = nameless_files(&tree).saturating_add(private.files);
        // Of shared memory that is only mapped nobody tells how much is there: at most what the machine has gained of it.
        let gained = Machine::now().shared_by_all().saturating_sub(self.shared_before).saturating_sub(files);
        let files = files.saturating_add(if gained > 0 { shared_mappings(&tree).min(gained) } else { 0 });
        if low && rough.with(files) > self.total / LARGE_PART {
            return true;
        }
        // Pages that several of them share were counted several times.
        let fair = |pid| fair(pid).unwrap_or_else(|| self::rough(pid));
        let taken = files.saturating_add(kernel);
        rough.with(files) > self.limit
            && self
                .sum(&tree, fair, Some(taken))
                .is_none_or(|fair| fair.with(files).saturating_add(kernel) > self.limit)
    }

    fn ran_short(&self, left: u64) -> bool {
        ran_short(self.total, self.left_before, left)
    }

    /// What the processes use together; where `files` is given, no more of them than it takes to pass the limit with so many
    /// bytes of files. `None` where the machine runs out meanwhile.
    fn sum(&self, tree: &[u32], of: impl Fn(u32) -> Used, files: Option<u64>) -> Option<Used> {
        let mut sum = Used::default();
        for some in tree.chunks(PROCESSES_BETWEEN) {
            if self.ran_short(Machine::now().left()) {
                return None;
            }
            sum = [sum].into_iter().chain(some.iter().map(|pid| of(*pid))).sum();
            if files.is_some_and(|files| sum.with(files) > self.limit) {
                break;
            }
        }
        Some(sum)
    }
}

/// A process and all that come from it. In a fence even a daemon has an ancestor in it.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied()
        && found.len() < PROCESSES_MAX
    {
        next += 1;
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    found
}

/// The number under which `/proc` shows the memory and the open files of a process. Where its main thread has exited, that is the
/// number of a thread that still runs.
fn that_has_memory(pid: u32) -> u32 {
    let has_none = |pid: u32| read_to_string(format!("/proc/{pid}/statm")).is_ok_and(|statm| statm.starts_with("0 "));
    if !has_none(pid) {
        return pid;
    }
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    threads.into_iter().find(|thread| !has_none(*thread)).unwrap_or(pid)
}

/// What the processes have open that has no name and is kept in memory. Each is counted once, whether it is mapped or not.
fn nameless_files(tree: &[u32]) -> u64 {
    let open = tree.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let mut seen = HashSet::new();
    let sizes = open.take(DESCRIPTORS_MAX).filter_map(|entry| {
        // Nothing else is asked for its size: a network's file may not answer.
        let target = std::fs::read_link(entry.path()).ok()?;
        let file =
            target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:").then(|| metadata(entry.path()).ok())??;
        seen.insert((file.dev(), file.ino())).then_some(file.blocks() * BLOCK_BYTES)
    });
    sizes.sum()
}

/// The sizes of memory that processes share and that is no file (`MAP_SHARED | MAP_ANONYMOUS`), whether it is touched or not.
/// Each is counted once. What was touched stays, also where it is in nobody's tables any more (`MADV_DONTNEED`).
fn shared_mappings(tree: &[u32]) -> u64 {
    let mut sizes: HashMap<String, u64> = HashMap::new();
    for pid in tree {
        let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { continue };
        for line in BufReader::new(maps).lines().map_while(std::result::Result::ok) {
            let mut parts = line.split_whitespace();
            let (Some(range), Some(how), Some(inode)) = (parts.next(), parts.next(), parts.nth(2)) else { continue };
            if !how.ends_with('s') || parts.next() != Some("/dev/zero") {
                continue;
            }
            let ends =
                range.split_once('-').map(|(from, to)| (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)));
            let Some((Ok(from), Ok(to))) = ends else { continue };
            let size = sizes.entry(inode.to_owned()).or_default();
            *size = (*size).max(to.saturating_sub(from));
        }
    }
    sizes.values().sum()
}

/// Bytes in folders that are kept in memory.
#[derive(Clone, Copy, Default)]
struct Private {
    files: u64,
    /// What the kernel takes for their names.
    names: u64,
}

/// What the private folders hold, seen through the first process that has them.
fn private_files(tree: &[u32], private: &[PathBuf]) -> Private {
    let used = |folder: &PathBuf| tree.iter().find_map(|pid| folder_bytes(*pid, folder));
    private.iter().filter_map(used).fold(Private::default(), |sum, one| Private {
        files: sum.files.saturating_add(one.files),
        names: sum.names.saturating_add(one.names),
    })
}

/// What the mappings of the processes take, up to a number of bytes that is too much.
fn mappings_bytes(tree: &[u32], enough: u64) -> u64 {
    let mut bytes = 0;
    for pid in tree {
        let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { continue };
        let mut lines = BufReader::new(maps).split(b'\n');
        while bytes <= enough && lines.next().is_some_and(|line| line.is_ok()) {
            bytes += MAPPING_BYTES;
        }
    }
    bytes
}

/// `None` where the process does not have this folder, or the machine's own in its place, as before its fence stands.
fn folder_bytes(pid: u32, folder: &Path) -> Option<Private> {
    let inside = PathBuf::from(format!("/proc/{pid}/root")).join(folder.strip_prefix("/").ok()?);
    let device = |found: Metadata| found.dev();
    if metadata(folder).ok().map(device) == Some(metadata(&inside).ok().map(device)?) {
        return None;
    }
    let size = rustix::fs::statvfs(&inside).ok()?;
    Some(Private {
        files: size.f_blocks.saturating_sub(size.f_bfree).saturating_mul(size.f_frsize),
        names: size.f_files.saturating_sub(size.f_ffree).saturating_mul(NAME_BYTES),
    })
}

/// The line in a process's status for the tables of its pages, which grow with the addresses that it touches, also of pages that
/// hold nothing.
const PAGE_TABLES: &str = "VmPTE:";

/// As a process's status tells it; it may have ended.
fn rough(pid: u32) -> Used {
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let own = sum_of(&status, &["RssAnon:", "VmSwap:", PAGE_TABLES]).saturating_add(open_files_bytes(pid));
    Used { own, mapped: sum_of(&status, &["RssShmem:"]) }
}

/// The same, with what is shared divided among those who share it. `None` where that may not be read.
fn fair(pid: u32) -> Option<Used> {
    let rollup = read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let own = sum_of(&rollup, &["Pss_Anon:", "SwapPss:"]).saturating_add(sum_of(&status, &[PAGE_TABLES]));
    let own = own.saturating_add(open_files_bytes(pid));
    Some(Used { own, mapped: sum_of(&rollup, &["Pss_Shmem:"]) })
}

/// What a process's open files take at the most usual, by their number: the size of their folder (since Linux 6.2), or that of
/// a listing.
fn open_files_bytes(pid: u32) -> u64 {
    let folder = format!("/proc/{pid}/fd");
    let listed = || std::fs::read_dir(&folder).map_or(0, |entries| entries.take(DESCRIPTORS_MAX).count() as u64);
    let number = metadata(&folder).map_or(0, |found| found.len());
    let number = if number > 0 { number } else { listed() };
    number.saturating_mul(DESCRIPTOR_BYTES)
}

/// Adds up lines such as `RssAnon:    12 kB`.
fn sum_of(text: &str, names: &[&str]) -> u64 {
    let lines = text.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).map(|kib| kib << 10).sum()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_a_process_holds_its_children_and_their_memory() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let tree = tree(std::process::id());
        assert!(tree.contains(&child.id()), "{tree:?}");
        // Of the child, for other tests open files in this process between the two looks.
        let shared = fair(child.id()).unwrap().own;
        assert!(shared <= rough(child.id()).own + open_files_bytes(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        let own = std::process::id();
        assert!(rough(own).own > 100_000);
        assert!(Watch { left_before: u64::MAX, ..Watch::new(own, 1000, Vec::new()) }.is_too_large());
        let mut spared = Watch::new(own, 100_000, Vec::new());
        spared.left_before = 0;
        let looks: Vec<bool> = (0..LOOKS_SPARED).map(|_| spared.is_too_large()).collect();
        assert_eq!(
            looks.iter().filter(|large| **large).count(),
            1,
            "it is looked at although the machine has more: {looks:?}"
        );
        assert!(machine_memory_bytes() > 100 << 20);
    }

    #[test]
    fn a_command_that_leaves_the_machine_nothing_is_told_from_one_that_found_it_so() {
        let total = 1200;
        assert!(ran_short(total, 500, 99));
        assert!(!ran_short(total, 500, 100));
        assert!(!ran_short(total, 249, 99), "it was nearly as short before");
        assert!(!ran_short(total, 0, 900));
    }

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        let text = "Name:\tx\nRssAnon:\t      12 kB\nRssFile:\t 7 kB\nVmSwap:\t 1 kB\n";
        assert_eq!(sum_of(text, &["RssAnon:", "VmSwap:"]), 13 << 10);
        assert_eq!(sum_of("", &["RssAnon:"]), 0);
    }
}
