//! Fills the project of a workspace with sessions and rows of the audit, by the store's own calls: `full_project STATE ROOT
//! SESSIONS ROWS`. The benchmarks use it.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;
use toolhost_contract::{Durability, RandomIds, SystemClock, Trace};
use toolhost_store::{Entry, Event, NewSession, Project, Store};
use toolhost_testkit::SUBJECTS;

/// Rows that are under way at once: they share their commits.
const AT_ONCE: usize = 2000;
/// Calls of each session.
const CALLS: usize = 4;
const USER: i64 = 1;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [state, root, sessions, rows] = &arguments[..] else {
        let _ = writeln!(std::io::stderr(), "full_project STATE ROOT SESSIONS ROWS");
        return ExitCode::FAILURE;
    };
    let (Ok(sessions), Ok(rows)) = (sessions.parse(), rows.parse()) else { return ExitCode::FAILURE };
    match fill(Path::new(state), Path::new(root), sessions, rows).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

async fn fill(state: &Path, root: &Path, sessions: usize, rows: usize) -> toolhost_store::Result<()> {
    let store = Store::open(state, Arc::new(SystemClock::default()), SUBJECTS, Durability::Process).await?;
    let project = store.project(root, "full", "local").await?;
    for number in 0..sessions {
        store.sessions().create(&session(&project, number)).await?;
    }
    let audit = store.audit();
    let mut under_way = JoinSet::new();
    for number in 0..rows {
        if under_way.len() >= AT_ONCE {
            under_way.join_next().await;
        }
        let (audit, entry) = (audit.clone(), row(&project, number));
        under_way.spawn(async move { audit.append(entry).await });
    }
    while under_way.join_next().await.is_some() {}
    store.close().await
}

fn id(number: usize) -> String {
    format!("as_{number:016x}")
}

fn session(project: &Project, number: usize) -> NewSession {
    let mut steps = vec![("open".to_owned(), json!({ "goal": format!("goal {number}"), "persona": "Ada" }))];
    for turn in 0..CALLS {
        let call = format!("call_{turn}_0");
        let asked = json!([{ "id": call, "name": "file_read", "arguments": { "json": { "path": "a.txt" } } }]);
        let reply = json!({ "text": "I look.", "calls": asked, "stop": "calls", "usage": { "inputTokens": 900, "outputTokens": 20 } });
        steps.push((
            format!("turn_{turn}"),
            json!({ "reply": reply, "callIds": ["c"], "cost": 0.01, "ms": 900, "elapsedMs": 900 }),
        ));
        steps.push((call, json!({ "callId": "c", "tool": "file.read", "ok": true, "content": "one\ntwo\n", "brief": "2 lines", "ms": 3 })));
    }
    NewSession {
        project_id: project.id,
        user_id: USER,
        id: id(number),
        profile: "developer".to_owned(),
        model: "scripted".to_owned(),
        title: format!("goal {number}"),
        steps,
    }
}

/// A call that ended: of each ten, one has changed something.
fn row(project: &Project, number: usize) -> Entry {
    use toolhost_contract::IdSource as _;
    let (tool, effect) = if number.is_multiple_of(10) { ("file.write", "writes") } else { ("file.read", "reads") };
    Entry {
        event: Event::Finished,
        call_id: RandomIds.call_id(),
        session_id: Some(id(number / 100)),
        user_id: USER,
        project_id: project.id,
        caller: json!({ "door": "mcp", "kind": "model", "profile": "developer", "persona": "Ada" }),
        tool: tool.to_owned(),
        effect: Some(effect.to_owned()),
        arguments: json!({ "path": format!("src/file-{}.rs", number % 1000) }),
        digest: None,
        decision: Some(json!({ "policy": { "decide": "allow" } })),
        outcome: Some(json!({ "ok": !number.is_multiple_of(50) })),
        duration_ms: Some(2),
        fence: "full".to_owned(),
        trace: Trace::None,
    }
}
