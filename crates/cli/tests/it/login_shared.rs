//! A shared database: a command line acts as the person who has signed in, and as nobody else.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use toolhost_testkit::{HttpReply, Postgres, Program, Ran, TempWorkspace, http};

use crate::room::program;
use crate::served::Served;

/// Two people with homes of their own, one database, one project.
struct Office {
    url: String,
    adam: Program,
    eva: Program,
    workspaces: [TempWorkspace; 2],
}

impl Office {
    fn new() -> Option<Self> {
        // A machine without a server says so elsewhere.
        let url = Postgres::shared()?.fresh_database();
        let workspaces = [TempWorkspace::new(), TempWorkspace::new()];
        let [adam, eva] = [0, 1].map(|of| {
            program(&workspaces[of])
                .variable("TOOLHOST_DATABASE", &url)
                .variable("TOOLHOST_PROJECT", "shop")
                .variable("USER", ["adam", "eva"][of])
        });
        Some(Self { url, adam, eva, workspaces })
    }

    fn served(&self) -> Served {
        let program = program(&self.workspaces[0]).bare().variable("TOOLHOST_DATABASE", &self.url);
        Served::start(&program, &[])
    }
}

#[track_caller]
fn check(program: &Program, arguments: &[&str], code: i32) -> Ran {
    let ran = program.run(arguments);
    assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
    ran
}

async fn send(served: &Served, asked: (&str, &str), cookie: &str, form: &str) -> HttpReply {
    let host = served.address("address").to_string();
    let origin = format!("http://{host}");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let headers = [("host", host.as_str()), ("origin", &origin), ("cookie", cookie), kind];
    http(served.address("address"), asked, &headers, form).await
}

/// The cookie of a browser that opens a link.
async fn opened(served: &Served, link: &Value) -> String {
    let link = link["link"].as_str().unwrap();
    let path = link.split_once("/login/").map(|(_, secret)| format!("/login/{secret}")).unwrap();
    let reply = send(served, ("POST", &path), "", "").await;
    assert_eq!(reply.status, 303, "{reply:?}");
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// A terminal that waits to be confirmed.
struct Waiting {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    told: Value,
}

impl Waiting {
    fn start(program: &Program) -> Self {
        let mut child = program.command(&["--json", "login"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        Self { child, lines, told }
    }

    fn path(&self) -> String {
        format!("/login/terminal/{}", self.told["code"].as_str().unwrap())
    }

    /// What it says at its end, and its exit code.
    fn end(mut self) -> (Option<Value>, Option<i32>) {
        let last = self.lines.next().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        (last, self.child.wait().unwrap().code())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_alone_makes_nobody_somebody_else() {
    let Some(office) = Office::new() else { return };
    let Office { adam, eva, .. } = &office;
    // The first command of an empty database is its first user's.
    check(adam, &["--user", "adam", "init"], 0);
    let status = check(adam, &["--json", "login", "--status"], 0).json();
    assert_eq!(status["user"], "adam", "{status}");
    check(adam, &["member", "add", "eva", "editor"], 0);

    // Without a login: refused, with the next step.
    for user in ["eva", "adam"] {
        let ran = check(eva, &["--user", user, "ticket", "list"], 3);
        assert!(ran.stderr.contains("sign in with `toolhost login`"), "{ran:?}");
    }
    check(eva, &["ticket", "create", "by nobody"], 3);
    check(eva, &["login", "--status"], 1);
    check(eva, &["login", "--end-all"], 3);
    // With another's.
    let ran = check(adam, &["--user", "eva", "ticket", "list"], 3);
    assert!(ran.stderr.contains("as adam, not as eva"), "{ran:?}");
    let ran = check(adam, &["--json", "--user", "eva", "login"], 3);
    assert!(!ran.stdout.contains("/login/"), "{ran:?}");
    check(adam, &["--user", "eva", "mcp"], 3);

    // With her own.
    let served = office.served();
    let cookie = opened(&served, &check(adam, &["--json", "member", "invite", "eva"], 0).json()).await;
    let waiting = Waiting::start(eva);
    let page = send(&served, ("GET", &waiting.path()), &cookie, "").await;
    let code = waiting.told["code"].as_str().unwrap();
    assert!(page.status == 200 && page.body.contains("eva@") && page.body.contains(code), "{page:?}");
    let reply = send(&served, ("POST", &waiting.path()), &cookie, "answer=confirm").await;
    assert_eq!(reply.header("location"), Some("/login/terminal?done=yes"), "{reply:?}");
    let (told, exit) = waiting.end();
    assert_eq!((exit, &told.unwrap()["user"]), (Some(0), &json!("eva")));
    check(eva, &["--user", "eva", "ticket", "create", "by eva"], 0);
    check(eva, &["ticket", "list"], 0);
    check(eva, &["--user", "adam", "ticket", "list"], 3);
    // Her role is still what she may.
    check(eva, &["member", "add", "mallory"], 3);
    // Her secret is hers, and in no table.
    let folder = office.workspaces[1].beside("home").join(".local/share/toolhost/logins");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let secret = std::fs::read_to_string(&file).unwrap();
    let found = Postgres::shared().unwrap().psql(&office.url, "SELECT hash, terminal FROM terminal_login");
    assert!(found.contains("eva@") && !found.contains(secret.trim()), "{found}");

    // Once it has ended, it opens nothing: by hand, in time, or all at once.
    check(eva, &["logout"], 0);
    std::fs::write(&file, &secret).unwrap();
    let ran = check(eva, &["ticket", "list"], 3);
    assert!(ran.stderr.contains("toolhost login"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_too_old_or_was_refused_opens_nothing() {
    let Some(office) = Office::new() else { return };
    let Office { adam, eva, url, .. } = &office;
    check(adam, &["--user", "adam", "init"], 0);
    let served = office.served();
    let browser = opened(&served, &check(adam, &["--json", "login"], 0).json()).await;

    let waiting = Waiting::start(eva);
    // No page of another site, nobody who has not signed in, and no answer that is none.
    let path = waiting.path();
    let host = served.address("address").to_string();
    let elsewhere = [("host", host.as_str()), ("origin", "https://evil.example"), ("cookie", browser.as_str())];
    let reply = http(served.address("address"), ("POST", &path), &elsewhere, "answer=confirm").await;
    assert_eq!(reply.status, 403, "{reply:?}");
    assert_eq!(send(&served, ("POST", &path), "", "answer=confirm").await.status, 401);
    assert_eq!(send(&served, ("POST", &path), &browser, "answer=perhaps").await.status, 400);
    let wrong = send(&served, ("GET", "/login/terminal?code=bbbb-bbbb"), &browser, "").await;
    assert!(wrong.status == 404 && wrong.body.contains("value=\"BBBB-BBBB\""), "{wrong:?}");
    let reply = send(&served, ("POST", &path), &browser, "answer=refuse").await;
    assert_eq!(reply.header("location"), Some("/login/terminal?done=no"), "{reply:?}");
    assert_eq!(waiting.end(), (None, Some(1)));
    check(eva, &["ticket", "list"], 3);

    // Whoever confirms says who it is, and a name that was typed is no other's.
    let named = eva.clone().variable("TOOLHOST_USER", "eva");
    let waiting = Waiting::start(&named);
    send(&served, ("POST", &waiting.path()), &browser, "answer=confirm").await;
    assert_eq!(waiting.end(), (None, Some(3)));
    check(eva, &["ticket", "list"], 3);

    // The code is typed by hand, and the login ends in time.
    let waiting = Waiting::start(eva);
    let code = waiting.told["code"].as_str().unwrap().replace('-', "").to_lowercase();
    let reply = send(&served, ("GET", &format!("/login/terminal?code={code}")), &browser, "").await;
    assert_eq!(reply.header("location"), Some(&*waiting.path()), "{reply:?}");
    send(&served, ("POST", &waiting.path()), &browser, "answer=confirm").await;
    assert_eq!(waiting.end().1, Some(0));
    check(eva, &["ticket", "list"], 0);
    Postgres::shared().unwrap().psql(url, "UPDATE terminal_login SET expires_at_ms = 1");
    check(eva, &["ticket", "list"], 3);
    check(adam, &["ticket", "list"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_invites_only_whom_nobody_else_knows() {
    let Some(office) = Office::new() else { return };
    let Office { adam, eva, .. } = &office;
    check(adam, &["--user", "adam", "init"], 0);
    check(adam, &["member", "invite", "eva"], 2);
    check(adam, &["member", "add", "eva", "owner"], 0);
    let first = check(adam, &["--json", "member", "invite", "eva"], 0).json();
    let second = check(adam, &["--json", "member", "invite", "eva"], 0).json();
    let served = office.served();
    let cookie = opened(&served, &first).await;
    // Once she has signed in, no link that an owner has made, or makes, signs anybody in as her.
    let link = second["link"].as_str().unwrap();
    let path = link.split_once("/login/").map(|(_, secret)| format!("/login/{secret}")).unwrap();
    assert_eq!(send(&served, ("POST", &path), "", "").await.status, 404);
    let ran = check(adam, &["member", "invite", "eva"], 1);
    assert!(ran.stderr.contains("has signed in before"), "{ran:?}");

    let waiting = Waiting::start(eva);
    send(&served, ("POST", &waiting.path()), &cookie, "answer=confirm").await;
    assert_eq!(waiting.end().1, Some(0));
    check(eva, &["member", "add", "kim"], 0);
    check(&eva.clone().variable("TOOLHOST_PROJECT", "bank"), &["member", "add", "kim"], 0);
    let ran = check(adam, &["member", "invite", "kim"], 1);
    assert!(ran.stderr.contains("that you do not own"), "{ran:?}");
    check(eva, &["member", "invite", "kim"], 0);
}
