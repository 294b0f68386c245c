//! Which records of a list are shown, and in which order: chosen here, over the whole list, so that it is the same for every kind.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Serialize;
use serde_json::Value;

use crate::Usage;
use crate::print::visible_line;

const SORT: &str = "selection sort";
const REVERSE: &str = "selection reverse";
const WHERE: &str = "selection where";
/// The field of a record that holds what the record says.
const CONTENT: &str = "content";
/// What somebody is called, where more is said of them.
const NAME: &str = "name";
/// Words whose order is not that of the alphabet.
const RANKS: &[&str] = &["high", "medium", "low"];

/// What a column is called, and the fields that it shows.
pub(crate) type Column = (&'static str, &'static [&'static str]);

/// What was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// With its `-`.
    sort: Option<String>,
    reverse: bool,
    conditions: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Condition {
    field: String,
    test: Test,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Is,
    IsNot,
    Holds,
}

/// The options of a command that lists.
pub(crate) fn options(command: Command) -> Command {
    let heading = "Selection";
    command
        .arg(
            Arg::new(SORT)
                .long("sort")
                .value_name("FIELD")
                .allow_hyphen_values(true)
                .help("Sort the whole list by a field or a column; with `-` before it, descending")
                .help_heading(heading),
        )
        .arg(
            Arg::new(REVERSE)
                .long("reverse")
                .action(ArgAction::SetTrue)
                .help("Show the whole list in the opposite order")
                .help_heading(heading),
        )
        .arg(
            Arg::new(WHERE)
                .long("where")
                .value_name("FIELD=VALUE")
                .action(ArgAction::Append)
                .help(
                    "Only where a field has this value; `FIELD!=VALUE`: has another; `FIELD~TEXT`: contains it. Several \
                     times: all of them",
                )
                .help_heading(heading),
        )
}

impl clap::FromArgMatches for Selection {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self::of(matches))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::of(matches);
        Ok(())
    }
}

impl clap::Args for Selection {
    fn augment_args(command: Command) -> Command {
        options(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        options(command)
    }
}

impl Selection {
    /// Of a command that may have the options.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        // Of a command without it, clap says so in builds with debug assertions alone; in others the flag has no value, not even `false`.
        let Ok(Some(reverse)) = matches.try_get_one::<bool>(REVERSE) else { return Self::default() };
        Self {
            sort: matches.get_one::<String>(SORT).cloned(),
            reverse: *reverse,
            conditions: matches.get_many::<String>(WHERE).into_iter().flatten().cloned().collect(),
        }
    }

    /// Whether the list is to be another than the one that was answered.
    pub(crate) fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Those of some items that are selected, in their order.
    ///
    /// # Errors
    /// As [`Selection::order`].
    pub(crate) fn of_items<T: Serialize>(&self, items: Vec<T>, columns: &[Column]) -> anyhow::Result<Vec<T>> {
        if !self.is_any() {
            return Ok(items);
        }
        let values: Vec<Value> = items.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
        let order = self.order(&values, columns, &[])?;
        Ok(picked(items, &order))
    }

    /// As [`Selection::of_items`]. `known` are further names of fields, which no item needs to have.
    ///
    /// # Errors
    /// As [`Selection::order`].
    pub(crate) fn apply(&self, items: &mut Vec<Value>, columns: &[Column], known: &[String]) -> anyhow::Result<()> {
        let order = self.order(items, columns, known)?;
        *items = picked(std::mem::take(items), &order);
        Ok(())
    }

    /// The places of those that are selected, in their order.
    ///
    /// # Errors
    /// A name is that of no field, or a condition is none.
    fn order(&self, items: &[Value], columns: &[Column], known: &[String]) -> anyhow::Result<Vec<usize>> {
        let there = Known::of(items, columns, known);
        let conditions = self.conditions.iter().map(|text| {
            let condition = Condition::read(text)?;
            let field = there.field(&condition.field)?;
            Ok((condition, field))
        });
        let conditions: Vec<(Condition, Field)> = conditions.collect::<anyhow::Result<_>>()?;
        let fits = |at: &usize| conditions.iter().all(|(condition, field)| condition.holds(&field.values(&items[*at])));
        let mut order: Vec<usize> = (0..items.len()).filter(fits).collect();
        if let Some(name) = &self.sort {
            let descending = name.starts_with('-');
            let field = there.field(name.strip_prefix('-').unwrap_or(name))?;
            let value = |at: &usize| field.values(&items[*at]).first().copied();
            // What has no such field comes last, whichever way it is sorted. Equal ones keep their order.
            order.sort_by(|one, other| match (value(one), value(other)) {
                (Some(one), Some(other)) if descending => compared(other, one),
                (Some(one), Some(other)) => compared(one, other),
                (one, other) => other.is_some().cmp(&one.is_some()),
            });
        }
        if self.reverse {
            order.reverse();
        }
        Ok(order)
    }
}

/// The items at some places, each of which is named once at most.
fn picked<T>(items: Vec<T>, order: &[usize]) -> Vec<T> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.iter().filter_map(|at| items[*at].take()).collect()
}

impl Condition {
    fn read(text: &str) -> anyhow::Result<Self> {
        let at = text.find(['=', '~']);
        let parts = at.map(|at| (text[..at].strip_suffix('!'), &text[..at], &text[at..=at], &text[at + 1..]));
        let (field, test, value) = match parts {
            Some((Some(field), _, "=", value)) => (field, Test::IsNot, value),
            Some((None, field, "=", value)) => (field, Test::Is, value),
            Some((None, field, _, value)) => (field, Test::Holds, value),
            _ => ("", Test::Is, ""),
        };
        if field.trim().is_empty() {
            let message = format!("--where `{}` is not FIELD=VALUE, FIELD!=VALUE or FIELD~TEXT", visible_line(text));
            return Err(Usage::error(message));
        }
        Ok(Self { field: field.trim().to_owned(), test, value: value.trim().to_lowercase() })
    }

    fn holds(&self, values: &[&Value]) -> bool {
        let texts = || values.iter().map(|value| text_of(value).to_lowercase());
        match self.test {
            Test::Is if self.value.is_empty() => texts().all(|text| text.is_empty()),
            Test::Is => texts().any(|text| text == self.value),
            Test::IsNot if self.value.is_empty() => texts().any(|text| !text.is_empty()),
            Test::IsNot => texts().all(|text| text != self.value),
            Test::Holds => texts().any(|text| text.contains(&self.value)),
        }
    }
}

/// The names that a list knows.
struct Known<'a> {
    /// Of the items' fields.
    fields: BTreeSet<String>,
    columns: &'a [Column],
    /// Fields that items may have and these have not.
    others: &'a [String],
}

/// A field by each name that it has in different kinds of records.
struct Field(Vec<String>);

impl<'a> Known<'a> {
    fn of(items: &[Value], columns: &'a [Column], others: &'a [String]) -> Self {
        let fields = items.iter().flat_map(|item| [item, &item[CONTENT]]).filter_map(Value::as_object).flatten();
        let is_shown = |(name, value): &(&String, &Value)| match value {
            Value::Object(value) => *name != CONTENT && value.contains_key(NAME),
            _ => true,
        };
        Self { fields: fields.filter(is_shown).map(|(name, _)| name.clone()).collect(), columns, others }
    }

    /// A field by its name, however that is written (`feature-id`, `featureId`), or by the title of its column.
    fn field(&self, typed: &str) -> anyhow::Result<Field> {
        let plain = |name: &str| name.replace(['-', '_', ' '], "").to_lowercase();
        let is_meant = |name: &str| plain(name) == plain(typed);
        if let Some(name) = self.fields.iter().find(|name| is_meant(name)) {
            return Ok(Field(vec![name.clone()]));
        }
        let column = self.columns.iter().find(|(title, _)| is_meant(title));
        if let Some((_, names)) = column {
            return Ok(Field(names.iter().map(|name| (*name).to_owned()).collect()));
        }
        let nothing_is_known = self.fields.is_empty() && self.others.is_empty();
        if nothing_is_known || self.others.iter().any(|name| is_meant(name)) {
            return Ok(Field(Vec::new()));
        }
        let names: Vec<&str> = match self.fields.is_empty() {
            true => self.others.iter().map(String::as_str).collect(),
            false => self.fields.iter().map(String::as_str).collect(),
        };
        let typed = visible_line(typed);
        Err(Usage::error(format!("these records have no field `{typed}`, only {}", names.join(", "))))
    }
}

impl Field {
    /// What an item has there: each value of a list, the name of somebody.
    fn values<'v>(&self, item: &'v Value) -> Vec<&'v Value> {
        let found = self.0.iter().flat_map(|name| [&item[name], &item[CONTENT][name]]).find(|value| !value.is_null());
        match found {
            Some(Value::Array(values)) => values.iter().collect(),
            Some(value) if value.is_object() => value.get(NAME).into_iter().collect(),
            found => found.into_iter().collect(),
        }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn compared(one: &Value, other: &Value) -> Ordering {
    if let (Some(one), Some(other)) = (one.as_f64(), other.as_f64()) {
        return one.total_cmp(&other);
    }
    let (one, other) = (text_of(one).to_lowercase(), text_of(other).to_lowercase());
    let rank = |text: &str| RANKS.iter().position(|word| *word == text);
    match (rank(&one), rank(&other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => by_number(&one, &other).then_with(|| one.cmp(&other)),
    }
}

/// As people count: `TASK-9` comes before `TASK-10`.
fn by_number(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (here, there) = (digits(one), digits(other));
        if here > 0 && there > 0 {
            let number = |text: &str, count: usize| text[..count].trim_start_matches('0').to_owned();
            let (first, second) = (number(one, here), number(other, there));
            let ordered = first.len().cmp(&second.len()).then_with(|| first.cmp(&second));
            if ordered != Ordering::Equal {
                return ordered;
            }
            (one, other) = (&one[here..], &other[there..]);
            continue;
        }
        let (Some(first), Some(second)) = (one.chars().next(), other.chars().next()) else {
            return one.len().cmp(&other.len());
        };
        if first != second {
            return first.cmp(&second);
        }
        (one, other) = (&one[first.len_utf8()..], &other[second.len_utf8()..]);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::{Value, json};

    use super::{Column, Selection, options};

    const COLUMNS: &[Column] = &[("state", &["state", "status"])];

    /// What is selected of some tasks, by their ids.
    fn select(typed: &[&str]) -> Result<String, String> {
        let mut items: Vec<Value> = [
            json!({ "id": "TASK-9", "version": 2, "content": { "title": "b", "status": "pending", "priority": "low", "tags": ["x", "y"] } }),
            json!({ "id": "TASK-10", "version": 10, "content": { "title": "A", "status": "completed", "priority": "high", "tags": [] } }),
            json!({ "id": "TASK-8", "version": 1, "by": { "name": "Ana" }, "content": { "title": "c", "status": "pending", "priority": "medium", "held": null } }),
        ]
        .to_vec();
        let command = options(clap::Command::new("list"));
        let matches = command.try_get_matches_from([&["list"], typed].concat()).unwrap();
        Selection::of(&matches)
            .apply(&mut items, COLUMNS, &["dueDate".to_owned()])
            .map_err(|error| error.to_string())?;
        let ids: Vec<&str> =
            items.iter().map(|item| item["id"].as_str().unwrap().trim_start_matches("TASK-")).collect();
        Ok(ids.join(" "))
    }

    #[track_caller]
    fn check(typed: &[&str], expected: &str) {
        assert_eq!(select(typed).as_deref(), Ok(expected), "{typed:?}");
    }

    #[test]
    fn a_list_is_sorted_as_people_count_and_rank() {
        check(&[], "9 10 8");
        check(&["--reverse"], "8 10 9");
        check(&["--sort", "id"], "8 9 10");
        check(&["--sort", "-id"], "10 9 8");
        check(&["--sort", "id", "--reverse"], "10 9 8");
        check(&["--sort", "version"], "8 9 10");
        check(&["--sort", "title"], "10 9 8");
        check(&["--sort", "priority"], "10 8 9");
        // What a column shows, however the record calls it; of equal ones the order stays.
        check(&["--sort", "state"], "10 9 8");
        // Those without the field come last, both ways.
        check(&["--sort", "by"], "8 9 10");
        check(&["--sort=-by"], "8 9 10");
        check(&["--sort", "due-date"], "9 10 8");
    }

    #[test]
    fn a_list_is_filtered_by_all_conditions() {
        check(&["--where", "status=pending"], "9 8");
        check(&["--where", "status=Pending", "--where", "title~C"], "8");
        check(&["--where", "status!=pending"], "10");
        check(&["--where", "tags=y"], "9");
        check(&["--where", "tags="], "10 8");
        check(&["--where", "tags!="], "9");
        check(&["--where", "by=ana"], "8");
        check(&["--where", "dueDate=2026-01-01"], "");
        check(&["--where", "version=10"], "10");
    }

    #[test]
    fn a_name_that_is_none_is_answered_with_those_there_are() {
        for typed in [["--sort", "colour"], ["--where", "colour=red"]] {
            let said = select(&typed).unwrap_err();
            assert!(
                said.contains("`colour`") && said.contains("by, held, id, priority, status, tags, title, version"),
                "{said}"
            );
        }
        for typed in ["status", "=x", "!=x", "~x"] {
            let said = select(&["--where", typed]).unwrap_err();
            assert!(said.contains("FIELD=VALUE"), "{typed}: {said}");
        }
    }
}
