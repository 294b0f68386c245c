//! What is inside files: texts that are no texts, assets that are not what their name says, and what the manifest says of
//! all bytes together.

use sha2::{Digest, Sha256};

use super::Scope;
use super::locate::position;
use super::manifest::asset_missing;
use crate::assets;
use crate::files::Files;
use crate::finding::{Finding, Findings, Severity};
use crate::hidden;
use crate::json;
use crate::limits::FILE_BYTES_MAX;
use crate::package::{MANIFEST, Package, sha256};
use crate::spans::Tree;
use crate::yaml;

pub(super) fn check(package: &Package, scope: Scope<'_>, findings: &mut Findings) {
    for (path, bytes) in package.files().iter().filter(|(path, bytes)| scope.has(path) && bytes.len() <= FILE_BYTES_MAX)
    {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        if let Some(at) = text.find('\0').filter(|_| assets::is_text(path) && !path.ends_with(".json")) {
            let (line, column) = position(text, at);
            let finding = Finding::error("NUL_CHARACTER", path, "", format!("`{path}` contains a NUL character"));
            let finding = finding.expected("text").actual("U+0000").hint("take the character out");
            findings.add(finding.at(line, column));
            continue;
        }
        check_hidden(path, text, findings);
        if path.starts_with(assets::FOLDER) {
            if let Some(finding) = syntax(path, text) {
                findings.add(finding);
            }
            if assets::is_text(path) {
                check_asset_mentions(package, path, text, findings);
            }
        }
    }
    if matches!(scope, Scope::All) && !package.is_part() {
        check_integrity(package, findings);
    }
}

/// What a person does not see, or sees otherwise for it.
fn check_hidden(path: &str, text: &str, findings: &mut Findings) {
    if !path.ends_with(".json") && !assets::is_text(path) {
        return;
    }
    // JSON may write such a character with an escape.
    let value = path.ends_with(".json").then(|| json::parse(path, text.as_bytes()).ok()).flatten();
    let (found, count) = value.as_ref().map_or_else(|| hidden::find_in(text), hidden::find);
    let more = count - found.len();
    for (index, one) in found.into_iter().enumerate() {
        let more = if index == 0 && more > 0 { format!("; {more} more are not listed") } else { String::new() };
        let message = format!("`{path}` contains {}{more}", one.name());
        let finding = Finding::warning("HIDDEN_CHARACTERS", path, one.pointer.clone(), message);
        let finding = finding.expected("text that shows all it says").actual(one.name()).hint("take it out");
        findings.add(if value.is_none() { finding.at(one.line, one.column) } else { finding });
    }
}

/// What an asset names of the others is there. An asset may be about anything, so it may well be an example.
fn check_asset_mentions(package: &Package, path: &str, text: &str, findings: &mut Findings) {
    for mention in assets::mentions(text).into_iter().filter(|mention| !package.has_asset(&mention.path)) {
        let finding = asset_missing(package, path, String::new(), &mention.path);
        let finding = Finding { severity: Severity::Warning, ..finding };
        findings.add(finding.at(mention.line + 1, mention.column));
    }
}

/// What keeps an asset from being the JSON or the YAML that its name says it is.
fn syntax(path: &str, text: &str) -> Option<Finding> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if path.ends_with(".json") {
        let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) else { return doubled_json(path, text) };
        // Deeper than the parser goes is no error of the text.
        if error.to_string().contains("recursion limit") {
            return None;
        }
        let message = format!("the asset `{path}` is not JSON: {error}");
        let finding = Finding::error("JSON_SYNTAX", path, "", message).expected("valid JSON");
        return Some(
            finding.at(error.line(), error.column()).hint("fix the file at this line, or give it another ending"),
        );
    }
    if path.ends_with(".yaml") || path.ends_with(".yml") {
        let problem = match yaml::syntax(text) {
            Err(problem) => problem,
            Ok(()) => return doubled(path, text),
        };
        let message = format!("the asset `{path}` is not YAML: {}", problem.message);
        let finding = Finding::error("YAML_SYNTAX", path, "", message).expected("valid YAML");
        let finding = finding.at(problem.line, problem.column);
        return Some(finding.hint("fix the file at this line, or give it another ending"));
    }
    None
}

/// A name that stands twice in one object: readers of JSON take one of the values, and not all the same.
fn doubled_json(path: &str, text: &str) -> Option<Finding> {
    let problem = json::parse(path, text.as_bytes()).err().filter(|problem| problem.code == "JSON_DUPLICATE_KEY")?;
    Some(Finding { severity: Severity::Warning, ..*problem }.hint("take one of them out"))
}

/// A name that stands twice in one object: readers of YAML take one of the values, and not all the same.
fn doubled(path: &str, text: &str) -> Option<Finding> {
    let problem = yaml::parse(text).err().filter(|problem| problem.code == "YAML_DUPLICATE_KEY")?;
    let message = format!("in the asset `{path}` {}", problem.message);
    let finding = Finding::warning("YAML_DUPLICATE_KEY", path, "", message).expected("each name once");
    Some(finding.at(problem.line, problem.column).hint("take one of them out"))
}

fn check_integrity(package: &Package, findings: &mut Findings) {
    let said = package.manifest().and_then(|manifest| manifest.pointer(INTEGRITY)?.as_str());
    // What is no sum at all has its own finding.
    let Some(said) = said.filter(|said| said.len() == 64) else { return };
    let is = integrity(package.files());
    if !said.eq_ignore_ascii_case(&is) {
        let message = "the files are not those that `integrity.sha256` was computed from".to_owned();
        let finding = Finding::error("INTEGRITY_MISMATCH", MANIFEST, INTEGRITY, message).expected(is).actual(said);
        findings.add(finding.hint(
            "get the package again; if you changed it yourself, write the expected value, or take `integrity` out",
        ));
    }
}

/// Writes into the manifest, where it has `integrity.sha256`, what is true of these files.
pub fn seal(files: &mut Files) {
    let Some(text) = files.get(MANIFEST).and_then(|bytes| std::str::from_utf8(bytes).ok()) else { return };
    let place = Tree::of(text).and_then(|tree| Some(tree.field("integrity")?.field("sha256")?.span.clone()));
    let Some((said, place)) = place.and_then(|place| Some((text.get(place.clone())?.trim_matches('"'), place))) else {
        return;
    };
    let is = integrity(files);
    if !said.eq_ignore_ascii_case(&is) {
        let sealed = format!("{}\"{is}\"{}", &text[..place.start], &text[place.end..]);
        files.insert(MANIFEST.to_owned(), sealed.into_bytes());
    }
}

/// Where the manifest says it.
const INTEGRITY: &str = "/integrity/sha256";

/// The value of `integrity.sha256`: the SHA-256 of a list of all files but the manifest, in the order of their paths, each
/// with its own SHA-256, as `sha256sum` prints them (`<hash>  <path>` and a line feed).
fn integrity(files: &Files) -> String {
    let mut all = Sha256::new();
    for (path, bytes) in files.iter().filter(|(path, _)| *path != MANIFEST) {
        all.update(format!("{}  {path}\n", sha256(bytes)));
    }
    hex::encode(all.finalize())
}
