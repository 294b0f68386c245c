//! Files of the workspace.

pub(crate) mod delete;
pub(crate) mod edit;
pub(crate) mod list;
pub(crate) mod move_file;
mod outline;
pub(crate) mod read;
pub(crate) mod search;
mod symbol;
pub(crate) mod write;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::workspace::{
    Content, Decoded, Error, ListQuery, ReadSpan, Spot, Workspace, WriteGuard, WsPath, decode,
};
use toolhost_contract::{
    Ctx, ErrorKind, Meaning, OtherName, Preview, REDACTED, ToolError, masks_secret, nearest, or_list, visible_line,
};

/// What other hosts call the argument `path` of a file.
pub(crate) const NAMES_OF_FILE: &[OtherName] = &[
    OtherName::argument("file_path", "path"),
    OtherName::argument("file", "path"),
    OtherName::argument("filename", "path"),
    OtherName::argument("absolute_path", "path"),
    OtherName::argument("relative_path", "path"),
    OtherName::argument("relative_workspace_path", "path"),
    OtherName::argument("target_file", "path"),
    OtherName::argument("uri", "path"),
];
/// What other hosts call the argument `path` of a folder.
pub(crate) const NAMES_OF_FOLDER: &[OtherName] = &[
    OtherName::argument("dir", "path"),
    OtherName::argument("dir_path", "path"),
    OtherName::argument("directory", "path"),
    OtherName::argument("folder", "path"),
    OtherName::argument("target_directory", "path"),
    OtherName::argument("root", "path"),
    OtherName::argument("cwd", "path"),
];
/// What other hosts call the arguments that show more than most callers want.
const NAMES_OF_ALL: &[OtherName] = &[
    OtherName::argument("hidden", "includeHidden"),
    OtherName::argument("all", "includeHidden"),
    OtherName::argument("no_ignore", "includeIgnored"),
    OtherName::means("respect_git_ignore", Meaning::Not("includeIgnored")),
    OtherName::argument("max_results", "limit"),
    OtherName::argument("head_limit", "limit"),
];

/// What a hint with near names begins with.
const NEAR: &str = "did you mean";
/// Names in a folder that one which is not there is compared with.
const NAMES_COMPARED_MAX: usize = 1000;
/// Largest file that is read whole, bytes.
const WHOLE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Longest diff in an answer, bytes. A person who has to allow the change is shown all of it.
const DIFF_BYTES_MAX: usize = 64 * 1024;

/// Reads a part of a file. Where there is none, the hint has the names that are most like it.
pub(crate) async fn read_part(ctx: &Ctx<'_>, path: &WsPath, span: ReadSpan) -> Result<Content, ToolError> {
    match ctx.workspace.read(path, span).await {
        Err(error @ Error::NotFound { .. }) => Err(with_near_names(ctx, path, error.into()).await),
        read => Ok(read?),
    }
}

/// Adds to an error about a file that is not there what else may have been meant.
async fn with_near_names(ctx: &Ctx<'_>, path: &WsPath, mut error: ToolError) -> ToolError {
    let list = error.hint.take().unwrap_or_default();
    if path.as_str().contains('\\') {
        let slashes = path.as_str().replace('\\', "/");
        return error.hint(format!("folders are separated by `/`, as in `{slashes}`; {list}"));
    }
    let query = ListQuery {
        path: path.parent(),
        pattern: None,
        depth_max: Some(1),
        include_hidden: true,
        include_ignored: true,
        limit: NAMES_COMPARED_MAX,
        after: None,
    };
    let Ok(listing) = ctx.workspace.list(query).await else { return error.hint(list) };
    let names = listing.entries.iter().map(|entry| entry.path.rsplit('/').next().unwrap_or(&entry.path));
    let same = names.clone().find(|name| name.eq_ignore_ascii_case(path.file_name()));
    let near = same.map_or_else(|| nearest(path.file_name(), names), |same| vec![same]);
    let near: Vec<String> =
        near.into_iter().filter_map(|name| path.parent().join(name).ok()).map(|path| path.to_string()).collect();
    let near: Vec<&str> = near.iter().map(String::as_str).collect();
    if near.is_empty() { error.hint(list) } else { error.hint(format!("{NEAR} {}?; {list}", or_list(&near))) }
}

pub(crate) async fn read_whole(ctx: &Ctx<'_>, path: &WsPath) -> Result<Content, ToolError> {
    let content = read_part(ctx, path, ReadSpan { start: 0, bytes_max: WHOLE_BYTES_MAX }).await?;
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
    toolhost_contract::workspace::diff(&visible_line(path), before, after)
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
