//! How much a model can be told, and what is left out when it is too much (seed BAI-2.6).
//!
//! [`Counter`] counts, [`trim_context_with_budget`] shortens an envelope before a session begins, [`Weight`], [`Tally`],
//! [`age`] and [`strip`] keep a long conversation within its window.

mod aging;
mod counter;
mod parts;
mod tokenizer;
mod trim;

pub use aging::{Aged, Aging, SHORT_TOKENS_MIN, Tally, Weight, age, strip};
pub use counter::{COUNTED_BYTES_MAX, Calibration, Counter};
pub use parts::{ActionKind, LIST_ITEMS_KEPT, TEXT_CHARS_KEPT};
pub use trim::{Action, Budget, BudgetError, TrimReport, Trimmed, trim_context_with_budget};
