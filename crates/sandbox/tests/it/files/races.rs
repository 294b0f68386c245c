//! A folder and a link to outside change places, hundreds of thousands of times, while files are used through the name
//! they share. Whatever is checked before it is used loses this race sooner or later.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{RenameFlags, renameat_with};
use toolhost_contract::workspace::{Executor, WriteGuard};

use crate::room::{Room, SECRET, WHOLE, everything, look_for, path};

/// How long each kind of operation runs against the swapper; and how often at most.
const ROUND_TIME: Duration = Duration::from_millis(1500);
const ROUNDS_MAX: usize = 100_000;

/// Exchanges two names until dropped.
pub(crate) struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapper {
    pub(crate) fn start(folder: &Path, one: &str, other: &str) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (flag, count) = (Arc::clone(&stop), Arc::clone(&swaps));
        let dir = std::fs::File::open(folder).unwrap();
        let (one, other) = (one.to_owned(), other.to_owned());
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                renameat_with(&dir, one.as_str(), &dir, other.as_str(), RenameFlags::EXCHANGE).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }

    /// Ends it and tells how often it swapped.
    pub(crate) fn swaps(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.swaps.load(Ordering::Relaxed)
    }
}

/// `swapped/` is a folder with `secret.txt` of its own or a link to the one outside, from moment to moment.
fn furnished() -> Room {
    let furnish = |ws: &Path| {
        std::fs::create_dir(ws.join("swapped")).unwrap();
        symlink("../outside", ws.join("link")).unwrap();
        std::fs::write(ws.join("swapped/secret.txt"), "harmless").unwrap();
    };
    Room::with(toolhost_sandbox::FenceChoice::Auto, furnish, |_| {})
}

/// Runs `operation` in a loop against the swapper. It answers what it was told, and whether that was a success.
async fn race(what: &str, operation: impl AsyncFn(&Room, usize) -> (bool, String)) {
    let room = furnished();
    let swapper = Swapper::start(&room.ws(), "swapped", "link");
    let (mut succeeded, mut refused) = (0, 0);
    let began = Instant::now();
    for round in 0..ROUNDS_MAX {
        let (success, said) = operation(&room, round).await;
        assert!(!said.contains(SECRET), "{what} in round {round} read the secret: {said}");
        *(if success { &mut succeeded } else { &mut refused }) += 1;
        if began.elapsed() > ROUND_TIME && succeeded > 0 && refused > 0 {
            break;
        }
    }
    let swaps = swapper.swaps();
    let counts = format!("{what}: {swaps} swaps, {succeeded} succeeded, {refused} refused");
    assert!(swaps > 1000 && succeeded > 0 && refused > 0, "not much of a race: {counts}");
    room.assert_untouched(&counts);
}

fn answer<T: std::fmt::Debug>(result: toolhost_contract::workspace::Result<T>) -> (bool, String) {
    (result.is_ok(), format!("{result:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_never_follows_a_swapped_link() {
    race("read", async |room, _| {
        let read = room.executor.read(&path("swapped/secret.txt"), WHOLE).await;
        answer(read.map(|content| String::from_utf8_lossy(&content.bytes).into_owned()))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_never_follows_a_swapped_link() {
    race("write", async |room, round| {
        // Existing file, free name, missing folder.
        let place = ["swapped/secret.txt", "swapped/new.txt", "swapped/new/er/file.txt"][round % 3];
        answer(room.executor.write(&path(place), b"written".to_vec(), WriteGuard::default()).await)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listing_never_follows_a_swapped_link() {
    race("list", async |room, _| {
        // Only the real folder has a `secret.txt` of eight bytes.
        let listing = room.executor.list(everything("swapped")).await;
        let sizes: Vec<_> = listing.iter().flat_map(|l| &l.entries).filter_map(|e| e.size).collect();
        assert!(sizes.iter().all(|size| *size == "harmless".len() as u64), "{listing:?}");
        (listing.as_ref().is_ok_and(|l| l.total > 0), format!("{listing:?}"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn searching_never_follows_a_swapped_link() {
    race("search", async |room, round| {
        let query = look_for(["harmless", "outside"][round % 2], ["swapped", ".", "swapped/secret.txt"][round % 3]);
        let page = room.executor.search(query).await;
        (page.as_ref().is_ok_and(|p| p.total > 0), format!("{page:?}"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn moving_never_follows_a_swapped_link() {
    race("rename", async |room, round| {
        if round % 2 == 0 {
            let result = room.executor.rename(&path("swapped/secret.txt"), &path("taken.txt")).await;
            let taken = std::fs::read_to_string(room.ws().join("taken.txt")).unwrap_or_default();
            return (result.is_ok(), format!("{result:?} {taken}"));
        }
        answer(room.executor.rename(&path("taken.txt"), &path("swapped/secret.txt")).await)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_never_follows_a_swapped_link() {
    race("remove", async |room, _| {
        let result = room.executor.remove(&path("swapped/secret.txt"), None).await;
        for name in ["swapped", "link"] {
            // Whichever of the two is the folder now gets its file again; never through the link.
            let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
            let folder = rustix::fs::open(room.ws().join(name), flags, rustix::fs::Mode::empty());
            let Ok(folder) = folder else { continue };
            let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
            rustix::fs::openat(folder, "secret.txt", flags, rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
        }
        answer(result)
    })
    .await;
}
