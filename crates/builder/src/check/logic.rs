//! `conditionExpr`: rules as JSONLogic says them (<https://jsonlogic.com/operations.html>).

use std::collections::BTreeSet;

use serde_json::Value;
use toolhost_contract::nearest;

use super::variables::{Read, how_to_set};
use crate::finding::{Finding, Findings, token};
use crate::package::Workflow;

/// Each operator with the fewest and the most arguments it takes.
const OPERATORS: [(&str, usize, usize); 34] = [
    ("var", 0, 2),
    ("missing", 0, usize::MAX),
    ("missing_some", 2, 2),
    ("if", 1, usize::MAX),
    ("?:", 3, 3),
    ("==", 2, 2),
    ("===", 2, 2),
    ("!=", 2, 2),
    ("!==", 2, 2),
    ("!", 1, 1),
    ("!!", 1, 1),
    ("or", 1, usize::MAX),
    ("and", 1, usize::MAX),
    (">", 2, 2),
    (">=", 2, 2),
    ("<", 2, 3),
    ("<=", 2, 3),
    ("max", 1, usize::MAX),
    ("min", 1, usize::MAX),
    ("+", 1, usize::MAX),
    ("-", 1, 2),
    ("*", 1, usize::MAX),
    ("/", 2, 2),
    ("%", 2, 2),
    ("map", 2, 2),
    ("reduce", 3, 3),
    ("filter", 2, 2),
    ("all", 2, 2),
    ("none", 2, 2),
    ("some", 2, 2),
    ("merge", 0, usize::MAX),
    ("in", 2, 2),
    ("cat", 0, usize::MAX),
    ("substr", 2, 3),
];
/// Operators whose second argument is asked of each item, so that its variables are parts of the item.
const OF_EACH: [&str; 6] = ["map", "reduce", "filter", "all", "none", "some"];

/// Operators that compare their arguments.
const COMPARING: [&str; 8] = ["==", "===", "!=", "!==", ">", ">=", "<", "<="];

/// The conditions of all edges, and the variables that they read and that must have a value. `known` are the variables that
/// there are; none if they cannot be told.
pub(super) fn check(workflow: &Workflow, known: Option<&BTreeSet<&str>>, findings: &mut Findings) -> Vec<Read> {
    let mut read = Vec::new();
    for edge in &workflow.edges {
        let Some(rule) = edge.value.get("conditionExpr") else { continue };
        let mut rules = Rules { file: &workflow.graph_path, known, read: Vec::new(), findings };
        rules.check(format!("/edges/{}/conditionExpr", edge.index), rule);
        let of_edge = rules.read.into_iter();
        read.extend(of_edge.map(|(name, pointer)| Read { from: edge.from.clone(), name, pointer }));
    }
    read
}

/// A part of a rule that is still to be looked at.
struct Open<'a> {
    pointer: String,
    value: &'a Value,
    /// Whether its variables are parts of an item.
    is_of_item: bool,
}

struct Rules<'a> {
    file: &'a str,
    known: Option<&'a BTreeSet<&'a str>>,
    /// Names and places of known variables that are read.
    read: Vec<(String, String)>,
    findings: &'a mut Findings,
}

impl Rules<'_> {
    fn check(&mut self, pointer: String, rule: &Value) {
        if !matches!(rule, Value::Object(_) | Value::Bool(_)) {
            self.wrong(pointer, rule, "is no rule");
            return;
        }
        let mut open = vec![Open { pointer, value: rule, is_of_item: false }];
        while let Some(Open { pointer, value, is_of_item }) = open.pop() {
            match value {
                Value::Array(items) => {
                    let items = items.iter().enumerate().rev();
                    let below = |(at, value)| Open { pointer: format!("{pointer}/{at}"), value, is_of_item };
                    open.extend(items.map(below));
                }
                Value::Object(fields) => match fields.iter().next().filter(|_| fields.len() == 1) {
                    Some((operator, arguments)) => {
                        let at = format!("{pointer}/{}", token(operator));
                        self.operator(&at, operator, arguments, is_of_item);
                        let each = OF_EACH.contains(&operator.as_str());
                        match arguments.as_array() {
                            Some(list) => open.extend(list.iter().enumerate().rev().map(|(index, value)| Open {
                                pointer: format!("{at}/{index}"),
                                value,
                                is_of_item: is_of_item || (each && index == 1),
                            })),
                            None => open.push(Open { pointer: at, value: arguments, is_of_item }),
                        }
                    }
                    None => self.wrong(pointer, value, "is no rule: it has not one operator"),
                },
                _ => {}
            }
        }
    }

    fn operator(&mut self, pointer: &str, operator: &str, arguments: &Value, is_of_item: bool) {
        let given = arguments.as_array().map_or(1, Vec::len);
        let Some((_, fewest, most)) = OPERATORS.iter().find(|(name, ..)| *name == operator) else {
            let names: Vec<&str> = OPERATORS.iter().map(|(name, ..)| *name).collect();
            let meant = nearest(operator, names.iter().copied());
            let message = format!("JSONLogic has no operator `{operator}`");
            let finding = Finding::error("CONDITION_INVALID", self.file, pointer, message).actual(operator);
            let hint = match meant.first() {
                Some(meant) => format!("write `{meant}`, or say the condition in `conditionText` alone"),
                None => "use one of the operators, or say the condition in `conditionText` alone".to_owned(),
            };
            self.findings.add(finding.expected(format!("one of {}", names.join(" "))).hint(hint));
            return;
        };
        if given < *fewest || given > *most {
            let expected = match (*fewest, *most) {
                (fewest, most) if fewest == most => format!("{fewest}"),
                (fewest, usize::MAX) => format!("at least {fewest}"),
                (fewest, most) => format!("{fewest} to {most}"),
            };
            let message = format!("`{operator}` takes {expected} arguments, and here are {given}");
            let finding = Finding::error("CONDITION_INVALID", self.file, pointer, message);
            let hint = format!("give `{operator}` a list of {expected} arguments");
            self.findings.add(finding.expected(expected).actual(given.to_string()).hint(hint));
        } else {
            self.compared(pointer, operator, arguments);
            if !is_of_item {
                self.variables(pointer, operator, arguments);
            }
        }
    }

    /// A comparison of values that are all written there is the same each time.
    fn compared(&mut self, pointer: &str, operator: &str, arguments: &Value) {
        let Some(values) = arguments.as_array().filter(|_| COMPARING.contains(&operator)) else { return };
        if values.iter().any(|value| value.is_object() || value.is_array()) {
            return;
        }
        let message =
            format!("the condition `{operator}` compares values that are all written there: it is always the same");
        let finding = Finding::warning("CONDITION_CONSTANT", self.file, pointer, message).actual(arguments.to_string());
        let named =
            values.iter().filter_map(Value::as_str).find(|text| self.known.is_some_and(|known| known.contains(text)));
        let hint = match named {
            Some(name) => format!("for the variable `{name}` write {{\"var\": \"{name}\"}}"),
            None => "name a variable: {\"var\": \"its name\"}".to_owned(),
        };
        self.findings.add(finding.expected("a variable among the values").hint(hint));
    }

    /// The variables that an operator reads by name.
    fn variables(&mut self, pointer: &str, operator: &str, arguments: &Value) {
        let names: Vec<(String, &Value)> = match (operator, arguments) {
            ("var", Value::Array(list)) => {
                list.first().map(|name| (format!("{pointer}/0"), name)).into_iter().collect()
            }
            ("var" | "missing", name @ Value::String(_)) => vec![(pointer.to_owned(), name)],
            ("var", name @ (Value::Number(_) | Value::Bool(_))) => {
                self.wrong(pointer.to_owned(), name, "is no name of a variable");
                return;
            }
            ("missing", Value::Array(list)) => {
                list.iter().enumerate().map(|(at, name)| (format!("{pointer}/{at}"), name)).collect()
            }
            ("missing_some", Value::Array(list)) => {
                let names = list.get(1).and_then(Value::as_array).into_iter().flatten().enumerate();
                names.map(|(at, name)| (format!("{pointer}/1/{at}"), name)).collect()
            }
            _ => return,
        };
        let Some(known) = self.known else { return };
        for (pointer, name) in names {
            let Some(full) = name.as_str() else { continue };
            let root = full.split('.').next().unwrap_or_default();
            if known.contains(root) {
                // What asks whether it is missing, or says what it is then, may well find nothing.
                let is_needed = operator == "var" && arguments.as_array().is_none_or(|list| list.len() < 2);
                self.read.extend(is_needed.then(|| (root.to_owned(), pointer.clone())));
            }
            if root.is_empty() || known.contains(root) {
                continue;
            }
            let message = format!("the condition reads `{root}`, and nothing sets it");
            let finding = Finding::error("VARIABLE_NEVER_SET", self.file, pointer, message).actual(root);
            self.findings.add(finding.expected("a variable of the workflow").hint(how_to_set(root, known)));
        }
    }

    fn wrong(&mut self, pointer: String, value: &Value, why: &str) {
        let message = format!("the condition {} {why}", crate::finding::quoted(&value.to_string()));
        let finding = Finding::error("CONDITION_INVALID", self.file, pointer, message).actual(value.to_string());
        self.findings.add(
            finding
                .expected("a rule of JSONLogic, such as {\"==\": [{\"var\": \"verdict\"}, \"good\"]}")
                .hint("write a rule, or say the condition in `conditionText` alone"),
        );
    }
}
