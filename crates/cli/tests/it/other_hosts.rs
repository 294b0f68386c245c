//! Calls as the models of other hosts write them: they do what was meant, or say what to write instead.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, TempWorkspace};

use crate::room::program;

/// Sixty calls that were seen with real clients, and some more. `$ROOT` is the workspace's folder. Each `works`, with this in its text, or
/// is `told` this.
const CALLS: &str = include_str!("other_hosts.json");

const MAIN: &str = "import sys\n\n\ndef greet(name):\n    print(f\"Hi, {name}!\")\n\n\ndef main():\n    greet(sys.argv[1])\n    greet(\"x\")\n\n\nif __name__ == \"__main__\":\n    main()\n";

fn furnish(workspace: &TempWorkspace) {
    let files = [
        ("README.md", "# Demo\n\nHello world.\n\nTODO: write docs\n"),
        ("src/main.py", MAIN),
        ("tabs.go", "package main\n\nfunc main() {\n\tx := 1\n\t_ = x\n}\n"),
        ("brackets.c", "int a[0];\n"),
        ("crlf.txt", "one\r\ntwo\r\n"),
        ("quotes.txt", "He said “hello” and left — it’s done.\n"),
        ("edit1.py", "print('Hello')\n"),
        ("edit2.py", "def greet():\n    greet()\n"),
        ("edit3.py", "one\ntwo\nthree\n"),
        ("with space.txt", "spaced\n"),
        (".gitignore", "*.log\n"),
        ("ignored.log", "log\n"),
    ];
    files.iter().for_each(|(path, text)| workspace.write(path, text));
    workspace.git(&["init", "-q"]);
    workspace.git(&["add", "-A"]);
    workspace.git(&["commit", "-qm", "first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_as_the_models_of_other_hosts_write_them_work_or_say_what_to_write() {
    let workspace = TempWorkspace::new();
    furnish(&workspace);
    let mut host = McpProcess::open(&program(&workspace), &["--profile", "developer"], Era::Session).await;
    let calls = CALLS.replace("$ROOT", workspace.root().to_str().unwrap());
    let calls: Vec<Value> = serde_json::from_str(&calls).unwrap();
    assert_eq!(calls.len(), 123);
    let mut wrong = Vec::new();
    for (n, call) in calls.iter().enumerate() {
        let params = json!({ "name": call["tool"], "arguments": call["arguments"] });
        let answer = host.request("tools/call", params.clone()).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        let (is_error, wanted) = match (&call["works"], &call["told"]) {
            (Value::String(text), _) => (false, text),
            (_, Value::String(text)) => (true, text),
            _ => unreachable!("{call}"),
        };
        if answer["result"]["isError"] != is_error || !text.contains(wanted.as_str()) {
            wrong.push(format!(
                "{n}: {params}\n   {}",
                if text.is_empty() { answer.to_string() } else { text.to_owned() }
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), calls.len(), wrong.join("\n"));
}
