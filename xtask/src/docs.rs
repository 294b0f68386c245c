//! The book as pages: what stands in docs/book, and with it what is kept elsewhere for those who read the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::{shell, tidy};

/// The pages of the book as they are written.
const BOOK: &str = "docs/book";
/// The program that makes pages of Markdown, at the version that was tried.
const MDBOOK: (&str, &str) = ("mdbook", "0.5.2");
/// Where the repository can be read, for what is no page.
const REPOSITORY: &str = "https://github.com/toolhost/toolhost/blob/main";

/// Documents that become pages: where they are kept, and the page.
const KEPT_ELSEWHERE: [(&str, &str, &str); 5] = [
    ("docs/generated/commands.md", "commands.md", "The commands"),
    ("docs/generated/configuration.md", "settings.md", "Every key, option and variable"),
    ("docs/generated/tools.md", "tools.md", "The tools"),
    ("ARCHITECTURE.md", "architecture.md", "Architecture"),
    ("CONTRIBUTING.md", "contributing.md", "Working on Toolhost"),
];
const DECISIONS: &str = "docs/decisions/";
/// Where the pictures of the book are, and which of those that the browser tests make are in it.
const PICTURES: &str = "docs/book/src/pictures/";
const PICTURED: [(&str, &str); 7] = [
    ("inbox-light-1280.png", "inbox.png"),
    ("ask-light-1280.png", "ask.png"),
    ("session-light-1280.png", "session.png"),
    ("board-light-1280.png", "board.png"),
    ("workflow-light-1280.png", "workflow.png"),
    ("audit-light-1280.png", "audit.png"),
    ("inbox-dark-375.png", "inbox-on-a-phone.png"),
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Put the sources together and stop before the pages are made, which needs `mdbook`.
    #[arg(long)]
    sources: bool,
    /// Take the pictures of the workbench that the browser tests have made last into the book, and stop.
    #[arg(long, conflicts_with = "sources")]
    pictures: bool,
}

/// Puts the sources together in the target folder, and makes pages of them. `mdbook` is installed there, if it is not yet.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    if arguments.pictures {
        return take_pictures(root);
    }
    let folder = shell::target(root).join("book");
    let tree = tidy::read(root)?;
    for (path, text) in sources(&tree) {
        let file = folder.join(&path);
        if let Some(above) = file.parent() {
            fs::create_dir_all(above).with_context(|| format!("cannot make {}", above.display()))?;
        }
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    for path in tree.paths().filter(|path| path.starts_with(PICTURES)) {
        let file = folder.join(path.strip_prefix(BOOK).unwrap_or(path).trim_start_matches('/'));
        copy(&root.join(path), &file)?;
    }
    if arguments.sources {
        println!("{}", folder.display());
        return Ok(ExitCode::SUCCESS);
    }
    shell::must_run(Command::new(mdbook(root)?).arg("build").arg(&folder))?;
    println!("{}", folder.join("book/index.html").display());
    Ok(ExitCode::SUCCESS)
}

/// A file at another place, with the folder for it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(above) = to.parent() {
        fs::create_dir_all(above).with_context(|| format!("cannot make {}", above.display()))?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn take_pictures(root: &Path) -> Result<ExitCode> {
    let made = shell::target(root).join("screenshots");
    for (picture, name) in PICTURED {
        copy(&made.join(picture), &root.join(PICTURES).join(name))?;
    }
    println!("{}", root.join(PICTURES).display());
    Ok(ExitCode::SUCCESS)
}

/// The program, from the target folder.
fn mdbook(root: &Path) -> Result<PathBuf> {
    let folder = shell::target(root).join("docs");
    let program = folder.join("bin").join(MDBOOK.0);
    if !program.exists() {
        let (name, version) = MDBOOK;
        let mut cargo = shell::cargo(root);
        cargo.args(["install", "--locked", name, "--version", version, "--no-default-features", "--root"]).arg(&folder);
        shell::must_run(&mut cargo)?;
    }
    Ok(program)
}

/// Every file of the book, by its path in it.
fn sources(tree: &tidy::Tree) -> Vec<(String, String)> {
    let decisions: Vec<&str> = tree.paths().filter(|path| path.starts_with(DECISIONS)).collect();
    let mut all = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.starts_with(BOOK)) {
        let page = path.strip_prefix(BOOK).unwrap_or(path).trim_start_matches('/');
        let mut text = if page.ends_with(".md") { with_links(tree, path, text) } else { text.to_owned() };
        if page == "src/SUMMARY.md" {
            for (_, page, title) in KEPT_ELSEWHERE {
                text.push_str(&format!("- [{title}]({page})\n"));
            }
            text.push_str("- [Decisions](decisions.md)\n");
            let titles = decisions.iter().map(|path| (title(tree, path), page_of(tree, path).unwrap_or_default()));
            text.extend(titles.map(|(title, page)| format!("  - [{title}]({page})\n")));
        }
        all.push((page.to_owned(), text));
    }
    let kept = KEPT_ELSEWHERE.iter().map(|(path, _, _)| *path).chain(decisions.iter().copied());
    for path in kept {
        let (Some(text), Some(page)) = (tree.text(path), page_of(tree, path)) else { continue };
        all.push((format!("src/{page}"), with_links(tree, path, text)));
    }
    all.push(("src/decisions.md".to_owned(), "# Decisions\n\nWhat was chosen, why, and its price.\n".to_owned()));
    all
}

/// The first heading of a document.
fn title(tree: &tidy::Tree, path: &str) -> String {
    let text = tree.text(path).unwrap_or_default();
    let first = text.lines().find_map(|line| line.strip_prefix("# "));
    first.unwrap_or(path).to_owned()
}

/// The page of a file of the repository, from the folder of all pages; none if it has none.
fn page_of(tree: &tidy::Tree, path: &str) -> Option<String> {
    if let Some((_, page, _)) = KEPT_ELSEWHERE.iter().find(|(kept, _, _)| *kept == path) {
        return Some((*page).to_owned());
    }
    let own = path.strip_prefix(BOOK).and_then(|page| page.strip_prefix("/src/"));
    let decision = path.strip_prefix(DECISIONS).map(|name| format!("decisions/{name}"));
    own.map(str::to_owned)
        .or(decision)
        .filter(|_| tree.has(path) && (path.ends_with(".md") || path.starts_with(PICTURES)))
}

/// The text with each link to a page of the book leading there, and each other link into the repository to where that can be
/// read.
fn with_links(tree: &tidy::Tree, path: &str, text: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let own = page_of(tree, path).unwrap_or_default();
    let up = "../".repeat(own.matches('/').count());
    let mut changed = text.to_owned();
    let mut done: Vec<&str> = Vec::new();
    for (_, target) in tidy::links(text) {
        let (file, place) =
            target.split_once('#').map_or((target, String::new()), |(file, at)| (file, format!("#{at}")));
        if done.contains(&target) || file.is_empty() || target.contains(':') {
            continue;
        }
        done.push(target);
        let Some(resolved) = tidy::resolve(folder, file) else { continue };
        let meant = match page_of(tree, &resolved) {
            Some(page) => format!("{up}{page}{place}"),
            None => format!("{REPOSITORY}/{}", resolved.trim_end_matches('/')),
        };
        changed = changed.replace(&format!("]({target})"), &format!("]({meant})"));
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::{page_of, sources, with_links};
    use crate::tidy::Tree;

    fn tree() -> Tree {
        Tree::from([
            ("ARCHITECTURE.md", "# Architecture\n\n[d](docs/decisions/0001-a.md#why) [c](crates/host/src/lib.rs)\n"),
            ("README.md", "# T\n"),
            ("crates/host/src/lib.rs", ""),
            ("docs/decisions/0001-a.md", "# 1: A\n\n[a](../../ARCHITECTURE.md) [b](0001-a.md) [x](https://x.org/y)\n"),
            ("docs/book/book.toml", "[book]\n"),
            ("docs/book/src/SUMMARY.md", "# Summary\n\n- [Fence](fence.md)\n"),
            (
                "docs/book/src/fence.md",
                "# F\n\n[r](../../../README.md) [d](../../decisions/0001-a.md) ![p](pictures/p.png)\n",
            ),
            ("docs/book/src/pictures/p.png", ""),
        ])
    }

    #[test]
    fn links_lead_to_pages_and_else_to_the_repository() {
        let tree = tree();
        let text = |path: &str| with_links(&tree, path, tree.text(path).unwrap_or_default());
        let expected = "# Architecture\n\n[d](decisions/0001-a.md#why) \
                        [c](https://github.com/toolhost/toolhost/blob/main/crates/host/src/lib.rs)\n";
        assert_eq!(text("ARCHITECTURE.md"), expected);
        let expected = "# 1: A\n\n[a](../architecture.md) [b](../decisions/0001-a.md) [x](https://x.org/y)\n";
        assert_eq!(text("docs/decisions/0001-a.md"), expected);
        let expected = "# F\n\n[r](https://github.com/toolhost/toolhost/blob/main/README.md) [d](decisions/0001-a.md) ![p](pictures/p.png)\n";
        assert_eq!(text("docs/book/src/fence.md"), expected);
        assert_eq!(page_of(&tree, "README.md"), None);
    }

    #[test]
    fn the_summary_lists_what_is_kept_elsewhere() {
        let all = sources(&tree());
        let summary = &all.iter().find(|(path, _)| path == "src/SUMMARY.md").expect("a summary").1;
        for line in ["- [Fence](fence.md)", "- [Architecture](architecture.md)", "  - [1: A](decisions/0001-a.md)"] {
            assert!(summary.contains(line), "{summary}");
        }
        let paths: Vec<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
        for path in ["book.toml", "src/fence.md", "src/architecture.md", "src/decisions/0001-a.md", "src/decisions.md"]
        {
            assert!(paths.contains(&path), "{paths:?}");
        }
    }
}
