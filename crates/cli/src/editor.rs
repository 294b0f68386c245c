//! The person's own editor: `$VISUAL`, `$EDITOR`, or `vi`.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::print;

/// What the person makes of a text. `None`: they changed nothing.
#[expect(clippy::disallowed_methods, reason = "the person's own program at their own terminal, not an agent's")]
pub(crate) fn edit(before: &str, extension: &str) -> anyhow::Result<Option<String>> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let mut file = tempfile::Builder::new().prefix("toolhost-").suffix(&format!(".{extension}")).tempfile()?;
    file.write_all(before.as_bytes())?;
    file.flush()?;
    // The variable may hold arguments, as `code --wait`; the path is never part of the script.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(file.path())
        .stdin(Stdio::inherit())
        .status()
        .with_context(|| format!("the editor `{editor}` cannot be started"))?;
    if !status.success() {
        bail!("the editor `{}` ended with {status}; nothing was taken", print::visible_line(&editor));
    }
    let after = std::fs::read_to_string(file.path()).context("the edited text cannot be read")?;
    Ok((after != before).then_some(after))
}
