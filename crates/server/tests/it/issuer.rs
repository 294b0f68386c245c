//! An authorization server for tests: what it publishes, and how often it was asked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolhost_contract::{BoxFuture, ErrorKind, ToolError};
use toolhost_server::http::Documents;

pub(crate) const ISSUER: &str = "https://id.example/realm";

/// Names and values.
pub(crate) type Form = Vec<(String, String)>;

/// What an authorization server publishes, and how often it was asked.
pub(crate) struct Issuer {
    pub(crate) keys: Mutex<Vec<Value>>,
    pub(crate) is_down: AtomicBool,
    pub(crate) asked: AtomicUsize,
    /// Forms that were sent to it, with who sent them.
    pub(crate) forms: Mutex<Vec<(Form, Option<String>)>>,
    /// What it answers to them.
    pub(crate) answer: Mutex<Value>,
    /// Whom it says to be.
    pub(crate) name: Mutex<String>,
}

impl Issuer {
    pub(crate) fn of(keys: Vec<Value>) -> Self {
        let (is_down, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (forms, answer, name) = (Mutex::default(), Mutex::default(), Mutex::new(ISSUER.to_owned()));
        Self { keys: Mutex::new(keys), is_down, asked, forms, answer, name }
    }
}

impl Documents for Issuer {
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Value, ToolError>> {
        let found = match url {
            _ if self.is_down.load(Ordering::SeqCst) => Err(ToolError::new(ErrorKind::Timeout, "it is down")),
            "https://id.example/.well-known/oauth-authorization-server/realm" => Ok(json!({
                "issuer": *self.name.lock().unwrap(), "jwks_uri": "https://id.example/keys",
                "authorization_endpoint": "https://id.example/authorize?tenant=1",
                "token_endpoint": "https://id.example/token",
            })),
            "https://id.example/keys" => {
                self.asked.fetch_add(1, Ordering::SeqCst);
                Ok(json!({ "keys": *self.keys.lock().unwrap() }))
            }
            _ => Err(ToolError::new(ErrorKind::NotFound, "404")),
        };
        Box::pin(async { found })
    }

    fn post<'a>(
        &'a self,
        url: &'a str,
        form: &'a [(&'a str, &'a str)],
        client: Option<(&'a str, &'a str)>,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        assert_eq!(url, "https://id.example/token");
        let form = form.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let client = client.map(|(name, secret)| format!("{name}:{secret}"));
        self.forms.lock().unwrap().push((form, client));
        let found = match &*self.answer.lock().unwrap() {
            Value::Null => Err(ToolError::new(ErrorKind::Io, "it answered with the status 400")),
            answer => Ok(answer.clone()),
        };
        Box::pin(async { found })
    }
}
