//! One long-lived thread that starts every command.
//!
//! `--die-with-parent` and parent-death signals fire when the *thread* that started a process ends, and a runtime's
//! threads come and go. This one lives as long as the executor, so a command dies with the host and not before.

use std::ffi::CString;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc;

use rustix::fs::{Mode, OFlags};
use tokio::process::Child;
use tokio::sync::oneshot;

use crate::fence::{Ending, HOST_FD, LOCK_FD, Plan, READY_FD};

/// Where the kernel is told whom to end first when the machine has no memory left: not the host, nor other programs, as long
/// as a command runs.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
const OOM_SCORE_OF_COMMANDS: &[u8] = b"1000";

/// The greatest number under which a helper is handed a descriptor.
const HANDED_DOWN_MAX: i32 = HOST_FD;

pub(crate) struct Spawner {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    plan: Arc<Plan>,
    runtime: tokio::runtime::Handle,
    answer: oneshot::Sender<std::io::Result<Started>>,
}

/// A started process and the pipe on which its helper says that the fence stands.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) ready: PipeReader,
    ending: Ending,
    /// What the supervisor of a command that ends in order watches: a byte asks it to end, the close says that this host
    /// has died.
    host: Option<PipeWriter>,
}

impl Started {
    /// Asks a supervisor to end its tree, or kills a pid namespace; `false` if that cannot be done, or it has ended already.
    pub(crate) fn ask_to_end(&mut self) -> bool {
        match self.ending {
            Ending::Killed => self.end_namespace(),
            Ending::Signal => self.signal_supervisor(),
            Ending::Pipe => self.write_to_supervisor(),
        }
    }

    fn write_to_supervisor(&mut self) -> bool {
        use std::io::Write;
        self.host.take().is_some_and(|mut host| host.write_all(&[1]).is_ok())
    }

    fn signal_supervisor(&self) -> bool {
        self.pid().is_some_and(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok())
    }

    /// Ends a `bwrap` with what it has started. Its child waits for it before anything would end the child with it: killed
    /// alone at that moment, it would leave a process that waits for good. They are one process group until then.
    pub(crate) fn end_group(&self) {
        if let Some(pid) = self.pid() {
            // Already gone is as good.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }

    /// None once its end was seen: then the number may be another's.
    fn pid(&self) -> Option<rustix::process::Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
    }
}

impl Started {
    /// Ends the first process of a `bwrap`'s pid namespace; `false` if it cannot be told.
    ///
    /// Killing `bwrap` itself ends the namespace too, but nobody would wait for that: with two hundred processes in it
    /// some were seen running after the answer. `bwrap` ends when the last of them has.
    pub(crate) fn end_namespace(&self) -> bool {
        let Some(pid) = self.child.id() else { return false };
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let first = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
        let first = first.and_then(rustix::process::Pid::from_raw);
        first.is_some_and(|first| rustix::process::kill_process(first, rustix::process::Signal::KILL).is_ok())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Here and not where it is awaited: whoever asked may be gone before the answer arrives. `kill_on_drop` sees the
        // end of what has no supervisor.
        match self.ending {
            Ending::Killed => self.end_group(),
            Ending::Signal => {
                self.signal_supervisor();
            }
            Ending::Pipe => {
                self.write_to_supervisor();
            }
        }
    }
}

impl Spawner {
    pub(crate) fn start() -> std::io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        std::thread::Builder::new().name("toolhost-spawner".to_owned()).spawn(move || {
            // Ends when the executor, and with it the sender, is dropped.
            for job in inbox {
                let _context = job.runtime.enter();
                // If nobody waits any more, dropping the child ends it.
                let _ = job.answer.send(spawn(&job.plan));
            }
        })?;
        Ok(Self { jobs })
    }

    pub(crate) async fn spawn(&self, plan: Arc<Plan>) -> std::io::Result<Started> {
        let gone = || std::io::Error::other("the spawner thread has ended");
        let (answer, answered) = oneshot::channel();
        let job = Job { plan, runtime: tokio::runtime::Handle::current(), answer };
        self.jobs.send(job).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

fn spawn(plan: &Plan) -> std::io::Result<Started> {
    let (ready, ready_writer) = std::io::pipe()?;
    let mut command = std::process::Command::new(&plan.program);
    command
        .args(&plan.args)
        .env_clear()
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
        .stdin(plan.stdin.as_ref().map_or_else(|| Ok(Stdio::piped()), |file| file.try_clone().map(Stdio::from))?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let cwd = CString::new(plan.cwd.as_os_str().as_bytes()).map_err(std::io::Error::other)?;
    let (watched, host) = if plan.ends_in_order {
        let (watched, host) = std::io::pipe()?;
        // Above all numbers that are handed down, so that none of them overwrites it.
        (Some(rustix::io::fcntl_dupfd_cloexec(&watched, HANDED_DOWN_MAX + 1)?), Some(host))
    } else {
        (None, None)
    };
    before_exec(&mut command, plan, cwd, OwnedFd::from(ready_writer), watched)?;
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(plan.ending == Ending::Killed);
    let child = command.spawn()?;
    Ok(Started { child, ready, ending: plan.ending, host })
}

/// What happens in the child between `fork` and `exec`: system calls only, on memory prepared before.
fn before_exec(
    command: &mut std::process::Command,
    plan: &Plan,
    cwd: CString,
    ready: OwnedFd,
    watched: Option<OwnedFd>,
) -> std::io::Result<()> {
    let id_map = plan.id_map.clone();
    let lock = plan.lock.as_ref().and_then(|lock| lock.try_clone().ok());
    let cgroup = plan.cgroup.as_ref().map(OwnedFd::try_clone).transpose()?;
    let prepare = move || {
        // First of all, so that nothing of it is counted elsewhere.
        if let Some(cgroup) = &cgroup {
            rustix::io::write(cgroup, b"0")?;
        }
        // Everybody may raise his own, but a system without this file runs commands, too.
        if let Ok(score) = rustix::fs::open(OOM_SCORE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            rustix::io::write(score, OOM_SCORE_OF_COMMANDS)?;
        }
        rustix::process::setsid()?;
        if let Some(id_map) = &id_map {
            id_map.enter()?;
        }
        // After the mounts: entered before, the folder would be the one without mapped ids.
        rustix::process::chdir(cwd.as_c_str())?;
        // The lock first: its own number could be the one that the pipe gets.
        if let Some(lock) = &lock {
            hand_down(lock, LOCK_FD)?;
        }
        hand_down(&ready, READY_FD)?;
        match &watched {
            Some(watched) => hand_down(watched, HOST_FD),
            None => Ok(()),
        }
    };
    #[expect(unsafe_code, reason = "pre_exec runs in a forked child of a threaded program")]
    // SAFETY: `prepare` allocates nothing and takes no lock: setsid, the mounts of `IdMap::enter`, chdir, dup2.
    unsafe {
        command.pre_exec(prepare);
    }
    Ok(())
}

/// Gives a descriptor the number that the helper expects.
#[expect(unsafe_code, reason = "dup2 onto a number that no safe wrapper owns")]
fn hand_down(from: &OwnedFd, number: i32) -> std::io::Result<()> {
    // SAFETY: plain system calls; in the child the number is free or is the descriptor itself.
    let result = unsafe {
        if from.as_raw_fd() == number {
            libc::fcntl(number, libc::F_SETFD, 0)
        } else {
            libc::dup2(from.as_raw_fd(), number)
        }
    };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
