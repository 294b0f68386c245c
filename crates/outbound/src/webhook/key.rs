//! The key that signs messages.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use toolhost_contract::hmac_sha256;

use super::error::{Error, Result};

/// How a secret begins.
const SECRET_PREFIX: &str = "whsec_";
/// Bytes of a key, as the specification has them.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The version of a signature with a shared key.
const VERSION: &str = "v1";

/// A shared key. Nothing shows it.
#[derive(Clone)]
pub struct SigningKey(Vec<u8>);

impl SigningKey {
    /// Reads a secret: `whsec_` and base64.
    ///
    /// # Errors
    /// [`Error::Key`], which does not quote the text.
    pub fn parse(secret: &str) -> Result<Self> {
        let encoded = secret.trim().strip_prefix(SECRET_PREFIX).ok_or(Error::Key)?;
        let key = STANDARD.decode(encoded).map_err(|_| Error::Key)?;
        if KEY_BYTES.contains(&key.len()) { Ok(Self(key)) } else { Err(Error::Key) }
    }

    /// Another key, which is made of this one and of what it is for. Neither this key nor one for something else follows from it.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Self {
        Self(hmac_sha256(&self.0, purpose.as_bytes()).to_vec())
    }

    /// The key as [`Self::parse`] reads it: for the one who checks signatures, once.
    #[must_use]
    pub fn to_secret(&self) -> String {
        format!("{SECRET_PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// The value of the header `webhook-signature`.
    pub(crate) fn signature(&self, id: &str, timestamp: i64, body: &str) -> String {
        let signed = format!("{id}.{timestamp}.{body}");
        format!("{VERSION},{}", STANDARD.encode(hmac_sha256(&self.0, signed.as_bytes())))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::SigningKey;

    #[test]
    fn a_signature_is_that_of_the_published_example() {
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("it is a secret");
        let signature = key.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_key_for_one_purpose_is_not_the_key_for_another() {
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("it is a secret");
        let secrets = [key.derive("a").to_secret(), key.derive("b").to_secret(), key.to_secret()];
        assert_eq!(secrets[0], key.derive("a").to_secret());
        assert!(secrets[0] != secrets[1] && secrets[0] != secrets[2]);
        let read = SigningKey::parse(&secrets[0]).expect("it is a secret");
        assert_eq!(read.signature("m", 1, "{}"), key.derive("a").signature("m", 1, "{}"));
    }

    #[test]
    fn a_secret_that_is_none_is_refused_and_not_quoted() {
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_not base64 at all!"] {
            let error = SigningKey::parse(text).expect_err(text).to_string();
            assert!(text.len() < 7 || !error.contains(&text[7..]), "{error}");
        }
        let key = SigningKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("it is a secret");
        assert_eq!(format!("{key:?}"), "***");
    }
}
