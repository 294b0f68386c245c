//! The same promises where the host is an ordinary user, who can do less and may be less protected by it.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// A user who owns nothing on any machine.
const ORDINARY_UID: u32 = 54_322;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn everything_holds_for_an_ordinary_user_too() {
    if !is_root() {
        // Then all the other tests have just said so.
        return;
    }
    let folder = tempfile::Builder::new().prefix("ordinary-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = std::process::Command::new(&program)
        .args(["--test-threads=2", "--skip", "ordinary::"])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .uid(ORDINARY_UID)
        .gid(ORDINARY_UID)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = said.matches("... ok").count();
    assert!(output.status.success() && passed > 20, "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
