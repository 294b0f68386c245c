//! Finding what was learnt: by words, misspelt ones too, ranked by how well they fit and how new they are.
//!
//! The hard problem is to stay fast where one word stands in half of all records. Of each term only the newest
//! [`PLACES_MAX`] places are looked at; a record that a rarer term brought up is then asked for the other terms.

use std::collections::{BTreeMap, BTreeSet};

use super::ProjectRecords;
use super::error::Result;
use super::kind::{Kind, RecordId};
use super::read::{Query, select};
use super::row::{Stored, columns, stored};
use super::terms::{MISSPELT_CHARS_MIN, TERMS_MAX, nears, questions, terms};
use toolhost_store::db::{Tx, places, sql, sql_of};

/// Places of a word of the question that are looked at, the newest ones.
const PLACES_MAX: i64 = 250;
/// As [`PLACES_MAX`], of each other term it may stand for.
const PLACES_OF_OTHERS_MAX: i64 = 40;
/// Terms of the dictionary that one word of a question may stand for.
const MEANINGS_MAX: i64 = 12;
/// Terms that all words of a question together may stand for.
const MEANINGS_TOTAL_MAX: usize = 100;
/// How well a longer word fits, where the word itself fits with 1.
const FIT_LONGER: f32 = 0.7;
/// As [`FIT_LONGER`], for a word that is a letter away.
const FIT_MISSPELT: f32 = 0.5;
/// Words of a question.
const QUESTIONS_MAX: usize = 24;
/// Records whose content is read and ranked, for each one that is answered.
const RANKED_PER_ANSWER: usize = 2;
/// Rows written at once.
const ROWS_BATCH: usize = 400;
/// After so long a record counts half as new.
const RECENCY_HALF_MS: f64 = 30.0 * 24.0 * 3600.0 * 1000.0;
/// How much being new can add to fitting well.
const RECENCY_WEIGHT: f64 = 0.25;

/// What is looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    pub scope: SearchScope,
    /// None: all of [`Kind::memory`].
    pub kinds: Vec<Kind>,
    /// None: the newest ones.
    pub keywords: Vec<String>,
    pub limit: usize,
}

/// Where it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchScope {
    /// In all the project has, all iterations.
    Project,
    /// In what was kept in this iteration.
    Iteration(i64),
    /// As `Project`, but what is of this iteration, critical or still open comes earlier.
    Smart(i64),
}

/// A record that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub record: Stored,
    /// 0 where nothing was asked for.
    pub score: f64,
}

/// How well one term of the dictionary stands for a word of the question.
struct Meaning {
    question: usize,
    fit: f32,
}

type Scores = BTreeMap<RecordId, Candidate>;

struct Candidate {
    at_ms: i64,
    /// For each word of the question, the best fit. In place: there are thousands of candidates.
    fits: [f32; QUESTIONS_MAX],
}

impl ProjectRecords {
    /// The best ones first; among equals, the newest.
    pub async fn search(&self, search: &Search) -> Result<Vec<Found>> {
        let memory = Kind::memory();
        let kinds = if search.kinds.is_empty() { &memory } else { &search.kinds };
        let mut asked = questions(&search.keywords.join(" "));
        asked.truncate(QUESTIONS_MAX);
        let mut tx = self.db.snapshot().await?;
        if asked.is_empty() {
            return if search.keywords.iter().all(|word| word.trim().is_empty()) {
                self.newest(&mut tx, kinds, search).await
            } else {
                Ok(Vec::new())
            };
        }
        let meanings = self.meanings(&mut tx, &asked).await?;
        let mut candidates = Scores::new();
        let mut places_of = vec![0_usize; asked.len()];
        for (term, found) in self.places(&mut tx, &meanings, kinds, search.scope).await? {
            let means = meanings.get(&term).map_or(&[][..], Vec::as_slice);
            for meaning in means {
                places_of[meaning.question] = places_of[meaning.question].max(found.len());
            }
            for (id, at_ms) in found {
                let entry = candidates.entry(id);
                let candidate = entry.or_insert_with(|| Candidate { at_ms, fits: [0.0; QUESTIONS_MAX] });
                for meaning in means {
                    let fit = &mut candidate.fits[meaning.question];
                    *fit = fit.max(meaning.fit);
                }
            }
        }
        // A rare word tells more than one that stands everywhere.
        let weights: Vec<f64> = places_of.iter().map(|count| 1.0 + 8.0 / (1.0 + *count as f64).ln_1p()).collect();
        let now = self.now_ms();
        let keep = search.limit.saturating_mul(RANKED_PER_ANSWER).max(1);
        let best = rank(&candidates, &weights, now, keep);
        self.complete(&mut tx, &mut candidates, &best, &meanings, asked.len()).await?;
        let best = rank(&candidates, &weights, now, keep);
        self.read_ranked(&mut tx, best, search).await
    }

    /// Which terms of the dictionary each word may mean: itself, a longer one, one that is a letter away.
    async fn meanings(&self, tx: &mut Tx, asked: &[(String, String)]) -> Result<BTreeMap<String, Vec<Meaning>>> {
        let mut meanings: BTreeMap<String, Vec<Meaning>> = BTreeMap::new();
        for (question, (term, _)) in asked.iter().enumerate() {
            meanings.entry(term.clone()).or_default().push(Meaning { question, fit: 1.0 });
        }
        let found = self.relatives(tx, asked).await?;
        for (question, term, fit) in found {
            let all = meanings.len() >= MEANINGS_TOTAL_MAX && !meanings.contains_key(&term);
            if !all && term != asked[question].0 {
                meanings.entry(term).or_default().push(Meaning { question, fit });
            }
        }
        Ok(meanings)
    }

    /// Terms that begin with a word of the question, and those that are one letter away from it or from its stem: one
    /// question to the server, whose way there and back costs more than the answer.
    async fn relatives(&self, tx: &mut Tx, asked: &[(String, String)]) -> Result<Vec<(usize, String, f32)>> {
        let long = |min: usize| move |(_, (_, word)): &(usize, &(String, String))| word.chars().count() >= min;
        let begun: Vec<_> = asked.iter().enumerate().filter(long(MISSPELT_CHARS_MIN - 1)).collect();
        let misspelt: Vec<_> = asked.iter().enumerate().filter(long(MISSPELT_CHARS_MIN)).collect();
        let wanted: BTreeSet<String> =
            misspelt.iter().flat_map(|(_, (term, word))| nears(term).into_iter().chain(nears(word))).collect();
        let mut bound: Vec<toolhost_store::db::Argument> = vec![self.who.project_id.into()];
        let mut parts = Vec::new();
        for (_, (_, word)) in &begun {
            let from = bound.len() + 1;
            // The last character there is, so that all words that begin alike are before it.
            bound.extend([word.into(), format!("{word}\u{10ffff}").into()]);
            parts.push(format!(
                "SELECT * FROM (SELECT ${from} AS word, term FROM memory_near WHERE project_id = $1
                 AND near >= ${from} AND near < ${} AND near = term ORDER BY near LIMIT {MEANINGS_MAX}) w{from}",
                from + 1
            ));
        }
        if !wanted.is_empty() {
            parts.push(format!(
                "SELECT * FROM (SELECT DISTINCT '' AS word, term FROM memory_near WHERE project_id = $1
                 AND near IN ({}) ORDER BY term LIMIT {}) nears",
                places(bound.len() + 1, wanted.len()),
                MEANINGS_MAX * 8
            ));
            bound.extend(wanted.iter().map(Into::into));
        }
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = sql_of(parts.join(" UNION ALL "));
        for value in bound {
            query = query.bind(value);
        }
        let (mut longer, mut near) = (Vec::new(), Vec::new());
        for row in query.all(tx).await? {
            let (word, term): (String, String) = (row.get("word")?, row.get("term")?);
            match begun.iter().find(|(_, (_, one))| *one == word) {
                Some((question, _)) => longer.push((*question, term, FIT_LONGER)),
                None => near.push(term),
            }
        }
        longer.extend(one_letter_away(&misspelt, near));
        Ok(longer)
    }

    /// Where each term stands: the newest places.
    async fn places(
        &self,
        tx: &mut Tx,
        meanings: &BTreeMap<String, Vec<Meaning>>,
        kinds: &[Kind],
        scope: SearchScope,
    ) -> Result<BTreeMap<String, Vec<(RecordId, i64)>>> {
        let mut narrowed = String::new();
        let mut bound: Vec<toolhost_store::db::Argument> = vec![self.who.project_id.into()];
        if kinds.len() < Kind::memory().len() {
            narrowed.push_str(&format!(" AND kind IN ({})", places(bound.len() + 1, kinds.len())));
            bound.extend(kinds.iter().map(|kind| kind.as_str().into()));
        }
        if let SearchScope::Iteration(iteration) = scope {
            bound.push(iteration.into());
            narrowed.push_str(&format!(" AND iteration = ${}", bound.len()));
        }
        let (asked, others): (Vec<&String>, Vec<&String>) =
            meanings.keys().partition(|term| meanings[*term].iter().any(|meaning| meaning.fit >= 1.0));
        let mut parts = Vec::new();
        for (terms, limit) in [(asked, PLACES_MAX), (others, PLACES_OF_OTHERS_MAX)] {
            if terms.is_empty() {
                continue;
            }
            let values: Vec<String> = (0..terms.len()).map(|n| format!("(${})", bound.len() + 1 + n)).collect();
            bound.extend(terms.into_iter().map(Into::into));
            // One row a term: a list as text is read much faster than as many rows. And one plan for all terms: a server
            // plans a query of many parts longer than it runs.
            parts.push(format!(
                "SELECT w.column1 AS term, (
                     SELECT string_agg(kind || ' ' || CAST(number AS TEXT) || ' ' || CAST(at_ms AS TEXT), ',')
                     FROM (SELECT kind, number, at_ms FROM memory_term
                         WHERE project_id = $1 AND term = w.column1{narrowed}
                         ORDER BY at_ms DESC, kind DESC, number DESC LIMIT {limit}) newest) AS list
                 FROM (VALUES {}) AS w",
                values.join(", ")
            ));
        }
        let mut query = sql_of(parts.join(" UNION ALL "));
        for value in bound {
            query = query.bind(value);
        }
        let mut found: BTreeMap<String, Vec<(RecordId, i64)>> = BTreeMap::new();
        for row in query.all(tx).await? {
            let list: Option<String> = row.get("list")?;
            let places = list.as_deref().unwrap_or_default().split(',').filter_map(|place| {
                let mut parts = place.split(' ');
                let kind = Kind::parse(parts.next()?)?;
                Some((kind.id(parts.next()?.parse().ok()?), parts.next()?.parse().ok()?))
            });
            found.insert(row.get("term")?, places.collect());
        }
        Ok(found)
    }

    /// Asks the best candidates for the terms whose newest places they are not among.
    async fn complete(
        &self,
        tx: &mut Tx,
        candidates: &mut Scores,
        best: &[(RecordId, f64)],
        meanings: &BTreeMap<String, Vec<Meaning>>,
        questions: usize,
    ) -> Result<()> {
        let short =
            |id: &RecordId| candidates.get(id).is_some_and(|candidate| candidate.fits[..questions].contains(&0.0));
        let asked: Vec<RecordId> = best.iter().map(|(id, _)| *id).filter(short).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let text = format!(
            "SELECT t.kind AS kind, t.number AS number, t.term AS term FROM (VALUES {}) AS wanted
             CROSS JOIN memory_term t WHERE t.project_id = $1 AND t.kind = wanted.column1
                 AND t.number = wanted.column2 AND t.term IN ({})",
            pairs(2, asked.len()),
            places(2 + 2 * asked.len(), meanings.len())
        );
        let mut query = sql_of(text).bind(self.who.project_id);
        for id in &asked {
            query = query.bind(id.kind.as_str()).bind(id.number);
        }
        for term in meanings.keys() {
            query = query.bind(term);
        }
        for row in query.all(tx).await? {
            let (kind, term): (String, String) = (row.get("kind")?, row.get("term")?);
            let Some(kind) = Kind::parse(&kind) else { continue };
            let Some(candidate) = candidates.get_mut(&kind.id(row.get("number")?)) else { continue };
            for meaning in meanings.get(&term).into_iter().flatten() {
                let fit = &mut candidate.fits[meaning.question];
                *fit = fit.max(meaning.fit);
            }
        }
        Ok(())
    }

    async fn read_ranked(&self, tx: &mut Tx, best: Vec<(RecordId, f64)>, search: &Search) -> Result<Vec<Found>> {
        if best.is_empty() {
            return Ok(Vec::new());
        }
        let text = format!(
            concat!(
                "SELECT ",
                columns!(),
                " FROM (VALUES {}) AS wanted CROSS JOIN record r
                 WHERE r.project_id = $1 AND r.kind = wanted.column1 AND r.number = wanted.column2"
            ),
            pairs(2, best.len())
        );
        let mut query = sql_of(text).bind(self.who.project_id);
        for (id, _) in &best {
            query = query.bind(id.kind.as_str()).bind(id.number);
        }
        let scores: BTreeMap<RecordId, f64> = best.into_iter().collect();
        let mut found = Vec::new();
        for row in query.all(tx).await? {
            let record = stored(&row)?;
            let score = scores.get(&record.id).copied().unwrap_or(0.0) * matters(&record, search.scope);
            found.push(Found { record, score });
        }
        Ok(best_first(found, search.limit))
    }

    async fn newest(&self, tx: &mut Tx, kinds: &[Kind], search: &Search) -> Result<Vec<Found>> {
        let iteration = if let SearchScope::Iteration(iteration) = search.scope { Some(iteration) } else { None };
        let keep = search.limit.saturating_mul(RANKED_PER_ANSWER);
        let limit = i64::try_from(keep).unwrap_or(i64::MAX);
        let mut found = Vec::new();
        for kind in kinds {
            let query = Query { iteration, newest_first: true, ..Query::default() };
            for row in select(self.who.project_id, *kind, &query, limit).all(tx).await? {
                let record = stored(&row)?;
                let score = if let SearchScope::Smart(_) = search.scope {
                    (1.0 + RECENCY_WEIGHT * recency(self.now_ms(), record.created_at_ms))
                        * matters(&record, search.scope)
                } else {
                    0.0
                };
                found.push(Found { record, score });
            }
        }
        Ok(best_first(found, search.limit))
    }
}

/// `($2, $3), ($4, $5), …`: pairs of bound values.
fn pairs(from: usize, count: usize) -> String {
    let pairs: Vec<String> = (0..count).map(|n| format!("(${}, ${})", from + 2 * n, from + 2 * n + 1)).collect();
    pairs.join(", ")
}

/// The best ones; among equals, the newest first.
fn best_first(mut found: Vec<Found>, limit: usize) -> Vec<Found> {
    found.sort_by(|a, b| {
        let newest = b.record.created_at_ms.cmp(&a.record.created_at_ms);
        b.score.total_cmp(&a.score).then(newest).then(b.record.id.number.cmp(&a.record.id.number))
    });
    found.truncate(limit);
    found
}

/// Which words of the question each of the terms is a letter away from, of each word the first [`MEANINGS_MAX`].
fn one_letter_away(words: &[(usize, &(String, String))], terms: Vec<String>) -> Vec<(usize, String, f32)> {
    let mut counts: BTreeMap<usize, i64> = BTreeMap::new();
    let mut found = Vec::new();
    for term in terms.into_iter().filter(|term| term.chars().count() >= MISSPELT_CHARS_MIN - 1) {
        let near = |word: &str| strsim::osa_distance(&term, word) <= 1;
        for (question, _) in words.iter().filter(|(_, (stem, word))| near(stem) || near(word)) {
            let so_far: &mut i64 = counts.entry(*question).or_default();
            *so_far += 1;
            if *so_far <= MEANINGS_MAX {
                found.push((*question, term.clone(), FIT_MISSPELT));
            }
        }
    }
    found
}

/// The best candidates by score, at most `keep` of them.
fn rank(candidates: &Scores, weights: &[f64], now_ms: i64, keep: usize) -> Vec<(RecordId, f64)> {
    let mut ranked: Vec<(RecordId, f64, i64)> = candidates
        .iter()
        .map(|(id, candidate)| {
            let fit: f64 = candidate.fits.iter().zip(weights).map(|(fit, weight)| f64::from(*fit) * weight).sum();
            (*id, fit * (1.0 + RECENCY_WEIGHT * recency(now_ms, candidate.at_ms)), candidate.at_ms)
        })
        .collect();
    let better = |a: &(RecordId, f64, i64), b: &(RecordId, f64, i64)| {
        b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)).then(b.0.cmp(&a.0))
    };
    if ranked.len() > keep {
        ranked.select_nth_unstable_by(keep, better);
        ranked.truncate(keep);
    }
    ranked.sort_unstable_by(better);
    ranked.into_iter().map(|(id, score, _)| (id, score)).collect()
}

/// 1 for what is new, 0.5 after a month.
fn recency(now_ms: i64, at_ms: i64) -> f64 {
    let age = now_ms.saturating_sub(at_ms).max(0) as f64;
    (-age / RECENCY_HALF_MS).exp2()
}

/// What counts for more in the smart scope.
fn matters(record: &Stored, scope: SearchScope) -> f64 {
    let SearchScope::Smart(iteration) = scope else { return 1.0 };
    let here = if record.iteration == iteration { 1.2 } else { 1.0 };
    let weight = match (record.id.kind, record.state.as_str()) {
        (Kind::Insight, "critical") => 1.3,
        (Kind::Insight, "important") => 1.1,
        (Kind::Issue, "open") | (Kind::Decision, _) => 1.2,
        (Kind::Issue, "resolved") => 0.7,
        _ => 1.0,
    };
    here * weight
}

/// Makes a record found by its words.
pub(crate) async fn index(
    tx: &mut Tx,
    project: i64,
    id: RecordId,
    iteration: i64,
    at_ms: i64,
    words: &str,
) -> Result<()> {
    remove_terms(tx, project, id).await?;
    let found: Vec<String> = terms(words).into_iter().take(TERMS_MAX).collect();
    for batch in found.chunks(ROWS_BATCH) {
        let rows: Vec<String> = (0..batch.len()).map(|n| format!("($1, ${}, $2, $3, $4, $5)", n + 6)).collect();
        let text = format!(
            "INSERT INTO memory_term (project_id, term, at_ms, kind, number, iteration) VALUES {}",
            rows.join(", ")
        );
        let mut query = sql_of(text).bind(project).bind(at_ms).bind(id.kind.as_str()).bind(id.number).bind(iteration);
        for term in batch {
            query = query.bind(term);
        }
        query.run(tx).await?;
    }
    add_terms(tx, project, &found).await
}

/// Takes a record out of the index. The dictionary keeps its words.
pub(crate) async fn remove_terms(tx: &mut Tx, project: i64, id: RecordId) -> Result<()> {
    if id.kind.is_memory() {
        let text = "DELETE FROM memory_term WHERE project_id = $1 AND kind = $2 AND number = $3";
        sql(text).bind(project).bind(id.kind.as_str()).bind(id.number).run(tx).await?;
    }
    Ok(())
}

/// Those of the words that the dictionary has.
async fn known_terms(tx: &mut Tx, project: i64, words: impl Iterator<Item = &String>) -> Result<BTreeSet<String>> {
    let words: Vec<&String> = words.collect();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for batch in words.chunks(ROWS_BATCH) {
        let text = format!(
            "SELECT term FROM memory_near WHERE project_id = $1 AND near = term AND near IN ({})",
            places(2, batch.len())
        );
        let mut query = sql_of(text).bind(project);
        for word in batch {
            query = query.bind(*word);
        }
        for row in query.all(tx).await? {
            known.insert(row.get("term")?);
        }
    }
    Ok(known)
}

/// Writes new words into the dictionary.
async fn add_terms(tx: &mut Tx, project: i64, words: &[String]) -> Result<()> {
    let known = known_terms(tx, project, words.iter()).await?;
    let new: Vec<(String, &String)> = words
        .iter()
        .filter(|word| !known.contains(*word))
        .flat_map(|word| nears(word).into_iter().map(move |near| (near, word)))
        .collect();
    for batch in new.chunks(ROWS_BATCH) {
        let rows: Vec<String> = (0..batch.len()).map(|n| format!("($1, ${}, ${})", 2 * n + 2, 2 * n + 3)).collect();
        let text = format!(
            "INSERT INTO memory_near (project_id, near, term) VALUES {} ON CONFLICT DO NOTHING",
            rows.join(", ")
        );
        let mut query = sql_of(text).bind(project);
        for (near, word) in batch {
            query = query.bind(near).bind(*word);
        }
        query.run(tx).await?;
    }
    Ok(())
}
