//! One token: its form, its signature, its claims.
//!
//! Nothing of a token is believed before its signature holds, but for which key it names. The algorithm is one that belongs to the kind
//! of the key: a token that names another is refused, and `none` and those of shared secrets belong to no key (RFC 8725, section 3.1).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolhost_contract::ToolError;

/// Characters of what a claim says of a user or a client.
const NAME_CHARS_MAX: usize = 200;

/// Why a token opens nothing.
#[derive(Debug)]
pub(crate) enum Refused {
    Invalid(&'static str),
    /// Whether it is valid cannot be told now.
    Failed(ToolError),
}

/// A key of the authorization server, as it publishes it (RFC 7517).
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Key {
    kty: String,
    pub(crate) kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

/// A token whose signature was not checked.
pub(crate) struct Jwt<'t> {
    header: Header,
    /// What is signed.
    signed: &'t str,
    claims: &'t str,
    signature: Vec<u8>,
}

/// What a token says that its issuer has signed (RFC 7519, RFC 9068).
#[derive(Debug, Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) sub: String,
    pub(crate) exp: i64,
    pub(crate) nbf: Option<i64>,
    pub(crate) iat: Option<i64>,
    aud: Value,
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl<'t> Jwt<'t> {
    /// # Errors
    /// If it is no signed JWT in the compact form (RFC 7515, section 7.1).
    pub(crate) fn parse(text: &'t str, bytes_max: usize) -> Result<Self, Refused> {
        let form = || Refused::Invalid("it is no token that this server knows");
        if text.len() > bytes_max {
            return Err(Refused::Invalid("it is too long"));
        }
        let (signed, signature) = text.rsplit_once('.').ok_or_else(form)?;
        let (header, claims) = signed.split_once('.').ok_or_else(form)?;
        if claims.contains('.') {
            return Err(form());
        }
        let header: Header = serde_json::from_slice(&decoded(header).ok_or_else(form)?).map_err(|_| form())?;
        // Extensions that a receiver must understand (RFC 7515, section 4.1.11); it understands none.
        if header.crit.is_some() {
            return Err(Refused::Invalid("it has extensions that this server does not know"));
        }
        let kinds = ["jwt", "at+jwt", "application/at+jwt"];
        if header.typ.as_ref().is_some_and(|typ| !kinds.iter().any(|kind| typ.eq_ignore_ascii_case(kind))) {
            return Err(Refused::Invalid("it is no access token"));
        }
        Ok(Self { header, signed, claims, signature: decoded(signature).ok_or_else(form)? })
    }

    pub(crate) fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// What it says, once one of the keys that it may be signed with has signed it.
    ///
    /// # Errors
    /// If none has, or a claim is missing.
    pub(crate) fn verified(self, keys: &[Key]) -> Result<Claims, Refused> {
        let named = |key: &&Key| self.header.kid.is_none() || key.kid == self.header.kid;
        let is_signed = keys.iter().filter(named).any(|key| key.has_signed(&self));
        if !is_signed {
            return Err(Refused::Invalid("no key of its issuer has signed it"));
        }
        let claims = decoded(self.claims).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        claims.ok_or(Refused::Invalid("its claims are not those of an access token"))
    }
}

impl Key {
    fn has_signed(&self, jwt: &Jwt<'_>) -> bool {
        let named = &*jwt.header.alg;
        let is_for_this = self.alg.as_deref().is_none_or(|alg| alg == named)
            && self.usage.as_deref().is_none_or(|usage| usage == "sig");
        is_for_this && self.verify(named, jwt.signed.as_bytes(), &jwt.signature).is_some()
    }

    /// `Some` if the signature is this key's.
    fn verify(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> Option<()> {
        let part = |text: &Option<String>| text.as_deref().and_then(decoded);
        let curve = self.crv.as_deref();
        let by = |algorithm: &'static dyn VerificationAlgorithm, key: Vec<u8>| {
            UnparsedPublicKey::new(algorithm, key).verify(message, signature).ok()
        };
        match (&*self.kty, algorithm, curve) {
            ("RSA", algorithm, _) => {
                let parameters = match algorithm {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                    "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
                    "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return None,
                };
                let key = signature::RsaPublicKeyComponents { n: part(&self.n)?, e: part(&self.e)? };
                key.verify(parameters, message, signature).ok()
            }
            ("EC", "ES256", Some("P-256")) => {
                by(&signature::ECDSA_P256_SHA256_FIXED, point(part(&self.x)?, part(&self.y)?))
            }
            ("EC", "ES384", Some("P-384")) => {
                by(&signature::ECDSA_P384_SHA384_FIXED, point(part(&self.x)?, part(&self.y)?))
            }
            ("OKP", "EdDSA", Some("Ed25519")) => by(&signature::ED25519, part(&self.x)?),
            _ => None,
        }
    }
}

/// A point of a curve, uncompressed (SEC 1, section 2.3.3).
fn point(x: Vec<u8>, y: Vec<u8>) -> Vec<u8> {
    [vec![4], x, y].concat()
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

impl Claims {
    pub(crate) fn audiences(&self) -> Vec<&str> {
        match &self.aud {
            Value::String(one) => vec![one],
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// A claim that is a short text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = if name == "sub" { Some(&*self.sub) } else { self.more.get(name).and_then(Value::as_str) };
        text.filter(|text| !text.is_empty() && text.chars().count() <= NAME_CHARS_MAX).map(str::to_owned)
    }

    /// A claim that is a whole number.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.more.get(name).and_then(Value::as_i64)
    }

    pub(crate) fn is_email_verified(&self) -> Option<bool> {
        self.more.get("email_verified").and_then(Value::as_bool)
    }

    pub(crate) fn client(&self) -> Option<String> {
        ["client_id", "azp"].into_iter().find_map(|name| self.text(name))
    }

    /// `scope` (RFC 8693, section 4.2), or `scp` as some authorization servers write it.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let said = self.more.get("scope").or_else(|| self.more.get("scp"));
        match said {
            Some(Value::String(text)) => text.split(' ').map(str::to_owned).collect(),
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }
}
