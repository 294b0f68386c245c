//! Who a command is. Never root, if that can be had.
//!
//! A host that runs as root (a container, a CI machine) would hand its uid to every command. Instead the command
//! becomes a real unprivileged user. Where root also owns the workspace, that user could not write there, so the
//! workspace is mounted once more with its ids mapped (`mount_setattr(MOUNT_ATTR_IDMAP)`): on disk root's, in the fence
//! the command's own.

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The user that commands of a root host become where root owns the workspace: outside the ranges that
/// distributions hand out, below systemd's container range.
const AGENT_UID: u32 = 64_999;

/// Who a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The host's own unprivileged user.
    Host,
    /// The workspace's owner; the host is root.
    Owner { uid: u32, gid: u32 },
    /// The agent user, through a mapped mount; the host is root and so is the owner.
    Mapped { uid: u32 },
    /// Root without capabilities: nothing better could be had.
    BareRoot,
}

impl Identity {
    /// Who a command would like to be here; `Mapped` still has to be tried.
    pub(crate) fn wanted(root: &Path) -> Self {
        if !rustix::process::geteuid().is_root() {
            return Self::Host;
        }
        match std::fs::metadata(root) {
            Ok(metadata) if metadata.uid() != 0 => Self::Owner { uid: metadata.uid(), gid: metadata.gid() },
            _ => Self::Mapped { uid: AGENT_UID },
        }
    }

    pub(crate) fn become_user(self) -> Option<(u32, u32)> {
        match self {
            Self::Host | Self::BareRoot => None,
            Self::Owner { uid, gid } => Some((uid, gid)),
            Self::Mapped { uid } => Some((uid, uid)),
        }
    }

    pub(crate) fn describe(self) -> String {
        match self {
            Self::Host => "the host's own user".to_owned(),
            Self::Owner { uid, .. } => format!("the workspace's owner (uid {uid})"),
            Self::Mapped { uid } => format!("an unprivileged user (uid {uid}) on a mapped mount"),
            Self::BareRoot => "root without capabilities".to_owned(),
        }
    }
}

/// A user namespace that maps root's files to the agent user, and the folders to mount through it.
pub(crate) struct IdMap {
    namespace: OwnedFd,
    folders: Vec<CString>,
}

impl IdMap {
    /// Makes the namespace with a short-lived helper process that enters it and waits.
    pub(crate) fn new(helper: &Path, uid: u32, folders: &[PathBuf]) -> std::io::Result<Self> {
        let mut child = std::process::Command::new(helper)
            .args([crate::helper::SUBCOMMAND, crate::helper::HOLD_NAMESPACE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let made: std::io::Result<OwnedFd> = (|| {
            let mut ready = [0];
            let stdout = child.stdout.as_mut().ok_or_else(|| std::io::Error::other("no output"))?;
            stdout.read_exact(&mut ready)?;
            let pid = child.id();
            for map in ["uid_map", "gid_map"] {
                let mut file = std::fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/{map}"))?;
                file.write_all(format!("0 {uid} 1\n").as_bytes())?;
            }
            Ok(OwnedFd::from(std::fs::File::open(format!("/proc/{pid}/ns/user"))?))
        })();
        // The namespace lives as long as our handle; the process has done its part.
        let _ = child.kill();
        let _ = child.wait();
        let folders = folders
            .iter()
            .map(|folder| CString::new(folder.as_os_str().as_bytes()).map_err(std::io::Error::other))
            .collect::<std::io::Result<_>>()?;
        Ok(Self { namespace: made?, folders })
    }

    /// Mounts the folders over themselves in a mount namespace of this process's own.
    ///
    /// Async-signal-safe: only system calls on memory prepared before, so that it may run between `fork` and `exec`.
    #[expect(unsafe_code, reason = "mount_setattr and its kin have no safe wrapper in libc or rustix")]
    pub(crate) fn enter(&self) -> std::io::Result<()> {
        #[repr(C)]
        struct MountAttr {
            attr_set: u64,
            attr_clr: u64,
            propagation: u64,
            userns_fd: u64,
        }
        const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
        const OPEN_TREE_CLONE: libc::c_uint = 1;
        const MOVE_MOUNT_F_EMPTY_PATH: libc::c_uint = 4;
        let check = |result: libc::c_long| {
            if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
        };
        let attr = MountAttr {
            attr_set: MOUNT_ATTR_IDMAP,
            attr_clr: 0,
            propagation: 0,
            userns_fd: self.namespace.as_raw_fd() as u64,
        };
        // SAFETY: plain system calls; every pointer is to memory that outlives the call, every size is its own.
        unsafe {
            check(libc::unshare(libc::CLONE_NEWNS).into())?;
            let root = c"/".as_ptr();
            let private = libc::MS_REC | libc::MS_PRIVATE;
            check(libc::mount(std::ptr::null(), root, std::ptr::null(), private, std::ptr::null()).into())?;
            for folder in &self.folders {
                let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC as libc::c_uint;
                let tree = check(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, folder.as_ptr(), flags))?;
                check(libc::syscall(
                    libc::SYS_mount_setattr,
                    tree,
                    c"".as_ptr(),
                    libc::AT_EMPTY_PATH,
                    &raw const attr,
                    size_of::<MountAttr>(),
                ))?;
                check(libc::syscall(
                    libc::SYS_move_mount,
                    tree,
                    c"".as_ptr(),
                    libc::AT_FDCWD,
                    folder.as_ptr(),
                    MOVE_MOUNT_F_EMPTY_PATH,
                ))?;
            }
        }
        Ok(())
    }
}
