//! Names that are written almost like another one.

/// Most names that are suggested where one was not found.
pub const SUGGESTIONS_MAX: usize = 3;
/// How alike two names must be to be suggested (Jaro-Winkler, 0 to 1).
pub const SIMILARITY_MIN: f64 = 0.75;
/// Comparing is quadratic; nobody's name is longer: bytes.
pub const NAME_COMPARED_MAX: usize = 200;

/// The names most like `name`, best first: at most [`SUGGESTIONS_MAX`], none that is not like it.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > NAME_COMPARED_MAX {
        return Vec::new();
    }
    let name = name.to_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .filter(|candidate| candidate.len() <= NAME_COMPARED_MAX)
        .map(|candidate| (strsim::jaro_winkler(&name, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= SIMILARITY_MIN)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(SUGGESTIONS_MAX).map(|(_, candidate)| candidate).collect()
}

/// Whether the author of `said` probably meant `meant`: at most two letters differ, and case and the signs between words do not
/// count.
pub fn is_slip_of(said: &str, meant: &str) -> bool {
    let bare = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    said.len() <= NAME_COMPARED_MAX && strsim::damerau_levenshtein(&bare(said), &bare(meant)) <= 2
}

/// `; did you mean …?` after these names, or nothing if there are none.
pub fn did_you_mean(near: &[impl AsRef<str>]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", or_list(near)) }
}

/// Names as one of which another one was meant.
pub fn or_list(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(" or ")
}

/// The names most like this one. Of a path the folder and the ending, which all paths have alike, are not compared.
pub fn nearest_names<'a, T: AsRef<str>>(name: &str, names: &'a [T]) -> Vec<&'a str> {
    // A file that is named without its folder is meant with it.
    let is_path = |name: &str| name.contains('/') || name.contains('.');
    let comparable = || names.iter().map(AsRef::as_ref).filter(|known| is_path(known) == is_path(name));
    let mut stems: Vec<&str> = comparable().map(stem).collect();
    stems.sort_unstable();
    stems.dedup();
    let near = nearest(stem(name), stems.into_iter());
    near.iter().flat_map(|near| comparable().filter(|known| stem(known) == *near)).take(SUGGESTIONS_MAX).collect()
}

fn stem(name: &str) -> &str {
    let file = name.rsplit_once('/').map_or(name, |(_, file)| file);
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}
