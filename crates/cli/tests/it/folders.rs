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
