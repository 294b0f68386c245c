//! What a shell command runs, by parsing it as bash: for rules and hints. It protects nothing; the fence does.

use tree_sitter::{Node, Parser};

/// Longer commands are not parsed and count as unclear.
const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// What a command may be made of and still run nothing but the simple commands in it.
const PLAIN: &[&str] = &[
    "program",
    "list",
    "pipeline",
    "redirected_statement",
    "subshell",
    "compound_statement",
    "command_name",
    "word",
    "raw_string",
    "string",
    "string_content",
    "concatenation",
    "number",
    "comment",
    "file_descriptor",
    "heredoc_start",
    "heredoc_end",
    "heredoc_body",
    "heredoc_redirect",
    "herestring_redirect",
    // Their own words say whether they are known.
    "variable_name",
    "command_substitution",
    "process_substitution",
    "if_statement",
    "elif_clause",
    "else_clause",
    "while_statement",
    "do_group",
    "negated_command",
];

/// A shell command, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Every simple command in it, wherever it stands: in lists, pipes, loops, functions and substitutions.
    Commands(Vec<SimpleCommand>),
    /// It is not bash, or not such that it can be taken apart.
    Unclear,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words, unquoted, joined by single spaces; variable assignments in front.
    pub text: String,
    /// Whether every word is known as it stands: no variables, no substitutions.
    pub literal: bool,
    /// Its words, unquoted where they are known.
    pub words: Vec<String>,
    /// Its input comes from a pipe, a file or a here-document.
    pub fed: bool,
}

/// Takes a bash command apart.
pub fn parse_command(text: &str) -> Parsed {
    if text.len() > COMMAND_BYTES_MAX {
        return Parsed::Unclear;
    }
    let mut parser = Parser::new();
    if parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_err() {
        return Parsed::Unclear;
    }
    let Some(tree) = parser.parse(text, None) else { return Parsed::Unclear };
    if tree.root_node().has_error() {
        return Parsed::Unclear;
    }
    let mut commands = Vec::new();
    // Depth first with a cursor: a command may be nested deeper than our stack.
    let mut cursor = tree.walk();
    loop {
        commands.extend(simple_command(cursor.node(), text));
        if cursor.goto_first_child() || cursor.goto_next_sibling() {
            continue;
        }
        loop {
            if !cursor.goto_parent() {
                return Parsed::Commands(commands);
            }
            if cursor.goto_next_sibling() {
                break;
            }
        }
    }
}

fn simple_command(node: Node<'_>, text: &str) -> Option<SimpleCommand> {
    let words: Vec<Node<'_>> = match node.kind() {
        "command" | "declaration_command" | "unset_command" => {
            children(node).filter(|child| !is_redirect(*child)).collect()
        }
        // `[[ … ]]` and `(( … ))` run nothing but what is substituted in them, which is visited by itself.
        "test_command" => return Some(SimpleCommand::new(vec!["[[".to_owned()], true, false)),
        // An assignment alone changes what later commands mean.
        "variable_assignment" if !is_prefix(node) => vec![node],
        "function_definition" => {
            let name = node.child_by_field_name("name").map_or("", |name| source(name, text));
            return Some(SimpleCommand::new(vec!["function".to_owned(), name.to_owned()], false, false));
        }
        "file_redirect" => return redirect(node, text),
        // Whatever else there is in the language may run something, or change what a name means.
        kind if node.is_named() && !PLAIN.contains(&kind) => {
            return Some(SimpleCommand::new(vec![source(node, text).to_owned()], false, false));
        }
        _ => return None,
    };
    let mut literal = true;
    let words: Vec<String> = words
        .into_iter()
        .map(|word| {
            value(word, text).unwrap_or_else(|| {
                literal = false;
                source(word, text).to_owned()
            })
        })
        .collect();
    // A first word with a blank in it is another program than its words would be.
    let literal = literal && !words.first().is_some_and(|first| first.contains(char::is_whitespace));
    Some(SimpleCommand::new(words, literal, is_fed(node)))
}

impl SimpleCommand {
    fn new(words: Vec<String>, literal: bool, fed: bool) -> Self {
        Self { text: words.join(" "), literal, words, fed }
    }
}

fn is_fed(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    match parent.kind() {
        "pipeline" => node.prev_sibling().is_some() || is_fed(parent),
        "redirected_statement" => {
            let takes_input = |child: Node<'_>| match child.kind() {
                "file_redirect" => children(child).any(|part| part.kind() == "<"),
                kind => matches!(kind, "heredoc_redirect" | "herestring_redirect"),
            };
            children(parent).any(takes_input) || is_fed(parent)
        }
        // A group, a loop, a subshell: what feeds it feeds what is in it.
        _ => is_fed(parent),
    }
}

/// A redirection into a file is an act of its own; one to `/dev/null` or another stream is not.
fn redirect(node: Node<'_>, text: &str) -> Option<SimpleCommand> {
    let operator = children(node).find(|child| !child.is_named()).map_or("", |child| source(child, text));
    let target = node.child_by_field_name("destination").map_or("", |target| source(target, text));
    // `>& name` writes a file of that name; only a number, or `-`, is a stream.
    let stream = target == "-" || (!target.is_empty() && target.bytes().all(|byte| byte.is_ascii_digit()));
    let harmless = match operator {
        ">&" | "<&" => stream,
        _ => operator.starts_with('<') || target == "/dev/null",
    };
    (!harmless || operator == "<>").then(|| SimpleCommand::new(vec![">".to_owned(), target.to_owned()], true, false))
}

/// The text a word stands for, if it is known.
fn value(word: Node<'_>, text: &str) -> Option<String> {
    let raw = source(word, text);
    match word.kind() {
        "command_name" => value(word.child(0)?, text),
        "word" | "number" | "variable_name" => Some(unescape(raw)),
        "raw_string" => Some(raw.strip_prefix('\'')?.strip_suffix('\'')?.to_owned()),
        "string" => {
            let plain = children(word).all(|part| !part.is_named() || part.kind() == "string_content");
            // A backslash in quotes means itself before most letters: such a text is not guessed at.
            let plain = plain && !raw.contains('\\');
            plain.then(|| raw.strip_prefix('"')?.strip_suffix('"').map(str::to_owned)).flatten()
        }
        "concatenation" => children(word).map(|part| value(part, text)).collect(),
        // The keyword of a declaration: `export`, `declare`, …
        kind if !word.is_named() => Some(kind.to_owned()),
        _ => None,
    }
}

fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut escaped = false;
    for c in raw.chars() {
        if c == '\\' && !escaped {
            escaped = true;
            continue;
        }
        escaped = false;
        text.push(c);
    }
    text
}

fn is_redirect(node: Node<'_>) -> bool {
    matches!(node.kind(), "file_redirect" | "heredoc_redirect" | "herestring_redirect")
}

fn is_prefix(node: Node<'_>) -> bool {
    node.parent().is_some_and(|parent| matches!(parent.kind(), "command" | "declaration_command"))
}

fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |n| node.child(n))
}

fn source<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or_default()
}
