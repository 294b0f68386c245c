//! The login of this command line to a shared database: a file with a secret, whose hash the database has.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use sha2::{Digest, Sha256};
use toolhost::Terminal;
use toolhost_server::http::SignIn;
use toolhost_store::Store;

/// Below what all projects have in common: a file for each shared database, and how long its name is.
const FOLDER: &str = "logins";
const NAME_CHARS: usize = 32;
/// What Linux calls this machine.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
/// Longer than any secret.
const FILE_BYTES_MAX: u64 = 4096;

/// The file of a login: the one that was named, or that of the database.
///
/// # Errors
/// If the working directory of a relative path does not exist.
pub(crate) fn file(named: Option<&Path>, url: &str, data: &Path) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(std::path::absolute(named)?);
    }
    // Without the password, which may change.
    let database = hex::encode(Sha256::digest(Store::address(url)));
    Ok(data.join(FOLDER).join(&database[..NAME_CHARS]))
}

/// This terminal with the secret in the file, which is made if it is not there: where nobody has ever proven who they are, it becomes a
/// login.
pub(crate) fn of(file: &Path) -> Terminal {
    let made = || {
        let (secret, _) = SignIn::new_secret().ok()?;
        let made = part(file, &secret).and_then(|part| match part.persist_noclobber(file) {
            // Another command made one at the same moment: that is the secret of both.
            Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.error.into()),
            _ => Ok(()),
        });
        if let Err(error) = made {
            tracing::warn!(error = format!("{error:#}"), "a login cannot be stored");
        }
        hash(file)
    };
    Terminal { hash: hash(file).or_else(made), name: name() }
}

/// The hash of the secret in the file.
pub(crate) fn hash(file: &Path) -> Option<String> {
    let about = std::fs::metadata(file).ok().filter(|about| about.is_file() && about.len() <= FILE_BYTES_MAX)?;
    warn_if_readable(file, &about);
    SignIn::hash(std::fs::read_to_string(file).ok()?.trim())
}

fn warn_if_readable(file: &Path, about: &std::fs::Metadata) {
    use std::os::unix::fs::PermissionsExt;
    if about.permissions().mode() & 0o077 != 0 {
        tracing::warn!("others may read the login in {0}: `chmod 600 {0}`", file.display());
    }
}

/// Replaces the secret in the file. Nobody else may read it.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(file: &Path, secret: &str) -> anyhow::Result<()> {
    part(file, secret)?.persist(file).with_context(|| format!("the login cannot be stored in {}", file.display()))?;
    Ok(())
}

/// The file before it has its name, with the mode 0600.
fn part(file: &Path, secret: &str) -> anyhow::Result<tempfile::NamedTempFile> {
    let failed = || format!("the login cannot be stored in {}", file.display());
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(failed)?;
    let mut part = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
    writeln!(part, "{secret}").with_context(failed)?;
    part.as_file().sync_all().with_context(failed)?;
    Ok(part)
}

/// Removes the file. A file that is not there is removed already.
///
/// # Errors
/// If it cannot be removed.
pub(crate) fn remove(file: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", file.display()))
        }
        _ => Ok(()),
    }
}

/// What this terminal calls itself to the person who confirms it: `ada@laptop`.
pub(crate) fn name() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "somebody".to_owned());
    let host = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    match host.trim() {
        "" => user,
        host => format!("{user}@{host}"),
    }
}
