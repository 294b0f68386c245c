//! Commands that mean to deceive or to hold up the host that decides about them, through the real program.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace};

use crate::room::program;

/// Each of its commands is asked about; some are allowed, some denied by a rule.
const RULES: &str = "[approvals]\nhold_seconds = 0\n\
    [profiles.ruled]\nextends = 'developer'\n\
    [[profiles.ruled.rules]]\ntool = 'bash'\nwhen = { command = 'touch *' }\ndecide = 'deny'\n\
    [[profiles.ruled.rules]]\ntool = 'bash'\nwhen = { command = 'curl *' }\ndecide = 'ask'\n\
    [profiles.asking]\nextends = 'developer'\n\
    [[profiles.asking.rules]]\ntool = 'bash'\ndecide = 'ask'\n";
const FORMS: &str = r#"{ "elicitation": { "form": {} } }"#;

/// How long another call may take while hostile commands are looked at.
const ANSWER_WITHIN: Duration = Duration::from_millis(100);
/// How much memory hostile commands may cost the host, KiB.
const MEMORY_KIB_MAX: u64 = 64 * 1024;

fn ruled(workspace: &TempWorkspace) -> Program {
    workspace.write_beside("operator.toml", RULES);
    program(workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
}

async fn open(workspace: &TempWorkspace, profile: &str) -> McpProcess {
    let forms = serde_json::from_str(FORMS).unwrap();
    McpProcess::open_with(&ruled(workspace), &["--profile", profile, "--client-approvals"], Era::Session, forms).await
}

fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Small commands that take a parser of bash minutes, or gigabytes. None is longer than a command may be.
fn hostile() -> Vec<String> {
    let mut texts: Vec<String> = [500, 1_000, 5_000, 20_000]
        .iter()
        .map(|count| format!("echo {}a{}", "$(".repeat(*count), ")".repeat(*count)))
        .collect();
    for piece in [
        "if true;then ",
        "$((",
        "(",
        "{ ",
        "a|",
        "a;",
        "`",
        "\"$(",
        "[[ ( ( (",
        "case x in ",
        "<<A ",
        "&",
        ";",
        "<(",
        "! ",
        "{a,",
    ] {
        for bytes in [3_000, 30_000, 90_000] {
            texts.push(piece.repeat(bytes / piece.len()));
        }
    }
    texts
}

/// Rules: 002.43.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_commands_hold_up_no_other_call() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "here");
    let mut host = open(&workspace, "ruled").await;
    let read = json!({ "path": "a.txt" });
    assert_eq!(host.call("file_read", read.clone()).await["isError"], false);
    let before = peak_kib(host.pid());
    let mut slowest = Duration::ZERO;
    for texts in hostile().chunks(4) {
        let mut begun = Vec::new();
        for text in texts {
            begun.push(host.begin_call("bash", json!({ "command": text, "timeoutMs": 100 })).await);
        }
        let began = Instant::now();
        let answer = host.call("file_read", read.clone()).await;
        slowest = slowest.max(began.elapsed());
        assert_eq!(answer["isError"], false, "{answer}");
        for (id, text) in begun.into_iter().zip(texts) {
            let answer = host.answer_to(id).await;
            let error = &answer["result"]["structuredContent"]["error"];
            assert_eq!(error["kind"], "denied", "{:?}…: {answer}", text.chars().take(30).collect::<String>());
        }
    }
    let cost = peak_kib(host.pid()).saturating_sub(before);
    // The build of tests is not optimized, and others want the processor: that much slack on the bound of 100 ms.
    assert!(slowest < ANSWER_WITHIN * 5, "another call took {slowest:?}");
    assert!(cost < MEMORY_KIB_MAX, "hostile commands cost {cost} KiB");
    assert!(host.close().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_told_where_it_is_not_known_what_a_command_runs() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace, "asking").await;
    for (command, why, shown) in [
        ("ls a\u{b}# ; touch b", "a control character", "$ ls a\\u{b}# ; touch b"),
        ("ls a\\\n# ; touch b", "an escaped line end", "$ ls a\\\n| > # ; touch b"),
        ("cat <<E\n`touch b`\nE", "a here-document with expansions", "> `touch b`"),
    ] {
        let id = host.begin_call("bash", json!({ "command": command })).await;
        let request = host.until_asked().await;
        let message = request["params"]["message"].as_str().unwrap();
        assert!(message.contains("what it runs cannot be told") && message.contains(why), "{message}");
        assert!(message.contains(shown) && !message.contains("runs: "), "{message}");
        host.respond(&request, json!({ "action": "decline" })).await;
        assert_eq!(host.answer_to(id).await["result"]["isError"], true);
    }
    assert!(!workspace.has("b"));
    let program = ruled(&workspace);
    let list = program.run(&["--json", "review", "show", "ask-1"]).json();
    assert_eq!(list["shown"]["rule"], Value::Null, "{list}");
    assert!(host.close().await.success());
}

#[test]
fn rules_over_a_command_that_is_not_known_are_the_strictest() {
    let workspace = TempWorkspace::new();
    let program = ruled(&workspace);
    let decided = |command: &str| {
        let arguments = json!({ "command": command }).to_string();
        program.run(&["--json", "policy", "explain", "bash", &arguments, "--profile", "ruled"]).json()["verdict"]
            .clone()
    };
    assert_eq!(decided("echo test a")["decide"], "allow");
    assert_eq!(decided("curl $x")["decide"], "ask");
    for hidden in ["echo a\u{b}# ; touch b", "[[ -v 'a[$(touch b)]' ]]", "X=1 touch b", "cat <<E\n`touch b`\nE"] {
        assert_eq!(decided(hidden)["decide"], "deny", "{hidden:?}");
    }
    let why = decided("echo `a`")["why"].as_str().unwrap().to_owned();
    assert!(why.ends_with("what the command runs cannot be told: it has backticks"), "{why}");
}

#[test]
fn a_glob_that_nests_too_deeply_is_refused_by_its_limit() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "here");
    let deep = format!("{}b{}", "{a,".repeat(200), "}".repeat(200));
    for (tool, arguments) in
        [("file.list", json!({ "pattern": deep })), ("file.search", json!({ "pattern": "here", "glob": deep }))]
    {
        let ran = program(&workspace).run(&["--json", "call", tool, &arguments.to_string()]);
        let error = &ran.json()["error"];
        assert_eq!(error["kind"], "validation", "{tool}: {ran:?}");
        assert_eq!(error["message"], "glob: it nests braces more than 10 deep", "{tool}: {ran:?}");
        assert!(!ran.stderr.contains(&deep[..60]), "the pattern is in the log: {}", ran.stderr);
    }
}
