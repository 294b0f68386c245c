//! Texts as terms: word stems for scripts with spaces, pairs of characters for those without.

use std::collections::BTreeSet;

use rust_stemmers::{Algorithm, Stemmer};

/// Terms kept of one record; what comes after is not found.
pub(crate) const TERMS_MAX: usize = 1000;
/// Characters of a word that count.
const WORD_CHARS_MAX: usize = 40;
/// Words of this length or longer may be misspelt.
pub(crate) const MISSPELT_CHARS_MIN: usize = 4;

/// The terms of a text, sorted, each once.
pub(crate) fn terms(text: &str) -> BTreeSet<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut found = BTreeSet::new();
    for part in parts(text) {
        match part {
            Part::Word(word) => {
                found.insert(stemmer.stem(&word).into_owned());
            }
            Part::Run(run) => {
                found.extend(run.iter().map(char::to_string));
                found.extend(run.windows(2).map(|pair| pair.iter().collect()));
            }
        }
        if found.len() >= TERMS_MAX {
            break;
        }
    }
    found
}

/// The terms that a question asks for, and the word each was: a longer run of characters asks for its pairs.
pub(crate) fn questions(text: &str) -> Vec<(String, String)> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut asked: Vec<(String, String)> = Vec::new();
    for part in parts(text) {
        match part {
            Part::Word(word) => asked.push((stemmer.stem(&word).into_owned(), word)),
            Part::Run(run) if run.len() == 1 => asked.push((run[0].to_string(), String::new())),
            Part::Run(run) => {
                asked.extend(run.windows(2).map(|pair| (pair.iter().collect(), String::new())));
            }
        }
    }
    asked.sort();
    asked.dedup_by(|a, b| a.0 == b.0);
    asked
}

/// A term, and all that it becomes when one character is left out. Two words that differ by one letter too many, too few,
/// wrong or swapped have one of these in common.
pub(crate) fn nears(term: &str) -> BTreeSet<String> {
    let letters: Vec<char> = term.chars().collect();
    let mut nears = BTreeSet::from([term.to_owned()]);
    if letters.len() >= MISSPELT_CHARS_MIN {
        for leave_out in 0..letters.len() {
            nears.insert(letters.iter().enumerate().filter(|(n, _)| *n != leave_out).map(|(_, c)| c).collect());
        }
    }
    nears
}

enum Part {
    Word(String),
    /// Characters of a script without spaces, one after the other.
    Run(Vec<char>),
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut word = String::new();
    let mut run = Vec::new();
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() && !is_unspaced(c) {
            word.extend(c.to_lowercase());
        } else if !word.is_empty() {
            let whole = std::mem::take(&mut word);
            parts.push(Part::Word(whole.chars().take(WORD_CHARS_MAX).collect()));
        }
        if is_unspaced(c) {
            run.push(c);
        } else if !run.is_empty() {
            parts.push(Part::Run(std::mem::take(&mut run)));
        }
    }
    parts
}

/// Chinese, Japanese, Thai and others write without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
        && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::{nears, questions, terms};

    #[test]
    fn a_stem_stands_for_its_forms() {
        assert_eq!(terms("Migrating migrations migrated"), terms("migrate"));
        assert_eq!(terms("snake_case-and.dots"), terms("snake case and dots"));
    }

    #[test]
    fn chinese_is_found_by_pairs() {
        let text = terms("使用数据库连接池");
        assert!(questions("数据库").iter().all(|(term, _)| text.contains(term)));
        assert!(questions("池").iter().all(|(term, _)| text.contains(term)));
        assert!(!questions("据数").iter().all(|(term, _)| text.contains(term)));
    }

    #[test]
    fn one_wrong_letter_leaves_something_in_common() {
        for misspelt in ["databse", "datbaase", "databaze", "databbase"] {
            assert!(nears("database").intersection(&nears(misspelt)).next().is_some(), "{misspelt}");
        }
        assert!(nears("database").intersection(&nears("basement")).next().is_none());
    }
}
