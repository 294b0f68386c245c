//! The hash chain: each row's hash covers the former row's hash and its own canonical JSON.

use sha2::{Digest, Sha256};

/// What the first row of a project follows.
pub(crate) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The hash of a row whose canonical JSON is `body`, in hexadecimal.
#[must_use]
pub fn link(previous: &str, body: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(previous.as_bytes());
    hash.update(body.as_bytes());
    hex::encode(hash.finalize())
}
