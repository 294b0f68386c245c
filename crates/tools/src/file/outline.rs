//! The structure of a file with line numbers: the definitions of source code by tree-sitter, the headings of Markdown by
//! pulldown-cmark.

use pulldown_cmark::{Event, HeadingLevel, Options, Tag};
use tree_sitter::{Language, Node, Parser, Tree};

/// Longest file that is parsed: broken code takes a parser many times as long as good code.
const PARSED_BYTES_MAX: usize = 1024 * 1024;
/// Longest signature shown.
const SIGNATURE_CHARS_MAX: usize = 200;

/// A language and which of its nodes are definitions.
pub(super) struct Grammar {
    pub(super) name: &'static str,
    extensions: &'static [&'static str],
    language: fn() -> Language,
    definitions: &'static [&'static str],
}

const GRAMMARS: &[Grammar] = &[
    Grammar {
        name: "Rust",
        extensions: &["rs"],
        language: || tree_sitter_rust::LANGUAGE.into(),
        definitions: &[
            "function_item",
            "function_signature_item",
            "struct_item",
            "enum_item",
            "union_item",
            "trait_item",
            "impl_item",
            "mod_item",
            "const_item",
            "static_item",
            "type_item",
            "macro_definition",
        ],
    },
    Grammar {
        name: "Python",
        extensions: &["py", "pyi"],
        language: || tree_sitter_python::LANGUAGE.into(),
        definitions: &["function_definition", "class_definition"],
    },
    Grammar {
        name: "JavaScript",
        extensions: &["js", "jsx", "mjs", "cjs"],
        language: || tree_sitter_javascript::LANGUAGE.into(),
        definitions: &[
            "function_declaration",
            "generator_function_declaration",
            "class_declaration",
            "method_definition",
            "lexical_declaration",
        ],
    },
    Grammar {
        name: "TypeScript",
        extensions: &["ts", "mts", "cts"],
        language: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        definitions: TYPESCRIPT,
    },
    Grammar {
        name: "TypeScript",
        extensions: &["tsx"],
        language: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        definitions: TYPESCRIPT,
    },
    Grammar {
        name: "Go",
        extensions: &["go"],
        language: || tree_sitter_go::LANGUAGE.into(),
        definitions: &[
            "function_declaration",
            "method_declaration",
            "type_declaration",
            "const_declaration",
            "var_declaration",
        ],
    },
    Grammar {
        name: "Java",
        extensions: &["java"],
        language: || tree_sitter_java::LANGUAGE.into(),
        definitions: &[
            "class_declaration",
            "interface_declaration",
            "enum_declaration",
            "record_declaration",
            "annotation_type_declaration",
            "method_declaration",
            "constructor_declaration",
        ],
    },
    Grammar {
        name: "C",
        extensions: &["c", "h"],
        language: || tree_sitter_c::LANGUAGE.into(),
        definitions: &[
            "function_definition",
            "struct_specifier",
            "enum_specifier",
            "union_specifier",
            "type_definition",
            "preproc_function_def",
        ],
    },
    Grammar {
        name: "C++",
        extensions: &["cpp", "cc", "cxx", "hpp", "hh", "hxx"],
        language: || tree_sitter_cpp::LANGUAGE.into(),
        definitions: &[
            "function_definition",
            "class_specifier",
            "struct_specifier",
            "enum_specifier",
            "union_specifier",
            "namespace_definition",
            "type_definition",
            "template_declaration",
            "alias_declaration",
            "concept_definition",
        ],
    },
];

const TYPESCRIPT: &[&str] = &[
    "function_declaration",
    "generator_function_declaration",
    "class_declaration",
    "abstract_class_declaration",
    "method_definition",
    "method_signature",
    "interface_declaration",
    "type_alias_declaration",
    "enum_declaration",
    "lexical_declaration",
    "internal_module",
];

/// Extensions of Markdown, whose outline is its headings.
const MARKDOWN: &[&str] = &["md", "markdown"];

/// The rules by which a file is looked into.
pub(super) enum Kind {
    Code(&'static Grammar),
    Markdown,
}

impl Kind {
    /// The error says why the file has no outline.
    pub(super) fn of(path: &str, text: &str) -> Result<Self, String> {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
        let grammar = GRAMMARS.iter().find(|grammar| grammar.extensions.contains(&extension.as_str()));
        let kind = match grammar {
            Some(grammar) => Self::Code(grammar),
            None if MARKDOWN.contains(&extension.as_str()) => Self::Markdown,
            None => return Err("no outline for this kind of file".to_owned()),
        };
        if text.len() > PARSED_BYTES_MAX {
            return Err(format!("the file is longer than the {PARSED_BYTES_MAX} bytes that are parsed"));
        }
        Ok(kind)
    }
}

/// One line for each definition or heading, `number: text`, indented as in the file. The error says why there is no outline.
pub(super) fn outline(path: &str, text: &str, bytes_max: usize) -> Result<String, String> {
    let made = Kind::of(path, text).and_then(|kind| {
        let (found, nothing) = match kind {
            Kind::Code(grammar) => (definitions(grammar, text, bytes_max)?, "defines nothing"),
            Kind::Markdown => (heading_lines(text, bytes_max), "has no headings"),
        };
        if found.is_empty() { Err(format!("the file {nothing}")) } else { Ok(found) }
    });
    made.map_err(|why| format!("{why}; its two ends are shown"))
}

fn heading_lines(text: &str, bytes_max: usize) -> String {
    let (mut found, mut row, mut counted) = (String::new(), 0, 0);
    for (_, start) in headings(text) {
        row += text[counted..start].matches('\n').count();
        counted = start;
        let line = text[start..].lines().next().unwrap_or_default();
        if !add(&mut found, row, line, bytes_max) {
            break;
        }
    }
    found
}

/// The level and the first byte of each heading of Markdown.
pub(super) fn headings(text: &str) -> impl Iterator<Item = (HeadingLevel, usize)> {
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let events = pulldown_cmark::Parser::new_ext(text, options).into_offset_iter();
    events.filter_map(|(event, place)| match event {
        Event::Start(Tag::Heading { level, .. }) => Some((level, place.start)),
        _ => None,
    })
}

/// Adds a line to an outline; `false` where it has no room for it.
fn add(found: &mut String, row: usize, line: &str, bytes_max: usize) -> bool {
    let shown: String = line.trim_end().chars().take(SIGNATURE_CHARS_MAX).collect();
    let line = format!("{}: {shown}\n", row + 1);
    let has_room = found.len() + line.len() <= bytes_max;
    found.push_str(if has_room { &line } else { "[... more left out ...]\n" });
    has_room
}

fn definitions(grammar: &Grammar, text: &str, bytes_max: usize) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut found, mut last_row) = (String::new(), None);
    walk(grammar, &parse(grammar, text)?, |node, _| {
        let row = row_of_name(node);
        // A line may have several definitions, such as `typedef struct { … } t;`.
        if last_row.replace(row) == Some(row) {
            return true;
        }
        let line = lines.get(row).copied().unwrap_or_default().trim_end().trim_end_matches('{');
        add(&mut found, row, line, bytes_max)
    });
    Ok(found)
}

pub(super) fn parse(grammar: &Grammar, text: &str) -> Result<Tree, String> {
    let failed = || format!("this could not be parsed as {}", grammar.name);
    let mut parser = Parser::new();
    parser.set_language(&(grammar.language)()).map_err(|_| failed())?;
    parser.parse(text, None).ok_or_else(failed)
}

/// Calls `visit` with each definition, in order, and the number of the definition that it lies in, until it returns `false`.
pub(super) fn walk<'t>(grammar: &Grammar, tree: &'t Tree, mut visit: impl FnMut(Node<'t>, Option<usize>) -> bool) {
    let mut cursor = tree.walk();
    // With a cursor, not by recursion: nesting in a file has no limit, our stack has.
    let mut function_depth = 0;
    let mut visited = 0;
    let mut around: Vec<(Node<'t>, usize)> = Vec::new();
    loop {
        let node = cursor.node();
        let is_shown = grammar.definitions.contains(&node.kind()) && function_depth == 0 && worth_showing(node);
        if is_shown {
            if !visit(node, around.last().map(|(_, number)| *number)) {
                return;
            }
            visited += 1;
        }
        let enters_function = is_function(node);
        if cursor.goto_first_child() {
            function_depth += usize::from(enters_function);
            if is_shown {
                around.push((node, visited - 1));
            }
            continue;
        }
        loop {
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return;
            }
            function_depth -= usize::from(is_function(cursor.node()));
            around.pop_if(|(last, _)| *last == cursor.node());
        }
    }
}

/// What a function defines inside itself is its own affair.
fn is_function(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "function_item"
            | "function_definition"
            | "function_declaration"
            | "generator_function_declaration"
            | "method_definition"
            | "method_declaration"
            | "constructor_declaration"
            | "arrow_function"
            | "function_expression"
            | "lambda"
            | "closure_expression"
    )
}

/// C and C++ often have the type of a function, or the parameters of a template, on the lines before its name.
fn row_of_name(node: Node<'_>) -> usize {
    let mut named = node;
    loop {
        let inner = match named.kind() {
            "template_declaration" | "reference_declarator" => named.named_children(&mut named.walk()).last(),
            "function_definition" | "declaration" | "function_declarator" | "pointer_declarator" => {
                named.child_by_field_name("declarator")
            }
            _ => None,
        };
        match inner {
            Some(inner) => named = inner,
            None => return named.start_position().row,
        }
    }
}

fn worth_showing(node: Node<'_>) -> bool {
    match node.kind() {
        // `struct x *p` only names a structure.
        "struct_specifier" | "enum_specifier" | "union_specifier" | "class_specifier" => {
            node.child_by_field_name("body").is_some()
        }
        // The line of a template is that of the definition in it.
        "function_definition" | "alias_declaration" => {
            node.parent().is_none_or(|parent| parent.kind() != "template_declaration")
        }
        // A constant is worth a line at the top of a module only.
        "lexical_declaration" => {
            node.parent().is_some_and(|parent| matches!(parent.kind(), "program" | "export_statement"))
        }
        _ => true,
    }
}
