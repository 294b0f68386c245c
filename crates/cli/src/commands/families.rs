//! `toolhost ticket …`, `toolhost task …`: the tools for records as commands for people.
//!
//! The tools' own schemas say which commands and options there are, so a tool that is added is a command at once, with
//! help and completions, and whatever a person does here passes the gate like any other call.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use serde_json::{Map, Value, json};
use toolhost_contract::{Expect, ToolInfo};
use toolhost_host::Registry;

use crate::Usage;
use toolhost_records::Kind;

use crate::commands::{call, help};
use crate::print::{self, paint};
use crate::selection::{self, Column, Selection};
use crate::settings::Settings;

/// The families that are commands, and what their help says.
const FAMILIES: &[(&str, &str)] = &[
    ("ticket", "Tickets: work that somebody asked for"),
    ("comment", "What is said about tickets"),
    ("requirement", "Requirements: what must be true of the product"),
    ("feature", "Features: what the product will have"),
    ("component", "Components of the design"),
    ("design", "The design as a whole"),
    ("milestone", "Milestones: features done together, by a date"),
    ("task", "Tasks: pieces of work, ready or waiting"),
    ("plan", "The plan as a whole"),
    ("artifact", "Documents of an iteration, with their versions"),
    ("memory", "What was learnt: search it, add to it"),
    ("check", "Check what was planned"),
    ("iteration", "Iterations: rounds of planning and building"),
    ("persona", "Personas: names under which agents work"),
    ("record", "Any record's history, and restoring it"),
];
/// Arguments that stand alone, in this order.
const POSITIONAL: &[&str] = &[
    "id",
    "ticketId",
    "dataType",
    "kind",
    "type",
    "title",
    "name",
    "newState",
    "newStatus",
    "number",
    "version",
    "keywords",
    "content",
];
/// What a person need not say, where a model must.
const DEFAULTS: &[(&str, &str)] = &[
    ("description", ""),
    ("context", ""),
    ("technology", ""),
    ("priority", "medium"),
    ("category", "functional"),
    ("stage", "note"),
];
/// Verbs that a person may use for those of the tools.
const OTHER_VERBS: &[(&str, &str)] =
    &[("create", "add"), ("add", "create"), ("get", "show"), ("read", "show"), ("load", "show")];
/// The verb of a family without one of its own that shows a record.
const SHOW: &str = "show";
/// Its tool.
const SHOW_TOOL: &str = "record.get";
/// The family of what was learnt.
const MEMORY: &str = "memory";
/// Fields whose option would be one of all commands.
const RENAMED: &[(&str, &str)] = &[("state", "status")];
/// Texts that may come from a file.
const FROM_FILE: &str = "content";
/// The option that names the file.
const FILE: &str = "field file";
/// Longest text read from a file, bytes; the gate has limits of its own.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Examples of a tool that its help shows.
const EXAMPLES_MAX: usize = 2;
/// Characters of a cell.
const CELL_CHARS_MAX: usize = 60;
/// Verbs whose answer is a list, of which a person may select.
const LISTS: &[&str] = &["list", "ready", "query", "history"];
/// The argument that asks for the next page, and the field of an answer that says which one that is.
const CURSOR: &str = "cursor";
const NEXT_CURSOR: &str = "nextCursor";
/// The argument with the most records of an answer.
const LIMIT: &str = "limit";
/// Records of a page where all of them are read, and most records of a list that is sorted or filtered.
const PAGE: i64 = 1000;
const RECORDS_MAX: usize = 100_000;
/// Fields that make the columns of a table, those that are there.
const COLUMNS: &[Column] = &[
    ("id", &["id", "task"]),
    ("state", &["state", "status", "importance"]),
    ("type", &["type", "kind", "documentType", "componentType", "category"]),
    ("priority", &["priority"]),
    ("version", &["version"]),
    ("by", &["by", "author"]),
    ("change", &["change"]),
    ("held by", &["holder"]),
    ("title", &["title", "name", "content", "why"]),
];

/// The commands of all families.
pub(crate) fn commands() -> anyhow::Result<Vec<Command>> {
    let registry = toolhost::registry(&toolhost_store::Database::default())?;
    Ok(FAMILIES.iter().map(|(family, about)| command(&registry, family, about)).collect())
}

pub(crate) fn is_family(name: &str) -> bool {
    FAMILIES.iter().any(|(family, _)| *family == name)
}

fn command(registry: &Registry, family: &str, about: &str) -> Command {
    let mut command =
        Command::new(family.to_owned()).about(about.to_owned()).subcommand_required(true).arg_required_else_help(true);
    for tool in registry.tools().iter().filter(|tool| tool.info.name.split('.').next() == Some(family)) {
        command = command.subcommand(verb(&tool.info));
    }
    let shows = command.get_subcommands().any(|verb| verb.get_all_aliases().any(|alias| alias == SHOW));
    // Memories are of several kinds.
    let is_shown = |kind: &Kind| kind.as_str() == family || (family == MEMORY && *kind == Kind::Decision);
    let kind = Kind::ALL.into_iter().find(is_shown).filter(|_| !shows);
    match (kind, registry.get(SHOW_TOOL)) {
        (Some(kind), Some(tool)) => {
            let example = format!("toolhost {family} {SHOW} {}-001", kind.prefix());
            let shown = verb(&tool.info).name(SHOW).visible_alias(None).visible_alias("get");
            command.subcommand(shown.after_help(help::of_examples(&[example])))
        }
        _ => command,
    }
}

fn verb(info: &ToolInfo) -> Command {
    let name = info.name.rsplit('.').next().unwrap_or_default().replace('_', "-");
    // A field may be called `version`.
    let others = OTHER_VERBS.iter().filter(|(verb, _)| *verb == name).map(|(_, other)| *other);
    let mut command = Command::new(name.clone())
        .visible_aliases(others)
        .disable_version_flag(true)
        .about(info.title.to_string())
        .long_about(info.description.clone());
    let properties = properties(info);
    for name in POSITIONAL.iter().filter(|name| properties.contains_key(**name) && stands_alone(info, name)) {
        command = command.arg(argument(info, name, &properties[*name], true));
    }
    for (name, schema) in properties.iter().filter(|(name, _)| !stands_alone(info, name)) {
        command = command.arg(argument(info, name, schema, false));
        if name == FROM_FILE {
            let file = Arg::new(FILE).long("file").value_name("PATH").conflicts_with(field_id(FROM_FILE));
            command = command.arg(file.help("Read the content from a file; `-` is standard input"));
        }
    }
    if LISTS.contains(&name.as_str()) {
        command = selection::options(command);
    }
    let works = info.examples.iter().filter(|example| !matches!(example.expect, Expect::Fails(_)));
    let examples: Vec<String> = works.take(EXAMPLES_MAX).map(|example| typed(info, &example.arguments)).collect();
    command.after_help(help::of_examples(&examples))
}

/// The command line of a call.
fn typed(info: &ToolInfo, arguments: &Value) -> String {
    let (family, verb) = info.name.split_once('.').unwrap_or((&info.name, ""));
    let mut words = vec!["toolhost".to_owned(), family.to_owned(), verb.replace('_', "-")];
    let texts = |value: &Value| -> Vec<String> {
        // A document is shown by its first line.
        let text = |value: &Value| match value.as_str() {
            Some(text) => text.lines().next().unwrap_or_default().to_owned(),
            None => value.to_string(),
        };
        match value {
            Value::Array(values) if values.is_empty() => vec![String::new()],
            Value::Array(values) => values.iter().map(text).collect(),
            value => vec![text(value)],
        }
    };
    let given = |name: &str| arguments.get(name).filter(|value| !value.is_null());
    for name in POSITIONAL.iter().filter(|name| stands_alone(info, name)) {
        words.extend(given(name).map(texts).unwrap_or_default());
    }
    for (name, schema) in properties(info).iter().filter(|(name, _)| !stands_alone(info, name)) {
        let long = long(name);
        for text in given(name).map(texts).unwrap_or_default() {
            match type_of(schema) {
                "boolean" => words.push(format!("--{long}={text}")),
                _ => words.extend([format!("--{long}"), text]),
            }
        }
    }
    let quoted = words.iter().map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into));
    quoted.collect::<Vec<String>>().join(" ")
}

/// The option of a field.
fn long(name: &str) -> String {
    RENAMED.iter().find(|(field, _)| *field == name).map_or_else(|| kebab(name), |(_, long)| (*long).to_owned())
}

fn properties(info: &ToolInfo) -> Map<String, Value> {
    info.input_schema["properties"].as_object().cloned().unwrap_or_default()
}

fn is_required(info: &ToolInfo, name: &str) -> bool {
    info.input_schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name))
}

/// Ids always, and so does what a call cannot be without; a filter does not, nor a text as long as a document.
fn stands_alone(info: &ToolInfo, name: &str) -> bool {
    let is_id = matches!(name, "id" | "ticketId");
    if name == FROM_FILE && !info.name.starts_with("memory.") && !info.name.starts_with("comment.") {
        return false;
    }
    POSITIONAL.contains(&name) && (is_id || name == "keywords" || is_required(info, name))
}

fn argument(info: &ToolInfo, name: &str, schema: &Value, alone: bool) -> Arg {
    let help = schema["description"].as_str().unwrap_or_default().to_owned();
    let mut argument = Arg::new(field_id(name)).help(help).value_name(kebab(name).to_uppercase().replace('-', "_"));
    if !alone {
        argument = argument.long(long(name));
    }
    let default = DEFAULTS.iter().find(|(one, _)| *one == name).filter(|_| is_required(info, name));
    let list = type_of(schema) == "array";
    // One may claim any task, and ask for all memories.
    let needed = match name {
        "ticketId" => true,
        FROM_FILE => alone,
        _ => is_required(info, name) && default.is_none() && (!list || schema["minItems"].is_number()),
    };
    argument = argument.required(needed);
    if name == FROM_FILE && !alone && is_required(info, name) {
        argument = argument.required_unless_present(FILE);
    }
    if let Some((_, value)) = default {
        argument = argument.default_value(*value);
    }
    let words = words(schema);
    argument = match type_of(schema) {
        "array" if alone => argument.action(ArgAction::Append).num_args(0..),
        "array" => argument.action(ArgAction::Append),
        "boolean" => {
            argument.num_args(0..=1).require_equals(true).default_missing_value("true").value_parser(["true", "false"])
        }
        "integer" => argument.value_parser(clap::value_parser!(i64)),
        _ if !words.is_empty() => argument.value_parser(clap::builder::PossibleValuesParser::new(words)),
        _ => argument,
    };
    if type_of(schema) == "boolean" {
        argument.hide_possible_values(true)
    } else {
        argument.allow_hyphen_values(type_of(schema) == "string")
    }
}

/// The type besides `null`.
fn type_of(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(one) => one,
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or_default()
        }
        _ => schema["anyOf"]
            .as_array()
            .and_then(|any| any.iter().map(type_of).find(|one| *one != "null"))
            .unwrap_or("string"),
    }
}

/// The words a text may be.
fn words(schema: &Value) -> Vec<String> {
    let of = |list: &Value, pick: fn(&Value) -> &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|one| pick(one).as_str().map(str::to_owned)).collect()
    };
    let mut words = of(&schema["enum"], |one| one);
    words.extend(of(&schema["oneOf"], |one| &one["const"]));
    for one in schema["anyOf"].as_array().into_iter().flatten() {
        words.extend(self::words(one));
    }
    words
}

/// Apart from the names of the options that all commands have.
fn field_id(name: &str) -> String {
    format!("field {name}")
}

fn kebab(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            text.push('-');
        }
        text.extend(c.to_lowercase());
    }
    text
}

/// Runs what was typed after the name of a family.
pub(crate) async fn run(family: &str, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let settings = Settings::from_arg_matches(matches)?;
    let Some((verb, matches)) = matches.subcommand() else {
        return Err(Usage::error(format!("what about the {family}? `toolhost {family} --help` shows what there is")));
    };
    let tool = if verb == SHOW { SHOW_TOOL.to_owned() } else { format!("{family}.{}", verb.replace('-', "_")) };
    let registry = toolhost::registry(&toolhost_store::Database::default())?;
    let info = &registry.get(&tool).context("the command belongs to no tool")?.info;
    let arguments = arguments(info, matches)?;
    let selection = Selection::of(matches);
    let made = match selection.is_any() {
        true => selected(&settings, info, arguments, &selection).await?,
        false => call::make(&settings, &tool, arguments, "all", false).await?,
    };
    let outcome = &made.outcome;
    if settings.json || !outcome.ok {
        call::show(outcome, settings.json)?;
    } else if !tables(family, &outcome.data) {
        call::show(outcome, false)?;
    }
    made.end().await
}

/// A list of which a person selects: all its pages are read first.
async fn selected(
    settings: &Settings,
    info: &ToolInfo,
    mut arguments: Value,
    selection: &Selection,
) -> anyhow::Result<call::Made> {
    let properties = properties(info);
    let limit = arguments[LIMIT].as_i64().and_then(|limit| usize::try_from(limit).ok());
    if properties.contains_key(CURSOR) {
        if !arguments[CURSOR].is_null() {
            return Err(Usage::error("--cursor is for one page: --sort, --reverse and --where take the whole list"));
        }
        arguments[LIMIT] = json!(PAGE);
    }
    let mut made = call::make(settings, &info.name, arguments.clone(), "all", false).await?;
    let mut read = PAGE as usize;
    while let Some(cursor) = made.outcome.data.get(NEXT_CURSOR).filter(|cursor| cursor.is_string()).cloned() {
        anyhow::ensure!(
            read < RECORDS_MAX,
            "the list has more than {RECORDS_MAX} records: use the options of the tool"
        );
        arguments[CURSOR] = cursor;
        let before = std::mem::take(&mut made.outcome.data);
        made.call_again(&info.name, arguments.clone()).await;
        if !made.outcome.ok {
            return Ok(made);
        }
        let page = std::mem::replace(&mut made.outcome.data, before);
        append(&mut made.outcome.data, page);
        read += PAGE as usize;
    }
    let known = names_in(&info.output_schema.value());
    let lists = made.outcome.data.as_object_mut().into_iter().flatten().filter_map(|(_, value)| value.as_array_mut());
    for list in lists.filter(|list| list.iter().all(Value::is_object)) {
        selection.apply(list, COLUMNS, &known)?;
        list.truncate(limit.unwrap_or(usize::MAX));
    }
    Ok(made)
}

/// Adds the lists of a page to those of the pages before.
fn append(all: &mut Value, page: Value) {
    let (Value::Object(all), Value::Object(page)) = (all, page) else { return };
    all.remove(NEXT_CURSOR);
    for (name, value) in page {
        match (all.get_mut(&name), value) {
            (Some(Value::Array(before)), Value::Array(items)) => before.extend(items),
            (_, value) => drop(all.insert(name, value)),
        }
    }
}

/// The names of all fields that a schema speaks of.
fn names_in(schema: &Value) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut left = vec![schema];
    while let Some(schema) = left.pop() {
        if let Some(properties) = schema["properties"].as_object() {
            names.extend(properties.keys().cloned());
        }
        left.extend(schema.as_object().into_iter().flat_map(|fields| fields.values()));
        left.extend(schema.as_array().into_iter().flatten());
    }
    names.into_iter().collect()
}

/// What was typed, as the tool wants it.
fn arguments(info: &ToolInfo, matches: &ArgMatches) -> anyhow::Result<Value> {
    let mut arguments = Map::new();
    for (name, schema) in properties(info) {
        if name == FROM_FILE
            && let Ok(Some(path)) = matches.try_get_one::<String>(FILE)
        {
            arguments.insert(name, read_text(path)?.into());
            continue;
        }
        let id = field_id(&name);
        let value = match type_of(&schema) {
            "integer" => matches.get_one::<i64>(&id).map(|number| json!(number)),
            "boolean" => matches.get_one::<String>(&id).map(|text| json!(text == "true")),
            "array" => matches
                .get_many::<String>(&id)
                .map(|texts| list(&name, &schema, texts))
                .transpose()?
                .or_else(|| is_required(info, &name).then(|| json!([]))),
            "object" => matches.get_one::<String>(&id).map(|text| json_of(&name, text)).transpose()?,
            _ => matches.get_one::<String>(&id).map(|text| json!(text)),
        };
        if let Some(value) = value {
            arguments.insert(name, value);
        }
    }
    Ok(Value::Object(arguments))
}

/// A list of texts, or of JSON values; one empty text is the empty list.
fn list<'a>(name: &str, schema: &Value, texts: impl Iterator<Item = &'a String>) -> anyhow::Result<Value> {
    let texts: Vec<&String> = texts.collect();
    if let [only] = texts.as_slice()
        && only.is_empty()
    {
        return Ok(json!([]));
    }
    let of_text = type_of(&schema["items"]) == "string";
    let values = texts.into_iter().map(|text| if of_text { Ok(json!(text)) } else { json_of(name, text) });
    Ok(Value::Array(values.collect::<anyhow::Result<_>>()?))
}

fn json_of(name: &str, text: &str) -> anyhow::Result<Value> {
    serde_json::from_str(text).map_err(|error| Usage::error(format!("--{} is not JSON: {error}", kebab(name))))
}

fn read_text(path: &str) -> anyhow::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    if path == "-" {
        std::io::stdin().take(FILE_BYTES_MAX).read_to_string(&mut text).context("standard input")?;
    } else {
        let file = std::fs::File::open(path).with_context(|| format!("{path} cannot be read"))?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).with_context(|| format!("{path} cannot be read"))?;
    }
    Ok(text)
}

/// Prints the lists of an answer as tables; says whether it had any.
fn tables(family: &str, data: &Value) -> bool {
    let Some(fields) = data.as_object() else { return false };
    // A record has an id of its own; its lists are part of it.
    if fields.contains_key("id") && !fields.contains_key("versions") {
        return false;
    }
    let mut lists: Vec<(&String, &Vec<Value>)> =
        fields.iter().filter_map(|(name, value)| Some((name, value.as_array()?))).collect();
    let of_records = |list: &&(&String, &Vec<Value>)| {
        list.1.iter().all(|item| item["id"].is_string() || item["version"].is_number())
    };
    if lists.is_empty()
        || !lists.iter().all(|list| of_records(&list))
        || fields.contains_key("covered")
        || fields.contains_key("valid")
    {
        return false;
    }
    // What was asked for comes first.
    lists.sort_by_key(|(name, _)| !name.starts_with(family));
    for (name, items) in &lists {
        if lists.len() > 1 {
            print::line(paint(print::DIM, format_args!("{name}:")));
        }
        table(name, items);
    }
    if let Some(cursor) = fields.get(NEXT_CURSOR).and_then(Value::as_str) {
        print::aside(format_args!("there are more: add --cursor {cursor}"));
    }
    true
}

fn table(name: &str, items: &[Value]) {
    if items.is_empty() {
        let name = if name == "items" { "records" } else { name };
        print::aside(format_args!("no {name}"));
        return;
    }
    let cell = |item: &Value, fields: &[&str]| -> Option<String> {
        let in_content = fields.iter().find_map(|field| {
            let value = [&item[*field], &item["content"][*field]]
                .into_iter()
                .find(|value| !value.is_null() && !value.is_object());
            value.cloned().or_else(|| item[*field].get("name").cloned())
        });
        in_content.map(|value| cell_text(&value))
    };
    let columns: Vec<&(&str, &[&str])> =
        COLUMNS.iter().filter(|(_, fields)| items.iter().any(|item| cell(item, fields).is_some())).collect();
    let head: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|item| columns.iter().map(|(_, fields)| cell(item, fields).unwrap_or_default()).collect())
        .collect();
    print::table(&head, &rows);
}

fn cell_text(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = print::first_line(&text);
    let short: String = line.chars().take(CELL_CHARS_MAX).collect();
    if short.len() < line.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_command_is_one_that_clap_accepts() {
        crate::whole_command().expect("the tools fit together").debug_assert();
    }
}
