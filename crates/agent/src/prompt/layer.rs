//! The eight layers, in one order (seed BAI-2.1).

use std::fmt;

use serde::Serialize;
use sha2::{Digest, Sha256};
use toolhost_contract::canonical_json;

use super::ComposeError;

/// A layer: which, in the order in which they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum LayerId {
    #[serde(rename = "0A")]
    Identity,
    #[serde(rename = "0B")]
    Persona,
    #[serde(rename = "1")]
    Guardrails,
    #[serde(rename = "2")]
    OutputContract,
    #[serde(rename = "3")]
    Entry,
    #[serde(rename = "4")]
    Mode,
    #[serde(rename = "5")]
    Context,
    #[serde(rename = "6")]
    ApplyPolicy,
}

impl LayerId {
    /// All of them, in their order.
    pub const ALL: [Self; 8] = [
        Self::Identity,
        Self::Persona,
        Self::Guardrails,
        Self::OutputContract,
        Self::Entry,
        Self::Mode,
        Self::Context,
        Self::ApplyPolicy,
    ];

    /// As the seed numbers it: `0A`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "0A",
            Self::Persona => "0B",
            Self::Guardrails => "1",
            Self::OutputContract => "2",
            Self::Entry => "3",
            Self::Mode => "4",
            Self::Context => "5",
            Self::ApplyPolicy => "6",
        }
    }

    /// As the seed names it: `Core Identity`.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Identity => "Core Identity",
            Self::Persona => "Domain Persona",
            Self::Guardrails => "Global Guardrails",
            Self::OutputContract => "Output Contract",
            Self::Entry => "Entry Strategy",
            Self::Mode => "Mode Strategy",
            Self::Context => "Context Digest",
            Self::ApplyPolicy => "Apply Policy",
        }
    }
}

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layer-{} {}", self.as_str(), self.title())
    }
}

/// One layer of the instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptLayer {
    pub layer_id: LayerId,
    pub title: &'static str,
    pub content: String,
    /// Whether a prompt without it is refused. All eight are required.
    pub required: bool,
}

impl PromptLayer {
    /// A required layer.
    #[must_use]
    pub fn new(layer_id: LayerId, content: impl Into<String>) -> Self {
        Self { layer_id, title: layer_id.title(), content: content.into(), required: true }
    }

    /// The layer as a model reads it.
    #[must_use]
    pub fn render(&self) -> String {
        format!("# {}\n\n{}\n", self.layer_id, self.content.trim_end())
    }
}

/// Each layer there once, in order, and saying something.
///
/// # Errors
/// If one is missing, blank or out of order.
pub fn check_layers(layers: &[PromptLayer]) -> Result<(), ComposeError> {
    for (place, id) in LayerId::ALL.into_iter().enumerate() {
        let layer = layers.get(place).filter(|layer| layer.layer_id == id);
        if layer.is_none_or(|layer| layer.content.trim().is_empty()) {
            return Err(ComposeError::Missing { layer: id, why: "it is not there or says nothing".to_owned() });
        }
    }
    match layers.get(LayerId::ALL.len()) {
        Some(more) => Err(ComposeError::Missing { layer: more.layer_id, why: "it is there twice".to_owned() }),
        None => Ok(()),
    }
}

/// SHA-256 over the canonical JSON (RFC 8785) of the layers, in hex.
///
/// # Errors
/// If the layers have no canonical form, which text always has.
pub fn signature(layers: &[PromptLayer]) -> Result<String, ComposeError> {
    let bytes = canonical_json(&layers).map_err(|error| ComposeError::Unsigned(error.to_string()))?;
    Ok(hex::encode(Sha256::digest(bytes)))
}
