//! One thread that starts every command, one after the other, and waits for nothing else.
//!
//! What was started ends with a pipe: only this host has its writing end, so it is closed when nobody waits for the command any
//! more and when the host dies, in whatever way and at whatever moment. The helper looks at it before it starts anything.

use std::ffi::CString;
use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc;

use rustix::fs::{Mode, OFlags};
use tokio::process::Child;
use tokio::sync::oneshot;

use crate::fence::{HANDED_DOWN, HandedDown, Plan};

/// Where the kernel is told whom to end first when the machine has no memory left: not the host, nor other programs, as long
/// as a command runs.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
const OOM_SCORE_OF_COMMANDS: &[u8] = b"1000";

pub(crate) struct Spawner {
    jobs: mpsc::Sender<Job>,
}

struct Job {
    plan: Arc<Plan>,
    runtime: tokio::runtime::Handle,
    answer: oneshot::Sender<std::io::Result<Started>>,
}

/// A started process and the pipe on which its helper says that the fence stands. Dropping it ends the command.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) ready: PipeReader,
    /// What the supervisor watches: a byte asks it to end, the close says that this host has died.
    host: Option<PipeWriter>,
}

impl Started {
    /// Asks the supervisor to end the command with all it has started; `false` if it was asked before, or has ended.
    pub(crate) fn ask_to_end(&mut self) -> bool {
        use std::io::Write;
        self.host.take().is_some_and(|mut host| host.write_all(&[1]).is_ok())
    }

    /// Kills what was started together: `bwrap` with the namespace's first process, or a supervisor. Where there is no
    /// namespace the command goes on, so this is for what does not answer.
    pub(crate) fn kill_group(&self) {
        // None once its end was seen: then the number may be another's.
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // Already gone is as good.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // In `drop`, because the call that asked for the command may be cancelled before it receives this value.
        self.ask_to_end();
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
    let (watched, host) = std::io::pipe()?;
    let handed =
        Handed { ready: ready_writer, host: watched, lock: plan.lock.as_ref().map(OwnedFd::try_clone).transpose()? };
    let mut command = std::process::Command::new(&plan.program);
    command
        .args(&plan.args)
        .env_clear()
        .envs(plan.env.iter().map(|(name, value)| (name, value)))
        .env(HANDED_DOWN, handed.numbers().to_text())
        .stdin(plan.stdin.as_ref().map_or_else(|| Ok(Stdio::piped()), |file| file.try_clone().map(Stdio::from))?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let cwd = CString::new(plan.cwd.as_os_str().as_bytes()).map_err(std::io::Error::other)?;
    before_exec(&mut command, plan, cwd, handed)?;
    let child = tokio::process::Command::from(command).spawn()?;
    Ok(Started { child, ready, host: Some(host) })
}

/// What a helper is handed. Each is the host's own until the child between `fork` and `exec` lets it through.
struct Handed {
    ready: PipeWriter,
    host: PipeReader,
    lock: Option<OwnedFd>,
}

impl Handed {
    fn numbers(&self) -> HandedDown {
        let lock = self.lock.as_ref().map(AsRawFd::as_raw_fd);
        HandedDown { ready: self.ready.as_raw_fd(), host: self.host.as_raw_fd(), lock }
    }

    fn let_through(&self) -> std::io::Result<()> {
        let lock = self.lock.as_ref().map(AsFd::as_fd);
        for descriptor in [self.ready.as_fd(), self.host.as_fd()].into_iter().chain(lock) {
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    }
}

/// What happens in the child between `fork` and `exec`: system calls only, on memory prepared before.
fn before_exec(command: &mut std::process::Command, plan: &Plan, cwd: CString, handed: Handed) -> std::io::Result<()> {
    let id_map = plan.id_map.clone();
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
        handed.let_through()
    };
    #[expect(unsafe_code, reason = "pre_exec runs in a forked child of a threaded program")]
    // SAFETY: `prepare` allocates nothing and takes no lock: setsid, the mounts of `IdMap::enter`, chdir, fcntl.
    unsafe {
        command.pre_exec(prepare);
    }
    Ok(())
}
