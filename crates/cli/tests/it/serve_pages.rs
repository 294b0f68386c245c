//! Pages of a started server that do something: files are put back, members and tokens are made, a deploy is asked for.

use serde_json::json;
use toolhost_testkit::TempWorkspace;

use crate::login::{link, look, opened, send_form};
use crate::room::program;
use crate::served::{Served, token};

/// What a form's hidden field holds.
fn hidden<'p>(page: &'p str, name: &str) -> &'p str {
    let at = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| unreachable!("{page}")).1;
    at.split('"').next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_puts_back_what_a_call_has_changed_and_nothing_that_came_later() {
    let workspace = TempWorkspace::new();
    workspace.write("kept.txt", "before\n");
    let program = program(&workspace);
    let (token, project) = token(&program, &["--profile", "developer"]);
    let served = Served::start(&program, &[]);
    let cookie = opened(&served, &link(&program, &served, &[])).await;
    let call = served.call(&token, &project, "file.write", json!({ "path": "kept.txt", "content": "after\n" })).await;
    let id = call.json()["meta"]["callId"].as_str().unwrap_or_else(|| unreachable!("{call:?}")).to_owned();
    let path = format!("/projects/{project}/files/undo/{id}");
    let page = look(&served, &cookie, &path).await.body;
    assert!(page.contains("-after") && page.contains("+before"), "{page}");
    assert!(page.contains("<h2>kept.txt</h2>") && page.contains("It becomes what it was:"), "{page}");
    let made = served.call(&token, &project, "file.write", json!({ "path": "new.txt", "content": "new\n" })).await;
    let made = format!("/projects/{project}/files/undo/{}", made.json()["meta"]["callId"].as_str().unwrap());
    let page_of_new = look(&served, &cookie, &made).await.body;
    assert!(page_of_new.contains("<h2>new.txt</h2>") && page_of_new.contains("It goes: the call has made it."));
    let wrong = send_form(&served, &cookie, &path, &format!("digest={}", "0".repeat(64))).await;
    assert_eq!(wrong.status, 409, "{wrong:?}");
    assert_eq!(workspace.read("kept.txt"), "after\n");
    let digest = hidden(&page, "digest").to_owned();
    workspace.write("kept.txt", "by hand\n");
    let late = send_form(&served, &cookie, &path, &format!("digest={digest}")).await;
    assert_eq!(late.status, 409, "{late:?}");
    assert_eq!(workspace.read("kept.txt"), "by hand\n");
    workspace.write("kept.txt", "after\n");
    let done = send_form(&served, &cookie, &path, &format!("digest={digest}")).await;
    assert_eq!(done.status, 303, "{done:?}");
    assert_eq!(workspace.read("kept.txt"), "before\n");
    let audit = look(&served, &cookie, &format!("/projects/{project}/audit?tool=undo")).await.body;
    assert!(audit.contains("<strong>Undo changes of files: ") && audit.contains("local (workbench)"), "{audit}");
    assert_eq!(served.end(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_gives_access_and_a_token_shows_its_secret_once() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let (_, project) = token(&program, &["--profile", "developer"]);
    let served = Served::start(&program, &[]);
    let cookie = opened(&served, &link(&program, &served, &[])).await;
    let access = format!("/projects/{project}/access");
    let added = send_form(&served, &cookie, &format!("{access}/members"), "member=ann&role=editor").await;
    assert_eq!((added.status, added.header("location")), (303, Some(access.as_str())), "{added:?}");
    let refused = send_form(&served, &cookie, &format!("{access}/members"), "member=bob&role=king").await;
    assert!(refused.status == 400 && refused.body.contains("value=\"bob\""), "{refused:?}");
    let name = send_form(&served, &cookie, &format!("{access}/members"), "member=a%0Ab&role=viewer").await;
    assert!(name.status == 400 && name.body.contains("none of them invisible"), "{name:?}");
    let oneself = send_form(&served, &cookie, &format!("{access}/members"), "member=local&role=viewer").await;
    assert_eq!(oneself.status, 409, "{oneself:?}");
    let form = "name=nightly&profile=developer&call=on&days=1";
    let made = send_form(&served, &cookie, &format!("{access}/tokens"), form).await;
    let secret = made.body.split_once("<pre><code>").unwrap().1.split('<').next().unwrap().to_owned();
    let call = served.call(&secret, &project, "file.list", json!({})).await;
    assert_eq!(call.json()["ok"], true, "{call:?}");
    let page = look(&served, &cookie, &access).await.body;
    assert!(page.contains("nightly") && page.contains("ann") && !page.contains(&secret), "{page}");
    for deed in ["member.add", "token.create"] {
        let audit = look(&served, &cookie, &format!("/projects/{project}/audit?tool={deed}")).await.body;
        assert!(audit.contains("local (workbench)") && !audit.contains("local (http)"), "{deed}: {audit}");
    }
    let id = page.split_once("name=\"revoke\" value=\"").unwrap().1.split('"').next().unwrap().to_owned();
    for part in page.split("name=\"revoke\" value=\"").skip(1) {
        let id = part.split('"').next().unwrap();
        assert_eq!(send_form(&served, &cookie, &format!("{access}/tokens"), &format!("revoke={id}")).await.status, 303);
    }
    assert!(!id.is_empty());
    // A server looks for what was revoked every few seconds.
    while served.call(&secret, &project, "file.list", json!({})).await.status != 401 {
        tokio::task::yield_now().await;
    }
    assert_eq!(served.end(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deploy_is_planned_on_its_page_and_agreed_to_in_the_inbox() {
    let workspace = TempWorkspace::new();
    workspace.write("index.html", "<p>hello</p>\n");
    let target = workspace.beside("target");
    workspace.make_folder("../target");
    let program = program(&workspace).argument("--deploy-to").argument(target.clone());
    let (_, project) = token(&program, &["--profile", "developer"]);
    let served = Served::start(&program, &[]);
    let cookie = opened(&served, &link(&program, &served, &[])).await;
    let deploy = format!("/projects/{project}/deploy");
    let page = look(&served, &cookie, &deploy).await.body;
    assert!(page.contains("New: 1") && page.contains("index.html"), "{page}");
    let asked = send_form(&served, &cookie, &deploy, "deploy=on").await;
    let ask = asked.header("location").unwrap_or_else(|| unreachable!("{asked:?}")).to_owned();
    assert!(ask.starts_with("/asks/") && !target.join("index.html").exists(), "{ask}");
    let page = look(&served, &cookie, &ask).await.body;
    let form = format!("decision=allow&digest={}", hidden(&page, "digest"));
    assert_eq!(send_form(&served, &cookie, &ask, &form).await.status, 303);
    while !look(&served, &cookie, &ask).await.body.contains("The call has succeeded.") {
        tokio::task::yield_now().await;
    }
    assert!(target.join("index.html").exists());
    // It is taken back on its page, as it was shown there and no other way.
    let page = look(&served, &cookie, &deploy).await.body;
    assert!(page.contains("1 new, 0 changed, 0 deleted") && page.contains("/deploy/undo"), "{page}");
    let undo = format!("{deploy}/undo");
    let page = look(&served, &cookie, &undo).await.body;
    assert!(page.contains("came with the deploy: 1") && page.contains("<li>index.html</li>"), "{page}");
    let stale = send_form(&served, &cookie, &undo, "digest=other").await;
    assert!(stale.status == 409 && stale.body.contains("something else than was shown"), "{stale:?}");
    let form = format!("digest={}", hidden(&page, "digest"));
    std::fs::write(target.join("index.html"), "<p>changed by a person</p>\n").unwrap();
    let changed = look(&served, &cookie, &undo).await.body;
    assert!(changed.contains("cannot be taken back") && !changed.contains("name=\"digest\""), "{changed}");
    assert_eq!(send_form(&served, &cookie, &undo, &form).await.status, 409);
    std::fs::write(target.join("index.html"), "<p>hello</p>\n").unwrap();
    assert_eq!(program.run(&["member", "add", "vic", "viewer"]).code, Some(0));
    let viewer = opened(&served, &link(&program, &served, &["--user", "vic"])).await;
    let page = look(&served, &viewer, &undo).await.body;
    assert!(page.contains("index.html") && !page.contains("name=\"digest\""), "{page}");
    assert_eq!(send_form(&served, &viewer, &undo, &form).await.status, 403);
    assert!(target.join("index.html").exists());
    assert_eq!(send_form(&served, &cookie, &undo, &form).await.status, 303);
    assert!(!target.join("index.html").exists());
    let page = look(&served, &cookie, &deploy).await.body;
    assert!(page.contains("taken back") && !page.contains("/deploy/undo"), "{page}");
    assert!(look(&served, &cookie, &undo).await.body.contains("There is no deploy to take back."));
    let audit = program.run(&["--json", "audit", "show", "--tool", "deploy.undo"]).stdout;
    assert!(audit.contains("\"deploy\""), "{audit}");
    assert_eq!(served.end(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_since_the_last_commit_name_new_files_too() {
    let workspace = TempWorkspace::repository(&[("known.txt", "one\n")]);
    workspace.write("known.txt", "two\n");
    workspace.write("new.txt", "three\n");
    let program = program(&workspace);
    let (_, project) = token(&program, &["--profile", "developer"]);
    let served = Served::start(&program, &[]);
    let cookie = opened(&served, &link(&program, &served, &[])).await;
    let page = look(&served, &cookie, &format!("/projects/{project}/files/changes")).await.body;
    assert!(page.contains("class=\"old\">-one") && page.contains("class=\"new\">+two"), "{page}");
    assert!(page.contains("?path=new%2Etxt&#38;line=1\">new.txt</a>"), "{page}");
    assert_eq!(served.end(), Some(0));
}
