//! What a model is told before it begins: eight layers in one order, a pure function of what it is given.
//!
//! The same input gives the same bytes and the same signature. The texts are files under `layers/`. What comes from a
//! package, a ticket or an earlier turn stands between marks that it cannot close. Start with [`compose_messages`].

mod context;
mod form;
mod history;
mod input;
mod layer;
pub(crate) mod persona;
mod texts;
mod untrusted;

pub use context::{
    FACT_CHARS_MAX, FACTS_MAX, LINE_CHARS_MAX, NEEDS_PERSON_MAX, TICKET_CHARS_MAX, TOOLS_MAX, render_envelope, renewed,
};
pub use history::{SUMMARY_LINE_CHARS_MAX, TURN_CHARS_MAX, TURNS_SUMMARIZED_MAX, TURNS_VERBATIM, Turn};
pub use input::{
    BuilderInput, ComposeInput, Fact, PersonaFact, ReplyLimits, Ticket, ToolFact, WorkspaceContext, WorkspaceInput,
    WritePolicy,
};
pub use layer::{LayerId, PromptLayer, check_layers, signature};
pub use untrusted::{SOURCE_CHARS_MAX, inside_marks, mark_untrusted};

pub(crate) use context::sorted;

use toolhost_contract::ErrorCode;

use crate::model::{Message, SystemBlock};

/// What a model is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// Two blocks: layers 0A to 4, which are the same bytes for every session with such a target and mode, whatever the package,
    /// and layers 5 and 6, which stay for as long as the context does. A provider may keep both.
    pub system: Vec<SystemBlock>,
    /// Earlier turns, oldest first, then what the person says now.
    pub messages: Vec<Message>,
    /// Of the layers: see [`signature`].
    pub signature: String,
}

/// Why there is no prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeError {
    #[error("the prompt has no {layer}: {why}")]
    Missing { layer: LayerId, why: String },
    #[error("the person's message is empty")]
    NothingSaid,
    #[error("the prompt cannot be signed: {0}")]
    Unsigned(String),
}

impl ComposeError {
    /// The stable code of the seed.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        ErrorCode::PromptCompose
    }
}

/// The eight layers, in their order (seed BAI-2.1).
///
/// # Errors
/// If a layer has nothing to say: each is required, none is skipped.
pub fn compose_system_instruction(input: &ComposeInput) -> Result<Vec<PromptLayer>, ComposeError> {
    if let Some(field) = persona::missing_field(input.domain_profile()) {
        let why = format!("`domainProfile` has no `{field}`");
        return Err(ComposeError::Missing { layer: LayerId::Persona, why });
    }
    let persona = persona::build_domain_persona_layer(input.domain_profile());
    let layers = match input {
        ComposeInput::Builder(builder) => builder_layers(builder, persona)?,
        ComposeInput::Workspace(workspace) => workspace_layers(workspace, persona)?,
    };
    check_layers(&layers)?;
    Ok(layers)
}

/// The layers as blocks of instructions, earlier turns, and what the person says now.
///
/// `prior` is for a caller that has a conversation and no journal of it. A session of ours gives none, on purpose: its
/// messages are composed once, when it begins, and a resumed session recalls each turn from its journal word for word, with
/// calls and results. A summary of the same turns beside them would tell the model everything twice.
///
/// # Errors
/// If a layer is missing, or the person says nothing.
pub fn compose_messages(input: &ComposeInput, user_message: &str, prior: &[Turn]) -> Result<Composed, ComposeError> {
    if user_message.trim().is_empty() {
        return Err(ComposeError::NothingSaid);
    }
    let layers = compose_system_instruction(input)?;
    let (stable, changing) = layers.split_at(LayerId::ALL.iter().take_while(|id| **id != LayerId::Context).count());
    let block = |layers: &[PromptLayer]| {
        let rendered: Vec<String> = layers.iter().map(PromptLayer::render).collect();
        SystemBlock { text: rendered.join("\n"), cache: true }
    };
    let mut messages = history::messages(prior);
    messages.push(Message::User { content: user_message.to_owned() });
    Ok(Composed { system: vec![block(stable), block(changing)], messages, signature: signature(&layers)? })
}

fn builder_layers(input: &BuilderInput, persona: PromptLayer) -> Result<Vec<PromptLayer>, ComposeError> {
    let strategy = joined(texts::mode(input.target_type, input.mode), &form::change_set(input.target_type, input.mode));
    let strategy = joined(&form::fields(input.target_type), &strategy);
    Ok(vec![
        PromptLayer::new(LayerId::Identity, texts::IDENTITY_BUILDER),
        persona,
        PromptLayer::new(LayerId::Guardrails, joined(texts::GUARDRAILS, texts::GUARDRAILS_BUILDER)),
        PromptLayer::new(LayerId::OutputContract, texts::OUTPUT_BUILDER),
        PromptLayer::new(LayerId::Entry, texts::entry(input.entrypoint)),
        PromptLayer::new(LayerId::Mode, strategy),
        PromptLayer::new(LayerId::Context, context::builder(input)?),
        PromptLayer::new(LayerId::ApplyPolicy, texts::APPLY_BUILDER),
    ])
}

fn workspace_layers(input: &WorkspaceInput, persona: PromptLayer) -> Result<Vec<PromptLayer>, ComposeError> {
    Ok(vec![
        PromptLayer::new(LayerId::Identity, texts::IDENTITY_WORKSPACE),
        persona,
        PromptLayer::new(LayerId::Guardrails, joined(texts::GUARDRAILS, texts::GUARDRAILS_WORKSPACE)),
        PromptLayer::new(LayerId::OutputContract, texts::OUTPUT_WORKSPACE),
        PromptLayer::new(LayerId::Entry, texts::ENTRY_WORKSPACE),
        PromptLayer::new(LayerId::Mode, texts::MODE_WORKSPACE),
        PromptLayer::new(LayerId::Context, context::workspace(input)?),
        PromptLayer::new(LayerId::ApplyPolicy, texts::APPLY_WORKSPACE),
    ])
}

fn joined(first: &str, second: &str) -> String {
    format!("{}\n\n{}", first.trim_end(), second.trim_end())
}
