//! The command line that builds a fence: `bwrap` around the helper, or the helper alone.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::identity::{IdMap, Identity};
use super::policy::{Mounted, NetworkMode, Policy, ResourceLimits};
use crate::cgroup::Cgroups;
use crate::git::Held;
use crate::helper;
use crate::job::Job;
use crate::local::{LocalConfig, Room};
use crate::mark::Mark;
use crate::proxy;
use crate::remover::Scratch;
use crate::session_folders::{Entered, Place};
use toolhost_contract::workspace::{Access, Command, Error, Fence, Result, Tier};

/// Where the helper appears inside the full fence.
const HELPER_INSIDE: &str = "/run/toolhost-exec";
/// Files of shared memory that have names, in a private folder with a size of its own.
const SHM: &str = "/dev/shm";
/// How the names of private temporary folders begin in the Landlock tier.
pub(crate) const TEMP_PREFIX: &str = "toolhost-run-";
/// Parts of `/etc` that programs need to find libraries, users, certificates and time zones. Nothing secret.
const ETC: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "debian_version",
    "fonts",
    "group",
    "hosts",
    "inputrc",
    "java-17-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "manpath.config",
    "maven",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki",
    "profile",
    "protocols",
    "python3",
    "services",
    "ssl",
    "terminfo",
    "timezone",
    "xdg",
];
/// What commands may read besides the workspace, the toolchains and parts of `/etc`.
const SYSTEM_READABLE: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/proc"];

/// Everything needed to start one command.
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: PathBuf,
    pub(crate) id_map: Option<Arc<IdMap>>,
    /// Whether the supervisor asks before it kills.
    pub(crate) ends_in_order: bool,
    /// Handed to the supervisor, who holds it until the last process has ended.
    pub(crate) lock: Option<OwnedFd>,
    /// Where it enters its cgroup, before anything else.
    pub(crate) cgroup: Option<OwnedFd>,
    /// Private folders that are kept in memory.
    pub(crate) in_memory: Vec<PathBuf>,
    /// Standard input, where it is a file.
    pub(crate) stdin: Option<std::fs::File>,
    /// Who may open its standard streams anew by a name such as `/dev/stderr`, where that is not who starts it.
    pub(crate) streams_of: Option<(u32, u32)>,
    /// The mark of the command's processes, where only the supervisor ends them.
    pub(crate) mark: Option<Mark>,
    /// Removed, with what the command left there, when the plan is dropped.
    pub(crate) temp: Option<Scratch>,
    /// The folders of the command's session, in place of such a one.
    pub(crate) session: Option<Arc<Entered>>,
}

impl Plan {
    /// Whether a private folder on the disk goes with it.
    pub(crate) fn has_folder(&self) -> bool {
        self.temp.is_some() || self.session.is_some()
    }
}

/// How commands are fenced on this machine; found by the probe.
#[derive(Clone)]
pub(crate) struct Method {
    pub(crate) tier: Tier,
    pub(crate) identity: Identity,
    pub(crate) bwrap: Option<PathBuf>,
    pub(crate) id_map: Option<Arc<IdMap>>,
    /// Each command gets a cgroup of its own there.
    pub(crate) cgroups: Option<Arc<Cgroups>>,
}

pub(crate) fn plan(
    method: &Method,
    room: &Room,
    command: &Job,
    fence: &Fence,
    proxy: Option<&Path>,
    held: &Held,
) -> Result<Plan> {
    match (method.tier, &method.bwrap) {
        (Tier::Full, Some(bwrap)) => full(method, bwrap, room, command, fence, proxy, held),
        _ => bare_helper(method, room, command, fence, held),
    }
}

fn full(
    method: &Method,
    bwrap: &Path,
    room: &Room,
    command: &Job,
    fence: &Fence,
    proxy: Option<&Path>,
    held: &Held,
) -> Result<Plan> {
    let config = &room.config;
    let mut args = Args(Vec::new());
    if method.identity.become_user().is_some() {
        // Real root mounts, and the helper becomes somebody else: it needs just these two, for a moment.
        args.add(["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]);
    } else {
        args.add(["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]);
    }
    args.add(["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    // The helper is the namespace's first process, with which all others end, and it watches the host. With
    // `--die-with-parent` instead, `bwrap` says so too late: a host that ends meanwhile leaves the command running.
    args.add(["--as-pid-1"]);
    system_view(&mut args, config, command);
    args.parents_of(Path::new(HELPER_INSIDE));
    args.bind("--ro-bind", &config.helper, Path::new(HELPER_INSIDE));
    if let Some(socket) = proxy {
        args.bind("--ro-bind", socket, Path::new(proxy::SOCKET_INSIDE));
    }
    let mounted = workspace_view(&mut args, room, fence.workspace, command, held);
    // With real root mounting, `/proc/sys` would be writable to a process that kept uid 0.
    args.add(["--remount-ro", "/proc"]);
    // Its devices can be written all the same, and so can what is mounted in it; new files in it would have no limit.
    args.add(["--remount-ro", "/dev"]);
    // Not to the command's folder: another user's may be closed to root without its capabilities.
    args.add(["--chdir", "/", "--", HELPER_INSIDE]);

    let mut readable = system_readable(config);
    // Where a command could put a link, a rule would be about what that leads to.
    readable.retain(|path| !matches!(place_of(command, path), Place::NotMade));
    readable.extend(["/run", "/dev"].map(PathBuf::from));
    readable.extend(room.readable_folders(command));
    let mut writable = vec![PathBuf::from("/tmp"), PathBuf::from("/dev"), config.home.clone()];
    if fence.workspace == Access::Write {
        writable.extend(room.writable_folders(command));
    }
    let network = match proxy {
        Some(_) => NetworkMode::Proxy,
        None if fence.loopback && !command.is_git => NetworkMode::Loopback,
        None => NetworkMode::None,
    };
    let policy = Policy {
        become_user: method.identity.become_user(),
        // `bwrap` has dropped them already.
        drop_capabilities: false,
        enforce: true,
        ends_in_order: command.ends_in_order,
        cwd: Some(room.path_of(&command.cwd)),
        readable,
        writable,
        readable_plain: Vec::new(),
        mounted,
        opened: Vec::new(),
        network,
        private_ipc: true,
        limits: limits(method, config, command),
    };
    args.0.extend(orders(&policy, command)?);
    let env = environment(config, command, ("/tmp", &config.home), network);
    Ok(Plan {
        program: bwrap.to_owned(),
        args: args.0,
        env,
        cwd: PathBuf::from("/"),
        id_map: method.id_map.clone(),
        ends_in_order: command.ends_in_order,
        lock: lock_of(held)?,
        cgroup: None,
        stdin: None,
        streams_of: method.identity.become_user(),
        in_memory: match &command.folders {
            Some(_) => vec![PathBuf::from(SHM)],
            None => private_folders(config).chain([PathBuf::from(SHM)]).collect(),
        },
        mark: None,
        temp: None,
        session: command.folders.clone(),
    })
}

/// The lock that a supervisor holds while anything of its command runs.
fn lock_of(held: &Held) -> Result<Option<OwnedFd>> {
    let io = |source| Error::Io { path: "the guard's lock".to_owned(), source };
    held.lock.as_ref().map(OwnedFd::try_clone).transpose().map_err(io)
}

/// The Landlock tier, and no fence at all where the operator said so: nothing but the helper ends the tree.
fn bare_helper(method: &Method, room: &Room, command: &Job, fence: &Fence, held: &Held) -> Result<Plan> {
    let config = &room.config;
    let enforce = method.tier == Tier::Landlock;
    if enforce && !fence.network.is_empty() {
        return Err(Error::NoFence {
            why: "the profile grants network hosts, and only the full fence can hold commands to them".to_owned(),
        });
    }
    let io = |source| Error::Io { path: "a private temporary folder".to_owned(), source };
    let (temp, tmp, home) = match &command.folders {
        Some(folders) => (None, folders.tmp(), folders.home()),
        None => {
            let temp = Scratch::new(&config.temp, TEMP_PREFIX).map_err(io)?;
            let tmp = temp.path();
            if let Some((uid, gid)) = method.identity.become_user() {
                std::os::unix::fs::chown(&tmp, Some(uid), Some(gid)).map_err(io)?;
            }
            std::fs::set_permissions(&tmp, std::fs::Permissions::from_mode(0o700)).map_err(io)?;
            (Some(temp), tmp.clone(), tmp)
        }
    };

    let mut readable = system_readable(config);
    readable.extend(room.readable_folders(command));
    readable.extend(command.also_reads.iter().cloned());
    // Not all of `/dev`: the operator's terminal is in it.
    readable.extend(["/dev/random", "/dev/urandom"].map(PathBuf::from));
    let mut writable = vec![tmp.clone(), home.clone()];
    writable.extend(["/dev/null", "/dev/zero", "/dev/full"].map(PathBuf::from));
    if fence.workspace == Access::Write {
        writable.extend(room.writable_folders(command));
    }
    let of_workspace = if held.is_leased() { room.mark } else { room.mark.of_harmless() };
    let mark = enforce.then(|| of_workspace.of_command());
    let policy = Policy {
        become_user: method.identity.become_user(),
        drop_capabilities: method.identity == Identity::BareRoot,
        enforce,
        ends_in_order: command.ends_in_order,
        cwd: None,
        readable,
        writable,
        readable_plain: Vec::new(),
        mounted: Vec::new(),
        opened: room.opened().to_vec(),
        network: NetworkMode::None,
        private_ipc: false,
        limits: ResourceLimits { mark: mark.map(Mark::value), ..limits(method, config, command) },
    };
    let home = if enforce { home } else { config.home.clone() };
    let env = environment(config, command, (&tmp.to_string_lossy(), &home), NetworkMode::None);
    Ok(Plan {
        program: config.helper.clone(),
        args: orders(&policy, command)?,
        env,
        cwd: room.path_of(&command.cwd),
        id_map: method.id_map.clone(),
        ends_in_order: command.ends_in_order,
        lock: lock_of(held)?,
        cgroup: None,
        stdin: None,
        streams_of: method.identity.become_user(),
        in_memory: Vec::new(),
        mark,
        temp,
        session: command.folders.clone(),
    })
}

pub(super) fn system_readable(config: &LocalConfig) -> Vec<PathBuf> {
    let system = SYSTEM_READABLE.iter().map(PathBuf::from);
    let etc = ETC.iter().map(|name| Path::new("/etc").join(name));
    system.chain(etc).chain(config.toolchains.iter().cloned()).collect()
}

/// Folders of the full tier that are each of `tmp_bytes` and hold nothing at first.
fn private_folders(config: &LocalConfig) -> impl Iterator<Item = PathBuf> + use<> {
    [PathBuf::from("/tmp"), config.home.clone()].into_iter()
}

/// Where a mount of this path begins for a command.
fn place_of(command: &Job, path: &Path) -> Place {
    command.folders.as_ref().map_or(Place::Elsewhere, |folders| folders.place_of(path))
}

/// The file system without the user's files: system folders read-only, private `/tmp` and home.
fn system_view(args: &mut Args, config: &LocalConfig, command: &Job) {
    args.add(["--ro-bind", "/usr", "/usr"]);
    for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
        let path = Path::new("/").join(name);
        match std::fs::read_link(&path) {
            Ok(target) => args.bind("--symlink", &target, &path),
            Err(_) => args.bind("--ro-bind-try", &path, &path),
        }
    }
    // One mount instead of twenty, each of which costs a tenth of a millisecond; Landlock narrows it to `ETC`.
    args.add(["--ro-bind", "/etc", "/etc"]);
    args.add(["--proc", "/proc", "--dev", "/dev"]);
    private_view(args, config, command);
    let size = config.limits.shm_bytes.to_string();
    args.add(["--perms", "1777", "--size", &size, "--tmpfs", SHM]);
    for path in ["/opt", "/nix/store"] {
        args.add(["--ro-bind-try", path, path]);
    }
    if !command.toolchains {
        return;
    }
    for path in &config.toolchains {
        match place_of(command, path) {
            Place::Elsewhere if command.folders.is_none() || path.exists() => {
                args.parents_of(path);
                args.bind("--ro-bind-try", path, path);
            }
            // One that has gone stays a mount, or a command could put a link there for the next one.
            Place::Made(own) => args.bind("--ro-bind", if path.exists() { path } else { &own }, path),
            Place::Elsewhere | Place::NotMade => {}
        }
    }
}

/// The private `/tmp` and home: those of the session, or empty ones.
fn private_view(args: &mut Args, config: &LocalConfig, command: &Job) {
    if let Some(folders) = &command.folders {
        // Above the workspace there is nothing of the person's, and what a command wrote there would be nowhere. Programs keep what they
        // have beside toolchains.
        let pin = |args: &mut Args, (real, seen): (PathBuf, PathBuf)| {
            let is_above_tools = config.toolchains.iter().any(|path| path.starts_with(&seen));
            args.bind(if is_above_tools { "--bind" } else { "--ro-bind" }, &real, &seen);
        };
        let (of_home, of_tmp): (Vec<_>, Vec<_>) =
            folders.pinned().partition(|(_, seen)| seen.starts_with(&config.home));
        args.bind("--bind", &folders.tmp(), Path::new("/tmp"));
        // Those above a home below `/tmp` first: they would hide it.
        of_tmp.into_iter().for_each(|pinned| pin(args, pinned));
        args.parents_of(&config.home);
        args.bind("--bind", &folders.home(), &config.home);
        of_home.into_iter().for_each(|pinned| pin(args, pinned));
        return;
    }
    let size = config.limits.tmp_bytes.to_string();
    for folder in private_folders(config) {
        args.add(["--perms", "1777", "--size", &size, "--tmpfs"]);
        args.add([folder]);
    }
}

/// The workspace, and read-only in it what a command may use but not change. Answers the mounts inside it.
fn workspace_view(args: &mut Args, room: &Room, access: Access, command: &Job, held: &Held) -> Vec<Mounted> {
    for folder in room.readable_folders(command) {
        let writable = access == Access::Write && (folder == room.root || command.is_git);
        args.parents_of(&folder);
        args.bind(if writable { "--bind" } else { "--ro-bind" }, &folder, &folder);
    }
    let mut mounted = room.opened().to_vec();
    let private = command.folders.iter().flat_map(|folders| folders.mounted());
    let private = private.map(|(path, device, inode)| Mounted { path, device, inode });
    // Where the workspace is not mounted over it.
    let is_seen = |path: &Path| !room.readable_folders(command).iter().any(|folder| path.starts_with(folder));
    mounted.extend(private.filter(|private| is_seen(&private.path)));
    for mount in &held.mounts {
        // Those of a repository outside are read-only as a whole already.
        if access == Access::Read || !(mount.at.path.starts_with(&room.root) || command.is_git) {
            continue;
        }
        args.bind(if mount.writable { "--bind" } else { "--ro-bind" }, &mount.at.path, &mount.at.path);
        mounted.push(mount.at.clone());
    }
    mounted
}

pub(super) fn limits(method: &Method, config: &LocalConfig, command: &Command) -> ResourceLimits {
    let own_user = matches!(method.identity, Identity::Mapped { .. });
    ResourceLimits {
        // Every core may be busy for the whole time, and a little more.
        cpu_seconds: command.timeout.as_secs().saturating_mul(2).max(1).saturating_add(1),
        file_bytes: config.limits.file_bytes,
        open_files: config.limits.open_files,
        memory_bytes: method.cgroups.is_none().then_some(config.limits.memory_bytes),
        processes: if own_user {
            Some(config.limits.processes)
        } else {
            // The kernel counts the user's other processes, too.
            let counted = method.cgroups.as_ref().is_some_and(|cgroups| cgroups.limits_processes());
            (!counted).then(|| processes_of_user().saturating_add(config.limits.processes))
        },
        mark: None,
    }
}

/// How many processes and threads this user has now, as far as they can be seen.
fn processes_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::getuid().as_raw();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let threads = |process: std::fs::DirEntry| {
        process.file_name().to_str()?.parse::<u32>().ok()?;
        let threads = process.path().join("task").metadata().ok().filter(|tasks| tasks.uid() == user)?;
        // A folder for each, and its own two links.
        Some(threads.nlink().saturating_sub(2))
    };
    processes.filter_map(threads).sum()
}

pub(super) fn orders(policy: &Policy, command: &Command) -> Result<Vec<OsString>> {
    helper::arguments(policy, &command.argv).map_err(|error| Error::FenceBuild { detail: error.to_string() })
}

/// The whole environment of a command: nothing of the host's but what is named here.
fn environment(
    config: &LocalConfig,
    command: &Job,
    (tmp, home): (&str, &Path),
    network: NetworkMode,
) -> Vec<(String, String)> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut env = vec![
        pair("PATH", &config.path),
        pair("HOME", &home.to_string_lossy()),
        pair("TMPDIR", tmp),
        pair("LANG", "C.UTF-8"),
        pair("TERM", "dumb"),
        pair("NO_COLOR", "1"),
        pair("PAGER", "cat"),
        pair("CI", "1"),
        pair("USER", "agent"),
        pair("SHELL", "/bin/bash"),
        // The machine's is not among what a command may read, and git takes that for a failure.
        pair("GIT_CONFIG_NOSYSTEM", "1"),
    ];
    if network == NetworkMode::Proxy {
        let url = format!("http://127.0.0.1:{}", proxy::PORT_INSIDE);
        env.extend(
            ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].map(|n| pair(n, &url)),
        );
    } else {
        env.push(pair("CARGO_NET_OFFLINE", "true"));
    }
    env.extend(config.env.iter().cloned());
    env.extend(command.env.iter().cloned());
    env
}

struct Args(Vec<OsString>);

impl Args {
    fn add(&mut self, args: impl IntoIterator<Item = impl Into<OsString>>) {
        self.0.extend(args.into_iter().map(Into::into));
    }

    /// Makes the folders above a mount point passable. Left to itself `bwrap` copies their modes from outside, and a
    /// command that is not their owner could not reach the workspace below a private home.
    fn parents_of(&mut self, path: &Path) {
        let mut parents: Vec<&Path> = path.ancestors().skip(1).filter(|p| p.parent().is_some()).collect();
        parents.reverse();
        for parent in parents {
            self.add([OsString::from("--dir"), parent.into()]);
        }
    }

    fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        self.add([OsString::from(how), from.into(), to.into()]);
    }
}
