//! A child process that is started without a copy of this one's memory, and is watched by a descriptor.
//!
//! `fork` copies the page tables of a host: 0.7 ms where it uses 20 MiB, 2 ms where it uses 60, and every thread of the host pays
//! for its next writes. The child here borrows the memory until it has become its program, as `vfork` and `posix_spawn` do. Those
//! two cannot mount or enter a cgroup in between.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Stack of the child until `execve`; it calls nothing that needs more than a few frames.
const STACK_BYTES: usize = 64 * 1024;
/// Exit code if `execve` fails; never seen, because the parent gets the error.
const EXEC_FAILED: c_int = 127;

/// The program, its arguments and its whole environment, as `execve` takes them.
pub(crate) struct Program {
    path: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    /// # Errors
    /// `InvalidInput` where a text has a NUL in it.
    pub(crate) fn new<'a>(
        path: &OsStr,
        args: impl IntoIterator<Item = &'a OsStr>,
        environment: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> std::io::Result<Self> {
        let path = CString::new(path.as_bytes())?;
        let args = args.into_iter().map(|arg| CString::new(arg.as_bytes()));
        let argv = std::iter::once(Ok(path.clone())).chain(args).collect::<Result<_, _>>()?;
        let environment = environment.into_iter().map(|(name, value)| CString::new(format!("{name}={value}")));
        Ok(Self { path, argv, environment: environment.collect::<Result<_, _>>()? })
    }
}

/// A started process. Dropping it ends nothing, but leaves no zombie behind.
pub(crate) struct Child {
    pid: Pid,
    /// Readable when the process has ended; moved into a task that reaps it on drop.
    end: Option<AsyncFd<OwnedFd>>,
    code: Option<i32>,
    was_killed: bool,
    runtime: tokio::runtime::Handle,
}

impl Child {
    /// Starts `program` with these as its standard streams, after it has run `prepare` in the child.
    ///
    /// Returns when the child has become its program. To be called within a runtime.
    ///
    /// # Errors
    /// What `prepare` or `execve` failed with.
    ///
    /// # Safety
    /// `prepare` runs in a child that has the memory of this process, and in which no other thread of it runs: it makes system calls only,
    /// on memory prepared before; it allocates nothing, takes no lock and does not panic.
    #[expect(unsafe_code, reason = "what runs between has rules that no type holds")]
    pub(crate) unsafe fn start(
        program: &Program,
        streams: [BorrowedFd<'_>; 3],
        prepare: &dyn Fn() -> std::io::Result<()>,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Handle::current();
        let argv = pointers(&program.argv);
        let environment = pointers(&program.environment);
        let setup = ChildSetup {
            program,
            argv: &argv,
            environment: &environment,
            streams: streams.map(|stream| stream.as_raw_fd()),
            prepare,
            error: AtomicI32::new(0),
        };
        // SAFETY: what the caller promises of `prepare`; the rest of the child's way keeps to it.
        let (pid, descriptor) = unsafe { borrow_memory(&setup) }?;
        // SAFETY: an `OwnedFd` stays the same descriptor as long as it is there.
        let end = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
        let mut child = Self { pid, end: Some(end), code: None, was_killed: false, runtime };
        match setup.error.load(Ordering::Acquire) {
            0 => Ok(child),
            error => {
                child.try_reap(WaitIdOptions::EXITED)?;
                Err(std::io::Error::from_raw_os_error(error))
            }
        }
    }

    /// `None` after the process was reaped, when the number may be another's.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.code.is_none().then_some(self.pid)
    }

    /// Whether a signal has ended it.
    pub(crate) fn was_killed(&self) -> bool {
        self.was_killed
    }

    /// Waits for the end, and answers its code as a shell says it: 128 and the signal where one ended it. May be dropped and
    /// called again.
    pub(crate) async fn wait(&mut self) -> std::io::Result<i32> {
        loop {
            if let Some(code) = self.code {
                return Ok(code);
            }
            let Some(end) = &self.end else { return Err(std::io::Error::from(std::io::ErrorKind::NotFound)) };
            let mut guard = end.readable().await?;
            guard.clear_ready();
            self.try_reap(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        }
    }

    /// Kills it, and waits for its end.
    pub(crate) async fn kill(&mut self) -> std::io::Result<i32> {
        if let (None, Some(end)) = (self.code, &self.end) {
            rustix::process::pidfd_send_signal(end, Signal::KILL)?;
        }
        self.wait().await
    }

    fn try_reap(&mut self, options: WaitIdOptions) -> std::io::Result<()> {
        if let (None, Some(end)) = (self.code, &self.end)
            && let Some(status) = rustix::process::waitid(WaitId::PidFd(end.as_fd()), options)?
        {
            self.code = Some(shell_code(&status));
            self.was_killed = status.terminating_signal().is_some();
        }
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.try_reap(WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_ok()
            && self.code.is_none()
            && let Some(end) = self.end.take()
        {
            self.runtime.spawn(async move {
                if end.readable().await.is_ok() {
                    // It may have been reaped already.
                    let _ = rustix::process::waitid(
                        WaitId::PidFd(end.as_fd()),
                        WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
                    );
                }
            });
        }
    }
}

fn shell_code(status: &WaitIdStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Lets the kernel keep for us how a child has ended. Where `SIGCHLD` is ignored, which a program inherits from whoever starts it, it
/// forgets that at once. A handler stays.
pub(crate) fn expect_children() {
    #[expect(unsafe_code, reason = "dispositions have no safe wrapper")]
    // SAFETY: `sigaction` fills in what is read, and the default is no handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut action) == 0;
        if known && action.sa_sigaction == libc::SIG_IGN {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// What the child needs of its parent's memory. It lives until the child has left it.
struct ChildSetup<'a> {
    program: &'a Program,
    argv: &'a [*const c_char],
    environment: &'a [*const c_char],
    streams: [RawFd; 3],
    prepare: &'a dyn Fn() -> std::io::Result<()>,
    /// Why the child did not become its program.
    error: AtomicI32,
}

/// As `execve` takes them, with a null behind the last.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Starts the child, on a stack of its own, and waits until it has left this process's memory.
///
/// # Safety
/// As of [`Child::start`].
#[expect(unsafe_code, reason = "clone and signal masks have no safe wrapper")]
unsafe fn borrow_memory(setup: &ChildSetup<'_>) -> std::io::Result<(Pid, OwnedFd)> {
    // Of `u128`, because a stack must be aligned to 16 bytes.
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    let top = stack.as_mut_ptr_range().end.cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let argument = std::ptr::from_ref(setup).cast_mut().cast::<c_void>();
    let mut descriptor: c_int = -1;
    // SAFETY: `CLONE_VFORK` keeps this thread waiting until the child has left its stack, `setup` and the rest of this memory.
    // No signal is let through meanwhile: a handler of this process, run by the child, would change this memory.
    let (pid, error) = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::clone(child_main, top, flags, argument, &raw mut descriptor);
        let error = std::io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        (pid, error)
    };
    let Some(pid) = (pid > 0).then(|| Pid::from_raw(pid)).flatten() else { return Err(error) };
    // SAFETY: the kernel has just made it for this call.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// The child. It returns where it could not become its program, and ends with that.
extern "C" fn child_main(argument: *mut c_void) -> c_int {
    #[expect(unsafe_code, reason = "the argument of clone is untyped")]
    // SAFETY: `borrow_memory` passes its own, which outlives the child's use of it.
    let setup = unsafe { &*argument.cast_const().cast::<ChildSetup<'_>>() };
    let error = setup.become_program();
    setup.error.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Release);
    EXEC_FAILED
}

impl ChildSetup<'_> {
    fn become_program(&self) -> std::io::Error {
        match self.set_up() {
            Ok(()) => self.execute(),
            Err(error) => error,
        }
    }

    fn set_up(&self) -> std::io::Result<()> {
        default_handlers();
        #[expect(
            unsafe_code,
            reason = "signal masks have no safe wrapper, and a standard stream has no owner to replace it with"
        )]
        for (number, stream) in (0..).zip(self.streams) {
            // SAFETY: plain calls with integers. None of the three is itself a standard stream: those are open in every program.
            if unsafe { libc::dup2(stream, number) } < 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        (self.prepare)()
    }

    #[expect(unsafe_code, reason = "execve has no safe wrapper")]
    fn execute(&self) -> std::io::Error {
        // SAFETY: the set is initialized, and both lists end with a null and outlive the call.
        unsafe {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            libc::execve(self.program.path.as_ptr(), self.argv.as_ptr(), self.environment.as_ptr());
        }
        std::io::Error::last_os_error()
    }
}

/// No handler of the parent's may run in its memory. `SIGPIPE`, which Rust's programs ignore, is as other programs expect it.
fn default_handlers() {
    for signal in 1..=libc::SIGRTMAX() {
        #[expect(unsafe_code, reason = "dispositions have no safe wrapper")]
        // SAFETY: `sigaction` fills in what is read, and the child has a table of its own. Numbers that the C library keeps
        // for itself are refused.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0;
            let caught = action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
            if known && (caught || signal == libc::SIGPIPE) {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}

#[cfg(test)]
mod tests;
