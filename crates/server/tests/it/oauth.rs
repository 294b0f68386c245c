//! Tokens of an authorization server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use toolhost_contract::Clock;
use toolhost_server::http::{HttpLimits, OauthConfig, OauthLimits};
use toolhost_testkit::{HttpReply, TokenKey as Key, base64_url as encoded, http};

use crate::issuer::{ISSUER, Issuer};
use crate::rig::{Rig, house};

const PUBLIC: &str = "https://tools.example";
const ALL: &str = "toolhost:call toolhost:read toolhost:profile:all";

struct Oauth {
    rig: Rig,
    issuer: Arc<Issuer>,
    key: Key,
}

impl Oauth {
    async fn new(projects: usize) -> Self {
        Self::with(projects, Key::new("ES256"), |_| {}).await
    }

    async fn with(projects: usize, key: Key, change: impl FnOnce(&mut OauthConfig)) -> Self {
        let issuer = Arc::new(Issuer::of(vec![key.public("k1")]));
        let documents = Arc::<Issuer>::clone(&issuer);
        let mut config = OauthConfig {
            issuer: ISSUER.to_owned(),
            public_url: PUBLIC.to_owned(),
            audiences: Vec::new(),
            user_claim: "sub".to_owned(),
            refused_users: Vec::new(),
            scopes: Vec::new(),
            login: None,
            documents,
            limits: OauthLimits::default(),
        };
        change(&mut config);
        let houses = (0..projects).map(|_| house()).collect();
        Self { rig: Rig::start_with(houses, HttpLimits::default(), Some(config)).await, issuer, key }
    }

    fn seconds(&self) -> i64 {
        self.rig.houses[0].clock.unix_ms() / 1000
    }

    /// What a good token says.
    fn claims(&self, scope: &str) -> Value {
        json!({
            "iss": ISSUER, "sub": "local", "aud": PUBLIC, "iat": self.seconds(), "exp": self.seconds() + 600,
            "client_id": "an-agent", "scope": scope,
        })
    }

    fn header(&self) -> Value {
        json!({ "alg": self.key.algorithm(), "kid": "k1", "typ": "at+jwt" })
    }

    fn token(&self, claims: &Value) -> String {
        self.key.token(&self.header(), claims)
    }

    async fn tools(&self, token: &str) -> HttpReply {
        self.rig.send(token, ("GET", "/api/v1/projects/p0/tools"), "").await
    }
}

#[tokio::test]
async fn clients_find_out_where_tokens_come_from_and_nothing_else_is_there() {
    let oauth = Oauth::new(1).await;
    let at = oauth.rig.address;
    let well_known = "/.well-known/oauth-protected-resource";
    for (path, resource) in [
        (well_known.to_owned(), PUBLIC.to_owned()),
        (format!("{well_known}/mcp"), format!("{PUBLIC}/mcp")),
        (format!("/mcp{well_known}"), format!("{PUBLIC}/mcp")),
        (format!("{well_known}/mcp/p0/all"), format!("{PUBLIC}/mcp/p0/all")),
    ] {
        let reply = http(at, ("GET", &path), &[("mcp-protocol-version", "2024-11-05")], "").await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        assert_eq!(
            (&reply.json()["resource"], &reply.json()["authorization_servers"]),
            (&json!(resource), &json!([ISSUER]))
        );
    }
    // What clients try besides: a client that gets anything but 404 for it believes that something is there.
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration/mcp",
        "/mcp/.well-known/openid-configuration",
        "/mcp/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource/api/v1",
    ] {
        assert_eq!(http(at, ("GET", path), &[], "").await.status, 404, "{path}");
    }
    let reply = http(at, ("POST", "/mcp"), &[], "{}").await;
    let challenge = reply.header("www-authenticate").unwrap();
    assert_eq!(reply.status, 401);
    assert_eq!(
        challenge,
        "Bearer resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\", scope=\"toolhost:call\""
    );
}

#[tokio::test]
async fn without_an_authorization_server_there_is_no_metadata() {
    let rig = Rig::one().await;
    for path in ["/.well-known/oauth-protected-resource", "/mcp/.well-known/oauth-protected-resource"] {
        assert_eq!(http(rig.address, ("GET", path), &[], "").await.status, 404, "{path}");
    }
    let key = Key::new("ES256");
    let token = key
        .token(&json!({ "alg": "ES256" }), &json!({ "iss": ISSUER, "sub": "local", "exp": i64::MAX, "aud": PUBLIC }));
    assert_eq!(rig.send(&token, ("GET", "/api/v1/projects"), "").await.status, 401);
}

#[tokio::test]
async fn a_token_of_each_algorithm_opens_what_its_scopes_say_in_the_name_of_its_user() {
    for algorithm in ["RS256", "PS256", "ES256", "EdDSA"] {
        let oauth = Oauth::with(1, Key::new(algorithm), |_| {}).await;
        let token = oauth.token(&oauth.claims(ALL));
        oauth.rig.houses[0].workspace.write("a.txt", "x");
        let reply = oauth.rig.call(&token, "file.read", json!({ "path": "a.txt" })).await;
        assert_eq!(reply.status, 200, "{algorithm}: {reply:?}");
        let row = oauth.rig.houses[0].rows().await.pop().unwrap();
        assert_eq!((&row["userId"], &row["caller"]["persona"]), (&json!(1), &json!("an-agent")), "{row}");
        assert!(row["sessionId"].as_str().unwrap().starts_with("oauth:"), "{row}");
        let initialize = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } },
        });
        let accept = [("accept", "application/json, text/event-stream")];
        let opened = oauth.rig.send_with(&token, ("POST", "/mcp/p0/all"), &accept, &initialize.to_string()).await;
        assert_eq!(opened.status, 200, "{algorithm}: {opened:?}");
    }
}

#[tokio::test]
async fn audiences_that_clients_send_for_this_server_are_its_own() {
    let oauth = Oauth::with(1, Key::new("ES256"), |config| config.audiences.push("api://toolhost".to_owned())).await;
    let with = |audience: Value| {
        let mut claims = oauth.claims(ALL);
        claims["aud"] = audience;
        oauth.token(&claims)
    };
    for own in [
        json!(PUBLIC),
        json!(format!("{PUBLIC}/")),
        json!(format!("{PUBLIC}/mcp")),
        json!(format!("{PUBLIC}/mcp/p0/all")),
        json!("api://toolhost"),
        json!(["https://other.example", PUBLIC]),
    ] {
        assert_eq!(oauth.tools(&with(own.clone())).await.status, 200, "{own}");
    }
    for other in [
        json!("https://other.example"),
        json!("https://tools.example.evil.example"),
        json!("https://tools.example@evil.example/mcp"),
        json!(format!("{PUBLIC}/admin")),
        json!(""),
        json!([]),
        json!(null),
        json!({ "a": PUBLIC }),
    ] {
        assert_eq!(oauth.tools(&with(other.clone())).await.status, 401, "{other}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_token_opens_nothing() {
    let oauth = Oauth::new(1).await;
    let now = oauth.seconds();
    let good = oauth.claims(ALL);
    let changed = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        oauth.token(&claims)
    };
    let without = |name: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(name);
        oauth.token(&claims)
    };
    let headed = |header: Value| oauth.key.token(&header, &good);
    let whole = oauth.token(&good);
    assert_eq!(oauth.tools(&whole).await.status, 200);
    let (signed, signature) = whole.rsplit_once('.').unwrap();
    let other_claims = oauth.claims("toolhost:manage toolhost:approve");
    let unsigned = |alg: &str| format!("{}.{}.", encoded(json!({ "alg": alg }).to_string()), encoded(good.to_string()));
    let stranger = Key::new("ES256");
    let wrong = [
        ("no algorithm", unsigned("none")),
        ("no algorithm, spelled otherwise", unsigned("nOnE")),
        ("no signature", format!("{signed}.")),
        ("another's signature", stranger.token(&oauth.header(), &good)),
        (
            "other claims",
            format!("{}.{}.{signature}", signed.split_once('.').unwrap().0, encoded(other_claims.to_string())),
        ),
        ("a shared secret", headed(json!({ "alg": "HS256", "kid": "k1" }))),
        ("another algorithm", headed(json!({ "alg": "RS256", "kid": "k1" }))),
        ("an unknown key", headed(json!({ "alg": "ES256", "kid": "k2" }))),
        ("a key of its own", headed(json!({ "alg": "ES256", "kid": "k9", "jwk": stranger.public("k9") }))),
        ("an extension", headed(json!({ "alg": "ES256", "kid": "k1", "crit": ["b64"], "b64": false }))),
        ("another kind", headed(json!({ "alg": "ES256", "kid": "k1", "typ": "logout+jwt" }))),
        ("it has expired", changed("exp", json!(now - 61))),
        ("no end", without("exp")),
        ("an end that is no number", changed("exp", json!("9999999999"))),
        ("not yet", changed("nbf", json!(now + 61))),
        ("of the future", changed("iat", json!(now + 61))),
        ("of another issuer", changed("iss", json!("https://id.example/other"))),
        ("no audience", without("aud")),
        ("no user", without("sub")),
        ("four parts", format!("{whole}.x")),
        ("encrypted", format!("{whole}.x.y")),
        ("huge", changed("more", json!("x".repeat(20_000)))),
        ("padding", format!("{whole}=")),
    ];
    for (what, token) in wrong {
        let reply = oauth.tools(&token).await;
        assert!(matches!(reply.status, 401 | 431), "{what}: {reply:?}");
        let challenge = reply.header("www-authenticate").unwrap_or_default();
        assert!(reply.status == 431 || challenge.starts_with("Bearer error=\"invalid_token\""), "{what}: {challenge}");
    }
    // Clocks may be a minute apart.
    assert_eq!(oauth.tools(&changed("exp", json!(now - 30))).await.status, 200);
}

#[tokio::test]
async fn a_token_for_the_address_of_one_project_opens_no_other_and_some_users_have_none() {
    let oauth = Oauth::with(2, Key::new("ES256"), |config| config.refused_users.push("root".to_owned())).await;
    let mut claims = oauth.claims(ALL);
    claims["aud"] = json!([format!("{PUBLIC}/mcp/p1"), "https://other.example"]);
    assert_eq!(oauth.tools(&oauth.token(&claims)).await.status, 404);
    claims["aud"] = json!([format!("{PUBLIC}/mcp/p0/all")]);
    assert_eq!(oauth.tools(&oauth.token(&claims)).await.status, 200);
    claims["sub"] = json!("root");
    assert_eq!(oauth.tools(&oauth.token(&claims)).await.status, 401);
}

#[tokio::test]
async fn too_few_scopes_are_named_with_all_that_the_next_token_needs() {
    let oauth = Oauth::new(1).await;
    let token = oauth.token(&oauth.claims(ALL));
    let reply = oauth.rig.send(&token, ("GET", "/api/v1/projects/p0/tokens"), "").await;
    assert_eq!(reply.status, 403, "{reply:?}");
    let challenge = reply.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer error=\"insufficient_scope\""), "{challenge}");
    assert!(challenge.ends_with("scope=\"toolhost:call toolhost:read toolhost:manage\""), "{challenge}");
    // Without a scope for it, no profile and no right.
    let bare = oauth.token(&oauth.claims("openid profile toolhost:everything toolhost:profile:none"));
    assert_eq!(oauth.tools(&bare).await.status, 403);
    let given = Oauth::with(1, Key::new("ES256"), |config| {
        config.scopes = ["toolhost:call", "toolhost:profile:all"].map(str::to_owned).to_vec();
    })
    .await;
    assert_eq!(given.tools(&given.token(&given.claims("openid"))).await.status, 200);
}

#[tokio::test]
async fn a_user_who_is_no_member_and_a_project_that_is_not_there_are_one_answer() {
    let oauth = Oauth::new(2).await;
    let mut claims = oauth.claims(ALL);
    let member = oauth.token(&claims);
    claims["sub"] = json!("stranger");
    let stranger = oauth.token(&claims);
    let body = |reply: HttpReply| (reply.status, reply.body);
    let nowhere = body(oauth.rig.send(&member, ("GET", "/api/v1/projects/none/tools"), "").await);
    assert_eq!(nowhere.0, 404);
    assert_eq!(body(oauth.tools(&stranger).await), nowhere);
    // Of two projects one has to be named.
    assert_eq!(body(oauth.rig.send(&member, ("GET", "/api/v1/projects"), "").await), nowhere);
    assert_eq!(oauth.tools(&member).await.status, 200);
}

#[tokio::test]
async fn a_member_who_is_taken_from_the_project_is_out_within_a_second() {
    let oauth = Oauth::new(1).await;
    let house = &oauth.rig.houses[0];
    let people = house.store.people();
    let user = people.add_user("anna").await.unwrap();
    people.set_role(house.project.id, user, toolhost_store::Role::Editor).await.unwrap();
    let mut claims = oauth.claims(ALL);
    claims["sub"] = json!("anna");
    let token = oauth.token(&claims);
    assert_eq!(oauth.tools(&token).await.status, 200);
    people.remove(house.project.id, user).await.unwrap();
    oauth.rig.advance(1_001);
    assert_eq!(oauth.tools(&token).await.status, 404);
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_when_they_change() {
    let oauth = Oauth::new(1).await;
    let asked = || oauth.issuer.asked.load(Ordering::SeqCst);
    let (first, second) = (oauth.token(&oauth.claims(ALL)), Key::new("EdDSA"));
    for _ in 0..3 {
        oauth.rig.advance(1_001);
        assert_eq!(oauth.tools(&first).await.status, 200);
    }
    assert_eq!(asked(), 1);
    *oauth.issuer.keys.lock().unwrap() = vec![second.public("k2")];
    let of_second = second.token(&json!({ "alg": "EdDSA", "kid": "k2" }), &oauth.claims(ALL));
    oauth.rig.advance(60_000);
    assert_eq!(oauth.tools(&of_second).await.status, 200);
    // The key is published no more.
    oauth.rig.advance(1_001);
    assert_eq!((oauth.tools(&first).await.status, asked()), (401, 2));
    // Keys that nobody has are looked for once a minute, however many tokens name one.
    for number in 0..20 {
        let header = json!({ "alg": "EdDSA", "kid": format!("k{number}x") });
        oauth.tools(&second.token(&header, &oauth.claims(ALL))).await;
    }
    assert_eq!(asked(), 2);
}

#[tokio::test]
async fn while_the_authorization_server_is_down_its_keys_hold_for_an_hour() {
    let oauth = Oauth::new(1).await;
    let lasting = |oauth: &Oauth| {
        let mut claims = oauth.claims(ALL);
        claims["exp"] = json!(oauth.seconds() + 10_000);
        oauth.token(&claims)
    };
    let token = lasting(&oauth);
    assert_eq!(oauth.tools(&token).await.status, 200);
    oauth.issuer.is_down.store(true, Ordering::SeqCst);
    oauth.rig.advance(1_800_000);
    assert_eq!(oauth.tools(&token).await.status, 200);
    oauth.rig.advance(1_800_000);
    let reply = oauth.tools(&token).await;
    assert_eq!(reply.status, 503, "{reply:?}");
    oauth.issuer.is_down.store(false, Ordering::SeqCst);
    oauth.rig.advance(60_000);
    assert_eq!(oauth.tools(&token).await.status, 200);
}

#[tokio::test]
async fn keys_of_a_server_that_says_to_be_another_are_not_believed() {
    let oauth = Oauth::new(1).await;
    *oauth.issuer.name.lock().unwrap() = "https://evil.example".to_owned();
    assert_eq!(oauth.tools(&oauth.token(&oauth.claims(ALL))).await.status, 503);
    assert_eq!(oauth.issuer.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_name_of_a_user_can_stand_in_another_claim_and_an_address_must_be_verified() {
    let oauth = Oauth::with(1, Key::new("ES256"), |config| config.user_claim = "email".to_owned()).await;
    let with = |email: &str, verified: Value| {
        let mut claims = oauth.claims(ALL);
        (claims["sub"], claims["email"], claims["email_verified"]) = (json!("local"), json!(email), verified);
        oauth.token(&claims)
    };
    assert_eq!(oauth.tools(&with("local", json!(true))).await.status, 200);
    for verified in [json!(false), json!(null), json!("true")] {
        assert_eq!(oauth.tools(&with("local", verified)).await.status, 401);
    }
    assert_eq!(oauth.tools(&with("someone@else.example", json!(true))).await.status, 404);
}
