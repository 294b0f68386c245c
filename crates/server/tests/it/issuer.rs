//! An authorization server for tests: what it publishes, and how often it was asked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolhost_contract::{BoxFuture, ErrorKind, ToolError};
use toolhost_server::http::Documents;

pub(crate) const ISSUER: &str = "https://id.example/realm";

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
