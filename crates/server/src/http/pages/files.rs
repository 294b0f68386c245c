//! The files of a project's workspace, to be looked at: folders, texts, and what is found in them.
//!
//! What is read here is read by the tools that agents read with, through the gate: the same paths are closed, and each look is in the audit.

use askama::Template;
use axum::http::StatusCode;
use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, visible_line};
use toolhost_host::UndoStep;
use toolhost_store::Role;

use super::calls::{items, number, text};
use super::done::Done;
use super::failure::sentence;
use super::marks::{mark, without_marks};
use super::parts::{Line, Parts};
use super::route::{Made, Route, Wanted};
use super::split::{SPLIT, Split};
use super::visitor::{Membership, Visitor};
use super::{Place, encoded, page, see_done};
use crate::http::envelope;

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/files", name: "files", takes_forms: false, make: files },
    Route { path: "/projects/{project}/files/changes", name: "file_changes", takes_forms: false, make: changes },
    Route { path: "/projects/{project}/files/undo/{call}", name: "file_undo", takes_forms: true, make: undo },
];

/// The section of these pages.
const SECTION: &str = "files";
/// Entries of a folder on one page.
const ENTRIES: u64 = 200;
/// Lines of a file on one page.
const LINES: u64 = 1000;
/// Lines that are found, on one page.
const MATCHES: u64 = 100;

#[derive(Template)]
#[template(path = "files.html")]
struct FilesPage<'a> {
    place: Place<'a>,
    address: String,
    /// The folders on the way, and where each is.
    way: Vec<(String, String)>,
    name: String,
    /// What is searched for, as it was typed.
    search: String,
    /// Where it is searched.
    path: String,
    shown: Shown,
    error: Option<String>,
    /// The address of what comes next.
    next: Option<String>,
}

enum Shown {
    Nothing,
    Folder(Vec<EntryLine>),
    Text { about: String, lines: Vec<(u64, String)> },
    Found { about: String, lines: Vec<FoundLine> },
}

struct EntryLine {
    name: String,
    /// Empty for what cannot be opened here.
    address: String,
    kind: String,
    size: String,
}

struct FoundLine {
    path: String,
    address: String,
    line: u64,
    text: String,
}

#[derive(Template)]
#[template(path = "file_changes.html")]
struct ChangesPage<'a> {
    place: Place<'a>,
    address: String,
    audit: String,
    /// Lines of a part of the difference to the last commit.
    lines: Vec<Line>,
    /// The part side by side, if that is shown.
    split: Option<Split>,
    part: usize,
    parts: usize,
    /// Files that git does not know yet, and where each is.
    new: Vec<(String, String)>,
    error: Option<String>,
    is_cut: bool,
}

#[derive(Template)]
#[template(path = "file_undo.html")]
struct UndoPage<'a> {
    place: Place<'a>,
    address: String,
    /// The page of the call.
    call: String,
    files: Vec<PutBack>,
    folders: Vec<String>,
    conflicts: Vec<String>,
    /// Empty where nothing can be put back by this person.
    digest: String,
    error: Option<String>,
}

/// A file that gets back what it was.
struct PutBack {
    path: String,
    becomes: &'static str,
    lines: Vec<(&'static str, String)>,
}

impl PutBack {
    fn of(step: &UndoStep) -> Self {
        let becomes = match (&step.now, &step.then) {
            (None, _) => "It comes back.",
            (_, None) => "It goes: the call has made it.",
            (now, then) if now == then => "Who may read, write and run it becomes what it was.",
            _ => "It becomes what it was:",
        };
        let lines = step.diff.lines().map(|line| (mark(line), without_marks(line))).collect();
        Self { path: visible_line(&step.path), becomes, lines }
    }
}

fn place<'a>(visitor: &Visitor<'a>, membership: &'a Membership) -> Place<'a> {
    Place { project: Some(membership), section: SECTION, ..visitor.place() }
}

/// `12 KiB`
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

fn files(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let path = wanted.asked("path").filter(|path| !path.is_empty()).unwrap_or(".").to_owned();
        let search = wanted.asked("q").unwrap_or_default().to_owned();
        let asked = Asked { visitor: &visitor, membership: &membership, wanted: &wanted, path: &path };
        let found = match search.is_empty() {
            true => asked.look().await,
            false => asked.search(&search).await,
        };
        let (shown, next, error) = match found {
            Ok((shown, next)) => (shown, next, None),
            Err(error) => (Shown::Nothing, None, Some(error)),
        };
        let status = if error.is_some() { StatusCode::NOT_FOUND } else { StatusCode::OK };
        let (way, name) = way(&membership, &path);
        let (place, address) = (place(&visitor, &membership), membership.path(SECTION));
        let (search, path) = (visible_line(&search), visible_line(&path));
        let files = FilesPage { place, address, way, name, search, path, shown, error, next };
        Ok(page(status, &files))
    })
}

/// The folders above a path with their addresses, and the path's own name.
fn way(membership: &Membership, path: &str) -> (Vec<(String, String)>, String) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let Some((last, above)) = parts.split_last() else { return (Vec::new(), "Files".to_owned()) };
    let mut way = vec![("Files".to_owned(), membership.path(SECTION))];
    for depth in 1..=above.len() {
        way.push((visible_line(above[depth - 1]), address_of(membership, &above[..depth].join("/"))));
    }
    (way, visible_line(last))
}

fn address_of(membership: &Membership, path: &str) -> String {
    format!("{}?path={}", membership.path(SECTION), encoded(path))
}

/// Where a file is: its first line, which says that it is no folder.
fn file_address(membership: &Membership, path: &str) -> String {
    format!("{}&line=1", address_of(membership, path))
}

/// What somebody wants to see.
struct Asked<'a> {
    visitor: &'a Visitor<'a>,
    membership: &'a Membership,
    wanted: &'a Wanted,
    path: &'a str,
}

type Found = Result<(Shown, Option<String>), String>;

impl Asked<'_> {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.visitor.read(self.membership, tool, arguments).await.map_err(|error| sentence(&error))
    }

    /// A file where the address has a line of it; else a folder, or a file that somebody has typed the path of.
    async fn look(&self) -> Found {
        if self.wanted.asked("line").is_some() {
            return self.file().await;
        }
        let mut arguments = json!({ "path": self.path, "limit": ENTRIES, "includeHidden": true });
        if let Some(cursor) = self.wanted.asked("cursor") {
            arguments["cursor"] = cursor.into();
        }
        let Ok(folder) = self.call("file.list", arguments).await else { return self.file().await };
        let entries = items(&folder, "entries").iter().map(|entry| {
            let (path, kind) = (text(entry, "path"), text(entry, "type"));
            EntryLine {
                name: visible_line(path.rsplit('/').next().unwrap_or(path)),
                address: match kind {
                    "folder" => address_of(self.membership, path),
                    "file" => file_address(self.membership, path),
                    _ => String::new(),
                },
                kind: visible_line(kind),
                size: number(entry, "size").map(size).unwrap_or_default(),
            }
        });
        let next = folder.get("nextCursor").and_then(Value::as_str);
        let next = next.map(|cursor| format!("{}&cursor={}", address_of(self.membership, self.path), encoded(cursor)));
        Ok((Shown::Folder(entries.collect()), next))
    }

    async fn file(&self) -> Found {
        let from: u64 = self.wanted.asked("line").and_then(|line| line.parse().ok()).unwrap_or(1).max(1);
        let file = self.call("file.read", json!({ "path": self.path, "offset": from, "limit": LINES })).await?;
        let first = number(&file, "firstLine").unwrap_or(from);
        let content = text(&file, "content");
        let lines = (first..).zip(content.lines().map(without_marks)).collect();
        let whole = number(&file, "totalLines").map(|lines| format!("{lines} lines, ")).unwrap_or_default();
        let about = format!("{whole}{}", size(number(&file, "size").unwrap_or(0)));
        let next = number(&file, "nextOffset");
        let next = next.map(|line| format!("{}&line={line}", address_of(self.membership, self.path)));
        Ok((Shown::Text { about, lines }, next))
    }

    async fn search(&self, words: &str) -> Found {
        let mut arguments = json!({
            "pattern": words, "literal": true, "ignoreCase": true, "path": self.path, "limit": MATCHES,
        });
        if let Some(cursor) = self.wanted.asked("cursor") {
            arguments["cursor"] = cursor.into();
        }
        let found = self.call("file.search", arguments).await?;
        let lines = items(&found, "matches").iter().map(|line| {
            let (path, at) = (text(line, "path"), number(line, "line").unwrap_or(1));
            FoundLine {
                path: visible_line(path),
                address: format!("{}&line={at}", address_of(self.membership, path)),
                line: at,
                text: visible_line(text(line, "text")),
            }
        });
        let (total, files) = (number(&found, "total").unwrap_or(0), number(&found, "filesWithMatches").unwrap_or(0));
        let about = match total {
            0 => "Nothing has these words.".to_owned(),
            _ => format!("Lines: {total}. Files: {files}."),
        };
        let next = found.get("nextCursor").and_then(Value::as_str).map(|cursor| {
            format!("{}&q={}&cursor={}", address_of(self.membership, self.path), encoded(words), encoded(cursor))
        });
        Ok((Shown::Found { about, lines: lines.collect() }, next))
    }
}

fn changes(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        // Both start programs of git, and neither needs the other.
        let (found, status) = tokio::join!(
            visitor.read(&membership, "git.diff", json!({})),
            visitor.read(&membership, "git.status", json!({})),
        );
        let (found, status) = (found.map_err(|error| sentence(&error)), status.unwrap_or_default());
        let (diff, error, is_cut) = match &found {
            Ok(found) => (text(found, "diff"), None, found.get("truncated") == Some(&Value::Bool(true))),
            Err(error) => ("", Some(error.clone()), false),
        };
        let parts = Parts::of(diff, "");
        let part = wanted.asked("part").and_then(|part| part.parse().ok()).unwrap_or(1).clamp(1, parts.count());
        let split = (wanted.asked("view") == Some(SPLIT)).then(|| parts.split(part));
        let lines = parts.lines(part, true).0;
        let is_new = |file: &&Value| text(file, "unstaged") == "?" || text(file, "staged") == "?";
        let new = items(&status, "files").iter().filter(is_new).map(|file| {
            let path = text(file, "path");
            (visible_line(path), file_address(&membership, path))
        });
        let new = new.collect();
        let (place, address) = (place(&visitor, &membership), membership.path(SECTION));
        let audit = membership.path("audit");
        Ok(page(
            StatusCode::OK,
            &ChangesPage { place, address, audit, lines, split, part, parts: parts.count(), new, error, is_cut },
        ))
    })
}

fn undo(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let (work, call, by) = (membership.work()?, wanted.part("call"), visitor.by());
        let page_of_call = membership.path(&format!("audit/calls/{}", encoded(call)));
        let mut error = None;
        if let Some(form) = &wanted.form {
            let digest = form.get("digest").map(String::as_str).unwrap_or_default();
            match work.undo_files(by, call, digest).await {
                Ok(()) => return Ok(see_done(&page_of_call, Done::PutBack)),
                Err(refused) if refused.kind == ErrorKind::Internal => return Err(refused),
                Err(refused) => error = Some(refused),
            }
        }
        let undo = work.file_undo(by, call).await?;
        let can = membership.role <= Role::Editor && undo.conflicts.is_empty() && !undo.is_empty();
        let status = error.as_ref().map_or(StatusCode::OK, envelope::status);
        let shown = UndoPage {
            place: place(&visitor, &membership),
            address: membership.path(&format!("files/undo/{}", encoded(call))),
            call: page_of_call,
            files: undo.steps.iter().map(PutBack::of).collect(),
            folders: undo.folders.iter().map(|folder| visible_line(folder)).collect(),
            conflicts: undo
                .conflicts
                .iter()
                .map(|conflict| visible_line(&format!("{}: {}", conflict.path, conflict.why)))
                .collect(),
            digest: if can { undo.digest()? } else { String::new() },
            error: error.as_ref().map(sentence),
        };
        Ok(page(status, &shown))
    })
}
