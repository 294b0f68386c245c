//! Remotes that the operator grants: over http with a token, against `git http-backend`, and over ssh with a key, against
//! `sshd`.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolhost_contract::workspace::{Remote, RemoteAccess, RemoteUrl, TokenSource};
use toolhost_contract::{Answer, ErrorKind, Outcome};
use toolhost_host::{Presented, Shown};
use toolhost_sandbox::FenceChoice;
use toolhost_testkit::{
    House, HttpGit, Repositories, SshGit, TempWorkspace, environments_with, processes_named, said, until,
};

use crate::room::fenced;

const TOKEN: &str = "s3cret+token/of-the-operator";
/// `git:` and the token, as a client of HTTP sends them.
const AUTHORIZATION: &str = "Basic Z2l0OnMzY3JldCt0b2tlbi9vZi10aGUtb3BlcmF0b3I=";

const FENCES: [FenceChoice; 2] = [FenceChoice::Auto, FenceChoice::Landlock];

/// The operator's grant of `url` with a token.
fn with_token(url: &str, token: &'static str) -> Remote {
    let token = TokenSource::new(move || Ok(token.to_owned()));
    granted(url, RemoteAccess::Token { user: "git".to_owned(), token })
}

fn granted(url: &str, access: RemoteAccess) -> Remote {
    Remote { name: "origin".to_owned(), url: RemoteUrl::parse(url).unwrap(), access, workspace: None }
}

fn with_key(server: &SshGit, name: &str) -> Remote {
    granted(&server.url(name), RemoteAccess::Key { file: server.key(), known_hosts: server.known_hosts() })
}

type Seen = Arc<Mutex<Vec<Shown>>>;

/// A house whose person allows everything and remembers what they were shown.
async fn asked(workspace: TempWorkspace, fence: FenceChoice, remote: Remote) -> (House, Seen) {
    let seen = Seen::default();
    let here = Arc::clone(&seen);
    let voice = move |shown: &Shown| -> Presented {
        here.lock().unwrap().push(shown.clone());
        said(Answer::Allow)
    };
    (fenced(workspace).fence(fence).remotes(vec![remote]).person(voice).build().await, seen)
}

fn last(seen: &Seen) -> String {
    seen.lock().unwrap().last().unwrap().render()
}

/// A repository with one commit and the remote `origin`.
fn cloned(url: &str) -> TempWorkspace {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    workspace.git(&["remote", "add", "origin", url]);
    workspace
}

fn commit(house: &House, path: &str, content: &str, message: &str) -> String {
    house.workspace.write(path, content);
    house.workspace.git(&["add", "--all"]);
    house.workspace.git(&["commit", "-q", "-m", message]);
    head(house)
}

fn head(house: &House) -> String {
    house.workspace.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

fn failure(outcome: Outcome) -> (ErrorKind, String) {
    assert!(!outcome.ok, "{outcome:?}");
    let error = outcome.error.unwrap();
    (error.kind, format!("{} ({})", error.message, error.hint.unwrap_or_default()))
}

async fn http(name: &str) -> (HttpGit, String) {
    let server = HttpGit::start(Some(AUTHORIZATION)).await;
    server.repositories.make(name);
    let url = server.url(name);
    (server, url)
}

/// Rules: 004.22.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_over_http_proves_who_the_operator_is_and_shows_what_goes() {
    for fence in FENCES {
        let (server, url) = http("a.git").await;
        let (house, seen) = asked(cloned(&url), fence, with_token(&url, TOKEN)).await;
        let first = head(&house);
        let pushed = house.call("git.push", json!({})).await;
        assert!(pushed.ok, "{pushed:?}");
        assert_eq!(server.repositories.commit("a.git", "main"), Some(first.clone()));
        let shown = last(&seen);
        for part in ["push main to origin", &url, "a new branch there", "commits (1):", "first", "A\ta.txt"] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        assert_eq!(house.workspace.git(&["rev-parse", "origin/main"]).trim(), first, "the push is noted");

        let second = commit(&house, "b.txt", "2\n", "a second one");
        house.data("git.push", json!({ "remote": "origin", "branch": "main" })).await;
        assert_eq!(server.repositories.commit("a.git", "main"), Some(second));
        let shown = last(&seen);
        assert!(
            shown.contains("commits (1):") && shown.contains("a second one") && shown.contains("A\tb.txt"),
            "{shown}"
        );
        assert!(shown.contains(&first) && !shown.contains("a.txt"), "{shown}");

        let proven = server.requests().iter().any(|request| request.authorization.as_deref() == Some(AUTHORIZATION));
        assert!(proven, "the trap itself is broken: nobody asked for the token");
        let rows = Value::from(house.rows().await).to_string();
        let told = format!("{} {rows} {shown}", serde_json::to_string(&pushed).unwrap());
        assert!(!told.contains(TOKEN) && !told.contains("Z2l0OnMzY3Jld"), "{told}");
    }
}

/// Rules: 004.22.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_pushed_fetched_and_pulled_over_ssh() {
    for fence in FENCES {
        let server = SshGit::start().await;
        server.repositories.make("a.git");
        let url = server.url("a.git");
        let (house, seen) = asked(cloned(&url), fence, with_key(&server, "a.git")).await;
        house.data("git.push", json!({})).await;
        assert_eq!(server.repositories.commit("a.git", "main"), Some(head(&house)));

        let theirs = server.repositories.commit_file("a.git", "main", ("b.txt", "theirs\n"));
        let topic = server.repositories.commit_file("a.git", "topic/one", ("c.txt", "topic\n"));
        let before =
            house.workspace.snapshot().into_iter().filter(|(path, _)| !path.starts_with(".git")).collect::<Vec<_>>();
        let fetched = house.data("git.fetch", json!({})).await;
        assert_eq!(fetched["total"], 2, "{fetched}");
        assert_eq!(fetched["changed"][0]["branch"], "main");
        assert_eq!(fetched["changed"][1], json!({ "branch": "topic/one", "before": null, "after": topic }));
        assert_eq!(
            house.workspace.git(&["rev-parse", "origin/main", "origin/topic/one"]),
            format!("{theirs}\n{topic}\n")
        );
        let now =
            house.workspace.snapshot().into_iter().filter(|(path, _)| !path.starts_with(".git")).collect::<Vec<_>>();
        assert_eq!(now, before, "a fetch changes no files");
        assert_eq!(house.data("git.fetch", json!({})).await["total"], 0);

        let pulled = house.data("git.pull", json!({})).await;
        assert_eq!(pulled["after"], theirs.as_str());
        assert!(last(&seen).contains("from somebody else") && last(&seen).contains("A\tb.txt"), "{}", last(&seen));
        assert_eq!((head(&house), house.workspace.read("b.txt")), (theirs, "theirs\n".to_owned()));
        assert_eq!(house.workspace.git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
        assert_eq!(house.workspace.git(&["status", "--porcelain"]), "");
        house.workspace.git(&["fsck", "--strict"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_found_before_a_person_is_asked() {
    let (server, url) = http("a.git").await;
    let ssh = SshGit::start().await;
    ssh.repositories.make("a.git");
    let no_token = TokenSource::new(|| Err("the token X is not stored".to_owned()));
    let no_token = RemoteAccess::Token { user: "git".to_owned(), token: no_token };
    let key = |file, known_hosts| RemoteAccess::Key { file, known_hosts };
    let nobody = ssh.repositories.path("nobody");
    std::fs::write(&nobody, "").unwrap();
    for (remote, says) in [
        (with_token(&url, "wrong"), "token or key is not accepted"),
        (granted(&url, no_token), "the token X is not stored"),
        (granted(&url, RemoteAccess::Open), "token or key is not accepted"),
        (with_token(&server.url("none.git"), TOKEN), "not found"),
        (with_token("http://127.0.0.1:1/a.git", TOKEN), "reachable"),
        (granted(&ssh.url("a.git"), key(ssh.other_key(), ssh.known_hosts())), "token or key is not accepted"),
        (granted(&ssh.url("a.git"), key(ssh.key(), nobody)), "key of the remote's host"),
        (
            granted(&ssh.url("a.git"), key(ssh.repositories.path("missing"), ssh.known_hosts())),
            "the key cannot be read",
        ),
    ] {
        for tool in ["git.push", "git.fetch", "git.pull"] {
            let workspace = cloned(remote.url.as_str());
            let (house, seen) = asked(workspace, FenceChoice::Auto, remote.clone()).await;
            let (kind, text) = failure(house.call(tool, json!({})).await);
            assert!(kind == ErrorKind::Conflict && text.contains(says), "{tool}: {says} is not in {text}");
            assert!(seen.lock().unwrap().is_empty(), "{tool}: nobody is asked about what cannot work: {text}");
            assert!(!text.contains("/toolhost-run-") && !text.contains(TOKEN), "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_that_have_gone_apart_are_found_before_a_person_is_asked() {
    let (server, url) = http("a.git").await;
    let (house, seen) = asked(cloned(&url), FenceChoice::Auto, with_token(&url, TOKEN)).await;
    house.data("git.push", json!({})).await;
    let asked = seen.lock().unwrap().len();
    for tool in ["git.push", "git.pull"] {
        let (_, text) = failure(house.call(tool, json!({})).await);
        assert!(text.contains("the same at origin already"), "{text}");
    }
    let theirs = server.repositories.commit_file("a.git", "main", ("b.txt", "theirs\n"));
    let (_, text) = failure(house.call("git.push", json!({})).await);
    assert!(text.contains("git.fetch"), "{text}");
    let mine = commit(&house, "c.txt", "mine\n", "mine");
    for tool in ["git.push", "git.pull"] {
        let (kind, text) = failure(house.call(tool, json!({})).await);
        assert!(kind == ErrorKind::Conflict && text.contains("commits that the other one lacks"), "{tool}: {text}");
    }
    assert_eq!((server.repositories.commit("a.git", "main"), head(&house)), (Some(theirs), mine));
    assert_eq!(seen.lock().unwrap().len(), asked, "nobody is asked about what cannot work");
}

/// Rules: 004.22.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_the_repository_says_has_a_part_in_a_push() {
    for fence in FENCES {
        let (server, url) = http("a.git").await;
        let (elsewhere, evil) = http("a.git").await;
        let workspace = cloned(&url);
        let trap = workspace.path("trapped");
        let touch = format!("touch {}", trap.display());
        for (key, value) in [
            (format!("url.{evil}.insteadOf"), url.clone()),
            (format!("url.{evil}.pushInsteadOf"), url.clone()),
            ("url.ext::sh -c evil.insteadOf".to_owned(), "http".to_owned()),
            ("credential.helper".to_owned(), format!("!{touch}; true")),
            (format!("credential.{url}.helper"), format!("!{touch}; true")),
            ("core.sshCommand".to_owned(), touch.clone()),
            ("core.gitProxy".to_owned(), touch.clone()),
            ("core.askPass".to_owned(), touch.clone()),
            ("core.alternateRefsCommand".to_owned(), touch.clone()),
            ("core.fsmonitor".to_owned(), touch.clone()),
            ("remote.origin.uploadpack".to_owned(), touch.clone()),
            ("remote.origin.receivepack".to_owned(), touch.clone()),
            ("remote.origin.proxy".to_owned(), "http://127.0.0.1:1".to_owned()),
            ("remote.origin.mirror".to_owned(), "true".to_owned()),
            ("remote.origin.push".to_owned(), "+refs/heads/*:refs/heads/*".to_owned()),
            ("http.proxy".to_owned(), "http://127.0.0.1:1".to_owned()),
            ("http.extraHeader".to_owned(), "X-Evil: yes".to_owned()),
            ("http.followRedirects".to_owned(), "true".to_owned()),
            ("protocol.ext.allow".to_owned(), "always".to_owned()),
            ("push.followTags".to_owned(), "true".to_owned()),
        ] {
            workspace.git(&["config", &key, &value]);
        }
        for hook in ["pre-push", "reference-transaction", "post-checkout", "post-merge", "pre-auto-gc"] {
            workspace.write_script(&format!(".git/hooks/{hook}"), &format!("#!/bin/sh\n{touch}\n"));
        }
        let (house, _) = asked(workspace, fence, with_token(&url, TOKEN)).await;
        house.data("git.push", json!({})).await;
        let theirs = server.repositories.commit_file("a.git", "main", ("b.txt", "theirs\n"));
        house.data("git.fetch", json!({})).await;
        house.data("git.pull", json!({})).await;
        assert_eq!((head(&house), server.repositories.commit("a.git", "main")), (theirs.clone(), Some(theirs)));
        assert!(!house.workspace.has("trapped"), "something of the repository's was run");
        assert_eq!(elsewhere.requests(), [], "the address is the operator's");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_is_where_the_operator_says_or_nowhere() {
    let (server, url) = http("a.git").await;
    let (elsewhere, evil) = http("a.git").await;
    let check = async |change: &[&[&str]], workspace: Option<&str>, says: &str| {
        let place = cloned(&url);
        change.iter().for_each(|arguments| drop(place.git(arguments)));
        let workspace = workspace.map(|name| place.beside(name));
        let (house, seen) = asked(place, FenceChoice::Auto, Remote { workspace, ..with_token(&url, TOKEN) }).await;
        for tool in ["git.push", "git.fetch", "git.pull"] {
            let (_, text) = failure(house.call(tool, json!({ "remote": "origin" })).await);
            assert!(text.contains(says), "{tool}: {says} is not in {text}");
        }
        assert!(seen.lock().unwrap().is_empty());
    };
    check(&[&["remote", "set-url", "origin", &evil]], None, "another address than the operator grants").await;
    check(&[&["remote", "set-url", "origin", &evil]], Some("ws"), "another address than the operator grants").await;
    check(&[&["remote", "set-url", "--push", "origin", &evil]], None, "another address").await;
    check(&[&["remote", "set-url", "--add", "origin", &evil]], None, "another address").await;
    check(&[&["remote", "remove", "origin"]], None, "has no remote `origin`").await;
    check(&[], Some("other"), "operator").await;
    assert!(server.requests().is_empty() && elsewhere.requests().is_empty());
    // A grant for this workspace needs no remote in the repository.
    let place = TempWorkspace::repository(&[("a.txt", "1\n")]);
    let workspace = Some(place.root());
    let (house, _) = asked(place, FenceChoice::Auto, Remote { workspace, ..with_token(&url, TOKEN) }).await;
    house.data("git.push", json!({})).await;
    assert_eq!(server.repositories.commit("a.git", "main"), Some(head(&house)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_to_no_other_address_and_comes_back_in_no_answer() {
    let (server, _) = http("a.git").await;
    for (path, says) in [("moved/a.git", "301"), ("echo/a.git", "refused")] {
        let url = server.url(path);
        let (house, _) = asked(cloned(&url), FenceChoice::Auto, with_token(&url, TOKEN)).await;
        let outcome = house.call("git.push", json!({})).await;
        let told = format!("{} {}", serde_json::to_string(&outcome).unwrap(), Value::from(house.rows().await));
        assert!(told.contains(says), "{told}");
        assert!(!told.contains(TOKEN) && !told.contains("Z2l0OnMzY3Jld"), "{told}");
        assert!(
            server
                .requests()
                .iter()
                .all(|request| request.path.starts_with("/moved/") || request.path.starts_with("/echo/"))
        );
    }
    let echoed =
        server.requests().iter().any(|request| request.path.starts_with("/echo/") && request.authorization.is_some());
    assert!(echoed, "the trap itself is broken");
}

/// What a command can look through: environments, command lines, and the folders in which a secret could be.
fn snoop(secret: &str) -> String {
    // So that the search itself does not have it on its command line.
    let (first, rest) = secret.split_at(1);
    let pattern = format!("[{first}]{rest}");
    format!(
        "grep -la '{pattern}' /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null
        grep -rla '{pattern}' /tmp /var/tmp . 2>/dev/null; true"
    )
}

/// While a push waits for its remote, a command looks for the secret.
async fn a_push_is_looked_at(house: House, repositories: &Repositories, secret: &str) {
    let (began, go_on) = (repositories.path("began"), repositories.path("go-on"));
    let script =
        format!("#!/bin/sh\ntouch {}\nuntil [ -e {} ]; do sleep 0.02; done\n", began.display(), go_on.display());
    let hook = repositories.path("a.git/hooks/pre-receive");
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let house = Arc::new(house);
    let pushing = tokio::spawn({
        let house = Arc::clone(&house);
        async move { house.call("git.push", json!({})).await }
    });
    until("the push is at the remote", || began.exists()).await;
    let (environments, lines) = (environments_with(secret), processes_named(secret));
    let seen = house.data("bash", json!({ "command": snoop(secret) })).await;
    std::fs::write(&go_on, "").unwrap();
    assert!(pushing.await.unwrap().ok);
    assert!(environments > 0 || secret != TOKEN, "the trap itself is broken: the token is in no environment");
    assert_eq!(lines, 0, "a secret is on a command line");
    assert_eq!((&seen["stdout"], &seen["stderr"]), (&json!(""), &json!("")), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_sees_a_token_or_a_key_while_it_is_used() {
    for fence in FENCES {
        let (server, url) = http("a.git").await;
        let (house, _) = asked(cloned(&url), fence, with_token(&url, TOKEN)).await;
        a_push_is_looked_at(house, &server.repositories, TOKEN).await;

        let server = SshGit::start().await;
        server.repositories.make("a.git");
        let (house, _) = asked(cloned(&server.url("a.git")), fence, with_key(&server, "a.git")).await;
        let key = std::fs::read_to_string(server.key()).unwrap();
        a_push_is_looked_at(house, &server.repositories, key.lines().nth(2).unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_changes_no_file_that_git_obeys_and_loses_nothing() {
    let (server, url) = http("a.git").await;
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n"), ("hooks/pre-commit", "#!/bin/sh\n")]);
    workspace.git(&["remote", "add", "origin", &url]);
    workspace.git(&["config", "core.hooksPath", "hooks"]);
    let (house, _) = asked(workspace, FenceChoice::Auto, with_token(&url, TOKEN)).await;
    house.data("git.push", json!({})).await;
    let before = head(&house);

    let theirs = server.repositories.commit_file("a.git", "main", ("a.txt", "theirs\n"));
    house.workspace.write("a.txt", "not committed\n");
    let (kind, text) = failure(house.call("git.pull", json!({})).await);
    assert!(kind == ErrorKind::Conflict && text.contains("a.txt"), "{text}");
    assert_eq!((house.workspace.read("a.txt"), head(&house)), ("not committed\n".to_owned(), before.clone()));
    house.workspace.git(&["checkout", "-q", "a.txt"]);
    house.data("git.pull", json!({})).await;
    assert_eq!(head(&house), theirs);

    server.repositories.commit_file("a.git", "main", ("hooks/pre-commit", "#!/bin/sh\nevil\n"));
    let (kind, text) = failure(house.call("git.pull", json!({})).await);
    assert!(kind == ErrorKind::Security && text.contains("hooks/pre-commit"), "{text}");
    assert_eq!((house.workspace.read("hooks/pre-commit"), head(&house)), ("#!/bin/sh\n".to_owned(), theirs));
    assert_eq!(house.workspace.git(&["symbolic-ref", "HEAD"]), "refs/heads/main\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_a_link_leads_to_are_not_pushed() {
    let (server, url) = http("a.git").await;
    let private = TempWorkspace::repository(&[("private.txt", "private\n")]);
    let workspace = cloned(&url);
    let stolen = private.git(&["rev-parse", "HEAD"]);
    workspace.write(".git/refs/heads/stolen", &stolen);
    // The commit alone can be read in the fence; its files are beyond it.
    let (folder, file) = stolen.trim().split_at(2);
    let object = format!(".git/objects/{folder}/{file}");
    workspace.write(&object, private.read_bytes(&object));
    std::fs::write(
        workspace.path(".git/objects/info/alternates"),
        format!("{}\n", private.path(".git/objects").display()),
    )
    .unwrap();
    let (house, _) = asked(workspace, FenceChoice::Landlock, with_token(&url, TOKEN)).await;
    let (_, text) = failure(house.call("git.push", json!({ "branch": "stolen" })).await);
    assert!(server.repositories.commit("a.git", "stolen").is_none(), "{text}");
    // The folder itself cannot be one of another repository either.
    house.workspace.remove(".git/objects/info/alternates");
    std::fs::rename(house.workspace.path(".git/objects"), house.workspace.beside("objects")).unwrap();
    house.workspace.link(private.path(".git/objects"), ".git/objects");
    let (_, text) = failure(house.call("git.push", json!({ "branch": "stolen" })).await);
    assert!(server.repositories.commit("a.git", "stolen").is_none(), "{text}");
}
