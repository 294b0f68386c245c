//! Forgotten files: a source file that no `mod` line names is never compiled, and a test in it never runs.

use crate::finding::Finding;
use crate::tidy::Tree;
use crate::tidy::source::{split, words};

/// Folders in which cargo finds every file by itself.
const FOUND_BY_CARGO: [&str; 4] = ["src/bin", "tests", "benches", "examples"];

/// Checks that the module above a file names it.
pub(crate) fn check(tree: &Tree, path: &str) -> Option<Finding> {
    let (folder, name) = place(path)?;
    let mut above = vec![format!("{folder}/mod.rs"), format!("{folder}.rs")];
    // The root of the crate may hold the families as inline modules.
    above.extend(roots(folder));
    let is_named =
        above.iter().filter(|file| *file != path).filter_map(|file| tree.text(file)).any(|text| names(text, name));
    if is_named {
        return None;
    }
    let known = above.into_iter().filter(|file| file != path && tree.text(file).is_some()).collect::<Vec<_>>();
    Some(Finding::new(path, format!("no `mod {name};` in {}: the file is never compiled", known.join(" or "))))
}

/// The folder of the module above, and the name this file has there; nothing for the root of a crate or a test binary.
fn place(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = path.rsplit_once('/')?;
    match file.strip_suffix(".rs")? {
        "lib" | "main" | "build" => None,
        "mod" => folder.rsplit_once('/'),
        _ if FOUND_BY_CARGO.iter().any(|found| folder.ends_with(&format!("/{found}"))) => None,
        name => Some((folder, name)),
    }
}

/// Where a crate, a test binary or an example may begin, from this folder up to the one that holds its modules.
fn roots(folder: &str) -> Vec<String> {
    let mut roots = Vec::new();
    let mut folder = Some(folder);
    let begins = |here: &&str| ["/src", "/tests/", "/examples/"].iter().any(|part| here.contains(part));
    while let Some(here) = folder.filter(begins) {
        roots.extend(["lib.rs", "main.rs"].map(|file| format!("{here}/{file}")));
        folder = here.rsplit_once('/').map(|(above, _)| above);
    }
    roots
}

/// Whether the code has `mod name;` or, for a folder, `mod name {`.
fn names(text: &str, name: &str) -> bool {
    let code = split(text).code;
    let mut previous = "";
    words(&code).any(|(offset, word)| {
        let is_named = previous == "mod" && word == name;
        previous = word;
        is_named && code[offset + word.len()..].trim_start().starts_with([';', '{'])
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::Tree;

    fn check_file(tree: &Tree, path: &str, expected: &str) {
        assert_eq!(check(tree, path).map(|finding| finding.to_string()).unwrap_or_default(), expected);
    }

    #[test]
    fn a_forgotten_test_file_is_found() {
        let tree = Tree::from([
            ("crates/host/tests/it/main.rs", "mod gate;\n// mod policy;\nconst A: &str = \"mod policy;\";\n"),
            ("crates/host/tests/it/gate.rs", ""),
            ("crates/host/tests/it/policy.rs", ""),
            ("crates/host/tests/alone.rs", ""),
            ("crates/host/examples/large/main.rs", "mod part;\n"),
            ("crates/host/examples/large/part.rs", ""),
        ]);
        check_file(&tree, "crates/host/tests/it/main.rs", "");
        check_file(&tree, "crates/host/tests/it/gate.rs", "");
        check_file(&tree, "crates/host/tests/alone.rs", "");
        check_file(&tree, "crates/host/examples/large/part.rs", "");
        check_file(
            &tree,
            "crates/host/tests/it/policy.rs",
            "crates/host/tests/it/policy.rs: no `mod policy;` in crates/host/tests/it/main.rs: the file is never compiled",
        );
    }

    #[test]
    fn a_forgotten_tool_is_found_whether_its_family_is_a_file_or_inline() {
        let tree = Tree::from([
            ("crates/tools/src/lib.rs", "mod file;\nmod git {\n    mod status;\n}\n"),
            ("crates/tools/src/file/mod.rs", "pub(crate) mod read;\n"),
            ("crates/tools/src/file/read.rs", ""),
            ("crates/tools/src/file/write.rs", ""),
            ("crates/tools/src/git/status.rs", ""),
            ("crates/tools/src/git/push.rs", ""),
        ]);
        check_file(&tree, "crates/tools/src/file/mod.rs", "");
        check_file(&tree, "crates/tools/src/file/read.rs", "");
        check_file(&tree, "crates/tools/src/git/status.rs", "");
        let no_mod = |path: &str| check(&tree, path).expect("the file is forgotten").to_string();
        assert!(
            no_mod("crates/tools/src/file/write.rs").contains("no `mod write;` in crates/tools/src/file/mod.rs or")
        );
        assert!(no_mod("crates/tools/src/git/push.rs").contains("no `mod push;` in crates/tools/src/lib.rs"));
    }

    #[test]
    fn roots_and_binaries_need_no_one() {
        let tree =
            Tree::from([("crates/cli/src/main.rs", ""), ("crates/cli/src/bin/x.rs", ""), ("crates/cli/build.rs", "")]);
        for path in ["crates/cli/src/main.rs", "crates/cli/src/bin/x.rs", "crates/cli/build.rs"] {
            check_file(&tree, path, "");
        }
    }
}
