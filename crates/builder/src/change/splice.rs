//! JSON text changed in places: what is not meant keeps its bytes, its layout and the order of its fields.
//!
//! Texts that were not parsed before are written anew.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::spans::{Inside, Tree};

/// The text of another value, with what is the same left as it stands in this text.
pub(super) fn rewrite(text: &str, value: &Value) -> String {
    let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (Some(tree), Ok(old)) = (Tree::of(text), serde_json::from_str::<Value>(bare)) else {
        return pretty(value, &Style { unit: "  ".to_owned(), newline: "\n" }, "");
    };
    let style = Style::of(text);
    let mut out = text[..tree.span.start].to_owned();
    Rewrite { text, style: &style }.value(&mut out, &tree, &old, value);
    out.push_str(&text[tree.span.end..]);
    out
}

/// How a text is laid out.
struct Style {
    /// One level of indentation.
    unit: String,
    newline: &'static str,
}

impl Style {
    fn of(text: &str) -> Self {
        let indent = |line: &str| -> String { line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect() };
        let outer = text.trim_end().lines().last().map(indent).unwrap_or_default();
        let inner = text.lines().skip(1).find(|line| !line.trim().is_empty()).map(indent).unwrap_or_default();
        let unit = inner.strip_prefix(outer.as_str()).filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned();
        Self { unit, newline: if text.contains("\r\n") { "\r\n" } else { "\n" } }
    }
}

/// A value on several lines; all but the first begin with `indent`.
fn pretty(value: &Value, style: &Style, indent: &str) -> String {
    let mut bytes = Vec::new();
    let mut writer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(style.unit.as_bytes()));
    // Writing a value into memory does not fail.
    let written = value.serialize(&mut writer).ok().and_then(|()| String::from_utf8(bytes).ok());
    written.unwrap_or_default().replace('\n', &format!("{}{indent}", style.newline))
}

struct Rewrite<'a> {
    text: &'a str,
    style: &'a Style,
}

impl Rewrite<'_> {
    fn value(&self, out: &mut String, tree: &Tree, old: &Value, new: &Value) {
        if old == new {
            out.push_str(&self.text[tree.span.clone()]);
            return;
        }
        match (&tree.inside, old, new) {
            (Inside::Fields(trees), Value::Object(old), Value::Object(new)) if !trees.is_empty() => {
                let mut parts = Vec::new();
                for (index, field) in trees.iter().enumerate() {
                    let (Some(old), Some(new)) = (old.get(&field.name), new.get(&field.name)) else { continue };
                    let mut part = self.text[field.start..field.value.span.start].to_owned();
                    self.value(&mut part, &field.value, old, new);
                    parts.push((index, part));
                }
                let starts: Vec<Range<usize>> = trees.iter().map(|f| f.start..f.value.span.end).collect();
                let lead = self.lead(tree, &starts, trees.len() - 1);
                for (name, new) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                    let (name, space) = (Value::from(name.as_str()), if lead.is_empty() { "" } else { " " });
                    parts.push((trees.len(), format!("{name}:{space}{}", self.fresh(new, lead))));
                }
                self.list(out, tree, &starts, &parts);
            }
            (Inside::Items(trees), Value::Array(old), Value::Array(new)) if !trees.is_empty() => {
                let starts: Vec<Range<usize>> = trees.iter().map(|item| item.span.clone()).collect();
                let lead = self.lead(tree, &starts, trees.len() - 1);
                let matched = matched(old, new);
                let parts: Vec<(usize, String)> = new
                    .iter()
                    .zip(matched)
                    .map(|(new, from)| match from {
                        Some(index) => {
                            let mut part = String::new();
                            self.value(&mut part, &trees[index], &old[index], new);
                            (index, part)
                        }
                        None => (trees.len(), self.fresh(new, lead)),
                    })
                    .collect();
                self.list(out, tree, &starts, &parts);
            }
            _ => out.push_str(&self.fresh(new, self.line_indent(tree.span.start))),
        }
    }

    /// What stands between the one before and this one, without the comma.
    fn lead(&self, tree: &Tree, starts: &[Range<usize>], index: usize) -> &str {
        let Some(this) = starts.get(index) else { return "" };
        let from = if index == 0 { tree.span.start + 1 } else { starts[index - 1].end };
        let between = &self.text[from..this.start];
        between.split_once(',').map_or(between, |(_, lead)| lead)
    }

    /// Parts between the brackets of a list, each with the white space that it had, or that the last one has.
    fn list(&self, out: &mut String, tree: &Tree, starts: &[Range<usize>], parts: &[(usize, String)]) {
        let (open, close) = (tree.span.start, tree.span.end - 1);
        out.push_str(&self.text[open..=open]);
        for (number, (index, part)) in parts.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            // The first of all may stand apart from the others, as in `[ 1, 2 ]` or `[1, 2]`.
            let like = if number == 0 { 0 } else { (*index).max(usize::from(starts.len() > 1)).min(starts.len() - 1) };
            out.push_str(self.lead(tree, starts, like));
            out.push_str(part);
        }
        if !parts.is_empty() {
            let last = starts.last().map_or(open + 1, |last| last.end);
            out.push_str(&self.text[last..close]);
        }
        out.push_str(&self.text[close..=close]);
    }

    /// A value that was not there, at a place that this white space leads to.
    fn fresh(&self, value: &Value, lead: &str) -> String {
        match lead.rsplit_once('\n') {
            Some((_, indent)) => pretty(value, self.style, indent),
            None => value.to_string(),
        }
    }

    /// The white space at the start of the line, as a lead; a text of one line has none.
    fn line_indent(&self, at: usize) -> &str {
        if !self.text.contains('\n') {
            return "";
        }
        let start = self.text[..at].rfind('\n').unwrap_or(0);
        let line = &self.text[start..];
        let text = line.char_indices().skip(1).find(|(_, c)| !matches!(c, ' ' | '\t')).map_or(line.len(), |(at, _)| at);
        if line.starts_with('\n') { &line[..text] } else { "\n" }
    }
}

/// For each new item the old one that it is, each at most once.
fn matched(old: &[Value], new: &[Value]) -> Vec<Option<usize>> {
    if let Some(mut keys) = keys(&[old, new])
        && let (Some(after), Some(before)) = (keys.pop(), keys.pop())
    {
        let numbers: HashMap<&str, usize> = before.iter().enumerate().map(|(at, key)| (key.as_str(), at)).collect();
        return after.iter().map(|key| numbers.get(key.as_str()).copied()).collect();
    }
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let from = |at: usize| {
        let from_end = new.len() - at;
        if from_end <= tail { Some(old.len() - from_end) } else { Some(at).filter(|at| *at < old.len() - tail) }
    };
    (0..new.len()).map(from).collect()
}

/// What names each item of these lists: its id, or the ends and the label of an edge. None if not each item of each has
/// one of its own.
///
/// An edge is named by its id where that leads from and to the same nodes in each list: so two labels for one edge are two
/// changes of it. Whoever writes a whole graph anew may number its edges anew; then the ends and the label name them.
pub(super) fn keys(lists: &[&[Value]]) -> Option<Vec<Vec<String>>> {
    let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let ends = |item: &Value| Some((text(item, "from")?, text(item, "to")?));
    let edge = |item: &Value| {
        let ends = [text(item, "from")?, text(item, "to")?, text(item, "label")?];
        serde_json::to_string(&ends).ok()
    };
    let id = |item: &Value| text(item, "id");
    fn all(lists: &[&[Value]], key: &dyn Fn(&Value) -> Option<String>) -> Option<Vec<Vec<String>>> {
        let named = |list: &&[Value]| {
            let keys: Vec<String> = list.iter().map(key).collect::<Option<_>>()?;
            let unique: HashSet<&str> = keys.iter().map(String::as_str).collect();
            (unique.len() == keys.len()).then_some(keys)
        };
        lists.iter().map(named).collect()
    }
    let by_id = all(lists, &id);
    let mut known: HashMap<String, (String, String)> = HashMap::new();
    let is_kept = |item: &Value| match (id(item), ends(item)) {
        (Some(id), Some(ends)) => *known.entry(id).or_insert_with(|| ends.clone()) == ends,
        _ => false,
    };
    let are_kept = by_id.is_some() && lists.iter().copied().flatten().all(is_kept);
    if are_kept { by_id } else { all(lists, &edge).or(by_id) }
}

/// The text of an item that stands alone, as it would stand behind this lead.
fn indented(item: &str, lead: &str) -> String {
    let Some((before, indent)) = lead.rsplit_once('\n') else { return item.to_owned() };
    // One that was cut out of a text like this one has its indentation already.
    let is_bare = item.lines().last().is_some_and(|last| !last.starts_with([' ', '\t']));
    if !is_bare {
        return item.to_owned();
    }
    let newline = if before.ends_with('\r') { "\r\n" } else { "\n" };
    let lines: Vec<&str> = item.lines().collect();
    lines.join(&format!("{newline}{indent}"))
}

/// Puts another text in the place of one item.
pub(super) fn replace_item(text: &str, item: &Tree, with: &str) -> String {
    format!("{}{with}{}", &text[..item.span.start], &text[item.span.end..])
}

/// Takes one item out, with its comma.
pub(super) fn remove_item(text: &str, list: &Tree, index: usize) -> String {
    let items = list.items().unwrap_or_default();
    let cut = match (index.checked_sub(1).and_then(|before| items.get(before)), items.get(index), items.get(index + 1))
    {
        (_, None, _) => return text.to_owned(),
        (Some(before), Some(item), _) => before.span.end..item.span.end,
        (None, Some(item), Some(next)) => item.span.start..next.span.start,
        (None, Some(_), None) => list.span.start + 1..list.span.end - 1,
    };
    format!("{}{}", &text[..cut.start], &text[cut.end..])
}

/// Puts one item behind the last.
pub(super) fn append_item(text: &str, list: &Tree, item: &str) -> String {
    let items = list.items().unwrap_or_default();
    let style = Style::of(text);
    let rewrite = Rewrite { text, style: &style };
    let spans: Vec<Range<usize>> = items.iter().map(|item| item.span.clone()).collect();
    match items.last() {
        Some(last) => {
            let lead = rewrite.lead(list, &spans, items.len() - 1);
            format!("{},{lead}{}{}", &text[..last.span.end], indented(item, lead), &text[last.span.end..])
        }
        None => {
            let outer = rewrite.line_indent(list.span.start);
            let lead = if outer.is_empty() { String::new() } else { format!("{outer}{}", style.unit) };
            let (open, close) = (list.span.start + 1, list.span.end - 1);
            format!("{}{lead}{}{outer}{}", &text[..open], indented(item, &lead), &text[close..])
        }
    }
}

/// A value as a text that stands alone.
pub(super) fn alone(value: &Value) -> String {
    pretty(value, &Style { unit: "  ".to_owned(), newline: "\n" }, "")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Tree, append_item, matched, remove_item, rewrite};

    #[test]
    fn what_is_the_same_keeps_its_bytes() {
        let check = |text: &str, value: Value, expected: &str| {
            assert_eq!(rewrite(text, &value), expected);
            assert_eq!(serde_json::from_str::<Value>(expected).unwrap_or_default(), value);
        };
        check("{ \"a\":1 , \"b\" : [ 1,2 ]}\n", json!({ "b": [1, 2], "a": 1 }), "{ \"a\":1 , \"b\" : [ 1,2 ]}\n");
        check(
            "{\n\t\"a\": 1,\n\t\"b\": 2\n}",
            json!({ "a": 1, "c": [3] }),
            "{\n\t\"a\": 1,\n\t\"c\": [\n\t\t3\n\t]\n}",
        );
        check("[1, 2,  3]", json!([1, 3]), "[1,  3]");
        check("[1, 2]", json!([0, 1, 2]), "[0, 1, 2]");
        check("[]", json!([0]), "[0]");
        check("{\"a\":{}}", json!({}), "{}");
        // An object or a list on one line stays on one line.
        let line = "[\n  {\"id\": \"a\", \"x\": 1},\n  {\"id\": \"b\"}\n]";
        check(
            line,
            json!([{ "id": "a", "x": 1, "y": 2 }, { "id": "b" }]),
            "[\n  {\"id\": \"a\", \"x\": 1, \"y\": 2},\n  {\"id\": \"b\"}\n]",
        );
        check("{\"a\":[{\"b\":1}]}", json!({ "a": [{ "b": 1 }, { "c": {} }] }), "{\"a\":[{\"b\":1},{\"c\":{}}]}");
        let two = "[\n  {\"id\": \"a\",   \"x\": 1},\n  {\"id\": \"b\"}\n]";
        check(
            two,
            json!([{ "id": "b" }, { "id": "a", "x": 2 }]),
            "[\n  {\"id\": \"b\"},\n  {\"id\": \"a\",   \"x\": 2}\n]",
        );
    }

    #[test]
    fn items_come_and_go_alone() {
        let text = "{\"a\": [\n  1,\n  2\n]}";
        let tree = Tree::of(text).unwrap_or(Tree { span: 0..0, inside: super::Inside::Leaf });
        let list = tree.field("a").unwrap_or(&tree);
        assert_eq!(remove_item(text, list, 0), "{\"a\": [\n  2\n]}");
        assert_eq!(remove_item(text, list, 1), "{\"a\": [\n  1\n]}");
        assert_eq!(append_item(text, list, "{\n  \"b\": 3\n}"), "{\"a\": [\n  1,\n  2,\n  {\n    \"b\": 3\n  }\n]}");
    }

    #[test]
    fn items_without_a_name_are_matched_from_both_ends() {
        let check = |old: &[i32], new: &[i32], expected: &[Option<usize>]| {
            let values = |items: &[i32]| items.iter().map(|item| json!(item)).collect::<Vec<_>>();
            assert_eq!(matched(&values(old), &values(new)), expected, "{old:?} {new:?}");
        };
        check(&[1, 2, 3], &[1, 3], &[Some(0), Some(2)]);
        check(&[1, 3], &[1, 2, 3], &[Some(0), None, Some(1)]);
        check(&[1, 2], &[1, 9], &[Some(0), Some(1)]);
        check(&[], &[1], &[None]);
        check(&[1, 1], &[1], &[Some(0)]);
    }
}
