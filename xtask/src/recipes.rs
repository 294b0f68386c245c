//! `cargo xtask recipes`: follows what CONTRIBUTING.md says of a new tool and of a new kind of record, in a copy of the
//! repository, which must then still be built without a warning.
//!
//! It adds only the lines listed here; if the build needs another, the recipe is wrong.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::scratch::Scratch;
use crate::{shell, tidy};

/// A file that is added, and the lines that name it: where each goes, and behind which line.
struct Recipe {
    what: &'static str,
    file: &'static str,
    text: &'static str,
    lines: &'static [Line],
}

struct Line {
    file: &'static str,
    after: &'static str,
    line: &'static str,
}

/// The last row of the table of kinds, and the one that comes behind it.
const LAST_KIND: &str = "            Pattern     \"pattern\"     \"PAT\"   crate::memory::Pattern,        None,                                  Group::Memory;\n";
const KIND: &str = "            Note        \"note\"        \"NOTE\"  crate::note::Note,             Some(&crate::note::NOTE),              Group::None;\n";

const RECIPES: [Recipe; 2] = [
    Recipe {
        what: "a tool",
        file: "crates/tools/src/file/count.rs",
        text: include_str!("../recipes/count.rs.txt"),
        lines: &[
            Line {
                file: "crates/tools/src/file/mod.rs",
                after: "//! Files of the workspace.\n\n",
                line: "pub(crate) mod count;\n",
            },
            Line {
                file: "crates/tools/src/lib.rs",
                after: "        Box::new(file::delete::Delete),\n",
                line: "        Box::new(file::count::Count),\n",
            },
        ],
    },
    Recipe {
        what: "a kind of record",
        file: "crates/records/src/note.rs",
        text: include_str!("../recipes/note.rs.txt"),
        lines: &[
            Line { file: "crates/records/src/lib.rs", after: "mod memory;\n", line: "mod note;\n" },
            Line { file: "crates/records/src/table.rs", after: LAST_KIND, line: KIND },
        ],
    },
];
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let scratch = Scratch::new(shell::target(root).join("recipes"));
    scratch.mirror(root, &tidy::read(root)?)?;
    for recipe in &RECIPES {
        println!("{}", shell::bold(&format!("== {}: {}", recipe.what, recipe.file)));
        follow(recipe, &scratch.tree())?;
    }
    // With the target folder of everybody, so that third-party crates are not built again.
    let mut clippy = shell::cargo(&scratch.tree());
    clippy.env("CARGO_TARGET_DIR", shell::target(root));
    // Without tests: what they say of all tools and all kinds is not checked by building them.
    clippy.args(["clippy", "--workspace", "--locked", "--quiet", "--", "-D", "warnings"]);
    shell::must_run(&mut clippy)?;
    println!("recipes: a tool is a file and the lines that name it, a kind of record a file and a row");
    Ok(ExitCode::SUCCESS)
}

fn follow(recipe: &Recipe, tree: &Path) -> Result<()> {
    fs::write(tree.join(recipe.file), recipe.text).with_context(|| recipe.file.to_owned())?;
    for line in recipe.lines {
        let path = tree.join(line.file);
        let text = fs::read_to_string(&path).with_context(|| line.file.to_owned())?;
        fs::write(&path, added(&text, line).with_context(|| line.file.to_owned())?)?;
    }
    Ok(())
}

/// The text with the line behind the one that it follows.
fn added(text: &str, line: &Line) -> Result<String> {
    ensure!(text.matches(line.after).count() == 1, "expected `{}` exactly once", line.after);
    Ok(text.replacen(line.after, &format!("{}{}", line.after, line.line), 1))
}
