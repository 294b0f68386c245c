//! A command does not take the machine's memory.
//!
//! The kernel holds a limit for each process; this watches the sum over a command's tree, which no limit of a process holds,
//! and how much the machine has left. What is read is `/proc`: it needs no right, and no cgroup that was delegated to us.

use std::fs::read_to_string;

/// How often the tree is looked at.
pub(crate) const WATCH_EVERY: std::time::Duration = std::time::Duration::from_millis(100);
/// Where the machine itself has less than this part left, a command that uses a [`LARGE_PART`] of it is ended.
const LOW_PART: u64 = 20;
const LARGE_PART: u64 = 8;
/// Without `/proc` there is no telling; a machine with less runs no agents.
const UNKNOWN_BYTES: u64 = 1 << 30;
/// Most processes that are looked at; a tree of more is large by their number.
const PROCESSES_MAX: usize = 20_000;

/// The memory of this machine or, where that is less, of the container that this process runs in. Bytes.
pub fn machine_memory_bytes() -> u64 {
    let total = meminfo("MemTotal:").unwrap_or(UNKNOWN_BYTES);
    let of_container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|path| read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .min();
    of_container.map_or(total, |limit| limit.min(total))
}

/// Whether the tree of processes below `root` uses more than `limit`, or so much that the machine runs out.
pub(crate) fn is_too_large(root: u32, limit: u64) -> bool {
    let tree = tree(root);
    let rough: u64 = tree.iter().map(|pid| rough_bytes(*pid)).sum();
    let low = || {
        let (total, left) = (machine_memory_bytes(), meminfo("MemAvailable:").unwrap_or(u64::MAX));
        left < total / LOW_PART && rough > total / LARGE_PART
    };
    if rough <= limit {
        return low();
    }
    // Pages that several of them share were counted several times.
    tree.iter().map(|pid| fair_bytes(*pid).unwrap_or_else(|| rough_bytes(*pid))).sum::<u64>() > limit || low()
}

/// A process and all that come from it. In a fence even a daemon has an ancestor in it.
fn tree(root: u32) -> Vec<u32> {
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

/// Memory of its own and shared memory that is mapped, in bytes; it may have ended.
fn rough_bytes(pid: u32) -> u64 {
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    sum_of(&status, &["RssAnon:", "RssShmem:", "VmSwap:"])
}

/// The same, with what is shared divided among those who share it. `None` where that may not be read.
fn fair_bytes(pid: u32) -> Option<u64> {
    let rollup = read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(sum_of(&rollup, &["Pss_Anon:", "Pss_Shmem:", "SwapPss:"]))
}

fn meminfo(name: &str) -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    text.contains(name).then(|| sum_of(&text, &[name]))
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
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(rough_bytes(std::process::id()) > 100_000);
        assert!(fair_bytes(std::process::id()).unwrap() <= rough_bytes(std::process::id()));
        assert!(is_too_large(std::process::id(), 1000));
        assert!(machine_memory_bytes() > 100 << 20);
    }

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        let text = "Name:\tx\nRssAnon:\t      12 kB\nRssFile:\t 7 kB\nVmSwap:\t 1 kB\n";
        assert_eq!(sum_of(text, &["RssAnon:", "VmSwap:"]), 13 << 10);
        assert_eq!(sum_of("", &["RssAnon:"]), 0);
    }
}
