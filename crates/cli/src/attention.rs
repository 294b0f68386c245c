//! How a person hears that something waits: the terminal's bell, a notification of the desktop, and the operator's webhook.

use std::process::{Command, Stdio};

use anyhow::Context;
use toolhost_contract::visible_line;
use toolhost_host::ask_id;
use toolhost_store::AskSummary;

use crate::print;

/// The program of desktops that shows a notification (libnotify).
const NOTIFIER: &str = "notify-send";
/// Longest text of a notification, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// How a person wants to hear of new asks, besides the printed line.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct AttentionFlags {
    /// Ring the terminal's bell when something comes
    #[arg(long)]
    bell: bool,
    /// Show a notification on the desktop when something comes, with `notify-send`
    #[arg(long)]
    notify: bool,
    /// Send each ask to the webhook of the configuration when it is opened and when it ends
    #[arg(long)]
    pub(crate) webhook: bool,
}

impl AttentionFlags {
    /// Rings and shows a notification, once for all of these asks.
    ///
    /// # Errors
    /// The desktop's program cannot be started, or fails.
    pub(crate) fn call(self, asks: &[AskSummary]) -> anyhow::Result<()> {
        let Some(first) = asks.first() else { return Ok(()) };
        if self.bell {
            print::bell();
        }
        if self.notify {
            let title = match asks.len() {
                1 => format!("{} waits for you", ask_id(first.number)),
                count => format!("{} and {} more wait for you", ask_id(first.number), count - 1),
            };
            notify(&title, &format!("{}: {}", first.tool, first.summary))?;
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "the person's own desktop, not an agent's")]
fn notify(title: &str, text: &str) -> anyhow::Result<()> {
    // The text may come from an agent: it is made one line, without the markup that notifications understand.
    let shown: String = visible_line(text).chars().take(TEXT_CHARS_MAX).collect();
    let shown = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let status = Command::new(NOTIFIER)
        .args(["--app-name=Toolhost", "--", title, &shown])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("`{NOTIFIER}` cannot be started; on Debian it is in the package libnotify-bin"))?;
    anyhow::ensure!(status.success(), "`{NOTIFIER}` shows no notification: it ended with {status}");
    Ok(())
}
