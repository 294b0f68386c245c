//! What commands and walks may use at most.

use crate::memory::machine_memory_bytes;

/// Limits of commands and walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest file a command may write.
    pub file_bytes: u64,
    pub open_files: u64,
    /// Counted only where commands have a user of their own.
    pub processes: u64,
    /// Size of the private `/tmp` and home, each.
    pub tmp_bytes: u64,
    /// Files and folders in each of the two, where they are a session's.
    pub tmp_files: u64,
    /// Sessions that may have private folders at once. For one more, the folders are removed that have been unused longest.
    pub session_folders: usize,
    /// Size of the private `/dev/shm`, which is the machine's memory.
    pub shm_bytes: u64,
    /// A command that writes more is ended.
    pub output_bytes: u64,
    /// A command whose processes together use more memory is ended, and none of them gets more by itself.
    pub memory_bytes: u64,
    pub walk_threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 1 << 30,
            open_files: 1024,
            processes: 1024,
            tmp_bytes: 2 << 30,
            tmp_files: 500_000,
            session_folders: 32,
            shm_bytes: 512 << 20,
            output_bytes: 64 << 30,
            memory_bytes: machine_memory_bytes() / 2,
            walk_threads: std::thread::available_parallelism().map_or(2, usize::from).min(8),
        }
    }
}
