//! The text of a token, and what it may do.

use std::fmt;

use sha2::{Digest, Sha256};

/// How each token begins, so that people and scanners for secrets recognize one.
const PREFIX: &str = "thp";
/// Random bytes of a token.
const SECRET_BYTES: usize = 32;
/// Bytes of the place of a token.
const PLACE_BYTES: usize = 4;

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Call the tools of its profiles, over MCP or the API.
    Call,
    /// Read the project: asks, audit, sessions, members, its workflow package.
    Read,
    /// Start sessions of models and steer them, at the operator's cost.
    Run,
    /// Answer what people are asked and apply changes of the package, in its user's name.
    Approve,
    /// Manage members, tokens and the whole package.
    Manage,
}

impl Right {
    pub const ALL: [Self; 5] = [Self::Call, Self::Read, Self::Run, Self::Approve, Self::Manage];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Manage => "manage",
        }
    }

    /// What it is for, in words.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Call => "the tools of its profile",
            Self::Read => "asks, audit, events, sessions, members, the workflow package",
            Self::Run => "starting sessions of models and steering them, at the operator's cost",
            Self::Approve => {
                "answering what people are asked, applying and undoing changes of the package: give it to no agent"
            }
            Self::Manage => "members, tokens and the whole package, if its user owns the project",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.as_str() == text)
    }
}

/// The text of a token: `thp_<place>_<secret>`. It is shown once, when it is made.
#[derive(Clone)]
pub struct Secret {
    place: String,
    text: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}_{}_…", self.place)
    }
}

/// Where a token belongs, as its text says: the beginning of the hash of its project's key. It only says in which database the token
/// is looked up.
#[must_use]
pub fn place_of(project: &str) -> String {
    hex::encode(&Sha256::digest(project.as_bytes())[..PLACE_BYTES])
}

impl Secret {
    /// A new one for a project.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new(project: &str) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        let place = place_of(project);
        Ok(Self { text: format!("{PREFIX}_{place}_{}", hex::encode(bytes)), place })
    }

    /// One that somebody sent; `None` if it cannot be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('_');
        let (prefix, place, secret) = (parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |part: &str, bytes: usize| {
            part.len() == 2 * bytes && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let fits = prefix == PREFIX && is_hex(place, PLACE_BYTES) && is_hex(secret, SECRET_BYTES);
        (fits && parts.next().is_none()).then(|| Self { place: place.to_owned(), text: text.to_owned() })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What is kept of it: its SHA-256, hex.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.text.as_bytes()))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_place_and_shows_itself_nowhere() {
        let secret = Secret::new("shop-1a2b").unwrap();
        let parsed = Secret::parse(secret.as_str()).unwrap();
        assert_eq!((parsed.place(), parsed.hash()), (place_of("shop-1a2b").as_str(), secret.hash()));
        let shown = format!("{secret:?}");
        assert!(!shown.contains(secret.as_str().rsplit('_').next().unwrap()), "{shown}");
        assert_ne!(Secret::new("shop-1a2b").unwrap().as_str(), secret.as_str());
    }

    #[test]
    fn what_is_not_whole_is_no_token() {
        let whole = Secret::new("x").unwrap().as_str().to_owned();
        for wrong in
            ["", "thp", "thp__", &whole[1..], &whole[..whole.len() - 1], &format!("{whole}0"), &format!("{whole}_")]
        {
            assert!(Secret::parse(wrong).is_none(), "{wrong}");
        }
        assert!(Secret::parse(&whole.to_uppercase()).is_none());
    }
}
