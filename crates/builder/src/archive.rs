//! Packages as zip files. What a zip says of itself is not believed: names are checked, sizes are counted.

use std::collections::BTreeSet;
use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::check::{too_large, unsafe_path};
use crate::files::{Files, problem};
use crate::finding::{Finding, Findings};
use crate::limits::{FILE_BYTES_MAX, Size, ZIP_RATIO_FROM_BYTES, ZIP_RATIO_MAX};

/// The files of a zip. Folders are left out, as they hold nothing.
///
/// # Errors
/// All that is wrong with the zip; then none of its files is taken.
pub fn from_zip(bytes: &[u8]) -> Result<Files, Vec<Finding>> {
    from_zip_up_to(bytes, Size::default())
}

/// The same for a package that may be larger, or only smaller.
///
/// # Errors
/// As [`from_zip`].
pub fn from_zip_up_to(bytes: &[u8], most: Size) -> Result<Files, Vec<Finding>> {
    let mut findings = Findings::default();
    let mut files = Files::new();
    if bytes.len() > most.bytes {
        findings.add(bomb("PACKAGE_TOO_LARGE", "", format!("the zip has more than {} bytes", most.bytes)));
        return Err(findings.finish());
    }
    match open(bytes, most) {
        Ok(mut archive) => Unpack { inflated: 0, most, findings: &mut findings, files: &mut files }.all(&mut archive),
        Err(finding) => findings.add(*finding),
    }
    if findings.is_empty() { Ok(files) } else { Err(findings.finish()) }
}

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

fn open(bytes: &[u8], most: Size) -> Result<Archive<'_>, Box<Finding>> {
    let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| {
        Finding::error("ZIP_UNREADABLE", "", "", format!("this is not a zip we can read: {error}"))
            .expected("a zip with stored or deflated entries")
            .hint("make the zip again")
    })?;
    if archive.len() > most.files {
        return Err(Box::new(bomb("TOO_MANY_FILES", "", format!("the zip has more than {} entries", most.files))));
    }
    if archive.has_duplicate_names() {
        let message = "the zip has two entries of one name, and readers disagree about which of them counts";
        return Err(Box::new(Finding::error("ZIP_DUPLICATE_NAME", "", "", message).hint("make the zip again")));
    }
    Ok(archive)
}

fn bomb(code: &str, file: &str, message: String) -> Finding {
    Finding::error(code, file, "", message).hint("a package is small; this looks like an attack, or like another zip")
}

struct Unpack<'a> {
    /// Bytes inflated so far, also of entries that were refused: the work is what is bounded.
    inflated: usize,
    most: Size,
    findings: &'a mut Findings,
    files: &'a mut Files,
}

impl Unpack<'_> {
    fn all(&mut self, archive: &mut Archive<'_>) {
        // Two names that are different bytes may still be one text.
        let mut names = BTreeSet::new();
        for index in 0..archive.len() {
            match self.entry(archive, index) {
                Ok(Some((path, content))) => {
                    if !names.insert(path.clone()) {
                        let message = format!("the zip has `{path}` twice");
                        self.findings.add(Finding::error("ZIP_DUPLICATE_NAME", &path, "", message));
                    }
                    self.files.insert(path, content);
                }
                Ok(None) => {}
                Err(finding) => {
                    let is_over = matches!(finding.code.as_str(), "PACKAGE_TOO_LARGE" | "ZIP_RATIO");
                    self.findings.add(*finding);
                    if is_over {
                        return;
                    }
                }
            }
        }
    }

    /// Path and content of an entry; none for a folder.
    fn entry(&mut self, archive: &mut Archive<'_>, index: usize) -> Result<Option<(String, Vec<u8>)>, Box<Finding>> {
        let unreadable = |file: &str, error: &dyn std::fmt::Display| {
            Finding::error("ZIP_UNREADABLE", file, "", format!("entry {index} of the zip cannot be read: {error}"))
                .expected("a stored or deflated entry")
        };
        let mut entry = archive.by_index(index).map_err(|error| unreadable("", &error))?;
        let raw = entry.name_raw().to_vec();
        let path = String::from_utf8(raw).map_err(|error| {
            let name = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let message = format!("the name `{}` in the zip is not UTF-8", name.escape_debug());
            let finding = Finding::error("ZIP_UNREADABLE", "", "", message).expected("names in UTF-8").actual(name);
            Box::new(finding.hint("rename the file, and make the zip again"))
        })?;
        // As some programs name what is at the top.
        let path = path.strip_prefix("./").map(str::to_owned).unwrap_or(path);
        if entry.is_symlink() {
            let finding = Finding::error("ZIP_SYMLINK", &path, "", format!("`{}` is a link", path.escape_debug()));
            return Err(Box::new(finding.expected("a file").hint("put the file itself into the zip")));
        }
        let folder = path.strip_suffix('/');
        if let Some(problem) = problem(folder.unwrap_or(&path)) {
            return Err(Box::new(unsafe_path(&path, problem)));
        }
        if folder.is_some() || entry.is_dir() {
            return Ok(None);
        }
        if entry.size() > FILE_BYTES_MAX as u64 {
            return Err(Box::new(too_large(&path, usize::try_from(entry.size()).unwrap_or(usize::MAX))));
        }
        let compressed = entry.compressed_size();
        let mut content = Vec::new();
        let read = entry.by_ref().take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut content);
        self.inflated += content.len();
        read.map_err(|error| unreadable(&path, &error))?;
        if content.len() > FILE_BYTES_MAX {
            return Err(Box::new(too_large(&path, content.len())));
        }
        if self.inflated > self.most.bytes {
            let message = format!("the zip inflates to more than {} bytes", self.most.bytes);
            return Err(Box::new(bomb("PACKAGE_TOO_LARGE", "", message)));
        }
        let size = content.len() as u64;
        if size >= ZIP_RATIO_FROM_BYTES && size / compressed.max(1) > ZIP_RATIO_MAX {
            let message = format!("`{path}` inflates to more than {ZIP_RATIO_MAX} times its size");
            return Err(Box::new(bomb("ZIP_RATIO", &path, message)));
        }
        Ok(Some((path, content)))
    }
}

/// A zip of these files: the same files give the same bytes.
///
/// # Panics
/// Never: writing to memory does not fail, and a zip64 header is written where the size asks for one.
#[must_use]
pub fn to_zip(files: &Files) -> Vec<u8> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        writer.start_file(path.as_str(), options).expect("an entry of memory can be begun");
        writer.write_all(content).expect("memory can be written to");
    }
    writer.finish().expect("memory can be written to").into_inner()
}
