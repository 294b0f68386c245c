//! People sign in at an identity provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::Clock;
use toolhost_server::http::{HttpLimits, LoginClient, OauthConfig, OauthLimits};
use toolhost_testkit::{HttpReply, TokenKey as Key, base64_url, http};

use crate::issuer::{ISSUER, Issuer};
use crate::rig::{Rig, house};

const CLIENT: &str = "toolhost";
const CALLBACK: &str = "/login/openid/callback";

struct Provider {
    rig: Rig,
    issuer: Arc<Issuer>,
    key: Key,
}

/// What is wrong with a token.
type Change = fn(&mut Value);

/// A login under way in a browser.
struct Begun {
    cookie: String,
    /// What the provider was asked.
    asked: BTreeMap<String, String>,
}

fn pairs(query: &str) -> BTreeMap<String, String> {
    let decoded = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
    query.split('&').map(|pair| pair.split_once('=').unwrap()).map(|(n, v)| (n.to_owned(), decoded(v))).collect()
}

fn cookie(reply: &HttpReply, name: &str) -> Option<String> {
    let set = reply.headers.iter().filter(|(header, _)| header == "set-cookie");
    let set = set.map(|(_, value)| value.split(';').next().unwrap());
    set.filter(|pair| pair.starts_with(&format!("{name}="))).map(str::to_owned).next()
}

impl Provider {
    async fn new() -> Self {
        Self::with(Some("s3cret"), |_| {}).await
    }

    async fn with(secret: Option<&str>, change: impl FnOnce(&mut OauthConfig)) -> Self {
        let key = Key::new("ES256");
        let issuer = Arc::new(Issuer::of(vec![key.public("k1")]));
        let documents = Arc::<Issuer>::clone(&issuer);
        let mut config = OauthConfig {
            issuer: ISSUER.to_owned(),
            public_url: "http://localhost".to_owned(),
            audiences: Vec::new(),
            user_claim: "preferred_username".to_owned(),
            refused_users: vec!["root".to_owned()],
            scopes: Vec::new(),
            login: Some(LoginClient { id: CLIENT.to_owned(), secret: secret.map(str::to_owned) }),
            documents,
            limits: OauthLimits::default(),
        };
        change(&mut config);
        Self { rig: Rig::start_with(vec![house()], HttpLimits::default(), Some(config)).await, issuer, key }
    }

    async fn get(&self, path: &str, cookie: &str) -> HttpReply {
        // As a browser does that comes back from another site.
        let site = if path.starts_with(CALLBACK) { "cross-site" } else { "same-origin" };
        let headers = [("cookie", cookie), ("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
        http(self.rig.address, ("GET", path), &headers, "").await
    }

    async fn begin(&self) -> Begun {
        let reply = self.get("/login/openid", "").await;
        assert_eq!(reply.status, 303, "{reply:?}");
        let address = reply.header("location").unwrap();
        let query =
            address.strip_prefix("https://id.example/authorize?tenant=1&").unwrap_or_else(|| unreachable!("{address}"));
        Begun { cookie: cookie(&reply, "toolhost-signing-in-80").unwrap(), asked: pairs(query) }
    }

    fn claims(&self, begun: &Begun) -> Value {
        let now = self.rig.houses[0].clock.unix_ms() / 1000;
        json!({
            "iss": ISSUER, "sub": "u-17", "aud": CLIENT, "iat": now, "exp": now + 300, "auth_time": now,
            "nonce": begun.asked["nonce"], "preferred_username": "local",
        })
    }

    fn answers(&self, claims: &Value) {
        let token = self.key.token(&json!({ "alg": "ES256", "kid": "k1" }), claims);
        *self.issuer.answer.lock().unwrap() = json!({ "id_token": token, "access_token": "x", "token_type": "Bearer" });
    }

    async fn come_back(&self, begun: &Begun) -> HttpReply {
        let path = format!("{CALLBACK}?code=c0de&state={}&iss=x", begun.asked["state"]);
        self.get(&path, &begun.cookie).await
    }

    /// What comes of a login whose token says this.
    async fn tried(&self, change: impl FnOnce(&mut Value)) -> HttpReply {
        let begun = self.begin().await;
        let mut claims = self.claims(&begun);
        change(&mut claims);
        self.answers(&claims);
        self.come_back(&begun).await
    }
}

#[tokio::test]
async fn a_person_signs_in_with_a_code_that_only_this_browser_and_server_can_use() {
    let provider = Provider::new().await;
    assert!(provider.get("/login", "").await.body.contains("href=\"/login/openid\""));
    let begun = provider.begin().await;
    let asked = |name: &str| begun.asked[name].as_str();
    assert_eq!(
        (asked("response_type"), asked("client_id"), asked("redirect_uri"), asked("scope")),
        ("code", CLIENT, "http://localhost/login/openid/callback", "openid profile email")
    );
    assert_eq!((asked("code_challenge_method"), asked("max_age")), ("S256", "300"));
    provider.answers(&provider.claims(&begun));
    let back = provider.come_back(&begun).await;
    assert_eq!((back.status, back.header("location")), (303, Some("/")), "{back:?}");
    assert_eq!(cookie(&back, "toolhost-signing-in-80").unwrap(), "toolhost-signing-in-80=", "it is used up");
    let login = cookie(&back, "toolhost-80").unwrap();
    let inbox = provider.get("/", &login).await;
    assert!(inbox.status == 200 && inbox.body.contains("<span>local</span>"), "{}", inbox.body);

    let (form, client) = provider.issuer.forms.lock().unwrap().pop().unwrap();
    let form: BTreeMap<_, _> = form.into_iter().collect();
    assert_eq!(client.as_deref(), Some("toolhost:s3cret"));
    assert_eq!((&*form["grant_type"], &*form["code"]), ("authorization_code", "c0de"));
    assert_eq!(form["redirect_uri"], "http://localhost/login/openid/callback");
    assert_eq!(base64_url(Sha256::digest(form["code_verifier"].as_bytes())), asked("code_challenge"));
    let other = provider.begin().await;
    for part in ["state", "nonce", "code_challenge"] {
        assert_ne!(other.asked[part], begun.asked[part], "each login has its own");
    }
}

#[tokio::test]
async fn a_public_client_names_itself_and_has_no_secret() {
    let provider = Provider::with(None, |_| {}).await;
    assert_eq!(provider.tried(|_| {}).await.status, 303);
    let (form, client) = provider.issuer.forms.lock().unwrap().pop().unwrap();
    assert!(client.is_none() && form.contains(&("client_id".to_owned(), CLIENT.to_owned())));
}

#[tokio::test]
async fn a_token_that_is_not_for_this_login_signs_nobody_in() {
    let provider = Provider::new().await;
    assert_eq!(provider.tried(|_| {}).await.status, 303);
    let cases: &[(&str, Change)] = &[
        ("issuer", |claims| claims["iss"] = json!("https://evil.example")),
        ("client", |claims| claims["aud"] = json!("another")),
        ("own address", |claims| claims["aud"] = json!("http://localhost")),
        ("clients", |claims| claims["aud"] = json!([CLIENT, "another"])),
        ("party", |claims| claims["azp"] = json!("another")),
        ("nonce", |claims| claims["nonce"] = json!("another")),
        ("no nonce", |claims| drop(claims.as_object_mut().unwrap().remove("nonce"))),
        ("expired", |claims| claims["exp"] = json!(claims["iat"].as_i64().unwrap() - 61)),
        ("later", |claims| claims["iat"] = json!(claims["iat"].as_i64().unwrap() + 120)),
        ("long ago", |claims| claims["auth_time"] = json!(claims["iat"].as_i64().unwrap() - 361)),
        ("no time", |claims| drop(claims.as_object_mut().unwrap().remove("auth_time"))),
        ("no number", |claims| claims["auth_time"] = json!("x")),
        ("tomorrow", |claims| claims["auth_time"] = json!(claims["iat"].as_i64().unwrap() + 61)),
        ("no user", |claims| drop(claims.as_object_mut().unwrap().remove("preferred_username"))),
        ("a user whom nobody may be", |claims| claims["preferred_username"] = json!("root")),
        ("a name that deceives", |claims| claims["preferred_username"] = json!("lo\u{202e}cal")),
    ];
    for (what, change) in cases {
        let reply = provider.tried(change).await;
        assert_eq!(reply.status, 403, "{what}: {reply:?}");
        assert_eq!(cookie(&reply, "toolhost-80"), None, "{what}");
    }
    let both = provider.tried(|claims| {
        claims["aud"] = json!([CLIENT, "another"]);
        claims["azp"] = json!(CLIENT);
    });
    assert_eq!(both.await.status, 303);
}

#[tokio::test]
async fn a_token_of_another_key_or_none_signs_nobody_in() {
    let provider = Provider::new().await;
    let begun = provider.begin().await;
    let claims = provider.claims(&begun);
    for token in [
        Key::new("ES256").token(&json!({ "alg": "ES256", "kid": "k1" }), &claims),
        format!("{}.{}.", base64_url(r#"{"alg":"none"}"#), base64_url(claims.to_string())),
        "x".to_owned(),
    ] {
        *provider.issuer.answer.lock().unwrap() = json!({ "id_token": token });
        let reply = provider.come_back(&begun).await;
        assert_eq!((reply.status, cookie(&reply, "toolhost-80")), (403, None), "{reply:?}");
    }
    for answer in [json!({}), json!({ "id_token": 7 }), Value::Null] {
        *provider.issuer.answer.lock().unwrap() = answer;
        let reply = provider.come_back(&begun).await;
        assert!(reply.status >= 400 && cookie(&reply, "toolhost-80").is_none(), "{reply:?}");
    }
}

#[tokio::test]
async fn an_answer_belongs_to_the_browser_that_asked() {
    let provider = Provider::new().await;
    let (mine, theirs) = (provider.begin().await, provider.begin().await);
    provider.answers(&provider.claims(&theirs));
    let state = &theirs.asked["state"];
    for (cookie, state) in
        [(mine.cookie.as_str(), state.as_str()), ("", state), (&theirs.cookie, ""), (&theirs.cookie, "x")]
    {
        let reply = provider.get(&format!("{CALLBACK}?code=c0de&state={state}"), cookie).await;
        assert_eq!(reply.status, 403, "{cookie} {state}: {reply:?}");
    }
    assert!(provider.issuer.forms.lock().unwrap().is_empty(), "the code was not given away");
    assert_eq!(provider.come_back(&theirs).await.status, 303);
}

#[tokio::test]
async fn what_the_provider_refuses_is_said_as_text() {
    let provider = Provider::new().await;
    let begun = provider.begin().await;
    let path = format!("{CALLBACK}?error=%3Cscript%3E&state={}", begun.asked["state"]);
    let reply = provider.get(&path, &begun.cookie).await;
    assert!(reply.status == 403 && reply.body.contains("&#60;script&#62;"), "{}", reply.body);
    provider.issuer.is_down.store(true, std::sync::atomic::Ordering::SeqCst);
    provider.rig.advance(3_600_000);
    let down = provider.get("/login/openid", "").await;
    assert_eq!(down.status, 503, "{down:?}");
}

#[tokio::test]
async fn where_nobody_signs_in_elsewhere_there_is_no_such_page() {
    let rig = Rig::one().await;
    for path in ["/login/openid", "/login/openid/callback?code=x&state=y"] {
        assert_eq!(http(rig.address, ("GET", path), &[], "").await.status, 404, "{path}");
    }
    assert!(!http(rig.address, ("GET", "/login"), &[], "").await.body.contains("/login/openid"));
}
