//! `toolhost review`: what waits for a person is listed, shown and answered.

use serde_json::json;
use toolhost_store::{AskKind, AskLimits, NewAsk};
use toolhost_testkit::TempWorkspace;
use toolhost_testkit::engines::engines;

use crate::room::program;

fn long_text() -> String {
    let text: String = "\n\r\nMind 1) ä€😀\t\"quotes\" \\ and {braces}  \n".chars().cycle().take(9_999).collect();
    text + "\n"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_queue_is_listed_by_its_beginning_and_said_to_go_on() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let house = engine.builder().workspace(workspace).build().await;
        for n in 0..203 {
            let new = NewAsk {
                project_id: house.project.id,
                kind: AskKind::Approval,
                digest: n.to_string(),
                effect_digest: String::new(),
                subject: None,
                round: 1,
                user_id: toolhost_testkit::USER,
                session_id: None,
                tool: "bash".to_owned(),
                call: json!({}),
                shown: json!({ "persona": "Ada", "summary": format!("{n}{}", "x".repeat(5000)), "detail": "d" }),
                // The house's clock stands still, far away.
                lives_ms: i64::MAX as u64,
                limits: AskLimits { open: i64::MAX, bytes: i64::MAX },
            };
            house.store.asks().open(&new).await.unwrap();
        }
        let listed = program.run(&["review", "list"]);
        assert!(listed.stderr.contains("3 more"), "{engine}: {}", listed.stderr);
        assert_eq!(listed.stdout.lines().count(), 201, "{engine}");
        assert!(listed.stdout.lines().all(|line| line.chars().count() < 300), "{engine}: {}", listed.stdout);
        let listed = program.run(&["--json", "review", "list", "--all"]).json();
        assert_eq!((&listed[0]["number"], listed[0].get("shown")), (&json!(203), None), "{engine}: {}", listed[0]);
        // What follows `--deny` is no comment.
        let denied = program.run(&["review", "decide", "--deny", "ask-901", "ask-902"]);
        assert!(denied.stderr.contains("`ask-901`") && denied.stderr.contains("`ask-902`"), "{engine}: {denied:?}");
        let spaced = program.run(&["review", "decide", "ask-901", "--deny", "because"]);
        assert!(spaced.code == Some(2) && spaced.stderr.contains("--deny=\"because\""), "{engine}: {spaced:?}");
    }
}

#[test]
fn a_list_says_where_a_question_has_more_lines() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    for (question, line) in
        [("Do you agree?\n\nTo what stands here.", "Do you agree? …\n"), ("And now?\n", "And now?\n")]
    {
        let asked = program.run(&["call", "human.ask", &json!({ "question": question }).to_string()]);
        assert_eq!(asked.code, Some(3), "{asked:?}");
        let listed = program.run(&["review", "list"]).stdout;
        assert!(listed.contains(line), "{listed}");
    }
}

/// Rules: 002.4, 002.72.
#[test]
fn at_the_keyboard_a_review_is_listed_shown_and_answered() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let long = long_text();
    let ask = json!({ "title": "Todo List", "content": "# Todo\n\u{1b}[2J", "feedback": true }).to_string();
    let first = program.run(&["--json", "call", "review.content", &ask]);
    assert_eq!((first.code, &first.json()["data"]["status"]), (Some(3), &json!("pending_review")), "{first:?}");
    let listed = program.run(&["review", "list"]).stdout;
    assert!(listed.contains("ask-1") && listed.contains("Todo List"), "{listed}");
    let shown = program.run(&["review", "show", "ask-1"]).stdout;
    assert!(
        shown.contains("asks for a review, round 1:\n| Todo List\n\n| # Todo\n| \\u{1b}") && !shown.contains('\u{1b}'),
        "{shown}"
    );
    for (arguments, code, why) in [
        (&["ask-1"][..], 2, "say the answer: --pass, --edit, --feedback, --cancel"),
        (&["ask-1", "--allow"], 1, "`allow` is no answer to this"),
        (&["ask-1", "--yes"], 1, "`yes` is no answer to this"),
        (&["ask-1", "--feedback", ""], 1, "needs a text"),
        (&["ask-9", "--pass"], 1, "there is no `ask-9`"),
        (&["nonsense", "--pass"], 2, "is not an id such as ask-7"),
        (&["ask-1", "--pass", "--cancel"], 2, "cannot be used with"),
        (&["ask-1", "--pass", "--rule"], 2, "no rule is suggested"),
        (&[], 2, "say the answer: --pass"),
    ] {
        let ran = program.run(&[&["review", "decide"], arguments].concat());
        assert!(ran.stderr.contains(why), "{arguments:?}: {ran:?}");
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
    }
    let said = program.run_with_input(&["review", "decide", "ask-1", "--feedback", "-"], long.as_bytes());
    assert_eq!(said.code, Some(0), "{said:?}");
    let wait = json!({ "approvalId": "ask-1" }).to_string();
    let told = program.run(&["--json", "call", "approval.wait", &wait]).json();
    assert_eq!(told["data"]["outcome"]["data"]["feedback"].as_str(), Some(long.as_str()), "byte for byte");
    assert!(program.run(&["review", "list"]).stderr.contains("nothing waits for a person"));
    let all = program.run(&["review", "list", "--all"]).stdout;
    assert!(all.contains("used: feedback, by local"), "{all}");
    let second = program.run(&["--json", "call", "review.content", &ask.replace("# Todo", "# Better")]);
    assert_eq!(second.json()["data"]["approvalId"], "ask-2", "{second:?}");
    assert!(program.run(&["review", "decide", "--everything", "--pass"]).stdout.contains("ask-2 is answered: pass"));
    let told = program.run(&["--json", "call", "approval.wait", &wait.replace("ask-1", "ask-2")]).json();
    assert_eq!(told["data"]["outcome"]["data"]["round"], 2, "{told}");
    assert_eq!(program.run(&["audit", "verify"]).code, Some(0));
}
