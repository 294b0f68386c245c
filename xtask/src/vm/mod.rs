//! A virtual machine for what this one may not have: cgroups of version 2 with memory, handed over by a manager of services.
//!
//! The machine is emulated in software, which every machine can. Its files are copies of this machine's own, its kernel is
//! Debian's, and what it tries is `cases.sh`, whose lines come over the serial line.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::shell;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A kernel to boot [default: Debian's linux-image-cloud-amd64, which is downloaded once]
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,
    /// Minutes after which it counts as hung
    #[arg(long, default_value_t = 30)]
    minutes: u64,
}

/// Programs of this machine that are copied with their libraries.
const COPIED: [&str; 2] = ["/usr/bin/bash", "/usr/bin/bwrap"];
/// All else that is needed here, and the package of each.
const NEEDED: [(&str, &str); 6] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("cc", "gcc libc6-dev"),
    ("strip", "binutils"),
    ("bwrap", "bubblewrap"),
];
const KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";
/// Of the virtual machine. Its files are in it, too, twice while it starts.
const MEMORY: &str = "2G";

/// Passes if every case does and the machine comes to its end.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let lacking: Vec<&str> =
        NEEDED.iter().filter(|(program, _)| !shell::has_program(program)).map(|(_, package)| *package).collect();
    if !lacking.is_empty() {
        bail!("programs are missing: apt-get install {}", lacking.join(" "));
    }
    let kept = shell::target(root).join("vm");
    fs::create_dir_all(&kept)?;
    let kernel = match &arguments.kernel {
        Some(kernel) => kernel.clone(),
        None => kernel(&kept)?,
    };
    let program = shell::program(root)?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let initramfs = pack(folder.path(), &program)?;
    boot(&kernel, &initramfs, Duration::from_secs(arguments.minutes * 60))
}

/// Debian's kernel, which has what is needed built in.
fn kernel(kept: &Path) -> Result<PathBuf> {
    let kernel = kept.join("vmlinuz");
    if kernel.exists() {
        return Ok(kernel);
    }
    let depends = shell::stdout_of(Command::new("apt-cache").args(["depends", KERNEL_PACKAGE]))?;
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    let package = package.with_context(|| format!("{KERNEL_PACKAGE} is not known: apt-get update, or say --kernel"))?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut download = Command::new("apt-get");
    download.current_dir(folder.path()).args(["download", "--quiet", &format!("linux-image-{package}")]);
    shell::must_run(&mut download)?;
    let archive = only_file(folder.path())?;
    let unpacked = folder.path().join("unpacked");
    shell::must_run(Command::new("dpkg-deb").arg("-x").args([&archive, &unpacked]))?;
    fs::copy(unpacked.join(format!("boot/vmlinuz-{package}")), &kernel).context("the package has no kernel")?;
    Ok(kernel)
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let entry = fs::read_dir(folder)?.next().context("nothing was downloaded")?;
    Ok(entry?.path())
}

/// The first files of the machine as one archive.
fn pack(folder: &Path, program: &Path) -> Result<PathBuf> {
    let first = folder.join("first");
    let root = first.join("root-image");
    for name in ["usr/bin", "usr/lib", "usr/lib64", "etc", "proc", "sys", "dev", "tmp", "run", "root", "home"] {
        fs::create_dir_all(root.join(name))?;
    }
    for name in ["bin", "lib", "lib64"] {
        symlink(format!("usr/{name}"), root.join(name))?;
    }
    shell::must_run(Command::new("chmod").arg("1777").arg(root.join("tmp")))?;
    fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/bash\nagent:x:1000:1000::/home/1000:/bin/bash\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\nagent:x:1000:\n")?;
    fs::write(root.join("cases.sh"), include_str!("cases.sh"))?;

    let toolhost = root.join("usr/bin/toolhost");
    shell::must_run(Command::new("strip").arg("-o").args([&toolhost, program]))?;
    libraries(program, &root)?;
    for program in COPIED.map(Path::new) {
        fs::copy(program, root.join("usr/bin").join(program.file_name().context("a program")?))?;
        libraries(program, &root)?;
    }
    let source = folder.join("tool.c");
    fs::write(&source, include_str!("tool.c"))?;
    let tool = root.join("usr/bin/tool");
    shell::must_run(Command::new("cc").args(["-static", "-O1", "-Wall", "-Werror", "-o"]).args([&tool, &source]))?;

    let busybox = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new).into_iter().find(|path| path.exists());
    let busybox = busybox.context("busybox is elsewhere than in /bin and /usr/bin")?;
    fs::copy(busybox, root.join("usr/bin/busybox"))?;
    for name in shell::stdout_of(Command::new(busybox).arg("--list"))?.lines() {
        // What is there already is the machine's own.
        let _ = symlink("busybox", root.join("usr/bin").join(name));
    }
    fs::create_dir(first.join("bin"))?;
    fs::copy(busybox, first.join("bin/busybox"))?;
    fs::write(first.join("init"), include_str!("init.sh"))?;
    shell::must_run(Command::new("chmod").arg("755").arg(first.join("init")))?;
    let archive = folder.join("initramfs");
    let line = "find . | cpio --quiet -o -H newc -R 0:0 > \"$0\"";
    shell::must_run(Command::new("sh").current_dir(&first).args(["-c", line]).arg(&archive))?;
    Ok(archive)
}

/// Copies the libraries of a program to where it looks for them.
fn libraries(program: &Path, root: &Path) -> Result<()> {
    for line in shell::stdout_of(Command::new("ldd").arg(program))?.lines() {
        let Some(path) = line.split_whitespace().find(|word| word.starts_with('/')) else { continue };
        let below = path.trim_start_matches('/');
        let place = root.join(if below.starts_with("usr/") { below.to_owned() } else { format!("usr/{below}") });
        fs::create_dir_all(place.parent().context("a library has a folder")?)?;
        fs::copy(path, place)?;
    }
    Ok(())
}

fn boot(kernel: &Path, initramfs: &Path, time: Duration) -> Result<ExitCode> {
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", MEMORY, "-no-reboot"]);
    qemu.args(["-display", "none", "-monitor", "none", "-serial", "stdio", "-nic", "none", "-nodefaults"]);
    qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
    qemu.args(["-append", "console=ttyS0 quiet panic=-1 random.trust_cpu=on"]);
    let mut machine = qemu.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start qemu")?;
    let serial = machine.stdout.take().context("qemu has no output")?;
    let (lines, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(serial).split(b'\n').map_while(Result::ok) {
            // Nobody listens any more once the machine is given up.
            let _ = lines.send(String::from_utf8_lossy(&line).trim().to_owned());
        }
    });
    let deadline = Instant::now() + time;
    let (mut passed, mut failed, mut done) = (0, 0, false);
    while let Ok(line) = told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        println!("{line}");
        match line.split(' ').next() {
            Some("PASS") => passed += 1,
            Some("FAIL") => failed += 1,
            Some("DONE") => done = true,
            _ => {}
        }
    }
    // It has ended by itself, or hangs.
    let _ = machine.kill();
    machine.wait()?;
    println!("vm: {passed} passed, {failed} failed{}", if done { "" } else { "; it did not come to its end" });
    Ok(if done && failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
