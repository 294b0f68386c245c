//! How large a package and its parts may be.

/// Files of one package, and entries of one zip.
pub const FILES_MAX: usize = 20_000;
/// Bytes of one file. A larger one is kept, but not parsed.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of all files together, and all bytes that one zip may inflate to.
pub const PACKAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Nodes of one graph.
pub const NODES_MAX: usize = 10_000;
/// Edges of one graph.
pub const EDGES_MAX: usize = 100_000;
/// Findings listed; the rest are counted in a last one.
pub const FINDINGS_MAX: usize = 1_000;
/// Objects and lists inside each other, in JSON and in YAML.
pub const DEPTH_MAX: usize = 128;
/// What the YAML of one front matter may come to once its aliases are filled in: bytes of its texts, and some per node.
pub const YAML_EXPANDED_MAX: usize = 8 * 1024 * 1024;
/// How often larger than its compressed form an entry of a zip may be.
pub const ZIP_RATIO_MAX: u64 = 200;
/// Entries smaller than this are small enough, however well they were compressed.
pub const ZIP_RATIO_FROM_BYTES: u64 = 1024 * 1024;
/// Characters of a path.
pub const PATH_CHARS_MAX: usize = 512;
/// Longest value that a finding quotes, in characters.
pub const QUOTE_CHARS_MAX: usize = 80;
/// Operations of one set of changes. The published schema says the same.
pub const OPERATIONS_MAX: usize = 1_000;
/// Bytes of one set of changes, as JSON.
pub const CHANGE_SET_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of the text of one diff.
pub const DIFF_BYTES_MAX: usize = 256 * 1024;
/// Hidden characters told per text; the rest are counted.
pub const HIDDEN_MAX: usize = 20;

/// Fields, or items of a list, in front matter that are merged one by one: comparing them is quadratic. Longer ones are merged
/// by line.
pub(crate) const MERGED_FIELDS_MAX: usize = 1_000;

/// Texts that look like secrets and are told one by one, per object that a set changes; the rest are counted.
pub const SECRETS_TOLD_MAX: usize = 20;

/// Longest id of a workflow or an agent, bytes.
pub const ID_BYTES_MAX: usize = 200;

/// How large a package may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Files of it.
    pub files: usize,
    /// Bytes of all its files.
    pub bytes: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { files: FILES_MAX, bytes: PACKAGE_BYTES_MAX }
    }
}
