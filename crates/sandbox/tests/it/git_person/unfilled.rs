//! A submodule that is not checked out: no command makes a repository of its folder, and the person's git works above it.

use std::path::Path;
use std::time::Duration;

use toolhost_contract::workspace::Access;
use toolhost_sandbox::FenceChoice;

use super::plant::{commit, git, sure};
use crate::room::{Room, until};

fn furnish(ws: &Path, is_there: bool) {
    sure(ws, &["init", "-q"]);
    commit(ws, "file");
    let commit = String::from_utf8(git(ws, &["rev-parse", "HEAD"]).stdout).unwrap();
    sure(ws, &["update-index", "--add", "--cacheinfo", &format!("160000,{},libs/sub", commit.trim())]);
    sure(ws, &["commit", "-qm", "sub"]);
    if is_there {
        std::fs::create_dir_all(ws.join("libs/sub")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_git_works_above_a_submodule_that_is_not_checked_out() {
    for is_there in [true, false] {
        let room = Room::with(FenceChoice::Full, |ws| furnish(ws, is_there), |_| {});
        let ws = room.ws();
        let command = async {
            let script = "touch begun; until [ -e go ]; do sleep 0.05; done; rm begun go; git init -q libs/sub; \
                          touch libs/sub/x; mv libs/sub libs/other; mv libs l; ls -A libs/sub";
            room.try_bash(script, Access::Write, Duration::from_secs(60)).await.unwrap()
        };
        let person = async {
            until("the command runs", || ws.join("begun").exists()).await;
            for args in [&["status"][..], &["diff"], &["add", "file"], &["status", "--short"]] {
                let done = git(&ws, args);
                assert!(done.status.success(), "{is_there}: {args:?}: {done:?}");
            }
            std::fs::write(ws.join("go"), "").unwrap();
        };
        let (ended, ()) = tokio::join!(command, person);
        assert_eq!(ended.stdout.text, "", "{is_there}: nothing was made there: {ended:?}");
        assert!(git(&ws, &["status"]).status.success(), "{is_there}");
        assert_eq!(ws.join("libs").exists(), is_there, "what was made to hold it is gone");
    }
}
