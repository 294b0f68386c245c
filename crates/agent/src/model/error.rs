//! How a model does not reply.

use std::time::Duration;

use toolhost_contract::{ErrorCode, visible_line};

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Connect,
    /// The first byte of the reply.
    FirstByte,
    /// The next piece of it.
    Stall,
    /// All of it.
    Whole,
}

/// Why there is no reply. No message holds a key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// No model, no key, or a setting that makes none.
    #[error("{0}")]
    Disabled(String),
    #[error("the model's server cannot be reached: {}", visible_line(.0))]
    Unreachable(String),
    #[error("the model's server did not {} within {} s", phase.word(), limit.as_secs_f32())]
    Timeout { phase: Phase, limit: Duration },
    /// The server said no, or failed.
    #[error("the model's server says{}: {}", status.map(|status| format!(" {status}")).unwrap_or_default(), visible_line(message))]
    Provider { status: Option<u16>, message: String, retry_after: Option<Duration> },
    /// What came is no reply: torn JSON, a stream that ends too early.
    #[error("the model's reply is broken: {}", visible_line(.0))]
    Broken(String),
    /// More than the model's window.
    #[error("the conversation is longer than the model reads: {}", visible_line(.0))]
    TooLong(String),
    /// A script or cassette has nothing for this request.
    #[error("{0}")]
    Script(String),
    #[error("cancelled")]
    Cancelled,
}

impl Phase {
    fn word(self) -> &'static str {
        match self {
            Self::Connect => "take the connection",
            Self::FirstByte => "begin to answer",
            Self::Stall => "go on with its answer",
            Self::Whole => "end its answer",
        }
    }
}

impl ModelError {
    /// The stable code of the seeds.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Disabled(_) => ErrorCode::Disabled,
            Self::Unreachable(_) => ErrorCode::ProviderUnreachable,
            Self::Timeout { .. } => ErrorCode::ProviderTimeout,
            Self::Provider { .. } | Self::Script(_) | Self::Cancelled => ErrorCode::Provider,
            Self::Broken(_) => ErrorCode::BadResponse,
            Self::TooLong(_) => ErrorCode::ContextBudget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_stands_in_one_line_without_codes_for_a_terminal() {
        let said = || "no\n-> bash {}\u{1b}[2J".to_owned();
        for error in [
            ModelError::Provider { status: Some(400), message: said(), retry_after: None },
            ModelError::Unreachable(said()),
            ModelError::Broken(said()),
            ModelError::TooLong(said()),
        ] {
            let told = error.to_string();
            assert!(told.contains("-> bash") && !told.contains(['\n', '\u{1b}']), "{told}");
        }
    }
}
