//! System calls that a build or a test does not need and an attack does. Each is made by the probe, in the fence and
//! bare: an answer that is the same in both says nothing about the fence.

use std::os::unix::fs::PermissionsExt;

use toolhost_contract::workspace::{Access, Command, Tier};
use toolhost_sandbox::FenceChoice;

use crate::room::{Room, is_root, rooms};

/// Who gets another answer without a fence.
#[derive(Clone, Copy, PartialEq)]
enum Bare {
    Differs,
    DiffersForRoot,
}

const CASES: &[(&str, &str, Bare)] = &[
    ("tcp", "EPERM", Bare::Differs),
    ("tcp6", "EPERM", Bare::Differs),
    ("udp", "EPERM", Bare::Differs),
    ("mptcp", "EPERM", Bare::Differs),
    ("unix", "EPERM", Bare::Differs),
    ("netlink", "EPERM", Bare::Differs),
    ("vsock", "EPERM", Bare::Differs),
    ("packet", "EPERM", Bare::DiffersForRoot),
    ("alg", "EPERM", Bare::Differs),
    ("io-uring", "ENOSYS", Bare::Differs),
    ("keyctl", "EPERM", Bare::Differs),
    ("add-key", "EPERM", Bare::Differs),
    ("unshare-user", "EPERM", Bare::Differs),
    ("unshare-net", "EPERM", Bare::DiffersForRoot),
    ("clone", "EPERM", Bare::Differs),
    ("clone3", "ENOSYS", Bare::Differs),
    ("setns", "EPERM", Bare::DiffersForRoot),
    ("chroot", "EPERM", Bare::DiffersForRoot),
    ("open-tree", "EPERM", Bare::DiffersForRoot),
    ("by-handle", "EPERM", Bare::Differs),
    ("bpf", "EPERM", Bare::Differs),
    ("perf", "EPERM", Bare::Differs),
    ("userfaultfd", "EPERM", Bare::Differs),
    // Bare, standard input is not a terminal; in the fence nobody looks that far.
    ("tiocsti", "EPERM", Bare::Differs),
    ("tiocsti-high", "EPERM", Bare::Differs),
];

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_reach_beyond_a_command_are_refused() {
    let bare = Room::fenced(FenceChoice::Off);
    bare.bring_probe();
    for (probe, answer, differs) in CASES {
        if *differs == Bare::Differs || is_root() {
            let result = bare.bash(&format!("./probe {probe}"), Access::Write).await;
            assert_ne!(result.stdout.text.trim(), *answer, "`{probe}` is refused without a fence: {result:?}");
        }
    }
    for (tier, room) in rooms().await {
        room.bring_probe();
        for (probe, answer, _) in CASES {
            let result = room.bash(&format!("./probe {probe}"), Access::Write).await;
            assert_eq!(result.stdout.text.trim(), *answer, "`{probe}` in {tier:?}: {result:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_programs_do_need_still_works() {
    let script = "./probe socketpair && ./probe mkfifo f && mkdir d && ln -s d l && chmod 700 d && touch -d @5 d
        printf 'int main(){return 7;}' > x.c && gcc -o x x.c; ./x; [ $? = 7 ] || exit 9
        (sleep 0 & wait) && echo $((1+1)) | cat > /dev/null && echo tmp > $TMPDIR/t && echo home > ~/h && echo all-fine";
    for (tier, room) in rooms().await {
        room.bring_probe();
        let result = room.bash(script, Access::Write).await;
        assert!(result.exit_code == 0 && result.stdout.text.ends_with("all-fine\n"), "{tier:?}: {result:?}");
    }
}

/// System calls by which a file or folder can be made to run as its owner or group.
const SET_ID: &[&str] = &[
    "open",
    "tmpfile",
    "high",
    "mkdir",
    "mknod",
    "openat2",
    "chmod",
    "fchmod",
    "fchmodat2",
    #[cfg(target_arch = "x86_64")]
    "old-open",
    #[cfg(target_arch = "x86_64")]
    "creat",
    #[cfg(target_arch = "x86_64")]
    "old-mkdir",
    #[cfg(target_arch = "x86_64")]
    "old-mknod",
    #[cfg(target_arch = "x86_64")]
    "old-chmod",
];

/// What programs use for it, and by which none of the calls above is made directly.
const SET_ID_PROGRAMS: &[&str] = &[
    "cp /bin/true p && chmod 4755 p",
    "cp /bin/true p && chmod g+s p",
    "install -m 6755 /bin/true p",
    "mkdir p && chmod 2777 p",
    "mkdir -m 2755 p",
    "python3 -c 'import os; os.chmod(os.open(\"p\", os.O_CREAT | os.O_RDWR), 0o4755)'",
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_a_command_makes_runs_as_its_owner_or_group() {
    use std::os::unix::fs::MetadataExt;
    let bits_of = |room: &Room| room.ws().join("p").symlink_metadata().map_or(0, |m| m.mode() & 0o6000);
    let clear = "chmod -R u+rwx p; rm -rf p; true";
    let bare = Room::fenced(FenceChoice::Off);
    bare.bring_probe();
    for (tier, room) in rooms().await {
        room.bring_probe();
        for way in SET_ID {
            for bits in ["4000", "2000", "6000"] {
                let script = format!("./probe set-id {way} p {bits}");
                let works = bare.bash(&script, Access::Write).await;
                assert_eq!(works.stdout.text, "ok\n", "`{script}` is no attack: it fails without a fence: {works:?}");
                let result = room.bash(&script, Access::Write).await;
                let answer = if *way == "openat2" { "ENOSYS\n" } else { "EPERM\n" };
                assert_eq!(result.stdout.text, answer, "`{script}` in {tier:?}: {result:?}");
                assert_eq!(bits_of(&room), 0, "`{script}` in {tier:?}");
                room.bash(clear, Access::Write).await;
            }
        }
        for script in SET_ID_PROGRAMS {
            bare.bash(clear, Access::Write).await;
            bare.bash(script, Access::Write).await;
            assert_ne!(bits_of(&bare), 0, "`{script}` is no attack: it fails without a fence");
            room.bash(script, Access::Write).await;
            assert_eq!(bits_of(&room), 0, "`{script}` in {tier:?}");
            room.bash(clear, Access::Write).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_takes_memory_that_outlives_it() {
    let script = |call: &str| {
        format!("python3 -c 'import ctypes, sys; c = ctypes.CDLL(None, use_errno=True); sys.exit({call} < 0)'")
    };
    let queue = "c.mq_open(b\"/toolhost-test\", 0o102, 0o600, None)";
    // Whether it may be made where it ends with the command; in the Landlock tier nothing may.
    let calls = [
        ("c.shmget(0, 50 << 20, 0o1600)", false),
        ("c.semget(0, 32000, 0o1600)", false),
        // As PostgreSQL needs it.
        ("c.shmget(0, 56, 0o1600)", true),
        ("c.semget(0, 17, 0o1600)", true),
        // As fakeroot needs it.
        ("c.msgget(0, 0o1600)", true),
        (queue, false),
    ];
    for (tier, room) in rooms().await {
        for (call, ends_with_it) in calls {
            let may = ends_with_it && tier == Tier::Full;
            let result = room.bash(&script(call), Access::Read).await;
            assert_eq!(result.exit_code, i32::from(!may), "{tier:?}: {call}: {result:?}");
        }
    }
}

/// Pages that only a pipe holds, or that have no file: no process and no file system has them.
#[tokio::test(flavor = "multi_thread")]
async fn no_command_takes_memory_that_nobody_counts() {
    for (tier, room) in rooms().await {
        for call in ["c.vmsplice(os.pipe()[1], None, 0, 0)", "c.syscall(447, 0)"] {
            let script = format!(
                "python3 -c 'import ctypes, errno, os, sys; c = ctypes.CDLL(None, use_errno=True); \
                 sys.exit({call} != -1 or ctypes.get_errno() != errno.EPERM)'"
            );
            let result = room.bash(&script, Access::Read).await;
            assert_eq!(result.exit_code, 0, "{tier:?}: {call}: {result:?}");
        }
    }
}

/// Access lists among them: that of a folder says which modes new files in it have, the host's and people's, too.
#[tokio::test(flavor = "multi_thread")]
async fn no_command_changes_attributes_of_files_or_leaves_a_device() {
    let list = "struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *one) for one in [(1, 7, 2**32 - 1), (4, 7, 2**32 - 1), (32, 7, 2**32 - 1)])";
    let calls = [
        // The default list of a folder, by its name and by an open file, and what `setfattr` writes.
        format!("os.setxattr('.', 'system.posix_acl_default', {list})"),
        format!("os.setxattr(os.open('.', os.O_RDONLY), 'system.posix_acl_default', {list})"),
        "os.setxattr('f', 'user.a', b'b')".to_owned(),
        "os.setxattr('f', 'user.a', b'b', follow_symlinks=False)".to_owned(),
        "os.removexattr('f', 'user.b')".to_owned(),
        // `setxattrat`, `removexattrat`, `file_setattr`
        "call(463, -100, b'f', 0, b'user.a', 0, 0)".to_owned(),
        "call(466, -100, b'f', 0, b'user.b')".to_owned(),
        "call(469, -100, b'f', c.create_string_buffer(64), 24, 0)".to_owned(),
        // `ioctl`: `FS_IOC_SETFLAGS`, `FS_IOC_FSSETXATTR` and `FS_IOC_SETVERSION`
        "import fcntl; fcntl.ioctl(os.open('f', os.O_RDONLY), 0x40086602, struct.pack('l', 0x40))".to_owned(),
        "import fcntl; fcntl.ioctl(os.open('f', os.O_RDONLY), 0x401c5820, bytes(28))".to_owned(),
        "import fcntl; fcntl.ioctl(os.open('f', os.O_RDONLY), 0x40087602, struct.pack('l', 1))".to_owned(),
        // `renameat2` with `RENAME_WHITEOUT`
        "call(316, -100, b'f', -100, b'g', 4)".to_owned(),
    ];
    for (tier, room) in rooms().await {
        std::fs::write(room.ws().join("f"), "").unwrap();
        for one in &calls {
            let script = format!(
                "import ctypes as c, errno, os, struct\nl = c.CDLL(None, use_errno=True)\ndef call(*a):\n    if l.syscall(*a) == -1: raise OSError(c.get_errno(), 'no')\n\
                 try:\n    {one}\n    print('done')\nexcept OSError as e: print(errno.errorcode[e.errno])"
            );
            let result = room.bash(&format!("python3 - <<'E'\n{script}\nE"), Access::Write).await;
            let answer = if one.starts_with("call(316") { "EPERM\n" } else { "EOPNOTSUPP\n" };
            assert_eq!(result.stdout.text.replace("ENOTSUP", "EOPNOTSUPP"), answer, "{tier:?}: {one}: {result:?}");
        }
        // Programs that copy attributes go on without.
        let result = room.bash(
            "cp -a f h && cp -p f i && d=${TMPDIR:-/tmp}; mv f $d/f && mv $d/f f && tar cf t.tar f && tar xpf t.tar",
            Access::Write,
        );
        let result = result.await;
        assert_eq!((result.exit_code, result.stderr.text.as_str()), (0, ""), "{tier:?}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_memory_has_its_limit() {
    let room = Room::with(FenceChoice::Full, |_| {}, |config| config.limits.shm_bytes = 8 << 20);
    let result = room.bash("head -c 64M /dev/zero > /dev/shm/x; stat -c %s /dev/shm/x", Access::Write).await;
    assert_eq!(result.stdout.text, format!("{}\n", 8 << 20), "{result:?}");
    let small = room.bash("echo fine > /dev/shm/y && cat /dev/shm/y", Access::Read).await;
    assert_eq!(small.stdout.text, "fine\n", "{small:?}");
}

#[cfg(target_arch = "x86_64")]
#[tokio::test(flavor = "multi_thread")]
async fn the_door_for_32_bit_programs_is_death() {
    for (tier, room) in rooms().await {
        room.bring_probe();
        let result = room.run(Command::new(["./probe", "int80"], std::time::Duration::from_secs(20)), Access::Write);
        let result = result.await.unwrap();
        assert_eq!(result.signal.map(|s| s.name()).as_deref(), Some("SIGSYS"), "{tier:?}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_socket_of_the_hosts_can_be_reached() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let folder = tempfile::Builder::new().prefix("sockets-").tempdir_in("/var/tmp").unwrap();
    let open = |path: &std::path::Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    open(folder.path());
    let pathname = folder.path().join("s");
    let _unix = UnixListener::bind(&pathname).unwrap();
    open(&pathname);
    let name = format!("toolhost-{}", folder.path().display());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_port, udp_port) = (listener.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    udp.set_nonblocking(true).unwrap();
    let in_workspace = "socket-in-the-workspace";
    let attacks = [
        format!("./probe unix-path {}", pathname.display()),
        format!("./probe unix-path {in_workspace}"),
        format!("./probe unix-abstract {name}"),
        format!("exec 3<>/dev/tcp/127.0.0.1/{tcp_port}"),
        format!("echo sent > /dev/udp/127.0.0.1/{udp_port}"),
    ];
    let place = |room: &Room| {
        room.bring_probe();
        let socket = UnixListener::bind(room.ws().join(in_workspace)).unwrap();
        open(&room.ws().join(in_workspace));
        socket
    };
    let bare = Room::fenced(FenceChoice::Off);
    let _socket = place(&bare);
    for script in &attacks {
        let result = bare.bash(script, Access::Write).await;
        assert_eq!(result.exit_code, 0, "`{script}` is no attack: it fails without a fence: {result:?}");
    }
    let mut buffer = [0; 16];
    assert_eq!(udp.recv(&mut buffer).unwrap(), 5, "the bare command's datagram");
    for (tier, room) in rooms().await {
        let _socket = place(&room);
        for script in &attacks {
            let result = room.bash(script, Access::Write).await;
            assert!((1..126).contains(&result.exit_code), "`{script}` in {tier:?}: {result:?}");
        }
        assert!(udp.recv(&mut buffer).is_err(), "a datagram came out of {tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pair_of_sockets_leads_out_and_no_file_is_kept_from_others_by_a_lease() {
    let script = "import fcntl, socket\nsocket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)\nfor call in [lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM), lambda: fcntl.fcntl(open('kept', 'w'), fcntl.F_SETLEASE, fcntl.F_WRLCK)]:\n    try: call(); print('allowed')\n    except PermissionError: print('refused')";
    for (tier, room) in rooms().await {
        let result = room.bash(&format!("python3 -c \"{script}\""), Access::Write).await;
        assert_eq!(result.stdout.text, "refused\nrefused\n", "{tier:?}: {result:?}");
    }
}
