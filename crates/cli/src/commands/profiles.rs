//! `toolhost profiles`

use std::process::ExitCode;

use serde_json::{Value, json};
use toolhost_contract::workspace::Access;
use toolhost_host::Profile;

use crate::print;
use crate::settings::Settings;
use crate::wire;

/// Show the profiles: who has which tools, rules and fence, in this workspace
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show all of this one
    name: Option<String>,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (kit, _) = wire::kit(settings).await?;
    let shown: Vec<&Profile> = match &args.name {
        Some(name) => vec![kit.profiles.get(name)?],
        None => kit.profiles.iter().collect(),
    };
    if settings.json {
        print::json(&shown.iter().map(|profile| describe(profile)).collect::<Vec<_>>())?;
    } else if args.name.is_some() {
        shown.into_iter().for_each(tell);
    } else {
        let rows: Vec<Vec<String>> = shown
            .iter()
            .map(|profile| {
                vec![
                    profile.name.clone(),
                    profile.tools.len().to_string(),
                    access(profile).to_owned(),
                    hosts(profile),
                    profile.description.clone(),
                ]
            })
            .collect();
        print::table(&["profile", "tools", "workspace", "network", "for whom"], &rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn access(profile: &Profile) -> &'static str {
    match profile.fence.workspace {
        Access::Read => "read",
        Access::Write => "write",
    }
}

fn hosts(profile: &Profile) -> String {
    if profile.fence.network.is_empty() {
        return "none".to_owned();
    }
    profile.fence.network.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn describe(profile: &Profile) -> Value {
    let rules: Vec<Value> =
        profile.rules.iter().map(|rule| json!({ "rule": rule.text, "decide": rule.decide, "why": rule.why })).collect();
    let network: Vec<String> = profile.fence.network.iter().map(ToString::to_string).collect();
    json!({
        "name": profile.name,
        "description": profile.description,
        "tools": profile.tools,
        "fence": { "workspace": access(profile), "network": network },
        "commandTimeoutMs": profile.limits.command_timeout_ms,
        "rules": rules,
    })
}

fn tell(profile: &Profile) {
    print::line(format_args!("{}: {}", print::paint(print::BOLD, &profile.name), profile.description));
    print::line(format_args!("workspace  {}", access(profile)));
    print::line(format_args!("network    {}", hosts(profile)));
    print::line(format_args!("commands   {} s at most", profile.limits.command_timeout_ms / 1000));
    print::line(format_args!("tools      {}", profile.tools.join(", ")));
    for rule in &profile.rules {
        let why = rule.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        print::line(format_args!("rule       {} {}{why}", format!("{:?}", rule.decide).to_lowercase(), rule.text));
    }
}
