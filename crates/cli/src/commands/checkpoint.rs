//! Checkpoints of the audit: where its chain ended once, signed, to be kept away from the database.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolhost_contract::hmac_sha256;
use toolhost_store::ExportEnd;

/// Longest line of an export of the audit, bytes.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Said of a row of an export that somebody has changed.
const CHANGED: &str = "this row is not what its hash says: the file was changed after it was exported";
/// Why an export proves nothing of what is missing in it.
const NOT_WHOLE: &str = "the export is not whole: rows are missing or were changed, or its last line `end` is gone. \
                         say `--partial` to compare the rows that it still has";

/// Where a chain ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checkpoint {
    /// Of this format.
    checkpoint: u32,
    project: String,
    /// The last row, which is also how many there are.
    pub(super) rows: i64,
    pub(super) hash: String,
    at_ms: i64,
    /// HMAC-SHA-256 over the other fields, in their order, with the key beside the configuration.
    #[serde(default)]
    signature: String,
}

impl Checkpoint {
    pub(super) fn sign(project: &str, rows: i64, hash: String, at_ms: i64, key_file: &Path) -> anyhow::Result<Self> {
        let mut checkpoint =
            Self { checkpoint: 1, project: project.to_owned(), rows, hash, at_ms, signature: String::new() };
        checkpoint.signature = checkpoint.signature_by(&key(key_file)?)?;
        Ok(checkpoint)
    }

    fn signature_by(&self, key: &[u8]) -> anyhow::Result<String> {
        let unsigned = Self { signature: String::new(), ..self.clone() };
        Ok(hex::encode(hmac_sha256(key, serde_json::to_string(&unsigned)?.as_bytes())))
    }

    fn check(&self, project: &str, key_file: &Path) -> anyhow::Result<()> {
        ensure!(self.checkpoint == 1, "a newer toolhost made this checkpoint: update toolhost to use it");
        ensure!(self.project == project, "it is a checkpoint of the project {}, not of {project}", self.project);
        let key = read_key(key_file)?.with_context(|| {
            format!("the key {} that signs checkpoints is missing: restore it to use this one", key_file.display())
        })?;
        if self.signature_by(&key)? != self.signature {
            bail!("its signature is not by the key {}: it was changed, or made elsewhere", key_file.display());
        }
        Ok(())
    }
}

/// The rows that a file says were there, by number: those of checkpoints, or all of an export.
pub(super) fn former(
    path: &Path,
    project: &str,
    key_file: &Path,
    partial: bool,
) -> anyhow::Result<BTreeMap<i64, String>> {
    let file = std::fs::File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut rows = BTreeMap::new();
    // Of an export that has not ended yet; and whether there was anything that ends.
    let (mut open, mut whole) = (ExportEnd::default(), false);
    let mut lines = std::io::BufReader::new(file).lines().enumerate().peekable();
    while let Some((n, line)) = lines.next() {
        let at = || format!("{}, line {}", path.display(), n + 1);
        let line = line.with_context(at)?;
        ensure!(line.len() <= LINE_BYTES_MAX, "{}: it is longer than {LINE_BYTES_MAX} bytes", at());
        if line.trim().is_empty() {
            continue;
        }
        let value: Value = match serde_json::from_str(&line) {
            Ok(value) => value,
            // It was cut within its last line.
            Err(_) if partial && lines.peek().is_none() => break,
            Err(error) => return Err(error).with_context(at),
        };
        if value.get("checkpoint").is_some() {
            let checkpoint: Checkpoint = serde_json::from_value(value).with_context(at)?;
            checkpoint.check(project, key_file).with_context(at)?;
            // Of an audit that had not begun there is nothing to compare.
            if checkpoint.rows > 0 {
                rows.insert(checkpoint.rows, checkpoint.hash);
            }
            whole = true;
            continue;
        }
        if value.get("line").is_some() {
            let is_so = std::mem::take(&mut open).line() == value;
            ensure!(is_so || partial, "{}: {NOT_WHOLE}", at());
            whole = true;
            continue;
        }
        let (seq, hash) = (value.get("seq").and_then(Value::as_i64), value.get("hash").and_then(Value::as_str));
        let (Some(seq), Some(hash)) = (seq, hash) else {
            bail!("{}: it is neither a row of `toolhost audit export` nor of `toolhost audit checkpoint`", at())
        };
        ensure!(hash == hash_of(&value), "{}: {CHANGED}", at());
        open.add(&line);
        rows.insert(seq, hash.to_owned());
    }
    ensure!(partial || (whole && open.rows == 0), "{}: {NOT_WHOLE}", path.display());
    ensure!(whole || !rows.is_empty(), "{}: it has no row to compare with", path.display());
    Ok(rows)
}

/// The hash of a row as an export has it: its text, then the hash before and its own.
fn hash_of(row: &Value) -> String {
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
    let body = match row.get("damaged").and_then(Value::as_str) {
        Some(body) => body.to_owned(),
        None => {
            let mut body = row.clone();
            if let Some(body) = body.as_object_mut() {
                body.shift_remove("hash");
                body.shift_remove("prevHash");
            }
            body.to_string()
        }
    };
    toolhost_store::audit_hash(text("prevHash"), &body)
}

fn read_key(file: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(
            hex::decode(text.trim())
                .ok()
                .filter(|key| key.len() == 32)
                .with_context(|| format!("{} is not a key: move it away", file.display()))?,
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
    }
}

/// The key, made where there is none.
fn key(file: &Path) -> anyhow::Result<Vec<u8>> {
    if let Some(key) = read_key(file)? {
        return Ok(key);
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // Random enough: each id has 74 random bits.
    let mut hash = Sha256::new();
    for _ in 0..8 {
        hash.update(toolhost_contract::IdSource::call_id(&toolhost_contract::RandomIds).as_str());
    }
    let made = tempfile::NamedTempFile::new_in(folder).context("the key of checkpoints")?;
    std::fs::write(made.path(), hex::encode(hash.finalize()))?;
    // Another one, made at the same moment, is as good.
    let _ = made.persist_noclobber(file);
    read_key(file)?.with_context(|| format!("{} cannot be read", file.display()))
}
