//! How soon an open page shows a change: `page_latency ADDRESS LINK TOKEN PROJECT ROUNDS` prints the milliseconds of each round, from the answer
//! of the call that changed something until the page of a real browser has it. The benchmarks use it.

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use toolhost_testkit::{Browser, http};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, link, token, project, rounds] = &arguments[..] else {
        let _ = writeln!(std::io::stderr(), "page_latency ADDRESS LINK TOKEN PROJECT ROUNDS");
        return ExitCode::FAILURE;
    };
    let (Ok(address), Ok(rounds)) = (address.parse::<SocketAddr>(), rounds.parse::<usize>()) else {
        return ExitCode::FAILURE;
    };
    let Some(page) = Browser::start().await else { return ExitCode::FAILURE };
    page.open(link).await;
    page.click("main button.main").await;
    page.until_says("Inbox").await;
    page.open(&format!("http://{address}/projects/{project}/audit")).await;
    page.until("document.documentElement.dataset.stream === 'open'").await;
    let mut times = Vec::new();
    for round in 0..rounds {
        let changed = format!("change-{round}.txt");
        // Noted by the page itself: WebDriver looks too seldom.
        let watch = format!(
            "window.seen = 0; new MutationObserver((_, observer) => {{
                if (!document.body.textContent.includes({changed:?})) return;
                window.seen = Date.now(); observer.disconnect();
            }}).observe(document.body, {{ childList: true, subtree: true, characterData: true }})"
        );
        page.run(&watch).await;
        let call = json!({ "tool": "file.write", "arguments": { "path": changed, "content": "Changed." } });
        let headers = [("authorization", format!("Bearer {token}")), ("content-type", "application/json".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let path = format!("/api/v1/projects/{project}/calls");
        let reply = http(address, ("POST", &path), &headers, &call.to_string()).await;
        let answered = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0);
        if reply.status != 200 {
            let _ = writeln!(std::io::stderr(), "{}: {}", reply.status, reply.body);
            return ExitCode::FAILURE;
        }
        page.until("window.seen").await;
        let seen = page.run("return window.seen").await.as_f64().unwrap_or(f64::NAN);
        times.push((seen - answered).max(0.0));
    }
    let _ = writeln!(std::io::stdout(), "{}", json!(times));
    ExitCode::SUCCESS
}
