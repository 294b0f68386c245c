//! Pages: who signs in with a link, what the cookie opens, and how a person answers in a browser.

use serde_json::json;
use toolhost_server::http::{HttpLimits, SignIn};
use toolhost_store::{LoginLife, Role};
use toolhost_testkit::{House, HttpReply, TempWorkspace, http};

use crate::rig::{Rig, house};

/// The one script of each page.
const SCRIPT: &str = "<script src=\"/static/toolhost.js\" defer></script>";
pub(crate) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
pub(crate) const OWN_PAGE: (&str, &str) = ("origin", "http://localhost");
pub(crate) const USER_NAME: &str = "local";
const HOUR: i64 = 3_600_000;

/// A browser, with what it sends each time.
pub(crate) struct Browser<'a> {
    pub(crate) rig: &'a Rig,
    pub(crate) cookie: String,
}

/// The address of a new link.
pub(crate) async fn link(house: &House, user: &str, minutes: u64) -> String {
    let (path, hash) = SignIn::new_link().unwrap();
    let lives = std::time::Duration::from_secs(60 * minutes);
    house.store.logins(LoginLife::default()).add_link(&hash, user, lives).await.unwrap();
    path
}

impl<'a> Browser<'a> {
    /// One that nobody has signed in with.
    pub(crate) fn fresh(rig: &'a Rig) -> Self {
        Self { rig, cookie: String::new() }
    }

    pub(crate) async fn signed_in(rig: &'a Rig, user: &str) -> Self {
        let mut browser = Self::fresh(rig);
        let path = link(&rig.houses[0], user, 10).await;
        let reply = browser.post(&path, "").await;
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{reply:?}");
        browser.keep(&reply);
        browser
    }

    pub(crate) fn keep(&mut self, reply: &HttpReply) {
        self.cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    }

    pub(crate) async fn get(&self, path: &str) -> HttpReply {
        self.send(("GET", path), &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, form: &str) -> HttpReply {
        self.send(("POST", path), &[OWN_PAGE, FORM], form).await
    }

    pub(crate) async fn send(&self, asked: (&str, &str), headers: &[(&str, &str)], body: &str) -> HttpReply {
        let cookie = [("cookie", self.cookie.as_str())];
        let cookie = if self.cookie.is_empty() { &cookie[..0] } else { &cookie };
        http(self.rig.address, asked, &[headers, cookie].concat(), body).await
    }

    async fn is_signed_in(&self) -> bool {
        let reply = self.get("/").await;
        assert!(matches!(reply.status, 200 | 401), "{reply:?}");
        assert_eq!(reply.status == 200, reply.body.contains("<h1>Inbox</h1>"), "{reply:?}");
        reply.status == 200
    }
}

/// What a form sends.
pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let encode =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
}

#[tokio::test]
async fn a_link_signs_one_browser_in_once_and_looking_at_it_uses_nothing_up() {
    let rig = Rig::one().await;
    let path = link(&rig.houses[0], USER_NAME, 10).await;
    let mut browser = Browser::fresh(&rig);
    for _ in 0..2 {
        let looked = browser.get(&path).await;
        assert_eq!((looked.status, looked.header("set-cookie")), (200, None), "{looked:?}");
        assert!(looked.body.contains("Sign in as local?"), "{}", looked.body);
    }
    let (first, second) = tokio::join!(browser.post(&path, ""), browser.post(&path, ""));
    let mut both = [first, second];
    both.sort_by_key(|reply| reply.status);
    assert_eq!([both[0].status, both[1].status], [303, 404], "{both:?}");
    let cookie = both[0].header("set-cookie").unwrap().to_owned();
    for needed in ["toolhost-80=", "; Path=/", "; HttpOnly", "; SameSite=Lax", "; Max-Age=604800"] {
        assert!(cookie.contains(needed), "{cookie}");
    }
    assert!(!cookie.contains(path.rsplit('/').next().unwrap()), "the secret of the link is another one");
    assert!(!browser.is_signed_in().await);
    browser.keep(&both[0]);
    assert!(browser.is_signed_in().await);
    assert!(browser.get("/").await.body.contains("<span>local</span>"));
}

#[tokio::test]
async fn a_link_that_is_too_old_signs_nobody_in() {
    let rig = Rig::one().await;
    let path = link(&rig.houses[0], USER_NAME, 10).await;
    rig.advance(10 * 60_000 - 1);
    assert_eq!(Browser::fresh(&rig).get(&path).await.status, 200);
    rig.advance(1);
    assert_eq!(Browser::fresh(&rig).get(&path).await.status, 404);
    assert_eq!(Browser::fresh(&rig).post(&path, "").await.status, 404);
}

#[tokio::test]
async fn an_address_that_guesses_links_has_to_wait() {
    let limits = HttpLimits { failed_logins: 3, ..HttpLimits::default() };
    let rig = Rig::start(vec![house()], limits).await;
    let browser = Browser::fresh(&rig);
    let mut found = Vec::new();
    for number in 0..5 {
        found.push(browser.get(&format!("/login/{number:064}")).await.status);
    }
    assert_eq!(found, [404, 404, 404, 429, 429]);
}

#[tokio::test]
async fn a_login_ends_when_it_was_not_used_for_long_and_at_last_in_any_case() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    rig.advance(12 * HOUR);
    assert!(!browser.is_signed_in().await, "nobody used it for twelve hours");
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    for _ in 0..15 {
        rig.advance(11 * HOUR);
        assert!(browser.is_signed_in().await);
    }
    rig.advance(3 * HOUR);
    assert!(!browser.is_signed_in().await, "seven days are over");
}

#[tokio::test]
async fn whoever_signs_out_or_is_signed_out_is_nobody() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let by_another = browser.send(("POST", "/logout"), &[FORM], "").await;
    assert_eq!(by_another.status, 403, "a page of another site cannot: {by_another:?}");
    assert!(browser.is_signed_in().await);
    let left = browser.post("/logout", "").await;
    assert_eq!((left.status, left.header("location")), (303, Some("/login")));
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"), "{left:?}");
    assert!(!browser.is_signed_in().await, "the secret is worth nothing any more");

    let (one, two) = (Browser::signed_in(&rig, USER_NAME).await, Browser::signed_in(&rig, USER_NAME).await);
    let unused = link(&rig.houses[0], USER_NAME, 10).await;
    assert_eq!(rig.houses[0].store.logins(LoginLife::default()).end_all(USER_NAME).await.unwrap(), 2);
    assert!(!one.is_signed_in().await && !two.is_signed_in().await);
    assert_eq!(one.get(&unused).await.status, 404);
}

#[tokio::test]
async fn who_signs_in_again_leaves_the_login_of_before() {
    let rig = Rig::one().await;
    let before = Browser::signed_in(&rig, USER_NAME).await;
    let mut browser = Browser { rig: &rig, cookie: before.cookie.clone() };
    let path = link(&rig.houses[0], USER_NAME, 10).await;
    browser.keep(&browser.post(&path, "").await);
    assert!(browser.is_signed_in().await && !before.is_signed_in().await);
    assert_ne!(browser.cookie, before.cookie);
}

#[tokio::test]
async fn a_cookie_that_another_server_may_have_set_is_nobodys() {
    let rig = Rig::one().await;
    let (ours, other) = (Browser::signed_in(&rig, USER_NAME).await, Browser::signed_in(&rig, USER_NAME).await);
    for cookie in [
        format!("{}; {}", ours.cookie, other.cookie),
        ours.cookie.replace("toolhost-80", "toolhost-81"),
        ours.cookie.to_uppercase(),
        format!("{}0", ours.cookie),
        "toolhost-80=".to_owned(),
    ] {
        let browser = Browser { rig: &rig, cookie };
        assert!(!browser.is_signed_in().await, "{}", browser.cookie);
    }
    let beside = Browser { rig: &rig, cookie: format!("a=b; {}; c", ours.cookie) };
    assert!(beside.is_signed_in().await);
}

#[tokio::test]
async fn a_form_is_taken_from_pages_of_this_server_alone() {
    let rig = Rig::one().await;
    let path = link(&rig.houses[0], USER_NAME, 10).await;
    let browser = Browser::fresh(&rig);
    for headers in [
        &[][..],
        &[("origin", "http://evil.example")],
        &[("origin", "null")],
        &[("origin", "https://localhost")],
        &[("origin", "http://localhost:81")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
        &[("sec-fetch-site", "same-site"), OWN_PAGE],
        &[("sec-fetch-site", "none"), OWN_PAGE],
    ] {
        let reply = browser.send(("POST", &path), &[headers, &[FORM]].concat(), "").await;
        assert_eq!((reply.status, reply.header("set-cookie")), (403, None), "{headers:?} {reply:?}");
    }
    // A link in a chat leads here, and a page of another site may load nothing.
    let followed = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(browser.send(("GET", &path), &followed, "").await.status, 200);
    let loaded = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
    assert_eq!(browser.send(("GET", &path), &loaded, "").await.status, 403);
    let own = [("sec-fetch-site", "same-origin"), FORM];
    assert_eq!(browser.send(("POST", &path), &own, "").await.status, 303);
}

#[tokio::test]
async fn a_cookie_opens_pages_and_a_token_the_api_and_neither_the_other() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    for path in ["/api/v1/projects", "/api/v1/projects/p0/asks", "/mcp"] {
        assert_eq!(browser.get(path).await.status, 401, "{path}");
    }
    let token = rig.token(&["call", "read", "run", "approve", "manage"]).await;
    assert_eq!(rig.send(&token, ("GET", "/"), "").await.status, 401);
}

#[tokio::test]
async fn no_page_can_be_framed_kept_or_made_to_run_code() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    for path in ["/", "/login", "/login/x", "/asks/p0/ask-1", "/asks/nope/ask-1", "/static/nope"] {
        let reply = browser.get(path).await;
        let policy = reply.header("content-security-policy").unwrap();
        for needed in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(needed), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("same-origin"), "{path}");
        let body = reply.body.replace(SCRIPT, "");
        assert!(!body.contains("<script") && !body.contains("style="), "{path}");
    }
    let style = browser.get("/static/toolhost.css").await;
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
}

/// A server whose agent asks before it writes, with a call that waits: the number of its ask.
async fn asked(arguments: serde_json::Value) -> (Rig, String, String) {
    let policy = "[[rules]]\ntool = \"file.write\"\ndecide = \"ask\"\n";
    let rig = Rig::start(vec![house().project_policy(policy), house()], HttpLimits::default()).await;
    let token = rig.token(&["call"]).await;
    let reply = rig.call(&token, "file.write", arguments).await;
    let ask = reply.json()["data"]["approvalId"].as_str().unwrap_or_else(|| unreachable!("{reply:?}")).to_owned();
    (rig, token, ask)
}

/// The digest that stands in the form of a page.
pub(crate) fn digest(page: &HttpReply) -> String {
    let at = page.body.split("name=\"digest\" value=\"").nth(1).unwrap_or_else(|| unreachable!("{}", page.body));
    at.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_person_sees_the_whole_effect_and_allows_it() {
    let (rig, token, ask) = asked(json!({ "path": "asked.txt", "content": "one\ntwo\n" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let inbox = browser.get("/").await;
    assert!(inbox.body.contains("<title>(1) Inbox · Toolhost</title>"), "{}", inbox.body);
    assert!(inbox.body.contains(&format!("href=\"/asks/p0/{ask}\"")), "{}", inbox.body);
    let page = browser.get(&format!("/asks/p0/{ask}")).await;
    for shown in [
        "asked.txt",
        "<code class=\"new\"><button",
        "</button>+one",
        "</button>+two",
        "file.write",
        "Allow once",
        "profile all",
    ] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    let path = format!("/asks/p0/{ask}");
    let stale = browser.post(&path, &form(&[("decision", "allow"), ("digest", &"0".repeat(64))])).await;
    assert_eq!(stale.status, 409, "{stale:?}");
    assert!(!rig.houses[0].workspace.root().join("asked.txt").exists());
    let allowed = browser.post(&path, &form(&[("decision", "allow"), ("digest", &digest(&page))])).await;
    assert_eq!((allowed.status, allowed.header("location")), (303, Some(path.as_str())), "{allowed:?}");
    let done = rig.call(&token, "approval.wait", json!({ "approvalId": ask })).await;
    assert_eq!(done.json()["data"]["status"], "finished", "{done:?}");
    assert!(rig.houses[0].workspace.root().join("asked.txt").exists());
    let page = browser.get(&path).await;
    assert!(page.body.contains("local allowed it. The call has succeeded."), "{}", page.body);
    let did = page.body.split("href=\"").find(|rest| rest.contains(">What the call did<")).unwrap().split('"').next();
    assert_eq!(browser.get(did.unwrap()).await.status, 200);
    assert!(!page.body.contains("name=\"decision\""), "it can be answered no more: {}", page.body);
    let inbox = browser.get("/").await;
    assert!(inbox.body.contains("Nobody waits for you.") && inbox.body.contains("local allowed it"), "{}", inbox.body);
    let rows = rig.houses[0].rows().await;
    let decided = rows.iter().find(|row| row["event"] == "decision").unwrap();
    assert_eq!(decided["decision"]["place"], "workbench", "{decided}");
}

#[tokio::test]
async fn what_was_denied_or_only_asked_did_nothing_and_is_not_said_to_have() {
    let (rig, token, ask) = asked(json!({ "path": "asked.txt", "content": "one" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{ask}");
    let digest_of_page = digest(&browser.get(&path).await);
    let deny = form(&[("decision", "deny"), ("text", "not now"), ("digest", &digest_of_page)]);
    assert_eq!(browser.post(&path, &deny).await.status, 303);
    rig.call(&token, "approval.wait", json!({ "approvalId": ask })).await;
    let page = browser.get(&path).await.body;
    assert!(page.contains("local denied it. The call was not made."), "{page}");
    assert!(page.contains(">In the audit</a>") && !page.contains("What the call did"), "{page}");
    let question = rig.call(&token, "human.ask", json!({ "question": "Which color?" })).await.json();
    let asked = question["data"]["approvalId"].as_str().unwrap();
    // The call that asked leads to what it asked, and changed no file.
    let call = format!("/projects/p0/audit/calls/{}", question["meta"]["callId"].as_str().unwrap());
    rig.houses[0].rows().await;
    let shown = browser.get(&call).await.body;
    assert!(shown.contains(&format!("href=\"/asks/p0/{asked}\">{asked}</a>")), "{shown}");
    assert!(!shown.contains("/files/undo/"), "{shown}");
    let path = format!("/asks/p0/{asked}");
    let page = browser.get(&path).await;
    let answer = form(&[("decision", "answer"), ("text", "blue"), ("digest", &digest(&page))]);
    assert_eq!(browser.post(&path, &answer).await.status, 303);
    let unheard = browser.get(&path).await.body;
    assert!(unheard.contains("local answered. The agent has not heard it yet."), "{unheard}");
    rig.call(&token, "approval.wait", json!({ "approvalId": asked })).await;
    let heard = browser.get(&path).await.body;
    assert!(heard.contains("local answered. The agent has heard it."), "{heard}");
    // What the tools refuse is told in one line.
    rig.call(&token, "file.write", json!({ "path": 3, "other": 1 })).await;
    rig.houses[0].rows().await;
    let audit = browser.get("/projects/p0/audit?all=on").await.body;
    assert!(audit.contains("not allowed: ") && audit.contains("not now"), "{audit}");
    let wrong = "failed: the arguments of `file.write` do not fit its schema: `/content`: expected";
    assert!(audit.contains(wrong) && audit.contains("; `/path`: expected") && !audit.contains("\\u{a}"), "{audit}");
}

#[tokio::test]
async fn an_old_link_says_how_to_sign_in_and_the_wanted_page_is_come_back_to() {
    let rig = Rig::one().await;
    let mut browser = Browser::fresh(&rig);
    let wanted = browser.get("/projects/p0/board").await;
    browser.keep(&wanted);
    let old = link(&rig.houses[0], USER_NAME, 1).await;
    rig.advance(2 * 60_000);
    let late = browser.get(&old).await;
    assert!(
        late.status == 404 && late.body.contains("too old") && late.body.contains("toolhost login --server"),
        "{late:?}"
    );
    assert!(late.body.contains("it leads to the page that you wanted to see"), "{late:?}");
    let fresh = link(&rig.houses[0], USER_NAME, 1).await;
    let signed_in = browser.post(&fresh, "").await;
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/projects/p0/board")), "{signed_in:?}");
}

#[tokio::test]
async fn an_ask_says_what_a_yes_is_bound_to_and_errors_stand_beside_their_field() {
    let (rig, _, ask) = asked(json!({ "path": "asked.txt", "content": "one <two>" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{ask}");
    let page = browser.get(&path).await;
    for shown in [
        "A yes allows this call of <code>file.write</code> once",
        "one &#60;two&#62;",
        "href=\"/projects/p0/sessions\"",
    ] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    let digest = digest(&page);
    let wrong = [
        (vec![("decision", "deny"), ("text", "")], "text"),
        (vec![("decision", "edit"), ("arguments", "no JSON")], "arguments"),
        (vec![("rule", "on"), ("hours", "0")], "hours"),
    ];
    for (mut fields, at) in wrong {
        fields.push(("digest", &digest));
        let reply = browser.post(&path, &form(&fields)).await;
        assert_eq!(reply.status, 400, "{at}: {reply:?}");
        let beside = format!("aria-invalid=\"true\" aria-describedby=\"{at}-error\"");
        assert!(
            reply.body.contains(&beside) && reply.body.contains(&format!("id=\"{at}-error\"")),
            "{at}: {}",
            reply.body
        );
        assert_eq!(reply.body.matches("role=\"alert\"").count(), 1, "{at}: {}", reply.body);
    }
}

#[tokio::test]
async fn an_answer_that_no_call_used_is_told_as_one_and_not_as_silence() {
    let (rig, token, unused) = asked(json!({ "path": "asked.txt", "content": "x" })).await;
    let silent = rig.call(&token, "file.write", json!({ "path": "other.txt", "content": "x" })).await;
    let silent = silent.json()["data"]["approvalId"].as_str().unwrap().to_owned();
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{unused}");
    let digest = digest(&browser.get(&path).await);
    assert_eq!(browser.post(&path, &form(&[("decision", "allow"), ("digest", &digest)])).await.status, 303);
    rig.advance(4 * 3_600_000);
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let page = browser.get(&path).await.body;
    assert!(page.contains("local allowed it. The answer expired before a call used it."), "{page}");
    let inbox = browser.get("/").await.body;
    assert!(inbox.contains("local allowed it; expired before it was used"), "{inbox}");
    let page = browser.get(&format!("/asks/p0/{silent}")).await.body;
    assert!(page.contains("Expired: nobody answered in time."), "{page}");
    let late = rig.call(&rig.token(&["call"]).await, "approval.wait", json!({ "approvalId": unused })).await.body;
    assert!(!late.contains("nobody"), "{late}");
}

#[tokio::test]
async fn a_question_of_several_lines_is_shown_line_by_line() {
    let (rig, token, ask) = asked(json!({ "path": "a.txt", "content": "x" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let of_approval = browser.get(&format!("/asks/p0/{ask}")).await.body;
    assert!(!of_approval.contains("aria-label=\"The question\""), "{of_approval}");
    let long = "word ".repeat(60);
    for (question, heading, lines) in [
        ("One line?", "<h1>One line?</h1>", vec![]),
        (
            "Which one?\n1. <b>this</b>\n2. that",
            "<h1>Which one?</h1>",
            vec!["Which one?", "1. &#60;b&#62;this&#60;/b&#62;", "2. that"],
        ),
        (&*long, "…</h1>", vec![long.trim()]),
    ] {
        let waits = rig.call(&token, "human.ask", json!({ "question": question })).await.json();
        let id = waits["data"]["approvalId"].as_str().unwrap();
        let page = browser.get(&format!("/asks/p0/{id}")).await.body;
        assert!(page.contains(heading), "{page}");
        assert_eq!(page.contains("aria-label=\"The question\""), !lines.is_empty(), "{page}");
        for line in lines {
            assert!(page.contains(&format!("<code>{line}\n</code>")), "{line}: {page}");
        }
    }
}

#[tokio::test]
async fn a_choice_of_a_question_is_a_button() {
    let (rig, token, _) = asked(json!({ "path": "a.txt", "content": "x" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    for (question, typed, told) in
        [("one", [("choice", "2"), ("text", "")], "SQLite"), ("two", [("decision", "answer"), ("text", "2")], "2")]
    {
        let arguments = json!({ "question": question, "choices": ["<b>Postgres</b>", "SQLite"] });
        let waits = rig.call(&token, "human.ask", arguments).await.json();
        let path = format!("/asks/p0/{}", waits["data"]["approvalId"].as_str().unwrap());
        let page = browser.get(&path).await;
        let button = "<button name=\"choice\" value=\"1\">&#60;b&#62;Postgres&#60;/b&#62;</button>";
        assert!(page.body.contains(button) && page.body.contains("Another answer"), "{page:?}");
        let digest = digest(&page);
        let fields: Vec<_> = typed.into_iter().chain([("digest", &*digest), ("part", "1")]).collect();
        let done = browser.post(&path, &form(&fields)).await;
        assert_eq!(done.status, 303, "{done:?}");
        let waited = json!({ "approvalId": waits["data"]["approvalId"] });
        let outcome = rig.call(&token, "approval.wait", waited).await.json();
        assert_eq!(outcome["data"]["outcome"]["data"]["answer"], told, "{outcome}");
    }
}

#[tokio::test]
async fn a_no_needs_a_reason_and_what_was_typed_is_kept() {
    let (rig, token, ask) = asked(json!({ "path": "asked.txt", "content": "x" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{ask}");
    let digest = digest(&browser.get(&path).await);
    let empty = browser.post(&path, &form(&[("decision", "deny"), ("digest", &digest), ("text", " ")])).await;
    assert_eq!(empty.status, 400, "{empty:?}");
    assert!(empty.body.contains("Say why not"), "{}", empty.body);
    let wrong = form(&[("decision", "perhaps"), ("digest", &digest), ("text", "not <now>")]);
    let wrong = browser.post(&path, &wrong).await;
    assert!(wrong.status == 400 && wrong.body.contains("not &#60;now&#62;</textarea>"), "{}", wrong.body);
    let denied = form(&[("decision", "deny"), ("digest", &digest), ("text", "not now")]);
    assert_eq!(browser.post(&path, &denied).await.status, 303);
    let late = browser.post(&path, &form(&[("decision", "allow"), ("digest", &digest)])).await;
    assert_eq!(late.status, 409, "{late:?}");
    assert!(late.body.contains("local denied it.") && late.body.contains("not now"), "{}", late.body);
    let done = rig.call(&token, "approval.wait", json!({ "approvalId": ask })).await;
    assert!(done.body.contains("not now"), "{done:?}");
    assert!(!rig.houses[0].workspace.root().join("asked.txt").exists());
}

#[tokio::test]
async fn a_call_is_allowed_with_other_arguments_or_by_a_rule_for_a_while() {
    let (rig, token, ask) = asked(json!({ "path": "asked.txt", "content": "x" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{ask}");
    let digest_of = digest(&browser.get(&path).await);
    for wrong in [
        r#"{"path": "edited.txt", "content": "y", "more": 1}"#,
        r#"{"path": 7}"#,
        "{",
        r#"{"path": "../x", "content": "y"}"#,
    ] {
        let edit = form(&[("decision", "edit"), ("digest", &digest_of), ("arguments", wrong)]);
        let refused = browser.post(&path, &edit).await;
        assert!(matches!(refused.status, 400 | 403), "{wrong}: {refused:?}");
    }
    let edited = r#"{"path": "edited.txt", "content": "y"}"#;
    let edit = form(&[("decision", "edit"), ("digest", &digest_of), ("arguments", edited), ("text", "")]);
    assert_eq!(browser.post(&path, &edit).await.status, 303);
    rig.call(&token, "approval.wait", json!({ "approvalId": ask })).await;
    let root = rig.houses[0].workspace.root();
    assert!(root.join("edited.txt").exists() && !root.join("asked.txt").exists());

    let again = json!({ "path": "ruled.txt", "content": "x" });
    let next = rig.call(&token, "file.write", again.clone()).await.json()["data"]["approvalId"].clone();
    let path = format!("/asks/p0/{}", next.as_str().unwrap());
    let page = browser.get(&path).await;
    assert!(page.body.contains("This also allows: file.write when"), "{}", page.body);
    let too_long = form(&[("digest", &digest(&page)), ("rule", "on"), ("hours", "721")]);
    assert_eq!(browser.post(&path, &too_long).await.status, 400);
    let ruled = form(&[("digest", &digest(&page)), ("rule", "on"), ("hours", "2")]);
    assert_eq!(browser.post(&path, &ruled).await.status, 303);
    rig.call(&token, "approval.wait", json!({ "approvalId": next })).await;
    assert_eq!(rig.call(&token, "file.write", again).await.status, 200, "the rule allows it");
}

#[tokio::test]
async fn an_edit_that_is_refused_is_shown_again() {
    let (rig, _, ask) = asked(json!({ "path": "asked.txt", "content": "x" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{ask}");
    let page = browser.get(&path).await;
    assert!(page.body.contains("<details><summary>Allow it with other arguments"), "{}", page.body);
    let sent = form(&[("decision", "edit"), ("digest", &digest(&page)), ("arguments", "{\"path\": mine")]);
    let refused = browser.post(&path, &sent).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("<details open><summary>Allow it with other arguments"), "{}", refused.body);
    assert!(refused.body.contains(": mine</textarea>"), "{}", refused.body);
}

#[tokio::test]
async fn the_texts_of_a_call_are_edited_without_json() {
    let (rig, token, ask) = asked(json!({ "path": "asked.txt", "content": "one\ntwo\n" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{ask}");
    let page = browser.get(&path).await;
    assert!(page.body.contains("name=\"text:/path\" rows=\"1\""), "{}", page.body);
    let digest = digest(&page);
    let arguments = r#"{"path": "asked.txt", "content": "one\ntwo\n"}"#;
    let edit = |decision: (&str, &str), path: &str, content: &str| {
        let texts = [("texts", "on"), ("text:/path", path), ("text:/content", content)];
        form(&[&[decision, ("digest", &digest), ("arguments", arguments)][..], &texts].concat())
    };
    // Whatever else the form is sent for, what was typed stays.
    let typed = "name=\"text:/content\" rows=\"2\" spellcheck=\"false\">\nmine</textarea>";
    for (decision, status) in [
        (("decision", "allow"), 400),
        (("rule", "on"), 400),
        (("line", "1"), 200),
        (("look", "week"), 200),
        (("decision", "deny"), 400),
    ] {
        let shown = browser.post(&path, &edit(decision, "asked.txt", "mine")).await;
        assert_eq!(shown.status, status, "{decision:?}: {shown:?}");
        assert!(shown.body.contains(typed), "{decision:?}: {}", shown.body);
        assert!(shown.body.contains("<details open><summary>Allow it with other arguments"), "{}", shown.body);
    }
    let looked = browser.post(&path, &edit(("look", "edit"), "edited.txt", "mine\r\n")).await;
    assert!(
        looked.body.contains("As edited: create edited.txt") && looked.body.contains("class=\"new\">+mine"),
        "{}",
        looked.body
    );
    assert!(looked.body.contains("value=\"allow\""), "nothing is decided: {}", looked.body);
    assert_eq!(browser.post(&path, &edit(("look", "edit"), "../x", "mine")).await.status, 400);
    let refused = browser.post(&path, &edit(("decision", "edit"), "", "mine")).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let beside = "data-key=\"e\" aria-invalid=\"true\" aria-describedby=\"arguments-error\"";
    assert!(refused.body.contains(typed) && refused.body.contains(beside), "{}", refused.body);
    let done = browser.post(&path, &edit(("decision", "edit"), "edited.txt", "one\r\ntwo\r\n")).await;
    assert_eq!(done.status, 303, "{done:?}");
    // The call has not run yet: only the row of the answer names the other file.
    let audit = browser.get("/projects/p0/audit?all=on").await.body;
    assert!(audit.contains("local") && audit.contains("allowed it with other arguments"), "{audit}");
    assert!(audit.contains("edited.txt"), "the audit shows what was allowed: {audit}");
    rig.call(&token, "approval.wait", json!({ "approvalId": ask })).await;
    let written = rig.houses[0].workspace.read("edited.txt");
    assert_eq!(written, "one\ntwo\n", "a browser sends line ends of its own");
}

#[tokio::test]
async fn looking_at_what_a_rule_would_have_allowed_keeps_what_was_typed() {
    let (rig, _, ask) = asked(json!({ "path": "asked.txt", "content": "x" })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{ask}");
    let digest = digest(&browser.get(&path).await);
    let look = form(&[("look", "week"), ("digest", &digest), ("text", "not so"), ("hours", "48"), ("part", "1")]);
    let looked = browser.post(&path, &look).await;
    assert_eq!(looked.status, 200, "{looked:?}");
    assert!(looked.body.contains("In the last week there was no other call of file.write"), "{}", looked.body);
    assert!(looked.body.contains("not so</textarea>") && looked.body.contains("value=\"48\""), "{}", looked.body);
    assert!(looked.body.contains("value=\"allow\""), "nothing is decided: {}", looked.body);
}

#[tokio::test]
async fn what_agents_write_is_text_on_every_page() {
    let tricks =
        "<script>alert(1)</script>\n\"'><img src=x onerror=alert(1)>\n{{ 7 * 7 }}\n</textarea>\n\u{1b}[2J\u{202e}gpj";
    let (rig, _, ask) = asked(json!({ "path": "<b>.txt", "content": tricks })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    for path in ["/".to_owned(), format!("/asks/p0/{ask}")] {
        let page = browser.get(&path).await;
        let body = page.body.replace(SCRIPT, "");
        for forbidden in ["<script", "<img", "<b>", "\u{1b}", "\u{202e}", "\"'>"] {
            assert!(!body.contains(forbidden), "{path} {forbidden:?}: {body}");
        }
        assert!(page.body.contains("&#60;b&#62;.txt"), "{}", page.body);
    }
    let page = browser.get(&format!("/asks/p0/{ask}")).await;
    assert!(page.body.contains("+&#60;script&#62;alert(1)&#60;/script&#62;") && page.body.contains("{{ 7 * 7 }}"));
}

#[tokio::test]
async fn what_is_somebody_elses_and_what_does_not_exist_are_one_page() {
    let (rig, _, ask) = asked(json!({ "path": "asked.txt", "content": "x" })).await;
    rig.houses[1].store.people().add_user("eve").await.unwrap();
    let eve = Browser::signed_in(&rig, "eve").await;
    let inbox = eve.get("/").await;
    assert!(inbox.body.contains("You are a member of no project here."), "{}", inbox.body);
    let theirs = eve.get(&format!("/asks/p0/{ask}")).await;
    for path in ["/asks/p9/ask-1", "/asks/p0/ask-999", "/asks/p0/x", "/asks/p1/ask-1"] {
        let none = eve.get(path).await;
        assert_eq!((theirs.status, &theirs.body), (none.status, &none.body), "{path}");
    }
    assert_eq!(theirs.status, 404);
    let digest = { digest(&Browser::signed_in(&rig, USER_NAME).await.get(&format!("/asks/p0/{ask}")).await) };
    let tried = eve.post(&format!("/asks/p0/{ask}"), &form(&[("decision", "allow"), ("digest", &digest)])).await;
    assert_eq!((tried.status, &tried.body), (404, &theirs.body));
}

#[tokio::test]
async fn a_viewer_looks_and_decides_nothing() {
    let (rig, _, ask) = asked(json!({ "path": "asked.txt", "content": "x" })).await;
    let people = rig.houses[0].store.people();
    let ann = people.add_user("ann").await.unwrap();
    people.set_role(rig.houses[0].project.id, ann, Role::Viewer).await.unwrap();
    let viewer = Browser::signed_in(&rig, "ann").await;
    let path = format!("/asks/p0/{ask}");
    let page = viewer.get(&path).await;
    assert!(page.status == 200 && !page.body.contains("name=\"decision\""), "{}", page.body);
    let digest = digest(&Browser::signed_in(&rig, USER_NAME).await.get(&path).await);
    let tried = viewer.post(&path, &form(&[("decision", "allow"), ("digest", &digest)])).await;
    assert_eq!(tried.status, 403, "{tried:?}");
    // Nor does an editor from whom the right was taken; a viewer who has it is shown the buttons.
    people.set_member(rig.houses[0].project.id, ann, Role::Editor, Some(false)).await.unwrap();
    assert!(!viewer.get(&path).await.body.contains("name=\"decision\""));
    assert_eq!(viewer.post(&path, &form(&[("decision", "allow"), ("digest", &digest)])).await.status, 403);
    people.set_member(rig.houses[0].project.id, ann, Role::Viewer, Some(true)).await.unwrap();
    assert!(viewer.get(&path).await.body.contains("value=\"allow\""));
    assert_eq!(viewer.post(&path, &form(&[("decision", "allow"), ("digest", &digest)])).await.status, 303);
}

#[tokio::test]
async fn a_long_effect_has_parts_and_its_yes_stands_at_the_end_of_the_last() {
    let content = (0..4500).map(|number| format!("line {number}\n")).collect::<String>();
    let (rig, _, ask) = asked(json!({ "path": "long.txt", "content": content })).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let path = format!("/asks/p0/{ask}");
    // Somebody who has opened a part or two, and says that it was the last.
    let people = rig.houses[0].store.people();
    let eve = people.add_user("eve").await.unwrap();
    people.set_role(rig.houses[0].project.id, eve, Role::Editor).await.unwrap();
    let hasty = Browser::signed_in(&rig, "eve").await;
    let of_first = digest(&hasty.get(&format!("{path}?part=3")).await);
    // A request that is sent nothing has shown nothing.
    assert_eq!(hasty.send(("HEAD", &format!("{path}?part=2")), &[], "").await.status, 200);
    for (opens, missing) in [(1, 2), (2, 0)] {
        hasty.get(&format!("{path}?part={opens}")).await;
        let yes = form(&[("decision", "allow"), ("digest", &of_first), ("part", "3")]);
        if missing > 0 {
            let early = hasty.post(&path, &yes).await;
            assert!(early.body.contains(&format!("You have not looked at part {missing} of 3")), "{early:?}");
            assert_eq!(early.status, 400);
        }
    }
    let mut seen = 0;
    for part in 1..=3 {
        let page = browser.get(&format!("{path}?part={part}")).await;
        assert!(page.body.contains(&format!("Part {part} of 3")), "{}", page.body);
        seen += page.body.matches("</button>+line ").count();
        assert_eq!(page.body.contains("value=\"allow\""), part == 3, "{part}");
        assert!(page.body.contains("value=\"deny\""), "{part}");
    }
    assert_eq!(seen, 4500);
    let digest = digest(&browser.get(&path).await);
    for part in ["1", "2", "x", "4"] {
        let early = browser.post(&path, &form(&[("decision", "allow"), ("digest", &digest), ("part", part)])).await;
        assert!(early.status == 400 && early.body.contains("All 3 parts have to be looked at"), "{part}: {early:?}");
    }
    let last = form(&[("decision", "allow"), ("digest", &digest), ("part", "3")]);
    assert_eq!(browser.post(&path, &last).await.status, 303);
}

#[tokio::test]
async fn a_secret_in_a_question_is_shown_to_those_who_answer_alone() {
    let (rig, token) = crate::browser::asking().await;
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let ask = crate::browser::ask(&rig, &token, "human.ask", json!({ "question": format!("Use {secret}?") })).await;
    let people = rig.houses[0].store.people();
    let vera = people.add_user("vera").await.unwrap();
    people.set_role(rig.houses[0].project.id, vera, Role::Viewer).await.unwrap();
    let (viewer, owner) = (Browser::signed_in(&rig, "vera").await, Browser::signed_in(&rig, USER_NAME).await);
    let path = format!("/asks/p0/{ask}");
    for page in ["/", &path, "/search?q=Use"] {
        let shown = viewer.get(page).await.body;
        assert!(shown.contains("Use [redacted]?") && !shown.contains(secret), "{page}: {shown}");
        assert!(page == path || !owner.get(page).await.body.contains(secret), "{page}");
    }
    let viewed = viewer.get(&path).await.body;
    assert!(viewed.contains("is masked here") && !viewed.contains("What stands there is at the end."), "{viewed}");
    let whole = owner.get(&path).await.body;
    assert!(whole.contains("What stands there is at the end."), "{whole}");
    assert!(whole.contains("<h1>Use [redacted]?</h1>") && whole.contains(secret), "{whole}");
}

#[tokio::test]
async fn what_only_a_person_may_allow_needs_a_login_of_a_moment_ago() {
    let workspace = TempWorkspace::new();
    workspace.write("index.html", "x");
    let site = TempWorkspace::new();
    let deploys = house().workspace(workspace).deploy(site.root(), toolhost::deploy::DeployRules::default());
    let rig = Rig::start(vec![deploys], HttpLimits::default()).await;
    let token = rig.token(&["call"]).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    rig.advance(15 * 60_000);
    let always = rig.call(&token, "deploy.copy", json!({})).await;
    let ask = always.json()["data"]["approvalId"].as_str().unwrap_or_else(|| unreachable!("{always:?}")).to_owned();
    let path = format!("/asks/p0/{ask}");
    let body = form(&[("decision", "allow"), ("digest", &digest(&browser.get(&path).await))]);
    let old = browser.post(&path, &body).await;
    assert!(old.status == 403 && old.body.contains("you signed in a while ago"), "{}", old.body);
    let again = Browser::signed_in(&rig, USER_NAME).await;
    assert_eq!(again.post(&path, &body).await.status, 303);
}
