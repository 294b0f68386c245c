//! `toolhost review watch` tells a person about each new ask, by a line, the bell and a notification, and takes the answer at the terminal.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::{Value, json};
use toolhost_testkit::{Program, TempWorkspace, until};

use crate::room::program;
use crate::typist::Typist;

const ASKS: &str = "[[profiles.all.rules]]\ntool = 'bash'\ndecide = 'ask'\nwhy = 'a test'\n";
/// Stands in for the program of a desktop: it writes down its arguments.
const NOTIFIER: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\" >> \"$HOME/notified\"\n";

fn asking(workspace: &TempWorkspace) -> Program {
    workspace.write_beside("operator.toml", ASKS);
    workspace.make_folder("home");
    program(workspace)
        .variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
        .variable("HOME", workspace.path("home"))
        .variable("PATH", format!("{}:/usr/bin:/bin", workspace.path("bin").display()))
}

fn ask(program: &Program, command: &str) -> String {
    let said = program.run(&["--json", "call", "bash", &json!({ "command": command }).to_string()]).json();
    said["data"]["approvalId"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_watches_is_told_of_what_comes_by_a_line_the_bell_and_a_notification() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    workspace.write_script("bin/notify-send", NOTIFIER);
    let mut watching = program.command(&["--json", "review", "watch", "--bell", "--notify"]);
    let mut watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    for (command, shown) in [("echo '<b>one</b>' & x", "&lt;b&gt;one&lt;/b&gt;' &amp; x"), ("echo two\nthree", "two")] {
        let id = ask(&program, command);
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["tool"], "bash", "{line}");
        until("it is shown", || workspace.has("home/notified")).await;
        let notified = workspace.read("home/notified");
        let parts: Vec<&str> = notified.lines().collect();
        assert_eq!(parts[..3], ["--app-name=Toolhost", "--", &format!("{id} waits for you")], "{notified}");
        assert!(parts.len() == 4 && parts[3].contains(shown), "{notified}");
        std::fs::remove_file(workspace.path("home/notified")).unwrap();
    }
    Program::new("/bin/kill", &workspace).bare().run(&["-TERM", &watching.id().to_string()]);
    let mut rang = String::new();
    watching.stderr.take().unwrap().read_to_string(&mut rang).unwrap();
    assert_eq!(rang.matches('\u{7}').count(), 2, "{rang:?}");
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

/// How an ask ended, as `review show` has it.
fn ended(program: &Program, id: &str) -> (Value, Value) {
    let ask = program.run(&["--json", "review", "show", id]).json();
    (ask["state"].clone(), ask["answer"].clone())
}

#[test]
fn each_key_of_the_watch_is_the_answer_that_its_menu_names() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let mut person = Typist::of(&program, &["review", "watch"]);
    let menu = "[a]llow  allow by [r]ule  [e]dit arguments  [d]eny COMMENT  [l]ater";
    for (command, keys, shown, state, answer) in [
        ("echo one", "a\n", "is allowed", "answered", json!({ "say": "allow" })),
        ("echo two", "d not now\n", "is denied", "answered", json!({ "say": "deny", "comment": "not now" })),
        ("echo three", "n\n", "is denied", "answered", json!({ "say": "deny" })),
        // What is no key is no answer, and neither is nothing.
        ("echo four", "x\n\nY\n", "is allowed", "answered", json!({ "say": "allow" })),
        (
            "echo five",
            "e {\"command\": \"echo edited\"}\n",
            "is allowed with your arguments",
            "answered",
            json!({ "say": "allow_edited" }),
        ),
    ] {
        let id = ask(&program, command);
        person.sees(&format!("approval needed {id}"));
        person.sees(menu);
        person.types(keys);
        person.sees(&format!("{id} {shown}"));
        let (is, said) = ended(&program, &id);
        assert_eq!(is, state, "{command}: {said}");
        for (field, value) in answer.as_object().unwrap() {
            assert_eq!(&said[field], value, "{command}: {said}");
        }
    }
    let later = ask(&program, "echo later");
    person.sees(&format!("approval needed {later}"));
    person.sees(menu);
    person.types("l\n");
    // Answered elsewhere while it is shown, it is left.
    let elsewhere = ask(&program, "echo elsewhere");
    person.sees(&format!("approval needed {elsewhere}"));
    person.sees(menu);
    assert_eq!(program.run(&["review", "decide", &elsewhere, "--deny"]).code, Some(0));
    person.sees(&format!("{elsewhere} was answered before by local: deny"));
    assert_eq!(ended(&program, &later).0, "open");
    // A rule is asked about once more.
    let by_rule = ask(&program, "echo by rule");
    person.sees(&format!("approval needed {by_rule}"));
    person.sees(menu);
    person.types("r\n");
    person.sees("allow this for 8 hours?");
    person.types("y\n");
    person.sees(&format!("{by_rule} is allowed"));
    let rules = program.run(&["--json", "approvals", "list"]).json();
    assert_eq!(rules.as_array().map(Vec::len), Some(1), "{rules}");
    person.types("\u{3}");
    assert!(matches!(person.leaves(), Some(0 | 130)));
}

#[test]
fn a_question_takes_the_number_of_an_answer_and_no_other_number() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let ask = |question: &str| {
        let arguments = json!({ "question": question, "choices": ["PostgreSQL", "SQLite"] }).to_string();
        let asked = program.run(&["--json", "call", "human.ask", &arguments]).json();
        asked["data"]["approvalId"].as_str().unwrap().to_owned()
    };
    let mut person = Typist::of(&program, &["review", "watch"]);
    let menu = "one of these words: cancel, later, quit";
    let first = ask("Which?\n1 | safe\n");
    // The question's own list has the mark of what an agent wrote.
    person.sees("| 1 | safe");
    person.sees("answers to choose from, by their numbers:");
    person.sees("1 | PostgreSQL");
    person.sees(menu);
    person.types("?\n");
    person.sees("leave it open");
    person.sees(menu);
    person.types("7\n");
    person.sees("they are 1 to 2");
    assert_eq!(ended(&program, &first).0, "open");
    person.sees(menu);
    person.types("2\n");
    person.sees(&format!("{first} is answered: SQLite"));
    let second = ask("And then?");
    person.sees(menu);
    person.types("q\n");
    assert_eq!((person.leaves(), ended(&program, &second).0), (Some(0), json!("open")));
}

#[test]
fn one_key_answers_the_watch_which_counts_what_waits_and_tells_what_came_of_it() {
    let workspace = TempWorkspace::new();
    let program = asking(&workspace);
    let first = ask(&program, "echo one; exit 3");
    let second = ask(&program, "echo two");
    let mut person = Typist::of(&program, &["review", "watch"]);
    let menu = "[l]ater";
    person.sees(&format!("approval needed {first} · 1 of 2 · asked "));
    person.sees(menu);
    // Each key is explained, and the one that would stop the program does nothing.
    person.types("?");
    person.sees("  a  allow this one call");
    person.sees("  q  leave it open, and ask nothing more here");
    person.sees(menu);
    person.types("\u{1a}");
    person.sees(menu);
    person.types("a");
    person.sees(&format!("{first} is allowed"));
    // What was typed before a question stood there is no answer to it.
    person.types("a");
    person.sees(&format!("approval needed {second} · 2 of 2 · asked "));
    person.sees(menu);
    person.types("d");
    person.sees("comment for the agent");
    person.types("not yet\n");
    person.sees(&format!("{second} is denied"));
    let (state, said) = ended(&program, &second);
    assert_eq!((state, &said["comment"]), (json!("answered"), &json!("not yet")));
    let ran = program.run(&["call", "bash", &json!({ "command": "echo one; exit 3" }).to_string()]);
    assert!(ran.stdout.contains("one"), "{ran:?}");
    person.sees(&format!("{first}: the command ran and ended with 3"));
    // An arrow is no answer, and neither is a letter of none.
    let third = ask(&program, "echo three");
    person.sees(&format!("approval needed {third} · asked "));
    person.sees(menu);
    person.types("\u{1b}[A");
    person.types("x");
    person.sees("not taken");
    assert_eq!(ended(&program, &third).0, "open");
    person.sees(menu);
    person.types("q");
    assert_eq!((person.leaves(), ended(&program, &third).0), (Some(0), json!("open")));
    assert_eq!(program.run(&["review", "decide", &third, "--deny"]).code, Some(0));
    // Where nothing is asked, the same key ends the watch.
    for key in ["q", "\u{4}"] {
        let mut person = Typist::of(&program, &["review", "watch"]);
        person.sees("q or Ctrl-C ends the watch");
        person.types(key);
        assert_eq!(person.leaves(), Some(0), "{key:?}");
    }
}
