//! Keys of an authorization server: they sign access tokens of each kind.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
use serde_json::{Value, json};

/// A key for tests alone.
const RSA: &[u8] = include_bytes!("data/test-rsa-2048.pk8");

/// As JOSE writes bytes (RFC 7515, section 2).
pub fn base64_url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key pair for signatures.
pub enum TokenKey {
    Rsa(&'static str, RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl TokenKey {
    /// One that signs by this algorithm.
    pub fn new(algorithm: &'static str) -> Self {
        let random = SystemRandom::new();
        match algorithm {
            "ES256" => {
                let kind = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
                let pair = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
                Self::Ec(EcdsaKeyPair::from_pkcs8(kind, pair.as_ref(), &random).unwrap())
            }
            "EdDSA" => {
                let pair = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Self::Ed(Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap())
            }
            rsa => Self::Rsa(rsa, RsaKeyPair::from_pkcs8(RSA).unwrap()),
        }
    }

    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(algorithm, _) => algorithm,
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(algorithm, pair) => {
                let how: &dyn signature::RsaEncoding =
                    if *algorithm == "PS256" { &signature::RSA_PSS_SHA256 } else { &signature::RSA_PKCS1_SHA256 };
                let mut signed = vec![0; pair.public().modulus_len()];
                pair.sign(how, &random, message, &mut signed).unwrap();
                signed
            }
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// As it is published.
    pub fn public(&self, id: &str) -> Value {
        match self {
            Self::Rsa(_, pair) => {
                let public = signature::RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "kid": id, "use": "sig", "n": base64_url(public.n), "e": base64_url(public.e) })
            }
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({
                    "kty": "EC", "crv": "P-256", "kid": id, "x": base64_url(&point[1..33]), "y": base64_url(&point[33..]),
                })
            }
            Self::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "alg": "EdDSA", "x": base64_url(pair.public_key()) })
            }
        }
    }

    /// A token with this header and these claims.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", base64_url(header.to_string()), base64_url(claims.to_string()));
        format!("{signed}.{}", base64_url(self.sign(signed.as_bytes())))
    }
}
