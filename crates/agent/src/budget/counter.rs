//! Tokens of a text: exact where the tokenizer is public, else an estimate that the provider's reports correct.

use serde::{Deserialize, Serialize};

use super::tokenizer;

/// Thousandths: a factor of one.
const ONE: u64 = 1_000;
/// How far a correction may go, in thousandths of the estimate.
const CORRECTION_MIN: u64 = 500;
const CORRECTION_MAX: u64 = 3_000;
/// A report moves the correction by one part in this many.
const OBSERVED_SHARE: i64 = 4;
/// Estimates below this say too little: what a provider adds to each request weighs more.
const OBSERVED_TOKENS_MIN: u64 = 200;
/// Bytes that [`Counter::estimate`] counts in full.
pub const COUNTED_BYTES_MAX: usize = 512 * 1024;
/// Of a longer text, this many windows are counted.
const WINDOWS: usize = 64;
/// Bytes of such a window.
const WINDOW_BYTES: usize = 2 * 1024;

/// Parts of names of models, the first that fits, and the tokens of the family for a thousand of `o200k_base`. But for the
/// models of OpenAI that have it the tokenizers are not public or not here: these factors are our estimates, on the high
/// side, for a session to start with.
const FAMILIES: &[(&str, u64)] = &[
    ("gpt-4o", ONE),
    ("gpt-4.1", ONE),
    ("gpt-4.5", ONE),
    ("gpt-4", 1_200),
    ("gpt-3.5", 1_200),
    ("gpt-", ONE),
    ("chatgpt", ONE),
    ("claude", 1_250),
    ("gemini", 1_100),
    ("gemma", 1_100),
    ("llama", 1_100),
    ("qwen", 1_100),
    ("deepseek", 1_100),
    ("mistral", 1_200),
];
/// Names of OpenAI's that are too short to be looked for anywhere: `o3-mini`.
const REASONERS: [&str; 3] = ["o1", "o3", "o4"];
/// Of whatever else.
const FACTOR_OTHER: u64 = 1_200;

/// How far a session's estimates were from what its provider reports. One for each session; there is no other state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// Thousandths of the estimate, 500 to 3,000.
    correction: u64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { correction: ONE }
    }
}

impl Calibration {
    /// Learns from a request: what it was estimated at with this calibration, and what the provider reports. A single
    /// report moves the correction by a quarter of the way, so that a freak one does little.
    pub fn observe(&mut self, estimated: u64, actual: u64) {
        if estimated < OBSERVED_TOKENS_MIN || actual == 0 {
            return;
        }
        let seen = u128::from(self.correction) * u128::from(actual) / u128::from(estimated);
        let seen = u64::try_from(seen).unwrap_or(CORRECTION_MAX).clamp(CORRECTION_MIN, CORRECTION_MAX);
        let step = (seen.cast_signed() - self.correction.cast_signed()) / OBSERVED_SHARE;
        self.correction = self.correction.saturating_add_signed(step).clamp(CORRECTION_MIN, CORRECTION_MAX);
    }

    /// Thousandths by which estimates are multiplied.
    #[must_use]
    pub fn correction(&self) -> u64 {
        self.correction
    }
}

/// Counts the tokens of texts for one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Tokens of the model for a thousand of the tokenizer.
    factor: u64,
    is_exact: bool,
    calibration: Calibration,
}

impl Counter {
    /// For a model as [`crate::model::ModelFacts`] names it: `anthropic::claude-sonnet-5`, `gpt-5-mini`.
    #[must_use]
    pub fn for_model(name: &str) -> Self {
        let name = name.to_lowercase();
        let last = name.rsplit(['/', ':']).next().unwrap_or(&name);
        let is_reasoner = REASONERS.iter().any(|known| last == *known || last.starts_with(&format!("{known}-")));
        let known = FAMILIES.iter().find(|(part, _)| last.contains(part));
        let factor = match known {
            _ if is_reasoner => ONE,
            Some((_, factor)) => *factor,
            None => FACTOR_OTHER,
        };
        Self { factor, is_exact: factor == ONE, calibration: Calibration::default() }
    }

    /// The same, corrected by what a session has learned. An exact counter stays as it is.
    #[must_use]
    pub fn calibrated(self, calibration: Calibration) -> Self {
        if self.is_exact { self } else { Self { calibration, ..self } }
    }

    /// Whether the model's own tokenizer counts.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Tokens of a text, about 15 MB a second. The first text of a process waits 60 ms for the table.
    #[must_use]
    pub fn count(&self, text: &str) -> u64 {
        self.scale(self.raw(text))
    }

    /// Tokens of a text: counted up to [`COUNTED_BYTES_MAX`], beyond that from windows spread evenly over the text. The
    /// same text gives the same estimate.
    #[must_use]
    pub fn estimate(&self, text: &str) -> u64 {
        if text.len() <= COUNTED_BYTES_MAX {
            return self.count(text);
        }
        let (mut bytes, mut tokens) = (0_u64, 0_u64);
        for window in 0..WINDOWS {
            let from = text.ceil_char_boundary(window * (text.len() / WINDOWS));
            let to = text.floor_char_boundary((from + WINDOW_BYTES).min(text.len()));
            let part = &text[from..to];
            bytes += part.len() as u64;
            tokens += self.raw(part);
        }
        self.scale(of_ratio(text.len() as u64, tokens, bytes))
    }

    /// Tokens of the tokenizer, before the factor and the correction. For sums that a later correction is to move.
    #[must_use]
    pub fn raw(&self, text: &str) -> u64 {
        tokenizer::count(text) as u64
    }

    /// Tokens of the model for so many of the tokenizer, rounded up.
    #[must_use]
    pub fn scale(&self, raw: u64) -> u64 {
        let scaled = (u128::from(raw) * u128::from(self.millionths())).div_ceil(u128::from(ONE * ONE));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    fn millionths(&self) -> u64 {
        self.factor * self.calibration.correction
    }
}

/// `part / whole` of a number, rounded up; the number itself of nothing.
pub(super) fn of_ratio(number: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return number;
    }
    let scaled = (u128::from(number) * u128::from(part)).div_ceil(u128::from(whole));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
