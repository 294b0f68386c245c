//! What a host is opened with, and what is refused before anything is opened.

use toolhost::agent::model::Secret;
use toolhost::store::Role;
use toolhost::{Error, Host, Models};

use crate::room::{engines, folder, sample};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named() {
    let place = folder();
    let (state, workspace) = (place.path().join("state"), folder());
    let told = |opened: toolhost::Result<Host>| opened.err().map(|error| error.to_string()).unwrap_or_default();
    let opened = Host::builder().project("acme").open().await;
    assert!(matches!(opened, Err(Error::NoDatabase)), "{}", told(opened));
    let opened = Host::builder().state(&state).open().await;
    assert!(matches!(opened, Err(Error::NoProject)), "{}", told(opened));
    let opened = Host::builder().state(&state).project("a\nb").open().await;
    assert!(matches!(opened, Err(Error::ProjectName)), "{}", told(opened));
    let opened = Host::builder().state(&state).workspace(workspace.path()).open().await;
    assert!(matches!(opened, Err(Error::NoFenceProgram)), "{}", told(opened));
    let inside = workspace.path().join("deep/state");
    let opened = Host::builder().state(inside).workspace(workspace.path()).fence_program("/usr/bin/false").open().await;
    assert!(matches!(opened, Err(Error::StateInWorkspace { .. })), "{}", told(opened));
    let opened =
        Host::builder().state(&state).project("acme").profiles("[profiles.x]\ntools = ['no.tool']").open().await;
    assert!(matches!(opened, Err(Error::Profiles { .. })), "{}", told(opened));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_a_workspace_serves_many_projects_which_never_meet() {
    for engine in engines() {
        let acme = engine.host().await;
        acme.packages().import(sample(), false).await.unwrap();
        let other = acme.open_project("other", "bob").await.unwrap();
        let found = other.packages().export().await;
        assert!(matches!(found, Err(Error::Package(_))), "{found:?}");
        let begun = other.packages().begin("tea", None, "2026-11-21T00:00:00Z").await;
        begun.unwrap();
        assert_eq!(other.packages().export().await.unwrap().len(), 2);
        assert_eq!(acme.packages().export().await.unwrap().len(), sample().len());
        // Who owns one project is nobody in the other.
        let stranger = acme.as_user("bob").await.unwrap();
        assert!(matches!(stranger.packages().export().await, Err(Error::Denied { role: Role::Viewer, .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_a_workspace_is_for_its_project() {
    let (place, workspace) = (folder(), folder());
    let builder = Host::builder().state(place.path().join("state")).workspace(workspace.path());
    let host = builder.fence_program("/usr/bin/false").user("ada").open().await.unwrap();
    let written = host.call("file.write", serde_json::json!({ "path": "a.txt", "content": "a" })).await;
    assert!(written.ok, "{written:?}");
    assert!(workspace.path().join("a.txt").exists());
    assert!(matches!(host.open_project("other", "ada").await, Err(Error::OneProject { .. })));
    host.close().await.unwrap();
}

#[test]
fn models_have_the_keys_they_are_given_and_no_others() {
    let refused = Models::new().open("anthropic:claude-sonnet-4-5").err().map(|error| error.to_string());
    assert!(refused.is_some_and(|told| told.contains("ANTHROPIC_API_KEY")));
    let models = Models::new().key("ANTHROPIC_API_KEY", Secret::new("sk-none"));
    assert_eq!(
        models.open("anthropic:claude-sonnet-4-5").ok().map(|model| model.spec).as_deref(),
        Some("anthropic:claude-sonnet-4-5")
    );
    assert!(matches!(Models::new().open("claude"), Err(Error::ModelSpec(_))));
    // No file is opened that nobody has handed in.
    assert!(matches!(Models::new().open("script:/etc/hostname"), Err(Error::Model(_))));
}

#[test]
fn only_the_orders_of_the_fence_are_taken_for_them() {
    assert!(toolhost::fence_helper(["service", "--sandbox-exec"].map(Into::into)).is_none());
    assert!(toolhost::fence_helper([]).is_none());
}
