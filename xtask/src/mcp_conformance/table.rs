//! The scenarios that cannot apply, and what is said of each scenario that was run.
//!
//! The table cannot rot: a scenario that fails and is not in it is a surprise, and so is one that is in it and passes.

use serde_json::Value;

/// A scored scenario that cannot pass, because the product does not have what it looks for.
pub(crate) struct Exempt {
    pub(crate) era: &'static str,
    pub(crate) scenario: &'static str,
    /// The checks of it that fail. All others have to pass.
    pub(crate) checks: &'static [&'static str],
    pub(crate) reason: &'static str,
}

const SESSIONS: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";

const NO_LOGGING: &str = "log messages to clients are deprecated and not offered: the audit is the log";
const NO_SAMPLING: &str = "sampling is deprecated and not offered: a tool does not use a model of its client's";
const NO_ROOTS: &str = "roots are deprecated and not offered: the operator says what a workspace is, not a client";
const NO_SUBSCRIPTIONS: &str =
    "subscriptions to resources are not offered, and 2026-07-28 has none: a client reads again";
const ONE_FORM: &str =
    "the form of an ask has a decision and a text: the same ask is answered at a terminal and over the API";

#[rustfmt::skip]
pub(crate) const EXEMPT: &[Exempt] = &[
    Exempt { era: SESSIONS, scenario: "logging-set-level", checks: &["logging-set-level"], reason: NO_LOGGING },
    Exempt { era: SESSIONS, scenario: "tools-call-with-logging", checks: &["tools-call-with-logging"], reason: NO_LOGGING },
    Exempt { era: SESSIONS, scenario: "tools-call-sampling", checks: &["tools-call-sampling"], reason: NO_SAMPLING },
    Exempt { era: SESSIONS, scenario: "elicitation-sep1034-defaults", checks: &["elicitation-sep1034-general"], reason: ONE_FORM },
    Exempt { era: SESSIONS, scenario: "elicitation-sep1330-enums", checks: &["elicitation-sep1330-general"], reason: ONE_FORM },
    Exempt { era: SESSIONS, scenario: "resources-subscribe", checks: &["resources-subscribe"], reason: NO_SUBSCRIPTIONS },
    Exempt { era: SESSIONS, scenario: "resources-unsubscribe", checks: &["resources-unsubscribe"], reason: NO_SUBSCRIPTIONS },
    Exempt {
        era: STATELESS,
        scenario: "server-stateless",
        checks: &["sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"],
        reason: "no tool needs an ability of its client: where a client shows no form, the call waits as pending",
    },
    Exempt { era: STATELESS, scenario: "input-required-result-basic-elicitation", checks: &["sep-2322-elicitation-incomplete"], reason: "it looks for a form named `user_name`; that of an ask is named `decision`" },
    Exempt { era: STATELESS, scenario: "input-required-result-basic-sampling", checks: &["sep-2322-sampling-incomplete"], reason: NO_SAMPLING },
    Exempt { era: STATELESS, scenario: "input-required-result-basic-list-roots", checks: &["sep-2322-list-roots-incomplete"], reason: NO_ROOTS },
    Exempt { era: STATELESS, scenario: "input-required-result-multiple-input-requests", checks: &["sep-2322-multiple-inputs-incomplete"], reason: NO_SAMPLING },
    Exempt { era: STATELESS, scenario: "input-required-result-capability-check", checks: &["sep-2322-respect-client-capabilities"], reason: NO_SAMPLING },
];

/// What became of a scenario.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Passed,
    /// As the table says, for this reason.
    CannotApply(&'static str),
    /// What nobody expected.
    Surprise(String),
}

/// The verdict about a scenario, from its checks as the suite wrote them; `None`: it was not run.
pub(crate) fn verdict(table: &[Exempt], era: &str, scenario: &str, checks: Option<&[Value]>) -> Verdict {
    let Some(checks) = checks else { return Verdict::Surprise("it was not run".to_owned()) };
    let exempt = table.iter().find(|exempt| exempt.era == era && exempt.scenario == scenario);
    let excused = exempt.map_or(&[][..], |exempt| exempt.checks);
    let failed: Vec<&Value> = checks.iter().filter(|check| check["status"] == "FAILURE").collect();
    let id = |check: &Value| check["id"].as_str().unwrap_or_default().to_owned();
    if checks.is_empty() {
        return Verdict::Surprise("it has checked nothing".to_owned());
    }
    if let Some(check) = failed.iter().find(|check| !excused.contains(&id(check).as_str())) {
        return Verdict::Surprise(format!("{}: {}", id(check), check["errorMessage"].as_str().unwrap_or("it failed")));
    }
    if let Some(stale) = excused.iter().find(|excused| !failed.iter().any(|check| id(check) == **excused)) {
        return Verdict::Surprise(format!("{stale} passes: take it out of the table of what cannot apply"));
    }
    exempt.map_or(Verdict::Passed, |exempt| Verdict::CannotApply(exempt.reason))
}

/// What the table says of scenarios that an era does not score.
pub(crate) fn unknown<'a>(table: &'a [Exempt], era: &str, scored: &[String]) -> Vec<&'a str> {
    let of_era = table.iter().filter(|exempt| exempt.era == era);
    of_era.map(|exempt| exempt.scenario).filter(|name| !scored.iter().any(|scored| scored == name)).collect()
}

/// The scenarios for servers that a file of requirements scores: the list below `server:`.
pub(crate) fn scored(requirements: &str) -> Vec<String> {
    let lines = requirements.lines().skip_while(|line| *line != "server:").skip(1);
    lines.map_while(|line| line.strip_prefix("  - ")).map(str::to_owned).collect()
}

/// The scenarios for servers that are run and not scored: extensions, and what came after the revision.
pub(crate) fn not_scored(requirements: &str) -> Vec<String> {
    let lines: Vec<&str> = requirements.lines().skip_while(|line| *line != "not_scored:").collect();
    let of_server = |pair: &[&str]| {
        let name = pair[0].strip_prefix("  - scenario: ").filter(|_| pair[1].trim() == "leg: server");
        name.map(str::to_owned)
    };
    lines.windows(2).filter_map(of_server).collect()
}

#[cfg(test)]
mod tests {
    use super::{Exempt, Verdict, not_scored, scored, unknown, verdict};
    use serde_json::{Value, json};

    const TABLE: &[Exempt] = &[Exempt { era: "e", scenario: "cannot", checks: &["a", "b"], reason: "why" }];

    fn check(scenario: &str, checks: &[(&str, &str)]) -> Verdict {
        let checks: Vec<Value> =
            checks.iter().map(|(id, status)| json!({ "id": id, "status": status, "errorMessage": "what" })).collect();
        verdict(TABLE, "e", scenario, Some(&checks))
    }

    #[test]
    fn what_fails_and_is_not_in_the_table_is_a_surprise() {
        assert_eq!(check("can", &[("a", "SUCCESS"), ("b", "WARNING"), ("c", "SKIPPED")]), Verdict::Passed);
        assert_eq!(check("can", &[("a", "FAILURE")]), Verdict::Surprise("a: what".to_owned()));
        assert_eq!(
            check("cannot", &[("a", "FAILURE"), ("b", "FAILURE"), ("c", "SUCCESS")]),
            Verdict::CannotApply("why")
        );
        let another = check("cannot", &[("a", "FAILURE"), ("b", "FAILURE"), ("c", "FAILURE")]);
        assert_eq!(another, Verdict::Surprise("c: what".to_owned()));
        assert!(matches!(check("can", &[]), Verdict::Surprise(_)));
        assert!(matches!(verdict(TABLE, "e", "can", None), Verdict::Surprise(_)));
    }

    #[test]
    fn what_is_in_the_table_and_passes_is_a_surprise() {
        for checks in
            [&[("a", "SUCCESS"), ("b", "SUCCESS")][..], &[("a", "FAILURE"), ("b", "SUCCESS")], &[("a", "FAILURE")]]
        {
            assert!(
                matches!(check("cannot", checks), Verdict::Surprise(why) if why.contains("take it out")),
                "{checks:?}"
            );
        }
        assert_eq!(unknown(TABLE, "e", &["can".to_owned()]), ["cannot"]);
        assert!(unknown(TABLE, "other", &[]).is_empty());
    }

    #[test]
    fn the_scored_scenarios_are_those_for_servers() {
        let requirements = "# server:\nserver:\n  - one\n  - two\n\nclient:\n  - three\n\nnot_scored:\n";
        let client = "  - scenario: four\n    leg: client\n    reason: r\n";
        let server = "  - scenario: five\n    leg: server\n    reason: r\n";
        let requirements = &[requirements, client, server].concat();
        assert_eq!(scored(requirements), ["one", "two"]);
        assert_eq!(not_scored(requirements), ["five"]);
    }
}
