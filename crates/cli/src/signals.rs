//! The signals that ask this process to end.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// SIGTERM, SIGHUP (the terminal was closed) and SIGQUIT: each would end the process at once, and what is under way would
/// neither be ended nor put back.
pub(crate) struct Endings {
    terminate: Signal,
    quit: Signal,
    /// Not where it is ignored: under `nohup` the process outlives its terminal.
    hangup: Option<Signal>,
}

impl Endings {
    pub(crate) fn new() -> std::io::Result<Self> {
        let hangup = if ignores(SignalKind::hangup()) { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { terminate: signal(SignalKind::terminate())?, quit: signal(SignalKind::quit())?, hangup })
    }

    /// When the next of them comes.
    pub(crate) async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.quit.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Whether this process was started to ignore a signal, as `nohup` does with SIGHUP.
fn ignores(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(kind.as_raw_value() - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

/// Cancelled when somebody ends this process by Ctrl-C or another signal: what is under way then ends, and is written down.
pub(crate) fn ended_by_signal() -> CancellationToken {
    let token = CancellationToken::new();
    let cancel = token.clone();
    tokio::spawn(async move {
        let Ok(mut endings) = Endings::new() else { return };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = endings.next() => {}
        }
        cancel.cancel();
    });
    token
}
