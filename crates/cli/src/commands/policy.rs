//! `toolhost policy`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use toolhost_host::{Decide, Profiles, Registry, rule_id};

use crate::print::{self, BAD, GOOD, paint};
use crate::settings::Settings;
use crate::wire;

/// Try the policy: does it do what it says?
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Load profiles from a file, run the tests their rules carry, and its `[[tests]]`
    Test {
        /// TOML with `[profiles.…]` tables, and `[[tests]]` with profile, tool, arguments and expect
        file: PathBuf,
    },
    /// Say what would be decided of one call, and by which rule, without making it
    Explain {
        tool: String,
        /// The arguments as a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
        #[arg(long, default_value = "developer", env = "TOOLHOST_PROFILE")]
        profile: String,
    },
}

/// What of a file is policy. The rest of it is a configuration's.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    profiles: toml::Table,
    #[serde(default)]
    tests: Vec<Test>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    profile: String,
    tool: String,
    #[serde(default)]
    arguments: toml::Table,
    expect: Expect,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Allow,
    Ask,
    Deny,
    /// The profile does not have the tool.
    Absent,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Test { file } => test(&file, settings),
        Command::Explain { tool, arguments, profile } => explain(&tool, &arguments, &profile, settings).await,
    }
}

fn test(file: &std::path::Path, settings: &Settings) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let invalid = || format!("{} is not valid", file.display());
    let parsed: File = crate::toml_file::parse(file, &text)?;
    let mut rest: toml::Table = crate::toml_file::parse(file, &text)?;
    rest.remove("tests");
    crate::settings::check_file(rest).with_context(invalid)?;
    let registry = toolhost::registry(&toolhost_store::Database::default())?;
    let mut tables = toml::Table::new();
    tables.insert("profiles".to_owned(), toml::Value::Table(parsed.profiles.clone()));
    // Loading runs the tests that the rules carry.
    let profiles = Profiles::load(&registry, toolhost::PROFILES, &[&toml::to_string(&tables)?], None)?;
    let mut failed = 0;
    let mut results = Vec::new();
    for test in &parsed.tests {
        let actual = decided(&registry, &profiles, test)?;
        failed += usize::from(actual != test.expect);
        results.push((test, actual));
    }
    if settings.json {
        let results: Vec<Value> = results
            .iter()
            .map(|(test, actual)| {
                json!({
                    "profile": test.profile, "tool": test.tool, "arguments": test.arguments,
                    "expected": word(test.expect), "actual": word(*actual), "ok": test.expect == *actual,
                })
            })
            .collect();
        print::json(&json!({ "profiles": parsed.profiles.keys().collect::<Vec<_>>(), "tests": results }))?;
    } else {
        for (test, actual) in &results {
            let mark = if *actual == test.expect { paint(GOOD, "ok  ") } else { paint(BAD, "FAIL") };
            let arguments = serde_json::to_string(&test.arguments)?;
            let got = if *actual == test.expect { String::new() } else { format!(", got {}", word(*actual)) };
            print::line(format_args!("{mark} {} {} {arguments}: {}{got}", test.profile, test.tool, word(test.expect)));
        }
        let rules: usize =
            profiles.iter().filter(|p| parsed.profiles.contains_key(&p.name)).map(|p| p.rules.len()).sum();
        print::line(format_args!(
            "{} profiles with {rules} rules load and pass their own examples; {} of {} tests failed",
            parsed.profiles.len(),
            failed,
            results.len()
        ));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn decided(registry: &Registry, profiles: &Profiles, test: &Test) -> anyhow::Result<Expect> {
    let profile = profiles.get(&test.profile)?;
    let Some(tool) = registry.get(&test.tool) else {
        bail!("a test names the tool `{}`, which does not exist", test.tool)
    };
    if !profile.has(&tool.info.name) {
        return Ok(Expect::Absent);
    }
    let verdict = profile.verdict(tool, &serde_json::to_value(&test.arguments)?);
    Ok(match verdict.decide {
        Decide::Allow => Expect::Allow,
        Decide::Ask => Expect::Ask,
        Decide::Deny => Expect::Deny,
    })
}

fn word(expect: Expect) -> String {
    format!("{expect:?}").to_lowercase()
}

async fn explain(tool: &str, arguments: &str, profile: &str, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (kit, _) = wire::kit(settings).await?;
    let profile = kit.profiles.get(profile)?;
    let Some(tool) = kit.registry.get(tool) else { bail!("unknown tool `{tool}`: `toolhost tools` lists all tools") };
    let arguments: Value = serde_json::from_str(arguments).context("the arguments are not JSON")?;
    let workspace = kit.local.as_deref().map(|local| local as &dyn toolhost_contract::workspace::Executor);
    let explained = profile.explain(tool, arguments, workspace).await;
    let verdict = &explained.verdict;
    let has = profile.has(&tool.info.name);
    // Before a project is there nobody has granted anything.
    let answers = if has && verdict.decide == Decide::Ask { wire::open_answers(settings).await.ok() } else { None };
    let permit = match &answers {
        Some(answers) => {
            let project = answers.person.project_id;
            answers.queue.explain_permit(project, &profile.name, tool, &explained).await?
        }
        None => None,
    };
    if settings.json {
        let permit = permit.as_ref().map(|permit| json!({ "id": rule_id(permit.number), "by": permit.granted_by }));
        let (tool, profile) = (&tool.info.name, &profile.name);
        print::json(
            &json!({ "tool": tool, "profile": profile, "hasTool": has, "verdict": verdict, "allowedByRule": permit }),
        )?;
    } else if let Some(permit) = permit {
        let (id, by) = (rule_id(permit.number), print::visible_line(&permit.granted_by));
        print::line(format_args!("allow: {id}, which {by} granted, answers what would be asked ({})", verdict.why));
    } else if has {
        let rule =
            verdict.rule.as_ref().map_or_else(|| "the tool's effect".to_owned(), |rule| format!("the rule `{rule}`"));
        print::line(format_args!("{}: {} (by {rule})", format!("{:?}", verdict.decide).to_lowercase(), verdict.why));
    } else {
        print::line(format_args!("deny: the profile `{}` does not have `{}`", profile.name, tool.info.name));
    }
    if let Some(answers) = answers {
        answers.connection.close().await?;
    }
    Ok(ExitCode::SUCCESS)
}
