//! The pages of sessions: what is listed, what a session has come to, where its time went, and what people do with one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolhost_builder::change::Side;
use toolhost_contract::{ErrorKind, Journal, ToolError};
use toolhost_host::Undo;
use toolhost_records::RecordId;
use toolhost_server::http::{
    Archive, By, ChangePreview, DeployWork, Done, Forked, HttpLimits, Imported, MemberChanged, ModelLine, NewRole,
    NewRun, PackageFindings, Replaces, SessionInfo, Stop, TokenMade, TokenWish, WebhookWork, WholePackage, Work,
};
use toolhost_store::{NewSession, Quota, Role, SessionState, Sessions};
use toolhost_testkit::engines::engines;
use toolhost_testkit::{HouseBuilder, USER};

use crate::pages::{Browser, form};
use crate::rig::{Rig, asking_nobody, house};

pub(crate) const ID: &str = "as_0123456789abcdef";

/// Text of every kind that must stay text, and one very long line.
pub(crate) fn hostile() -> String {
    let tricks = "<script>alert(1)</script><svg onload=alert(1)>\"'><img src=x onerror=alert(1)> {{ 7 * 7 }} {% if x %} \
                  \u{1b}[2J\u{202e}gpj\u{0}</textarea></title>";
    format!("{tricks} {}", "x".repeat(1 << 20))
}

/// What no page may have, whatever an agent wrote.
pub(crate) fn assert_is_text(page: &toolhost_testkit::HttpReply, what: &str) {
    assert_eq!(page.status, 200, "{what}: {}", page.body.chars().take(2000).collect::<String>());
    for forbidden in ["<script>", "<svg onload", "<img", "\u{1b}", "\u{202e}", "\"'>"] {
        assert!(!page.body.contains(forbidden), "{what} has {forbidden:?}");
    }
}

/// A session with these steps after its opening, in this state.
pub(crate) async fn session(rig: &Rig, id: &str, title: &str, steps: &[(&str, Value)], state: SessionState) {
    let (store, project_id) = (&rig.houses[0].store, rig.houses[0].project.id);
    let new = NewSession {
        project_id,
        user_id: USER,
        id: id.to_owned(),
        profile: "all".to_owned(),
        model: "script:x".to_owned(),
        title: title.to_owned(),
        steps: vec![("open".to_owned(), json!({ "goal": title, "persona": "Ada" }))],
    };
    store.sessions().create(&new).await.unwrap();
    let held = store.sessions().hold(project_id, id).await.unwrap();
    for (name, body) in steps {
        held.keep(name, body.clone(), None).await.unwrap();
    }
    held.release(state, None).await.unwrap();
}

/// A turn that calls a tool once, and what the call came to.
pub(crate) fn turn(number: u32, said: &str, call: &str) -> Vec<(String, Value)> {
    let step = format!("call_{number}_0");
    let asked = json!([{ "id": step, "name": "file_edit", "arguments": { "json": { "path": "a.txt" } } }]);
    let usage = json!({ "inputTokens": 1200, "outputTokens": 34 });
    let reply = json!({ "text": said, "calls": asked, "stop": "calls", "usage": usage });
    let content = "edited a.txt\n@@ -1 +1 @@\n-old line\n+new line";
    vec![
        (
            format!("turn_{number}"),
            json!({ "reply": reply, "callIds": [call], "cost": 0.25, "ms": 2500, "elapsedMs": 2500 }),
        ),
        (
            step,
            json!({ "callId": call, "tool": "file.edit", "ok": true, "content": content, "brief": "edited a.txt", "ms": 12 }),
        ),
    ]
}

pub(crate) fn borrowed(steps: &[(String, Value)]) -> Vec<(&str, Value)> {
    steps.iter().map(|(name, body)| (name.as_str(), body.clone())).collect()
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_by_state() {
    for engine in engines() {
        let rig = Rig::start(vec![asking_nobody(engine.builder())], HttpLimits::default()).await;
        for number in 0..52 {
            rig.advance(1000);
            let state = match number {
                3 => SessionState::Failed,
                4 => SessionState::Active,
                _ => SessionState::Done,
            };
            session(&rig, &format!("as_{number:016}"), &format!("goal {number}."), &[], state).await;
        }
        let browser = Browser::signed_in(&rig, "local").await;
        let list = browser.get("/projects/p0/sessions").await;
        assert!(list.body.contains("goal 51.") && list.body.contains("goal 2.") && !list.body.contains("goal 1."));
        let next = list.body.split("href=\"?after=").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let earlier = browser.get(&format!("/projects/p0/sessions?after={next}")).await;
        assert!(
            earlier.body.contains("goal 1.") && earlier.body.contains("goal 0.") && !earlier.body.contains("goal 2.")
        );
        assert!(!earlier.body.contains("?after="), "it is the last page");
        let failed = browser.get("/projects/p0/sessions?state=failed").await;
        assert_eq!(failed.body.matches("goal ").count(), 1, "{}", failed.body);
        assert!(
            failed.body.contains("goal 3.") && failed.body.contains("aria-current=\"true\">failed"),
            "{}",
            failed.body
        );
        // No host runs it.
        let interrupted = browser.get("/projects/p0/sessions?state=interrupted").await.body;
        assert!(interrupted.matches("goal ").count() == 1 && interrupted.contains("goal 4."), "{interrupted}");
        let working = browser.get("/projects/p0/sessions?state=working").await.body;
        assert!(working.contains("There is no session in this state."), "{working}");
        assert_eq!(browser.get("/projects/p0/sessions?state=nowhere").await.status, 400);
    }
}

#[tokio::test]
async fn no_page_of_a_session_shows_a_secret() {
    let rig = Rig::one().await;
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let own = format!("thp_0123abcd_{}", "0123456789abcdef".repeat(4));
    let all = format!("with {secret} and {own} and ghp_a1B2c3D4e5F6**g7H8i9J0k1L2**m3N4o5P6q7R8");
    let steps: Vec<(String, Value)> = (0..2).flat_map(|n| turn(n, &all, &all)).collect();
    session(&rig, ID, &all, &borrowed(&steps), SessionState::Paused).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let token = rig.token(&["read"]).await;
    let path = format!("/projects/p0/sessions/{ID}");
    let pages = ["/projects/p0/sessions", &path, &format!("{path}/trace"), &format!("{path}/replay"), "/search?q=with"];
    let mut told: Vec<String> = Vec::new();
    for page in pages {
        told.push(browser.get(page).await.body);
    }
    for step in ["open", "turn_0", "call_0_0"] {
        told.push(browser.get(&format!("{path}/steps/{step}")).await.body);
    }
    let api = format!("/api/v1/projects/p0/sessions/{ID}");
    for address in ["/api/v1/projects/p0/sessions", &api, &format!("{api}/steps")] {
        told.push(rig.send(&token, ("GET", address), "").await.body);
    }
    for body in told {
        assert!(body.contains("[redacted]") || !body.contains("with"), "{body}");
        let joined = body.replace("<strong>", "").replace("</strong>", "");
        assert!(!joined.contains(secret) && !body.contains(&own), "{body}");
    }
}

#[tokio::test]
async fn a_session_is_a_conversation_with_the_newest_at_the_end() {
    let rig = Rig::one().await;
    let mut steps: Vec<(String, Value)> = (0..40).flat_map(|n| turn(n, &format!("word {n}."), "c")).collect();
    steps.push(("say_40_0".to_owned(), json!({ "text": "one more thing" })));
    session(&rig, ID, "the goal", &borrowed(&steps), SessionState::Paused).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/projects/p0/sessions/{ID}");
    let page = browser.get(&path).await;
    for shown in [
        "word 39.",
        "one more thing",
        "Done after 12 ms: edited a.txt",
        "1,200 tokens read, 34 written",
        "$0.2500",
        "class=\"old\">-old line",
        "class=\"new\">+new line",
        "&#34;path&#34;: &#34;a.txt&#34;",
        "<dt>Persona</dt><dd>Ada</dd>",
    ] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    assert!(!page.body.contains("word 14.") && page.body.contains("?before=32"), "{}", page.body);
    let earlier = browser.get(&format!("{path}?before=32")).await;
    assert!(
        earlier.body.contains("word 15.") && earlier.body.contains("the goal") && !earlier.body.contains("word 16.")
    );
    assert!(earlier.body.contains("Newest steps"), "{}", earlier.body);
    let step = browser.get(&format!("{path}/steps/call_39_0")).await;
    assert!(step.body.contains("class=\"new\">+new line"), "{}", step.body);
    assert_eq!(browser.get(&format!("{path}/steps/call_99_0")).await.status, 404);
}

#[tokio::test]
async fn the_search_finds_what_was_said_in_a_session() {
    for engine in engines() {
        let rig = Rig::start(vec![engine.builder()], HttpLimits::default()).await;
        let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        let long = format!("{} The Quokka 100%_sure eats grass. {}", "before ".repeat(40), "after ".repeat(40));
        let mut steps = [turn(0, &long, "c"), turn(1, &format!("Here: {secret}"), "d")].concat();
        steps.push(("say_2_0".to_owned(), json!({ "text": "And the wombat,\nplease" })));
        session(&rig, ID, "Count <b>animals</b>", &borrowed(&steps), SessionState::Paused).await;
        let browser = Browser::signed_in(&rig, "local").await;
        let found = async |query: &str| browser.get(&format!("/search?q={query}")).await.body;
        let step = |step: &str| format!("/projects/p0/sessions/{ID}/steps/{step}\"").replace('_', "%5F");
        let agents = found("quokka+grass").await;
        assert!(agents.contains(&step("turn_0")) && agents.contains("The Quokka 100%_sure eats grass."), "{agents}");
        assert!(agents.contains("the agent in session") && !agents.contains(&"before ".repeat(12)), "{agents}");
        assert!(found("100%25_sure").await.contains(&step("turn_0")), "percent signs are no wildcards");
        for nothing in ["100%25sure", "quokka+wombat", "file_edit", "a1B2c3D4", "ghp_"] {
            assert!(!found(nothing).await.contains("/steps/"), "{nothing}");
        }
        // A long text is not looked through: a search costs little, whatever agents write.
        let huge = format!("The numbat. {}", "x".repeat(20_000));
        session(&rig, "as_00000000000000ff", "Long", &borrowed(&turn(0, &huge, "e")), SessionState::Paused).await;
        assert!(!found("numbat").await.contains("/steps/"));
        let message = found("wombat,+please").await;
        assert!(message.contains(&step("say_2_0")) && message.contains("a message in session"), "{message}");
        let goal = found("animals").await;
        assert!(goal.contains(&step("open")) && !goal.contains("<b>animals"), "{goal}");
        rig.houses[0].store.people().add_user("eve").await.unwrap();
        let stranger = Browser::signed_in(&rig, "eve").await;
        assert!(!stranger.get("/search?q=quokka").await.body.contains("Quokka"), "of another project");
    }
}

#[tokio::test]
async fn a_replay_shows_a_session_up_to_a_step_and_leads_to_those_around_it() {
    let rig = Rig::one().await;
    let mut steps: Vec<(String, Value)> = (0..30).flat_map(|n| turn(n, &format!("word {n}."), "c")).collect();
    // A step that only the agent reads is never a page of its own.
    steps.insert(2, ("sets_0".to_owned(), json!({ "x": 1 })));
    steps.push(("sets_1".to_owned(), json!({ "x": 1 })));
    session(&rig, ID, "the goal", &borrowed(&steps), SessionState::Paused).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/projects/p0/sessions/{ID}");
    assert!(browser.get(&path).await.body.contains(&format!("href=\"{path}/replay\"")));
    let link = |body: &str, key: &str| {
        let before = body.split(&format!("\" rel=\"{key}\"")).next().filter(|before| before.len() < body.len())?;
        before.rsplit("href=\"").next().map(str::to_owned)
    };
    let mut page = browser.get(&format!("{path}/replay")).await.body;
    assert!(page.contains("Step 1 of 62") && page.contains("the goal") && !page.contains("word 0."), "{page}");
    assert_eq!(link(&page, "prev"), None);
    let (mut seen, mut way) = (1, vec!["?step=0".to_owned()]);
    while let Some(next) = link(&page, "next") {
        page = browser.get(&format!("{path}/replay{next}")).await.body;
        assert_eq!(link(&page, "prev").as_ref(), way.last(), "{page}");
        assert_eq!(page.matches("aria-current=\"step\"").count(), 1, "{page}");
        way.push(next);
        seen += 1;
    }
    assert_eq!(seen, 61, "the goal, 30 turns and 30 calls");
    assert!(page.contains("word 29.") && page.contains("The session has no later step."), "{page}");
    assert!(page.contains("Step 62 of 62"), "{page}");
    let middle = browser.get(&format!("{path}/replay?step=11")).await.body;
    let (now, later) = ("word 5.", "word 6.");
    assert!(middle.contains("word 4.") && !middle.contains(later), "{middle}");
    assert!(browser.get(&format!("{path}/replay?step=12")).await.body.contains(now));
    for odd in ["-1", "99999999999999999999", "x", "1000000"] {
        assert_eq!(browser.get(&format!("{path}/replay?step={odd}")).await.status, 200, "{odd}");
    }
}

#[tokio::test]
async fn a_trace_tells_the_gate_the_wait_and_the_run_apart() {
    for engine in engines() {
        let rig = Rig::start(vec![asking_nobody(engine.builder())], HttpLimits::default()).await;
        let house = &rig.houses[0];
        let request = house.request("file.list", json!({ "path": "." }));
        let call = request.id.as_str().to_owned();
        let outcome = house.run(request).await;
        assert!(outcome.ok, "{outcome:?}");
        house.rows().await;
        let mut steps = turn(0, "x", &call);
        steps.extend([(
            "call_0_1".to_owned(),
            json!({ "callId": "none", "tool": "bash", "ok": false, "code": "DENIED", "ms": 5 }),
        )]);
        session(&rig, ID, "goal", &borrowed(&steps), SessionState::Done).await;
        let browser = Browser::signed_in(&rig, "local").await;
        let path = format!("/projects/p0/sessions/{ID}/trace");
        let page = browser.get(&path).await;
        for shown in ["Model, turn 1", "2.5 s", "file.edit", "bash", "failed: DENIED", "<rect class=\"model\""] {
            assert!(page.body.contains(shown), "{shown}: {}", page.body);
        }
        let slow = browser.get(&format!("{path}?only=slow")).await;
        assert!(slow.body.contains("Model, turn 1") && !slow.body.contains("bash"), "{}", slow.body);
        let failed = browser.get(&format!("{path}?only=failed")).await;
        assert!(failed.body.contains("bash") && !failed.body.contains("Model, turn 1"), "{}", failed.body);
    }
}

#[tokio::test]
async fn a_session_that_stopped_by_itself_says_why() {
    let rig = Rig::one().await;
    let why = json!({ "code": "AI_PROVIDER_ERROR", "message": "the model's server says: <no credit> left" });
    let steps = [turn(0, "I look.", "call-1"), vec![("end_1_0".to_owned(), why)]].concat();
    session(&rig, ID, "goal", &borrowed(&steps), SessionState::Failed).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let told = "The model&#39;s server says: &#60;no credit&#62; left.";
    for path in [format!("sessions/{ID}"), "sessions".to_owned()] {
        let page = browser.get(&format!("/projects/p0/{path}")).await.body;
        assert!(page.contains(told), "{path}: {page}");
    }
    let page = browser.get(&format!("/projects/p0/sessions/{ID}")).await.body;
    assert!(page.contains("Stopped: AI_PROVIDER_ERROR"), "{page}");
    // One that goes on after that says so no more.
    let store = &rig.houses[0].store;
    let held = store.sessions().hold(rig.houses[0].project.id, ID).await.unwrap();
    let page = browser.get(&format!("/projects/p0/sessions/{ID}")).await.body;
    assert!(!page.contains("Why it stopped"), "{page}");
    held.release(SessionState::Done, None).await.unwrap();
}

#[tokio::test]
async fn what_agents_write_is_text_in_every_field_of_a_session() {
    let rig = Rig::one().await;
    let tricks = hostile();
    let mut steps = turn(0, &tricks, "c");
    steps[1].1["content"] = tricks.clone().into();
    steps[1].1["brief"] = tricks.clone().into();
    steps[1].1["tool"] = tricks.clone().into();
    steps[0].1["reply"]["calls"][0]["name"] = tricks.clone().into();
    steps[0].1["reply"]["calls"][0]["arguments"] = json!({ "malformed": tricks });
    steps.push(("say_1_0".to_owned(), json!({ "text": tricks })));
    steps.push(("check_1".to_owned(), json!({ "bad": { "code": tricks, "findings": tricks, "discard": null } })));
    session(&rig, ID, &tricks, &borrowed(&steps), SessionState::Done).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/projects/p0/sessions/{ID}");
    for below in [
        "",
        "/trace",
        "/replay",
        "/replay?step=3",
        "/steps/turn_0",
        "/steps/call_0_0",
        "/steps/say_1_0",
        "/steps/open",
        "/steps/check_1",
    ] {
        let page = browser.get(&format!("{path}{below}")).await;
        assert_is_text(&page, below);
        assert!(page.body.contains("&#60;script&#62;") && page.body.contains("{{ 7 * 7 }}"), "{below}: it is readable");
        assert!(page.body.len() < 1 << 20, "{below}: {} bytes", page.body.len());
    }
    let list = browser.get("/projects/p0/sessions").await;
    assert_is_text(&list, "list");
    assert!(list.body.contains("&#60;script&#62;"));
}

#[tokio::test]
async fn sessions_of_a_project_of_others_are_not_there() {
    let rig = Rig::one().await;
    session(&rig, ID, "goal", &[], SessionState::Done).await;
    rig.houses[0].store.people().add_user("eve").await.unwrap();
    let eve = Browser::signed_in(&rig, "eve").await;
    for below in
        ["", "/new", &format!("/{ID}"), &format!("/{ID}/trace"), &format!("/{ID}/replay"), &format!("/{ID}/steps/open")]
    {
        let theirs = eve.get(&format!("/projects/p0/sessions{below}")).await;
        let none = eve.get(&format!("/projects/p9/sessions{below}")).await;
        assert_eq!((theirs.status, &theirs.body), (none.status, &none.body), "{below}");
        assert_eq!(theirs.status, 404);
    }
}

/// What a project was told to do, over the real store.
pub(crate) struct Told {
    sessions: Sessions,
    project: i64,
    said: Mutex<Vec<String>>,
}

impl Told {
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    async fn info(&self, id: &str, said: String) -> Result<SessionInfo, ToolError> {
        self.said.lock().unwrap().push(said);
        Ok(self.sessions.get(self.project, id).await?.into())
    }
}

impl Work for Told {
    fn models<'a>(&'a self, _: By<'a>) -> Done<'a, Vec<ModelLine>> {
        let line = |name: &str, is_usual| ModelLine { name: name.to_owned(), is_usual };
        Box::pin(async move { Ok(vec![line("openai:<b>x", true), line("script:slow", false)]) })
    }
    fn try_model<'a>(&'a self, _: By<'a>, name: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            match name {
                "openai:<b>x" => Ok(()),
                _ => Err(ToolError::new(ErrorKind::Timeout, "the model has not answered within 30 s")),
            }
        })
    }
    fn export<'a>(&'a self, _: By<'a>) -> Done<'a, Archive> {
        unreachable!()
    }
    fn import<'a>(&'a self, _: By<'a>, _: &'a [u8], _: Replaces) -> Done<'a, Imported> {
        unreachable!()
    }
    fn findings<'a>(&'a self, _: &'a [u8]) -> Done<'a, PackageFindings> {
        unreachable!()
    }
    fn seen_by<'a>(&'a self, _: By<'a>, _: &'a str) -> Done<'a, Option<toolhost_builder::packages::Seen>> {
        unreachable!()
    }
    fn titles<'a>(&'a self, _: By<'a>, ids: &'a [RecordId]) -> Done<'a, BTreeMap<RecordId, String>> {
        let known = ids.iter().filter(|id| id.to_string() == "TKT-007").map(|id| (*id, "A ticket".to_owned()));
        let known = known.collect();
        Box::pin(async { Ok(known) })
    }
    fn workflows<'a>(&'a self, _: By<'a>) -> Done<'a, Vec<toolhost_builder::packages::WorkflowLine>> {
        unreachable!()
    }
    fn changes<'a>(
        &'a self,
        _: By<'a>,
        _: Option<&'a str>,
        _: bool,
    ) -> Done<'a, Vec<toolhost_builder::packages::ChangeSetLine>> {
        unreachable!()
    }
    fn preview<'a>(&'a self, _: By<'a>, _: &'a str, _: Option<Vec<i64>>) -> Done<'a, ChangePreview> {
        unreachable!()
    }
    fn history<'a>(&'a self, _: By<'a>) -> Done<'a, Vec<toolhost_builder::packages::Deed>> {
        unreachable!()
    }
    fn undo_plan<'a>(&'a self, _: By<'a>, _: i64) -> Done<'a, toolhost_builder::packages::UndoPlan> {
        Box::pin(async { Err(ToolError::new(ErrorKind::NotFound, "no such thing")) })
    }

    fn start<'a>(&'a self, by: By<'a>, run: NewRun) -> Done<'a, SessionInfo> {
        Box::pin(async move {
            if run.model.as_deref() == Some("nope") {
                let error = ToolError::new(ErrorKind::Validation, "the operator has configured no such model");
                return Err(error.hint("there is script"));
            }
            let target = run
                .target
                .map(|target| format!("{} {} {:?} {}", target.kind, target.id, target.workflow, target.is_new));
            if run.files.iter().any(|file| file == "model.none") {
                let why = "one of the files for the session, `model.none`: the workspace has no such file or folder";
                return Err(ToolError::new(ErrorKind::Validation, why));
            }
            let (goal, files) = (run.goal, run.files);
            self.info(ID, format!("start {} {goal:?} {} {:?} {files:?} {target:?}", by.user, run.profile, run.ticket))
                .await
        })
    }
    fn go_on<'a>(&'a self, by: By<'a>, session: &'a str, message: Option<String>) -> Done<'a, SessionInfo> {
        Box::pin(async move {
            if message.as_deref() == Some("busy") {
                return Err(ToolError::new(ErrorKind::Conflict, "it is at work already").hint("wait until it stops"));
            }
            self.info(session, format!("go on {} {message:?}", by.user)).await
        })
    }
    fn stop<'a>(&'a self, by: By<'a>, session: &'a str, how: Stop) -> Done<'a, SessionInfo> {
        Box::pin(async move { self.info(session, format!("stop {} {how:?}", by.user)).await })
    }
    fn fork<'a>(&'a self, by: By<'a>, session: &'a str, turns: Option<u32>) -> Done<'a, Forked> {
        Box::pin(async move {
            let session = self.info(session, format!("fork {} {turns:?}", by.user)).await?;
            Ok(Forked { session, turns: turns.unwrap_or(0), unended: None })
        })
    }
    fn package<'a>(&'a self, _: By<'a>) -> Done<'a, Option<Arc<WholePackage>>> {
        unreachable!()
    }
    fn file_undo<'a>(&'a self, _: By<'a>, _: &'a str) -> Done<'a, Undo> {
        unreachable!()
    }
    fn undo_files<'a>(&'a self, _: By<'a>, _: &'a str, _: &'a str) -> Done<'a, ()> {
        unreachable!()
    }
    fn set_member<'a>(&'a self, _: By<'a>, _: &'a str, _: Option<NewRole<'a>>) -> Done<'a, MemberChanged> {
        unreachable!()
    }
    fn quota<'a>(&'a self, _: By<'a>) -> Done<'a, Quota> {
        unreachable!()
    }
    fn set_quota<'a>(&'a self, _: By<'a>, _: Quota) -> Done<'a, ()> {
        unreachable!()
    }
    fn webhooks(&self) -> &dyn WebhookWork {
        unreachable!()
    }
    fn deploys(&self) -> &dyn DeployWork {
        unreachable!()
    }
    fn take_sides<'a>(
        &'a self,
        _: By<'a>,
        _: &'a str,
        _: Option<Vec<i64>>,
        _: &'a BTreeMap<String, Vec<Side>>,
    ) -> Done<'a, ()> {
        unreachable!()
    }
    fn make_token<'a>(&'a self, _: By<'a>, _: TokenWish) -> Done<'a, TokenMade> {
        unreachable!()
    }
    fn revoke_token<'a>(&'a self, _: By<'a>, _: &'a str) -> Done<'a, ()> {
        unreachable!()
    }
}

/// A server whose project does work, and what it was told.
async fn working() -> (Rig, Arc<Told>) {
    working_with(house()).await
}

/// The same over a house of one's own.
pub(crate) async fn working_with(house: HouseBuilder) -> (Rig, Arc<Told>) {
    let told: Arc<Mutex<Option<Arc<Told>>>> = Arc::default();
    let made = Arc::clone(&told);
    let rig = Rig::start_working(vec![house], move |house| {
        let (sessions, project) = (house.store.sessions().clone(), house.project.id);
        let work = Arc::new(Told { sessions, project, said: Mutex::default() });
        *made.lock().unwrap() = Some(Arc::clone(&work));
        work
    })
    .await;
    let told = told.lock().unwrap().clone().unwrap();
    (rig, told)
}

#[tokio::test]
async fn a_form_starts_a_session_and_keeps_what_was_typed_where_it_is_wrong() {
    let (rig, told) = working().await;
    session(&rig, ID, "goal", &[], SessionState::Done).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = "/projects/p0/sessions/new";
    let prefilled = browser.get(&format!("{path}?ticket=TKT-007&kind=step&id=step-03")).await;
    for shown in ["value=\"TKT-007\"", "<option value=\"step\" selected>", "value=\"step-03\"", "<label for=\"goal\">"]
    {
        assert!(prefilled.body.contains(shown), "{shown}: {}", prefilled.body);
    }
    // The models are there to choose from, the usual one first chosen.
    let offered = prefilled.body.contains("<select id=\"model\"") && prefilled.body.contains(" (the default)</option>");
    assert!(offered, "{}", prefilled.body);
    for (typed, beside) in [
        (form(&[("goal", " "), ("ticket", "TKT-<1>")]), "id=\"goal-error\""),
        (form(&[("goal", "x"), ("ticket", "TKT-<1>"), ("profile", "nope")]), "id=\"profile-error\""),
        (form(&[("goal", "x"), ("ticket", "TKT-<1>"), ("kind", "planet"), ("id", "x")]), "id=\"kind-error\""),
        (form(&[("goal", "x"), ("ticket", "TKT-<1>"), ("kind", "step")]), "id=\"id-error\""),
        (form(&[("goal", "x"), ("ticket", "TKT-<1>"), ("id", "step-1")]), "id=\"kind-error\""),
        (form(&[("goal", "x"), ("ticket", "TKT-<1>"), ("model", "nope")]), "id=\"model-error\""),
        (form(&[("goal", "x"), ("ticket", "TKT-<1>")]), "id=\"ticket-error\""),
    ] {
        let wrong = browser.post(path, &typed).await;
        assert_eq!(wrong.status, 400, "{typed}: {wrong:?}");
        assert!(
            wrong.body.contains(beside) && wrong.body.contains("value=\"TKT-&#60;1&#62;\""),
            "{typed}: {}",
            wrong.body
        );
    }
    let all_wrong =
        form(&[("goal", " "), ("ticket", "TKT-008"), ("profile", "nope"), ("model", "nope"), ("kind", "step")]);
    let all_wrong = browser.post(path, &all_wrong).await;
    for field in ["goal", "ticket", "profile", "model", "id"] {
        let beside = format!("id=\"{field}-error\"");
        assert!(all_wrong.body.contains(&beside), "all that is wrong is said at once, {field}: {}", all_wrong.body);
    }
    let no_file = [("goal", "x"), ("ticket", "TKT-007"), ("model", "script:slow"), ("files", "a\r\nmodel.none")];
    let no_file = browser.post(path, &form(&no_file)).await;
    assert!(no_file.status == 400 && no_file.body.contains("id=\"files-error\""), "{no_file:?}");
    assert!(told.said.lock().unwrap().is_empty(), "nothing was started");
    let typed = form(&[("goal", "one\r\ntwo"), ("kind", "step"), ("id", "s"), ("workflow", "main"), ("create", "on")]);
    let started = browser.post(path, &typed).await;
    assert_eq!((started.status, started.header("location")), (303, Some(&*format!("/projects/p0/sessions/{ID}"))));
    let said = told.said.lock().unwrap().pop().unwrap();
    assert_eq!(said, r#"start local "one\ntwo" builder None [] Some("step s Some(\"main\") true")"#);
    let with_files = |more: &[(&str, &str)]| {
        let fields = [("goal", "x"), ("profile", "all"), ("files", " src/a.rs \r\n\r\ndocs")];
        form(&fields.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let both = browser.post(path, &with_files(&[("kind", "step"), ("id", "s")])).await;
    assert!(both.status == 400 && both.body.contains("id=\"files-error\""), "{both:?}");
    assert_eq!(browser.post(path, &with_files(&[])).await.status, 303);
    let said = told.said.lock().unwrap().pop().unwrap();
    assert_eq!(said, r#"start local "x" all None ["src/a.rs", "docs"] None"#);
}

#[tokio::test]
async fn people_say_something_resume_cancel_and_fork_by_forms() {
    let (rig, told) = working().await;
    session(&rig, ID, "goal", &[], SessionState::Paused).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/projects/p0/sessions/{ID}");
    let page = browser.get(&path).await;
    for word in ["say", "resume", "cancel", "fork"] {
        assert!(page.body.contains(&format!("name=\"do\" value=\"{word}\"")), "{word}: {}", page.body);
    }
    assert!(!page.body.contains("value=\"pause\""), "it does not run");
    for (typed, said) in [
        (form(&[("do", "say"), ("text", "go on")]), r#"go on local Some("go on")"#),
        (form(&[("do", "resume")]), "go on local None"),
        (form(&[("do", "pause")]), "stop local Pause"),
        (form(&[("do", "cancel")]), "stop local Cancel"),
        (form(&[("do", "fork"), ("turns", "3")]), "fork local Some(3)"),
        (form(&[("do", "fork"), ("turns", "")]), "fork local None"),
    ] {
        let done = browser.post(&path, &typed).await;
        // Who has said something may go on with the next message.
        let leads_to = if typed.contains("say") { format!("{path}#text") } else { path.clone() };
        assert_eq!((done.status, done.header("location")), (303, Some(&*leads_to)), "{typed}: {done:?}");
        assert_eq!(told.said.lock().unwrap().pop().unwrap(), said);
    }
    let forked = browser.post(&path, &form(&[("do", "fork")])).await;
    assert!(forked.header("set-cookie").is_some_and(|cookie| cookie.contains("forked")), "{forked:?}");
    told.said.lock().unwrap().clear();
    let no_number = browser.post(&path, &form(&[("do", "fork"), ("turns", "x")])).await;
    let beside = "value=\"x\" aria-invalid=\"true\" aria-describedby=\"turns-error\"";
    assert!(no_number.status == 400 && no_number.body.contains(beside), "{no_number:?}");
    let busy = browser.post(&path, &form(&[("do", "say"), ("text", "busy")])).await;
    assert_eq!(busy.status, 409);
    assert!(busy.body.contains("busy</textarea>") && busy.body.contains("Wait until it stops"), "{}", busy.body);
    for wrong in
        [form(&[("do", "say"), ("text", " ")]), form(&[("do", "fork"), ("turns", "x")]), form(&[("do", "dance")])]
    {
        assert_eq!(browser.post(&path, &wrong).await.status, 400, "{wrong}");
    }
    assert!(told.said.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_session_at_work_can_be_told_something_and_shows_what_it_has_not_heard() {
    let (rig, told) = working().await;
    let house = &rig.houses[0];
    session(&rig, ID, "goal", &[], SessionState::Paused).await;
    let sessions = house.store.sessions();
    let held = sessions.hold(house.project.id, ID).await.unwrap();
    let browser = Browser::signed_in(&rig, "local").await;
    let path = format!("/projects/p0/sessions/{ID}");
    let page = browser.get(&path).await.body;
    assert!(page.contains("value=\"say\"") && page.contains("hears this before its next turn"), "{page}");
    assert!(!page.contains("not heard yet"), "{page}");
    assert_eq!(browser.post(&path, &form(&[("do", "say"), ("text", "Use tabs")])).await.status, 303);
    assert_eq!(told.said.lock().unwrap().pop().unwrap(), r#"go on local Some("Use tabs")"#);
    let secret = format!("ghp_\u{200b}{}", "a1B2".repeat(9));
    sessions.leave(house.project.id, ID, &format!("Use <b>tabs</b> {secret}")).await.unwrap();
    let page = browser.get(&path).await.body;
    assert!(page.contains("Message, not heard yet") && page.contains("Use &#60;b&#62;tabs"), "{page}");
    assert!(page.contains("[redacted]") && !page.contains("a1B2"), "as the step that it becomes: {page}");
    assert!(toolhost_contract::Journal::take_message(&held, "say_0_0").await.unwrap().is_some());
    assert!(!browser.get(&path).await.body.contains("not heard yet"));
    // The page was open when somebody else cancelled the session: it still shows what was typed.
    assert!(page.contains("value=\"pause\""), "{page}");
    sessions.want(house.project.id, ID, toolhost_contract::Signal::Pause).await.unwrap();
    let page = browser.get(&path).await.body;
    assert!(page.contains("pauses after the call under way") && !page.contains("value=\"pause\""), "{page}");
    sessions.leave(house.project.id, ID, "And hurry").await.unwrap();
    sessions.want(house.project.id, ID, toolhost_contract::Signal::Cancel).await.unwrap();
    let page = browser.get(&path).await.body;
    assert!(page.contains("being cancelled"), "{page}");
    held.release(SessionState::Paused, None).await.unwrap();
    assert!(browser.get(&path).await.body.contains("Message, never heard"));
    let late = browser.post(&path, &form(&[("do", "say"), ("text", "busy")])).await;
    assert!(late.status == 409 && late.body.contains("What you have written"), "{late:?}");
    assert!(late.body.contains("<code class=\"whole\">busy</code>"), "{late:?}");
}

#[tokio::test]
async fn a_viewer_is_offered_nothing_and_starts_nothing() {
    let (rig, told) = working().await;
    session(&rig, ID, "goal", &[], SessionState::Paused).await;
    let people = rig.houses[0].store.people();
    let ann = people.add_user("ann").await.unwrap();
    people.set_role(rig.houses[0].project.id, ann, Role::Viewer).await.unwrap();
    let viewer = Browser::signed_in(&rig, "ann").await;
    let page = viewer.get(&format!("/projects/p0/sessions/{ID}")).await;
    assert!(page.status == 200 && !page.body.contains("name=\"do\""), "{}", page.body);
    assert!(!viewer.get("/projects/p0/sessions").await.body.contains("sessions/new"));
    let started = viewer.post("/projects/p0/sessions/new", &form(&[("goal", "x")])).await;
    assert_eq!(started.status, 403, "{started:?}");
    for word in ["say", "resume", "cancel", "fork"] {
        let typed = form(&[("do", word), ("text", "x")]);
        assert_eq!(viewer.post(&format!("/projects/p0/sessions/{ID}"), &typed).await.status, 403, "{word}");
    }
    assert!(told.said.lock().unwrap().is_empty());
    // A session of somebody else's: an editor may fork it, and only its user goes on with it.
    people.set_role(rig.houses[0].project.id, ann, Role::Editor).await.unwrap();
    let page = viewer.get(&format!("/projects/p0/sessions/{ID}")).await;
    assert!(page.body.contains("value=\"fork\"") && !page.body.contains("value=\"say\""), "{}", page.body);
}

#[tokio::test]
async fn models_are_listed_and_owners_alone_test_them() {
    let (rig, _) = working().await;
    let people = rig.houses[0].store.people();
    let id = people.add_user("ann").await.unwrap();
    people.set_role(rig.houses[0].project.id, id, Role::Editor).await.unwrap();
    let (owner, ann) = (Browser::signed_in(&rig, "local").await, Browser::signed_in(&rig, "ann").await);
    let path = "/projects/p0/policy/models";
    let page = owner.get(path).await.body;
    assert!(page.contains("openai:&#60;b&#62;x") && page.contains("where a session names none"), "{page}");
    let good = owner.post(path, &form(&[("model", "openai:<b>x")])).await;
    assert!(good.status == 200 && good.body.contains("openai:&#60;b&#62;x has answered."), "{good:?}");
    let slow = owner.post(path, &form(&[("model", "script:slow")])).await;
    assert!(slow.status >= 400 && slow.body.contains("has not answered within 30 s"), "{slow:?}");
    assert!(!ann.get(path).await.body.contains("Test the connection"));
    assert_eq!(ann.post(path, &form(&[("model", "openai:<b>x")])).await.status, 403);
}
