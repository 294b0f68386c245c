//! `toolhost review watch` tells a person about each new ask: by a line, the bell and a notification.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::{Value, json};
use toolhost_testkit::{Program, TempWorkspace, until};

use crate::room::program;

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
