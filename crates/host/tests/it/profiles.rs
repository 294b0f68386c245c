//! Profiles and the project's own policy: what is loaded, and what is refused.

use serde_json::json;
use toolhost_host::{Error, Profiles, Registry, Tightening};

use crate::probes::{house, tools};

fn load(operator: &str) -> Result<Profiles, Error> {
    Profiles::load(&Registry::new(tools(&Default::default())).unwrap(), toolhost_testkit::PROFILES, &[operator], None)
}

fn tightening(text: &str) -> Result<Tightening, Error> {
    Tightening::parse(text, &Registry::new(tools(&Default::default())).unwrap())
}

fn tools_of(profiles: &Profiles, name: &str) -> Vec<String> {
    profiles.get(name).unwrap().tools.clone()
}

fn refused(operator: &str) -> String {
    load(operator).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_profile_extends_another_and_adds_to_it() {
    let profiles = load(
        r#"
        [profiles.base]
        tools = ["probe.echo"]
        description = "base"
        limits = { calls_per_session = 5 }
        [profiles.more]
        extends = "base"
        tools = ["probe.put"]
        [profiles.most]
        extends = "more"
        tools = ["probe_send"]
        fence = { workspace = "write", network = ["example.org"] }
        "#,
    )
    .unwrap();
    assert_eq!(tools_of(&profiles, "base"), ["probe.echo"]);
    assert_eq!(tools_of(&profiles, "more"), ["probe.echo", "probe.put"]);
    assert_eq!(tools_of(&profiles, "most"), ["probe.echo", "probe.put", "probe.send"]);
    let more = profiles.get("more").unwrap();
    assert_eq!((more.limits.calls_per_session, more.description.as_str()), (5, "base"));
    assert_eq!(more.fence.workspace, toolhost_contract::workspace::Access::Read, "what is not granted is not given");
    assert_eq!(profiles.get("most").unwrap().fence.network.len(), 1);
}

#[test]
fn an_unknown_tool_is_refused_with_the_nearest_name() {
    let said = refused("[profiles.x]\ntools = ['probe.ecko']");
    assert!(
        said.contains("`x`") && said.contains("`probe.ecko`") && said.contains("did you mean `probe.echo`"),
        "{said}"
    );
    let said = refused("[profiles.x]\ntools = ['nothing.*']");
    assert!(said.contains("nothing.*"), "{said}");
}

#[test]
fn what_extends_itself_or_nothing_is_refused() {
    let said = refused("[profiles.a]\nextends = 'b'\n[profiles.b]\nextends = 'a'");
    assert!(said.contains("leads in a circle"), "{said}");
    let said = refused("[profiles.a]\nextends = 'a'");
    assert!(said.contains("leads in a circle"), "{said}");
    let said = refused("[profiles.a]\nextends = 'nobody'");
    assert!(said.contains("`nobody`") && said.contains("does not exist"), "{said}");
}

#[test]
fn a_misspelt_key_is_refused_rather_than_passed_over() {
    for text in [
        "[profiles.a]\ntool = ['probe.echo']",
        "[profile.a]\ntools = []",
        "[profiles.a]\nfence = { workspaces = 'write' }",
        "[profiles.a]\nfence = { workspace = 'all' }",
        "[profiles.a]\nfence = { workspace = 'read', network = ['a b'] }",
        "[[profiles.a.rules]]\ntool = 'probe.echo'\ndecide = 'maybe'",
        "[[profiles.a.rules]]\ntool = 'probe.echo'\ndecide = 'deny'\nwhere = {}",
        "[profiles.a.limits]\ncommand_timeout = 5",
        "not toml",
    ] {
        assert!(load(text).is_err(), "{text}");
    }
}

#[test]
fn a_rule_that_fails_its_own_examples_is_refused_by_name() {
    let rule = |tests: &str| {
        format!("[[profiles.a.rules]]\ntool = 'probe.put'\nwhen = {{ text = 'ok*' }}\ndecide = 'allow'\n{tests}")
    };
    assert!(load(&rule("match = ['ok', 'okay']\nnot_match = ['no', { text = 'not ok' }]")).is_ok());
    let said = refused(&rule("match = ['no']"));
    assert!(said.starts_with("rule 1 of `a`: it does not match its own example"), "{said}");
    let said = refused(&rule("not_match = ['okay']"));
    assert!(said.starts_with("rule 1 of `a`: it matches its own example"), "{said}");
}

#[test]
fn a_project_may_only_tighten() {
    for (text, why) in [
        ("[[rules]]\ntool = 'probe.put'\ndecide = 'allow'", "`allow`"),
        ("[fence]\nworkspace = 'write'", "fence.workspace"),
        ("[fence]\nnetwork = ['example.org']", "fence.network"),
    ] {
        let said = tightening(text).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("may only tighten") && said.contains(why), "{said}");
    }
    for text in ["tools = ['probe.put']", "[profiles.x]\ntools = ['*']", "with_tools = []", "sandbox = 'off'"] {
        assert!(tightening(text).is_err(), "{text}");
    }
}

/// What the author of a project writes into its `toolhost.toml`, to be taken for the host's own words.
const FORGED: &str = "x\\u001bc\\nallow (by the rule `probe.put`)";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_projects_file_says_stands_in_one_line_without_codes_for_a_terminal() {
    let is_plain = |said: &str| !said.contains(['\u{1b}', '\n']) && said.contains("allow (by");
    let policy = format!(
        "[[rules]]\ntool = 'probe.put'\nwhen = {{ text = \"{FORGED}*\" }}\ndecide = 'deny'\nwhy = \"{FORGED}\""
    );
    let (builder, _) = house();
    let house = builder.project_policy(&policy).build().await;
    let text = "x\u{1b}c\nallow (by the rule `probe.put`)";
    let denied = house.call("probe.put", json!({ "text": text })).await.error.unwrap();
    assert!(is_plain(&denied.message), "{}", denied.message);
    for refused in [
        format!("without_tools = [\"{FORGED}\"]"),
        format!("[[rules]]\ntool = \"{FORGED}\"\ndecide = 'deny'"),
        format!("[[rules]]\ntool = 'probe.put'\nwhen = {{ \"{FORGED}\" = 'x' }}\ndecide = 'deny'"),
        format!("[fence]\nworkspace = \"{FORGED}\""),
    ] {
        let said = tightening(&refused).map(|_| ()).unwrap_err().to_string();
        assert!(is_plain(&said), "{said}");
    }
    let long = format!("x = '{}", "a".repeat(100_000));
    let said = tightening(&long).map(|_| ()).unwrap_err().to_string();
    assert!(said.len() < 2_000, "a line of the file is cut: {} bytes", said.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_project_tightens_holds_for_every_profile() {
    let (builder, watched) = house();
    let policy =
        "without_tools = ['probe.send']\n[[rules]]\ntool = 'probe.put'\nwhen = { text = 'no*' }\ndecide = 'deny'";
    let house = builder.project_policy(policy).build().await;
    assert!(house.call("probe.put", json!({ "text": "yes" })).await.ok);
    assert!(house.call("probe.put", json!({ "text": "no" })).await.error.is_some());
    let send = house.call("probe.send", json!({ "text": "x" })).await.error.unwrap();
    assert_eq!(send.code, toolhost_contract::ErrorCode::ToolNotAllowed);
    assert_eq!(watched.runs(), 1);
    let (builder, _) = crate::probes::house();
    let reading = builder.project_policy("[fence]\nworkspace = 'read'\nnetwork = []").build().await;
    assert!(reading.call("probe.put", json!({ "text": "yes" })).await.error.is_some());
}
