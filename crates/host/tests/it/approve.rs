//! Step 7: a person is asked. Only a clear yes is one, it is used once, and every answer is written down.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_contract::BoxFuture;
use toolhost_contract::{Answer, Call, CallId, CallerKind, ErrorCode, ErrorKind};
use toolhost_host::{Asking, Decision, Hooks, Person, Presented, Presenter, Shown, Standing, Unattended};
use toolhost_store::{Ask, AskLimits, AskState, NewAsk, Role};
use toolhost_testkit::{House, HouseBuilder, SaysNo, SaysYes, said};

use crate::probes::{Watched, house};

/// Where a call comes back as pending at once.
fn waiting() -> Asking {
    Asking { unattended: Unattended::Wait, hold: Duration::ZERO, ..Asking::default() }
}

/// A house whose asks stay open, with one of them.
async fn with_an_open_ask() -> (House, Watched, Call) {
    let (builder, watched) = house();
    let house = builder.asking(waiting()).build().await;
    let call = house.request("probe.send", json!({ "text": "x" }));
    let outcome = house.run(call.clone()).await;
    assert_eq!((outcome.ok, &outcome.data["status"]), (true, &json!("pending_approval")), "{outcome:?}");
    assert_eq!(outcome.data["approvalId"], "ask-1");
    assert_eq!(watched.runs(), 0);
    (house, watched, call)
}

/// The same call anew, as a client repeats it.
fn again(house: &House, call: &Call) -> Call {
    Call { id: house.request("probe.send", Value::Null).id, ..call.clone() }
}

async fn decide(house: &House, answer: Answer) -> Result<(), toolhost_contract::ToolError> {
    let decision = Decision { answer, rule: None };
    house.gate.queue().decide(&house.owner(), 1, decision, "test").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_is_the_answer_is_no() {
    let (builder, watched) = house();
    let house = builder.build().await;
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    let error = outcome.error.clone().unwrap();
    assert_eq!((error.code, error.kind), (ErrorCode::ToolForbidden, ErrorKind::Denied));
    assert_eq!(house.events_of(&outcome).await, ["finished"]);
    assert_eq!(watched.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_comes_back_with_its_comment() {
    let (builder, watched) = house();
    let house = builder.person(SaysNo("use the other remote")).build().await;
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    assert!(outcome.text.contains("use the other remote"), "{}", outcome.text);
    assert_eq!(house.rows().await[0]["decision"]["comment"], "use the other remote");
    assert_eq!(watched.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_written_down_before_the_call_starts() {
    let (builder, watched) = house();
    let house = builder.person(SaysYes).build().await;
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    assert!(outcome.ok, "{outcome:?}");
    assert_eq!(house.events_of(&outcome).await, ["decision", "started", "finished"]);
    let rows = house.rows().await;
    assert_eq!((&rows[0]["decision"]["say"], &rows[0]["digest"]), (&json!("allow"), &rows[1]["digest"]));
    assert_eq!((&rows[0]["caller"]["door"], &rows[1]["decision"]["ask"]), (&json!("test"), &json!("ask-1")));
    assert_eq!(watched.runs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_run_instead_and_pass_every_check_anew() {
    let edited = |arguments: Value| move |_: &Shown| said(Answer::AllowEdited { arguments: arguments.clone() });
    let (builder, watched) = house();
    let house_ok = builder.person(edited(json!({ "text": "y" }))).build().await;
    let outcome = house_ok.call("probe.send", json!({ "text": "x" })).await;
    assert_eq!((outcome.ok, watched.runs()), (true, 1));
    assert_eq!(outcome.meta.edited.as_deref(), Some("`text` is `y`"));
    let told = "[a person changed the arguments of this call before they allowed it: `text` is `y`]";
    assert!(outcome.text.ends_with(told), "{}", outcome.text);
    let rows = house_ok.rows().await;
    assert_eq!((&rows[1]["event"], &rows[1]["arguments"]), (&json!("started"), &json!({ "text": "y" })));
    assert_ne!(rows[1]["digest"], rows[0]["digest"], "what ran is not what was asked");
    let by_itself = house_ok.call("probe.send", json!({ "text": "y" })).await;
    assert!(by_itself.ok);
    assert_eq!(house_ok.rows().await[3]["digest"], rows[1]["digest"], "it is the digest of what ran");

    let (builder, watched) = house();
    let house_bad = builder.person(edited(json!({ "text": 7, "more": 1 }))).build().await;
    let outcome = house_bad.call("probe.send", json!({ "text": "x" })).await;
    assert_eq!((outcome.error.unwrap().kind, watched.runs()), (ErrorKind::Validation, 0));

    let rule = "[[profiles.all.rules]]\ntool = 'probe.send'\nwhen = { text = 'z' }\ndecide = 'deny'";
    let (builder, watched) = house();
    let house_denied = builder.operator(rule).person(edited(json!({ "text": "z" }))).build().await;
    let outcome = house_denied.call("probe.send", json!({ "text": "x" })).await;
    assert_eq!((outcome.error.unwrap().kind, watched.runs()), (ErrorKind::Denied, 0));
}

/// Remembers what it was asked; the answer never comes.
async fn asked_without_answer(builder: HouseBuilder) -> (House, Arc<Mutex<Vec<Shown>>>) {
    let asked: Arc<Mutex<Vec<Shown>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let person = move |shown: &Shown| {
        seen.lock().unwrap().push(shown.clone());
        Presented::Gone
    };
    let asking = Asking { hold: Duration::from_secs(600), ..waiting() };
    (builder.asking(asking).person(person).host_variable("DEPLOY_TOKEN", "hunter2hunter2").build().await, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_withdraws_its_question_and_runs_nothing() {
    let (builder, watched) = house();
    let (house, asked) = asked_without_answer(builder).await;
    let hooks = Hooks { hold: Some(Duration::from_secs(600)), ..house.hooks() };
    let call = house.request("probe.send", json!({ "text": "with hunter2hunter2" }));
    let running = tokio::spawn({
        let (gate, hooks) = (Arc::clone(&house.gate), hooks.clone());
        async move { gate.call(call, hooks).await }
    });
    toolhost_testkit::until("it was asked", || !asked.lock().unwrap().is_empty()).await;
    hooks.cancel.cancel();
    let outcome = running.await.unwrap();
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Cancelled);
    assert_eq!(watched.runs(), 0);
    let (ask, _) = house.gate.queue().get(house.project.id, 1).await.unwrap();
    assert_eq!(ask.state, AskState::Withdrawn);
    assert_eq!(decide(&house, Answer::Allow).await.unwrap_err().kind, ErrorKind::Conflict);
    let asked = asked.lock().unwrap();
    assert_eq!((asked[0].tool.as_str(), asked[0].persona.as_str()), ("probe.send", "Test Agent"));
    assert_eq!(asked[0].arguments, json!({ "text": "with [redacted]" }), "a secret is not shown to whoever approves");
}

/// Is asked, and is still thinking.
#[derive(Default)]
struct Thinks {
    person: Mutex<Option<Person>>,
    asked: Mutex<u32>,
    ended: Mutex<Option<AskState>>,
}

impl Presenter for Thinks {
    fn place(&self) -> &'static str {
        "test"
    }

    fn person(&self) -> Person {
        self.person.lock().unwrap().clone().unwrap()
    }

    fn present<'a>(&'a self, _: &'a Ask, _: &'a Shown) -> BoxFuture<'a, Presented> {
        *self.asked.lock().unwrap() += 1;
        Box::pin(std::future::pending())
    }

    fn ended(&self, ask: &Ask) {
        *self.ended.lock().unwrap() = Some(ask.state);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_let_go_leaves_its_question_open() {
    let (builder, watched) = house();
    let house = builder.asking(waiting()).build().await;
    let thinks = Arc::new(Thinks { person: Mutex::new(Some(house.owner())), ..Thinks::default() });
    let presenter: Arc<dyn Presenter> = Arc::<Thinks>::clone(&thinks);
    let (thinking, elsewhere) = (Some(presenter), Some(Duration::from_secs(600)));
    for hooks in [Hooks { presenter: thinking, ..Hooks::default() }, Hooks { hold: elsewhere, ..Hooks::default() }] {
        let (call, is_shown) = (house.request("probe.send", json!({ "text": "x" })), hooks.presenter.is_some());
        let running = tokio::spawn({
            let (gate, hooks) = (Arc::clone(&house.gate), hooks.clone());
            async move { gate.call(call, hooks).await }
        });
        if is_shown {
            toolhost_testkit::until("it was asked", || *thinks.asked.lock().unwrap() == 1).await;
        }
        hooks.let_go.cancel();
        let outcome = running.await.unwrap();
        assert_eq!((outcome.ok, &outcome.data["status"]), (true, &json!("pending_approval")), "{outcome:?}");
        let (ask, _) = house.gate.queue().get(house.project.id, 1).await.unwrap();
        assert_eq!((ask.state, watched.runs()), (AskState::Open, 0));
    }
    assert_eq!(*thinks.ended.lock().unwrap(), Some(AskState::Open));
    decide(&house, Answer::Allow).await.unwrap();
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    assert_eq!((outcome.ok, watched.runs()), (true, 1), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gives_up_takes_no_question_from_others_who_wait() {
    let (house, watched, call) = with_an_open_ask().await;
    // The same call in a second host over the same database, where nobody can be asked.
    let (builder, _) = crate::probes::house();
    let second = builder.workspace(house.workspace).asking(Asking { unattended: Unattended::Deny, ..waiting() });
    let second = second.build().await;
    let refused = second.run(Call { id: CallId::new("denied"), ..call.clone() }).await;
    assert_eq!(refused.error.unwrap().kind, ErrorKind::Denied);
    let (ask, _) = house.gate.queue().get(house.project.id, 1).await.unwrap();
    assert_eq!(ask.state, AskState::Open);
    // And one whose caller goes.
    let hooks = Hooks { hold: Some(Duration::from_secs(600)), ..Hooks::default() };
    let running = tokio::spawn({
        let (gate, hooks) = (Arc::clone(&house.gate), hooks.clone());
        let call = Call { id: CallId::new("cancelled"), ..call.clone() };
        async move { gate.call(call, hooks).await }
    });
    hooks.cancel.cancel();
    assert_eq!(running.await.unwrap().error.unwrap().kind, ErrorKind::Cancelled);
    let (ask, _) = house.gate.queue().get(house.project.id, 1).await.unwrap();
    assert_eq!((ask.state, watched.runs()), (AskState::Open, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_leaves_the_question_open_and_is_no_yes() {
    let (builder, watched) = house();
    let house = builder.asking(waiting()).person(|_: &Shown| Presented::Gone).build().await;
    let outcome = house.call("probe.send", json!({ "text": "x" })).await;
    assert_eq!((outcome.data["status"].as_str(), watched.runs()), (Some("pending_approval"), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_from_elsewhere_reaches_the_call_that_waits() {
    let (builder, watched) = house();
    let house = builder.asking(Asking { hold: Duration::from_secs(600), ..waiting() }).build().await;
    let call = house.request("probe.send", json!({ "text": "x" }));
    let running = tokio::spawn({
        let gate = Arc::clone(&house.gate);
        async move { gate.call(call, Hooks::default()).await }
    });
    // Another process: a queue of its own on the same rows.
    loop {
        if !house.gate.queue().asks().open_after(house.project.id, 0, 10).await.unwrap().asks.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    decide(&house, Answer::Allow).await.unwrap();
    assert_eq!((running.await.unwrap().ok, watched.runs()), (true, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_two_answers_stays_and_the_other_is_told() {
    let (house, watched, call) = with_an_open_ask().await;
    decide(&house, Answer::Deny { comment: Some("no".to_owned()) }).await.unwrap();
    let late = decide(&house, Answer::Allow).await.unwrap_err();
    assert_eq!(late.kind, ErrorKind::Conflict);
    assert!(late.message.contains("was answered before by local"), "{}", late.message);
    let outcome = house.run(again(&house, &call)).await;
    assert_eq!((outcome.error.unwrap().kind, watched.runs()), (ErrorKind::Denied, 0));
    // The no was told; the same call asks anew.
    let outcome = house.run(again(&house, &call)).await;
    assert_eq!(outcome.data["approvalId"], "ask-2");
}

/// Rules: 002.74.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_the_expiry_is_refused_and_so_is_a_yes_that_was_not_used_in_time() {
    let (house, watched, _) = with_an_open_ask().await;
    house.clock.advance(Duration::from_secs(3000));
    let late = decide(&house, Answer::Allow).await.unwrap_err();
    assert_eq!((late.kind, late.message.as_str()), (ErrorKind::Conflict, "ask-1 has expired"));

    let (house, watched_2, call_2) = with_an_open_ask().await;
    decide(&house, Answer::Allow).await.unwrap();
    house.clock.advance(Duration::from_secs(3000));
    let outcome = house.run(again(&house, &call_2)).await;
    assert_eq!(outcome.data["approvalId"], "ask-2", "{outcome:?}");
    assert_eq!((watched.runs(), watched_2.runs()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_told_to_have_expired_does_not_live_again_when_the_clock_goes_back() {
    let (house, watched, call) = with_an_open_ask().await;
    decide(&house, Answer::Allow).await.unwrap();
    house.clock.advance(Duration::from_secs(3000));
    let (ask, _) = house.gate.queue().get(house.project.id, 1).await.unwrap();
    assert_eq!(ask.state, AskState::Expired);
    house.clock.turn_back(Duration::from_secs(2000));
    let outcome = house.run(again(&house, &call)).await;
    assert_eq!((&outcome.data["approvalId"], watched.runs()), (&json!("ask-2"), 0), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_answer_is_a_no() {
    let (house, watched, call) = with_an_open_ask().await;
    // As a newer version, or a hand, might have written it.
    let row = toolhost_store::Entry {
        event: toolhost_store::Event::Decision,
        call_id: call.id.clone(),
        session_id: None,
        user_id: 1,
        project_id: house.project.id,
        caller: json!({}),
        tool: "probe.send".to_owned(),
        effect: None,
        arguments: Value::Null,
        digest: None,
        decision: None,
        outcome: None,
        duration_ms: None,
        fence: String::new(),
        trace: toolhost_contract::Trace::None,
    };
    let answer = json!({ "say": "certainly", "allow": true });
    let change = toolhost_store::AskChange::Answer { number: 1, answer, by: "local".to_owned(), permit: None };
    house.store.audit().append_with(row, change).await.unwrap();
    let outcome = house.run(again(&house, &call)).await;
    assert_eq!((outcome.error.unwrap().kind, watched.runs()), (ErrorKind::Denied, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_calls_that_race_for_one_yes_one_runs() {
    let (house, watched, call) = with_an_open_ask().await;
    decide(&house, Answer::Allow).await.unwrap();
    let racing: Vec<_> = (0..100)
        .map(|_| {
            let (gate, call) = (Arc::clone(&house.gate), again(&house, &call));
            tokio::spawn(async move { gate.call(call, Hooks::default()).await })
        })
        .collect();
    let mut ran = 0;
    for outcome in futures::future::join_all(racing).await {
        let outcome = outcome.unwrap();
        // The others find the yes used, or ask anew; none of them runs.
        ran += u64::from(outcome.ok && outcome.data["status"].is_null());
        assert!(outcome.ok || outcome.error.as_ref().unwrap().kind == ErrorKind::Conflict, "{outcome:?}");
    }
    assert_eq!((ran, watched.runs()), (1, 1));
    assert!(house.verify().await.problems.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_holds_for_the_very_same_call_and_no_other() {
    type Flip = fn(&mut Call);
    let flips: [(&str, Flip); 9] = [
        ("arguments", |call| call.arguments = json!({ "text": "y" })),
        ("another argument", |call| call.arguments = json!({ "text": "x", "loud": true })),
        ("kind of caller", |call| call.caller.kind = CallerKind::Person),
        ("profile", |call| "other".clone_into(&mut call.caller.profile)),
        ("persona", |call| "Somebody".clone_into(&mut call.caller.persona)),
        ("session", |call| call.scope.session_id = Some("s2".to_owned())),
        ("no session", |call| call.scope.session_id = None),
        ("workflow", |call| call.scope.workflow_id = Some(1)),
        ("ticket", |call| call.scope.ticket_id = Some("TICK-001".to_owned())),
    ];
    let (builder, watched) = house();
    let house = builder.operator("[profiles.other]\ntools = ['probe.*']").asking(waiting()).build().await;
    let call = house.request("probe.send", json!({ "text": "x" }));
    house.run(call.clone()).await;
    decide(&house, Answer::Allow).await.unwrap();
    for (what, flip) in flips {
        let mut other = again(&house, &call);
        flip(&mut other);
        let outcome = house.run(other).await;
        assert_eq!(outcome.data["status"], "pending_approval", "{what}: {outcome:?}");
        assert_ne!(outcome.data["approvalId"], "ask-1", "{what}");
    }
    assert_eq!(watched.runs(), 0);
    // Another user and another project do not get as far; the call itself runs.
    for stranger in [(2, house.project.id), (1, house.project.id + 1)] {
        let mut other = again(&house, &call);
        (other.scope.user_id, other.scope.project_id) = stranger;
        assert_eq!(house.run(other).await.error.unwrap().kind, ErrorKind::Permission);
    }
    assert!(house.run(again(&house, &call)).await.ok);
    assert_eq!(watched.runs(), 1);
    assert_eq!(house.run(again(&house, &call)).await.data["status"], "pending_approval", "once");
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "somebody beside the host changes the file")]
async fn what_changed_since_it_was_shown_needs_a_new_yes() {
    let (builder, watched) = house();
    let rule = "[[profiles.all.rules]]\ntool = 'probe.put'\ndecide = 'ask'";
    let house = builder.operator(rule).asking(waiting()).build().await;
    house.workspace.write("made.txt", "one");
    let call = house.request("probe.put", json!({ "text": "x" }));
    house.run(call.clone()).await;
    decide(&house, Answer::Allow).await.unwrap();
    house.workspace.write("made.txt", "two");
    let outcome = house.run(again(&house, &call)).await;
    assert_eq!((&outcome.data["approvalId"], watched.runs()), (&json!("ask-2"), 0), "{outcome:?}");
    // And where the call itself waits while it changes.
    let (builder, watched) = crate::probes::house();
    let root = house.workspace.root();
    let person = move |_: &Shown| {
        std::fs::write(root.join("made.txt"), "three").unwrap();
        said(Answer::Allow)
    };
    let house = builder.operator(rule).workspace(house.workspace).person(person).build().await;
    let outcome = house.call("probe.put", json!({ "text": "x" })).await;
    assert_eq!((outcome.error.unwrap().kind, watched.runs()), (ErrorKind::Conflict, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_allows_its_like_until_it_ends_or_is_revoked() {
    let (house, watched, call) = with_an_open_ask().await;
    let (_, shown) = house.gate.queue().get(house.project.id, 1).await.unwrap();
    assert_eq!(
        shown.rule_text().unwrap(),
        "probe.send when text = x, and no other argument; for everybody with the profile all"
    );
    let rule = |pattern: &str| {
        let conditions = [("text".to_owned(), pattern.to_owned())].into();
        Decision { answer: Answer::Allow, rule: Some(Standing { conditions, lives_ms: 60_000 }) }
    };
    let queue = house.gate.queue();
    let wrong = queue.decide(&house.owner(), 1, rule("y*"), "test").await.unwrap_err();
    assert!(wrong.message.contains("would not allow this very call"), "{}", wrong.message);
    queue.decide(&house.owner(), 1, rule("x*"), "test").await.unwrap();
    for text in ["x", "xy", "x z"] {
        let mut like = again(&house, &call);
        like.arguments = json!({ "text": text });
        let outcome = house.run(like).await;
        assert!(outcome.ok, "{text}");
        // The yes that the rule came with is used by the call it was given for, and by no other.
        let (ask, _) = queue.get(house.project.id, 1).await.unwrap();
        let used_by = ask.used_by.unwrap();
        assert_eq!((ask.state, used_by == outcome.meta.call_id.as_str()), (AskState::Used, text == "x"), "{text}");
        assert_eq!(ask.outcome.unwrap()["meta"]["callId"], used_by);
    }
    assert_eq!(watched.runs(), 3);
    let mut other = again(&house, &call);
    other.arguments = json!({ "text": "yx" });
    assert_eq!(house.run(other).await.data["status"], "pending_approval");
    let permit = queue.asks().permits(house.project.id, 10).await.unwrap().remove(0);
    queue.revoke(&house.owner(), permit.number, "test").await.unwrap();
    let mut like = again(&house, &call);
    like.arguments = json!({ "text": "xy" });
    assert_eq!(house.run(like.clone()).await.data["status"], "pending_approval");
    assert_eq!(watched.runs(), 3);
    let twice = queue.revoke(&house.owner(), permit.number, "test").await.unwrap_err();
    assert_eq!(twice.kind, ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_rule_allows_nothing() {
    let (house, watched, call) = with_an_open_ask().await;
    let conditions = [("text".to_owned(), "*".to_owned())].into();
    let decision = Decision { answer: Answer::Allow, rule: Some(Standing { conditions, lives_ms: 60_000 }) };
    house.gate.queue().decide(&house.owner(), 1, decision, "test").await.unwrap();
    house.clock.advance(Duration::from_secs(61));
    let mut like = again(&house, &call);
    like.arguments = json!({ "text": "z" });
    assert_eq!(house.run(like).await.data["status"], "pending_approval");
    assert_eq!(watched.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_back_yes_is_none() {
    let (house, watched, call) = with_an_open_ask().await;
    decide(&house, Answer::Allow).await.unwrap();
    house.gate.queue().take_back(&house.owner(), 1, "test").await.unwrap();
    assert_eq!(house.run(again(&house, &call)).await.data["approvalId"], "ask-2");
    assert_eq!(watched.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_read_decides_nothing() {
    let (house, watched, call) = with_an_open_ask().await;
    let people = house.store.people();
    let viewer = people.add_user("eve").await.unwrap();
    people.set_role(house.project.id, viewer, toolhost_store::Role::Viewer).await.unwrap();
    for user_id in [viewer, viewer + 1] {
        let person = toolhost_host::Person { user_id, ..house.owner() };
        let decision = Decision { answer: Answer::Allow, rule: None };
        let refused = house.gate.queue().decide(&person, 1, decision, "test").await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Permission);
    }
    assert_eq!(house.run(again(&house, &call)).await.data["approvalId"], "ask-1");
    assert_eq!(watched.runs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_to_answer_is_apart_from_the_role() {
    let (house, watched, call) = with_an_open_ask().await;
    let people = house.store.people();
    let user_id = people.add_user("eve").await.unwrap();
    let person = toolhost_host::Person { user_id, ..house.owner() };
    let allow = || Decision { answer: Answer::Allow, rule: None };
    for (role, approver, may) in [
        (Role::Editor, Some(false), false),
        // A change of the role alone leaves what was said.
        (Role::Owner, None, false),
        (Role::Viewer, None, false),
        (Role::Viewer, Some(true), true),
    ] {
        assert_eq!(people.set_member(house.project.id, user_id, role, approver).await.unwrap(), may);
        assert_eq!(house.gate.queue().is_approver(&person).await.unwrap(), may);
        let decided = house.gate.queue().decide(&person, 1, allow(), "test").await;
        assert_eq!(decided.is_ok(), may, "{role:?}: {decided:?}");
        if let Err(refused) = decided {
            assert_eq!(refused.kind, ErrorKind::Permission);
        }
    }
    let ran = house.run(again(&house, &call)).await;
    assert!(ran.ok && watched.runs() == 1, "a viewer with the right has allowed it: {ran:?}");
    // The right is gone with the membership.
    assert!(people.remove(house.project.id, user_id).await.unwrap());
    assert!(!people.is_approver(house.project.id, user_id).await.unwrap());
    assert!(people.set_member(house.project.id, user_id, Role::Editor, None).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_has_an_end() {
    let (house, _, call) = with_an_open_ask().await;
    let asks = house.store.asks();
    let new = |n: i64| NewAsk {
        project_id: house.project.id,
        kind: toolhost_store::AskKind::Approval,
        digest: n.to_string(),
        effect_digest: String::new(),
        subject: None,
        round: 1,
        user_id: 1,
        session_id: None,
        tool: "probe.send".to_owned(),
        call: json!({}),
        shown: json!({}),
        lives_ms: 1000,
        limits: AskLimits { open: i64::MAX, bytes: i64::MAX },
    };
    for n in 1..toolhost_store::ASKS_OPEN_MAX {
        asks.open(&new(n)).await.unwrap();
    }
    let mut other = again(&house, &call);
    other.arguments = json!({ "text": "one too many" });
    assert_eq!(house.run(other).await.error.unwrap().kind, ErrorKind::Limit);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_second_person_has_to_allow_whoever_asks_may_only_say_no() {
    let (builder, watched) = house();
    // Somebody is at the terminal of the call, and it is its own user.
    let asking = Asking { second_person: true, ..waiting() };
    let house = builder.person(SaysYes).asking(asking).build().await;
    let call = house.request("probe.send", json!({ "text": "x" }));
    let outcome = house.run(call.clone()).await;
    assert_eq!(outcome.data["status"], "pending_approval", "{outcome:?}");
    let refused = decide(&house, Answer::Allow).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Permission, "{refused:?}");
    assert_eq!(watched.runs(), 0);
    let people = house.store.people();
    let other = people.add_user("other").await.unwrap();
    people.set_role(house.project.id, other, toolhost_store::Role::Editor).await.unwrap();
    let person = Person { user_id: other, project_id: house.project.id, name: "other".to_owned() };
    // What they write themselves nobody else would have seen.
    let edited = Decision { answer: Answer::AllowEdited { arguments: json!({ "text": "mine" }) }, rule: None };
    assert!(house.gate.queue().decide(&person, 1, edited, "test").await.is_err());
    let decision = Decision { answer: Answer::Allow, rule: None };
    house.gate.queue().decide(&person, 1, decision, "test").await.unwrap();
    let ran = house.run(again(&house, &call)).await;
    assert!(ran.ok && watched.runs() == 1, "{ran:?}");
    // A rule of another's holds.
    let standing = Standing { conditions: [("text".to_owned(), "z".to_owned())].into(), lives_ms: 60_000 };
    let call = house.request("probe.send", json!({ "text": "z" }));
    assert_eq!(house.run(call.clone()).await.data["approvalId"], "ask-2");
    let rule = Decision { answer: Answer::Allow, rule: Some(standing) };
    house.gate.queue().decide(&person, 2, rule, "test").await.unwrap();
    assert!(house.run(house.request("probe.send", json!({ "text": "z" }))).await.ok);
    let mine = Decision { answer: Answer::Allow, rule: None };
    assert!(house.gate.queue().decide(&house.owner(), 2, mine, "test").await.is_err());
    // A no needs nobody else.
    let call = house.request("probe.send", json!({ "text": "y" }));
    let asked = house.run(call).await;
    let number = toolhost_host::ask_number(asked.data["approvalId"].as_str().unwrap()).unwrap();
    let decision = Decision { answer: Answer::Deny { comment: None }, rule: None };
    house.gate.queue().decide(&house.owner(), number, decision, "test").await.unwrap();
}
