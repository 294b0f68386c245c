//! The command of a call is analyzed once, whatever looks at it, and not where other calls are answered.

use std::sync::{Arc, Mutex, mpsc};
use std::thread::ThreadId;

use serde_json::json;
use toolhost_contract::{Answer, ErrorKind};
use toolhost_host::analyze;
use toolhost_host::{Analyzer, Decision, Limits, Presented, Shown, Standing};
use toolhost_testkit::TempWorkspace;

use crate::room::fenced;

/// Rules that all look at the command, one of which asks about `echo`.
const RULES: &str = "[[profiles.all.rules]]\ntool = 'bash'\nwhen = { command = 'touch *' }\ndecide = 'deny'
[[profiles.all.rules]]\ntool = 'bash'\nwhen = { command = 'curl *' }\ndecide = 'ask'
[[profiles.all.rules]]\ntool = 'bash'\nwhen = { command = 'echo *' }\ndecide = 'ask'";

/// The texts that were analyzed, and where.
type Texts = Arc<Mutex<Vec<(String, ThreadId)>>>;

fn counting() -> (Analyzer, Texts) {
    let texts = Texts::default();
    let kept = Arc::clone(&texts);
    let analyzer = move |text: &str| {
        kept.lock().unwrap().push((text.to_owned(), std::thread::current().id()));
        analyze(text)
    };
    (Arc::new(analyzer), texts)
}

/// The texts analyzed since the last time.
fn taken(texts: &Texts) -> Vec<String> {
    std::mem::take(&mut *texts.lock().unwrap()).into_iter().map(|(text, _)| text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_analyzes_its_command_once_whatever_becomes_of_it() {
    let voice = |shown: &Shown| -> Presented {
        let command = shown.arguments["command"].as_str().unwrap();
        let rule = shown.rule.clone().filter(|_| command.contains("rule"));
        let rule = rule.map(|conditions| Standing { conditions, lives_ms: 60_000 });
        let answer = match command {
            "echo other" => Answer::AllowEdited { arguments: json!({ "command": "echo edited" }) },
            "echo no" => Answer::Deny { comment: None },
            _ => Answer::Allow,
        };
        Presented::Decided(Decision { answer, rule })
    };
    let (analyzer, texts) = counting();
    let house = fenced(TempWorkspace::repository(&[("a.txt", "a")])).operator(RULES).person(voice).analyzer(analyzer);
    let house = house.build().await;
    for (command, ok, analyzed) in [
        ("ls", true, vec!["ls"]),
        ("ls; touch x", false, vec!["ls; touch x"]),
        ("vim", false, vec!["vim"]),
        // Git meets a read-only folder and a hint is added.
        ("git commit --allow-empty -m x", true, vec!["git commit --allow-empty -m x"]),
        // Shown, allowed, and looked at again before it runs.
        ("echo yes", true, vec!["echo yes"]),
        ("echo no", false, vec!["echo no"]),
        ("echo $(ls)", true, vec!["echo $(ls)"]),
        ("echo `ls`", false, vec!["echo `ls`"]),
        // Allowed by a rule that is checked against the call, and then by that rule.
        ("echo rule a", true, vec!["echo rule a"]),
        ("echo rule b", true, vec!["echo rule b"]),
        // What a person typed is another command.
        ("echo other", true, vec!["echo other", "echo edited"]),
    ] {
        let outcome = house.call("bash", json!({ "command": command })).await;
        assert_eq!(outcome.ok, ok, "{command}: {outcome:?}");
        assert_eq!(taken(&texts), analyzed, "{command}");
    }
    house.call("file.read", json!({ "path": "a.txt" })).await;
    assert_eq!(taken(&texts), [""; 0], "no command, nothing to analyze");
}

#[tokio::test]
async fn a_command_is_not_analyzed_where_calls_are_answered() {
    let (analyzer, texts) = counting();
    let house = fenced(TempWorkspace::new()).operator(RULES).analyzer(analyzer).build().await;
    house.call("bash", json!({ "command": "ls" })).await;
    let threads: Vec<ThreadId> = texts.lock().unwrap().iter().map(|(_, thread)| *thread).collect();
    assert_eq!(threads.len(), 1);
    assert_ne!(threads[0], std::thread::current().id(), "this test's only worker");
}

#[tokio::test]
async fn an_analysis_that_does_not_end_ends_the_call_at_its_deadline_or_when_it_is_cancelled() {
    let (go_on, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let (began, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let analyzer: Analyzer = Arc::new(move |text| {
        began.send(()).unwrap();
        // Until the test is over.
        wait.lock().unwrap().recv().unwrap_err();
        analyze(text)
    });
    let limits = Limits { call_timeout_ms: 300, ..Limits::default() };
    let house = Arc::new(fenced(TempWorkspace::new()).limits(limits).analyzer(analyzer).build().await);
    let outcome = house.call("bash", json!({ "command": "ls" })).await;
    assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::Timeout, "{outcome:?}");
    begun.recv().await.unwrap();
    let hooks = house.hooks();
    let call = tokio::spawn({
        let (house, call, hooks) =
            (Arc::clone(&house), house.request("bash", json!({ "command": "ls" })), hooks.clone());
        async move { house.gate.call(call, hooks).await }
    });
    begun.recv().await.unwrap();
    hooks.cancel.cancel();
    let outcome = call.await.unwrap();
    assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::Cancelled, "{outcome:?}");
    drop(go_on);
}
