//! Signing a browser in to a started server.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;
use toolhost_testkit::{HttpReply, Program, TempWorkspace, http};

use crate::room::program;
use crate::served::{Served, token};

async fn post(served: &Served, path: &str, cookie: &str) -> HttpReply {
    send_form(served, cookie, path, "").await
}

/// Sends a form from a page of the server.
pub(crate) async fn send_form(served: &Served, cookie: &str, path: &str, form: &str) -> HttpReply {
    let host = served.address("address").to_string();
    let origin = format!("http://{host}");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let headers = [("host", host.as_str()), ("origin", &origin), ("cookie", cookie), kind];
    http(served.address("address"), ("POST", path), &headers, form).await
}

/// A page.
pub(crate) async fn look(served: &Served, cookie: &str, path: &str) -> HttpReply {
    let host = served.address("address").to_string();
    http(served.address("address"), ("GET", path), &[("host", host.as_str()), ("cookie", cookie)], "").await
}

async fn inbox(served: &Served, cookie: &str) -> HttpReply {
    look(served, cookie, "/").await
}

/// The path of a new link, and whom it signs in.
pub(crate) fn link(program: &Program, served: &Served, arguments: &[&str]) -> String {
    let server = format!("http://{}", served.address("address"));
    let all = [&["--json", "login", "--server", &server], arguments].concat();
    let made = program.run(&all).json();
    assert_eq!(made["seconds"], 600, "{made}");
    made["link"].as_str().unwrap().strip_prefix(&server).unwrap().to_owned()
}

/// The cookie of a browser that opens the link.
pub(crate) async fn opened(served: &Served, path: &str) -> String {
    let reply = post(served, path, "").await;
    assert_eq!(reply.status, 303, "{reply:?}");
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_opens_the_inbox_of_all_projects_and_the_login_outlives_the_server() {
    let workspace = TempWorkspace::new();
    let machine = program(&workspace).bare();
    let (token, project) =
        token(&machine.clone().argument("--root").argument(workspace.root()), &["--profile", "planner"]);
    let served = Served::start(&machine, &[]);
    let cookie = opened(&served, &link(&machine, &served, &[])).await;
    assert!(inbox(&served, &cookie).await.body.contains("Nobody waits for you."));
    // The call waits for its answer.
    let asked = served.call(&token, &project, "human.ask", json!({ "question": "Blue or green?" }));
    let seen = async {
        while !inbox(&served, &cookie).await.body.contains("Blue or green?") {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = seen => {}
        answered = asked => assert_eq!(answered.status, 202, "{answered:?}"),
    }
    let address = served.address("address").to_string();
    assert_eq!(served.end(), Some(0));

    let served = Served::start_at(&machine, &address, &[]);
    let page = inbox(&served, &cookie).await;
    assert!(page.status == 200 && page.body.contains("Blue or green?"), "{}", page.body);
    let ended = machine.run(&["--json", "login", "--end-all"]);
    assert_eq!(ended.json(), json!({ "user": "local", "ended": 1 }), "{ended:?}");
    assert_eq!(inbox(&served, &cookie).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_state_folder_of_its_own_has_logins_of_its_own() {
    let workspace = TempWorkspace::new();
    let (own, machine) = (program(&workspace), program(&workspace).bare());
    let served = Served::start(&own, &[]);
    let of_the_machine = link(&machine, &served, &[]);
    assert_eq!(post(&served, &of_the_machine, "").await.status, 404);
    let cookie = opened(&served, &link(&own, &served, &[])).await;
    assert_eq!(inbox(&served, &cookie).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "a person at a terminal")]
async fn who_starts_a_server_at_a_terminal_is_shown_a_link_and_a_log_is_not() {
    let workspace = TempWorkspace::new();
    let mut server = program(&workspace).at_terminal(60, "{}", &["serve", "--listen", "127.0.0.1:0"]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let link = lines.find_map(|line| {
        line.split_once("http://").filter(|_| line.contains("/login/")).map(|(_, link)| link.trim().to_owned())
    });
    let (address, path) = link.as_deref().unwrap().split_once('/').unwrap();
    let headers = [("host", address), ("origin", &format!("http://{address}"))];
    let reply = http(address.parse().unwrap(), ("POST", &format!("/{path}")), &headers, "").await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{reply:?}");
    // The end of its terminal ends it.
    server.kill().unwrap();
    server.wait().unwrap();

    let mut server = program(&workspace).command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log.any(|line| line.contains("serving at")));
    let stopped = std::process::Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(stopped.success() && !log.any(|line| line.contains("/login/")));
    server.wait().unwrap();
}
