//! What the seeds ask for is a test by name: the table in the documentation names only tests that are there.

use std::path::Path;

#[test]
fn every_row_of_the_conformance_table_names_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = std::fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    let mut rows = 0;
    for line in table.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let tests = line.trim_end_matches(" |").rsplit("| ").next().unwrap();
        for test in tests.split(", ").map(|test| test.trim_matches('`')) {
            let mut parts = test.split("::");
            let (part, module, name) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            let file = root.join(format!("crates/{part}/tests/it/{module}.rs"));
            let source = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(source.contains(&format!("fn {name}(")), "{line}: there is no {test}");
            rows += 1;
        }
    }
    assert!(rows > 40, "{rows}");
}
