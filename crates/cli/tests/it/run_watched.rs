//! `toolhost run` as somebody watches it: what calls do, what they change and print; a conversation; and going on with it.

use serde_json::{Value, json};
use toolhost_testkit::{Program, TempWorkspace};

use crate::room::program;
use crate::typist::Typist;

/// What the redactor takes for a key.
const KEY: &str = "sk-abcdefghijklmnop1234";
/// A line of a private key.
const BODY: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "tool": tool, "arguments": arguments })
}

/// The program, and a model that plays these turns.
fn playing(workspace: &TempWorkspace, turns: &Value) -> (Program, String) {
    workspace.write_beside("story.json", &json!({ "turns": turns }).to_string());
    (program(workspace), format!("script:{}", workspace.beside("story.json").display()))
}

fn events(printed: &str) -> Vec<Value> {
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_program_is_told_what_an_edit_changed_and_what_a_command_prints_while_it_runs() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "one\ntwo\n");
    // Its first line is long past when the rest of it would be the end of what was printed.
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n", format!("{BODY}\n").repeat(200));
    workspace.write("key.pem", &key);
    let slow = format!(
        "cat key.pem; while [ ! -e go ]; do :; done; echo first; echo {KEY}; while [ ! -e stop ]; do :; done; echo last"
    );
    let (program, model) = playing(
        &workspace,
        &json!([
            { "calls": [
                call("file_edit", &json!({ "path": "a.txt", "edits": [{ "search": "two", "replace": "TWO" }] })),
                call("bash", &json!({ "command": slow })),
                call("bash", &json!({ "command": "exit 7" })),
                call("file_read", &json!({ "path": "../outside" })),
            ] },
            { "text": "done" },
        ]),
    );
    // The command ends only after somebody has read what it printed so far.
    let mut running = program.command(&["run", "go", "--json", "--model", &model]);
    let mut running = running.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(running.stdout.take().unwrap()));
    let mut seen = Vec::new();
    for line in lines {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert!(!event["output"].to_string().contains(BODY), "{event}");
        if event["output"].as_str().is_some_and(|output| output.contains("[redacted]")) {
            workspace.write("go", "");
        }
        if event["output"].as_str().is_some_and(|output| output.contains("first")) && !workspace.has("stop") {
            workspace.write("stop", "");
        }
        seen.push(event);
    }
    assert!(running.wait().unwrap().success());
    let outputs: Vec<&str> = seen.iter().filter_map(|event| event["output"].as_str()).collect();
    assert!(outputs.iter().any(|output| output.ends_with("first\n[redacted]\n")), "{outputs:?}");
    assert!(
        !seen.iter().any(|event| event.to_string().contains(KEY)
            && event["event"] != "call_started"
            && event["event"] != "said"),
        "{seen:?}"
    );
    let ended: Vec<&Value> = seen.iter().filter(|event| event["event"] == "call_ended").collect();
    assert!(ended[0]["diff"].as_str().unwrap().contains("-two\n+TWO"), "{}", ended[0]);
    assert_eq!((&ended[1]["exitCode"], &ended[2]["exitCode"]), (&json!(0), &json!(7)));
    assert_eq!((&ended[3]["kind"], &ended[3]["ok"]), (&json!("security"), &json!(false)));
    // The journal keeps it for whoever looks later.
    let replayed = program.run(&["session", "replay", "last", "--json"]);
    let replayed = events(&replayed.stdout);
    let edit = replayed.iter().find(|event| event["event"] == "call_ended").unwrap();
    assert_eq!(edit["diff"], ended[0]["diff"]);
}

#[test]
fn a_person_sees_sentences_diffs_and_what_went_wrong() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "one\ntwo\n");
    let (program, model) = playing(
        &workspace,
        &json!([
            { "text": "# Plan\nI **change** `a.txt`.", "calls": [
                call("file_edit", &json!({ "path": "a.txt", "edits": [{ "search": "two", "replace": "TWO" }] })),
                call("file_write", &json!({ "path": "b.txt", "content": "new\nfile\n" })),
                call("bash", &json!({ "command": "false" })),
                call("bash", &json!({ "command": "touch /etc/x" })),
                call("file_read", &json!({ "path": "../outside" })),
                call("file_read", &json!({ "path": "none.txt" })),
            ] },
            { "text": "Done: &#27;[2J *fine*." },
        ]),
    );
    let lines = program.run_at_terminal(120, "{}", &["run", "go", "--model", &model]);
    let text: String = lines.iter().map(|line| format!("{}\n", line.trim_end())).collect();
    let mut rest = &*text;
    for shown in [
        "| Plan\n",
        "| I change a.txt.\n",
        "-> Edit a file: a.txt, edits (1)\n",
        "   ok file.edit ",
        " edited a.txt (1 place)\n",
        "| -two\n| +TWO\n",
        "-> Write a file: b.txt, content 9 bytes\n",
        "| +new\n| +file\n",
        "-> Run a command: false\n",
        "   exit 1 bash ",
        "-> Run a command: touch /etc/x\n",
    ] {
        let at = rest.find(shown).unwrap_or_else(|| unreachable!("`{shown}` is not in the rest:\n{rest}\nof\n{text}"));
        rest = &rest[at + shown.len()..];
    }
    // Reads run at once, and end in any order.
    for shown in [
        "-> Read a file: ../outside\n",
        "-> Read a file: none.txt\n",
        "   fenced off ",
        "   failed ",
        "no file or folder `none.txt` in the workspace\n",
        "| Done: \\u{1b}[2J fine.\n",
    ] {
        assert!(rest.contains(shown), "{shown}: {rest}");
    }
    // For programs the words are as the model wrote them.
    let (program, model) = playing(&workspace, &json!([{ "text": "I **change** `a.txt`." }]));
    let plain = program.run(&["run", "go", "--model", &model]);
    assert_eq!(plain.stdout, "I **change** `a.txt`.\n");
}

#[test]
fn a_goal_comes_through_standard_input_and_none_needs_a_terminal() {
    let workspace = TempWorkspace::new();
    let (program, model) = playing(&workspace, &json!([{ "expect": { "user": "second line" }, "text": "yes" }]));
    let ran = program.run_with_input(&["run", "-", "--model", &model], b"first line\nsecond line\n");
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "yes\n"), "{ran:?}");
    for (arguments, input, said) in [
        (&["run", "--model", &*model][..], &b""[..], "needs a terminal"),
        (&["run", "-", "--model", &model], b" \n", "say what to do"),
        (&["run", "--json", "--model", &model], b"", "needs a terminal"),
    ] {
        let ran = program.run_with_input(arguments, input);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{arguments:?}: {ran:?}");
    }
    let large = vec![b'x'; 300 * 1024];
    let ran = program.run_with_input(&["run", "-", "--model", &model], &large);
    assert!(ran.code == Some(2) && ran.stderr.contains("256 KiB"), "{ran:?}");
}

#[test]
fn the_last_session_goes_on_and_an_id_may_be_its_beginning() {
    let workspace = TempWorkspace::new();
    let (program, model) = playing(
        &workspace,
        &json!([{ "text": "one" }, { "expect": { "user": "and then" }, "text": "two" }, { "text": "three" }]),
    );
    assert_eq!(program.run(&["run", "--continue", "--model", &model]).code, Some(1), "there is none yet");
    assert_eq!(program.run(&["run", "go", "--model", &model]).code, Some(0));
    let id = program.run(&["session", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let on = program.run(&["run", "-c", "and then"]);
    assert!(on.code == Some(0) && on.stdout.ends_with("two\n"), "{on:?}");
    let none = program.run(&["run", "--continue"]);
    assert!(none.code == Some(2) && none.stderr.contains("say what comes next"), "{none:?}");
    let of_other_kind = program.run(&["run", "--continue", "more", "--profile", "all"]);
    assert_eq!(of_other_kind.code, Some(2), "a session keeps its profile");
    let whole = program.run(&["session", "show", &id]).stdout;
    for meant in [&id[..7], &id[3..9], "last"] {
        assert_eq!(program.run(&["session", "show", meant]).stdout, whole, "{meant}");
        assert_eq!(program.run(&["session", "replay", meant]).code, Some(0), "{meant}");
    }
    for meant in ["as_", "as_zzzz", "as_%", "", "as_0000000000000000f"] {
        let ran = program.run(&["session", "show", meant]);
        assert!(ran.code == Some(1) && ran.stderr.contains("there is no session"), "{meant}: {ran:?}");
    }
}

#[test]
fn a_conversation_goes_on_until_the_person_leaves() {
    let workspace = TempWorkspace::new();
    let (program, model) = playing(
        &workspace,
        &json!([
            { "expect": { "user": "begin\nhere" }, "calls": [call("file_list", &json!({}))] },
            { "text": "first answer" },
            { "expect": { "user": "and now" }, "text": "second answer" },
            { "text": "third answer" },
        ]),
    );
    let mut person = Typist::of(&program, &["run", "--model", &model]);
    person.sees("you> ");
    person.types("  \n");
    person.sees("you> ");
    // What is written as a command is none for the model.
    person.types("/help\n");
    person.sees("continues the message on the next line");
    person.sees("you> ");
    person.types("/clear all of it\n");
    person.sees("unknown command `/clear`: it was not sent");
    person.sees("you> ");
    person.types("begin\\\n");
    person.sees("...> ");
    person.types("here\n");
    person.sees("-> List files");
    person.sees("| first answer");
    person.sees("you> ");
    person.types("and now\n");
    let shown = person.sees_before("| second answer");
    assert!(!shown.contains("first answer") && !shown.contains("List files"), "it was told before: {shown}");
    person.sees("you> ");
    person.types("/quit\n");
    assert_eq!(person.leaves(), Some(0));
    let sessions = program.run(&["session", "list", "--json"]).json();
    assert_eq!(sessions.as_array().map(Vec::len), Some(1), "{sessions}");
    // It is taken up again where it was, and the end of the input leaves it.
    let mut person = Typist::of(&program, &["run", "--continue"]);
    person.sees("has given its answer");
    person.sees("you> ");
    person.types("go on\n");
    person.sees("| third answer");
    person.sees("you> ");
    person.types("\u{4}");
    assert_eq!(person.leaves(), Some(0));
}

#[test]
fn a_session_begins_with_the_files_that_are_named() {
    let workspace = TempWorkspace::new();
    workspace.write("src/a.rs", "// here\n");
    let turns = json!([
        {
            "expect": { "user": "src/a.rs" },
            "calls": [
                call("bash", &json!({ "command": "exit 7" })),
                call("file_read", &json!({ "path": "src/a.rs" })),
            ],
        },
        { "text": "done" },
    ]);
    let (program, model) = playing(&workspace, &turns);
    let run = |files: &[&str]| {
        let named = files.iter().flat_map(|file| ["--file", file]);
        program.run(&["run", "go", "--model", &model].into_iter().chain(named).collect::<Vec<_>>())
    };
    for wrong in ["none.rs", "../outside", "/etc/passwd", ""] {
        let ran = run(&["src/a.rs", wrong]);
        assert!(ran.code == Some(2) && ran.stderr.contains("one of the files for the session"), "{wrong}: {ran:?}");
    }
    assert_eq!(program.run(&["session", "list", "--json"]).json(), json!([]), "no session was begun");
    let ran = run(&["src/a.rs", "./src/"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("2 calls, 1 failed"), "{ran:?}");
    let shown = program.run(&["session", "show", "last", "--json"]).json();
    assert_eq!(shown["steps"][0]["body"]["goal"], "go\n\nLook at these first:\n- src/a.rs\n- src");
    // The table describes a call in the words of the live view.
    let table = program.run(&["session", "show", "last"]).stdout;
    for told in ["Run a command: exit 7", "exit 7  ", "Read a file: src/a.rs", "ok  "] {
        assert!(table.contains(told), "{told}: {table}");
    }
    let on = program.run(&["run", "--continue", "more", "--file", "src/a.rs"]);
    assert_eq!(on.code, Some(2), "it has begun already: {on:?}");
}

#[test]
fn what_a_session_does_is_drawn_below_and_goes_away() {
    let workspace = TempWorkspace::new();
    let slow = "echo working; while [ ! -e stop ]; do :; done";
    let (program, model) =
        playing(&workspace, &json!([{ "calls": [call("bash", &json!({ "command": slow }))] }, { "text": "done" }]));
    let mut person = Typist::of(&program, &["run", "go", "--model", &model]);
    person.sees("| working");
    person.sees(" s · Run a command: echo working;");
    // It is drawn over, and not below what was drawn before.
    person.sees("\u{1b}[1A\r\r\u{1b}[J| working");
    workspace.write("stop", "");
    person.sees("   ok bash ");
    person.sees("| done");
    assert_eq!(person.leaves(), Some(0));
    // Where nobody wants it, nothing is drawn.
    workspace.write("stop", "");
    for around in ["{} --quiet", "TERM=dumb {}", "{} 2>/dev/null"] {
        let mut terminal = program.at_terminal(100, around, &["run", "go", "--model", &model]);
        let shown = String::from_utf8(terminal.stdin(std::process::Stdio::null()).output().unwrap().stdout).unwrap();
        assert!(shown.contains("done") && !shown.contains('\u{1b}'), "{around}: {shown:?}");
    }
}

#[test]
fn ctrl_c_ends_the_call_and_what_its_command_had_printed_is_kept() {
    let workspace = TempWorkspace::new();
    let slow = "echo 'printed before'; while :; do :; done";
    let (program, model) = playing(
        &workspace,
        &json!([
            { "calls": [call("bash", &json!({ "command": slow }))] },
            { "expect": { "tool": "bash", "contains": "printed before", "failed": true }, "text": "it was there" },
        ]),
    );
    let mut person = Typist::of(&program, &["run", "go", "--model", &model]);
    person.sees("| printed before");
    person.types("\u{3}");
    person.sees("ending the call under way and pausing");
    person.sees("paused");
    assert_eq!(person.leaves(), Some(1));
    let on = program.run(&["run", "--continue"]);
    assert!(on.code == Some(0) && on.stdout.ends_with("it was there\n"), "{on:?}");
}

#[test]
fn a_call_that_waits_does_not_look_done_and_a_command_shows_its_last_lines() {
    let workspace = TempWorkspace::new();
    workspace.write("old.txt", "before\n");
    workspace.write_beside(
        "operator.toml",
        "[approvals]\nhold_seconds = 0\n[[profiles.developer.rules]]\ntool = 'file.write'\nwhen = { path = 'asked.txt' }\ndecide = 'ask'\n",
    );
    let write = |path: &str| call("file_write", &json!({ "path": path, "content": "new\n" }));
    let (program, model) = playing(
        &workspace,
        &json!([
            { "calls": [write("asked.txt"), write("old.txt"),
                        call("bash", &json!({ "command": "echo one; echo two >&2; exit 4" }))] },
            { "text": "done" },
        ]),
    );
    let program = program.variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    let events = events(&program.run(&["run", "go", "--json", "--model", &model]).stdout);
    let ended: Vec<&Value> = events.iter().filter(|event| event["event"] == "call_ended").collect();
    assert_eq!((&ended[0]["waits"], &ended[0]["diff"]), (&json!(true), &Value::Null), "{}", ended[0]);
    // What stood there before is not known here: that nothing was taken away would not be true.
    assert_eq!((&ended[1]["waits"], &ended[1]["diff"]), (&Value::Null, &Value::Null), "{}", ended[1]);
    assert_eq!(ended[2]["output"], "one\ntwo");
    let shown = program.run(&["session", "replay", "last"]).stderr;
    assert!(shown.contains("   waits Write a file: asked.txt, ") && !shown.contains("+new"), "{shown}");
    assert!(shown.contains("| one\n| two\n   exit 4 "), "{shown}");
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let workspace = TempWorkspace::new();
    workspace.write_beside(
        "operator.toml",
        "[[profiles.developer.rules]]\ntool = 'bash'\nwhen = { command = 'touch*' }\ndecide = 'ask'\n",
    );
    let wait = "echo begun; while [ ! -e stop ]; do :; done";
    let (program, model) = playing(
        &workspace,
        &json!([
            { "calls": [call("bash", &json!({ "command": wait })), call("bash", &json!({ "command": "touch done" }))] },
            { "text": "done" },
        ]),
    );
    let program = program.variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    let mut person = Typist::of(&program, &["run", "go", "--model", &model]);
    person.sees("| begun");
    // A line, and half of one; the rest of that comes when the question is there.
    person.types("y\ny");
    workspace.write("stop", "");
    person.sees("approval needed ask-1");
    person.sees("[l]ater");
    person.types("\n");
    person.sees("[l]ater");
    assert!(!workspace.has("done"), "the key was typed before the question");
    person.types("a word: plea");
    person.types("se touch nothing\n");
    person.sees("not taken");
    assert!(!workspace.has("done"));
    // Words behind a yes may have meant something else.
    person.types("a b\n");
    person.sees("stands alone");
    assert!(!workspace.has("done"));
    person.types("a\n");
    person.sees("| done");
    person.leaves();
    assert!(workspace.has("done"));
}
