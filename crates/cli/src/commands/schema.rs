//! `toolhost schema`

use std::process::ExitCode;

use crate::{print, settings};

/// Print a JSON Schema (2020-12) of the configuration, or of what workflow packages are made of, or the OpenAPI document of
/// `toolhost serve`; without a name, the names
#[derive(clap::Args)]
pub(crate) struct Args {
    name: Option<String>,
}

/// The name of the configuration's schema.
const CONFIG: &str = "config";
/// The name of the document that describes the HTTP API.
const OPENAPI: &str = "openapi";

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    schema(args.name.as_deref())
}

fn schema(name: Option<&str>) -> anyhow::Result<ExitCode> {
    let all = toolhost_builder::schema::ALL;
    match name {
        None => all.iter().map(|schema| schema.name).chain([CONFIG, OPENAPI]).for_each(print::line),
        Some(CONFIG) => print::line(serde_json::to_string_pretty(&settings::schema())?),
        Some(OPENAPI) => {
            let document = toolhost_server::http::openapi(env!("CARGO_PKG_VERSION"));
            print::line(serde_json::to_string_pretty(&document)?);
        }
        Some(name) => {
            let names: Vec<&str> = all.iter().map(|schema| schema.name).chain([CONFIG, OPENAPI]).collect();
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
