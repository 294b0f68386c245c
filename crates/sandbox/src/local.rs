//! This machine as the workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::from_io;
use crate::fence::{FenceChoice, Method, Mounted, Probed};
use crate::files::Tree;
use crate::git::{self, Around, Begun, Guard, Held, Outer, Placeholder, Places, Reach, Refs, Seen, Top, Turn};
use crate::job::Job;
use crate::limits::Limits;
use crate::mark::Mark;
use crate::output::replace_path;
use crate::remote;
use crate::running::{lock, run_in};
use crate::session_folders::{self, Making, Sessions};
use crate::spawner::Spawner;
use crate::walk::Walk;
use toolhost_contract::workspace::{
    Access, Command, CommandResult, Content, Error, Executor, Fence, FenceReport, ListQuery, Listing, POLICY_FILE,
    ReadSpan, Remote, RemoteCommand, RemoteResult, Result, STATE_FOLDER, SearchPage, SearchQuery, Spot, Tier, Watch,
    WriteGuard, Written, WsPath,
};
use toolhost_contract::{BoxFuture, Durability, named};

/// What the operator says about the workspace and its commands.
#[derive(Debug, Clone)]
pub struct LocalConfig {
    pub root: PathBuf,
    /// A program that routes `sandbox-exec` to [`crate::helper::main`]: usually this very one.
    pub helper: PathBuf,
    pub fence: FenceChoice,
    /// `PATH` of commands.
    pub path: String,
    /// Home of commands: private, at the host's own place so that toolchains below it are found.
    pub home: PathBuf,
    /// Where private temporary folders of single commands are made in the Landlock tier.
    pub temp: PathBuf,
    /// Where the private folders of sessions are made: on a disk, and out of the sight of commands.
    pub sessions: PathBuf,
    /// Where it is kept what git obeys, to be put back after commands: one folder for all hosts of a user.
    pub guard: PathBuf,
    /// Further variables for commands.
    pub env: Vec<(String, String)>,
    /// Folders that commands may read besides the system's: toolchains.
    pub toolchains: Vec<PathBuf>,
    /// A delegated cgroup (version 2) for commands. `None`: the one that this process is in, if it is delegated.
    pub command_cgroup: Option<PathBuf>,
    /// Remotes that git tools may use.
    pub remotes: Vec<Remote>,
    pub limits: Limits,
    /// What files that tools write survive.
    pub durability: Durability,
}

/// Walks of a workspace at once: each has threads of its own, and each thread room for a long line.
const WALKS_MAX: usize = 2;
/// Most settings files of git outside the workspace that are given to the look for its places.
const ALSO_MAX: usize = 32;
/// Most FIFOs in `.git` named in an error.
const WAITS_NAMED_MAX: usize = 10;

/// A workspace folder and what was found about it when it was opened.
pub(crate) struct Room {
    /// Canonical.
    pub(crate) root: PathBuf,
    /// The same: the very folder that was opened.
    top: Top,
    pub(crate) config: LocalConfig,
    /// The repository's folder where it is not inside the workspace (a linked worktree).
    outer: Option<Outer>,
    /// Repositories that the workspace lies in.
    around: Vec<Around>,
    /// How absolute paths may spell `root`.
    names: Vec<String>,
    /// What of `top` and `outer` must be found where it is mounted.
    opened: Vec<Mounted>,
    /// The part of the mark that the processes of commands carry after which something is put back.
    pub(crate) mark: Mark,
    /// Whether sessions can have private folders.
    keeps_sessions: bool,
}

impl Room {
    fn new(top: Top, mark: Mark, mut config: LocalConfig) -> std::io::Result<Self> {
        let root = top.path().to_owned();
        let names = names_of_root(&config.root, &root, &config.home);
        config.helper = config.helper.canonicalize()?;
        if config.helper.starts_with(&root) && config.fence != FenceChoice::Off {
            // The host runs it outside the fence, or as its first program inside.
            return Err(std::io::Error::other(format!(
                "`{}`, the program that builds the fence, is inside it, where commands could put another in its place; \
                 install it elsewhere, such as with `cargo install`",
                config.helper.display()
            )));
        }
        if root.join(".git").is_symlink() {
            // What it leads to could not be told from any other folder, and would be unguarded.
            return Err(std::io::Error::other(
                "its `.git` is a link, which cannot be guarded; open the repository where it is",
            ));
        }
        if let Some(repository) = git::repository_around(&root) {
            let text = if repository == root {
                "it is a repository's own folder"
            } else {
                "it is inside a repository's own folder"
            };
            return Err(std::io::Error::other(format!(
                "{text}, whose hooks and settings commands could write; open a working tree of it instead (for a bare repository: `git worktree add FOLDER`)"
            )));
        }
        let (outer, around) = (Outer::of(&root)?, git::around(&root));
        let tops = std::iter::once(&top).chain(outer.as_ref().map(|outer| &outer.git));
        let opened = tops.map(Top::mounted).collect::<std::io::Result<Vec<_>>>()?;
        let mut room = Self { root, top, config, outer, around, names, opened, mark, keeps_sessions: false };
        let seen: Vec<PathBuf> = room.mapped_folders().into_iter().chain(room.config.toolchains.clone()).collect();
        room.keeps_sessions = session_folders::can_be_kept(&room.config.sessions, &room.config.home, &seen);
        if !room.keeps_sessions {
            tracing::warn!("each command gets an empty `/tmp` and home: commands could see those of other sessions");
        }
        Ok(room)
    }

    pub(crate) fn path_of(&self, path: &WsPath) -> PathBuf {
        if path.is_root() { self.root.clone() } else { self.root.join(path.as_str()) }
    }

    /// What git prints for a tool of the host's is relative to the workspace, as all answers of tools are.
    pub(crate) fn hide_paths(&self, text: &mut String) {
        replace_path(text, &self.root, ".");
        // `/root` says nothing about the machine and stands in many files that have nothing to do with it.
        if self.config.home != Path::new("/root") {
            replace_path(text, &self.config.home, "~");
        }
    }

    /// Whether another folder has taken the place of the workspace, or of its repository.
    pub(crate) fn is_exchanged(&self) -> bool {
        let mut tops = std::iter::once(&self.top).chain(self.outer.as_ref().map(|outer| &outer.git));
        tops.any(|top| top.open().is_err())
    }

    /// What must be found where the workspace's folders are mounted, or opened.
    pub(crate) fn opened(&self) -> &[Mounted] {
        &self.opened
    }

    /// The workspace, and its repository's folder where that is outside.
    fn folders(&self) -> Vec<PathBuf> {
        std::iter::once(self.root.clone()).chain(self.outer_git().map(Path::to_owned)).collect()
    }

    pub(crate) fn outer_git(&self) -> Option<&Path> {
        self.outer.as_ref().map(|outer| outer.git.path())
    }

    /// The folders that commands may see as their own, and those that only the look for what git obeys sees.
    pub(crate) fn mapped_folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self.around.iter().flat_map(|around| around.folders.clone()).collect();
        folders.extend(self.folders());
        folders
    }

    /// The folders of the workspace that a command sees, outer ones first.
    pub(crate) fn readable_folders(&self, command: &Job) -> Vec<PathBuf> {
        if command.finds_git { self.mapped_folders() } else { self.folders() }
    }

    /// The folders that a command of a profile that may write may write.
    pub(crate) fn writable_folders(&self, command: &Command) -> Vec<PathBuf> {
        let outer = self.outer_git().filter(|_| command.is_git).map(Path::to_owned);
        std::iter::once(self.root.clone()).chain(outer).collect()
    }
}

/// Files through a directory handle, commands through the fence.
pub struct LocalExecutor {
    room: Arc<Room>,
    tree: Arc<Tree>,
    spawner: Spawner,
    fence: Probed,
    guard: Guard,
    /// Dropping it ends the thread that looks for killed hosts.
    _alive: Arc<()>,
    places: std::sync::Mutex<Option<(Seen, Arc<Places>)>>,
    walks: Arc<tokio::sync::Semaphore>,
    sessions: Arc<Sessions>,
}

impl LocalExecutor {
    /// Opens the workspace folder. The fence is probed when it is first asked for.
    pub fn open(config: LocalConfig) -> std::io::Result<Self> {
        // What a killed host has left; where that fails, commands are refused until it does not. Before anything else is
        // looked at: what a command has planted would speak for the person. The index is not read here: that is for `settle`.
        let top = Top::at(&config.root.canonicalize()?)?;
        let guard = Guard::new(top.clone(), &config.guard);
        guard.finish_all();
        let room = Arc::new(Room::new(top, guard.mark(), config)?);
        let tree = Arc::new(Tree::open(&room.root, room.config.durability)?);
        let stat = rustix::fs::fstat(tree.dir())?;
        if room.opened.first().is_none_or(|opened| (opened.device, opened.inode) != (stat.st_dev, stat.st_ino)) {
            return Err(std::io::Error::other("it was exchanged for another folder while it was opened"));
        }
        let folder = room.top.open()?;
        ["HEAD", ".git"].iter().for_each(|name| Placeholder::sweep(&folder, name));
        let (spawner, places) = (Spawner::start()?, std::sync::Mutex::default());
        let walks = Arc::new(tokio::sync::Semaphore::new(WALKS_MAX));
        let (temp, sessions) = (room.config.temp.clone(), room.config.sessions.clone());
        let alive = Arc::default();
        guard.watch(&alive)?;
        // Beside whatever comes: it may be much.
        std::thread::spawn(move || {
            for (folder, prefix) in [(temp, crate::fence::TEMP_PREFIX), (sessions, session_folders::PREFIX)] {
                if let Err(error) = crate::remover::sweep(&folder, prefix) {
                    tracing::warn!(%error, "what killed hosts have left in the temporary folder");
                }
            }
        });
        Ok(Self {
            room,
            tree,
            spawner,
            fence: Probed::default(),
            guard,
            _alive: alive,
            places,
            walks,
            sessions: Arc::default(),
        })
    }

    /// The remotes that the operator grants here.
    pub fn granted_remotes(&self) -> Vec<&Remote> {
        self.room.config.remotes.iter().filter(|remote| remote.is_for(&self.room.root)).collect()
    }

    /// A person says that git's files in the workspace are as they should be: what was kept of them to be put back is
    /// forgotten, and commands run again.
    ///
    /// # Errors
    /// Commands would still be refused: git does not answer, or a file that it obeys has a second name.
    pub async fn accept_git(&self) -> Result<()> {
        let guard = self.guard.clone();
        self.on_files(move |_| guard.accept()).await?;
        let (Some(method), _) = self.fence().await? else { return Ok(()) };
        if method.tier == Tier::Off {
            return Ok(());
        }
        let (places, room) = (self.places(method).await?, Arc::clone(&self.room));
        if method.tier == Tier::Full {
            self.on_files(move |_| git::refuse_shared(&room.top, &places)).await?;
        }
        Ok(())
    }

    /// Whether no former command has left something that a person has to look at.
    ///
    /// # Errors
    /// [`Error::Exchanged`] and [`Error::NotRestored`]: commands are refused until a person says [`accept_git`](Self::accept_git).
    pub async fn looked_at(&self) -> Result<()> {
        let guard = self.guard.clone();
        self.on_files(move |_| guard.looked_at()).await
    }

    /// The fence that holds here.
    async fn fence(&self) -> Result<&(Option<Method>, FenceReport)> {
        let found = self.fence.get(&self.spawner, &self.room).await;
        found.map_err(|_| if self.room.is_exchanged() { Error::OtherFolder } else { Error::FenceBusy })
    }

    /// Runs file work where blocking is allowed.
    async fn on_files<T: Send + 'static>(&self, work: impl FnOnce(&Tree) -> Result<T> + Send + 'static) -> Result<T> {
        let tree = Arc::clone(&self.tree);
        let done = tokio::task::spawn_blocking(move || work(&tree)).await;
        done.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Error::Io { path: ".".to_owned(), source: std::io::Error::other(error) }),
        })
    }

    async fn on_walk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Walk<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let room = Arc::clone(&self.room);
        let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&stop.0);
        // Never closed. It is held until the walk has ended, also where nobody waits for it any more.
        let turn = Arc::clone(&self.walks).acquire_owned().await.ok();
        self.on_files(move |tree| {
            let _turn = turn;
            work(&Walk { tree, root: &room.top, threads: room.config.limits.walk_threads, stop: &flag })
        })
        .await
    }

    /// What a person's git obeys here; asked of git again when anything of it may have changed.
    async fn places(&self, method: &Method) -> Result<Arc<Places>> {
        let (root, outer) = (&self.room.root, self.room.outer_git());
        let known = lock(&self.places).clone();
        if let Some((seen, places)) = known
            && seen == Seen::now(root, outer, &places)
        {
            return Ok(places);
        }
        let is_asked = git::is_repository(root) || !self.room.around.is_empty();
        let printed = if is_asked { self.ask_git(method).await? } else { String::new() };
        let room = Arc::clone(&self.room);
        let read =
            move |_: &Tree| git::read_places(&room.top, room.outer.as_ref(), &printed, &room.config.home).map(Arc::new);
        let places = self.on_files(read).await?;
        *lock(&self.places) = Some((Seen::now(root, outer, &places), Arc::clone(&places)));
        Ok(places)
    }

    /// What git says of its places. Where it must not read one of its files in its fence it says nothing, so it is given those.
    async fn ask_git(&self, method: &Method) -> Result<String> {
        let room = Arc::clone(&self.room);
        let waits = self.on_files(move |_| Ok(git::strange(&room.top, Path::new(".git")).waited_for)).await?;
        if !waits.is_empty() {
            let names: Vec<String> = waits.iter().map(|name| name.to_string_lossy().into_owned()).collect();
            return Err(Error::GitWaits { names: named(&names, WAITS_NAMED_MAX) });
        }
        let fence = Fence::closed(Access::Read);
        let mut also: Vec<PathBuf> = Vec::new();
        loop {
            let (find, watch) = (git::find(&self.room.around, &also), Watch::unattended());
            let result = run_in(&self.spawner, &self.room, method, find, &fence, watch, &Held::default()).await?;
            if result.timed_out {
                return Err(Error::GitSilent { seconds: result.duration.as_secs() });
            }
            if result.stdout.truncated {
                let what = "the number of bytes in which git names the files that it obeys".to_owned();
                let limit = git::FOUND_BYTES_MAX as u64;
                return Err(Error::Limit { what, actual: result.stdout.bytes, limit });
            }
            let unreadable = git::unreadable(&result.stdout.text);
            if unreadable.is_empty()
                && let Some(said) = git::refused(&result.stdout.text)
            {
                return Err(Error::GitRefuses { said });
            }
            if unreadable.is_empty() {
                return Ok(result.stdout.text);
            }
            let new: Vec<PathBuf> = unreadable.iter().filter(|path| !also.contains(path)).cloned().collect();
            if new.is_empty() || also.len() >= ALSO_MAX {
                return Err(Error::GitUnreadable { path: unreadable[0].display().to_string() });
            }
            also.extend(new);
        }
    }

    /// Takes repositories that were added to an index out of it again, and those that a command made where another branch
    /// has a submodule; answers their folders.
    async fn forget_repositories(&self, method: &Method, before: &Places) -> Result<Vec<String>> {
        let new = self.places(method).await.map(|places| places.new_repositories(before));
        let is_closed = || {
            let before = before.clone();
            self.on_files(move |_| Ok(before.has_closed_index()))
        };
        let held = before.clone();
        let cleared = self
            .on_files(move |_| {
                held.purge_packed()?;
                held.clear_branched()
            })
            .await?;
        if let (Ok(new), false, false) = (&new, is_closed().await?, before.has_tables())
            && new.is_empty()
        {
            return Ok(cleared);
        }
        let fence = Fence::closed(Access::Write);
        let held = git::of_git_itself(&self.room.top, self.room.outer.as_ref());
        let command = git::forget(&self.room.root, before);
        let result =
            run_in(&self.spawner, &self.room, method, command.into(), &fence, Watch::unattended(), &held).await?;
        let left = self.places(method).await?.new_repositories(before);
        if left.is_empty() && !is_closed().await? {
            let said = result.stdout.text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned);
            // Where git could not say what is new, the names are those in the indexes.
            let mut all = new.ok().filter(|new| !new.is_empty()).unwrap_or_else(|| said.collect());
            all.extend(cleared);
            return Ok(all);
        }
        tracing::error!(
            stderr = result.stderr.text,
            "a repository that a command added is still in an index, a branch, a tag or a stash"
        );
        Err(Error::NotRestored {
            names: if left.is_empty() { "an index".to_owned() } else { named(&left, git::NAMED_MAX) },
        })
    }

    /// Whether a command is under way, of whatever host.
    async fn is_in_use(&self) -> Result<bool> {
        let guard = self.guard.clone();
        self.on_files(move |_| Ok(guard.is_in_use())).await
    }

    /// Refuses further commands where the person's git obeys something now that it did not when the last command began, because
    /// their settings name it since: the command may have written it. In the turn in which the last one ended: a command that is
    /// under way can change settings, and one that begins meanwhile would take what is named by then for the person's.
    async fn refuse_newly_named(&self, method: &Method, before: &Places, turn: &Turn) -> Result<()> {
        let names = self.places(method).await?.named_since(before, method.tier == Tier::Full);
        if names.is_empty() {
            return Ok(());
        }
        let names = named(&names, git::NAMED_MAX);
        turn.refuse_until_accepted(names.clone())?;
        Err(Error::Exchanged { names })
    }

    /// The same for a command that ends while others are under way. Where those can write settings themselves, as in the Landlock
    /// tier, the last of them puts them back and looks then; the call fails all the same.
    async fn refuse_named_beside(&self, method: &Method, before: &Places, names: Vec<String>) -> Result<()> {
        if method.tier != Tier::Full {
            // Where git cannot be asked, because a command is at its files, the last one asks.
            let names = self.named_beside(method, before).await.unwrap_or_default();
            return if names.is_empty() {
                Ok(())
            } else {
                Err(Error::NamedSince { names: named(&names, git::NAMED_MAX) })
            };
        }
        if names.is_empty() {
            return Ok(());
        }
        let names = named(&names, git::NAMED_MAX);
        let (guard, noted) = (self.guard.clone(), names.clone());
        self.on_files(move |_| guard.refuse_until_accepted(noted)).await?;
        Err(Error::Exchanged { names })
    }

    async fn named_beside(&self, method: &Method, before: &Places) -> Result<Vec<String>> {
        Ok(self.places(method).await?.named_since(before, method.tier == Tier::Full))
    }

    /// Takes repositories out of the index that commands of a host which was killed have added to it. Until that succeeds,
    /// further commands that write are refused.
    ///
    /// # Errors
    /// One is still in an index, a branch, a tag or a stash, or git does not answer.
    pub async fn settle(&self) -> Result<Vec<String>> {
        let guard = self.guard.clone();
        let Some(turn) = self.on_files(move |_| guard.unsettled()).await? else { return Ok(Vec::new()) };
        match self.fence().await? {
            (Some(method), _) if method.tier != Tier::Off => self.settle_in(method, &turn).await,
            _ => Ok(Vec::new()),
        }
    }

    async fn settle_in(&self, method: &Method, turn: &Turn) -> Result<Vec<String>> {
        let Some(before) = turn.unsettled()? else { return Ok(Vec::new()) };
        let forgotten = self.forget_repositories(method, &before).await?;
        turn.settled()?;
        Ok(forgotten)
    }

    /// Refuses a change by a file tool of what git obeys, in the workspace's own files.
    ///
    /// With `follow` what a link at the end of a path leads to is changed, as a write does.
    async fn check_obeyed(&self, paths: &[&WsPath], follow: bool) -> Result<()> {
        let (Some(method), _) = self.fence().await? else { return Ok(()) };
        if method.tier == Tier::Off {
            return Ok(());
        }
        let places = match self.places(method).await {
            // A command has moved what git reads while the fence for git was made.
            Err(Error::FenceBuild { .. }) if self.is_in_use().await? => return Err(Error::CommandUnderWay),
            places => places?,
        };
        for path in paths {
            // Where it leads nowhere, the change itself says so.
            let real = self.spot(path, follow).await.map_or_else(|_| (*path).clone(), |spot| spot.path);
            if places.hold(&self.room.root, Path::new(real.as_str())) {
                return Err(Error::GitObeys { path: path.to_string() });
            }
        }
        Ok(())
    }

    /// Refuses a command whose folder is none.
    async fn check_folder(&self, cwd: &WsPath) -> Result<()> {
        if cwd.is_root() {
            return Ok(());
        }
        let cwd = cwd.clone();
        self.on_files(move |tree| {
            let folder = tree.dir().open_dir(cwd.as_str());
            folder.map(|_| ()).map_err(|e| match e.raw_os_error() {
                Some(libc::ENOTDIR) => Error::NotFolder { path: cwd.to_string() },
                _ => from_io(cwd.as_str(), e),
            })
        })
        .await
    }

    /// The command with the private folders of its session. Git of the host's tools has none: it would obey what commands leave there.
    async fn in_session(&self, method: &Method, command: Command) -> Result<Job> {
        let mut job = Job::from(command);
        let Some(session) = job.session.clone().filter(|_| !job.is_git && self.room.keeps_sessions) else {
            return Ok(job);
        };
        if let Some(folders) = self.sessions.enter_at_once(&session) {
            job.folders = Some(Arc::new(folders));
            return Ok(job);
        }
        let config = &self.room.config;
        let making = Making {
            parent: config.sessions.clone(),
            owner: method.identity.become_user(),
            mounted_home: (method.tier == Tier::Full).then(|| config.home.clone()),
            mounts: config.toolchains.iter().cloned().chain(self.room.folders()).collect(),
            limits: config.limits,
        };
        let sessions = Arc::clone(&self.sessions);
        match self.on_files(move |_| sessions.enter(&session, making)).await {
            Ok(folders) => job.folders = Some(Arc::new(folders)),
            // Such as a full disk, on which an agent still has to remove files.
            Err(Error::Io { source, .. }) => tracing::warn!(%source, "a session's `/tmp` and home do not last"),
            Err(error) => return Err(error),
        }
        Ok(job)
    }

    async fn refs(&self) -> Result<Refs> {
        let room = Arc::clone(&self.room);
        self.on_files(move |_| Ok(Refs::read(&room.top))).await
    }

    /// Holds what git obeys for a command that may write; answers what that is, too, where a command could change it.
    async fn hold(&self, method: &Method, command: &Command) -> Result<(Held, Option<Arc<Places>>)> {
        if method.tier == Tier::Off {
            // A command of another host may be fenced, and gain by it.
            let (guard, changes_files) = (self.guard.clone(), command.changes_files);
            let alone = self.on_files(move |_| changes_files.then(|| guard.alone()).transpose()).await?;
            return Ok((Held::default().with(alone)?, None));
        }
        if command.is_git {
            let (room, guard, changes_files) = (Arc::clone(&self.room), self.guard.clone(), command.changes_files);
            return self
                .on_files(move |tree| {
                    // Git would obey what a person has not looked at yet, and it can write `.git`.
                    guard.finish_failed()?;
                    if tree.dir().symlink_metadata(".git").is_err() && guard.is_in_use() {
                        return Err(Error::CommandUnderWay);
                    }
                    let alone = if changes_files { Some(guard.alone()?) } else { None };
                    Ok((git::of_git_itself(&room.top, room.outer.as_ref()).with(alone)?, None))
                })
                .await;
        }
        let guard = self.guard.clone();
        let reach = if method.tier == Tier::Full { Reach::Mounted } else { Reach::All };
        let (begun, places) = match self.on_files(move |_| guard.begin(reach)).await? {
            Begun::Alone(turn) => {
                // What is in the index from here on is the person's.
                self.settle_in(method, &turn).await?;
                (git::Started::Alone(turn), self.places(method).await?)
            }
            Begun::Beside(lease, places) => (git::Started::Beside(lease), Arc::new(places)),
        };
        let is_beside = matches!(begun, git::Started::Beside(_));
        let (room, tier) = (Arc::clone(&self.room), method.tier);
        let found = Arc::clone(&places);
        let held = self.on_files(move |_| git::hold(begun, tier, &room.top, &found)).await?;
        if is_beside {
            // What others hold is what settings named when the first of them began. Asked once this command holds it, too: the empty
            // folder in place of a `.git` would come and go with the others.
            let new = self.places(method).await?.obeyed_since(&places, tier == Tier::Full);
            if !new.is_empty() {
                return Err(Error::NamedSince { names: named(&new, git::NAMED_MAX) });
            }
        }
        Ok((held, Some(places)))
    }

    /// The workspace's folder, through no link.
    pub fn root(&self) -> &Path {
        &self.room.root
    }
}

/// Tells a walk that nobody waits for it any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How absolute paths may spell the workspace's folder, which was opened as `given`.
fn names_of_root(given: &Path, root: &Path, home: &Path) -> Vec<String> {
    let given = Some(given).filter(|given| given.is_absolute() && *given != root);
    let at_home = root.strip_prefix(home).ok().map(|below| Path::new("~").join(below));
    let spelled = [Some(root), given, at_home.as_deref()].into_iter().flatten();
    let spelled = spelled.filter_map(Path::to_str).map(|path| path.trim_end_matches('/').to_owned());
    spelled.filter(|path| !path.is_empty()).collect()
}

impl Executor for LocalExecutor {
    fn names_of_root(&self) -> &[String] {
        &self.room.names
    }

    fn read<'a>(&'a self, path: &'a WsPath, span: ReadSpan) -> BoxFuture<'a, Result<Content>> {
        Box::pin(async move {
            if let Some(content) = self.tree.read_cached(path, span) {
                return Ok(content);
            }
            let path = path.clone();
            self.on_files(move |tree| tree.read(&path, span)).await
        })
    }

    fn write<'a>(&'a self, path: &'a WsPath, bytes: Vec<u8>, guard: WriteGuard) -> BoxFuture<'a, Result<Written>> {
        Box::pin(async move {
            self.check_obeyed(&[path], true).await?;
            let path = path.clone();
            self.on_files(move |tree| tree.write(&path, &bytes, &guard)).await
        })
    }

    fn spot<'a>(&'a self, path: &'a WsPath, follow: bool) -> BoxFuture<'a, Result<Spot>> {
        let path = path.clone();
        Box::pin(self.on_files(move |tree| tree.spot(&path, follow)))
    }

    fn rename<'a>(&'a self, from: &'a WsPath, to: &'a WsPath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.check_obeyed(&[from, to], false).await?;
            let (from, to, guard) = (from.clone(), to.clone(), self.guard.clone());
            self.on_files(move |tree| {
                // A link that is moved into a folder's place would lead git's writes elsewhere.
                let _nobody = guard.while_nobody_is_alone()?;
                tree.rename(&from, &to)
            })
            .await
        })
    }

    fn remove<'a>(&'a self, path: &'a WsPath, expected_sha256: Option<&'a str>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.check_obeyed(&[path], false).await?;
            let (path, expected) = (path.clone(), expected_sha256.map(str::to_owned));
            self.on_files(move |tree| tree.remove(&path, expected.as_deref())).await
        })
    }

    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<Listing>> {
        Box::pin(self.on_walk(move |walk| walk.list(&query)))
    }

    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<SearchPage>> {
        Box::pin(self.on_walk(move |walk| walk.search(&query)))
    }

    fn run<'a>(&'a self, command: Command, fence: &'a Fence, watch: Watch) -> BoxFuture<'a, Result<CommandResult>> {
        Box::pin(async move {
            let (method, report) = self.fence().await?;
            let method = method.as_ref().ok_or_else(|| {
                // The reasons name host paths: they are the operator's, who finds them in the log and in `doctor`.
                tracing::error!(why = report.why.join("; "), "no fence holds here");
                no_fence()
            })?;
            self.check_folder(&command.cwd).await?;
            let command = self.in_session(method, command).await?;
            if fence.workspace == Access::Read {
                return run_in(&self.spawner, &self.room, method, command, fence, watch, &Held::default()).await;
            }
            let (held, places) = self.hold(method, &command).await?;
            // Where the index can be written, a repository of the command's own could be added to it.
            let before = places.as_ref().filter(|_| method.tier == Tier::Landlock);
            let refs = match before {
                Some(_) => Some(self.refs().await?),
                None => None,
            };
            let result = run_in(&self.spawner, &self.room, method, command, fence, watch, &held).await;
            // Where this command cannot write settings, it is asked what they name while it still holds what it held.
            let beside = match &places {
                Some(places) if method.tier == Tier::Full => {
                    self.named_beside(method, places).await.unwrap_or_default()
                }
                _ => Vec::new(),
            };
            // Before the result: a command that has left git armed has not simply ended.
            let (mut restored, turn) = self.on_files(move |_| held.end()).await?;
            if let Some(before) = before {
                restored.extend(self.forget_repositories(method, before).await?);
            }
            let others_are_at_work = turn.is_none();
            // Else the command that ends last does this.
            if let Some(turn) = turn {
                if before.is_some() {
                    restored.extend(self.settle_in(method, &turn).await?);
                }
                if let Some(places) = &places {
                    self.refuse_newly_named(method, places, &turn).await?;
                }
                turn.end();
            } else if let Some(places) = &places {
                self.refuse_named_beside(method, places, beside).await?;
            }
            let refs_changed = match refs {
                Some(refs) => refs.changes(&self.refs().await?, others_are_at_work),
                None => Vec::new(),
            };
            if matches!(result, Err(Error::Cancelled)) && !(restored.is_empty() && refs_changed.is_empty()) {
                let refs_changed = refs_changed.into_iter().map(|change| change.name).collect();
                return Err(Error::CancelledAfter { restored, refs_changed });
            }
            result.map(|result| CommandResult { restored, refs_changed, ..result })
        })
    }

    fn remote(&self, name: &str) -> Option<&Remote> {
        let mut granted: Vec<&Remote> = self
            .room
            .config
            .remotes
            .iter()
            .filter(|remote| remote.name == name && remote.is_for(&self.room.root))
            .collect();
        // One for this workspace goes before one for all.
        granted.sort_by_key(|remote| remote.workspace.is_none());
        granted.first().copied()
    }

    fn run_remote<'a>(
        &'a self,
        remote: &'a Remote,
        order: RemoteCommand,
        watch: Watch,
    ) -> BoxFuture<'a, Result<RemoteResult>> {
        Box::pin(async move {
            let (method, _) = self.fence().await?;
            let method = method.as_ref().ok_or_else(no_fence)?;
            remote::run(&self.spawner, &self.room, method, remote, order, watch).await
        })
    }

    fn git_obeys(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        Box::pin(async {
            let mut paths = vec![POLICY_FILE.to_owned(), STATE_FOLDER.to_owned()];
            if let (Some(method), _) = self.fence().await?
                && method.tier != Tier::Off
            {
                paths.extend(self.places(method).await?.named(&self.room.root));
            }
            Ok(paths)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let sessions = Arc::clone(&self.sessions);
        Box::pin(async move {
            let removing = tokio::task::spawn_blocking(move || sessions.close()).await;
            if let Err(error) = removing {
                tracing::warn!(%error, "the private folders of sessions");
            }
        })
    }

    fn report(&self) -> BoxFuture<'_, FenceReport> {
        Box::pin(async {
            let found = self.fence.get(&self.spawner, &self.room).await;
            found.map_or_else(|busy| busy, |(_, report)| report.clone())
        })
    }
}

fn no_fence() -> Error {
    Error::NoFence { why: "the fence that the operator asks for cannot be built on this machine".to_owned() }
}
