//! `toolhost undo`: what file tools have changed is put back, all of it or nothing.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toolhost_testkit::engines::engines;
use toolhost_testkit::{Era, McpProcess, Program, Ran, TempWorkspace};

use crate::room::program;

/// Too large to be kept.
const NINE_MIB: usize = 9 << 20;

/// Calls a tool; gives the call's id.
#[track_caller]
fn change(program: &Program, tool: &str, arguments: &Value) -> String {
    let ran = program.run_with_input(&["--json", "call", tool, "-"], arguments.to_string().as_bytes());
    assert_eq!(ran.code, Some(0), "{tool}: {ran:?}");
    ran.json()["meta"]["callId"].as_str().unwrap().to_owned()
}

#[track_caller]
fn write(program: &Program, path: &str, content: &str) -> String {
    change(program, "file.write", &json!({ "path": path, "content": content }))
}

/// Undoes without being asked.
#[track_caller]
fn undo(program: &Program, which: &[&str], code: i32) -> Ran {
    let ran = program.run(&[&["undo", "--yes"], which].concat());
    assert_eq!(ran.code, Some(code), "{which:?}: {ran:?}");
    ran
}

#[test]
fn every_kind_of_change_is_undone_and_an_undo_can_be_undone() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        workspace.write_script("run.sh", "#!/bin/sh\necho one\n");
        workspace.write("edited.txt", "one\ntwo\n");
        workspace.write("deleted.bin", b"\x00\xff\r\n");
        workspace.write("moved.txt", "here\n");
        let before = workspace.snapshot();
        write(&program, "run.sh", "#!/bin/sh\necho two\n");
        write(&program, "new/file.txt", "new\n");
        change(&program, "file.edit", &json!({ "path": "edited.txt", "edits": [{ "search": "two", "replace": "2" }] }));
        change(&program, "file.delete", &json!({ "path": "deleted.bin" }));
        change(&program, "file.move", &json!({ "from": "moved.txt", "to": "there/moved.txt" }));
        let after = workspace.snapshot();
        let undone = undo(&program, &["--since", "1h"], 0);
        assert!(undone.stdout.contains("-echo two") && undone.stdout.contains("+echo one"), "{engine}: {undone:?}");
        assert_eq!(workspace.snapshot(), before, "{engine}: the folders that were made are gone, too");
        let mode = workspace.path("run.sh").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o755, "{engine}: the script may still be run");
        // What was undone last is the undo itself.
        undo(&program, &[], 0);
        assert_eq!(workspace.snapshot(), after, "{engine}");
        let mode = workspace.path("run.sh").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o755, "{engine}");
        undo(&program, &[], 0);
        assert_eq!(workspace.snapshot(), before, "{engine}");
        assert_eq!(program.run(&["audit", "verify"]).code, Some(0), "{engine}");
        let rows = program.run(&["--json", "audit", "show", "--tool", "undo"]).stdout;
        assert_eq!(rows.lines().count(), 6, "{engine}: each undo has its two rows: {rows}");
    }
}

#[test]
fn a_folder_that_somebody_uses_stays_and_permissions_come_back() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    workspace.write_script("run.sh", "#!/bin/sh\n");
    write(&program, "a/b/new.txt", "x\n");
    workspace.write("a/mine.txt", "mine\n");
    undo(&program, &[], 0);
    assert!(workspace.has("a/mine.txt") && !workspace.has("a/b"), "{:?}", workspace.snapshot());
    // Made anew, it may not be run any more; its content is what it was.
    change(&program, "file.delete", &json!({ "path": "run.sh" }));
    write(&program, "run.sh", "#!/bin/sh\n");
    let mode = || workspace.path("run.sh").metadata().unwrap().permissions().mode() & 0o777;
    assert_ne!(mode(), 0o755);
    let undone = undo(&program, &["--since", "1h"], 0);
    assert!(undone.stdout.contains("permissions") && mode() == 0o755, "{undone:?}");
}

#[test]
fn an_undo_follows_no_link() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        workspace.write("folder/a.txt", "before\n");
        workspace.write("other/a.txt", "by the tool\n");
        workspace.write("other/new.txt", "by the tool\n");
        for path in ["folder/a.txt", "folder/new.txt"] {
            let id = write(&program, path, "by the tool\n");
            let real = workspace.read_bytes(path);
            // The file is a link to one of the same content.
            workspace.remove(path);
            workspace.link(format!("../other/{}", path.rsplit('/').next().unwrap()), path);
            let refused = undo(&program, &["--call", &id], 1);
            assert!(refused.stderr.contains(&format!("{path}: it is a link now")), "{engine}: {refused:?}");
            workspace.remove(path);
            workspace.write(path, real);
            // And so is its folder.
            std::fs::rename(workspace.path("folder"), workspace.path("aside")).unwrap();
            workspace.link("other", "folder");
            let refused = undo(&program, &["--call", &id], 1);
            assert!(refused.stderr.contains("a link stands on the way there now"), "{engine}: {refused:?}");
            workspace.remove("folder");
            std::fs::rename(workspace.path("aside"), workspace.path("folder")).unwrap();
            assert_eq!(workspace.read("other/a.txt"), "by the tool\n", "{engine}");
            assert!(workspace.has("other/new.txt"), "{engine}");
        }
        undo(&program, &["--since", "1h"], 0);
        assert!(workspace.read("folder/a.txt") == "before\n" && !workspace.has("folder/new.txt"), "{engine}");
        // What was written through a link comes back where it went, whatever the link is now.
        workspace.link("folder/a.txt", "link");
        write(&program, "link", "through it\n");
        workspace.remove("link");
        workspace.link("other/a.txt", "link");
        undo(&program, &[], 0);
        assert_eq!(workspace.read("folder/a.txt"), "before\n", "{engine}");
        assert_eq!(workspace.read("other/a.txt"), "by the tool\n", "{engine}");
        // A link that was deleted is not taken for the file it led to.
        change(&program, "file.delete", &json!({ "path": "link" }));
        write(&program, "x.txt", "x\n");
        assert!(!undo(&program, &["--since", "1s"], 0).stdout.contains("link"), "{engine}");
        assert!(!workspace.has("link"), "{engine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_one_session_or_all_since_then_is_undone() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let first = write(&program, "a.txt", "1\n");
        write(&program, "b.txt", "1\n");
        let mut sessions = Vec::new();
        for n in 2..4 {
            let mut host = McpProcess::open(&program, &[], Era::Session).await;
            for path in [format!("s{n}.txt"), "shared.txt".to_owned()] {
                let arguments = json!({ "path": path, "content": format!("{n}\n") });
                let outcome = host.call("file_write", arguments).await["structuredContent"].clone();
                sessions.push(outcome["meta"]["sessionId"].as_str().unwrap().to_owned());
            }
            assert!(host.close().await.success());
        }
        undo(&program, &["--call", &first], 0);
        assert!(!workspace.has("a.txt") && workspace.has("b.txt"), "{engine}");
        // The later session has changed what the earlier one made.
        let refused = undo(&program, &["--session", &sessions[0]], 1);
        assert!(refused.stderr.contains("shared.txt: it was changed since"), "{engine}: {refused:?}");
        assert!(workspace.has("s2.txt"), "{engine}: nothing else was touched");
        undo(&program, &["--session", &sessions[2]], 0);
        assert_eq!((workspace.has("s3.txt"), workspace.read("shared.txt")), (false, "2\n".to_owned()), "{engine}");
        undo(&program, &["--session", &sessions[0]], 0);
        assert_eq!(workspace.snapshot().len(), 1, "{engine}: b.txt is left");
        assert!(undo(&program, &["--session", "no-such-session"], 0).stderr.contains("there is nothing to undo"));
        undo(&program, &["--since", "2000-01-01T00:00:00Z"], 0);
        assert!(workspace.snapshot().is_empty(), "{engine}: as it was before the first call");
        undo(&program, &["--since", "0s"], 0);
        undo(&program, &["--since", "yesterday"], 2);
        undo(&program, &["--call", &first, "--session", "x"], 2);
    }
}

#[test]
fn what_was_changed_since_stops_it_all() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        workspace.write("z.txt", "before\n");
        let began = "2000-01-01T00:00:00Z";
        write(&program, "a.txt", "by the tool\n");
        write(&program, "z.txt", "by the tool\n");
        for meddle in [
            (|workspace: &TempWorkspace| workspace.write("z.txt", "by a person\n")) as fn(&TempWorkspace),
            |workspace| workspace.remove("z.txt"),
            |workspace| workspace.write("a.txt", "by a person\n"),
        ] {
            meddle(&workspace);
            let before = workspace.snapshot();
            let refused = undo(&program, &["--since", began], 1);
            assert!(refused.stderr.contains("changed since") && refused.stderr.contains("nothing was undone"));
            assert_eq!(workspace.snapshot(), before, "{engine}: {refused:?}");
            let json = program.run(&["--json", "undo", "--yes", "--since", began]);
            assert_eq!(
                (json.code, json.json()["conflicts"].as_array().unwrap().is_empty()),
                (Some(1), false),
                "{json:?}"
            );
            workspace.write("z.txt", "by the tool\n");
            workspace.write("a.txt", "by the tool\n");
        }
        undo(&program, &["--since", began], 0);
        assert_eq!((workspace.has("a.txt"), workspace.read("z.txt")), (false, "before\n".to_owned()), "{engine}");
        // Something else stands where a file was moved from.
        change(&program, "file.move", &json!({ "from": "z.txt", "to": "y.txt" }));
        workspace.write("z.txt", "another\n");
        let refused = undo(&program, &[], 1);
        assert!(refused.stderr.contains("something else is in its place now"), "{engine}: {refused:?}");
        assert_eq!((workspace.read("z.txt"), workspace.read("y.txt")), ("another\n".to_owned(), "before\n".to_owned()));
    }
}

#[test]
fn what_was_too_large_to_be_kept_is_said_and_left_alone() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        workspace.write("large.txt", "x".repeat(NINE_MIB));
        let kept = "x".repeat(8 << 20);
        workspace.write("fits.txt", &kept);
        let large = write(&program, "large.txt", "small\n");
        let refused = undo(&program, &[], 1);
        assert!(
            refused.stderr.contains("large.txt: what was there before was too large to be kept"),
            "{engine}: {refused:?}"
        );
        assert_eq!(workspace.read("large.txt"), "small\n", "{engine}");
        let gone = change(&program, "file.delete", &json!({ "path": "fits.txt" }));
        undo(&program, &["--call", &gone], 0);
        assert!(workspace.read("fits.txt") == kept, "{engine}: eight MiB are kept whole");
        assert!(undo(&program, &["--call", &large], 1).stderr.contains("too large"), "{engine}");
        // Moved or deleted it is not kept, either, and that is said rather than passed over.
        workspace.write("large.txt", "x".repeat(NINE_MIB));
        let moved = change(&program, "file.move", &json!({ "from": "large.txt", "to": "elsewhere.txt" }));
        let refused = undo(&program, &["--call", &moved], 1);
        assert!(refused.stderr.contains("too large"), "{engine}: {refused:?}");
        assert_eq!(workspace.read_bytes("elsewhere.txt").len(), NINE_MIB, "{engine}");
        change(&program, "file.delete", &json!({ "path": "elsewhere.txt" }));
        let refused = undo(&program, &[], 1);
        assert!(refused.stderr.contains("elsewhere.txt: what was there before was too large"), "{engine}: {refused:?}");
    }
}

#[test]
fn nothing_is_undone_unless_somebody_agrees() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert!(undo(&program, &[], 0).stderr.contains("there is nothing to undo"));
    write(&program, "a.txt", "x\n");
    for answer in ["", "n\n", "yes\n", "y\n"] {
        let ran = program.run_with_input(&["undo"], answer.as_bytes());
        assert!(ran.code == Some(2) && ran.stderr.contains("say --yes"), "a pipe is nobody: {answer:?}: {ran:?}");
    }
    assert!(workspace.has("a.txt"));
    program.run(&["member", "add", "vera", "viewer"]);
    let viewer = program.run(&["--user", "vera", "undo", "--yes"]);
    assert!(viewer.code == Some(3) && workspace.has("a.txt"), "{viewer:?}");
    // What a model may not change, a failed call has not changed either.
    let failed = program.run(&["call", "file.write", r#"{"path":"../b.txt","content":"x"}"#]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let told = program.run(&["--json", "undo", "--yes"]).json();
    assert_eq!(told["steps"][0]["path"], "a.txt", "{told}");
    assert!(!workspace.has("a.txt"));
}

#[test]
fn a_secret_in_a_file_is_not_shown_by_its_undo() {
    const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    write(&program, "a.txt", &format!("token: {TOKEN}\n"));
    write(&program, "a.txt", "token: none\n");
    let asked = program.run_with_input(&["undo"], b"n\n");
    assert!(asked.stdout.contains("+token: [redacted"), "{asked:?}");
    let json = program.run(&["--json", "undo", "--yes"]).stdout;
    assert!(json.contains("token: [redacted"), "{json}");
    assert!(!asked.stdout.contains(TOKEN) && !json.contains(TOKEN), "{asked:?} {json}");
    assert_eq!(workspace.read("a.txt"), format!("token: {TOKEN}\n"), "what is put back is what was there");
}

#[test]
fn a_call_is_named_by_the_end_of_its_id_as_it_is_shown() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let first = write(&program, "first.txt", "1\n");
        write(&program, "second.txt", "2\n");
        let end = &first[first.len() - 6..];
        let shown = program.run(&["audit", "show", "--since", "30m"]);
        assert!(shown.stdout.contains(end), "{engine}: {shown:?}");
        let rows = program.run(&["--json", "audit", "show", "--call", end]).stdout;
        assert!(rows.lines().count() == 2 && rows.lines().all(|row| row.contains(&first)), "{engine}: {rows}");
        undo(&program, &["--call", end], 0);
        assert!(!workspace.has("first.txt") && workspace.has("second.txt"), "{engine}");
        for nobody in ["nobodys", "%", "_____"] {
            for refused in [undo(&program, &["--call", nobody], 1), program.run(&["audit", "show", "--call", nobody])] {
                assert_eq!(refused.code, Some(1), "{engine}: {refused:?}");
                assert!(refused.stderr.contains(&format!("no call `{nobody}`")), "{engine}: {refused:?}");
            }
        }
        // Every id ends in what is empty.
        let all = undo(&program, &["--call", ""], 1);
        assert!(all.stderr.contains("several calls end in"), "{engine}: {all:?}");
    }
}
