//! One definition of a file by its name, such as `Parser::next`, or one section of Markdown by its heading.

use std::ops::Range;

use pulldown_cmark::HeadingLevel;
use toolhost_contract::workspace::WsPath;
use toolhost_contract::{ErrorKind, ToolError, nearest, or_list};
use tree_sitter::{Node, Tree};

use super::NEAR;
use super::outline::{Grammar, Kind, headings, parse, walk};

/// Longest name, bytes.
const NAME_BYTES_MAX: usize = 500;
/// Candidates that an error lists.
const CANDIDATES_MAX: usize = 10;
/// Longest signature in that list.
const SIGNATURE_CHARS_MAX: usize = 100;
/// How deep a declarator of C is followed to its name.
const DECLARATOR_DEPTH_MAX: usize = 64;

/// Parts of a name that is shown.
const PARTS_MAX: usize = 8;

/// Where a definition stands in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// With its attributes and its comment. Whole lines, unless something else stands on them.
    pub(super) range: Range<usize>,
    /// Whether the parser met a mistake in it, so that its end may lie elsewhere.
    pub(super) is_broken: bool,
}

/// A definition and the names by which it is asked for.
struct Definition<'t> {
    /// Its own names; none where it is only a part of another definition. A declaration can have several constants.
    own: Vec<String>,
    /// What it is called before the names of definitions inside it, or before its own where it is a method of Go.
    outer: Vec<String>,
    /// The number of the definition around it.
    parent: Option<usize>,
    /// The line that an outline shows, 1-based.
    line: usize,
    part: Part<'t>,
}

/// What of the file a definition is.
enum Part<'t> {
    Code(Node<'t>),
    Section(Range<usize>),
}

/// Finds the definition that `symbol` names: its name, or the names of what it lies in before it, as many as make it unique.
/// `name:LINE` chooses among several.
pub(super) fn find(path: &WsPath, text: &str, symbol: &str) -> Result<Place, ToolError> {
    let without = |why: String| {
        ToolError::new(ErrorKind::Validation, format!("`{path}` has no symbols: {why}"))
            .hint("`symbol` works where the view `outline` does; elsewhere use lines or `file.search`")
    };
    if symbol.len() > NAME_BYTES_MAX {
        let message = format!("the symbol is {} bytes long; {NAME_BYTES_MAX} is the most", symbol.len());
        return Err(ToolError::new(ErrorKind::Validation, message));
    }
    match Kind::of(path.as_str(), text).map_err(without)? {
        Kind::Code(grammar) => {
            let tree = parse(grammar, text).map_err(without)?;
            choose(path, text, &definitions(grammar, &tree, text), symbol)
        }
        Kind::Markdown => choose(path, text, &sections(text), symbol),
    }
}

fn choose(path: &WsPath, text: &str, all: &[Definition<'_>], symbol: &str) -> Result<Place, ToolError> {
    let (name, line) = without_line(symbol);
    let wanted = plain(name);
    // A heading may end like a name with a line.
    let exact: Vec<&Definition<'_>> =
        all.iter().filter(|definition| definition.own.iter().any(|own| own == symbol)).collect();
    let (named, line) = match exact.is_empty() {
        true => (all.iter().filter(|definition| definition.is_called(&wanted, all)).collect(), line),
        false => (exact, None),
    };
    let chosen: Vec<&Definition<'_>> =
        named.iter().filter(|definition| line.is_none_or(|line| definition.line == line)).copied().collect();
    if let [one] = chosen.as_slice() {
        return Ok(one.place(text));
    }
    if named.is_empty() {
        let names = all.iter().filter(|definition| !definition.own.is_empty());
        let names: Vec<String> =
            names.flat_map(|definition| [definition.full(all), definition.own[0].clone()]).collect();
        let near = |wanted: &str| nearest(wanted, names.iter().map(String::as_str));
        let mut near = match near(&wanted) {
            found if found.is_empty() => near(wanted.rsplit("::").next().unwrap_or(&wanted)),
            found => found,
        };
        near.dedup();
        let meant = if near.is_empty() { String::new() } else { format!("{NEAR} {}?; ", or_list(&near)) };
        return Err(ToolError::new(ErrorKind::Validation, format!("`{path}` defines no `{name}`"))
            .hint(format!("{meant}`file.read` with the view `outline` lists the definitions")));
    }
    let lines: Vec<&str> = text.lines().collect();
    let candidate = |definition: &&Definition<'_>| {
        let signature = lines.get(definition.line - 1).copied().unwrap_or_default().trim();
        let signature: String = signature.chars().take(SIGNATURE_CHARS_MAX).collect();
        format!("`{}:{}`: {signature}", definition.full(all), definition.line)
    };
    let mut candidates: Vec<String> = named.iter().take(CANDIDATES_MAX).map(candidate).collect();
    candidates.extend((named.len() > CANDIDATES_MAX).then(|| format!("and {} more", named.len() - CANDIDATES_MAX)));
    let told = match line {
        Some(line) => format!("`{path}` defines no `{name}` on line {line}, but"),
        None => format!("`{path}` defines `{name}` {} times", named.len()),
    };
    Err(ToolError::new(ErrorKind::Validation, format!("{told}:\n{}", candidates.join("\n")))
        .hint("pass one of these as `symbol`, with its line"))
}

impl<'t> Definition<'t> {
    /// Whether the name is one of its own, alone or behind names of what it lies in.
    fn is_called(&self, wanted: &str, all: &[Self]) -> bool {
        self.own.iter().any(|own| match wanted.strip_suffix(plain(own).as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_suffix("::").is_some_and(|rest| self.lies_in(rest, all)),
            None => false,
        })
    }

    fn lies_in(&self, wanted: &str, all: &[Self]) -> bool {
        let Some((names, outside)) = self.around(all) else { return false };
        names.iter().any(|name| match wanted.strip_suffix(plain(name).as_str()) {
            Some("") => true,
            Some(rest) => {
                rest.strip_suffix("::").is_some_and(|rest| outside.is_some_and(|outside| outside.lies_in(rest, all)))
            }
            None => false,
        })
    }

    /// The names before its own, and the definition that they are of.
    fn around<'d>(&'d self, all: &'d [Self]) -> Option<(&'d [String], Option<&'d Self>)> {
        if let Part::Code(node) = self.part
            && node.child_by_field_name("receiver").is_some()
        {
            return Some((&self.outer, None));
        }
        let mut parent = all.get(self.parent?)?;
        while parent.outer.is_empty() {
            parent = all.get(parent.parent?)?;
        }
        Some((&parent.outer, Some(parent)))
    }

    fn full(&self, all: &[Self]) -> String {
        let mut parts: Vec<&str> = self.own.first().map(String::as_str).into_iter().collect();
        let mut inner = Some(self);
        while let Some((names, outside)) = inner.and_then(|inner| inner.around(all)).filter(|_| parts.len() < PARTS_MAX)
        {
            parts.extend(names.first().map(String::as_str));
            inner = outside;
        }
        parts.reverse();
        parts.join("::")
    }

    fn place(&self, text: &str) -> Place {
        match &self.part {
            Part::Code(node) => Place { range: range(*node, text), is_broken: node.has_error() },
            Part::Section(range) => Place { range: range.clone(), is_broken: false },
        }
    }
}

/// A name with one sign between its parts and one blank between its words.
fn plain(name: &str) -> String {
    let blanks = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if blanks.contains("::") { blanks } else { blanks.replace(['.', '#', '/'], "::") }
}

/// `next:12` is `next` on line 12; `Parser::12` is a name.
fn without_line(symbol: &str) -> (&str, Option<usize>) {
    let parts = symbol.rsplit_once(':').filter(|(name, _)| !name.ends_with(':') && !name.is_empty());
    match parts.and_then(|(name, line)| Some((name, line.parse().ok()?))) {
        Some((name, line)) => (name, Some(line)),
        None => (symbol, None),
    }
}

fn sections(text: &str) -> Vec<Definition<'static>> {
    let all: Vec<_> = headings(text).collect();
    // The end of each: the next heading that is no smaller. Those still open, outermost first.
    let mut ends = vec![text.len(); all.len()];
    let mut open: Vec<usize> = Vec::new();
    for (n, (level, start)) in all.iter().enumerate() {
        while let Some(last) = open.pop_if(|last| all[*last].0 >= *level) {
            ends[last] = *start;
        }
        open.push(n);
    }
    let (mut line, mut counted) = (1, 0);
    let section = |((_, start), end): (&(HeadingLevel, usize), usize)| {
        line += text[counted..*start].matches('\n').count();
        counted = *start;
        let heading = text[*start..].lines().next().unwrap_or_default();
        let heading = heading.trim_start_matches('#').trim().trim_end_matches('#').trim_end();
        let part = Part::Section(*start..end);
        Definition { own: vec![heading.to_owned()], outer: Vec::new(), parent: None, line, part }
    };
    all.iter().zip(ends).map(section).collect()
}

fn definitions<'t>(grammar: &Grammar, tree: &'t Tree, text: &str) -> Vec<Definition<'t>> {
    let mut found: Vec<Definition<'t>> = Vec::new();
    walk(grammar, tree, |node, parent| {
        let is_template = |node: Node<'_>| node.kind() == "template_declaration";
        let around = parent.and_then(|parent| found.get(parent)).map(|around| &around.part);
        // A template and the class in it are one definition.
        let is_in_template = matches!(around, Some(Part::Code(around)) if is_template(*around));
        let own = if is_in_template { Vec::new() } else { names(node, text) };
        let outer = if is_template(node) { Vec::new() } else { outer_names(node, text) };
        let line = node.start_position().row + 1;
        found.push(Definition { own, outer, parent, line, part: Part::Code(node) });
        true
    });
    found
}

fn text_of<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or_default()
}

fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

/// By what names a definition is asked for.
fn names(node: Node<'_>, text: &str) -> Vec<String> {
    let field = |name: &str| node.child_by_field_name(name);
    match node.kind() {
        "impl_item" => {
            let of = field("type").map(|of| text_of(of, text)).unwrap_or_default();
            match field("trait").map(|of| text_of(of, text)) {
                Some(implemented) => {
                    vec![format!("impl {implemented} for {of}"), format!("impl {} for {}", base(implemented), base(of))]
                }
                None => vec![format!("impl {of}"), format!("impl {}", base(of))],
            }
        }
        // These declare one name or more: `const a = 1, b = 2`, `type ( A int; B int )`.
        "lexical_declaration" | "type_declaration" | "const_declaration" | "var_declaration" => declared(node, text),
        "template_declaration" => children(node)
            .into_iter()
            .rev()
            .map(|inner| names(inner, text))
            .find(|names| !names.is_empty())
            .unwrap_or_default(),
        _ => match field("name") {
            Some(name) => vec![text_of(name, text).to_owned()],
            None => {
                let name = field("declarator").map(|inner| declarator(inner, text)).filter(|name| !name.is_empty());
                // `int Parser::next()` is `next`, too.
                let last = name.as_ref().and_then(|name| Some(name.rsplit_once("::")?.1.to_owned()));
                name.into_iter().chain(last).collect()
            }
        },
    }
}

fn declared(node: Node<'_>, text: &str) -> Vec<String> {
    let lists = ["var_spec_list", "const_spec_list", "type_spec_list"];
    let inner = children(node)
        .into_iter()
        .flat_map(|child| if lists.contains(&child.kind()) { children(child) } else { vec![child] });
    let mut names = Vec::new();
    for child in inner {
        let mut cursor = child.walk();
        names.extend(child.children_by_field_name("name", &mut cursor).map(|name| text_of(name, text).to_owned()));
    }
    names.retain(|name| name != ",");
    names
}

/// The name inside `*f(int a)[3]`.
fn declarator(node: Node<'_>, text: &str) -> String {
    let mut inner = node;
    for _ in 0..DECLARATOR_DEPTH_MAX {
        match inner.child_by_field_name("declarator") {
            Some(next) => inner = next,
            // A reference of C++ has its declarator as a child without a field.
            None if inner.kind() == "reference_declarator" => match inner.named_child(0) {
                Some(next) => inner = next,
                None => break,
            },
            None => break,
        }
    }
    text_of(inner, text).to_owned()
}

/// What definitions inside it are called by: those of `impl Display for A` lie in `A`, and in that `impl`. For a method of Go, the type
/// that it belongs to.
fn outer_names(node: Node<'_>, text: &str) -> Vec<String> {
    if let Some(receiver) = node.child_by_field_name("receiver") {
        let of = receiver.named_child(0).and_then(|of| of.child_by_field_name("type"));
        return of.map(|of| base(text_of(of, text)).to_owned()).into_iter().collect();
    }
    let mut found = names(node, text);
    if node.kind() == "impl_item" {
        let of = |name: &str| node.child_by_field_name(name).map(|of| base(text_of(of, text)).to_owned());
        found.splice(0..0, of("type"));
        found.extend(of("trait"));
    }
    found
}

/// `fmt::Display<T>` is `Display`.
fn base(of: &str) -> &str {
    let bare = of.trim_start_matches(['&', '*']).trim_start_matches("mut ").trim_start_matches("dyn ");
    let bare = bare.split(['<', '[']).next().unwrap_or(bare);
    bare.rsplit("::").next().unwrap_or(bare).trim()
}

/// A definition with what belongs to it: decorators, attributes and the comment above, and what ends its last line.
fn range(node: Node<'_>, text: &str) -> Range<usize> {
    let mut outer = node;
    while let Some(parent) = outer
        .parent()
        .filter(|parent| matches!(parent.kind(), "decorated_definition" | "export_statement" | "template_declaration"))
    {
        outer = parent;
    }
    let mut first = outer;
    while let Some(before) = before(first).filter(|before| belongs_to_next(*before, first, text)) {
        first = before;
    }
    let line_begin = |at: usize| text[..at].rfind('\n').map_or(0, |end| end + 1);
    let is_blank = |part: &str| part.chars().all(char::is_whitespace);
    let start = line_begin(first.start_byte());
    let start = if is_blank(&text[start..first.start_byte()]) { start } else { first.start_byte() };
    let mut end = outer.end_byte();
    if text[end..].starts_with(';') {
        end += 1;
    }
    let rest = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    let is_whole =
        is_blank(&text[end..rest]) && is_blank(&text[line_begin(start)..start]) && !text[..end].ends_with('\n');
    start..if is_whole { rest } else { end }
}

fn before(node: Node<'_>) -> Option<Node<'_>> {
    // Python has a comment before the first statement of a block outside the block.
    node.prev_sibling().or_else(|| node.parent().filter(|parent| parent.kind() == "block")?.prev_sibling())
}

/// A comment or attribute on lines of its own right above.
fn belongs_to_next(before: Node<'_>, next: Node<'_>, text: &str) -> bool {
    let kinds = ["line_comment", "block_comment", "comment", "attribute_item", "decorator"];
    if !kinds.contains(&before.kind()) {
        return false;
    }
    let shown = text_of(before, text);
    // The comment of a whole file.
    if shown.starts_with("//!") || shown.starts_with("/*!") || shown.starts_with("#!") {
        return false;
    }
    let begin = text[..before.start_byte()].rfind('\n').map_or(0, |end| end + 1);
    let is_alone = text[begin..before.start_byte()].trim().is_empty();
    let ends = usize::from(shown.ends_with('\n'));
    let between = text.get(before.end_byte()..next.start_byte()).unwrap_or_default();
    is_alone && between.trim().is_empty() && ends + between.matches('\n').count() <= 1
}
