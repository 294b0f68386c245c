//! Submodules: what is told of them, without running anything that their configuration names; and a workspace that is one.

use serde_json::{Value, json};
use toolhost_testkit::{SaysYes, TempWorkspace};

use crate::room::{house, program};

/// A repository with the submodules `libs/outer` and `libs/outer/inner`.
fn nested() -> TempWorkspace {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    for (name, inside) in [("inner", None), ("outer", Some("inner"))] {
        let origin = workspace.beside(name).display().to_string();
        workspace.git(&["init", "-q", "-b", "main", &origin]);
        std::fs::write(workspace.beside(name).join("file"), "1\n").unwrap();
        if let Some(inside) = inside {
            let inside = workspace.beside(inside).display().to_string();
            workspace.git(&["-C", &origin, "-c", ALLOWED, "submodule", "--quiet", "add", &inside, "inner"]);
        }
        workspace.git(&["-C", &origin, "add", "--all"]);
        workspace.git(&["-C", &origin, "commit", "-q", "-m", "first"]);
    }
    let outer = workspace.beside("outer").display().to_string();
    workspace.git(&["-c", ALLOWED, "submodule", "--quiet", "add", &outer, "libs/outer"]);
    workspace.git(&["-c", ALLOWED, "submodule", "--quiet", "update", "--init", "--recursive"]);
    workspace.git(&["commit", "-q", "-m", "submodules"]);
    workspace
}

const ALLOWED: &str = "protocol.file.allow=always";

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_what_is_changed_in_submodules() {
    let house = house(nested()).person(SaysYes).build().await;
    let clean = house.data("git.status", json!({})).await;
    assert_eq!((&clean["clean"], &clean["submodules"]), (&json!(true), &Value::Null), "{clean}");
    house.workspace.write("libs/outer/new.txt", "n\n");
    house.workspace.write("libs/outer/inner/file", "2\n");
    house.workspace.write("libs/outer/inner/new.txt", "n\n");
    let told = house.data("git.status", json!({})).await;
    let expected = json!([
        { "path": "libs/outer", "changes": ["untracked content"] },
        { "path": "libs/outer/inner", "changes": ["modified content", "untracked content"] },
    ]);
    assert_eq!((&told["clean"], &told["submodules"]), (&json!(false), &expected), "{told}");
    let text = house.call("git.status", json!({})).await.text;
    assert!(text.ends_with("submodule libs/outer/inner (modified content, untracked content)"), "{text}");
    let nothing = house.call("git.commit", json!({ "message": "x" })).await.error.unwrap();
    assert!(format!("{nothing:?}").contains("inside a submodule"), "{nothing:?}");
    // Without a repository of its own, the one around it is not taken for it.
    house.workspace.write("a.txt", "2\n");
    std::fs::remove_file(house.workspace.path("libs/outer/inner/.git")).unwrap();
    house.workspace.make_folder("libs/outer/inner/.git");
    let told = house.data("git.status", json!({})).await;
    assert_eq!(told["submodules"][1], json!({ "path": "libs/outer/inner", "changes": ["not readable"] }), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_runs_nothing_that_a_submodule_names() {
    for (key, name) in [("fsmonitor", ""), ("clean", "x"), ("process", "x"), ("clean", "with=equals"), ("hooks", "")] {
        let workspace = nested();
        let mark = workspace.path("fired").display().to_string();
        workspace.write_script("evil", &format!("#!/bin/sh\ntouch {mark}\ncat\nexit 0\n"));
        let evil = workspace.path("evil").display().to_string();
        for submodule in ["libs/outer", "libs/outer/inner"] {
            let set = |key: &str, value: &str| _ = workspace.git(&["-C", submodule, "config", key, value]);
            match key {
                "fsmonitor" => set("core.fsmonitor", &evil),
                "hooks" => {
                    workspace.write_script("planted/post-index-change", &format!("#!/bin/sh\ntouch {mark}\n"));
                    set("core.hooksPath", &workspace.path("planted").display().to_string());
                }
                _ => {
                    set(&format!("filter.{name}.{key}"), &evil);
                    workspace.write(&format!("{submodule}/.gitattributes"), format!("* filter={name}\n"));
                }
            }
            // Changed in place, of the same size: git must look into the file.
            workspace.write(&format!("{submodule}/file"), "2\n");
        }
        let house = house(workspace).build().await;
        let told = house.call("git.status", json!({})).await;
        assert!(!house.workspace.has("fired"), "{key} {name}: {told:?}");
        assert_eq!(told.data["submodules"][1]["path"], "libs/outer/inner", "{key} {name}: {told:?}");
        for submodule in ["libs/outer", "libs/outer/inner"] {
            house.workspace.git_succeeds(&["-C", submodule, "status"]);
        }
        assert!(house.workspace.has("fired"), "the trap of {key} is broken");
    }
}

#[test]
fn a_workspace_whose_repository_is_kept_outside_is_told_why_git_does_not_work() {
    for tier in ["full", "landlock"] {
        let around = nested();
        let cases = [
            ("libs/outer", "a submodule", "the repository around it"),
            ("apart", "repository is kept elsewhere", "contains the repository"),
        ];
        around.git(&["init", "-q", "--separate-git-dir", &around.beside("apart.git").display().to_string(), "apart"]);
        for (root, what, hint) in cases {
            let root = around.path(root);
            let file = std::fs::read_to_string(root.join(".git")).unwrap();
            let program = program(&around).bare().variable("TOOLHOST_SANDBOX", tier).variable("TOOLHOST_ROOT", &root);
            let program = program.variable("TOOLHOST_STATE", around.state());
            let call =
                |tool: &str, arguments: Value| program.run(&["--json", "call", tool, &arguments.to_string()]).json();
            for (tool, arguments) in [
                ("git.status", json!({})),
                ("git.log", json!({})),
                ("git.branch", json!({})),
                ("git.commit", json!({ "message": "x" })),
                ("git.switch", json!({ "branch": "main" })),
            ] {
                let told = call(tool, arguments);
                let error = &told["error"];
                assert!(error["message"].as_str().unwrap_or_default().contains(what), "{tier} {tool}: {told}");
                assert!(error["hint"].as_str().unwrap_or_default().contains(hint), "{tier} {tool}: {told}");
            }
            for attack in ["echo 'gitdir: evil' > .git", "rm .git; mkdir .git", "mv .git x", "rm .git; ln -s x .git"] {
                let told = call("bash", json!({ "command": attack }));
                let now = std::fs::read_to_string(root.join(".git")).ok();
                assert_eq!(now.as_ref(), Some(&file), "{tier}: {attack}: {told}");
            }
        }
    }
}
