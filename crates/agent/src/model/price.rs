//! What tokens cost, and how many a model reads.
//!
//! The table is a default, dated and soon wrong: what the operator's settings say goes before it.

use serde::Deserialize;

use super::{Price, ProviderKind, Usage};

/// Tokens a model is taken to read when nobody says.
pub const WINDOW_DEFAULT: u32 = 128_000;

/// Tokens of one reply when nobody says: a file of 50 kB, with some thinking before it.
const OUTPUT_DEFAULT: u32 = 16_384;
/// A reply has no more of a small window than this share.
const OUTPUT_SHARE: u32 = 4;

/// Tokens that one reply may have, of a model with this window, when nobody says.
#[must_use]
pub fn output_default(window: u32) -> u32 {
    OUTPUT_DEFAULT.min(window / OUTPUT_SHARE)
}

const TABLE: &str = include_str!("models.json");

/// Tokens that prices are for.
const PRICED_TOKENS: f64 = 1_000_000.0;

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    pub window: u32,
    pub price: Price,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The month the prices were read.
    #[expect(dead_code, reason = "for people; a table without a date does not parse")]
    as_of: String,
    models: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    provider: ProviderKind,
    model: String,
    window: u32,
    /// US dollars for a million tokens: input, cached input, cache write, output.
    price: [f64; 4],
}

/// What the table knows of a model: by its name, or its name with a date behind it. Nothing of a model it does not name.
#[must_use]
pub fn known(provider: ProviderKind, model: &str) -> Option<Known> {
    // It is read for each model that is opened, not for each request. A test parses it.
    let table = serde_json::from_str::<Table>(TABLE).ok()?;
    let line = table.models.into_iter().find(|line| line.provider == provider && is_named(model, &line.model))?;
    let [input, cached_input, cache_write, output] = line.price;
    Some(Known { window: line.window, price: Price { input, cached_input, cache_write, output } })
}

/// `claude-sonnet-4-5-20250929` and `gpt-5-2025-08-07` are called by their families' names too.
fn is_named(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    rest.is_empty()
        || rest.strip_prefix('-').is_some_and(|date| {
            date == "latest" || date.len() >= 8 && date.chars().all(|c| c.is_ascii_digit() || c == '-')
        })
}

/// What tokens cost, in US dollars.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "tokens are far below 2^52")]
pub fn cost(usage: &Usage, price: &Price) -> f64 {
    let kept = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
    let fresh = usage.input_tokens.saturating_sub(kept);
    (fresh as f64 * price.input
        + usage.cached_tokens as f64 * price.cached_input
        + usage.cache_write_tokens as f64 * price.cache_write
        + usage.output_tokens as f64 * price.output)
        / PRICED_TOKENS
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_table_parses_and_every_line_makes_sense() {
        let table = serde_json::from_str::<Table>(TABLE).unwrap();
        assert!(!table.models.is_empty());
        for line in table.models {
            let [input, cached, write, output] = line.price;
            assert!(cached <= input && input <= write && write <= output, "{}", line.model);
            assert!(line.window >= 32_000, "{}", line.model);
        }
    }
}
