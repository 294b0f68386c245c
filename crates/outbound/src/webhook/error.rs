//! Why a message is not delivered. No text has the key in it, nor the path of the URL, which is a password with some services.

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the URL of the webhook {0}")]
    Url(String),
    #[error("the secret of the webhook is not `whsec_` followed by base64 of 24 to 64 bytes")]
    Key,
    #[error("no TLS for webhooks: {0}")]
    Tls(String),
    #[error("the webhook cannot be reached: {0}")]
    Unreachable(String),
    #[error("the webhook did not answer within {0} seconds")]
    Timeout(u64),
    #[error("the webhook answered with the status {0}")]
    Refused(u16),
    #[error("the webhook answered that it is gone (status 410): nothing more is sent to it")]
    Gone,
}

impl Error {
    /// Whether the next attempt may succeed. The specification counts every answer but a success as a failure to be retried.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Timeout(_) | Self::Refused(_))
    }
}
