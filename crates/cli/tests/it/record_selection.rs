//! Lists of records as a person sorts and filters them: over all pages, the same as a table and as JSON.

use serde_json::{Value, json};
use toolhost_testkit::{Program, TempWorkspace};

use crate::room::program;

/// More than a page.
const TASKS: usize = 1100;

fn run(program: &Program, line: &str) -> String {
    let ran = program.run(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
    ran.stdout
}

fn titles(program: &Program, line: &str) -> Vec<String> {
    let told: Value = serde_json::from_str(&run(program, &format!("--json {line}"))).unwrap();
    let items = told["data"]["items"].as_array().unwrap();
    items.iter().map(|item| item["title"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn all_pages_of_a_list_are_sorted_and_filtered() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let issues = (0..TASKS).map(|n| {
        let (title, status) = (format!("T{}", (n * 7) % TASKS), if n % 100 == 99 { "closed" } else { "open" });
        let issue = json!({ "id": format!("bd-{n}"), "title": title, "status": status, "priority": 1, "issue_type": "task",
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z" });
        format!("{issue}\n")
    });
    workspace.write("issues.jsonl", issues.collect::<String>());
    run(&program, &format!("import beads {}", workspace.path("issues.jsonl").display()));
    let by_title: Vec<String> = (0..TASKS).map(|n| format!("T{n}")).collect();
    assert_eq!(titles(&program, "task list --sort title"), by_title);
    let last: Vec<String> = by_title.iter().rev().take(3).cloned().collect();
    assert_eq!(titles(&program, "task list --sort=-title --limit 3"), last);
    let closed = titles(&program, "task list --where state=completed --sort title");
    assert_eq!(closed.len(), TASKS / 100, "{closed:?}");
    assert_eq!(titles(&program, "task list --where title=t42 --where status!=completed"), ["T42"]);
    // Without an option it is the first page, as ever.
    assert_eq!(titles(&program, "task list").len(), 100);
    // The table is of the same records, in the same order.
    let table = run(&program, "task list --sort=-title --limit 3");
    let places: Vec<Option<usize>> = last.iter().map(|title| table.find(title.as_str())).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted() && table.lines().count() == 4, "{table}");
}

#[test]
fn a_field_that_is_none_is_answered_with_those_there_are() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    run(&program, "ticket create One");
    for (line, said) in [
        ("ticket list --sort colour", "no field `colour`"),
        ("ticket list --where colour=red", "title"),
        ("ticket list --where colour", "FIELD=VALUE"),
        ("task list --sort colour", "no field `colour`"),
        ("ticket list --sort title --cursor 1", "--cursor"),
    ] {
        let ran = program.run(&line.split(' ').collect::<Vec<_>>());
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{line}: {ran:?}");
    }
    // A field that no task has yet is no mistake.
    run(&program, "task add One");
    run(&program, "task list --sort externalId");
    run(&program, "milestone list --where title=x");
}

#[test]
fn a_table_fits_the_terminal() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let title = "a title with many words ".repeat(6);
    for _ in 0..2 {
        let made = program.run(&["ticket", "create", &title]);
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    for columns in [64, 80] {
        let lines = program.run_at_terminal(columns, "{} </dev/tty 2>&1", &["ticket", "list"]);
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end_matches('\r')).collect();
        let rows: Vec<&&str> = lines.iter().filter(|line| line.starts_with("TKT-")).collect();
        assert!(rows.len() == 2 && lines.len() == 3, "{lines:?}");
        for row in rows {
            assert!(row.chars().count() <= usize::from(columns) && row.ends_with('…'), "{row}");
        }
    }
    // A program that reads the table has each cell as it is.
    assert!(run(&program, "ticket list").contains("a title with many words a title with many words"));
}

#[test]
fn what_waits_for_people_is_sorted_and_filtered_too() {
    let workspace = TempWorkspace::new();
    workspace.write_beside(
        "operator.toml",
        "[approvals]\nhold_seconds = 0\n[[profiles.all.rules]]\ntool = 'bash'\ndecide = 'ask'\nwhy = 'a test'\n",
    );
    let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    for (tool, arguments) in [
        ("bash", json!({ "command": "echo b" })),
        ("human.ask", json!({ "question": "Well?" })),
        ("bash", json!({ "command": "echo a" })),
    ] {
        program.run(&["call", tool, &arguments.to_string()]);
    }
    let numbers = |line: &str| -> Vec<i64> {
        let told: Value = serde_json::from_str(&run(&program, &format!("--json review list {line}"))).unwrap();
        told.as_array().unwrap().iter().map(|ask| ask["number"].as_i64().unwrap()).collect()
    };
    assert_eq!(numbers("--sort=-id"), [3, 2, 1]);
    assert_eq!(numbers("--where kind=approval --sort what"), [3, 1]);
    assert_eq!(numbers("--all --where tool!=bash"), [2]);
    assert_eq!(numbers("--all --where tool=none"), Vec::<i64>::new());
    let ran = program.run(&["review", "list", "--sort", "colour"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("no field `colour`"), "{ran:?}");
    assert_eq!(run(&program, "session list --sort changed --where state=failed"), "");
}
