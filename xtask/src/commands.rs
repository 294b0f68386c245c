//! The page of all commands, as the program's own help describes them.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::shell;

/// What stands above the commands.
const HEAD: &str = "# The commands\n\n\
Written by `cargo xtask gen` from the help of `toolhost`. The options of the program itself hold for every command and are listed\n\
once, at the top; `toolhost COMMAND --help` says more about each option.\n";

/// All commands with their options, a heading each.
pub(crate) fn page(program: &Path) -> Result<String> {
    let own = help(program, &[])?;
    let own_options: BTreeSet<String> = own.lines().filter_map(option).collect();
    let mut page = format!("{HEAD}\n## toolhost\n\n```text\n{}\n```\n", own.trim());
    for (command, help) in all(program)? {
        let level = if command.len() == 1 { "##" } else { "###" };
        let text = without_options(&help, &own_options);
        page.push_str(&format!("\n{level} toolhost {}\n\n```text\n{}\n```\n", command.join(" "), text.trim()));
    }
    Ok(page)
}

/// Every command of the program as its words, with its help; each before those below it.
pub(crate) fn all(program: &Path) -> Result<Vec<(Vec<String>, String)>> {
    let own = help(program, &[])?;
    let mut open: Vec<Vec<String>> = subcommands(&own).into_iter().rev().map(|name| vec![name]).collect();
    let mut found = Vec::new();
    while let Some(command) = open.pop() {
        let help = help(program, &command)?;
        let below = subcommands(&help).into_iter().rev();
        open.extend(below.map(|name| command.iter().cloned().chain([name]).collect()));
        found.push((command, help));
    }
    Ok(found)
}

/// The short help of a command. What the person's environment says of Toolhost would be shown in it.
pub(crate) fn help(program: &Path, command: &[String]) -> Result<String> {
    let mut run = Command::new(program);
    run.args(command).arg("-h").env("NO_COLOR", "1");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLHOST_")) {
        run.env_remove(name);
    }
    let text = shell::stdout_of(&mut run)?;
    Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
}

/// The names below `Commands:`, or below the groups that stand in its place, but for `help`.
fn subcommands(help: &str) -> Vec<String> {
    const OTHERS: [&str; 4] = ["Usage:", "Arguments:", "Options", "Example"];
    let mut is_of_commands = false;
    let mut names = Vec::new();
    for line in help.lines() {
        if !line.starts_with(' ') {
            is_of_commands = line.ends_with(':') && !OTHERS.iter().any(|other| line.starts_with(other));
        } else if is_of_commands && !line.starts_with("   ") {
            names.extend(line.split_whitespace().next().filter(|name| *name != "help").map(str::to_owned));
        }
    }
    names
}

/// The long name of the option that a line begins to describe.
fn option(line: &str) -> Option<String> {
    let text = line.trim_start();
    let is_option = text.starts_with("--") || (text.starts_with('-') && text.contains(", --"));
    let name = text.split([' ', ',', '=']).find(|word| word.starts_with("--"))?;
    is_option.then(|| name.to_owned())
}

/// The help without the options that every command has.
fn without_options(help: &str, left_out: &BTreeSet<String>) -> String {
    let (mut kept, mut is_left_out) = (Vec::new(), false);
    for line in help.lines() {
        let begins = option(line);
        // A description goes on below, further to the right than any option begins.
        let goes_on = line.starts_with("          ");
        is_left_out = match begins {
            Some(name) => left_out.contains(&name),
            None => is_left_out && goes_on,
        };
        if !is_left_out {
            kept.push(line);
        }
    }
    // Without any below it, a heading goes, too.
    let is_empty = |n: usize| kept[n].starts_with("Options") && kept.get(n + 1).is_none_or(|next| next.is_empty());
    let text: Vec<&str> = (0..kept.len()).filter(|n| !is_empty(*n)).map(|n| kept[n]).collect();
    let mut text = text.join("\n");
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{option, subcommands, without_options};

    const HELP: &str = "Claim\n\nUsage: x claim [OPTIONS]\n\nCommands:\n  one   First\n        and on\n  help  Print this\n\nOptions:\n      \
                        --root <DIR>  The workspace\n                    in two lines\n  -h, --help        Print help\n\nOptions of every command:\n      --json  JSON\n\nOptions for more:\n      \
                        --lease <S>   How long\n";

    #[test]
    fn the_names_of_commands_and_options_are_found() {
        assert_eq!(subcommands(HELP), ["one"]);
        let groups = "X\n\nUsage: x\n\nBegin:\n  one  1\n\nRecords:\n  two  2\n       and on\n\nOptions:\n  -h\n\nExample:\n  x one\n";
        assert_eq!(subcommands(groups), ["one", "two"]);
        assert_eq!(option("  -h, --help  Print").as_deref(), Some("--help"));
        assert_eq!(option("      --root <DIR>  The --x").as_deref(), Some("--root"));
        assert_eq!(option("Print --help"), None);
    }

    #[test]
    fn what_all_commands_have_is_left_out_with_its_second_line() {
        let left_out = ["--root", "--help", "--json"].map(str::to_owned).into();
        let text = without_options(HELP, &left_out);
        assert!(!text.contains("workspace") && !text.contains("two lines") && !text.contains("Options:\n"), "{text}");
        assert!(!text.contains("every command"), "{text}");
        assert!(text.contains("--lease <S>   How long") && text.contains("and on"), "{text}");
    }
}
