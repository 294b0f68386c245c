//! An authorization server for tests: keys of each kind, and what it publishes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
use serde_json::{Value, json};
use toolhost_contract::{BoxFuture, ErrorKind, ToolError};
use toolhost_server::http::Documents;

pub(crate) const ISSUER: &str = "https://id.example/realm";
/// A key for tests alone.
const RSA: &[u8] = include_bytes!("data/test-rsa-2048.pk8");

pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) enum Key {
    Rsa(&'static str, RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Key {
    /// One that signs by this algorithm.
    pub(crate) fn new(algorithm: &'static str) -> Self {
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

    pub(crate) fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(algorithm, _) => algorithm,
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
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
    pub(crate) fn public(&self, id: &str) -> Value {
        match self {
            Self::Rsa(_, pair) => {
                let public = signature::RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "kid": id, "use": "sig", "n": encoded(public.n), "e": encoded(public.e) })
            }
            Self::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({
                    "kty": "EC", "crv": "P-256", "kid": id, "x": encoded(&point[1..33]), "y": encoded(&point[33..]),
                })
            }
            Self::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "alg": "EdDSA", "x": encoded(pair.public_key()) })
            }
        }
    }

    /// A token with this header and these claims.
    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        format!("{signed}.{}", encoded(self.sign(signed.as_bytes())))
    }
}

/// What an authorization server publishes, and how often it was asked.
pub(crate) struct Issuer {
    pub(crate) keys: Mutex<Vec<Value>>,
    pub(crate) is_down: AtomicBool,
    pub(crate) asked: AtomicUsize,
    /// Whom it says to be.
    pub(crate) name: Mutex<String>,
}

impl Issuer {
    pub(crate) fn of(keys: Vec<Value>) -> Self {
        let (is_down, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self { keys: Mutex::new(keys), is_down, asked, name: Mutex::new(ISSUER.to_owned()) }
    }
}

impl Documents for Issuer {
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Value, ToolError>> {
        let found = match url {
            _ if self.is_down.load(Ordering::SeqCst) => Err(ToolError::new(ErrorKind::Timeout, "it is down")),
            "https://id.example/.well-known/oauth-authorization-server/realm" => {
                Ok(json!({ "issuer": *self.name.lock().unwrap(), "jwks_uri": "https://id.example/keys" }))
            }
            "https://id.example/keys" => {
                self.asked.fetch_add(1, Ordering::SeqCst);
                Ok(json!({ "keys": *self.keys.lock().unwrap() }))
            }
            _ => Err(ToolError::new(ErrorKind::NotFound, "404")),
        };
        Box::pin(async { found })
    }
}
