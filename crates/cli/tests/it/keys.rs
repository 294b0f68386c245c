//! Keys of models' providers: kept where only their owner reads them, found in one order, shown nowhere.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use serde_json::{Value, json};
use toolhost_testkit::{ModelFormat, ModelServer, Program, Ran, TempWorkspace, Turn};

use crate::room::program;

const KEY: &str = "sk-test-0123456789";
const NAME: &str = "ANTHROPIC_API_KEY";

fn folder(workspace: &TempWorkspace) -> PathBuf {
    workspace.beside("home/.config/toolhost/keys")
}

fn keeps(program: &Program, arguments: &[&str], key: &str) -> Ran {
    program.run_with_input(&[&["key", "set"], arguments].concat(), format!("{key}\n").as_bytes())
}

/// Where `key list` finds a key, and what it says is wrong.
fn found(program: &Program, name: &str) -> (Value, Value) {
    let rows = program.run(&["key", "list", "--json"]).json();
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    (row["found"].clone(), row["error"].clone())
}

/// A keyring in a file, with the arguments of `secret-tool`; it writes down what it was started with.
fn keyring(workspace: &TempWorkspace) -> Program {
    let script = r#"#!/bin/sh
echo "$*" >> "$HOME/started"
for last; do :; done
file="$HOME/ring-$last"
case "$1" in
store) [ -e "$HOME/locked" ] && { echo "locked: $(cat)" >&2; exit 1; }; cat > "$file" ;;
lookup) [ -e "$file" ] && cat "$file" ;;
clear) rm "$file" ;;
esac
"#;
    workspace.write_beside("bin/secret-tool", script);
    let tool = workspace.beside("bin/secret-tool");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", workspace.beside("bin").display());
    program(workspace).variable("PATH", path)
}

#[test]
fn without_a_keyring_a_key_is_a_file_that_only_its_owner_reads() {
    let workspace = TempWorkspace::new();
    // No program at all, so no keyring's either.
    let program = program(&workspace).variable("PATH", workspace.beside("bin"));
    let ran = keeps(&program, &[NAME], KEY);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let file = folder(&workspace).join(NAME);
    assert!(ran.stdout.contains(&file.display().to_string()), "{ran:?}");
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(folder(&workspace)).unwrap().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), KEY);
    assert_eq!(found(&program, NAME), (json!({ "file": file }), Value::Null));
    assert_eq!(found(&program, "OPENAI_API_KEY"), (Value::Null, Value::Null));
    // What is asked for and is not there is said, and nothing is kept elsewhere instead.
    let ran = keeps(&program, &["--in", "keyring", "OPENAI_API_KEY"], KEY);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("secret-tool"), "{ran:?}");
    assert_eq!(found(&program, "OPENAI_API_KEY").0, Value::Null);
    let ran = program.run(&["key", "remove", NAME]);
    assert_eq!((ran.code, file.exists()), (Some(0), false), "{ran:?}");
    assert_eq!(program.run(&["key", "remove", NAME]).code, Some(2));
}

#[test]
fn a_keyring_takes_it_through_its_standard_input_and_gives_it_back() {
    let workspace = TempWorkspace::new();
    let program = keyring(&workspace);
    assert_eq!(keeps(&program, &["--in", "file", NAME], "sk-former").code, Some(0));
    let ran = keeps(&program, &[NAME], KEY);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ANTHROPIC_API_KEY is in the keyring\n"), "{ran:?}");
    assert!(!folder(&workspace).join(NAME).exists(), "there is one key of a name");
    assert_eq!(found(&program, NAME).0, "keyring");
    let started = std::fs::read_to_string(workspace.beside("home/started")).unwrap();
    assert!(started.contains("store --label=toolhost: ANTHROPIC_API_KEY service toolhost name ANTHROPIC_API_KEY"));
    assert!(!started.contains(KEY), "arguments can be read by everybody");
    assert_eq!(program.run(&["key", "remove", NAME]).code, Some(0));
    assert_eq!(found(&program, NAME).0, Value::Null);
    // One that is locked is no place: the file is, and says so.
    workspace.write_beside("home/locked", "");
    assert!(keeps(&program, &[NAME], KEY).stdout.contains("the file "));
    let ran = keeps(&program, &["--in", "keyring", NAME], KEY);
    assert!(ran.code == Some(1) && ran.stderr.contains("locked: ***"), "{ran:?}");
}

#[test]
fn the_environment_goes_first_then_the_configuration_and_a_broken_place_is_named() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert_eq!(keeps(&program, &[NAME], KEY).code, Some(0));
    workspace.write_beside("other", "sk-other\n");
    let config = |places: &str| {
        workspace.write_beside("home/.config/toolhost/config.toml", &format!("[keys]\n{places}\n"));
    };
    let other = workspace.beside("other");
    config(&format!("{NAME} = {{ file = \"{}\" }}\nB = {{ command = [\"echo\", \"{KEY}\"] }}", other.display()));
    assert_eq!(found(&program, NAME).0, json!({ "file": other }));
    assert_eq!(found(&program, "B").0, json!({ "command": "echo" }));
    let told = keeps(&program, &[NAME], KEY).stderr;
    assert!(told.contains("goes first"), "{told}");
    assert_eq!(found(&program.clone().variable(NAME, KEY), NAME).0, "environment");
    for (broken, why) in [
        ("{ file = \"/nowhere/key\" }", "/nowhere/key cannot be read"),
        ("{ file = \"/dev/zero\" }", "/dev/zero is not a key file"),
        ("{ command = [\"false\"] }", "the command false gives none"),
        ("{ command = [\"sh\", \"-c\", \"echo sk-test-0123456789 >&2; exit 3\"] }", "exit status: 3"),
        ("{ command = [\"nowhere-to-be-found\"] }", "nowhere-to-be-found"),
        ("{ command = [] }", "its command is empty"),
    ] {
        config(&format!("{NAME} = {broken}"));
        let told = found(&program, NAME).1.to_string();
        assert!(told.contains(why) && !told.contains(KEY), "{broken}: {told}");
        let ran = program.run(&["run", "hello", "--model", "anthropic:claude-sonnet-4-5"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(NAME) && ran.stderr.contains(why), "{ran:?}");
    }
}

#[test]
fn what_is_no_name_and_what_is_no_key_is_refused() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    for name in ["../x", "a/b", "A B", "1A", "", ".", &"A".repeat(65)] {
        let ran = keeps(&program, &[name], KEY);
        assert!(ran.code != Some(0) && ran.stderr.contains("not the name of a key"), "{name}: {ran:?}");
    }
    for key in ["", &"k".repeat(70_000), "two words", "line\nbreak", "\u{1b}[31m", "schlüssel"] {
        let ran = keeps(&program, &[NAME], key);
        assert_eq!(ran.code, Some(2), "{key}: {ran:?}");
    }
    assert!(!folder(&workspace).exists());
    let run = ["run", "hello", "--model", "anthropic:claude-sonnet-4-5"];
    let ran = program.run(&run);
    assert!(ran.stderr.contains("toolhost key set ANTHROPIC_API_KEY"), "{ran:?}");
    // A name of the operator's own stands for the provider's.
    let table = "[models.\"anthropic:claude-sonnet-4-5\"]\nkey = \"WORK_KEY\"\n";
    workspace.write_beside("home/.config/toolhost/config.toml", table);
    let ran = program.clone().variable(NAME, KEY).run(&run);
    assert!(ran.stderr.contains("toolhost key set WORK_KEY"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_set_is_the_one_a_request_carries() {
    let server = ModelServer::start(ModelFormat::OpenAi, vec![Turn::text("Hello.")]).await;
    let workspace = TempWorkspace::new();
    let spec = format!("openai:mock@{}", server.url());
    workspace.write_beside("home/.config/toolhost/config.toml", &format!("[models.\"{spec}\"]\nkey = \"MINE\"\n"));
    let program = program(&workspace);
    let ran = program.run(&["run", "hello", "--model", &spec]);
    assert!(ran.stderr.contains("toolhost key set MINE"), "{ran:?}");
    assert_eq!(keeps(&program, &["MINE"], ModelServer::KEY).code, Some(0));
    let ran = program.run(&["run", "hello", "--model", &spec]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Hello.") || ran.stderr.contains("Hello."), "{ran:?}");
    assert!(!format!("{ran:?}").contains(ModelServer::KEY), "the key is shown nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_a_key_of_its_own_and_no_other_is_taken_in_its_stead() {
    let server = ModelServer::start(ModelFormat::OpenAi, vec![Turn::text("Hello.")]).await;
    let workspace = TempWorkspace::new();
    let spec = format!("openai:mock@{}", server.url());
    let program = program(&workspace);
    let (_, project) = crate::served::token(&program, &[]);
    let config = |project: &str| {
        let keys = format!("[models.\"{spec}\"]\nkey = \"SHARED\"\n[project_keys.\"{project}\"]\nSHARED = \"SHOP\"\n");
        workspace.write_beside("home/.config/toolhost/config.toml", &keys);
    };
    assert_eq!(keeps(&program, &["SHARED"], ModelServer::KEY).code, Some(0));
    config(&project);
    let run = ["run", "hello", "--model", &*spec];
    let ran = program.run(&run);
    assert!(ran.code != Some(0) && ran.stderr.contains("toolhost key set SHOP"), "{ran:?}");
    let listed = program.run(&["key", "list"]);
    assert!(listed.stdout.contains("SHOP") && !listed.stdout.contains(ModelServer::KEY), "{listed:?}");
    // What another project has of its own is nothing to this one.
    config("another-project");
    let ran = program.run(&run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
