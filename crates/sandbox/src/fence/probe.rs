//! Finding out which fence holds here, by building it and running `true` in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

use super::bwrap::Method;
use super::identity::{IdMap, Identity};
use super::{FenceChoice, LANDLOCK_ABI_SIGNALS, landlock_abi};
use crate::cgroup::{Cgroups, NoCgroup};
use crate::git::Held;
use crate::local::Room;
use crate::spawner::Spawner;
use toolhost_contract::workspace::{Access, Command, Error, Fence, Watch};
use toolhost_contract::workspace::{FenceReport, MemoryReport, Probe, Tier};

/// Where distributions put `bwrap`; never looked for on `PATH`, which may name folders others can write.
const BWRAP_PLACES: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
/// How long a trial may take before the machine counts as too busy for it.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a machine that is too busy for a trial is given, before each further trial.
const BUSY_WAITS: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1500)];
/// How long after the last of them no other is tried.
const BUSY_FOR: Duration = Duration::from_secs(2);
/// What is used up, and free again later: processes, memory, handles, space.
const USED_UP: [i32; 6] = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE, libc::ENOSPC, libc::EDQUOT];

/// Why a fence did not hold in its trial.
enum Failed {
    /// This machine cannot have it, so a weaker one is tried.
    Lasting(String),
    /// It lacked processes, memory, handles, space or time: what any command can use up. That never weakens a fence.
    Busy(String),
}

impl Failed {
    fn of(detail: String) -> Self {
        // `bwrap`, the helper and the shell end with the kernel's words for what went wrong.
        let is_said = |number: &i32| {
            let words = std::io::Error::from_raw_os_error(*number).to_string();
            words.split(" (os error").next().is_some_and(|words| detail.contains(words))
        };
        if USED_UP.iter().any(is_said) { Self::Busy(detail) } else { Self::Lasting(detail) }
    }
}

/// What was found once, for all commands of a workspace.
#[derive(Default)]
pub(crate) struct Probed {
    found: OnceCell<(Option<Method>, FenceReport)>,
    /// When the machine was last too busy to tell.
    busy: std::sync::Mutex<Option<(Instant, FenceReport)>>,
}

impl Probed {
    /// Finds it out where it is not known.
    ///
    /// # Errors
    /// The machine is too busy to tell, or was less than [`BUSY_FOR`] ago. Whoever asks later has it tried again.
    pub(crate) async fn get(
        &self,
        spawner: &Spawner,
        room: &Room,
    ) -> Result<&(Option<Method>, FenceReport), FenceReport> {
        let try_now = || async {
            let last = || self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            // Calls that have waited for the same trial do not each try again.
            if let Some((_, report)) = last().as_ref().filter(|(at, _)| at.elapsed() < BUSY_FOR) {
                return Err(report.clone());
            }
            let tried = probe(spawner, room).await;
            // It says nothing of the machine.
            if let Ok((None, report)) = &tried
                && room.is_exchanged()
            {
                return Err(report.clone());
            }
            if let Err(report) = &tried {
                *last() = Some((Instant::now(), report.clone()));
            }
            tried
        };
        self.found.get_or_try_init(try_now).await
    }
}

/// Tries the tiers the operator's choice allows, strongest first.
///
/// # Errors
/// The machine was too busy to tell, also after waiting: the report has no tier, and says why.
async fn probe(spawner: &Spawner, room: &Room) -> Result<(Option<Method>, FenceReport), FenceReport> {
    let mut waits = BUSY_WAITS.into_iter();
    loop {
        let why = match probe_once(spawner, room).await {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        tracing::warn!(why, "the machine is too busy to try a fence");
        let Some(wait) = waits.next() else {
            let memory = watched(room, "commands are refused".to_owned());
            return Err(report(None, memory, vec![format!("the machine is too busy to try a fence: {why}")]));
        };
        tokio::time::sleep(wait).await;
    }
}

async fn probe_once(spawner: &Spawner, room: &Room) -> Result<(Option<Method>, FenceReport), String> {
    let bwrap = bwrap();
    let mut why = Vec::new();
    let choice = room.config.fence;
    let mut method = None;
    if matches!(choice, FenceChoice::Auto | FenceChoice::Full) {
        match &bwrap {
            Some(_) => method = strongest(spawner, room, Tier::Full, bwrap.as_ref(), &mut why).await?,
            None => why.push("full: bwrap is not installed (Debian: apt-get install bubblewrap)".to_owned()),
        }
    }
    if method.is_none() && matches!(choice, FenceChoice::Auto | FenceChoice::Landlock) {
        if landlock_abi() > 0 {
            method = strongest(spawner, room, Tier::Landlock, None, &mut why).await?;
        } else {
            why.push("landlock: the kernel has no Landlock".to_owned());
        }
    }
    if choice == FenceChoice::Off {
        method = Some(Method { tier: Tier::Off, identity: Identity::Host, bwrap: None, id_map: None, cgroups: None });
        why.push("the operator turned the fence off".to_owned());
    }
    let memory = hold_memory(spawner, room, &mut method).await?;
    let report = report(method.as_ref(), memory, why);
    Ok((method, report))
}

fn bwrap() -> Option<PathBuf> {
    BWRAP_PLACES.iter().map(PathBuf::from).find(|path| path.exists())
}

fn report(method: Option<&Method>, memory: MemoryReport, why: Vec<String>) -> FenceReport {
    let probe = Probe {
        kernel: kernel_release(),
        landlock_abi: landlock_abi(),
        bwrap: bwrap(),
        runs_as: method.map_or_else(|| "nobody: commands are refused".to_owned(), |m| m.identity.describe()),
    };
    FenceReport { tier: method.map(|m| m.tier), probe, memory, holes: method.map(holes).unwrap_or_default(), why }
}

/// No cgroup holds the memory of commands.
fn watched(room: &Room, why: String) -> MemoryReport {
    MemoryReport { limit_bytes: room.config.limits.memory_bytes, cgroup: None, why: Some(why) }
}

/// Lets the kernel hold the memory of commands, if it will.
async fn hold_memory(spawner: &Spawner, room: &Room, method: &mut Option<Method>) -> Result<MemoryReport, String> {
    let limit_bytes = room.config.limits.memory_bytes;
    let Some(method) = method else { return Ok(watched(room, "commands are refused".to_owned())) };
    match in_cgroups(spawner, room, method).await? {
        Ok((held, cgroup)) => {
            *method = held;
            Ok(MemoryReport { limit_bytes, cgroup: Some(cgroup), why: None })
        }
        Err(none) => {
            if let NoCgroup::Unusable(why) = &none {
                tracing::warn!(why, "the memory of commands is watched and not held by a cgroup");
            }
            Ok(watched(room, none.why()))
        }
    }
}

/// The same method with a cgroup for each command, tried once.
async fn in_cgroups(
    spawner: &Spawner,
    room: &Room,
    method: &Method,
) -> Result<Result<(Method, PathBuf), NoCgroup>, String> {
    let named = room.config.command_cgroup.clone();
    let opened = tokio::task::spawn_blocking(move || Cgroups::open(named.as_deref())).await;
    let cgroups = match opened.unwrap_or_else(|error| Err(NoCgroup::Unusable(error.to_string()))) {
        Ok(cgroups) => cgroups,
        Err(none) => return Ok(Err(none)),
    };
    let folder = cgroups.folder().to_owned();
    let held = Method { cgroups: Some(Arc::new(cgroups)), ..method.clone() };
    match trial(spawner, room, &held).await {
        Ok(()) => Ok(Ok((held, folder))),
        Err(Failed::Busy(why)) => Err(why),
        Err(Failed::Lasting(why)) => {
            Ok(Err(NoCgroup::Unusable(format!("{}: no command can be started in it: {why}", folder.display()))))
        }
    }
}

/// The best user for a tier: the one wanted, else root without capabilities.
///
/// # Errors
/// The machine was too busy for a trial.
async fn strongest(
    spawner: &Spawner,
    room: &Room,
    tier: Tier,
    bwrap: Option<&PathBuf>,
    why: &mut Vec<String>,
) -> Result<Option<Method>, String> {
    let wanted = Identity::wanted(&room.root);
    let mut candidates = vec![wanted];
    if matches!(wanted, Identity::Mapped { .. }) {
        candidates.push(Identity::BareRoot);
    }
    for identity in candidates {
        let trial = async {
            let id_map = id_map(room, identity)?;
            let method = Method { tier, identity, bwrap: bwrap.cloned(), id_map, cgroups: None };
            trial(spawner, room, &method).await?;
            Ok::<_, Failed>(method)
        };
        let said = |reason| format!("{} as {}: {reason}", tier.as_str(), identity.describe());
        match trial.await {
            Ok(method) => return Ok(Some(method)),
            Err(Failed::Busy(reason)) => return Err(said(reason)),
            Err(Failed::Lasting(reason)) => why.push(said(reason)),
        }
    }
    Ok(None)
}

fn id_map(room: &Room, identity: Identity) -> Result<Option<Arc<IdMap>>, Failed> {
    let Identity::Mapped { uid } = identity else { return Ok(None) };
    let map = IdMap::new(&room.config.helper, uid, &room.mapped_folders());
    map.map(|map| Some(Arc::new(map))).map_err(|error| Failed::of(format!("no mapped mount: {error}")))
}

async fn trial(spawner: &Spawner, room: &Room, method: &Method) -> Result<(), Failed> {
    // By its absolute path: a user who may not pass the folders above the workspace is of no use in it.
    let root = room.root.to_string_lossy();
    let command = Command::new(["sh", "-c", "cd -- \"$1\" && exec ls >/dev/null", "sh", &root], TRIAL_TIMEOUT);
    let fence = Fence::closed(Access::Read);
    match crate::running::run_in(spawner, room, method, command.into(), &fence, Watch::unattended(), &Held::default())
        .await
    {
        Ok(result) if result.exit_code == 0 => Ok(()),
        Ok(result) if result.timed_out => {
            Err(Failed::Busy(format!("the trial took more than {} s", TRIAL_TIMEOUT.as_secs())))
        }
        Ok(result) => {
            let detail = format!("the trial ended with {}: {}", result.exit_code, result.stderr.text.trim());
            // Something has ended it, such as a kernel that is short of memory.
            Err(if result.signal.is_some() { Failed::Busy(detail) } else { Failed::of(detail) })
        }
        Err(Error::FenceBuild { detail }) => Err(Failed::of(detail)),
        Err(error) => Err(Failed::of(error.to_string())),
    }
}

/// What the Landlock tier does not hold, beside what no tier does.
const HOLES_OF_LANDLOCK: &[&str] = &[
    "modes and times of outside files that the command's user owns can be changed",
    "git: a command can change hooks and configuration in .git, and add a repository of its own to the index, which your `git status` enters, until it ends, or until the next host starts if this one was killed; then they are put back. Install bubblewrap to prevent it",
    "a command whose host and supervisor are killed together (`pkill -9 toolhost`) runs on, in its fence but without a limit of time, until a host of yours starts or, being open, looks a second later; where other commands run in the workspace, until those have ended. Install bubblewrap to prevent it",
    "git: a repository that a command makes in a subfolder and commits, or that a branch, tag or stash of its making names, stays in its folder: the call fails and names it, and commands are refused. Remove the folder, or its .git, before you bring that commit into your files (reset --hard, restore --staged, checkout, merge, stash pop)",
    "git: a command can commit and move branches, and that stays; rules about git.commit do not stop it. The answer and the audit say which branches moved, and which lock files it left, which you remove (`rm .git/index.lock`); install bubblewrap, or take `bash` from the profile, to prevent it",
    "git: a command can leave a rebase, a merge or the like half done, and that stays: what `--continue` and `--abort` bring back, and the programs that a rebase runs, are the command's choice. The answer and the audit name a rebase; end what you did not begin with `git rebase --quit`, `git cherry-pick --quit` or `git am --quit`, which change no file",
    "git: two hosts of yours with another HOME or XDG_DATA_HOME on one workspace do not know of each other, and one may put back what a command of the other planted; start them with the same",
    "git: a repository, worktree or submodule that you make, replace or add while a command runs is taken out of git's sight when it ends: it is in the workspace as `toolhost-planted-...`, move it back; one that you exchange for another and back keeps what the command wrote into it. Do that while no command runs",
    "git: a .git, its objects or its references that a command removes are gone; commands are then refused until you say `toolhost doctor --accept-git`",
    "modes and times of files in a read-only workspace that the command's user owns can be changed",
    "git: what a command puts into the index stays, also in ways that `git status` does not show: `git restore .`, `git checkout .` or `git stash pop --index` writes it, also over tracked hooks, and your next commit may have it. Look at `git diff --cached` before and at `git show --stat` after, `git read-tree HEAD` makes the index anew; or install bubblewrap",
    "git: a command can rewrite objects of the repository in place, and git writes what they say now when you switch branches, also into tracked hooks: `git fsck` finds them. The modes of .git's other files, and what it adds as rr-cache, shallow or packed-refs, stay too; install bubblewrap",
    "System V shared memory, semaphores and queues and POSIX queues are refused, because they would stay: a PostgreSQL server cannot be started by a command; install bubblewrap for that",
    "files in $TMPDIR of a command without a session, such as one of `toolhost call`, have no limit together",
    "command lines of other processes can be read in /proc",
    "names and sizes of outside files can be seen, though not their contents",
    "no host can be granted, and there is no loopback: commands have no network at all, and tests with a server fail",
];

fn holes(method: &Method) -> Vec<String> {
    let mut holes =
        vec![
        "a hard link that already leads from the workspace to an outside file can be written through; `find -links +1 -type f` lists them"
            .to_owned(),
    ];
    if method.tier != Tier::Off {
        holes.extend(
            [
                "commands read secrets that are in the workspace and rewrite its scripts and build files, which you may run later outside the fence; keep secrets elsewhere, and read the diff first",
                "a set-user-id or set-group-id program that is already in the workspace can be rewritten by a command, through a shared mapping, and keeps its bit; `find . -perm /6000 -type f` lists them: take the bit off (`chmod ug-s`), or keep them elsewhere",
                "a new folder inherits the set-group-id bit of the folder around it; take it off the workspace with `chmod g-s`",
                "git: repositories in the workspace that are neither its own, nor its submodules and worktrees, nor around it (clones side by side, bare ones, those that a command makes) may run a command's programs: if you use git there; if you `git add` their folder, or `add -u` or `commit -a` where one took the place of a tracked file (with diff.submodule=diff a plain `git diff` is enough); or if a checkout or a fetch brings a submodule in their place that neither a branch, tag or stash here has nor your settings name. The same holds for objects that your .git borrows from a folder in the workspace (`objects/info/alternates`). Open each of your repositories as a workspace of its own, and look before you do; `git config fetch.recurseSubmodules no` keeps fetches out, `git config --global safe.bareRepository explicit` helps against bare ones",
                "git: a FIFO that a command leaves under a name that git reads, such as .gitignore, makes your git wait for it: `find . -type p` shows them",
                "git: while a command runs, your own git must not change files (switch, merge, pull, stash pop, checkout): the command can put a link to .git in a folder's place, and what git writes there stays, settings among it; so does what it adds to a hook or settings file in the workspace that your git or your editor replaces then (the call fails and names the file), and a worktree or submodule that you add; do that while no command runs",
                "git: what your settings begin to name in the workspace while a command runs (core.hooksPath, include.path, yours in ~/.gitconfig among them) the command can write until it ends. The call fails then and names it, and commands are refused until you have looked and say `toolhost doctor --accept-git`: do that while no command runs",
                "git: programs in the workspace that your own hooks and configuration start (filters, aliases, fsmonitor), and build files that you run; keep them elsewhere, or read the diff first",
                "git: where your hooks or configuration are reached through a link in the workspace, a command can exchange that link until it ends; then it is put back. Use no links there",
                "git: where a file stands on the way to a submodule, hooks or settings that your git names and that are not there, a command can replace the file by that folder until it ends (or, if the host is killed, until the next one starts); then the file is put back. Check the submodule out, or take the file away",
            ]
            .map(str::to_owned),
        );
    }
    match method.tier {
        Tier::Full => holes.push(
            "git: a .git, or a folder of hooks or settings, that you replace or move while a command runs can be written by the command, and your git there may run what it wrote, until you put it right. The call fails, also where you moved it away and back, and commands are refused until you have looked and say `toolhost doctor --accept-git`: do that while no command runs"
                .to_owned(),
        ),
        Tier::Landlock => holes.extend(HOLES_OF_LANDLOCK.iter().copied().map(str::to_owned)),
        Tier::Off => holes.push("everything: commands run with the host's rights".to_owned()),
    }
    if method.tier == Tier::Landlock && landlock_abi() < LANDLOCK_ABI_SIGNALS {
        holes.push(
            "this kernel lets a command send signals to other processes of its user, its supervisor among them"
                .to_owned(),
        );
    }
    if method.identity == Identity::BareRoot {
        holes.push(
            "commands run as root without capabilities: root's own files are theirs where nothing else stops them; run the host as an ordinary user"
                .to_owned(),
        );
    }
    if matches!(method.identity, Identity::Mapped { .. }) {
        holes.push(
            "to the kernel the commands in all of root's workspaces on this machine are one user: so many processes in one leave none for the others, whose commands are then refused; run hosts that must not disturb each other in containers of their own"
                .to_owned(),
        );
    }
    let counted = method.cgroups.as_ref().is_some_and(|cgroups| cgroups.limits_processes());
    if !counted && !matches!(method.identity, Identity::Mapped { .. }) {
        holes.push(
            "the kernel counts a command's processes together with the user's others: the command may have as many as `processes` allows (1,024) beside those that run when it begins; for a limit of its own, give the host a cgroup"
                .to_owned(),
        );
    }
    if method.cgroups.is_none() {
        holes.push(
        "memory: data that waits in sockets, and in pipes where the host is an ordinary user without bwrap, is not counted, but a command is ended when the machine itself runs short. A file without a name (memfd) is not counted while it is in no process's hands but on its way through a socket, nor one of a process that hides from a host that is not root (PR_SET_DUMPABLE); the kernel counts these, too, in a cgroup of the host's own: `systemd-run --user --scope -p Delegate=yes toolhost mcp`"
            .to_owned(),
    );
    }
    holes
}

fn kernel_release() -> String {
    let release = std::fs::read_to_string(Path::new("/proc/sys/kernel/osrelease"));
    release.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}
