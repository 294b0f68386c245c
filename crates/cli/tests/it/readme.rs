//! Every command that README.md and the book show is there, with the options they show.

use toolhost_testkit::TempWorkspace;

use crate::room::program;

/// A line of a shell as words; its comment is left out.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The lines of the shell's blocks, those that go on in the next line in one; alternatives (`session pause|cancel`) as two.
pub(crate) fn shell_lines(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut found = Vec::new();
    for line in blocks.flat_map(str::lines).filter(|line| !line.is_empty()) {
        let word =
            line.split(' ').take_while(|word| *word != "#").find(|word| word.contains('|') && !word.contains('\''));
        match word {
            None => found.push(line.to_owned()),
            Some(word) => found.extend(word.split('|').map(|one| line.replacen(word, one, 1))),
        }
    }
    found
}

/// The commands of fenced blocks.
fn commands(text: &str) -> Vec<Vec<String>> {
    shell_lines(text).iter().filter_map(|line| line.strip_prefix("toolhost ").map(words)).collect()
}

macro_rules! pages {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../docs/book/src/", $name)))),*]
    };
}

const SUMMARY: &str = include_str!("../../../../docs/book/src/SUMMARY.md");
pub(crate) const README: (&str, &str) = ("README.md", include_str!("../../../../README.md"));
pub(crate) const PAGES: [(&str, &str); 22] = pages![
    "introduction.md" "connect.md" "run.md" "scripts.md" "embed.md" "bash.md" "fence.md" "policy.md" "people.md" "audit.md" "undo.md"
    "command-line.md" "remotes.md" "records.md" "imports.md" "packages.md" "deploy.md" "configuration.md" "server.md" "database.md"
    "workbench.md" "glossary.md"
];

#[test]
fn the_book_has_each_page_that_its_summary_lists() {
    let listed: Vec<&str> = SUMMARY.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    let mut pages = PAGES.map(|(name, _)| name).to_vec();
    pages.sort_unstable();
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, pages);
}

#[test]
fn every_command_that_the_readme_and_the_book_show_is_there_with_its_options() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace).bare();
    let mut count = 0;
    for (name, text) in [README].into_iter().chain(PAGES) {
        for command in commands(text) {
            // Help is printed where all before it is understood, and nothing runs.
            let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
            let ran = program.run(&arguments);
            assert!(ran.code == Some(0) && ran.stdout.contains("Usage: "), "{name}: {command:?}: {ran:?}");
            count += 1;
        }
    }
    assert!(count > 90, "{count}");
}
