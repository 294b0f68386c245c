//! The table `[commands]` of the configuration: limits of commands.

use std::path::PathBuf;

use anyhow::bail;
use schemars::JsonSchema;
use serde::Deserialize;
use toolhost_sandbox::Limits;

use crate::size::Size;

/// With less, the fence itself cannot start.
const COMMAND_MEMORY_MIN: u64 = 64 << 20;

/// Limits of commands.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Commands {
    /// Most memory that a command's processes may use together, such as `8G`; half of the machine's if left out.
    memory: Option<Size>,
    /// A delegated cgroup (v2) in which the kernel enforces that limit; the host's own, if it is delegated, if left out.
    pub(crate) cgroup: Option<PathBuf>,
    /// The size of the private `/tmp` and of the private home, each, such as `2G`.
    tmp: Option<Size>,
    /// Most files and folders in a session's `/tmp`, and in its home; 500000 if left out.
    tmp_files: Option<u64>,
    /// How many sessions of a workspace keep a `/tmp` and home at once; 32 if left out. A further session replaces the one whose folders
    /// were unused longest: its next command finds empty ones.
    session_folders: Option<usize>,
    /// The size of the private `/dev/shm`.
    shm: Option<Size>,
    /// The size of the largest file that a command may write.
    file: Option<Size>,
    /// How much a command may print before it is ended.
    output: Option<Size>,
    /// How many files a process of a command may have open.
    open_files: Option<u64>,
    /// How many processes a command may have.
    processes: Option<u64>,
}

impl Commands {
    /// What holds for commands; `memory` is what the option says.
    pub(crate) fn limits(&self, memory: Option<Size>) -> anyhow::Result<Limits> {
        let usual = Limits::default();
        let size = |said: Option<Size>, usual: u64| said.map_or(usual, |size| size.0);
        let limits = Limits {
            memory_bytes: size(memory.or(self.memory), usual.memory_bytes),
            tmp_bytes: size(self.tmp, usual.tmp_bytes),
            tmp_files: self.tmp_files.unwrap_or(usual.tmp_files),
            session_folders: self.session_folders.unwrap_or(usual.session_folders).max(1),
            shm_bytes: size(self.shm, usual.shm_bytes),
            file_bytes: size(self.file, usual.file_bytes),
            output_bytes: size(self.output, usual.output_bytes),
            open_files: self.open_files.unwrap_or(usual.open_files),
            processes: self.processes.unwrap_or(usual.processes),
            ..usual
        };
        if limits.memory_bytes < COMMAND_MEMORY_MIN {
            bail!(
                "a command's memory is {} bytes, less than the least of 64M: say more with --command-memory",
                limits.memory_bytes
            );
        }
        Ok(limits)
    }
}
