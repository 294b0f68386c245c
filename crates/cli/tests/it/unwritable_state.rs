//! A database that cannot be written, or not now, is still read: what somebody has in it they get out of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use toolhost_records::{Edit, Ticket};
use toolhost_store::Store;
use toolhost_testkit::{Era, FakeClock, McpProcess, Postgres, Program, TempWorkspace};

use crate::room::program;

/// Something mounted over a folder, until it is dropped.
struct Mount(PathBuf);

impl Drop for Mount {
    #[expect(clippy::disallowed_methods, reason = "a full disk is mounted, which is no business of a workspace")]
    fn drop(&mut self) {
        // What is left mounted ends with the machine's namespace; nobody is left to hear of it.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Mounts as `mount` is told; `None` where this user or this machine does not let it.
#[expect(clippy::disallowed_methods, reason = "a full disk is mounted, which is no business of a workspace")]
fn mount(arguments: &[&str], folder: &Path) -> Option<Mount> {
    let done = Command::new("mount").args(arguments).arg(folder).output().ok()?;
    if done.status.success() {
        return Some(Mount(folder.to_owned()));
    }
    // Not `eprintln!`, which the test runner keeps to itself when a test passes.
    let why = String::from_utf8_lossy(&done.stderr);
    let _ = std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("SKIPPED: what a full or read-only disk does, for nothing can be mounted here: {why}\n").as_bytes(),
    );
    None
}

/// What reads works, is not recorded, and says so; what writes is refused.
fn is_only_read(program: &Program, workspace: &TempWorkspace, why: &str) {
    let export = workspace.beside("out.jsonl");
    let export = export.to_str().unwrap();
    let target = workspace.beside("target");
    std::fs::create_dir_all(&target).unwrap();
    let target = target.to_str().unwrap();
    let reads: [(&[&str], &str); 11] = [
        (&["ticket", "list"], "TKT-001"),
        (&["call", "file.read", r#"{"path":"a.txt"}"#], "content of a"),
        (&["audit", "verify"], "holds"),
        (&["audit", "show"], "ticket.create"),
        (&["session", "list"], ""),
        (&["export", "-o", export], ""),
        (&["member", "list"], "local"),
        (&["review", "list"], ""),
        (&["approvals", "list"], ""),
        (&["deploy", "plan", "--deploy-to", target], "a.txt"),
        (&["deploy", "history", "--deploy-to", target], ""),
    ];
    for (arguments, expected) in reads {
        let ran = program.run(arguments);
        assert_eq!(ran.code, Some(0), "{why}, {arguments:?}: {ran:?}");
        assert!(ran.stdout.contains(expected), "{why}, {arguments:?}: {ran:?}");
    }
    let list = program.run(&["ticket", "list"]);
    assert!(list.stderr.contains("not recorded in the audit"), "{why}: {list:?}");
    let refused = program.run(&["ticket", "create", "no room"]);
    assert_eq!(refused.code, Some(1), "{why}: {refused:?}");
    assert!(refused.stderr.contains("nothing was changed"), "{why}: {refused:?}");
    let refused = program.run(&["call", "file.write", r#"{"path":"b.txt","content":"b"}"#]);
    assert_eq!(refused.code, Some(1), "{why}: {refused:?}");
    assert!(!refused.stderr.contains("other error") && !workspace.has("b.txt"), "{why}: {refused:?}");
    // The export is a whole one.
    let elsewhere = workspace.beside("elsewhere");
    let other = Program::new(program.path(), workspace).bare().argument("--root").argument(workspace.root());
    let other = other.argument("--state").argument(elsewhere);
    let imported = other.run(&["import", export]);
    assert_eq!(imported.code, Some(0), "{why}: {imported:?}");
    assert!(imported.stdout.contains("1 ticket"), "{why}: {imported:?}");
}

/// A project with a ticket and a file.
fn lived_in(workspace: &TempWorkspace) -> Program {
    workspace.write("a.txt", "content of a\n");
    let program = program(workspace);
    let made = program.run(&["ticket", "create", "t"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    program
}

#[test]
fn a_read_only_state_folder_is_read_and_exported() {
    let workspace = TempWorkspace::new();
    let program = lived_in(&workspace);
    let state = workspace.state();
    let Some(bound) = mount(&["--bind", state.to_str().unwrap()], &state) else { return };
    let Some(_) = mount(&["-o", "remount,ro,bind"], &state).map(std::mem::forget) else { return };
    is_only_read(&program, &workspace, "read-only");
    drop(bound);
    assert_eq!(program.run(&["ticket", "create", "again"]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_in_a_read_only_state_folder() {
    let workspace = TempWorkspace::new();
    let program = lived_in(&workspace);
    let state = workspace.state();
    let Some(_bound) = mount(&["--bind", state.to_str().unwrap()], &state) else { return };
    let Some(_) = mount(&["-o", "remount,ro,bind"], &state).map(std::mem::forget) else { return };
    let mut host = McpProcess::open_with(&program, &[], Era::Session, json!({})).await;
    let read = host.call("file_read", json!({ "path": "a.txt" })).await;
    assert_eq!(read["isError"], false, "{read}");
    let refused = host.call("file_write", json!({ "path": "b.txt", "content": "b" })).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(!workspace.has("b.txt"));
    assert!(host.close().await.success(), "it ends well, too");
}

#[test]
fn the_changes_of_a_package_are_read_in_a_read_only_state_folder() {
    let workspace = TempWorkspace::new();
    let program = lived_in(&workspace);
    assert_eq!(program.run(&["package", "new", "p"]).code, Some(0));
    let state = workspace.state();
    let Some(_bound) = mount(&["--bind", state.to_str().unwrap()], &state) else { return };
    let Some(_) = mount(&["-o", "remount,ro,bind"], &state).map(std::mem::forget) else { return };
    for arguments in [["change", "list"], ["change", "history"], ["member", "list"]] {
        let ran = program.run(&arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("not recorded in the audit"), "{arguments:?}: {ran:?}");
    }
    let refused = program.run(&["change", "undo", "--yes"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("cannot be used"), "{refused:?}");
}

#[test]
fn a_full_disk_is_read_and_exported() {
    let workspace = TempWorkspace::new();
    let state = workspace.state();
    std::fs::create_dir_all(&state).unwrap();
    let Some(_full) = mount(&["-t", "tmpfs", "-o", "size=3M,mode=0700", "tmpfs"], &state) else { return };
    let program = lived_in(&workspace);
    workspace.write("big.txt", "big ".repeat(250_000));
    let (ballast, last) = (state.join("ballast"), state.join("last"));
    std::fs::write(&last, vec![0; 256 << 10]).unwrap();
    // As much as there is room for.
    assert!(std::fs::write(&ballast, vec![0; 8 << 20]).is_err());
    is_only_read(&program, &workspace, "full");
    // Room for the rows of a call, and not for what it would change.
    std::fs::remove_file(&last).unwrap();
    let refused = program.run(&["call", "file.write", r#"{"path":"big.txt","content":"small"}"#]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("`big.txt` was not changed") && refused.stderr.contains("is full"), "{refused:?}");
    assert_eq!(workspace.read("big.txt").len(), 1_000_000);
    std::fs::remove_file(&ballast).unwrap();
    assert_eq!(program.run(&["ticket", "create", "again"]).code, Some(0));
    let verified = program.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_does_not_wait_for_who_holds_the_database() {
    let workspace = TempWorkspace::new();
    let program = lived_in(&workspace);
    let store = Store::open(
        &workspace.state(),
        std::sync::Arc::new(FakeClock::default()),
        toolhost_testkit::SUBJECTS,
        toolhost_contract::Durability::default(),
    )
    .await
    .unwrap();
    let root = workspace.root().canonicalize().unwrap();
    let project = store.project(&root, "ws", "local").await.unwrap();
    let who =
        toolhost_store::Who { project_id: project.id, user_id: 1, name: "holder".to_owned(), call_id: "c".to_owned() };
    let desk = toolhost_records::Records::new(store.database()).desk(who).unwrap();
    // Whoever changes a record holds the database as long as that takes.
    let meanwhile = |ticket: &mut Ticket| {
        ticket.title = "changed".to_owned();
        let list = program.run(&["ticket", "list"]);
        assert!(list.code == Some(0) && list.stdout.contains("TKT-001"), "{list:?}");
        assert!(list.stderr.contains("another process holds the database"), "{list:?}");
        assert!(list.stderr.contains("not recorded in the audit"), "{list:?}");
        Ok(())
    };
    desk.update("TKT-001", &Edit::default(), meanwhile).await.unwrap();
}

#[test]
fn what_killed_exports_left_is_swept_and_what_others_write_is_not() {
    let workspace = TempWorkspace::new();
    let program = lived_in(&workspace);
    let (left, held) = (workspace.beside(".export-left"), workspace.beside(".export-held"));
    std::fs::write(&left, "half").unwrap();
    let writing = std::fs::File::create(&held).unwrap();
    writing.lock().unwrap();
    let export = workspace.beside("out.jsonl");
    assert_eq!(program.run(&["export", "-o", export.to_str().unwrap()]).code, Some(0));
    assert!(!left.exists() && held.exists());
}

#[test]
fn a_server_that_takes_no_changes_is_read_and_exported() {
    let Some(server) = Postgres::shared() else { return };
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "content of a\n");
    let url = server.fresh_database();
    let program = program(&workspace).variable("TOOLHOST_DATABASE", &url);
    assert_eq!(program.run(&["ticket", "create", "t"]).code, Some(0));
    let database = url.rsplit('/').next().unwrap();
    server.psql(&url, &format!("ALTER DATABASE {database} SET default_transaction_read_only = on"));
    is_only_read(&program, &workspace, "a standby");
    // From next door, where changes are taken.
    let next_door = server.fresh_database();
    server.psql(&next_door, &format!("ALTER DATABASE {database} RESET default_transaction_read_only"));
    assert_eq!(program.run(&["ticket", "create", "again"]).code, Some(0));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a shell sets the limit that the program under test then has")]
fn a_limit_on_the_size_of_files_is_told_and_ends_nobody() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert_eq!(program.run(&["ticket", "create", "first"]).code, Some(0));
    let limited = |arguments: &[&str]| {
        let whole = program.command(arguments);
        let mut command = Command::new("bash");
        command.args(["-c", "ulimit -f 8; exec \"$0\" \"$@\""]).arg(whole.get_program()).args(whole.get_args());
        command.env_clear().envs(whole.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir("/var/tmp").output().unwrap()
    };
    let verified = limited(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    // An export that does not fit leaves what was there.
    let title = "long ".repeat(30);
    for _ in 0..40 {
        assert_eq!(program.run(&["ticket", "create", &title]).code, Some(0));
    }
    workspace.write("earlier.jsonl", "earlier");
    let earlier = workspace.path("earlier.jsonl").display().to_string();
    for export in [&["audit", "export", "-o", &earlier][..], &["export", "-o", &earlier]] {
        let ran = limited(export);
        assert!(
            ran.status.code() == Some(1) && String::from_utf8_lossy(&ran.stderr).contains("earlier.jsonl"),
            "{ran:?}"
        );
        assert_eq!(workspace.read("earlier.jsonl"), "earlier");
    }
    let refused = limited(&["ticket", "create", "no room"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let mcp = limited(&["mcp"]);
    let said = String::from_utf8_lossy(&mcp.stderr);
    // An agent still reads; whoever starts its host is told that nothing is recorded, and why.
    let is_told = said.contains("not recorded in the audit") && said.contains("ulimit -f");
    assert!(mcp.status.code() == Some(0) && is_told, "{mcp:?}");
    // What is started has the usual disposition: bit 25 is neither ignored nor caught.
    let inside = program.run(&["call", "bash", r#"{"command":"grep -E 'Sig(Ign|Cgt)' /proc/self/status"}"#]);
    let masks: Vec<u64> = inside
        .stdout
        .split_whitespace()
        .filter(|word| word.len() == 16)
        .filter_map(|word| u64::from_str_radix(word, 16).ok())
        .collect();
    assert!(!masks.is_empty() && masks.iter().all(|mask| mask & (1 << 24) == 0), "{inside:?}");
}
