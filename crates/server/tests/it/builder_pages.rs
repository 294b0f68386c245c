//! The builder's pages of what a package is: its graph, its objects, and what is wrong with it.

use toolhost_builder::limits::Size;
use toolhost_builder::{Files, Package};
use toolhost_server::http::HttpLimits;
use toolhost_store::Role;
use toolhost_testkit::sample::{FLOW, STEP, sample, shelf_of};

use crate::pages::{Browser, USER_NAME};
use crate::rig::{Rig, house};
use crate::working::PackageWork;

/// What an agent may write to deceive whoever looks at it.
pub(crate) const HOSTILE: &str =
    "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'{{7*7}}\u{202e}\u{1b}[31m";

/// A server whose project has these files for its package.
pub(crate) async fn rig_with(files: Files) -> Rig {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let house = &rig.houses[0];
    shelf_of(house, house.project.id).import(&Package::read(files), false, Size::default()).await.unwrap();
    rig
}

/// All but what means nothing in an address.
const RESERVED: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(crate) fn object(name: &str) -> String {
    let name = percent_encoding::utf8_percent_encode(name, RESERVED);
    format!("/projects/p0/builder/object?name={name}")
}

/// The page, which has to be one.
pub(crate) async fn shown(browser: &Browser<'_>, path: &str) -> String {
    let reply = browser.get(path).await;
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    assert_eq!(reply.body.matches("<h1").count(), 1, "{path}: {}", reply.body);
    reply.body
}

fn assert_is_text(path: &str, body: &str) {
    for wrong in ["<script>", "<img", "\u{202e}", "\u{1b}", "49\u{202e}"] {
        assert!(!body.contains(wrong), "{path} has {wrong:?}: {body}");
    }
}

#[tokio::test]
async fn a_workflow_is_a_graph_whose_nodes_are_links_and_a_list() {
    let rig = rig_with(sample()).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let overview = shown(&browser, "/projects/p0/builder").await;
    let workflow = object(&format!("workflow:{FLOW}"));
    assert!(overview.contains(&format!("href=\"{workflow}\"")), "{overview}");
    assert!(overview.contains("12 nodes · no findings") && overview.contains("No findings"), "{overview}");
    let body = shown(&browser, &workflow).await;
    let step = object(&format!("step:{FLOW}/{STEP}"));
    assert_eq!(body.matches(&format!("href=\"{step}\"")).count(), 2, "picture and list: {body}");
    assert!(body.contains("<svg") && body.contains("Research report</h1>") || body.contains("research-report</h1>"));
    assert_eq!(body.matches("class=\"node ").count(), 12);
    let body = shown(&browser, &step).await;
    for part in ["What refers to it", "What it refers to", "assets/", "id=\"L1\"", "Ask the assistant"] {
        assert!(body.contains(part), "{part}: {body}");
    }
    for path in ["list?kind=agents", "list?kind=assets", "list?kind=files", "findings"] {
        shown(&browser, &format!("/projects/p0/builder/{path}")).await;
    }
    let agent = object("agent:lead");
    assert!(shown(&browser, &agent).await.contains("step:research-report/scope"));
    let variable = object(&format!("variable:{FLOW}/question"));
    assert!(shown(&browser, &variable).await.contains("variable read"));
}

#[tokio::test]
async fn a_finding_leads_to_its_object_and_line() {
    let mut files = sample();
    let path = "steps/scope.md";
    let text =
        String::from_utf8(files[path].clone()).unwrap().replacen("## Goal", "A \u{202e}hidden mark.\n\n## Goal", 1);
    let line = text.lines().position(|line| line.contains('\u{202e}')).unwrap() + 1;
    files.insert(path.to_owned(), text.into_bytes());
    let rig = rig_with(files).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let body = shown(&browser, "/projects/p0/builder/findings").await;
    let place = format!("{}&#38;line={line}#L{line}", object(&format!("step:{FLOW}/scope")));
    assert!(body.contains(&place), "{place}: {body}");
}

#[tokio::test]
async fn hostile_text_of_a_package_stays_text_on_every_page() {
    let mut files = sample();
    let edit = |files: &mut Files, path: &str, from: &str, to: &str| {
        let text = String::from_utf8(files[path].clone()).unwrap();
        assert!(text.contains(from), "{path} has no {from}");
        files.insert(path.to_owned(), text.replacen(from, to, 1).into_bytes());
    };
    let json = serde_json::to_string(HOSTILE).unwrap();
    edit(&mut files, "workflow.graph.json", "\"Agree on the question\"", &json);
    edit(&mut files, "workflow.graph.json", "\"Make the question answerable and write the brief.\"", &json);
    edit(&mut files, "bmad.json", "\"Research report\"", &json);
    edit(&mut files, "steps/scope.md", "## Goal", &format!("{HOSTILE}\n\n## Goal"));
    files.insert("assets/style-guide.md".to_owned(), HOSTILE.repeat(3000).into_bytes());
    let rig = rig_with(files).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let pages = [
        "/projects/p0/builder".to_owned(),
        "/projects/p0/builder/findings".to_owned(),
        "/projects/p0/builder/file?path=bmad.json".to_owned(),
        object(&format!("workflow:{FLOW}")),
        object(&format!("step:{FLOW}/scope")),
        object("asset:assets/style-guide.md"),
    ];
    for path in &pages {
        let body = shown(&browser, path).await;
        assert_is_text(path, &body);
    }
    let body = shown(&browser, &pages[4]).await;
    assert!(body.contains("&#60;script&#62;alert(1)&#60;/script&#62;") && body.contains("\\u{202e}"), "{body}");
}

#[tokio::test]
async fn a_package_is_shown_to_members_and_to_nobody_else() {
    let rig = rig_with(sample()).await;
    let people = rig.houses[0].store.people();
    let (project, viewer) = (rig.houses[0].project.id, people.add_user("vera").await.unwrap());
    people.set_role(project, viewer, Role::Viewer).await.unwrap();
    people.add_user("eve").await.unwrap();
    let (vera, eve) = (Browser::signed_in(&rig, "vera").await, Browser::signed_in(&rig, "eve").await);
    let local = Browser::signed_in(&rig, USER_NAME).await;
    let workflow = object(&format!("workflow:{FLOW}"));
    let body = shown(&vera, &workflow).await;
    assert!(!body.contains("Ask the assistant") && !body.contains("Edit the text"), "{body}");
    for path in ["", "/list?kind=agents", "/findings", "/export", "/file?path=bmad.json"] {
        let path = format!("/projects/p0/builder{path}");
        let (there, not) = (eve.get(&path).await, eve.get(&path.replace("p0", "p9")).await);
        assert_eq!((there.status, &there.body), (404, &not.body), "{path}");
        assert_eq!(local.get(&path).await.status, 200, "{path}");
    }
    for name in ["step:research-report/none", "agent:none", "asset:bmad.json", "x", "variable:research-report/n"] {
        assert_eq!(local.get(&object(name)).await.status, 404, "{name}");
    }
    let zip = local.get("/projects/p0/builder/export").await;
    assert_eq!(zip.header("content-type"), Some("application/zip"));
    assert_eq!(zip.header("content-disposition"), Some("attachment; filename=\"package.zip\""));
}

#[tokio::test]
async fn a_graph_of_a_hundred_nodes_is_drawn_and_each_node_is_a_link() {
    let mut files = sample();
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let (id, next) = (format!("n{number}"), format!("n{}", number + 1));
        let kind = if number == 99 { "end" } else { "step" };
        let text = format!(
            "---\nschemaVersion: \"1.1\"\nnodeId: {id}\ntype: {kind}\n---\n\n## Goal\n\nA.\n\n## Instructions\n\nB.\n"
        );
        files.insert(format!("steps/{id}.md"), text.into_bytes());
        nodes.push(serde_json::json!({ "id": id, "type": kind, "file": format!("steps/{id}.md"), "title": format!("Step {number}") }));
        if number < 99 {
            edges.push(serde_json::json!({ "from": id, "to": next, "label": "on", "isDefault": true }));
        }
    }
    let graph = serde_json::json!({ "schemaVersion": "1.1", "entryNodeId": "n0", "nodes": nodes, "edges": edges });
    files.insert("workflow.graph.json".to_owned(), graph.to_string().into_bytes());
    let rig = rig_with(files).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let body = shown(&browser, &object(&format!("workflow:{FLOW}"))).await;
    assert_eq!(body.matches("class=\"node ").count(), 100);
    assert_eq!(body.matches("<polygon").count(), 99);
}
