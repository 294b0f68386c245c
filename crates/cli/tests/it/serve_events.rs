//! The stream of events of a server, and sessions that other processes run.

use serde_json::json;
use toolhost_testkit::engines::engines;
use toolhost_testkit::{HttpStream, TempWorkspace, request};

use crate::room::program;
use crate::served::{Served, token};

async fn listen(server: &Served, token: &str, project: &str, last: i64) -> HttpStream {
    let (bearer, last) = (format!("Bearer {token}"), last.to_string());
    let headers = [("authorization", bearer.as_str()), ("last-event-id", last.as_str())];
    let target = format!("/api/v1/projects/{project}/events");
    HttpStream::open(server.address("address"), request(("GET", &target), &headers, "").as_bytes()).await
}

fn ids(text: &str) -> Vec<i64> {
    text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

/// Name and data of each event.
fn events(text: &str) -> Vec<(String, serde_json::Value)> {
    let events = text.split("\n\n").filter_map(|event| {
        let name = event.lines().find_map(|line| line.strip_prefix("event: "))?;
        let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
        Some((name.to_owned(), serde_json::from_str(data).ok()?))
    });
    events.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_another_process_is_in_the_stream_of_a_server() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        workspace.write("a.txt", "alpha\n");
        let program = engine.under(program(&workspace));
        let (token, project) = token(&program, &["--right", "read"]);
        let server = Served::start(&program, &[]);
        let mut live = listen(&server, &token, &project, 0).await;
        assert!(live.until("text/event-stream").await.1);
        let read = json!({ "tool": "file_read", "arguments": { "path": "a.txt" } });
        workspace.write_beside(
            "story.json",
            &json!({ "turns": [{ "calls": [read] }, { "text": "It says alpha." }] }).to_string(),
        );
        let model = format!("script:{}", workspace.beside("story.json").display());
        let ran = program.run(&["run", "read a", "--model", &model]);
        assert_eq!(ran.code, Some(0), "{engine}: {ran:?}");
        let (text, heard) = live.until("\"state\":\"done\"}\n\n").await;
        assert!(heard, "{engine}: {text}");
        // The row of a read may be written after that. What another call writes comes after all of the session's process.
        let more = program.run(&["call", "ticket.create", "{\"title\":\"t\"}"]);
        assert_eq!(more.code, Some(0), "{engine}: {more:?}");
        let (text, heard) = live.until("\"tool\":\"ticket.create\"").await;
        assert!(heard, "{engine}: {text}");
        let events = events(&text);
        let steps: Vec<&str> = events.iter().filter_map(|(_, data)| data["step"].as_str()).collect();
        assert_eq!(steps, ["open", "turn_0", "call_0_0", "turn_1", "check_1"], "{engine}: {text}");
        let call = &events.iter().find(|(name, data)| name == "step" && data["kind"] == "call").unwrap().1;
        assert!(call["tool"] == "file.read" && call["ok"] == true, "{engine}: {call}");
        let row = &events.iter().find(|(name, data)| name == "finished" && data["tool"] == "file.read").unwrap().1;
        assert_eq!(row["callId"], call["callId"], "{engine}: {text}");
        assert!(!text.contains("It says alpha"), "{engine}: {text}");
        let all = ids(&text);
        let end = *all.last().unwrap();
        assert_eq!(all, (1..=end).collect::<Vec<_>>(), "{engine}");
        // Whoever comes again after any of them hears the others, once.
        for last in 0..end {
            let mut again = listen(&server, &token, &project, last).await;
            let (text, heard) = again.until(&format!("id: {end}\n")).await;
            assert!(heard, "{engine}: {text}");
            let heard: Vec<i64> = ids(&text).into_iter().filter(|id| *id <= end).collect();
            assert_eq!(heard, (last + 1..=end).collect::<Vec<_>>(), "{engine}");
        }
    }
}
