//! `toolhost schema`

use std::process::ExitCode;

use crate::print;

/// Print a JSON Schema (2020-12) of what workflow packages are made of; without a name, the names
#[derive(clap::Args)]
#[command(after_help = "toolhost schema change-set > change-set.schema.json")]
pub(crate) struct Args {
    name: Option<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    schema(args.name.as_deref())
}

fn schema(name: Option<&str>) -> anyhow::Result<ExitCode> {
    let all = toolhost_builder::schema::ALL;
    match name {
        None => all.iter().for_each(|schema| print::line(schema.name)),
        Some(name) => {
            let names: Vec<&str> = all.iter().map(|schema| schema.name).collect();
            let Some(schema) = all.iter().find(|schema| schema.name == name) else {
                let problem =
                    format!("unknown schema `{}`; the schemas are {}", print::visible_line(name), names.join(", "));
                return Err(crate::Usage::error(problem));
            };
            print::line(schema.text.trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}
