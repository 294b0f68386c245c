//! Packages that are broken in one way each, and packages that only look so: what is said of each, and where.

use serde_json::{Value, json};
use toolhost_builder::{Files, Severity, seal};

use crate::small::{edit, files, findings};

const GRAPH: &str = "workflow.graph.json";
const BMAD: &str = "bmad.json";
const AGENTS: &str = "agents.json";
const FLOW: &str = "workflow.md";
const BEGIN: &str = "steps/begin.md";
const WORK: &str = "steps/work.md";
const CHOOSE: &str = "steps/choose.md";
const END: &str = "steps/end.md";

/// One change of the small package.
enum Do {
    /// Puts a value at a JSON pointer; one that ends in `/-` is put behind the last of a list.
    Set(&'static str, &'static str, Value),
    /// Takes out what is at a JSON pointer.
    Unset(&'static str, &'static str),
    /// Puts a text in the place of another one that stands there.
    Swap(&'static str, &'static str, &'static str),
    /// Puts a file there.
    File(&'static str, &'static [u8]),
    /// Takes a file away.
    Gone(&'static str),
    /// Makes `integrity` say what is true.
    Seal,
}

use Do::{File, Gone, Seal, Set, Swap, Unset};

struct Case(&'static str, Vec<Do>, &'static [&'static str]);

fn change(files: &mut Files, one: Do) {
    match one {
        Set(path, pointer, wanted) => edit(files, path, |value| {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            match value.pointer_mut(parent).unwrap() {
                Value::Array(items) if name == "-" => items.push(wanted),
                Value::Array(items) => items[name.parse::<usize>().unwrap()] = wanted,
                place => drop(place.as_object_mut().unwrap().insert(name.to_owned(), wanted)),
            }
        }),
        Unset(path, pointer) => edit(files, path, |value| {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            match value.pointer_mut(parent).unwrap() {
                Value::Array(items) => drop(items.remove(name.parse().unwrap())),
                place => drop(place.as_object_mut().unwrap().remove(name).unwrap()),
            }
        }),
        Swap(path, from, to) => crate::small::replace(files, path, from, to),
        File(path, bytes) => drop(files.insert(path.to_owned(), bytes.to_vec())),
        Gone(path) => drop(files.remove(path).unwrap()),
        Seal => seal(files),
    }
}

fn told(case: Vec<Do>) -> Vec<String> {
    let mut files = files();
    for one in case {
        change(&mut files, one);
    }
    let found = findings(files);
    let line = |finding: &toolhost_builder::Finding| {
        assert!(!finding.hint.is_empty() && !finding.message.is_empty(), "{finding:?}");
        assert!(finding.code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'), "{finding:?}");
        let kind = if finding.severity == Severity::Error { "error" } else { "warning" };
        let place = match (finding.line, finding.column) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", finding.file),
            _ => finding.file.clone(),
        };
        format!("{kind} {} {place}", finding.code)
    };
    found.iter().map(line).collect()
}

#[test]
fn each_broken_package_has_the_findings_of_its_cause_and_no_others() {
    let cases = cases();
    assert!(cases.len() >= 150, "{}", cases.len());
    let mut wrong = Vec::new();
    for Case(says, changes, expected) in cases {
        let told = told(changes);
        if told != expected {
            wrong.push(format!("{says}\n  expected {expected:?}\n  told     {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

fn node(id: &str, kind: &str) -> Value {
    json!({ "id": id, "type": kind, "file": format!("steps/{id}.md") })
}

fn edge(from: &str, to: &str) -> Value {
    json!({ "from": from, "to": to, "label": "on" })
}

const LOST_FILE: &[u8] =
    b"---\nschemaVersion: \"1.1\"\nnodeId: lost\ntype: step\n---\n## Goal\nDo it.\n## Instructions\nDo it.\n\
    ## Completion (Document-as-State)\n";
const FAR_FILE: &[u8] =
    b"---\nschemaVersion: \"1.1\"\nnodeId: far\ntype: step\n---\n## Goal\nDo it.\n## Instructions\nDo it.\n\
    ## Completion (Document-as-State)\n";
const LOST_DECISION: &[u8] =
    b"---\nschemaVersion: \"1.1\"\nnodeId: lost\ntype: decision\n---\n## Goal\nDo it.\n## Instructions\nDo it.\n";
const END_FILE: &[u8] =
    b"---\nschemaVersion: \"1.1\"\nnodeId: stop\ntype: end\n---\n## Goal\nDo it.\n## Instructions\nDo it.\n";

/// A condition on the way back.
fn when(rule: Value) -> Vec<Do> {
    vec![Set(GRAPH, "/edges/3/conditionExpr", rule)]
}

#[rustfmt::skip]
#[expect(clippy::too_many_lines, reason = "a table: one line per mistake")]
fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let mut case = |says, changes, expected| all.push(Case(says, changes, expected));

    // Nothing is wrong with these.
    case("as it is", vec![], &[]);
    case("a picture", vec![File("assets/logo.png", b"\x89PNG\r\n\x1a\n\0\xff")], &[]);
    case("a table", vec![File("assets/prices.csv", b"a;b\n1;2\n")], &[]);
    case("a drawing", vec![File("assets/flow.svg", b"<svg/>")], &[]);
    case("words of a graph about an asset", vec![Set(GRAPH, "/edges/3/conditionText", json!("see assets/guide.md"))], &[]);
    case("words of a graph about no asset", vec![Set(GRAPH, "/edges/3/conditionText", json!("see assets/none.md"))], &["warning ASSET_NOT_FOUND workflow.graph.json:55:7"]);
    case("an asset without an ending", vec![File("assets/LICENSE", b"free")], &[]);
    case("an asset with an umlaut", vec![File("assets/Größe.md", b"# x\n")], &[]);
    case("an asset with spaces", vec![File("assets/house style (2).md", b"# x\n")], &[]);
    case("an asset with spaces that is mentioned", vec![File("assets/a b.md", b"# x\n"), Swap(WORK, "See assets/guide.md", "See `assets/a b.md`")], &[]);
    case("an asset with an umlaut that is mentioned", vec![File("assets/über.md", b"# x\n"), Swap(WORK, "See assets/guide.md", "See assets/über.md")], &[]);
    case("the repository that it was kept in", vec![File(".git/config", b"[core]\n"), File("assets/.GIT/hooks/x.md", b"#!/bin/sh\n"), File("steps/.git", b"gitdir: x\n")], &[]);
    case("what a Mac leaves behind", vec![File("assets/.DS_Store", b"\0\0\0\x01"), File("__MACOSX/._bmad.json", b"\0"), File("steps/._work.md", b"\0")], &[]);
    case("what Windows leaves behind", vec![File("Thumbs.db", b"\xff"), File("assets/desktop.ini", b"[x]")], &[]);
    case("a README, a licence and a change log", vec![File("README.md", b""), File("LICENSE", b""), File("CHANGELOG.md", b"")], &[]);
    case("a byte order mark", vec![File(WORK, b"\xef\xbb\xbf---\nschemaVersion: \"1.1\"\nnodeId: work\ntype: step\n---\n## Goal\nDo it.\n## Instructions\nDo it.\n## Completion (Document-as-State)\n")], &[]);
    case("lines that end as on Windows", vec![Swap(WORK, "\n", "\r\n")], &[]);
    case("anchors in the front matter", vec![Swap(WORK, "inputs: [text]\n", "inputs: &in [text]\nmine: *in\n")], &[]);
    case("a field of one's own in a step", vec![Swap(WORK, "inputs: [text]\n", "inputs: [text]\nowner: me\n")], &[]);
    case("a version of three parts", vec![Set(BMAD, "/schemaVersion", json!("1.1.7"))], &[]);
    case("a rule that compares", when(json!({ "==": [{ "var": "result" }, "bad"] })), &[]);
    case("a rule with parts of a variable", when(json!({ ">": [{ "var": "result.score" }, 3] })), &[]);
    case("a rule with a default", when(json!({ "<": [{ "var": ["result", 0] }, 3] })), &[]);
    case("a rule of several", when(json!({ "and": [{ "!": { "var": "result" } }, { "in": ["a", { "var": "topic" }] }] })), &[]);
    case("a rule about each item", when(json!({ "some": [{ "var": "result" }, { ">": [{ "var": "size" }, 2] }] })), &[]);
    case("a rule that adds up", when(json!({ ">": [{ "reduce": [{ "var": "result" }, { "+": [{ "var": "current" }, { "var": "accumulator" }] }, 0] }, 2] })), &[]);
    case("a rule that asks what is missing", when(json!({ "missing": ["result", "text"] })), &[]);
    case("a rule that is always true", when(json!(true)), &[]);
    case("what the workflow itself says may be read", vec![Swap(WORK, "inputs: [text]", "inputs: [text, topic, extra, currentNodeId]")], &[]);
    case("a file may be an input", vec![Swap(WORK, "inputs: [text]", "inputs: [text, assets/guide.md]")], &[]);
    case("JSON and YAML", vec![File("assets/a.json", b"{\"a\": [1]}"), File("assets/b.yaml", b"a: [1]\n"), File("assets/c.yml", b"--- !mine\na: 1\n---\nb: 2\n")], &[]);
    case("JSON with a byte order mark", vec![File("assets/a.json", b"\xef\xbb\xbf{}")], &[]);
    case("a sum that is true", vec![Set(BMAD, "/integrity", json!({ "sha256": "0".repeat(64) })), Seal], &[]);
    case("a menu that names the workflow", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "workflow": "main" }]))], &[]);
    case("a menu that names the workflow's file", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "workflow": "workflow.md" }]))], &[]);
    case("a menu that names something elsewhere", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "workflow": "{project-root}/bmad/x/workflow.yaml" }]))], &[]);
    case("a menu that names a prompt", vec![Set(AGENTS, "/agents/0/prompts", json!([{ "id": "p", "content": "x" }])), Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "action": "#p" }]))], &[]);
    case("a menu with an action in words", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "action": "say hello" }]))], &[]);

    // The graph.
    case("no end", vec![Set(GRAPH, "/nodes/3/type", json!("step")), Swap(END, "type: end", "type: step")], &["error END_MISSING workflow.graph.json:4:3"]);
    case("an end with an edge out", vec![Set(GRAPH, "/edges/-", edge("end", "work"))], &["error END_WITH_EDGE workflow.graph.json:57:7"]);
    case("an end with an edge out to another end", vec![Set(GRAPH, "/nodes/-", node("stop", "end")), Set(GRAPH, "/edges/-", edge("end", "stop")), File("steps/stop.md", END_FILE)], &["error END_WITH_EDGE workflow.graph.json:62:7"]);
    case("a step that leads nowhere", vec![Set(GRAPH, "/nodes/-", node("lost", "step")), Set(GRAPH, "/edges/-", edge("choose", "lost")), File("steps/lost.md", LOST_FILE)], &["error DEAD_END workflow.graph.json:29:5"]);
    case("a decision that leads nowhere", vec![Unset(GRAPH, "/edges/3"), Unset(GRAPH, "/edges/2")], &["error DEAD_END workflow.graph.json:19:5"]);
    case("an island", vec![Set(GRAPH, "/nodes/-", node("lost", "step")), Set(GRAPH, "/edges/-", edge("lost", "end")), File("steps/lost.md", LOST_FILE)], &["warning NODE_UNREACHABLE workflow.graph.json:29:5"]);
    case("an island of two", vec![Set(GRAPH, "/nodes/-", node("lost", "step")), Set(GRAPH, "/nodes/-", node("far", "step")), Set(GRAPH, "/edges/-", edge("lost", "far")), Set(GRAPH, "/edges/-", edge("far", "end")), File("steps/lost.md", LOST_FILE), File("steps/far.md", FAR_FILE)], &["warning NODE_UNREACHABLE workflow.graph.json:29:5"]);
    case("two islands", vec![Set(GRAPH, "/nodes/-", node("lost", "step")), Set(GRAPH, "/nodes/-", node("far", "step")), Set(GRAPH, "/edges/-", edge("lost", "end")), Set(GRAPH, "/edges/-", edge("far", "end")), File("steps/lost.md", LOST_FILE), File("steps/far.md", FAR_FILE)], &["warning NODE_UNREACHABLE workflow.graph.json:29:5", "warning NODE_UNREACHABLE workflow.graph.json:34:5"]);
    case("an island that goes round", vec![Set(GRAPH, "/nodes/-", node("lost", "decision")), Set(GRAPH, "/edges/-", json!({ "from": "lost", "to": "lost", "label": "x", "isDefault": true })), Set(GRAPH, "/edges/-", edge("lost", "end")), File("steps/lost.md", LOST_DECISION)], &["warning NODE_UNREACHABLE workflow.graph.json:29:5"]);
    case("a way back to the entry that leaves one behind", vec![Set(GRAPH, "/edges/2/to", json!("begin"))], &["error CYCLE_MISSING_EXIT workflow.graph.json:5:5"]);
    case("another entry than the one that nothing leads to", vec![Set(GRAPH, "/entryNodeId", json!("work"))], &["error ENTRY_MISMATCH workflow.graph.json:3:3"]);
    case("an entry that is not there", vec![Set(GRAPH, "/entryNodeId", json!("beginn"))], &["error ENTRY_NODE_MISSING workflow.graph.json:3:3"]);
    case("no entry", vec![Unset(GRAPH, "/entryNodeId")], &["error SCHEMA_REQUIRED workflow.graph.json:1:1"]);
    case("an entry that is a number", vec![Set(GRAPH, "/entryNodeId", json!(1))], &["error SCHEMA_TYPE workflow.graph.json:3:3"]);
    case("an edge from nowhere", vec![Set(GRAPH, "/edges/-", edge("nobody", "end"))], &["error EDGE_NODE_MISSING workflow.graph.json:57:7"]);
    case("an edge to nowhere", vec![Set(GRAPH, "/edges/3/to", json!("wrok"))], &["error EDGE_NODE_MISSING workflow.graph.json:53:7"]);
    case("an edge without a label", vec![Unset(GRAPH, "/edges/0/label")], &["error SCHEMA_REQUIRED workflow.graph.json:31:5"]);
    case("an edge without an end", vec![Unset(GRAPH, "/edges/1/to")], &["error SCHEMA_REQUIRED workflow.graph.json:37:5"]);
    case("an edge id twice", vec![Set(GRAPH, "/edges/1/id", json!("e1"))], &["error ID_DUPLICATE workflow.graph.json:38:7"]);
    case("a field that no edge has", vec![Set(GRAPH, "/edges/0/color", json!("red"))], &["error SCHEMA_UNKNOWN_FIELD workflow.graph.json:36:7"]);
    case("no default", vec![Unset(GRAPH, "/edges/2/isDefault")], &["error DEFAULT_EDGE_MISSING workflow.graph.json:19:5"]);
    case("two defaults", vec![Set(GRAPH, "/edges/3/isDefault", json!(true))], &["error DEFAULT_EDGE_DUPLICATE workflow.graph.json:55:7"]);
    case("a default that is a text", vec![Set(GRAPH, "/edges/2/isDefault", json!("true"))], &["error SCHEMA_TYPE workflow.graph.json:48:7"]);
    case("a loop without a decision", vec![Set(GRAPH, "/nodes/2/type", json!("step")), Swap(CHOOSE, "type: decision", "type: step")], &["error CYCLE_MISSING_DECISION workflow.graph.json:14:5"]);
    case("a loop without a way out", vec![Set(GRAPH, "/edges/2/to", json!("work"))], &["error CYCLE_MISSING_EXIT workflow.graph.json:14:5"]);
    case("a node id twice", vec![Set(GRAPH, "/nodes/3/id", json!("work"))], &["error ID_DUPLICATE workflow.graph.json:25:7"]);
    case("a node without an id", vec![Unset(GRAPH, "/nodes/3/id")], &["error SCHEMA_REQUIRED workflow.graph.json:24:5"]);
    case("a node without a type", vec![Unset(GRAPH, "/nodes/1/type")], &["error SCHEMA_REQUIRED workflow.graph.json:14:5"]);
    case("a type that is none", vec![Set(GRAPH, "/nodes/1/type", json!("loop"))], &["error SCHEMA_ENUM workflow.graph.json:16:7"]);
    case("a node without a file", vec![Unset(GRAPH, "/nodes/1/file")], &["error SCHEMA_REQUIRED workflow.graph.json:14:5"]);
    case("a node whose file is not there", vec![Gone(END)], &["error FILE_MISSING workflow.graph.json:27:7"]);
    case("a node whose file has another name", vec![Set(GRAPH, "/nodes/3/file", json!("steps/ende.md"))], &["error FILE_MISSING workflow.graph.json:27:7"]);
    case("two nodes with one file", vec![Set(GRAPH, "/nodes/3/file", json!("steps/choose.md"))], &["error STEP_FILE_SHARED workflow.graph.json:27:7"]);
    case("a file outside the package", vec![Set(GRAPH, "/nodes/3/file", json!("../end.md"))], &["error PATH_UNSAFE workflow.graph.json:27:7"]);
    case("a file at the root of the system", vec![Set(GRAPH, "/nodes/3/file", json!("/end.md"))], &["error PATH_UNSAFE workflow.graph.json:27:7"]);
    case("a step among the assets", vec![Set(GRAPH, "/nodes/3/file", json!("assets/guide.md"))], &["error PATH_TAKEN workflow.graph.json:27:7"]);
    case("a field that no node has", vec![Set(GRAPH, "/nodes/0/color", json!("red"))], &["error SCHEMA_UNKNOWN_FIELD workflow.graph.json:13:7"]);
    case("inputs that are a text", vec![Set(GRAPH, "/nodes/1/inputs", json!("text"))], &["error SCHEMA_TYPE workflow.graph.json:18:7"]);
    case("no nodes", vec![Set(GRAPH, "/nodes", json!([]))], &["error SCHEMA_MIN_ITEMS workflow.graph.json:4:3"]);
    case("no list of nodes", vec![Unset(GRAPH, "/nodes")], &["error SCHEMA_REQUIRED workflow.graph.json:1:1"]);
    case("no list of edges", vec![Unset(GRAPH, "/edges")], &["error SCHEMA_REQUIRED workflow.graph.json:1:1"]);
    case("a graph that is a list", vec![File(GRAPH, b"[]\n")], &["error SCHEMA_TYPE workflow.graph.json:1:1"]);
    case("a graph with a comma too many", vec![Swap(GRAPH, "\"entryNodeId\": \"begin\",", "\"entryNodeId\": \"begin\",,")], &["error JSON_SYNTAX workflow.graph.json:3:26"]);
    case("a graph that ends early", vec![File(GRAPH, b"{\n  \"nodes\": [\n")], &["error JSON_SYNTAX workflow.graph.json:3:1"]);
    case("a graph with a name twice", vec![Swap(GRAPH, "\"entryNodeId\": \"begin\",", "\"entryNodeId\": \"begin\", \"entryNodeId\": \"begin\",")], &["error JSON_DUPLICATE_KEY workflow.graph.json:3:39"]);
    case("a graph with a comment", vec![Swap(GRAPH, "\"entryNodeId\"", "// here\n\"entryNodeId\"")], &["error JSON_SYNTAX workflow.graph.json:3:3"]);
    case("an empty graph", vec![File(GRAPH, b"")], &["error JSON_SYNTAX workflow.graph.json:1:1"]);
    case("a graph in Latin 1", vec![File(GRAPH, b"{\"a\": \"\xe4\"}")], &["error NOT_UTF8 workflow.graph.json:1:8"]);
    case("a graph of another version", vec![Set(GRAPH, "/schemaVersion", json!("2.0"))], &["error SCHEMA_VERSION workflow.graph.json:2:3"]);
    case("a version that is a number", vec![Set(GRAPH, "/schemaVersion", json!(1.1))], &["error SCHEMA_TYPE workflow.graph.json:2:3"]);
    case("no version", vec![Unset(GRAPH, "/schemaVersion")], &["error SCHEMA_REQUIRED workflow.graph.json:1:1"]);

    // Conditions.
    case("a condition that is a number", when(json!(42)), &["error CONDITION_INVALID workflow.graph.json:55:7"]);
    case("a condition that is a text", when(json!("result == 1")), &["error CONDITION_INVALID workflow.graph.json:55:7"]);
    case("a condition that is a list", when(json!([{ "var": "result" }])), &["error CONDITION_INVALID workflow.graph.json:55:7"]);
    case("a condition that is nothing", when(json!(null)), &["error CONDITION_INVALID workflow.graph.json:55:7"]);
    case("a condition without an operator", when(json!({})), &["error CONDITION_INVALID workflow.graph.json:55:7"]);
    case("a condition with two operators", when(json!({ "==": [1, 1], "!=": [1, 2] })), &["error CONDITION_INVALID workflow.graph.json:55:7"]);
    case("an operator that is none", when(json!({ "equals": [{ "var": "result" }, 1] })), &["error CONDITION_INVALID workflow.graph.json:56:9"]);
    case("an operator that is almost one", when(json!({ "reduces": [1, 2, 3] })), &["error CONDITION_INVALID workflow.graph.json:56:9"]);
    case("an operator that is none, deep inside", when(json!({ "and": [true, { "or": [{ "xor": [1, 2] }] }] })), &["error CONDITION_INVALID workflow.graph.json:61:17"]);
    case("an operator with too few arguments", when(json!({ "==": [{ "var": "result" }] })), &["error CONDITION_INVALID workflow.graph.json:56:9"]);
    case("an operator with too many arguments", when(json!({ "in": [1, 2, 3] })), &["error CONDITION_INVALID workflow.graph.json:56:9"]);
    case("an operator with one argument that takes two", when(json!({ ">": 3 })), &["error CONDITION_INVALID workflow.graph.json:56:9"]);
    case("a condition on a variable that nobody sets", when(json!({ "==": [{ "var": "results" }, 1] })), &["error VARIABLE_NEVER_SET workflow.graph.json:58:13"]);
    case("a condition on part of a variable that nobody sets", when(json!({ "var": "verdict.score" })), &["error VARIABLE_NEVER_SET workflow.graph.json:56:9"]);
    case("a condition on a missing variable that nobody sets", when(json!({ "missing": ["result", "verdict"] })), &["error VARIABLE_NEVER_SET workflow.graph.json:58:11"]);
    case("a condition on some missing variables", when(json!({ "missing_some": [1, ["result", "verdict"]] })), &["error VARIABLE_NEVER_SET workflow.graph.json:60:13"]);
    case("a condition with a number for a variable", when(json!({ "var": 3 })), &["error CONDITION_INVALID workflow.graph.json:56:9"]);
    case("a condition with an object for a value", when(json!({ "==": [{ "var": "result" }, { "a": 1, "b": 2 }] })), &["error CONDITION_INVALID workflow.graph.json:60:11"]);
    case("a condition that compares no variable", when(json!({ "==": ["result", "good"] })), &["warning CONDITION_CONSTANT workflow.graph.json:56:9"]);
    case("a rule on the only way out", vec![Set(GRAPH, "/edges/1/conditionExpr", json!({ "==": [{ "var": "result" }, 1] }))], &["warning CONDITION_OF_ONLY_WAY workflow.graph.json:37:5"]);
    case("a way that does not say when it is taken, as others do", vec![Set(GRAPH, "/edges/3/conditionText", json!("it is bad")), Set(GRAPH, "/edges/-", json!({ "id": "e5", "from": "choose", "to": "begin", "label": "anew" }))], &["warning CONDITION_MISSING workflow.graph.json:57:5"]);
    case("no edges", vec![Set(GRAPH, "/edges", json!([]))], &["error EDGES_MISSING workflow.graph.json:30:3"]);
    case("a condition about items, of what nobody sets", when(json!({ "all": [{ "var": "verdicts" }, { "var": "good" }] })), &["error VARIABLE_NEVER_SET workflow.graph.json:58:13"]);

    // Variables.
    case("a variable that nobody sets", vec![Swap(WORK, "inputs: [text]", "inputs: [text, verdict]")], &["error VARIABLE_NEVER_SET steps/work.md:5:16"]);
    case("a variable whose name is misspelt", vec![Swap(WORK, "inputs: [text]", "inputs: [texts]")], &["error VARIABLE_NEVER_SET steps/work.md:5:10"]);
    case("a variable that nobody sets, read by all", vec![Set(GRAPH, "/nodes/0/inputs", json!(["x"])), Swap(BEGIN, "inputs: [topic]\n", ""), Set(GRAPH, "/nodes/1/inputs", json!(["x"])), Swap(WORK, "inputs: [text]\n", ""), Set(GRAPH, "/nodes/2/inputs", json!(["x"])), Set(GRAPH, "/nodes/3/inputs", json!(["x"]))], &["error VARIABLE_NEVER_SET workflow.graph.json:14:9"]);
    case("a variable that nobody sets, read in the graph", vec![Set(GRAPH, "/nodes/3/inputs", json!(["verdict"]))], &["error VARIABLE_NEVER_SET workflow.graph.json:29:9"]);
    case("a variable that is set later", vec![Swap(BEGIN, "inputs: [topic]", "inputs: [topic, later]"), Set(GRAPH, "/nodes/3/outputs", json!(["later"]))], &["error VARIABLE_READ_BEFORE_SET steps/begin.md:6:17"]);
    let later = |rule: Value| [when(rule), vec![Set(GRAPH, "/nodes/3/outputs", json!(["later"]))]].into_iter().flatten().collect();
    case("a condition on what is set later", later(json!({"==": [{"var": "later"}, 1]})), &["error VARIABLE_READ_BEFORE_SET workflow.graph.json:61:13"]);
    case("a condition that says what it is then", later(json!({"==": [{"var": ["later", 0]}, 1]})), &[]);
    case("a condition on whether it is set", later(json!({"missing": ["later"]})), &[]);
    case("a condition on what its own step sets", [when(json!({"==": [{"var": "verdict2"}, 1]})), vec![Set(GRAPH, "/nodes/2/outputs", json!(["verdict2"]))]].into_iter().flatten().collect(), &[]);
    case("a variable that the same step sets", vec![Swap(BEGIN, "inputs: [topic]", "inputs: [topic, text]")], &["error VARIABLE_READ_BEFORE_SET steps/begin.md:6:17"]);
    case("a variable that is set on one of two ways", vec![Set(GRAPH, "/nodes/-", node("lost", "step")), Set(GRAPH, "/edges/-", edge("choose", "lost")), Set(GRAPH, "/edges/-", edge("lost", "end")), Set(GRAPH, "/nodes/4/outputs", json!(["more"])), Set(GRAPH, "/nodes/3/inputs", json!(["more"])), File("steps/lost.md", LOST_FILE)], &["warning VARIABLE_MAYBE_UNSET workflow.graph.json:29:9"]);
    case("a variable that a loop sets", vec![Set(GRAPH, "/nodes/2/outputs", json!(["remarks"])), Swap(WORK, "inputs: [text]", "inputs: [text, remarks]")], &["warning VARIABLE_MAYBE_UNSET steps/work.md:5:16"]);
    case("a variable that was given, no more", vec![Swap(FLOW, "variables:\n  topic: tea\n", "")], &["error VARIABLE_NEVER_SET steps/begin.md:6:10"]);
    case("a variable that was set, no more", vec![Unset(GRAPH, "/nodes/0/outputs")], &["error VARIABLE_NEVER_SET steps/work.md:5:10"]);
    case("a step that cannot be read says nothing of variables", vec![Set(GRAPH, "/nodes/3/inputs", json!(["verdict"])), Swap(WORK, "type: step", "type: [step")], &["error YAML_SYNTAX steps/work.md:5:7"]);

    // Steps and the graph.
    case("a title that differs", vec![Set(GRAPH, "/nodes/1/title", json!("Work")), Swap(WORK, "type: step", "type: step\ntitle: Play")], &["warning STEP_TITLE_MISMATCH steps/work.md:5:1"]);
    case("inputs that differ", vec![Set(GRAPH, "/nodes/1/inputs", json!(["topic"]))], &["warning STEP_INPUTS_MISMATCH steps/work.md:5:1"]);
    case("inputs in another order are the same", vec![Set(GRAPH, "/nodes/1/inputs", json!(["topic", "text"])), Swap(WORK, "inputs: [text]", "inputs: [text, topic]")], &[]);
    case("outputs that differ", vec![Set(GRAPH, "/nodes/1/outputs", json!(["a"])), Swap(WORK, "type: step", "type: step\noutputs: [b]")], &["warning STEP_OUTPUTS_MISMATCH steps/work.md:5:1"]);
    case("an agent that differs", vec![Set(AGENTS, "/agents/-", json!({ "id": "bob", "metadata": { "name": "B", "title": "B", "icon": "B" }, "persona": { "role": "x", "identity": "x", "communication_style": "x", "principles": "x" } })), Swap(BEGIN, "agentId: ada", "agentId: bob")], &["warning STEP_AGENT_MISMATCH steps/begin.md:5:1"]);
    case("a default that differs", vec![Swap(CHOOSE, "type: decision", "type: decision\ntransitions:\n  - to: end\n    label: good\n  - to: work\n    label: again")], &["warning TRANSITION_DEFAULT_MISMATCH steps/choose.md:6:5"]);
    case("a default that is another one", vec![Swap(CHOOSE, "type: decision", "type: decision\ntransitions:\n  - to: end\n    label: good\n  - to: work\n    label: again\n    isDefault: true")], &["warning TRANSITION_DEFAULT_MISMATCH steps/choose.md:6:5"]);
    case("a transition that is no edge", vec![Swap(BEGIN, "to: work", "to: end")], &["warning TRANSITION_WITHOUT_EDGE steps/begin.md:8:5"]);
    case("a label that differs", vec![Swap(BEGIN, "label: go", "label: leave")], &["warning TRANSITION_WORDS_DIFFER steps/begin.md:9:5"]);
    case("a transition twice", vec![Swap(BEGIN, "label: go", "label: go\n  - to: work\n    label: go")], &["warning TRANSITION_DUPLICATE steps/begin.md:10:5"]);
    case("two ways to one node, and one transition", vec![Swap(BEGIN, "label: go", "label: go\n    isDefault: true"), Set(GRAPH, "/edges/0/isDefault", json!(true)), Set(GRAPH, "/edges/-", json!({"from": "begin", "to": "work", "label": "run"}))], &["warning EDGE_WITHOUT_TRANSITION steps/begin.md:7:1"]);
    case("a transition too few", vec![Swap(CHOOSE, "type: decision", "type: decision\ntransitions:\n  - to: end\n    label: good\n    isDefault: true")], &["warning EDGE_WITHOUT_TRANSITION steps/choose.md:5:1"]);
    let listed = |lost: &'static str| vec![
        Set(GRAPH, "/nodes/-", node("lost", "step")),
        Set(GRAPH, "/edges/2", json!({ "id": "e3", "from": "choose", "to": "lost", "label": "good", "isDefault": true })),
        Set(GRAPH, "/edges/-", json!({ "id": "e5", "from": "lost", "to": "end", "label": "last" })),
        Swap(WORK, "type: step", "type: step\ntransitions:\n  - to: choose\n    label: done"),
        Swap(CHOOSE, "type: decision", "type: decision\ntransitions:\n  - to: lost\n    label: good\n    isDefault: true\n  - to: work\n    label: again"),
        File("steps/lost.md", LOST_FILE),
        Swap("steps/lost.md", "type: step\n", lost),
    ];
    case("steps that all list their transitions", listed("type: step\ntransitions:\n  - to: end\n    label: last\n"), &[]);
    case("a step without transitions, where most have them", listed("type: step\n"), &["warning TRANSITIONS_MISSING steps/lost.md:1:1"]);
    case("a step with misspelt transitions, where most have them", listed("type: step\ntransition:\n  - to: end\n    label: last\n"), &["warning FIELD_MISSPELT steps/lost.md:5:1"]);
    case("a transition without a label", vec![Swap(BEGIN, "    label: go\n", "")], &["error SCHEMA_REQUIRED steps/begin.md:8:5"]);
    case("a transition with a condition", vec![Swap(BEGIN, "    label: go\n", "    label: go\n    conditionExpr: true\n")], &["error SCHEMA_UNKNOWN_FIELD steps/begin.md:10:5"]);
    case("another node's step", vec![Swap(WORK, "nodeId: work", "nodeId: play")], &["error STEP_NODE_MISMATCH steps/work.md:3:1"]);
    case("another type than the node's", vec![Swap(WORK, "type: step", "type: merge")], &["error STEP_TYPE_MISMATCH steps/work.md:4:1"]);
    case("a step with a type that is none", vec![Swap(WORK, "type: step", "type: walk")], &["error SCHEMA_ENUM steps/work.md:4:1"]);
    case("a step without a node id", vec![Swap(WORK, "nodeId: work\n", "")], &["error SCHEMA_REQUIRED steps/work.md:1:1"]);
    case("an agent that is not there", vec![Set(GRAPH, "/nodes/1/agentId", json!("adda"))], &["error AGENT_NOT_FOUND workflow.graph.json:18:7"]);
    case("an agent that is not there, in the step", vec![Swap(WORK, "type: step", "type: step\nagentId: bob")], &["error AGENT_NOT_FOUND steps/work.md:5:1"]);
    case("an agent that is not there, in both", vec![Set(GRAPH, "/nodes/0/agentId", json!("bob")), Swap(BEGIN, "agentId: ada", "agentId: bob")], &["error AGENT_NOT_FOUND workflow.graph.json:9:7"]);
    case("a subworkflow that is its own", vec![Set(GRAPH, "/nodes/1/type", json!("subworkflow")), Swap(WORK, "type: step", "type: subworkflow\nworkflowId: main")], &["warning SUBWORKFLOW_ITSELF steps/work.md:5:1"]);
    case("a subworkflow without a name", vec![Set(GRAPH, "/nodes/1/type", json!("subworkflow")), Swap(WORK, "type: step", "type: subworkflow")], &["error SUBWORKFLOW_UNNAMED steps/work.md:1:1"]);
    case("a subworkflow that is not there", vec![Set(GRAPH, "/nodes/1/type", json!("subworkflow")), Swap(WORK, "type: step", "type: subworkflow\nworkflowId: mian")], &["error WORKFLOW_NOT_FOUND steps/work.md:5:1"]);
    case("no goal", vec![Swap(WORK, "## Goal", "## Aim")], &["error SECTION_MISSING steps/work.md:8:1"]);
    case("no instructions", vec![Swap(WORK, "## Instructions", "### Instructions")], &["error SECTION_MISSING steps/work.md:13:1"]);
    case("a goal in a block of code", vec![Swap(WORK, "## Goal", "```\n## Goal\n```")], &["error SECTION_MISSING steps/work.md:8:1"]);
    case("a goal without a text", vec![Swap(WORK, "Say it.\n\n", "")], &["warning SECTION_EMPTY steps/work.md:9:1"]);
    case("a goal with a heading and a text below it", vec![Swap(WORK, "Say it.\n\n", "### In short\n\nSay it.\n\n")], &[]);
    case("a section twice", vec![Swap(WORK, "## Instructions", "## Goal\n\n## Instructions")], &["warning SECTION_DUPLICATE steps/work.md:13:1"]);
    case("no completion", vec![Swap(WORK, "## Completion (Document-as-State)", "## Done")], &["warning SECTION_RECOMMENDED steps/work.md:8:1"]);
    case("front matter with a line too early", vec![Swap(WORK, "inputs: [text]\n", "---\ninputs: [text]\n")], &["warning FRONT_MATTER_CUT steps/work.md:8:1"]);
    case("a field that is misspelt", vec![Swap(BEGIN, "inputs: [topic]", "input: [topic]")], &["warning FIELD_MISSPELT steps/begin.md:6:1"]);
    case("a field that is spelt in another case", vec![Swap(BEGIN, "agentId: ada", "agentID: ada")], &["warning FIELD_MISSPELT steps/begin.md:5:1"]);
    case("a field of one's own", vec![Swap(BEGIN, "inputs: [topic]", "inputs: [topic]\nowner: me")], &[]);
    case("no front matter", vec![File(WORK, b"## Goal\n\n## Instructions\n")], &["error FRONT_MATTER_MISSING steps/work.md:1:1"]);
    case("front matter without an end", vec![File(WORK, b"---\nnodeId: work\n## Goal\n")], &["error FRONT_MATTER_UNCLOSED steps/work.md:1:1"]);
    case("front matter that is a list", vec![File(WORK, b"---\n- a\n---\n## Goal\n")], &["error FRONT_MATTER_NOT_OBJECT steps/work.md:1:1"]);
    case("front matter with a bracket too few", vec![Swap(WORK, "inputs: [text]", "inputs: [text")], &["error YAML_SYNTAX steps/work.md:6:14"]);
    case("front matter with a tab", vec![Swap(WORK, "inputs: [text]", "mine:\n\ta: 1")], &["error YAML_SYNTAX steps/work.md:6:2"]);
    case("front matter with a name twice", vec![Swap(WORK, "type: step", "type: step\ntype: step")], &["error YAML_DUPLICATE_KEY steps/work.md:5:1"]);
    case("front matter with a tag", vec![Swap(WORK, "type: step", "type: !mine step")], &["error YAML_TAG steps/work.md:4:7"]);
    case("front matter with an alias of nothing", vec![Swap(WORK, "type: step", "type: *kind")], &["error YAML_SYNTAX steps/work.md:4:7"]);
    case("front matter with an infinite number", vec![Swap(WORK, "type: step", "type: step\nmine: .inf")], &["error YAML_NUMBER steps/work.md:5:7"]);
    case("a step of another version", vec![Swap(WORK, "schemaVersion: \"1.1\"", "schemaVersion: \"1.2\"")], &["error SCHEMA_VERSION steps/work.md:2:1"]);
    case("a step whose version is a number", vec![Swap(WORK, "schemaVersion: \"1.1\"", "schemaVersion: 1.1")], &["error SCHEMA_TYPE steps/work.md:2:1"]);
    case("a step with a NUL", vec![Swap(WORK, "Say it.", "Say\0it.")], &["error NUL_CHARACTER steps/work.md:11:4"]);
    case("a step in Latin 1", vec![File(WORK, b"---\nschemaVersion: \"1.1\"\nnodeId: work\ntype: step\n---\n\n## Goal\n\nGr\xfc\xdfe\n")], &["error NOT_UTF8 steps/work.md:9:3"]);
    case("a step that no node names", vec![File("steps/more.md", LOST_FILE)], &["warning ORPHAN_STEP_FILE steps/more.md:1:1"]);
    case("an empty step", vec![File(WORK, b"")], &["error FRONT_MATTER_MISSING steps/work.md:1:1"]);

    // The workflow's document.
    case("no document", vec![Gone(FLOW)], &["error FILE_MISSING bmad.json:6:5"]);
    case("a document without front matter", vec![File(FLOW, b"# Small\n")], &["error FRONT_MATTER_MISSING workflow.md:1:1"]);
    case("no current node", vec![Swap(FLOW, "currentNodeId: work\n", "")], &["error SCHEMA_REQUIRED workflow.md:1:1"]);
    case("a current node that is not there", vec![Swap(FLOW, "currentNodeId: work", "currentNodeId: wrok")], &["warning STATE_NODE_MISSING workflow.md:5:1"]);
    case("a finished node that is not there", vec![Swap(FLOW, "stepsCompleted: [begin]", "stepsCompleted: [begin, start]")], &["warning STATE_NODE_MISSING workflow.md:4:25"]);
    case("variables that are a list", vec![Swap(FLOW, "variables:\n  topic: tea\n", "variables: [topic]\n")], &["error SCHEMA_TYPE workflow.md:6:1"]);
    case("a document with a NUL", vec![Swap(FLOW, "# Small", "# Sm\0ll")], &["error NUL_CHARACTER workflow.md:11:5"]);
    case("a profile that is none", vec![Swap(FLOW, "extra: kept", "domain_profile: law")], &["warning DOMAIN_PROFILE_DAMAGED workflow.md:8:1"]);

    // Agents.
    case("no agents", vec![Set(AGENTS, "/agents", json!([]))], &["error SCHEMA_MIN_ITEMS agents.json:3:3"]);
    case("the agents are not there", vec![Gone(AGENTS)], &["error FILE_MISSING bmad.json:8:5"]);
    case("the agents are elsewhere", vec![Set(BMAD, "/entry/agents", json!("people.json"))], &["error FILE_MISSING bmad.json:8:5"]);
    case("the agents are no JSON", vec![File(AGENTS, b"{\"agents\": [}")], &["error JSON_SYNTAX agents.json:1:13"]);
    case("an agent twice", vec![Set(AGENTS, "/agents/-", json!({ "id": "ada", "metadata": { "name": "B", "title": "B", "icon": "B" }, "persona": { "role": "x", "identity": "x", "communication_style": "x", "principles": "x" } }))], &["error ID_DUPLICATE agents.json:22:7"]);
    case("an agent without a persona", vec![Unset(AGENTS, "/agents/0/persona")], &["error SCHEMA_REQUIRED agents.json:4:5"]);
    case("principles that are a number", vec![Set(AGENTS, "/agents/0/persona/principles", json!(1))], &["error SCHEMA_VALUE agents.json:15:9"]);
    case("a field that no agent has", vec![Set(AGENTS, "/agents/0/model", json!("x"))], &["error SCHEMA_UNKNOWN_FIELD agents.json:20:7"]);
    case("a menu that names no workflow", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "workflow": "nosuch" }]))], &["error WORKFLOW_NOT_FOUND agents.json:23:11"]);
    case("a menu that checks no workflow", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "validate-workflow": "mains" }]))], &["error WORKFLOW_NOT_FOUND agents.json:23:11"]);
    case("a menu that names no file", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "workflow": "workflows/x/workflow.md" }]))], &["error WORKFLOW_NOT_FOUND agents.json:23:11"]);
    case("a menu that names no prompt", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "action": "#nosuch" }]))], &["error PROMPT_NOT_FOUND agents.json:23:11"]);
    case("a trigger twice", vec![Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "trigger": "go" }, { "description": "Stay", "trigger": "go" }]))], &["warning TRIGGER_DUPLICATE agents.json:27:11"]);
    case("a choice without a description", vec![Set(AGENTS, "/agents/0/menu", json!([{ "workflow": "main" }]))], &["error SCHEMA_REQUIRED agents.json:21:9"]);
    case("an agent that names no asset", vec![Set(AGENTS, "/agents/0/systemPrompt", json!("Read assets/guides.md."))], &["error ASSET_NOT_FOUND agents.json:19:7"]);

    // Assets.
    case("an asset that is not there", vec![Swap(WORK, "assets/guide.md", "assets/giude.md")], &["error ASSET_NOT_FOUND steps/work.md:15:8"]);
    case("a menu that names an asset that is not there as its workflow", vec![Set(AGENTS, "/agents/0/menu", json!([{ "trigger": "go", "description": "x", "workflow": "assets/none.md" }]))], &["error ASSET_NOT_FOUND agents.json:24:11"]);
    case("a link to an asset without its ending", vec![Swap(WORK, "See assets/guide.md", "See [it](assets/guide)")], &["warning LINK_BROKEN steps/work.md:15:8"]);
    case("an asset with spaces that is not there", vec![Swap(WORK, "See assets/guide.md", "See `assets/no such.md`")], &["error ASSET_NOT_FOUND steps/work.md:15:9"]);
    case("an asset that is not there, in the front matter", vec![Swap(WORK, "type: step", "type: step\nreads: assets/none.md")], &["error ASSET_NOT_FOUND steps/work.md:5:1"]);
    case("an asset that is not there, in the document", vec![Swap(FLOW, "See assets/guide.md", "See  assets/none.md")], &["error ASSET_NOT_FOUND workflow.md:13:6"]);
    case("an asset that is not there, in a block of code", vec![Swap(WORK, "See assets/guide.md", "See:\n\n```\ncat assets/none.md\n```\n")], &["warning ASSET_NOT_FOUND steps/work.md:18:5"]);
    case("JSON with a name that stands twice", vec![File("assets/x.json", b"{ \"a\": 1,\n  \"a\": 2 }")], &["warning JSON_DUPLICATE_KEY assets/x.json:2:5"]);
    case("JSON that does not parse", vec![File("assets/x.json", b"{\n  \"a\": }\n")], &["error JSON_SYNTAX assets/x.json:2:8"]);
    case("JSON with more behind it", vec![File("assets/x.json", b"{} {}")], &["error JSON_SYNTAX assets/x.json:1:4"]);
    case("empty JSON", vec![File("assets/x.json", b"")], &["error JSON_SYNTAX assets/x.json:1:1"]);
    case("YAML that does not parse", vec![File("assets/x.yaml", b"a: [1\n")], &["error YAML_SYNTAX assets/x.yaml:2:1"]);
    case("YAML with a name that stands twice", vec![File("assets/x.yaml", b"a: 1\nb: 2\na: 3\n")], &["warning YAML_DUPLICATE_KEY assets/x.yaml:3:1"]);
    case("YAML with a tab", vec![File("assets/x.yml", b"a:\n\tb: 1\n")], &["error YAML_SYNTAX assets/x.yml:2:2"]);
    case("an asset with a NUL", vec![File("assets/x.md", b"# a\n\nb\0c\n")], &["error NUL_CHARACTER assets/x.md:3:2"]);
    case("an asset that is no text", vec![File("assets/x.md", b"# a\n\xff\n")], &["error NOT_UTF8 assets/x.md:2:1"]);
    case("assets that differ in case", vec![File("assets/Guide.md", b"# a\n")], &["warning PATH_CASE_DUPLICATE assets/guide.md:1:1"]);
    case("assets whose accents are encoded in two ways", vec![File("assets/caf\u{e9}.md", b"# a\n"), File("assets/cafe\u{301}.md", b"# a\n")], &["warning PATH_CASE_DUPLICATE assets/caf\u{e9}.md:1:1"]);
    case("an asset with a backslash", vec![File("assets\\x.md", b"")], &["error PATH_UNSAFE assets\\x.md:1:1"]);
    case("an asset that leads out", vec![File("assets/../../x.md", b"")], &["error ASSET_PATH assets/../../x.md:1:1"]);
    case("a file below a file", vec![File("assets/guide.md/x.md", b"# a\n")], &["error PATH_IS_FOLDER assets/guide.md/x.md:1:1"]);

    // The manifest.
    case("no manifest", vec![Gone(BMAD)], &["error MANIFEST_MISSING bmad.json"]);
    case("a manifest that is no JSON", vec![File(BMAD, b"{\n  \"name\": \"x\",\n}\n")], &["error JSON_SYNTAX bmad.json:3:1"]);
    case("a manifest without a name", vec![Unset(BMAD, "/name")], &["error SCHEMA_REQUIRED bmad.json:1:1"]);
    case("a version of two parts", vec![Set(BMAD, "/version", json!("1.0"))], &["error VERSION_NOT_SEMVER bmad.json:4:3"]);
    case("a manifest of another version", vec![Set(BMAD, "/schemaVersion", json!("1.2"))], &["error SCHEMA_VERSION bmad.json:2:3"]);
    case("a field that no manifest has", vec![Set(BMAD, "/licence", json!("MIT"))], &["error SCHEMA_UNKNOWN_FIELD bmad.json:10:3"]);
    case("a graph that is not there", vec![Set(BMAD, "/entry/graph", json!("workflow.graf.json"))], &["error FILE_MISSING bmad.json:7:5"]);
    case("no workflow in the entry", vec![Unset(BMAD, "/entry/workflow"), Set(AGENTS, "/agents/0/menu", json!([{ "description": "Go", "workflow": "main" }]))], &["error SCHEMA_REQUIRED bmad.json:5:3"]);
    case("no graph in the entry", vec![Unset(BMAD, "/entry/graph")], &["error SCHEMA_REQUIRED bmad.json:5:3"]);
    case("a workflow that is a folder", vec![Set(BMAD, "/entry/workflow", json!("steps"))], &["error FILE_MISSING bmad.json:6:5"]);
    case("a time that is none", vec![Set(BMAD, "/createdAt", json!("yesterday"))], &["warning TIME_INVALID bmad.json:10:3"]);
    case("two workflows with one graph", vec![Set(BMAD, "/workflows", json!([{ "id": "main", "workflow": FLOW, "graph": GRAPH }, { "id": "a", "workflow": FLOW, "graph": GRAPH }]))], &["error WORKFLOW_FILE_SHARED bmad.json:18:7", "error WORKFLOW_FILE_SHARED bmad.json:19:7"]);
    case("a workflow twice", vec![Set(BMAD, "/workflows", json!([{ "id": "a", "workflow": FLOW, "graph": GRAPH }, { "id": "a", "workflow": FLOW, "graph": GRAPH }]))], &["error ID_DUPLICATE bmad.json:17:7"]);
    case("a workflow whose files are not there", vec![Set(BMAD, "/workflows", json!([{ "id": "a", "workflow": "a.md", "graph": "a.graph.json" }]))], &["error FILE_MISSING bmad.json:13:7", "error FILE_MISSING bmad.json:14:7"]);
    case("a sum of zeros", vec![Set(BMAD, "/integrity", json!({ "sha256": "0".repeat(64) }))], &["error INTEGRITY_MISMATCH bmad.json:11:5"]);
    case("a sum that was true", vec![Set(BMAD, "/integrity", json!({ "sha256": "0".repeat(64) })), Seal, Swap(WORK, "Say it.", "Say that.")], &["error INTEGRITY_MISMATCH bmad.json:11:5"]);
    case("a sum that is too short", vec![Set(BMAD, "/integrity", json!({ "sha256": "00" }))], &["error SCHEMA_PATTERN bmad.json:11:5"]);
    case("a file that nothing uses", vec![File("notes.md", b"x\n")], &["warning UNUSED_FILE notes.md:1:1"]);
    case("all in a folder", vec![Gone(BMAD), File("x/bmad.json", b"{}")], &["error MANIFEST_MISSING bmad.json"]);
    all
}

#[test]
fn no_repository_comes_with_a_package_or_goes_into_one() {
    let mut all = files();
    all.insert(".git/config".to_owned(), b"[core]\n\tfsmonitor = x\n".to_vec());
    all.insert("assets/.Git/config".to_owned(), Vec::new());
    let package = toolhost_builder::Package::read(all);
    assert!(package.files().keys().all(|path| !path.to_ascii_lowercase().contains(".git")));
}
