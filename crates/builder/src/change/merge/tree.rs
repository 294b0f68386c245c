//! JSON, value by value: objects by their fields; lists by what names their items, or as a whole.

use serde_json::{Map, Value};

use super::{Clash, ClashPlace, Side, Take, clash, unchanged};
use crate::change::Part;
use crate::change::splice::{keys, rewrite};
use crate::finding::token;
use crate::json;

/// Both edits of a JSON text, in the layout of the current one. None if one of them is not JSON.
pub(super) fn merge(
    part: Part,
    [base, current, ours]: [&str; 3],
    take: &mut Take<'_>,
) -> Option<Result<String, Vec<Clash>>> {
    let parse = |text: &str| json::parse("", text.as_bytes()).ok();
    let (before, there, here) = (parse(base)?, parse(current)?, parse(ours)?);
    let mut merge = Merge { part, clashes: Vec::new(), take };
    let merged = merge.value("", Some(&before), Some(&there), Some(&here));
    Some(if merge.clashes.is_empty() { Ok(rewrite(current, &merged.unwrap_or_default())) } else { Err(merge.clashes) })
}

/// Whether both texts are JSON of the same value: an object or a list. Single words and numbers are compared as they are written.
pub(super) fn is_same_value(one: &str, other: &str) -> bool {
    let parse =
        |text: &str| json::parse("", text.as_bytes()).ok().filter(|value| value.is_object() || value.is_array());
    // Most texts are none, which shows at their first character.
    let may_be = |text: &str| text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    may_be(one) && may_be(other) && parse(one).is_some_and(|one| parse(other) == Some(one))
}

/// A JSON text with the current value at the place of a clash; without it where there is none now.
pub(super) fn with_current(text: &str, pointer: &str, clash: &Clash) -> String {
    let Ok(mut value) = json::parse("", text.as_bytes()) else { return text.to_owned() };
    let current: Option<Value> = clash.current.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let Some((above, name)) = pointer.rsplit_once('/') else { return clash.current.clone().unwrap_or_default() };
    let name = name.replace("~1", "/").replace("~0", "~");
    match (value.pointer_mut(above), current) {
        (Some(Value::Object(fields)), Some(current)) => drop(fields.insert(name, current)),
        (Some(Value::Object(fields)), None) => drop(fields.shift_remove(&name)),
        (Some(Value::Array(items)), current) => {
            // What the base has not has its place in the current list.
            let known = name.parse().ok().filter(|at: &usize| clash.base.is_some() && *at < items.len());
            match (known, current) {
                (Some(at), Some(current)) => items[at] = current,
                (Some(at), None) => drop(items.remove(at)),
                (None, Some(current)) => items.push(current),
                (None, None) => {}
            }
        }
        _ => return text.to_owned(),
    }
    rewrite(text, &value)
}

struct Merge<'t, 'f> {
    part: Part,
    clashes: Vec<Clash>,
    take: &'t mut Take<'f>,
}

type Node<'a> = Option<&'a Value>;

impl Merge<'_, '_> {
    /// The depth of what was parsed is bounded, so recursion is.
    fn value(&mut self, at: &str, base: Node<'_>, current: Node<'_>, ours: Node<'_>) -> Option<Value> {
        if let Some(clean) = unchanged(base, current, ours) {
            return clean.cloned();
        }
        match (base, current, ours) {
            (Some(Value::Object(base)), Some(Value::Object(current)), Some(Value::Object(ours))) => {
                return Some(Value::Object(self.fields(at, base, current, ours)));
            }
            (Some(Value::Array(base)), Some(Value::Array(current)), Some(Value::Array(ours))) => {
                if let Some(items) = self.items(at, base, current, ours) {
                    return Some(Value::Array(items));
                }
            }
            _ => {}
        }
        match (self.take)() {
            Some(Side::Ours) => return ours.cloned(),
            Some(Side::Theirs) => {}
            None => self.clash(at, base, current, ours),
        }
        current.cloned()
    }

    fn clash(&mut self, at: &str, base: Node<'_>, current: Node<'_>, ours: Node<'_>) {
        let texts = [base, current, ours].map(|side| side.map(|value| format!("{value:#}")));
        let texts = [texts[0].as_deref(), texts[1].as_deref(), texts[2].as_deref()];
        self.clashes.push(clash(self.part, ClashPlace::Pointer { pointer: at.to_owned() }, texts));
    }

    fn fields(
        &mut self,
        at: &str,
        base: &Map<String, Value>,
        current: &Map<String, Value>,
        ours: &Map<String, Value>,
    ) -> Map<String, Value> {
        let added = ours.keys().filter(|name| !current.contains_key(*name));
        let mut merged = Map::new();
        for name in current.keys().chain(added) {
            let inside = format!("{at}/{}", token(name));
            let value = self.value(&inside, base.get(name), current.get(name), ours.get(name));
            merged.extend(value.map(|value| (name.clone(), value)));
        }
        merged
    }

    /// A list whose items have names. None: they do not, or both sides put them in another order.
    fn items(&mut self, at: &str, base: &[Value], current: &[Value], ours: &[Value]) -> Option<Vec<Value>> {
        let named = keys(&[base, current, ours])?;
        let [before, there, here] = named.as_slice() else { return None };
        let order = order(before, there, here)?;
        let find = |names: &[String], name: &str| names.iter().position(|other| other == name);
        let mut merged = Vec::new();
        for name in order {
            let indexes = (find(before, name), find(there, name), find(here, name));
            let index = indexes.0.or(indexes.1).or(indexes.2).unwrap_or_default();
            let (was, is, will) =
                (indexes.0.map(|at| &base[at]), indexes.1.map(|at| &current[at]), indexes.2.map(|at| &ours[at]));
            merged.extend(self.value(&format!("{at}/{index}"), was, is, will));
        }
        Some(merged)
    }
}

/// The names of both sides in one order: that of the side that changed it, with what only the other has behind what
/// stands before it there. None if both changed it, each in its way.
pub(super) fn order<'a>(base: &'a [String], current: &'a [String], ours: &'a [String]) -> Option<Vec<&'a str>> {
    let common = |names: &'a [String]| -> Vec<&'a str> {
        let is_common = |name: &&'a String| base.contains(name) && current.contains(name) && ours.contains(name);
        names.iter().filter(is_common).map(String::as_str).collect()
    };
    let (was, is, will) = (common(base), common(current), common(ours));
    let (first, second) = match unchanged(&was, &is, &will)? {
        order if *order == is => (current, ours),
        _ => (ours, current),
    };
    let mut merged: Vec<&str> = first.iter().map(String::as_str).collect();
    let mut before: Option<&str> = None;
    for name in second {
        if !merged.contains(&name.as_str()) {
            let at = before.and_then(|before| merged.iter().position(|other| *other == before)).map_or(0, |at| at + 1);
            merged.insert(at, name);
        }
        before = Some(name);
    }
    Some(merged)
}
