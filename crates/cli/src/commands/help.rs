//! What help texts have besides what each command says of itself: groups of commands, and examples.

use std::fmt::Write as _;

use clap::Command;

use crate::print::{BOLD, paint};

/// The commands as a person looks for them; the families of records come last.
const GROUPS: &[(&str, &[&str])] = &[
    ("Begin", &["demo", "init", "doctor", "mcp", "serve", "run", "session", "project", "backup", "restore", "key"]),
    ("Agents' calls", &["review", "approvals", "audit", "undo", "call", "tools"]),
    ("What they may", &["profiles", "policy", "member", "quota", "webhook", "token", "login", "logout"]),
    ("Results", &["deploy", "package", "change", "import", "export"]),
    ("This program", &["schema", "completions", "man", "help"]),
];
const FAMILIES: &str = "Records";
/// Columns of a help text, as clap has it.
const WIDTH: usize = 100;

/// What a person would type, for each command that is not made from a tool.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("init", &["toolhost init", "toolhost init ~/code/shop"]),
    ("demo", &["toolhost demo", "toolhost demo --remove"]),
    (
        "mcp",
        &[
            "toolhost mcp --profile developer",
            "toolhost mcp --server http://127.0.0.1:7420/mcp",
            "toolhost mcp --profile researcher --root ~/code/shop",
        ],
    ),
    ("serve", &["toolhost serve", "toolhost serve --root ~/code/shop --listen 127.0.0.1:8080"]),
    ("run", &["toolhost run 'fix the failing test' --model anthropic:claude-sonnet-4-5 --max-cost 2"]),
    ("session list", &["toolhost session list --limit 5"]),
    ("session show", &["toolhost session show 01a21a15-8d6a-75e4-99db-785ad01cd52e"]),
    ("session resume", &["toolhost session resume 01a21a15-8d6a-75e4-99db-785ad01cd52e 'and now the documentation'"]),
    ("session pause", &["toolhost session pause 01a21a15-8d6a-75e4-99db-785ad01cd52e"]),
    ("session cancel", &["toolhost session cancel 01a21a15-8d6a-75e4-99db-785ad01cd52e"]),
    ("session fork", &["toolhost session fork 01a21a15-8d6a-75e4-99db-785ad01cd52e"]),
    ("session replay", &["toolhost session replay 01a21a15-8d6a-75e4-99db-785ad01cd52e"]),
    ("session watch", &["toolhost session watch 01a21a15-8d6a-75e4-99db-785ad01cd52e"]),
    ("project list", &["toolhost project list"]),
    ("project move", &["toolhost project move ~/code/shop ~/src/shop", "toolhost project move ~/code/shop"]),
    ("backup", &["toolhost backup", "toolhost backup /mnt/backups/shop.db"]),
    ("restore", &["toolhost restore shop-20261128-101500.toolhost.db", "toolhost restore shop.db --replace"]),
    ("key set", &["toolhost key set anthropic", "toolhost key set openai --in file < key.txt"]),
    ("key list", &["toolhost key list"]),
    ("key remove", &["toolhost key remove openai"]),
    (
        "call",
        &[
            "toolhost call file.read '{\"path\": \"README.md\"}'",
            "toolhost call file.read --format tool-result - < arguments.json",
            "toolhost call git.push --wait",
        ],
    ),
    ("tools", &["toolhost tools --profile developer", "toolhost tools --markdown > tools.md"]),
    ("profiles", &["toolhost profiles", "toolhost profiles developer"]),
    ("policy test", &["toolhost policy test policy-tests.toml"]),
    ("policy explain", &["toolhost policy explain bash '{\"command\": \"git push\"}'"]),
    ("review list", &["toolhost review list", "toolhost review list --all-projects"]),
    ("review show", &["toolhost review show ask-7"]),
    (
        "review decide",
        &[
            "toolhost review decide",
            "toolhost review decide ask-7 --allow",
            "toolhost review decide ask-7 --deny='use the staging server'",
            "toolhost review decide ask-7 --allow --rule --for 8h",
        ],
    ),
    ("review watch", &["toolhost review watch", "toolhost review watch --bell --webhook"]),
    ("review webhook-test", &["toolhost review webhook-test"]),
    ("review revoke", &["toolhost review revoke ask-7"]),
    ("approvals list", &["toolhost approvals list"]),
    ("approvals revoke", &["toolhost approvals revoke 3"]),
    ("deploy plan", &["toolhost deploy plan --deploy-to ~/site"]),
    ("deploy run", &["toolhost deploy run --deploy-to ~/site"]),
    ("deploy undo", &["toolhost deploy undo --deploy-to ~/site"]),
    ("deploy history", &["toolhost deploy history --deploy-to ~/site"]),
    ("undo", &["toolhost undo", "toolhost undo --since 30m"]),
    ("package new", &["toolhost package new release-notes --description 'Writes release notes'"]),
    ("package validate", &["toolhost package validate ./release-notes"]),
    ("package import", &["toolhost package import ./release-notes"]),
    ("package export", &["toolhost package export ./release-notes.zip"]),
    ("package list", &["toolhost package list"]),
    ("change list", &["toolhost change list"]),
    ("change show", &["toolhost change show cs-3"]),
    ("change validate", &["toolhost change validate cs-3"]),
    ("change apply", &["toolhost change apply cs-3", "toolhost change apply cs-3 --only 0,2"]),
    ("change discard", &["toolhost change discard cs-3"]),
    ("change history", &["toolhost change history"]),
    ("change undo", &["toolhost change undo 12"]),
    ("schema", &["toolhost schema change-set > change-set.schema.json", "toolhost schema config > config.schema.json"]),
    ("audit show", &["toolhost audit show --failed", "toolhost audit show --tool bash --since 60"]),
    ("audit follow", &["toolhost audit follow -n 20"]),
    ("audit verify", &["toolhost audit verify", "toolhost audit verify --against yesterday.jsonl"]),
    ("audit checkpoint", &["toolhost audit checkpoint -o checkpoints.jsonl"]),
    ("audit export", &["toolhost audit export -o audit.jsonl"]),
    (
        "import",
        &["toolhost import records.jsonl", "toolhost import cowork ~/code/shop", "toolhost import beads issues.jsonl"],
    ),
    ("export", &["toolhost export -o records.jsonl"]),
    ("webhook list", &["toolhost webhook list"]),
    ("webhook add", &["toolhost webhook add https://hooks.example.org/shop"]),
    ("webhook remove", &["toolhost webhook remove wh_3f2a9c1b7d5e4f60a8b1c2d3"]),
    ("webhook test", &["toolhost webhook test wh_3f2a9c1b7d5e4f60a8b1c2d3"]),
    ("quota show", &["toolhost quota show"]),
    (
        "quota set",
        &["toolhost quota set --calls-per-minute 600 --calls-open 20", "toolhost quota set --calls-per-minute none"],
    ),
    ("member list", &["toolhost member list"]),
    ("member add", &["toolhost member add ana editor"]),
    ("member remove", &["toolhost member remove ana"]),
    ("member invite", &["toolhost member invite ana --server https://tools.example.org"]),
    ("login", &["toolhost login", "toolhost login --server https://tools.example.org", "toolhost login --status"]),
    ("logout", &["toolhost logout"]),
    ("token create", &["toolhost token create ci-agent --profile developer --expires 30d"]),
    ("token list", &["toolhost token list"]),
    ("token revoke", &["toolhost token revoke tok-1a2b3c4d"]),
    ("doctor", &["toolhost doctor", "toolhost doctor --sandbox landlock", "toolhost doctor --accept-git"]),
    ("completions", &["toolhost completions bash > ~/.local/share/bash-completion/completions/toolhost"]),
    ("man", &["toolhost man task claim | man -l -", "toolhost man > ~/.local/share/man/man1/toolhost.1"]),
];

/// Puts the commands into groups, and under each the examples.
pub(super) fn dressed(mut command: Command) -> Command {
    for (path, examples) in EXAMPLES {
        let names: Vec<&str> = path.split(' ').collect();
        command = below(command, &names, &of_examples(examples));
    }
    let groups = groups(&command);
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{}\n{{options}}{{after-help}}",
        paint(BOLD, "Options:")
    ))
}

/// What stands under a help text.
pub(super) fn of_examples(examples: &[impl AsRef<str>]) -> String {
    let title = if examples.len() == 1 { "Example:" } else { "Examples:" };
    let lines = examples.iter().map(|example| format!("\n  {}", example.as_ref())).collect::<String>();
    format!("{}{lines}", paint(BOLD, title))
}

fn below(command: Command, names: &[&str], text: &str) -> Command {
    match names {
        [] => command.after_help(text.to_owned()),
        [name, rest @ ..] => command.mut_subcommand(name, |inner| below(inner, rest, text)),
    }
}

fn groups(command: &Command) -> String {
    let width = command.get_subcommands().map(|one| one.get_name().len()).max().unwrap_or_default();
    let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let others = command.get_subcommands().map(Command::get_name).filter(|name| !grouped.contains(name));
    let families: Vec<&str> = others.collect();
    let mut text = String::new();
    for (title, names) in GROUPS.iter().copied().chain([(FAMILIES, families.as_slice())]) {
        let lines = names.iter().filter_map(|name| {
            let about = match *name {
                "help" => "Print this message, or the help of a command".to_owned(),
                name => command.find_subcommand(name)?.get_about()?.to_string(),
            };
            Some((*name, about))
        });
        let lines: Vec<(&str, String)> = lines.collect();
        if !lines.is_empty() {
            let _ = writeln!(text, "{}", paint(BOLD, format_args!("{title}:")));
        }
        for (name, about) in &lines {
            let _ = write!(text, "  {}", paint(BOLD, format_args!("{name:width$}")));
            let mut column = width + 2;
            for word in about.split(' ') {
                let gap = if column == width + 2 { 2 } else { 1 };
                if column + gap + word.chars().count() > WIDTH {
                    let _ = write!(text, "\n{:1$}", "", width + 2);
                    column = width + 2;
                }
                let gap = if column == width + 2 { 2 } else { 1 };
                let _ = write!(text, "{:gap$}{word}", "");
                column += gap + word.chars().count();
            }
            text.push('\n');
        }
        if !lines.is_empty() {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::{EXAMPLES, GROUPS};

    fn leaves<'a>(command: &'a Command, above: &str, found: &mut Vec<(String, &'a Command)>) {
        for one in command.get_subcommands().filter(|one| one.get_name() != "help") {
            let path = format!("{above}{}", one.get_name());
            match one.has_subcommands() {
                true => leaves(one, &format!("{path} "), found),
                false => found.push((path, one)),
            }
        }
    }

    #[test]
    fn every_command_has_an_example_that_is_one_of_it() {
        let whole = crate::whole_command().expect("the tools fit together");
        let mut found = Vec::new();
        leaves(&whole, "", &mut found);
        assert!(found.len() > 100, "{}", found.len());
        for (path, command) in found {
            let help =
                command.get_after_help().map(|text| anstream::adapter::strip_str(&text.ansi().to_string()).to_string());
            let help = help.unwrap_or_default();
            let lines: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  toolhost ")).collect();
            assert!(!lines.is_empty(), "`{path}` has no example: {help}");
            for line in lines {
                assert!(line.starts_with(&path), "`{path}`: {line}");
                let words = shlex::split(line).expect("the quotes of an example are closed");
                let words = words.into_iter().take_while(|word| !matches!(word.as_str(), "|" | ">" | "<"));
                let read = whole.clone().try_get_matches_from(std::iter::once("toolhost".to_owned()).chain(words));
                assert!(read.is_ok(), "`{path}`: {line}\n{:?}", read.err().map(|error| error.to_string()));
            }
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let whole = crate::whole_command().expect("the tools fit together");
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for (path, _) in EXAMPLES {
            let name = path.split(' ').next().unwrap_or_default();
            assert_eq!(grouped.iter().filter(|one| **one == name).count(), 1, "{name}");
        }
        for name in grouped.iter().filter(|name| **name != "help") {
            assert!(whole.find_subcommand(name).is_some(), "{name}");
        }
    }
}
