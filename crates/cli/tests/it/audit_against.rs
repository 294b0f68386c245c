//! A chain compared with what was kept of it elsewhere.

use serde_json::json;
use toolhost_testkit::TempWorkspace;

use crate::room::program;

#[test]
fn a_chain_is_compared_with_what_it_was() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert_eq!(program.run(&["ticket", "create", "t"]).code, Some(0));
    let (export, checkpoint) = (workspace.beside("audit.jsonl"), workspace.beside("checkpoints"));
    let (export, checkpoint) = (export.to_str().unwrap(), checkpoint.to_str().unwrap());
    assert_eq!(program.run(&["audit", "checkpoint", "-o", checkpoint]).code, Some(0));
    assert_eq!(program.run(&["ticket", "create", "u"]).code, Some(0));
    assert_eq!(program.run(&["audit", "checkpoint", "-o", checkpoint]).code, Some(0));
    assert_eq!(program.run(&["audit", "export", "-o", export]).code, Some(0));
    assert_eq!(program.run(&["ticket", "create", "v"]).code, Some(0));
    for file in [export, checkpoint] {
        let verified = program.run(&["audit", "verify", "--against", file]);
        assert!(verified.code == Some(0) && verified.stdout.contains("of then are in it"), "{verified:?}");
    }
    // Another chain of as many rows, which holds in itself.
    std::fs::rename(workspace.state(), workspace.beside("former")).unwrap();
    assert_eq!(program.run(&["init", "--new"]).code, Some(0));
    for title in ["t", "u", "v"] {
        assert_eq!(program.run(&["ticket", "create", title]).code, Some(0));
    }
    assert_eq!(program.run(&["audit", "verify"]).code, Some(0));
    for file in [export, checkpoint] {
        let verified = program.run(&["--json", "audit", "verify", "--against", file]);
        assert_eq!(verified.code, Some(1), "{verified:?}");
        assert_eq!(verified.json()["ok"], json!(false), "{verified:?}");
        assert!(verified.stdout.contains("is another row than it was then"), "{verified:?}");
    }
    // A checkpoint that somebody has changed is none.
    let text = std::fs::read_to_string(checkpoint).unwrap();
    std::fs::write(checkpoint, text.replace("\"rows\":", "\"rows\":1")).unwrap();
    let refused = program.run(&["audit", "verify", "--against", checkpoint]);
    assert!(refused.code == Some(1) && refused.stderr.contains("its signature is not by the key"), "{refused:?}");
}

#[test]
fn an_export_that_is_not_whole_is_no_proof() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    for title in ["t", "u", "v"] {
        assert_eq!(program.run(&["ticket", "create", title]).code, Some(0));
    }
    let export = workspace.beside("audit.jsonl");
    let file = export.to_str().unwrap();
    assert_eq!(program.run(&["audit", "export", "-o", file]).code, Some(0));
    let text = std::fs::read_to_string(&export).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (end, rows) = lines.split_last().unwrap();
    assert!(end.contains("\"line\":\"end\"") && rows.len() == 6, "{text}");
    let within = text[..text.len() - end.len() - 20].to_owned();
    let cut = [
        (rows[..4].concat(), 4),
        (rows.concat(), 6),
        ([&rows[..3].concat(), *end].concat(), 3),
        ([&rows[1..].concat(), *end].concat(), 5),
        (within, 5),
        ([text.as_str(), rows[0]].concat(), 6),
    ];
    for (text, compared) in cut {
        std::fs::write(&export, &text).unwrap();
        let refused = program.run(&["audit", "verify", "--against", file]);
        assert_eq!(refused.code, Some(1), "{text}: {refused:?}");
        assert!(refused.stderr.contains("--partial") || refused.stderr.contains("line 6"), "{text}: {refused:?}");
        let partial = program.run(&["--json", "audit", "verify", "--against", file, "--partial"]);
        assert_eq!((partial.code, &partial.json()["compared"]), (Some(0), &json!(compared)), "{text}: {partial:?}");
    }
    // Nor does it prove anything where a row is another than its hash says.
    std::fs::write(&export, text.replacen("ticket.create", "ticket.delete", 1)).unwrap();
    for options in [&["--partial"][..], &[]] {
        let refused = program.run(&[&["audit", "verify", "--against", file], options].concat());
        assert!(refused.code == Some(1) && refused.stderr.contains("line 1: this row is not what"), "{refused:?}");
    }
    // What was compared with nothing does not hold.
    std::fs::write(&export, "").unwrap();
    let nothing = program.run(&["audit", "verify", "--against", file, "--partial"]);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("no row to compare with"), "{nothing:?}");
    // Of an audit that had not begun it is whole as well.
    std::fs::rename(workspace.state(), workspace.beside("former")).unwrap();
    assert_eq!(program.run(&["init", "--new"]).code, Some(0));
    assert_eq!(program.run(&["audit", "export", "-o", file]).code, Some(0));
    assert_eq!(program.run(&["audit", "verify", "--against", file]).code, Some(0));
}
