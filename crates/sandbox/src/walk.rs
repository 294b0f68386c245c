//! Listing and searching with ripgrep's crates.
//!
//! The walker goes by path, not by handle, so a folder swapped for a link while it runs could lead it outside. It
//! therefore runs on a thread that has given up (Landlock) everything but reading the workspace, and what it found is
//! looked at again through the handle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cap_std::fs::Dir;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::error::from_io;
use crate::fence::landlock_thread;
use crate::files::Tree;
use crate::git::Top;
use toolhost_contract::workspace::{
    Entry, EntryKind, Error, Glob, GlobStyle, ListQuery, Listing, MatchLine, Result, SearchPage, SearchQuery, WsPath,
};

/// Most entries one walk looks at.
pub const WALK_ENTRIES_MAX: usize = 1_000_000;
/// Most matching lines one search counts.
pub(crate) const SEARCH_MATCHES_MAX: usize = 50_000;
/// Most bytes of matching lines and their context on one page, unless a single one has more.
const PAGE_BYTES_MAX: usize = 256 * 1024;
/// Largest ignore file that is respected.
pub const IGNORE_BYTES_MAX: u64 = 1024 * 1024;
/// Most bytes of all ignore files that one walk respects: each pattern is compared with each name below it.
const IGNORE_BYTES_TOGETHER_MAX: u64 = 4 * 1024 * 1024;
/// Most bytes shown of one line.
const LINE_BYTES_MAX: usize = 1_000;
/// Longest line that is searched. Each thread of each walk has room for one.
const SEARCH_HEAP_BYTES: usize = 1024 * 1024;

/// One walk over the workspace.
pub(crate) struct Walk<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) root: &'a Top,
    pub(crate) threads: usize,
    /// Set by whoever no longer wants the answer.
    pub(crate) stop: &'a AtomicBool,
}

impl Walk<'_> {
    pub(crate) fn list(&self, query: &ListQuery) -> Result<Listing> {
        self.check_folder(&query.path)?;
        let glob = query.pattern.as_deref().map(BelowGlob::new).transpose()?;
        let base = self.base(&query.path);
        let found: Mutex<Vec<(String, EntryKind)>> = Mutex::new(Vec::new());
        let (seen, unseen) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (mut builder, doubts) = self.builder(&base, query.include_hidden, query.include_ignored)?;
        builder.max_depth(query.depth_max);
        fenced(self.tree, || {
            builder.build_parallel().run(|| {
                let mut local = Batch { found: &found, items: Vec::new() };
                let (glob, base, seen, unseen) = (&glob, &base, &seen, &unseen);
                Box::new(move |entry| {
                    if self.stop.load(Ordering::Relaxed) || seen.fetch_add(1, Ordering::Relaxed) > WALK_ENTRIES_MAX {
                        return WalkState::Quit;
                    }
                    if let Some((entry, below, path)) = self.seen(entry, base, unseen)
                        && glob.as_ref().is_none_or(|g| g.matches(below.as_path()))
                    {
                        local.items.push((path, kind_of(&entry)));
                    }
                    WalkState::Continue
                })
            });
        });
        doubts.check()?;
        self.check_root()?;
        let mut all = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.sort_unstable();
        let total = all.len();
        let first = query.after.as_ref().map_or(0, |after| all.partition_point(|(path, _)| path <= after));
        let page = all.get(first..).unwrap_or_default();
        let mut looker = EntryChecker { tree: self.tree, folder: None };
        let entries = page.iter().take(query.limit).filter_map(|(path, kind)| looker.entry(path, *kind)).collect();
        let cut = seen.load(Ordering::Relaxed) > WALK_ENTRIES_MAX || unseen.load(Ordering::Relaxed);
        Ok(Listing { entries, total, more: page.len() > query.limit, cut })
    }

    pub(crate) fn search(&self, query: &SearchQuery) -> Result<SearchPage> {
        let matcher = matcher(query)?;
        let glob = query.glob.as_deref().map(BelowGlob::new).transpose()?;
        let (base, single) = match self.check_folder(&query.path) {
            Ok(()) => (self.base(&query.path), false),
            Err(Error::NotFolder { .. }) => (self.base(&query.path), true),
            Err(e) => return Err(e),
        };
        let page = Mutex::new(Page { query, kept: BTreeMap::new(), bytes: 0, end: None });
        let (count, files) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let unseen = AtomicBool::new(false);
        let search_one = |searcher: &mut Searcher, path: &WsPath| {
            let mut sink = Lines {
                path: path.as_str(),
                page: &page,
                current: None,
                pending: Vec::new(),
                any: false,
                context: query.context,
                count: &count,
                stop: self.stop,
            };
            if let Ok((file, _)) = self.tree.open_regular(path) {
                // A file that is not text is passed over, as ripgrep does; one with too long a line is told.
                if searcher.search_file(&matcher, &file, &mut sink).is_err() {
                    unseen.store(true, Ordering::Relaxed);
                }
            }
            sink.keep();
            if sink.any {
                files.fetch_add(1, Ordering::Relaxed);
            }
        };
        if single {
            // The caller named this very file, so a problem with it is the answer.
            self.tree.open_regular(&query.path)?;
            search_one(&mut searcher(query.context), &query.path);
        } else {
            let (builder, doubts) = self.builder(&base, query.include_hidden, query.include_ignored)?;
            fenced(self.tree, || {
                builder.build_parallel().run(|| {
                    let mut searcher = searcher(query.context);
                    let (glob, base, count, search_one, unseen) = (&glob, &base, &count, &search_one, &unseen);
                    Box::new(move |entry| {
                        if self.stop.load(Ordering::Relaxed) || count.load(Ordering::Relaxed) >= SEARCH_MATCHES_MAX {
                            return WalkState::Quit;
                        }
                        if let Some((entry, below, path)) = self.seen(entry, base, unseen)
                            && kind_of(&entry) == EntryKind::File
                            && glob.as_ref().is_none_or(|g| g.matches(below.as_path()))
                            && let Ok(path) = WsPath::parse(&path)
                        {
                            search_one(&mut searcher, &path);
                        }
                        WalkState::Continue
                    })
                });
            });
            doubts.check()?;
            self.check_root()?;
        }
        let mut page = lock(&page);
        let total = count.load(Ordering::Relaxed);
        Ok(SearchPage {
            matches: std::mem::take(&mut page.kept).into_values().map(|(found, _)| found).collect(),
            total,
            files_with_matches: files.load(Ordering::Relaxed),
            more: page.end.is_some(),
            cut: total >= SEARCH_MATCHES_MAX,
            unseen: unseen.load(Ordering::Relaxed),
        })
    }

    /// The walker goes by the path: where another folder has taken it, what it found, or did not find, says nothing about the
    /// workspace.
    fn check_root(&self) -> Result<()> {
        self.root.open().map(drop).map_err(|source| from_io(".", source))
    }

    fn check_folder(&self, path: &WsPath) -> Result<()> {
        let metadata = self.tree.dir().metadata(path.as_str()).map_err(|e| from_io(path.as_str(), e))?;
        if metadata.is_dir() { Ok(()) } else { Err(Error::NotFolder { path: path.to_string() }) }
    }

    fn base(&self, path: &WsPath) -> PathBuf {
        if path.is_root() { self.root.path().to_owned() } else { self.root.path().join(path.as_str()) }
    }

    /// A walk that respects ignore files, once they are known to be files: the walker would wait for ever on a FIFO of
    /// that name, and read a huge one whole.
    fn builder(&self, base: &Path, include_hidden: bool, include_ignored: bool) -> Result<(WalkBuilder, WalkErrors)> {
        let mut builder = WalkBuilder::new(base);
        let respect = !include_ignored;
        let doubts = WalkErrors { root: self.root.path().to_owned(), found: Arc::default(), bytes: Arc::default() };
        let within = doubts.clone();
        if respect {
            let mut above = base.ancestors().take_while(|folder| folder.starts_with(self.root.path()));
            let readable = above.all(|folder| within.may_read(folder));
            if !readable || !within.may_read(&self.root.path().join(".git/info")) {
                return Err(doubts.error());
            }
        }
        builder
            .hidden(!include_hidden)
            .ignore(respect)
            .git_ignore(respect)
            .git_exclude(respect)
            .parents(respect)
            // The user's global excludes are outside the workspace, and a workspace need not be a repository.
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .threads(self.threads)
            .filter_entry(move |entry| {
                let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                let git = entry.depth() > 0 && entry.file_name() == ".git";
                !git && (!folder || !respect || within.may_read(entry.path()))
            });
        Ok((builder, doubts))
    }

    /// An entry, its path below the folder walked and its path in the workspace; the folder itself is none.
    fn seen(
        &self,
        entry: std::result::Result<DirEntry, ignore::Error>,
        base: &Path,
        unseen: &AtomicBool,
    ) -> Option<(DirEntry, PathBuf, String)> {
        if let Err(error) = &entry
            && error.io_error().is_none_or(|error| error.kind() != std::io::ErrorKind::NotFound)
        {
            // Too deep for a path of the kernel's, or closed.
            unseen.store(true, Ordering::Relaxed);
        }
        let entry = entry.ok().filter(|e| e.depth() > 0)?;
        let below = entry.path().strip_prefix(base).ok()?.to_owned();
        let path = entry.path().strip_prefix(self.root.path()).ok()?.to_str()?.to_owned();
        Some((entry, below, path))
    }
}

/// Looks at what was found through the root's handle, a folder at a time.
struct EntryChecker<'a> {
    tree: &'a Tree,
    folder: Option<(String, Dir)>,
}

impl EntryChecker<'_> {
    /// One that cannot be reached beneath the root is dropped.
    fn entry(&mut self, path: &str, kind: EntryKind) -> Option<Entry> {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        if self.folder.as_ref().is_none_or(|(open, _)| open != folder) {
            self.folder = Some((folder.to_owned(), self.tree.dir().open_dir(folder).ok()?));
        }
        let (_, open) = self.folder.as_ref()?;
        // A single name in an open folder leads nowhere else.
        let stat = rustix::fs::statat(open, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let regular = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        let size = if regular { u64::try_from(stat.st_size).ok() } else { None };
        Some(Entry { path: path.to_owned(), kind, size })
    }
}

/// Runs `work` on a thread of its own that may only read the workspace; the walker's threads inherit that.
fn fenced(tree: &Tree, work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Without Landlock the look through the handle remains.
            let _ = landlock_thread(tree.dir());
            work();
        });
    });
}

/// Ignore files that cannot be read as such.
#[derive(Clone)]
struct WalkErrors {
    root: PathBuf,
    found: Arc<Mutex<Option<(String, &'static str)>>>,
    bytes: Arc<AtomicU64>,
}

impl WalkErrors {
    /// Whether the ignore files of a folder, if it has any, are ordinary ones.
    fn may_read(&self, folder: &Path) -> bool {
        for name in [".gitignore", ".ignore", "exclude"] {
            let path = folder.join(name);
            let Ok(metadata) = path.symlink_metadata() else { continue };
            // A link is followed by the walker, so what it leads to counts.
            let Ok(metadata) = (if metadata.is_symlink() { path.metadata() } else { Ok(metadata) }) else { continue };
            if name == "exclude" && !folder.ends_with(".git/info") {
                continue;
            }
            let together = self.bytes.fetch_add(if metadata.is_file() { metadata.len() } else { 0 }, Ordering::Relaxed);
            let what = match () {
                () if metadata.is_dir() => continue,
                () if metadata.is_file() && together.saturating_add(metadata.len()) > IGNORE_BYTES_TOGETHER_MAX => {
                    "too large, together with the other ignore files"
                }
                () if metadata.is_file() && metadata.len() <= IGNORE_BYTES_MAX => continue,
                () if metadata.is_file() => "too large",
                () => "something special",
            };
            let path = path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned();
            *lock(&self.found) = Some((path, what));
            return false;
        }
        true
    }

    fn check(&self) -> Result<()> {
        if lock(&self.found).is_none() { Ok(()) } else { Err(self.error()) }
    }

    fn error(&self) -> Error {
        let (path, what) = lock(&self.found).clone().unwrap_or_default();
        Error::NotRegular { path, what }
    }
}

struct Batch<'a> {
    found: &'a Mutex<Vec<(String, EntryKind)>>,
    items: Vec<(String, EntryKind)>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        lock(self.found).append(&mut self.items);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn kind_of(entry: &DirEntry) -> EntryKind {
    match entry.file_type() {
        Some(kind) if kind.is_file() => EntryKind::File,
        Some(kind) if kind.is_dir() => EntryKind::Folder,
        Some(kind) if kind.is_symlink() => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// A glob over a relative path, or over the name alone if it has no `/`.
struct BelowGlob {
    glob: Glob,
    over_path: bool,
}

impl BelowGlob {
    fn new(pattern: &str) -> Result<Self> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        Ok(Self { glob: Glob::new(pattern, GlobStyle::Path)?, over_path: pattern.contains('/') })
    }

    fn matches(&self, below: &Path) -> bool {
        if self.over_path {
            return self.glob.is_match(below);
        }
        below.file_name().is_some_and(|name| self.glob.is_match(Path::new(name)))
    }
}

fn matcher(query: &SearchQuery) -> Result<RegexMatcher> {
    RegexMatcherBuilder::new()
        .case_insensitive(query.ignore_case)
        .fixed_strings(query.literal)
        .line_terminator(Some(b'\n'))
        .build(&query.pattern)
        .map_err(|e| Error::Pattern { what: "regular expression", message: e.to_string() })
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(SEARCH_HEAP_BYTES))
        .build()
}

/// The matches of one page, by place: the first ones of those that come after the page before. However many are found,
/// no more are kept than one answer holds.
struct Page<'a> {
    query: &'a SearchQuery,
    kept: BTreeMap<(String, u64), (MatchLine, usize)>,
    bytes: usize,
    /// The first place that is on a later page.
    end: Option<(String, u64)>,
}

impl Page<'_> {
    /// Whether a match there is on this page, as far as is known.
    fn wants(&self, path: &str, line: u64) -> bool {
        let after = self.query.after.as_ref();
        after.is_none_or(|(last, at)| (path, line) > (last, *at))
            && self.end.as_ref().is_none_or(|(next, at)| (path, line) < (next, *at))
    }

    fn add(&mut self, found: MatchLine) {
        if !self.wants(&found.path, found.line) {
            return;
        }
        let context = found.before.iter().chain(&found.later);
        let bytes = found.path.len() + found.text.len() + context.map(String::len).sum::<usize>();
        self.bytes += bytes;
        self.kept.insert((found.path.clone(), found.line), (found, bytes));
        while self.kept.len() > self.query.limit || (self.bytes > PAGE_BYTES_MAX && self.kept.len() > 1) {
            let Some((place, (_, bytes))) = self.kept.pop_last() else { break };
            self.bytes -= bytes;
            // What comes later is not on this page either, however short it is.
            self.end = Some(place);
        }
    }
}

/// Counts the matches of one file, and keeps with their context those of the page.
struct Lines<'a, 'q> {
    path: &'a str,
    page: &'a Mutex<Page<'q>>,
    current: Option<MatchLine>,
    pending: Vec<String>,
    any: bool,
    context: usize,
    count: &'a AtomicUsize,
    stop: &'a AtomicBool,
}

impl Lines<'_, '_> {
    fn keep(&mut self) {
        if let Some(found) = self.current.take() {
            lock(self.page).add(found);
        }
    }
}

impl Sink for Lines<'_, '_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> std::result::Result<bool, Self::Error> {
        self.keep();
        self.any = true;
        let number = line.line_number().unwrap_or(0);
        let before = std::mem::take(&mut self.pending);
        if lock(self.page).wants(self.path, number) {
            let text = shown(line.bytes());
            self.current =
                Some(MatchLine { path: self.path.to_owned(), line: number, text, before, later: Vec::new() });
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(count < SEARCH_MATCHES_MAX && !self.stop.load(Ordering::Relaxed))
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> std::result::Result<bool, Self::Error> {
        match (line.kind(), &mut self.current) {
            (SinkContextKind::After, Some(last)) => last.later.push(shown(line.bytes())),
            (SinkContextKind::Before, _) if self.pending.len() < self.context => self.pending.push(shown(line.bytes())),
            _ => {}
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> std::result::Result<bool, Self::Error> {
        self.pending.clear();
        Ok(true)
    }
}

fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE_BYTES_MAX {
        return String::from_utf8_lossy(line).into_owned();
    }
    format!("{} [... {} more bytes]", String::from_utf8_lossy(&line[..LINE_BYTES_MAX]), line.len() - LINE_BYTES_MAX)
}
