//! Which project a command is about, by the folder it is typed in.

use std::path::Path;
use std::process::{Command, Output};

use crate::room::TOOLHOST;

/// Types a command in a folder, as somebody with this home.
fn typed(home: &Path, folder: &Path, arguments: &[&str]) -> Output {
    #[expect(clippy::disallowed_methods, reason = "the program itself, in a folder of its own")]
    let mut command = Command::new(TOOLHOST);
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var("PATH").unwrap());
    command.output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_command_typed_below_a_project_is_about_that_project_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (home, project, deep) = (place.join("home"), place.join("work/project"), place.join("work/project/a/b"));
    for folder in [&home, &deep] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let create = ["requirement", "create", "Sign in", "--acceptance-criteria", "a form", "--priority", "high"];
    assert_eq!(said(&typed(&home, &project, &create)).0, Some(0));

    let note = format!("in the project {}", project.display());
    let (code, listed, told) = said(&typed(&home, &deep, &["requirement", "list"]));
    assert!(code == Some(0) && listed.contains("Sign in") && told.contains(&note), "{listed}{told}");
    let (_, waits, told) = said(&typed(&home, &deep, &["review", "list"]));
    assert!(format!("{waits}{told}").contains("nothing waits") && told.contains(&note), "{waits}{told}");
    // In the project itself there is nothing to say.
    let (_, listed, told) = said(&typed(&home, &project, &["requirement", "list"]));
    assert!(listed.contains("Sign in") && !told.contains("in the project"), "{told}");
    // Beside it is no project.
    let (_, listed, _) = said(&typed(&home, &place.join("work"), &["requirement", "list"]));
    assert!(!listed.contains("Sign in"), "{listed}");

    // An agent gets the folder it was started in, and no more.
    std::fs::write(project.join("above.txt"), "above").unwrap();
    let read = ["call", "file_read", r#"{"path": "above.txt"}"#];
    let (code, answer, told) = said(&typed(&home, &deep, &read));
    assert!(code == Some(1) && !answer.contains("\nabove"), "{answer}{told}");
    assert!(told.contains(&format!("`--root {}`", project.display())), "{told}");
    assert_eq!(said(&typed(&home, &project, &read)).0, Some(0));
    // Now it is a project of its own.
    let (_, listed, told) = said(&typed(&home, &deep, &["requirement", "list"]));
    assert!(!listed.contains("Sign in") && !told.contains("in the project"), "{listed}{told}");
}

#[test]
fn a_project_whose_folder_was_moved_goes_on_in_the_new_place() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (home, former, moved) = (place.join("home"), place.join("a/shop"), place.join("b/shop"));
    for folder in [&home, &former, &place.join("b"), &place.join("other")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let create = |title| ["requirement", "create", title, "--acceptance-criteria", "a form", "--priority", "high"];
    assert_eq!(said(&typed(&home, &former, &create("Sign in"))).0, Some(0));
    assert_eq!(said(&typed(&home, &place.join("other"), &create("Other"))).0, Some(0));
    let from = former.to_str().unwrap();
    // Not before it is gone.
    let (code, _, told) = said(&typed(&home, &place.join("b"), &["project", "move", from]));
    assert!(code == Some(1) && told.contains("is still there"), "{told}");
    std::fs::rename(&former, &moved).unwrap();
    let (code, listed, _) = said(&typed(&home, &place, &["project", "list"]));
    let lines: Vec<&str> = listed.lines().filter(|line| line.contains("toolhost project move")).collect();
    assert!(code == Some(0) && lines.len() == 1 && lines[0].contains(from), "{listed}");

    // Whoever goes on in the new folder is told, and nothing of the former one is lost.
    let (_, listed, told) = said(&typed(&home, &moved, &["requirement", "list"]));
    assert!(!listed.contains("Sign in") && told.contains(&format!("project move {from} --replace")), "{listed}{told}");
    let (code, _, told) = said(&typed(&home, &moved, &["project", "move", from]));
    assert!(code == Some(1) && told.contains("`--replace` puts them aside"), "{told}");
    let (code, told, error) = said(&typed(&home, &moved, &["project", "move", from, "--replace"]));
    assert!(code == Some(0) && told.contains("goes on in"), "{told}{error}");
    let aside = told.lines().find_map(|line| line.strip_prefix("what this folder had is in ")).unwrap();
    assert!(Path::new(aside).join("toolhost.db").exists(), "{told}");

    let (_, listed, told) = said(&typed(&home, &moved, &["requirement", "list"]));
    assert!(listed.contains("Sign in") && !told.contains("project move"), "{listed}{told}");
    assert_eq!(said(&typed(&home, &moved, &["audit", "verify"])).0, Some(0));
    let (_, shown, _) = said(&typed(&home, &moved, &["audit", "show"]));
    assert!(shown.contains("project.move"), "{shown}");
    let (_, listed, _) = said(&typed(&home, &place, &["--json", "project", "list"]));
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let roots: Vec<_> = listed.as_array().unwrap().iter().map(|one| (&one["root"], &one["isThere"])).collect();
    let other = place.join("other");
    let expected = [(moved.to_str().unwrap(), true), (other.to_str().unwrap(), true)];
    assert_eq!(
        roots,
        expected
            .map(|(root, there)| (serde_json::json!(root), serde_json::json!(there)))
            .each_ref()
            .map(|(root, there)| (root, there))
    );
    // Once is enough.
    let (code, _, told) = said(&typed(&home, &moved, &["project", "move", from]));
    assert!(code == Some(2) && told.contains("no project of"), "{told}");
}

#[test]
fn what_waits_is_listed_of_all_projects() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (home, one, two) = (place.join("home"), place.join("one"), place.join("two"));
    for folder in [&home, &one, &two] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let (_, _, told) = said(&typed(&home, &place, &["review", "list", "--all-projects"]));
    assert!(told.contains("nothing waits for a person in any project"), "{told}");
    for folder in [&one, &two] {
        let ask = ["call", "human_ask", r#"{"question": "Which colour?"}"#, "--profile", "planner"];
        let (code, waits, told) = said(&typed(&home, folder, &ask));
        assert!(waits.contains("ask-1"), "{code:?} {waits}{told}");
    }
    let (code, listed, told) = said(&typed(&home, &place, &["review", "list", "--all-projects"]));
    let of = |folder: &Path| listed.lines().filter(|line| line.contains(folder.to_str().unwrap())).count();
    assert!(code == Some(0) && (of(&one), of(&two)) == (1, 1), "{listed}{told}");
    // One that is damaged hides no other.
    let states =
        std::fs::read_dir(home.join(".local/share/toolhost/projects")).unwrap().map(|entry| entry.unwrap().path());
    let damaged =
        states.into_iter().find(|state| state.file_name().unwrap().to_string_lossy().starts_with("one-")).unwrap();
    std::fs::write(damaged.join("toolhost.db"), "no database").unwrap();
    let (code, listed, told) = said(&typed(&home, &place, &["review", "list", "--all-projects"]));
    assert!(code == Some(1) && listed.contains(two.to_str().unwrap()) && told.contains("one-"), "{listed}{told}");
    let (_, listed, _) = said(&typed(&home, &place, &["project", "list"]));
    assert!(listed.lines().count() >= 3, "{listed}");
}
