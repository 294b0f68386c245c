//! The same promises where the host is an ordinary user, who can do less and may be less protected by it.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use crate::room::{copy, helper, is_root};

/// Where the tests find folders of another user's that they may write, one for each tier.
pub(crate) const THEIRS: &str = "TOOLHOST_TEST_THEIRS";
/// A user who owns nothing on any machine.
const ORDINARY_UID: u32 = 54_322;

/// Whether root has run these tests already, and they run again as an ordinary user.
pub(crate) fn is_second_run() -> bool {
    std::env::var_os(THEIRS).is_some()
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
    copy(&std::env::current_exe().unwrap(), &program);
    copy(&helper(), &folder.path().join("toolhost-sandbox-exec"));
    let theirs = folder.path().join("theirs");
    for name in ["Full", "Landlock"] {
        std::fs::create_dir_all(theirs.join(name)).unwrap();
        std::fs::set_permissions(theirs.join(name), PermissionsExt::from_mode(0o777)).unwrap();
    }
    let output = std::process::Command::new(&program)
        .args(["--test-threads=2", "--skip", "ordinary::"])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env(THEIRS, &theirs)
        .uid(ORDINARY_UID)
        .gid(ORDINARY_UID)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = said.matches("... ok").count();
    assert!(output.status.success() && passed > 40, "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
