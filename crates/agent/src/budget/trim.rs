//! An envelope, shortened until it fits (seed BAI-2.6): the target never, what it depends on first.
//!
//! What is counted is the text that the prompt carries, [`render_envelope`]. Each part is counted once, and only so many
//! bytes of a large envelope; the text that is left is counted again as a whole before it is said to fit.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_builder::envelope::KEYS;
use toolhost_contract::ErrorCode;

use super::Counter;
use super::counter::{COUNTED_BYTES_MAX, of_ratio};
use super::parts::{self, ActionKind, PASSES, Part, Pass};
use crate::prompt::render_envelope;

/// Bytes of parts that are counted; parts beyond these are judged by the whole.
const PARTS_BYTES_COUNTED_MAX: usize = 256 * 1024;
/// Tokens of the tokenizer, fewer than what stands for a dropped object has. Where so many for each object are above the
/// budget, they need not be dropped one by one to know that this is not enough.
const STUB_TOKENS_MIN: u64 = 16;
/// Hundredths of the window for the context, where nothing else is said; the rest is for the reply.
const CONTEXT_SHARE: u64 = 70;
/// Hundredths of the budget: as near to it as this, an estimate from windows does not decide.
const DOUBT: u64 = 10;

/// Tokens that a context may have, and tokens of the model's window that are kept for the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub context: u64,
    pub reserve_for_response: u64,
}

impl Budget {
    /// As somebody says, who knows that the window holds both.
    #[must_use]
    pub fn explicit(context: u64, reserve_for_response: u64) -> Self {
        Self { context, reserve_for_response }
    }

    /// 70 to 30 of a model's window.
    #[must_use]
    pub fn of_window(window: u32) -> Self {
        Self::resolve(None, None, window)
    }

    /// What is said goes before the shares of the window, each number for itself; both have room in the window. So what
    /// is kept for the reply is taken from the context, also from one that is said.
    #[must_use]
    pub fn resolve(context: Option<u64>, reserve_for_response: Option<u64>, window: u32) -> Self {
        let window = u64::from(window);
        let share = window * CONTEXT_SHARE / 100;
        let reserve = match (reserve_for_response, context) {
            (Some(reserve), _) => reserve,
            // A context that is said may be larger than its share.
            (None, Some(context)) => window.saturating_sub(context).min(window - share),
            (None, None) => window - share,
        };
        let room = window.saturating_sub(reserve);
        Self { context: context.map_or(room, |context| context.min(room)), reserve_for_response: reserve }
    }
}

/// An envelope that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Trimmed {
    pub envelope: Value,
    pub report: TrimReport,
}

/// What was done, as the seed shapes it. Tokens, but for the characters of the actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrimReport {
    /// Whether anything was left out.
    pub applied: bool,
    /// Counted up to [`COUNTED_BYTES_MAX`], beyond that by windows: see [`Counter::estimate`].
    pub estimate_before: u64,
    pub estimate_after: u64,
    pub context_budget: u64,
    pub reserve_for_response: u64,
    /// One for each section and kind of action.
    pub actions: Vec<Action>,
}

/// What was done to a section: characters of the parts in question as JSON, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    pub section: String,
    pub action: ActionKind,
    pub before_chars: u64,
    pub after_chars: u64,
}

/// Why there is no envelope that fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    #[error(
        "the context has about {estimate} tokens when all is left out that may be, and {budget} are its budget; choose \
         a smaller target or a model with a larger window"
    )]
    Exceeded { estimate: u64, budget: u64 },
    #[error("the context envelope has not exactly its seven sections: {0}")]
    NoEnvelope(String),
}

impl BudgetError {
    /// The stable code of the seed.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Exceeded { .. } => ErrorCode::ContextBudget,
            Self::NoEnvelope(_) => ErrorCode::ContextBuild,
        }
    }
}

/// Shortens an envelope until it fits: lists of dependencies are summarised, then long texts are cut, then objects
/// become path, summary and hash. What fits is not touched; the target never is; the seven sections stay.
///
/// # Errors
/// If the envelope is none, or does not fit when all is left out that may be.
pub fn trim_context_with_budget(envelope: &Value, counter: &Counter, budget: Budget) -> Result<Trimmed, BudgetError> {
    check_sections(envelope)?;
    let text = render_envelope(envelope);
    let before = measure(&text, counter, budget.context);
    let mut report = TrimReport {
        applied: false,
        estimate_before: before,
        estimate_after: before,
        context_budget: budget.context,
        reserve_for_response: budget.reserve_for_response,
        actions: Vec::new(),
    };
    if before <= budget.context {
        return Ok(Trimmed { envelope: envelope.clone(), report });
    }
    let mut work = Work {
        envelope: envelope.clone(),
        counter,
        budget: budget.context,
        planned: before,
        whole: (before, text.len() as u64),
        bytes_counted: 0,
        wait: 0,
        wait_next: 1,
    };
    for pass in PASSES {
        if let Some(after) = work.run(pass, &mut report.actions) {
            report.applied = true;
            report.estimate_after = after;
            return Ok(Trimmed { envelope: work.envelope, report });
        }
    }
    match work.measured() {
        after if after <= budget.context => {
            report.applied = true;
            report.estimate_after = after;
            Ok(Trimmed { envelope: work.envelope, report })
        }
        estimate => Err(BudgetError::Exceeded { estimate, budget: budget.context }),
    }
}

fn check_sections(envelope: &Value) -> Result<(), BudgetError> {
    let none = |why: &str| BudgetError::NoEnvelope(why.to_owned());
    let fields = envelope.as_object().ok_or_else(|| none("it is no object"))?;
    match KEYS.iter().find(|key| !fields.contains_key(**key)) {
        Some(key) => Err(none(&format!("`{key}` is missing"))),
        None if fields.len() > KEYS.len() => Err(none("there are others")),
        None => Ok(()),
    }
}

/// Tokens of a text. Where windows of a long one cannot tell whether it is within the budget, all of it is counted.
fn measure(text: &str, counter: &Counter, budget: u64) -> u64 {
    let estimate = counter.estimate(text);
    let doubt = budget / 100 * DOUBT;
    let is_near = estimate.abs_diff(budget) <= doubt;
    if text.len() > COUNTED_BYTES_MAX && is_near { counter.count(text) } else { estimate }
}

/// An envelope in the making.
struct Work<'a> {
    envelope: Value,
    counter: &'a Counter,
    budget: u64,
    /// Tokens by the sum of what was done.
    planned: u64,
    /// Tokens and bytes of the whole, as it was.
    whole: (u64, u64),
    bytes_counted: usize,
    /// Parts to shorten before the whole is counted again, and how many after the next time.
    wait: usize,
    wait_next: usize,
}

impl Work<'_> {
    /// The tokens that are left as soon as they fit; nothing if they do not after all the pass may do.
    fn run(&mut self, pass: Pass, actions: &mut Vec<Action>) -> Option<u64> {
        loop {
            let mut shortened = false;
            let parts = parts::find(pass, &self.envelope);
            let left = self.counter.scale(parts.len() as u64 * STUB_TOKENS_MIN);
            if pass.action() == ActionKind::Drop && left > self.budget {
                return None;
            }
            for part in parts {
                let Some((before_chars, after_chars)) = self.shorten(pass, &part) else { continue };
                shortened = true;
                note(actions, pass, before_chars, after_chars);
                if let Some(after) = self.fits() {
                    return Some(after);
                }
            }
            // What was shortened may have parts of its own: the first items of a list, the section around its entries.
            if !shortened {
                return None;
            }
        }
    }

    /// Characters before and after; nothing if that would be no gain.
    fn shorten(&mut self, pass: Pass, part: &Part) -> Option<(u64, u64)> {
        let value = parts::at(&mut self.envelope, &part.path)?;
        let text = parts::text(value);
        let shorter = parts::replacement(pass, &part.path, value, &text);
        let shorter_text = parts::text(&shorter);
        // Characters, as the report tells them: fewer bytes can be more characters, where ASCII stands for Chinese.
        let (before_chars, after_chars) = (text.chars().count() as u64, shorter_text.chars().count() as u64);
        if after_chars >= before_chars {
            return None;
        }
        *value = shorter;
        let (before, after) = (self.tokens(&text), self.tokens(&shorter_text));
        self.planned = self.planned.saturating_sub(before).saturating_add(after);
        Some((before_chars, after_chars))
    }

    fn tokens(&mut self, text: &str) -> u64 {
        if self.bytes_counted + text.len() <= PARTS_BYTES_COUNTED_MAX {
            self.bytes_counted += text.len();
            return self.counter.count(text);
        }
        of_ratio(text.len() as u64, self.whole.0, self.whole.1)
    }

    /// Counts the whole when the plan says that it fits. Each time the plan was wrong, twice as many parts must follow
    /// before the next count, so that there are few.
    fn fits(&mut self) -> Option<u64> {
        if self.planned > self.budget {
            return None;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        let measured = self.measured();
        if measured <= self.budget {
            return Some(measured);
        }
        self.planned = measured;
        self.wait = self.wait_next;
        self.wait_next *= 2;
        None
    }

    fn measured(&self) -> u64 {
        measure(&render_envelope(&self.envelope), self.counter, self.budget)
    }
}

fn note(actions: &mut Vec<Action>, pass: Pass, before_chars: u64, after_chars: u64) {
    let (section, action) = (pass.section(), pass.action());
    match actions.iter_mut().find(|known| known.section == section && known.action == action) {
        Some(known) => {
            known.before_chars += before_chars;
            known.after_chars += after_chars;
        }
        None => actions.push(Action { section: section.to_owned(), action, before_chars, after_chars }),
    }
}
