//! Running one command: from its plan to its end, and whatever brings that about.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::cgroup::CommandCgroup;
use crate::fence::{self, Method, Plan};
use crate::git::Held;
use crate::helper;
use crate::job::Job;
use crate::limits::Limits;
use crate::local::Room;
use crate::memory::{self, WATCH_EVERY};
use crate::output::{Capture, Lines};
use crate::proxy::Proxy;
use crate::session_folders::Entered;
use crate::spawner::{Spawner, Started};
use crate::terminal::Waiters;
use toolhost_contract::Listener;
use toolhost_contract::workspace::{
    Captured, Command, CommandResult, Error, Fence, FolderLimit, Progress, Result, Signal, Tier, Watch,
};

/// How long after a command's end its streams are still read: a daemon may hold them open forever.
const STREAM_GRACE: Duration = Duration::from_millis(200);
/// How long a supervisor may take to end the tree before it is killed itself.
const END_GRACE: Duration = Duration::from_secs(2);
/// How long the processes of a command whose supervisor was killed may take to end.
const END_LEFT_MAX: Duration = Duration::from_secs(5);
/// What is read of a stream at once, at most.
const READ_BYTES: usize = 32 * 1024;
/// How long a stream may stop inside a line before what there is of it is handed on.
const LINE_PAUSE: Duration = Duration::from_millis(200);
/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// How often it is looked how much the private folders of a session hold.
const FOLDERS_EVERY: Duration = Duration::from_millis(500);

/// Runs one command by one method.
pub(crate) async fn run_in(
    spawner: &Spawner,
    room: &Room,
    method: &Method,
    command: Job,
    fence: &Fence,
    watch: Watch,
    held: &Held,
) -> Result<CommandResult> {
    let proxy = match (fence.network.as_slice(), method.tier) {
        ([], _) | (_, Tier::Off) => None,
        (rules, _) => Some(
            Proxy::start(&room.config.temp, rules.to_vec())
                .map_err(|source| Error::Io { path: "the network proxy".to_owned(), source })?,
        ),
    };
    let mut plan = fence::plan(method, room, &command, fence, proxy.as_ref().map(Proxy::socket), held)?;
    plan.stdin = command
        .stdin_file
        .as_ref()
        .map(|file| file.try_clone())
        .transpose()
        .map_err(|error| spawn_failure(&command, &error))?;
    run_plan(spawner, room, method, command, plan, watch).await
}

/// Starts what was planned and waits for its end.
pub(crate) async fn run_plan(
    spawner: &Spawner,
    room: &Room,
    method: &Method,
    mut command: Job,
    mut plan: Plan,
    watch: Watch,
) -> Result<CommandResult> {
    // The plan has them, and is dropped where that may take its time.
    command.folders = None;
    let cgroup = method.cgroups.as_ref().map(|cgroups| cgroups.command(&room.config.limits));
    let cgroup = cgroup.transpose().map_err(|error| no_cgroup(&error))?;
    plan.cgroup = cgroup.as_ref().map(CommandCgroup::door).transpose().map_err(|error| no_cgroup(&error))?;
    let plan = Arc::new(plan);
    let began = Instant::now();
    let started = spawner.spawn(Arc::clone(&plan)).await.map_err(|e| spawn_failure(&command, &e))?;
    let mut run = Run::new(started, plan, &command, watch.output.as_ref());
    let mut outcome = run.attend(&command, &watch, &room.config.limits, began).await;
    if let Some(cgroup) = cgroup
        && end_cgroup(cgroup).await
        && matches!(outcome, End::Itself)
    {
        outcome = End::TooMuchMemory;
    }
    if let Some(mark) = run.plan.mark.filter(|_| run.started.child.was_killed()) {
        // The supervisor is dead, so the host ends what is left of the command.
        let ending = tokio::task::spawn_blocking(move || mark.end_processes(Instant::now() + END_LEFT_MAX));
        if let Err(error) = ending.await.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            tracing::error!(%error, "processes of a command whose supervisor was killed");
        }
    }
    let (mut stdout, mut stderr) = run.streams().await;
    if let Some(progress) = watch.progress.as_ref().filter(|_| began.elapsed() >= PROGRESS_EVERY) {
        // Whoever looked on sees the end of it, too.
        progress(Progress { elapsed: began.elapsed(), output_bytes: run.stdout.total() + run.stderr.total() });
    }
    let (fence_stood, status) = (run.fence_stood(), run.status);
    let (waited_for_terminal, waited_for_fifo) = {
        let mut waiters = lock(&run.waiters);
        (std::mem::take(&mut waiters.ended), waiters.fifo_wait_ended)
    };
    let folder_limit_reached = match &outcome {
        End::FolderFull(limit) => Some(*limit),
        _ => None,
    };
    let folder_limit_reached = leave_folders(run).await.or(folder_limit_reached);
    match outcome {
        End::Cancelled => return Err(Error::Cancelled),
        End::Unwatched => return Err(Error::FenceBusy),
        _ => {}
    }
    if !fence_stood && matches!(outcome, End::Itself) && room.is_exchanged() {
        return Err(Error::OtherFolder);
    }
    if !fence_stood && matches!(outcome, End::Itself) {
        return Err(Error::FenceBuild { detail: stderr.text.trim().to_owned() });
    }
    // What a caller's own command prints stays as it is: files hold these paths, and an edit must find what was printed of them.
    for stream in [&mut stdout, &mut stderr].into_iter().filter(|_| command.is_git && !command.finds_git) {
        room.hide_paths(&mut stream.text);
    }
    let exit_code = status.unwrap_or(128 + libc::SIGKILL);
    let signal = (exit_code > 128 && exit_code < 128 + 65).then(|| Signal(exit_code - 128));
    Ok(CommandResult {
        exit_code,
        signal,
        stdout,
        stderr,
        timed_out: matches!(outcome, End::TimedOut),
        output_limit_reached: matches!(outcome, End::TooMuchOutput),
        waited_for_terminal,
        waited_for_fifo,
        folder_limit_reached,
        memory_limit_reached: matches!(outcome, End::TooMuchMemory).then_some(room.config.limits.memory_bytes),
        duration: began.elapsed(),
        tier: method.tier,
        restored: Vec::new(),
        refs_changed: Vec::new(),
    })
}

fn no_cgroup(error: &std::io::Error) -> Error {
    Error::FenceBuild { detail: format!("no cgroup for the command: {error}") }
}

/// Drops a run, and answers whether its session's folders hold too much. A folder that goes with it takes as long to be removed as what
/// the command left there wants.
async fn leave_folders(run: Run) -> Option<FolderLimit> {
    let in_session = run.plan.session.as_ref();
    if !run.plan.has_folder() || in_session.is_some_and(|folders| folders.can_be_left_at_once()) {
        return None;
    }
    let leaving = tokio::task::spawn_blocking(move || {
        let over = run.plan.session.as_ref().and_then(|folders| folders.look_last());
        drop(run);
        over
    });
    leaving.await.ok().flatten()
}

/// Ends what is left of a command; answers whether the kernel has killed it for its memory.
async fn end_cgroup(cgroup: CommandCgroup) -> bool {
    let ending = tokio::task::spawn_blocking(move || {
        cgroup.end();
        cgroup.ran_out_of_memory()
    });
    ending.await.unwrap_or(false)
}

fn spawn_failure(command: &Command, error: &std::io::Error) -> Error {
    if error.raw_os_error() == Some(libc::E2BIG) {
        let bytes = command.argv.iter().map(String::len).sum::<usize>() as u64;
        // Linux: one argument may have 32 pages.
        return Error::Limit { what: "the command's length in bytes".to_owned(), actual: bytes, limit: 128 * 1024 - 1 };
    }
    let used_up = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];
    if error.raw_os_error().is_some_and(|code| used_up.contains(&code)) {
        tracing::warn!(%error, "no command could be started");
        return Error::FenceBusy;
    }
    Error::FenceBuild { detail: error.to_string() }
}

/// Why a command ended.
enum End {
    Itself,
    TimedOut,
    Cancelled,
    TooMuchOutput,
    TooMuchMemory,
    /// A private folder of its session came to hold more than it may.
    FolderFull(FolderLimit),
    /// Nothing could watch its memory.
    Unwatched,
}

/// A running command: its streams are drained, and dropping it ends its tree.
struct Run {
    started: Started,
    plan: Arc<Plan>,
    stdout: Stream,
    stderr: Stream,
    /// The pipes of both, by their inodes.
    outputs: Vec<u64>,
    /// Processes that wait for a terminal.
    waiters: Arc<std::sync::Mutex<Waiters>>,
    status: Option<i32>,
}

impl Run {
    fn new(mut started: Started, plan: Arc<Plan>, command: &Command, listener: Option<&Listener>) -> Self {
        let (stdout, stderr) = (started.stdout.take(), started.stderr.take());
        let streams = stdout.iter().map(AsFd::as_fd).chain(stderr.iter().map(AsFd::as_fd));
        let outputs = streams.filter_map(|stream| Some(rustix::fs::fstat(stream).ok()?.st_ino)).collect();
        let end_bytes = command.capture_bytes;
        let (stdout, stderr) =
            (Stream::drain(stdout, end_bytes, listener.cloned()), Stream::drain(stderr, end_bytes, listener.cloned()));
        let waiters = Arc::new(std::sync::Mutex::new(Waiters::new(command.ends_fifo_waits)));
        Self { started, plan, stdout, stderr, outputs, waiters, status: None }
    }

    /// Waits for the end of the command, or brings it about.
    async fn attend(&mut self, command: &Command, watch: &Watch, limits: &Limits, began: Instant) -> End {
        let stdin = self.started.stdin.take();
        let input = command.stdin.clone();
        let feeding = tokio::spawn(async move {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input closes the pipe; that is its business.
                let _ = stdin.write_all(&input).await;
            }
        });
        let deadline = tokio::time::sleep(command.timeout);
        tokio::pin!(deadline);
        let mut tick = tokio::time::interval(PROGRESS_EVERY);
        tick.tick().await;
        // The sum is not as exact as the kernel's: where that holds the limit, only the machine's memory is looked at.
        let limit = if self.plan.cgroup.is_some() { u64::MAX } else { limits.memory_bytes };
        let waiting = (self.outputs.clone(), Arc::clone(&self.waiters));
        let root = self.started.child.pid().map(|pid| pid.as_raw_pid().cast_unsigned());
        let too_large = memory_exceeded(root, limit, Arc::clone(&self.plan), waiting);
        let too_full = folders_exceeded(root, self.plan.session.clone());
        tokio::pin!(too_large, too_full);
        let end = loop {
            tokio::select! {
                status = self.started.child.wait() => {
                    self.status = status.ok();
                    break End::Itself;
                }
                () = &mut deadline => break End::TimedOut,
                () = watch.cancel.cancelled() => break End::Cancelled,
                limit = &mut too_full => break End::FolderFull(limit),
                watched = &mut too_large => break if watched { End::TooMuchMemory } else { End::Unwatched },
                _ = tick.tick() => {
                    let output_bytes = self.stdout.total() + self.stderr.total();
                    if output_bytes > limits.output_bytes {
                        break End::TooMuchOutput;
                    }
                    if let Some(progress) = &watch.progress {
                        progress(Progress { elapsed: began.elapsed(), output_bytes });
                    }
                }
            }
        };
        feeding.abort();
        if self.status.is_none() {
            self.end_tree().await;
        }
        end
    }

    /// Ends the whole process tree: the supervisor does, and answers when nothing is left.
    async fn end_tree(&mut self) {
        let order = if self.plan.ends_in_order { helper::ORDER_GRACE } else { Duration::ZERO };
        if self.started.ask_to_end() && self.ends_within(order + END_GRACE).await {
            return;
        }
        self.started.kill_group();
        // Already gone is as good.
        let _ = self.started.child.kill().await;
    }

    async fn ends_within(&mut self, grace: Duration) -> bool {
        tokio::time::timeout(grace, self.started.child.wait()).await.is_ok()
    }

    async fn streams(&mut self) -> (Captured, Captured) {
        let deadline = tokio::time::Instant::now() + STREAM_GRACE;
        self.stdout.finish_by(deadline).await;
        self.stderr.finish_by(deadline).await;
        (self.stdout.take(), self.stderr.take())
    }

    /// Whether the helper said that the fence stands. The command has ended, so this does not wait.
    fn fence_stood(&mut self) -> bool {
        use std::io::Read;
        let nonblocking = rustix::io::ioctl_fionbio(&self.started.ready, true);
        nonblocking.is_ok() && self.started.ready.read(&mut [0]).is_ok_and(|n| n == 1)
    }
}

/// Ends when a private folder of a command's session holds more than it may; never where it has none.
async fn folders_exceeded(root: Option<u32>, folders: Option<Arc<Entered>>) -> FolderLimit {
    let Some(folders) = folders else { return std::future::pending().await };
    loop {
        tokio::time::sleep(FOLDERS_EVERY).await;
        let looked = Arc::clone(&folders);
        if let Ok(Some(limit)) = tokio::task::spawn_blocking(move || looked.look(root)).await {
            return limit;
        }
    }
}

/// Ends when a command's tree uses more memory than it may, or with `false` where nothing can watch it; where it has ended, never.
/// Meanwhile it ends what waits for a terminal in that tree.
async fn memory_exceeded(
    root: Option<u32>,
    limit: u64,
    plan: Arc<Plan>,
    (outputs, waiters): (Vec<u64>, Arc<std::sync::Mutex<Waiters>>),
) -> bool {
    let Some(root) = root else { return std::future::pending().await };
    let mut memory = memory::Watch::new(root, limit, plan.in_memory.clone());
    let (tell, told) = tokio::sync::oneshot::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // A thread of its own: among as many processes as a command may start, a task that waits for its turn on two others
    // comes too late.
    let watching = std::thread::Builder::new().name("memory".to_owned()).spawn(move || {
        let mut terminals_next = true;
        loop {
            std::thread::park_timeout(WATCH_EVERY);
            if flag.load(Ordering::Acquire) {
                return;
            }
            if memory.is_too_large() {
                // Whoever has gone needs no answer.
                let _ = tell.send(());
                return;
            }
            terminals_next = !terminals_next;
            if terminals_next {
                lock(&waiters).look(root, &outputs);
            }
        }
    });
    match watching {
        Ok(thread) => {
            let _stop = StopThread { flag: stop, thread: thread.thread().clone() };
            if told.await.is_err() {
                std::future::pending().await
            }
            true
        }
        // What nobody watches does not run.
        Err(error) => {
            tracing::warn!(%error, "no thread for a command's memory");
            false
        }
    }
}

/// Ends a thread that is parked between its looks.
struct StopThread {
    flag: Arc<AtomicBool>,
    thread: std::thread::Thread,
}

impl Drop for StopThread {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Drains one stream on a task of its own, so that a full pipe never stops the command.
struct Stream {
    capture: Arc<std::sync::Mutex<Capture>>,
    task: tokio::task::JoinHandle<()>,
}

impl Stream {
    fn drain(
        source: Option<impl AsyncRead + Unpin + Send + 'static>,
        end_bytes: usize,
        listener: Option<Listener>,
    ) -> Self {
        let capture = Arc::new(std::sync::Mutex::new(Capture::new(end_bytes)));
        let sink = Arc::clone(&capture);
        let task = tokio::spawn(async move {
            let Some(mut source) = source else { return };
            let mut lines = listener.map(Lines::new);
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let pause = async {
                    match lines.as_ref().is_some_and(Lines::are_unended) {
                        true => tokio::time::sleep(LINE_PAUSE).await,
                        false => std::future::pending().await,
                    }
                };
                let read = tokio::select! {
                    biased;
                    read = source.read(&mut buffer) => Some(read),
                    () = pause => None,
                };
                match (read, &mut lines) {
                    (Some(Ok(n @ 1..)), lines) => {
                        if let Some(lines) = lines {
                            lines.push(&buffer[..n]);
                        }
                        lock(&sink).push(&buffer[..n]);
                    }
                    (Some(_), _) => return,
                    (None, Some(lines)) => lines.tell_all(),
                    (None, None) => {}
                }
            }
        });
        Self { capture, task }
    }

    fn total(&self) -> u64 {
        lock(&self.capture).total()
    }

    async fn finish_by(&mut self, deadline: tokio::time::Instant) {
        if tokio::time::timeout_at(deadline, &mut self.task).await.is_err() {
            self.task.abort();
            // Its end hands on the line that it held.
            let _ = (&mut self.task).await;
        }
    }

    fn take(&self) -> Captured {
        std::mem::replace(&mut *lock(&self.capture), Capture::new(0)).finish()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
