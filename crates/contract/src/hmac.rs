//! A keyed hash, for what is signed with a shared key.

use sha2::{Digest, Sha256};

/// Block of SHA-256, bytes.
const BLOCK: usize = 64;

/// HMAC-SHA-256 (RFC 2104).
#[must_use]
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    // A key that is longer than a block stands for its hash.
    let hashed: [u8; 32];
    let key = if key.len() > BLOCK {
        hashed = Sha256::digest(key).into();
        &hashed
    } else {
        key
    };
    let padded = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::hmac_sha256;

    #[test]
    fn it_is_that_of_the_standard() {
        // RFC 4231, test cases 2 and 6.
        for (key, message, expected) in [
            (
                b"Jefe".to_vec(),
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 131],
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hex::encode(hmac_sha256(&key, message.as_bytes())), expected);
        }
    }
}
