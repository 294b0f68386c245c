//! Files of the workspace.

pub(crate) mod delete;
pub(crate) mod edit;
pub(crate) mod list;
pub(crate) mod move_file;
mod outline;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::workspace::{Content, Decoded, ReadSpan, Spot, Workspace, WriteGuard, WsPath, decode};
use toolhost_contract::{Ctx, ErrorKind, Preview, REDACTED, ToolError, masks_secret, visible_line};

/// Largest file that is read whole, bytes.
const WHOLE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Lines of context in a diff.
const DIFF_CONTEXT_LINES: usize = 3;
/// Longest diff in an answer, bytes. A person who has to allow the change is shown all of it.
const DIFF_BYTES_MAX: usize = 64 * 1024;

pub(crate) async fn read_whole(ctx: &Ctx<'_>, path: &WsPath) -> Result<Content, ToolError> {
    let content = ctx.workspace.read(path, ReadSpan { start: 0, bytes_max: WHOLE_BYTES_MAX }).await?;
    if content.size > WHOLE_BYTES_MAX {
        let message =
            format!("`{path}` is {} bytes long; {WHOLE_BYTES_MAX} is the most that is read whole", content.size);
        return Err(ToolError::new(ErrorKind::Limit, message)
            .hint("use `file.search` to find the part you need, or the view `headTail`"));
    }
    Ok(content)
}

pub(crate) fn as_text(path: &WsPath, bytes: &[u8], size: u64) -> Result<Decoded, ToolError> {
    decode(bytes).ok_or_else(|| {
        let message = format!("`{path}` is binary ({}, {size} bytes)", kind_of(bytes));
        ToolError::new(ErrorKind::Validation, message)
            .hint("only text can be read; `bash` has programs that look into binaries")
    })
}

/// What a binary file looks like, by its first bytes.
fn kind_of(bytes: &[u8]) -> &'static str {
    let known: [(&[u8], &str); 12] = [
        (b"\x7fELF", "an ELF program"),
        (b"\x89PNG", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"%PDF", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"SQLite format 3", "an SQLite database"),
        (b"RIFF", "RIFF media"),
        (b"\0asm", "a WebAssembly module"),
        (b"BZh", "bzip2 data"),
        (b"\xfd7zXZ", "xz data"),
    ];
    known.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("unknown kind", |(_, name)| name)
}

/// Where a change lands and what must still be there: what the caller expects, or what a person saw when they allowed it.
struct Approved {
    workspace: Workspace,
    path: WsPath,
    sha256: Option<String>,
    /// Nothing was there.
    free: bool,
}

impl Approved {
    /// What a person saw of the place named `name`; without a person the place is where the path leads.
    fn of(ctx: &Ctx<'_>, name: &str, path: &WsPath) -> Result<Self, ToolError> {
        let seen = |field: &str| ctx.approved.as_ref().and_then(|rests_on| rests_on.get(field));
        let Some(place) = seen(name).and_then(Value::as_str) else {
            return Ok(Self { workspace: ctx.workspace.clone(), path: path.clone(), sha256: None, free: false });
        };
        let sha256 = seen("sha256").and_then(Value::as_str).map(str::to_owned);
        let free = sha256.is_none();
        Ok(Self { workspace: ctx.workspace.clone().exactly(), path: WsPath::parse(place)?, sha256, free })
    }

    fn guard(&self, guard: WriteGuard) -> WriteGuard {
        match &self.sha256 {
            Some(seen) => WriteGuard { expected_sha256: Some(seen.clone()), ..guard },
            None => WriteGuard { create_only: guard.create_only || self.free, ..guard },
        }
    }
}

/// A path as a person is told it: with where it leads.
fn named(path: &WsPath, place: &WsPath) -> String {
    let told = |path: &WsPath| match visible_line(path.as_str()) {
        // Where it begins and ends, and that it is one.
        shown if shown.contains(char::is_whitespace) => format!("`{shown}`"),
        shown => shown,
    };
    let (shown, leads_to) = (told(path), told(place));
    if path == place { shown } else { format!("{shown}, which leads to {leads_to}") }
}

/// What a person is shown of a file that would have other content, and what that rests on: the place and what is there.
async fn preview_of(ctx: &Ctx<'_>, spot: &Spot, after: Option<&str>, summary: String) -> Result<Preview, ToolError> {
    let path = &spot.path;
    let before = match spot.kind {
        None => None,
        // The place itself, and no link that has come there meanwhile: then the hash would be another one's.
        Some(_) => Some(read_whole(ctx, path).await?.bytes),
    };
    let text = |bytes: &[u8]| decode(bytes).map(|decoded| decoded.text);
    let detail = match (&before, after) {
        (None, None) => format!("there is no file `{path}`"),
        (None, Some(after)) => diff_of(path.as_str(), "", after),
        (Some(bytes), after) => match text(bytes) {
            Some(before) => diff_of(path.as_str(), &before, after.unwrap_or("")),
            None => {
                let was = format!("`{path}` is binary ({}, {} bytes)", kind_of(bytes), bytes.len());
                // What takes its place is text, and is shown as of a new file.
                after.map_or(was.clone(), |after| format!("{was}\n{}", diff_of(path.as_str(), "", after)))
            }
        },
    };
    let sha256 = before.map(|bytes| hex::encode(Sha256::digest(bytes)));
    let rests_on = json!({ "place": path.as_str(), "sha256": sha256 });
    Ok(Preview { summary, detail, left_out: 0, rests_on })
}

fn diff_of(path: &str, before: &str, after: &str) -> String {
    toolhost_contract::workspace::diff(&visible_line(path), before, after, DIFF_CONTEXT_LINES)
}

/// A diff as an answer holds it.
fn shortened(mut text: String) -> String {
    if text.len() > DIFF_BYTES_MAX {
        let length = text.len();
        text.truncate(text.floor_char_boundary(DIFF_BYTES_MAX));
        text.push_str(&format!("\n[... {} more bytes of diff ...]\n", length - text.len()));
    }
    text
}

/// Refuses to write the mark that stands for a secret over the secret itself.
fn check_marks(before: &str, after: &str) -> Result<(), ToolError> {
    if !masks_secret(before, after) {
        return Ok(());
    }
    let message = format!(
        "the text holds `{REDACTED}`, which stands for a secret you were not shown; writing it would destroy the secret"
    );
    Err(ToolError::new(ErrorKind::Validation, message)
        .hint("use `file.edit` on other lines, and leave that one as it is"))
}
