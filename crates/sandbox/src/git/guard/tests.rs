//! The locks of a guard.

#![expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn a_lock_is_given_back_though_a_process_that_is_being_started_has_a_handle_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let open = || File::options().create(true).truncate(false).write(true).open(folder.path().join("lock")).unwrap();
    let (file, other) = (open(), open());
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let _inherited = file.try_clone().unwrap();
    assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err(), "it is held");
    drop(Locked(file));
    flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
}

/// What only looks whether a command is under way is none.
#[test]
fn nobody_who_looks_keeps_git_from_changing_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("workspace");
    std::fs::create_dir(&root).unwrap();
    let guard = Guard::new(Top::at(&root.canonicalize().unwrap()).unwrap(), &folder.path().join("guards"));
    drop(guard.alone().unwrap());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let _ = guard.is_in_use();
            }
        });
        let refused = (0..500).filter(|_| guard.alone().is_err()).count();
        ended.store(true, Ordering::Relaxed);
        assert_eq!(refused, 0);
    });
    let marks = std::fs::read_dir(folder.path().join("guards/alone")).unwrap().count();
    assert_eq!(marks, 0, "each command in any workspace looks at them");
}
