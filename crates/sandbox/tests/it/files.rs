//! Hostile paths and hostile files: what file tools meet in a workspace that somebody else has filled.

pub(crate) mod races;

use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use toolhost_contract::workspace::{
    Command, Error, ErrorKind, Executor, ListQuery, ReadSpan, WriteGuard, Written, WsPath,
};
use toolhost_sandbox::FenceChoice;

use crate::room::{Room, SECRET, WHOLE, everything, look_for, path};

/// Does everything a file tool can do with `place` and the names around it; answers what was said.
async fn try_everything(room: &Room, place: &str) -> String {
    let executor = &room.executor;
    let mut said = Vec::new();
    let mut note = |what: &str, answer: String| said.push(format!("{what}: {answer}"));
    let inside = path("inside.txt");
    for target in [place.to_owned(), format!("{place}/secret.txt"), format!("{place}/new/er/file")] {
        let Ok(target) = WsPath::parse(&target) else { continue };
        let read = executor.read(&target, WHOLE).await;
        note("read", format!("{:?}", read.map(|content| String::from_utf8_lossy(&content.bytes).into_owned())));
        note("search", format!("{:?}", executor.search(look_for("secret", target.as_str())).await));
        note("list", format!("{:?}", executor.list(everything(target.as_str())).await));
        for create_only in [true, false] {
            let guard = WriteGuard { expected_sha256: None, create_only, ..WriteGuard::default() };
            note("write", format!("{:?}", executor.write(&target, b"written".to_vec(), guard).await));
        }
        note("rename to", format!("{:?}", executor.rename(&inside, &target).await));
        if !room.ws().join("inside.txt").exists() {
            // It moved within the workspace; the next round needs it again.
            std::fs::write(room.ws().join("inside.txt"), "inside").unwrap();
        }
        note("rename from", format!("{:?}", executor.rename(&target, &path("stolen")).await));
        note("read what was renamed", format!("{:?}", read_text(room, "stolen").await));
        note("rename back", format!("{:?}", executor.rename(&path("stolen"), &target).await));
    }
    note("search all", format!("{:?}", executor.search(look_for("outside", ".")).await));
    note("list all", format!("{:?}", executor.list(everything(".")).await));
    note("remove below", format!("{:?}", executor.remove(&path(&format!("{place}/secret.txt")), None).await));
    note("remove", format!("{:?}", executor.remove(&path(place), None).await));
    said.join("\n")
}

async fn read_text(room: &Room, file: &str) -> Result<String, Error> {
    let content = room.executor.read(&path(file), WHOLE).await?;
    Ok(String::from_utf8_lossy(&content.bytes).into_owned())
}

async fn write(room: &Room, file: &str, text: &str) -> Result<Written, Error> {
    room.executor.write(&path(file), text.into(), WriteGuard::default()).await
}

/// Where a way out leads, so that each is known to be one before it is tried.
#[derive(Clone, Copy, PartialEq)]
enum LeadsTo {
    SecretFile,
    OutsideFolder,
    SomethingElse,
}

/// A place to try, the links that make it one (name and target), and where it leads.
type WayOut = (&'static str, &'static [(&'static str, &'static str)], LeadsTo);

/// Rules: 002.2, 002.50, 002.52, 002.75.
#[tokio::test(flavor = "multi_thread")]
async fn no_link_leads_a_file_tool_out_of_the_workspace() {
    use LeadsTo::{OutsideFolder, SecretFile, SomethingElse};
    let cases: &[WayOut] = &[
        ("l", &[("l", "{out}")], OutsideFolder),
        ("l", &[("l", "../outside")], OutsideFolder),
        ("l", &[("l", "./../ws/../outside")], OutsideFolder),
        ("l", &[("l", "{out}/secret.txt")], SecretFile),
        ("l", &[("l", "../outside/secret.txt")], SecretFile),
        ("l", &[("l", "l2"), ("l2", "../outside")], OutsideFolder),
        ("l", &[("l", "sub/l2"), ("sub/l2", "../../outside/secret.txt")], SecretFile),
        ("up/outside", &[("up", "..")], OutsideFolder),
        ("sub/up/outside", &[("sub/up", "../..")], OutsideFolder),
        ("up/ws/up/outside/secret.txt", &[("up", "..")], SecretFile),
        ("root{out}", &[("root", "/proc/self/root")], OutsideFolder),
        ("root{out}", &[("root", "/")], OutsideFolder),
        ("fd", &[("fd", "{fd}")], OutsideFolder),
        ("l", &[("l", "{fd}/secret.txt")], SecretFile),
        ("l", &[("l", "l2"), ("l2", "{fd}")], OutsideFolder),
        ("cwd", &[("cwd", "/proc/self/cwd")], SomethingElse),
        ("exe", &[("exe", "/proc/self/exe")], SomethingElse),
        ("l", &[("l", "../outside/not-there")], SomethingElse),
        ("l", &[("l", "{out}/not-there")], SomethingElse),
        ("l", &[("l", "../outside/not/there")], SomethingElse),
        ("l", &[("l", "..")], SomethingElse),
        ("l", &[("l", "l")], SomethingElse),
        ("l", &[("l", "l2"), ("l2", "l")], SomethingElse),
    ];
    for (place, links, leads_to) in cases {
        let room = Room::new();
        let handle = std::fs::File::open(room.outside()).unwrap();
        let fill = |text: &str| {
            let fd = format!("/proc/self/fd/{}", handle.as_raw_fd());
            text.replace("{out}", room.outside().to_str().unwrap()).replace("{fd}", &fd)
        };
        std::fs::create_dir(room.ws().join("sub")).unwrap();
        std::fs::write(room.ws().join("inside.txt"), "inside").unwrap();
        for (name, target) in *links {
            symlink(fill(target), room.ws().join(name)).unwrap();
        }
        let (place, case) = (fill(place), format!("{place} by {links:?}"));
        let ambient = room.ws().join(&place);
        match leads_to {
            SecretFile => assert_eq!(std::fs::read_to_string(ambient).unwrap(), SECRET, "{case}"),
            OutsideFolder => assert_eq!(std::fs::read_to_string(ambient.join("secret.txt")).unwrap(), SECRET, "{case}"),
            SomethingElse => {}
        }
        if *leads_to != SomethingElse {
            for answer in [
                read_text(&room, &place).await.map(drop),
                room.executor.list(everything(&place)).await.map(drop),
                room.executor.search(look_for("x", &place)).await.map(drop),
                write(&room, &place, "x").await.map(drop),
                write(&room, &format!("{place}/new/er"), "x").await.map(drop),
            ] {
                let refused = answer.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Security, "{case}: {refused:?}");
            }
        }
        let said = try_everything(&room, &place).await;
        room.assert_untouched(&format!("{case}:\n{said}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_starts_in_a_folder_outside() {
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::fenced(choice);
        symlink("../outside", room.ws().join("l")).unwrap();
        symlink("..", room.ws().join("up")).unwrap();
        for folder in ["l", "up", "up/outside"] {
            let mut command = Command::new(["cat", "secret.txt"], std::time::Duration::from_secs(20));
            command.cwd = path(folder);
            let refused = room.run(command, toolhost_contract::workspace::Access::Write).await.unwrap_err();
            assert!(matches!(refused, Error::Escape { .. }), "{folder}: {refused:?}");
        }
    }
}

/// Rules: 002.47, 002.48, 002.49, 002.52, 004.6.
#[tokio::test(flavor = "multi_thread")]
async fn paths_that_say_by_themselves_that_they_leave_are_refused() {
    for text in ["..", "a/../../outside/secret.txt", "/etc/passwd", "a\0b", "", r"C:\x", r"\\server\share"] {
        assert!(WsPath::parse(text).is_err(), "{text:?}");
    }
    // What Windows puts before a long path says nothing of where it leads.
    assert_eq!(WsPath::parse(r"\\?\notes.txt").unwrap().as_str(), "notes.txt");
    assert!(WsPath::parse(r"\\?\C:\x").is_err());
    let long = "d/".repeat(3000);
    assert!(matches!(WsPath::parse(&long), Err(toolhost_contract::workspace::PathError::TooLong(6000))));
    assert!(matches!(WsPath::parse(&"n".repeat(300)), Err(toolhost_contract::workspace::PathError::NameTooLong(300))));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_stay_inside_are_followed_and_stay_links() {
    let room = Room::new();
    write(&room, "real/file", "one").await.unwrap();
    for (name, target) in [("to-file", "real/file"), ("to-folder", "real"), ("real/up", "../real/file")] {
        symlink(target, room.ws().join(name)).unwrap();
    }
    for (n, place) in ["to-file", "to-folder/file", "real/up", "to-folder/up"].into_iter().enumerate() {
        let text = format!("written {n}");
        assert!(!write(&room, place, &text).await.unwrap().created);
        assert_eq!(read_text(&room, "real/file").await.unwrap(), text, "{place}");
        assert_eq!(read_text(&room, place).await.unwrap(), text, "{place}");
    }
    write(&room, "to-folder/new/file", "made").await.unwrap();
    assert_eq!(read_text(&room, "real/new/file").await.unwrap(), "made");
    for link in ["to-file", "to-folder", "real/up"] {
        assert!(room.ws().join(link).symlink_metadata().unwrap().is_symlink(), "{link}");
    }
    room.executor.remove(&path("to-file"), None).await.unwrap();
    room.executor.rename(&path("to-folder"), &path("renamed")).await.unwrap();
    assert_eq!(std::fs::read_link(room.ws().join("renamed")).unwrap(), Path::new("real"));
    assert_eq!(read_text(&room, "real/file").await.unwrap(), "written 3");
}

/// Rules: 002.55, 002.85.
#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_replaced_while_open_leads_nowhere_else() {
    for replace_by_link in [true, false] {
        let room = Room::new();
        write(&room, "inside.txt", "inside").await.unwrap();
        let (ws, moved) = (room.ws(), room.folder.path().join("moved"));
        std::fs::rename(&ws, &moved).unwrap();
        if replace_by_link {
            symlink("outside", &ws).unwrap();
        } else {
            std::fs::create_dir(&ws).unwrap();
            std::fs::write(ws.join("secret.txt"), SECRET).unwrap();
        }
        assert_eq!(read_text(&room, "inside.txt").await.unwrap(), "inside");
        write(&room, "new/er.txt", "text").await.unwrap();
        assert_eq!(std::fs::read_to_string(moved.join("new/er.txt")).unwrap(), "text");
        let said = format!(
            "{:?} {:?} {:?} {:?}",
            read_text(&room, "secret.txt").await,
            room.executor.list(everything(".")).await,
            room.executor.search(look_for("secret", ".")).await,
            room.executor.remove(&path("secret.txt"), None).await,
        );
        assert!(!said.contains(SECRET) && !said.contains("Entry { path: \"secret.txt\""), "{said}");
        assert_eq!(std::fs::read_to_string(ws.join("secret.txt")).unwrap(), SECRET);
        // Back to how the room was, for the look at what is outside.
        if replace_by_link {
            std::fs::remove_file(&ws).unwrap();
        } else {
            toolhost_sandbox::remove_folder(&ws).unwrap();
        }
        std::fs::rename(&moved, &ws).unwrap();
        room.assert_untouched(&said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gits_own_folder_is_not_changed_by_file_tools_in_any_spelling() {
    let furnish = |ws: &Path| {
        for folder in [".git/hooks", "sub/.git/hooks", ".GIT"] {
            std::fs::create_dir_all(ws.join(folder)).unwrap();
        }
        for (name, target) in [
            ("l", ".git"),
            ("l2", "l"),
            ("c", ".git/config"),
            ("h", ".git/hooks"),
            ("s", "sub/.git"),
            ("d", ".git/new"),
        ] {
            symlink(target, ws.join(name)).unwrap();
        }
        std::fs::write(ws.join(".git/config"), "[core]\n").unwrap();
        std::fs::write(ws.join("inside.txt"), "inside").unwrap();
    };
    let room = Room::with(FenceChoice::Auto, furnish, |_| {});
    for place in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/new",
        ".git",
        "./.git//hooks/x",
        ".GIT/config",
        ".Git/x",
        "sub/.git/hooks/x",
        "sub/.git",
        ".git./config",
        ".git /config",
        ".git::$INDEX_ALLOCATION/config",
        "GIT~1/config",
        ".g\u{200c}it/config",
        ".gi\u{feff}t/config",
        "l/config",
        "l/hooks/x",
        "l/new/x",
        "l2/config",
        "h/x",
        "h/new/x",
        "s/hooks/x",
        r".git\config",
    ] {
        for refused in [
            write(&room, place, "x").await.map(drop),
            room.executor.rename(&path("inside.txt"), &path(place)).await,
            room.executor.rename(&path(place), &path("moved")).await,
            room.executor.remove(&path(place), None).await,
        ] {
            // Moving and removing say "not found" where that comes first.
            let refused = refused.unwrap_err();
            assert!(matches!(refused, Error::GitInternal { .. } | Error::NotFound { .. }), "{place}: {refused:?}");
        }
    }
    // A write follows a link at the end, also one to what is not there yet.
    assert!(matches!(write(&room, "c", "x").await, Err(Error::GitInternal { .. })));
    assert_eq!(write(&room, "d", "x").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(std::fs::read_to_string(room.ws().join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(std::fs::read_dir(room.ws().join(".git")).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(room.ws().join(".git/hooks")).unwrap().count(), 0);
    for fine in [".gitignore", ".github/workflows/ci.yml", "git", "legit/.gitkeep"] {
        write(&room, fine, "x").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_regular_file_is_refused_without_waiting() {
    let room = Room::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, room.ws().join("fifo"), Mode::from_raw_mode(0o666)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(room.ws().join("socket")).unwrap();
    symlink("/dev/zero", room.ws().join("zero")).unwrap();
    symlink("/dev/tty", room.ws().join("tty")).unwrap();
    symlink("fifo", room.ws().join("to-fifo")).unwrap();
    for (file, expected) in [
        ("fifo", ErrorKind::Validation),
        ("to-fifo", ErrorKind::Validation),
        ("socket", ErrorKind::Validation),
        ("zero", ErrorKind::Security),
        ("tty", ErrorKind::Security),
    ] {
        for answer in [
            read_text(&room, file).await.map(drop),
            write(&room, file, "x").await.map(drop),
            room.executor.search(look_for("x", file)).await.map(drop),
        ] {
            let refused = answer.unwrap_err();
            assert_eq!(refused.kind(), expected, "{file}: {refused:?}");
        }
    }
    let found = room.executor.search(look_for("x", ".")).await.unwrap();
    assert_eq!(found.total, 0);
    assert_eq!(room.executor.list(everything(".")).await.unwrap().total, 5);
    for file in ["fifo", "socket", "zero", "tty", "to-fifo"] {
        room.executor.remove(&path(file), None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_refused() {
    if !crate::room::is_root() {
        // Only root can put one there.
        return;
    }
    let room = Room::new();
    let device = rustix::fs::makedev(1, 5);
    let node = room.ws().join("zero");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &node,
        rustix::fs::FileType::CharacterDevice,
        Mode::from_raw_mode(0o666),
        device,
    )
    .unwrap();
    assert!(matches!(read_text(&room, "zero").await, Err(Error::NotRegular { what: "a device", .. })));
    assert!(matches!(write(&room, "zero", "x").await, Err(Error::NotRegular { what: "a device", .. })));
    assert!(matches!(room.executor.search(look_for("x", "zero")).await, Err(Error::NotRegular { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_larger_than_memory_costs_what_is_read_of_it() {
    const TERABYTE: u64 = 1 << 40;
    let room = Room::new();
    std::fs::File::create(room.ws().join("sparse")).unwrap().set_len(TERABYTE).unwrap();
    for start in [0, TERABYTE / 2, TERABYTE - 10, TERABYTE + 10] {
        let content = room.executor.read(&path("sparse"), ReadSpan { start, bytes_max: 1000 }).await.unwrap();
        let expected = usize::try_from(TERABYTE.saturating_sub(start).min(1000)).unwrap();
        assert_eq!((content.bytes.len(), content.size), (expected, TERABYTE));
    }
    assert_eq!(room.executor.search(look_for("x", ".")).await.unwrap().total, 0);
    assert_eq!(room.executor.list(everything(".")).await.unwrap().entries[0].size, Some(TERABYTE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_while_it_is_read_gives_no_more_than_was_asked() {
    use std::io::Write;
    let room = Room::new();
    write(&room, "growing", "start\n").await.unwrap();
    let mut file = std::fs::File::options().append(true).open(room.ws().join("growing")).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let done = std::sync::Arc::new(done);
    let stop = std::sync::Arc::clone(&done);
    let writer = std::thread::spawn(move || {
        let chunk = [b'x'; 4096];
        // Bounded, so that a broken reader cannot fill the disk.
        for _ in 0..20_000 {
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            file.write_all(&chunk).unwrap();
        }
    });
    let mut sizes = Vec::new();
    for _ in 0..200 {
        let content = room.executor.read(&path("growing"), ReadSpan { start: 0, bytes_max: 5000 }).await.unwrap();
        assert!(content.bytes.len() <= 5000 && content.bytes.starts_with(b"start\n"));
        sizes.push(content.size);
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
    assert!(sizes.is_sorted(), "{sizes:?}");
    assert_eq!(room.executor.search(look_for("start", ".")).await.unwrap().total, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_thousands_of_folders_deep_overflows_no_stack() {
    const DEPTH: usize = 3000;
    let room = Room::new();
    std::fs::write(room.ws().join("top.txt"), "needle").unwrap();
    // By handle, for the whole path is longer than the kernel takes.
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    let mut folder = rustix::fs::open(room.ws(), flags, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        rustix::fs::mkdirat(&folder, "d", Mode::from_raw_mode(0o755)).unwrap();
        folder = rustix::fs::openat(&folder, "d", flags, Mode::empty()).unwrap();
    }
    let listing = room.executor.list(everything(".")).await.unwrap();
    assert!(listing.total > 1000, "{}", listing.total);
    assert_eq!(room.executor.search(look_for("needle", ".")).await.unwrap().total, 1);
    // The deepest path there is a name for, and a write that would have to make all of it.
    let longest = |name: &str| format!("{}f", format!("{name}/").repeat(2047));
    for name in ["d", "n"] {
        write(&room, &longest(name), "deep").await.unwrap();
        assert_eq!(read_text(&room, &longest(name)).await.unwrap(), "deep");
    }
    drop(folder);
    remove_by_handle(&room.ws(), "n");
    remove_by_handle(&room.ws(), "d");
}

/// `rm -r` for a chain of folders of one name: what `TempDir` would do is deeper than its stack.
fn remove_by_handle(root: &Path, name: &str) {
    let removed = std::process::Command::new("rm").arg("-r").arg(root.join(name)).status().unwrap();
    assert!(removed.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_a_hundred_thousand_entries_pages() {
    const ENTRIES: usize = 100_000;
    let room = Room::new();
    let folder = room.ws().join("many");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("000000"), "").unwrap();
    for n in 1..ENTRIES {
        // Many names of one file are made faster than many files; one file takes no more than 65000 names on ext4.
        let first = folder.join(format!("{:06}", n / 50_000 * 50_000));
        let name = folder.join(format!("{n:06}"));
        if first == name { std::fs::write(name, "").unwrap() } else { std::fs::hard_link(first, name).unwrap() }
    }
    let (mut seen, mut after) = (0, None);
    loop {
        let query = ListQuery { limit: 30_000, after: after.take(), ..everything("many") };
        let page = room.executor.list(query).await.unwrap();
        assert_eq!((page.total, page.cut), (ENTRIES, false));
        for entry in &page.entries {
            assert_eq!(entry.path, format!("many/{seen:06}"));
            seen += 1;
        }
        after = page.entries.last().map(|entry| entry.path.clone());
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, ENTRIES);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_not_text_hide_nothing_else() {
    let room = Room::new();
    for name in [&b"bad\xff\xfename"[..], b"new\nline", b"\x1b]52;c;x\x07", b"rtl\xe2\x80\xaetxt", b"plain"] {
        std::fs::write(room.ws().join(std::ffi::OsStr::from_bytes(name)), "needle").unwrap();
    }
    let bad = room.ws().join(std::ffi::OsStr::from_bytes(b"folder\xff"));
    std::fs::create_dir(&bad).unwrap();
    std::fs::write(bad.join("below"), "needle").unwrap();
    let listing = room.executor.list(everything(".")).await.unwrap();
    let listed: Vec<_> = listing.entries.iter().map(|e| e.path.as_str()).collect();
    assert_eq!(listed, ["\u{1b}]52;c;x\u{7}", "new\nline", "plain", "rtl\u{202e}txt"]);
    let found = room.executor.search(look_for("needle", ".")).await.unwrap();
    assert_eq!(found.total, 4);
    for name in listed {
        assert_eq!(read_text(&room, name).await.unwrap(), "needle");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_through_a_hard_link_leaves_the_file_outside_as_it_is() {
    let room = Room::new();
    std::fs::hard_link(room.outside().join("secret.txt"), room.ws().join("shared")).unwrap();
    write(&room, "shared", "written").await.unwrap();
    assert_eq!(read_text(&room, "shared").await.unwrap(), "written");
    room.assert_untouched("");
    std::fs::hard_link(room.outside().join("secret.txt"), room.ws().join("again")).unwrap();
    room.executor.remove(&path("again"), None).await.unwrap();
    room.assert_untouched("");
}

/// Rules: 002.12.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_leaves_nothing_behind() {
    let room = Room::new();
    std::fs::create_dir(room.ws().join("folder")).unwrap();
    write(&room, "file", "before").await.unwrap();
    let digest = Some("0".repeat(64));
    for (place, guard) in [
        ("folder", WriteGuard::default()),
        ("file/below", WriteGuard::default()),
        ("file", WriteGuard { create_only: true, expected_sha256: None, ..WriteGuard::default() }),
        ("file", WriteGuard { create_only: false, expected_sha256: digest, ..WriteGuard::default() }),
    ] {
        assert!(room.executor.write(&path(place), b"x".to_vec(), guard).await.is_err(), "{place}");
    }
    let mut left: Vec<_> = std::fs::read_dir(room.ws()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["file", "folder"]);
    assert_eq!(read_text(&room, "file").await.unwrap(), "before");
    let mode = std::fs::metadata(room.ws().join("file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7000, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_or_moved_does_not_run_as_its_owner_or_group() {
    let room = Room::new();
    let mode = |name: &str| std::fs::metadata(room.ws().join(name)).unwrap().permissions().mode() & 0o7777;
    for (n, bits) in [0o4755, 0o2755, 0o6711].into_iter().enumerate() {
        let (name, moved) = (format!("file{n}"), format!("moved{n}"));
        let arm = |name: &str| {
            std::fs::set_permissions(room.ws().join(name), PermissionsExt::from_mode(bits)).unwrap();
            assert_eq!(mode(name), bits);
        };
        write(&room, &name, "before").await.unwrap();
        arm(&name);
        write(&room, &name, "after").await.unwrap();
        assert_eq!(mode(&name), bits & 0o777);
        let asked = WriteGuard { mode: Some(bits), ..WriteGuard::default() };
        room.executor.write(&path(&name), b"x".to_vec(), asked).await.unwrap();
        assert_eq!(mode(&name), bits & 0o777);
        arm(&name);
        room.executor.rename(&path(&name), &path(&moved)).await.unwrap();
        assert_eq!(mode(&moved), bits & 0o777);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_deep_or_too_long_to_be_looked_at_is_told() {
    let room = Room::new();
    std::fs::write(room.ws().join("near.txt"), "needle\n").unwrap();
    let found = room.executor.search(look_for("needle", ".")).await.unwrap();
    assert!(found.total == 1 && !found.unseen);
    // Deeper than a path may be long.
    let name = "d".repeat(250);
    let mut folder = std::fs::File::open(room.ws()).unwrap();
    for _ in 0..20 {
        let next = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
        std::fs::create_dir(&next).unwrap();
        folder = std::fs::File::open(&next).unwrap();
    }
    std::fs::write(format!("/proc/self/fd/{}/far.txt", folder.as_raw_fd()), "needle\n").unwrap();
    let found = room.executor.search(look_for("needle", ".")).await.unwrap();
    assert!(found.total == 1 && found.unseen, "{found:?}");
    let listed = room.executor.list(everything(".")).await.unwrap();
    assert!(listed.cut, "{listed:?}");
    // Beyond the room for one line.
    let room = Room::new();
    std::fs::write(room.ws().join("line.txt"), format!("{} needle", "a".repeat(5 << 20))).unwrap();
    let found = room.executor.search(look_for("needle", ".")).await.unwrap();
    assert!(found.total == 0 && found.unseen, "{found:?}");
}

/// Each pattern of an ignore file is compared with each name below it: many large files would cost minutes.
#[tokio::test(flavor = "multi_thread")]
async fn ignore_files_have_a_limit_together() {
    let room = Room::new();
    let mut folder = room.ws();
    for _ in 0..5 {
        folder.push("deep");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(".gitignore"), "/foo[a-z]*bar\n".repeat(64 * 1024)).unwrap();
    }
    let query = |include_ignored| ListQuery {
        path: WsPath::root(),
        pattern: None,
        depth_max: None,
        include_hidden: true,
        include_ignored,
        limit: 100,
        after: None,
    };
    let refused = room.executor.list(query(false)).await;
    assert!(matches!(&refused, Err(Error::NotRegular { what, .. }) if what.contains("together")), "{refused:?}");
    assert_eq!(room.executor.list(query(true)).await.unwrap().entries.len(), 10);
}
