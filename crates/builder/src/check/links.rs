//! Links in the Markdown of a workflow or a step that lead to a file of the package.

use pulldown_cmark::{CowStr, Event, Parser, Tag};
use toolhost_contract::nearest_names;

use super::COMPARED_MAX;
use crate::assets;
use crate::document::Document;
use crate::files::{folder_of, problem};
use crate::finding::{Finding, Findings, quoted};
use crate::package::Package;

/// A link to a file that is not there. What it names is looked for beside the document and at the root of the package; a link
/// to an asset is a mention of it, and has its finding there.
pub(super) fn check(package: &Package, file: &str, document: &Document, findings: &mut Findings) {
    let body = document.body();
    // Counted along the way: from the start for each would be quadratic.
    let (mut line, mut counted) = (document.body_line(), 0);
    for (at, target) in targets(body) {
        line += body[counted..at].matches('\n').count();
        counted = at;
        if !is_file_of_ours(&target) || is_there(package, file, &target) {
            continue;
        }
        let message = format!("a link leads to `{}`, and there is no such file", quoted(&target));
        let finding = Finding::warning("LINK_BROKEN", file, "", message).actual(&*target);
        let paths: Vec<&str> = package.files().keys().map(String::as_str).take(COMPARED_MAX).collect();
        let hint = match nearest_names(&target, &paths).first() {
            Some(meant) => format!("link to `{meant}` if that is meant; else add the file, or take the link out"),
            None => "add the file, or take the link out".to_owned(),
        };
        let before = &body[body[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        let finding = finding.expected("a file of the package").hint(hint);
        findings.add(finding.at(line, before.chars().count() + 1));
    }
}

/// Where links and images of a Markdown text begin, in order, and what they lead to. What stands in code is no link.
fn targets(text: &str) -> impl Iterator<Item = (usize, CowStr<'_>)> {
    Parser::new(text).into_offset_iter().filter_map(|(event, place)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some((place.start, dest_url)),
        _ => None,
    })
}

/// Whether a target is a file beside the document, and no address, no place within the document and nothing that a variable
/// names. An address would percent-encode what is no ASCII; such a target is left alone.
fn is_file_of_ours(target: &str) -> bool {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_outside = path.starts_with('/') || path.contains([':', '{', '%', '\\', '*']);
    // A name without an ending may be a place of another system; among the assets it is meant as one of them.
    let is_file = name.contains('.') || (path.starts_with(assets::FOLDER) && !name.is_empty());
    !path.is_empty() && !is_outside && is_file && name != ".." && assets::mentions(path).is_empty()
}

fn is_there(package: &Package, file: &str, target: &str) -> bool {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let from = [folder_of(file), ""].map(|folder| joined(folder, path));
    from.into_iter().flatten().any(|path| problem(&path).is_some() || package.may_have_file(&path))
}

/// The path from the root of the package; none where it leads out of it.
fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{is_file_of_ours, joined, targets};

    #[test]
    fn links_of_a_line() {
        let text = "[a](b.md) [c](<d e.md>) `[no](x.md)` ![i](p/q.png \"T\") [open](f.md\n\n```\n[no](y.md)\n```\n\n[r]\n\n[r]: z.md";
        let found: Vec<(usize, String)> = targets(text).map(|(at, target)| (at, target.to_string())).collect();
        let expected = [(0, "b.md"), (10, "d e.md"), (37, "p/q.png"), (88, "z.md")];
        assert_eq!(found, expected.map(|(at, target)| (at, target.to_owned())));
        for no in
            ["https://x.org/a.md", "#place", "mailto:a@b.c", "{root}/a.md", "/a.md", "folder/", "assets/a.md", ".."]
        {
            assert!(!is_file_of_ours(no), "{no}");
        }
        assert!(is_file_of_ours("../steps/a.md#x") && is_file_of_ours("assets/tone") && !is_file_of_ours("assets/"));
        assert_eq!(joined("steps/", "../workflow.md").as_deref(), Some("workflow.md"));
        assert_eq!(joined("", "../x.md"), None);
    }
}
