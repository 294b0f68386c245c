//! Repositories that try to run a program of their own through git's configuration. Each plants a way that plain git
//! takes; the tools must not.

use serde_json::{Value, json};
use toolhost_testkit::{House, SaysYes, TempWorkspace};

use crate::room::fenced;

/// What every planted program does.
const FIRED: &str = "fired";

/// A repository with changes of every kind, a remote, and a program `evil` that leaves a mark.
fn workspace() -> TempWorkspace {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n"), ("b.bin", "1\n"), ("sub/c.txt", "1\n")]);
    workspace.git(&["init", "-q", "--bare", "-b", "main", "remote.git"]);
    workspace.git(&["remote", "add", "origin", "./remote.git"]);
    workspace.git(&["switch", "-q", "-c", "other"]);
    workspace.write("sub/c.txt", "other\n");
    workspace.git(&["commit", "-q", "-a", "-m", "other"]);
    workspace.git(&["switch", "-q", "main"]);
    let mark = workspace.path(FIRED).display().to_string();
    // Also as a filter or textconv: what comes in goes out.
    workspace.write_script(
        "evil",
        &format!("#!/bin/sh\necho \"$0 $*\" >> {mark}\ncat \"${{1:-/dev/null}}\" 2>/dev/null\nexit 0\n"),
    );
    workspace
}

/// Plants by `git config`.
fn configure(workspace: &TempWorkspace, settings: &[(&str, &str)]) {
    let evil = workspace.path("evil").display().to_string();
    for (key, value) in settings {
        workspace.git(&["config", "--local", key, &value.replace("EVIL", &evil)]);
    }
}

/// Runs every git tool, whatever comes of it.
async fn run_all(house: &House) -> Vec<Value> {
    house.workspace.write("a.txt", "2\n");
    house.workspace.write("new.txt", "n\n");
    let mut said = Vec::new();
    for (tool, arguments) in [
        ("git.status", json!({})),
        ("git.diff", json!({})),
        ("git.diff", json!({ "base": "HEAD" })),
        ("git.log", json!({ "path": "a.txt" })),
        ("git.show", json!({ "revision": "other" })),
        ("git.show", json!({ "path": "a.txt" })),
        ("git.switch", json!({ "branch": "other" })),
        ("git.switch", json!({ "branch": "main" })),
        ("git.switch", json!({ "branch": "made", "create": true, "from": "other" })),
        ("git.switch", json!({ "detach": "main" })),
        ("git.switch", json!({ "branch": "main" })),
        ("git.branch", json!({ "create": "topic" })),
        ("git.branch", json!({ "delete": "topic" })),
        ("git.branch", json!({})),
        ("git.restore", json!({ "paths": ["sub"], "source": "other" })),
        ("git.restore", json!({ "paths": ["sub"], "source": "other", "staged": true })),
        ("git.restore", json!({ "paths": ["sub"], "source": "HEAD", "staged": true, "worktree": true })),
        ("git.stash", json!({ "action": "push", "message": "x", "paths": ["a.txt"] })),
        ("git.stash", json!({ "action": "list" })),
        ("git.stash", json!({ "action": "show" })),
        ("git.stash", json!({ "action": "apply" })),
        ("git.stash", json!({ "action": "drop" })),
        ("git.commit", json!({ "message": "one", "files": ["a.txt"] })),
        ("git.commit", json!({ "message": "rest" })),
        ("git.diff", json!({ "staged": true })),
        ("git.push", json!({})),
        ("git.status", json!({})),
    ] {
        let outcome = house.call(tool, arguments).await;
        said.push(serde_json::to_value(outcome).unwrap());
    }
    said
}

/// With these settings and attributes, nothing fires.
async fn check(settings: &[(&str, &str)], attributes: &str) {
    let places = [".gitattributes", ".git/info/attributes"];
    for place in &places[..if attributes.is_empty() { 1 } else { places.len() }] {
        let workspace = workspace();
        workspace.write(place, attributes);
        configure(&workspace, settings);
        let house = fenced(workspace).person(SaysYes).build().await;
        let said = run_all(&house).await;
        let fired = house.workspace.has(FIRED).then(|| house.workspace.read(FIRED));
        assert_eq!(fired, None, "{settings:?} with {place}: {said:?}");
        assert!(said.iter().all(|outcome| !outcome.to_string().contains("internal error")), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_planted_program_would_fire_without_us() {
    let workspace = workspace();
    configure(&workspace, &[("core.fsmonitor", "EVIL")]);
    workspace.git(&["status"]);
    assert!(workspace.has(FIRED), "the trap itself is broken");
    for (key, name) in [("filter", "clean"), ("diff", "command"), ("diff", "textconv")] {
        for driver in ["x", "with=equals", "UPPER"] {
            let workspace = self::workspace();
            workspace.write(".git/info/attributes", format!("* {key}={driver}\n"));
            configure(&workspace, &[(&format!("{key}.{driver}.{name}"), "EVIL")]);
            workspace.write("a.txt", "2\n");
            workspace.git(&["diff"]);
            assert!(workspace.has(FIRED), "the trap of {key}.{driver}.{name} is broken");
        }
    }
}

/// Settings that are there together. Those of another group would keep these from being used.
const TOGETHER: [&[(&str, &str)]; 6] = [
    &[
        ("core.fsmonitor", "EVIL"),
        ("core.hooksPath", "hooks"),
        ("diff.external", "EVIL"),
        ("core.pager", "EVIL"),
        ("pager.log", "EVIL"),
        ("core.editor", "EVIL"),
        ("sequence.editor", "EVIL"),
        ("core.alternateRefsCommand", "EVIL"),
        ("alias.status", "!EVIL"),
        ("alias.commit", "!EVIL"),
        ("alias.diff", "!EVIL"),
        ("alias.push", "!EVIL"),
        ("trailer.x.command", "EVIL"),
        ("trailer.x.cmd", "EVIL"),
        ("trailer.x.ifmissing", "add"),
        ("uploadpack.packObjectsHook", "EVIL"),
        ("gc.auto", "1"),
        ("maintenance.auto", "true"),
    ],
    &[("commit.gpgSign", "true"), ("gpg.program", "EVIL"), ("log.showSignature", "true"), ("push.gpgSign", "true")],
    &[("gpg.format", "ssh"), ("gpg.ssh.program", "EVIL"), ("commit.gpgSign", "true"), ("user.signingKey", "x")],
    &[
        ("remote.origin.url", "ssh://localhost/x"),
        ("core.sshCommand", "EVIL"),
        ("ssh.variant", "simple"),
        ("core.gitProxy", "EVIL"),
        ("credential.helper", "!EVIL"),
        ("core.askPass", "EVIL"),
    ],
    &[("remote.origin.url", "ext::EVIL %S x"), ("protocol.ext.allow", "always")],
    &[("remote.origin.receivepack", "EVIL"), ("remote.origin.uploadpack", "EVIL"), ("remote.origin.vcs", "evil")],
];

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_fixed_names_run_nothing() {
    for settings in TOGETHER {
        check(settings, "").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drivers_of_any_name_run_nothing() {
    let mut settings: Vec<(String, &str)> = Vec::new();
    for name in ["x", "with=equals", "with.dots", "UPPER", "sp ace", "qu\\\"ote"] {
        for (section, key, value) in [
            ("filter", "clean", "EVIL %f"),
            ("filter", "smudge", "EVIL %f"),
            ("filter", "process", "EVIL"),
            ("filter", "required", "false"),
            ("diff", "command", "EVIL"),
            ("diff", "textconv", "EVIL"),
            ("merge", "driver", "EVIL %A"),
        ] {
            settings.push((format!("{section}.{name}.{key}"), value));
        }
    }
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    // Attributes cannot name the others: of these there are only the settings.
    for names in [["x", "with=equals", "with.dots"], ["UPPER", "x", "with=equals"], ["with.dots", "UPPER", "x"]] {
        let files = ["a.txt", "new.txt", "sub/c.txt"];
        let line = |(file, name): (&str, &str)| format!("{file} filter={name} diff={name} merge={name}\n");
        check(&settings, &files.into_iter().zip(names).map(line).collect::<String>()).await;
    }
    check(&[("filter.x.clean", "EVIL %f"), ("filter.x.required", "true")], "a.txt filter=x\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn included_files_arm_nothing() {
    let config = "[core]\n\tfsmonitor = EVIL\n[filter \"x\"]\n\tclean = EVIL %f\n[diff \"x\"]\n\ttextconv = EVIL\n";
    for key in ["include.path", "includeIf.gitdir:**.path", "includeIf.onbranch:main.path"] {
        let workspace = workspace();
        let evil = workspace.path("evil").display().to_string();
        workspace.write("more.config", config.replace("EVIL", &evil));
        workspace.write(".gitattributes", "* filter=x diff=x\n");
        let path = workspace.path("more.config").display().to_string();
        workspace.git(&["config", "--local", key, &path]);
        let house = fenced(workspace).person(SaysYes).build().await;
        let said = run_all(&house).await;
        assert!(!house.workspace.has(FIRED), "{key}: {said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_do_not_run() {
    let workspace = workspace();
    let script = workspace.read("evil");
    for hook in [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
        "pre-auto-gc",
        "post-rewrite",
        "post-checkout",
        "post-merge",
        "pre-merge-commit",
        "update",
        "pre-receive",
        "post-receive",
        "post-update",
        "push-to-checkout",
    ] {
        workspace.write_script(&format!(".git/hooks/{hook}"), &script);
    }
    let house = fenced(workspace).person(SaysYes).build().await;
    let said = run_all(&house).await;
    assert!(!house.workspace.has(FIRED), "{}", house.workspace.read(FIRED));
    assert!(said.iter().all(|outcome| outcome["ok"] == true), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_elsewhere_is_not_followed() {
    for way in ["gitfile", "worktree", "commondir", "link"] {
        let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
        let other = TempWorkspace::repository(&[("secret.txt", "outside-secret\n")]);
        let outside = other.path(".git").display().to_string();
        match way {
            "gitfile" | "link" => {
                workspace.git(&["checkout", "-q", "--detach"]);
                std::fs::rename(workspace.path(".git"), workspace.beside("old.git")).unwrap();
                if way == "gitfile" {
                    workspace.write(".git", format!("gitdir: {outside}\n"));
                }
            }
            "worktree" => {
                workspace.git(&["config", "core.worktree", &other.root().display().to_string()]);
            }
            _ => workspace.write(".git/commondir", &outside),
        }
        let before = other.snapshot();
        let house = fenced(workspace).person(SaysYes).build().await;
        if way == "link" {
            // There from the start it would be refused when the workspace is opened; an agent may put it there later.
            house.workspace.link(&outside, ".git");
        }
        for (tool, arguments) in [
            ("git.status", json!({})),
            ("git.log", json!({})),
            ("git.diff", json!({ "base": "HEAD" })),
            ("git.commit", json!({ "message": "mine" })),
            ("git.push", json!({})),
        ] {
            let outcome = house.call(tool, arguments).await;
            let said = format!("{outcome:?}");
            assert!(!said.contains("outside-secret") && !said.contains("secret.txt"), "{way} {tool}: {said}");
        }
        assert_eq!(other.snapshot(), before, "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_repository_hidden_in_a_folder_is_not_used() {
    // A workspace that is one is not opened; this one becomes one later.
    let house = fenced(TempWorkspace::new()).build().await;
    let workspace = &house.workspace;
    workspace.write("HEAD", "ref: refs/heads/main\n");
    for folder in ["objects", "refs/heads"] {
        workspace.make_folder(folder);
    }
    let evil = workspace.path("evil").display().to_string();
    let mark = workspace.path(FIRED).display().to_string();
    workspace.write_script("evil", &format!("#!/bin/sh\ntouch {mark}\n"));
    workspace.write(
        "config",
        format!("[core]\n\tbare = false\n\tworktree = {}\n\tfsmonitor = {evil}\n", workspace.root().display()),
    );
    for tool in ["git.status", "git.log", "git.diff"] {
        assert!(!house.call(tool, json!({})).await.ok, "{tool}");
    }
    assert!(!house.workspace.has(FIRED));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_variable_of_the_host_reaches_git() {
    // `GIT_*` of the host would be one more configuration; the fence starts with an empty environment.
    let house = fenced(workspace()).build().await;
    let data = house.data("bash", json!({ "command": "env | grep ^GIT_" })).await;
    // The fence's own: git takes a configuration of the machine that it may not read for a failure.
    assert_eq!(data["stdout"], "GIT_CONFIG_NOSYSTEM=1\n", "{data}");
}
