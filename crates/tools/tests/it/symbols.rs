//! Definitions by name: what `file.read` shows of one, and `file.edit` replaces.

use serde_json::{Value, json};
use toolhost_contract::ErrorKind;

use crate::room::{house, refused};

const RUST: &str = "//! A parser.
// License.

/// Reads.
#[derive(Debug)]
pub struct Parser<'a> {
    text: &'a str,
}

impl<'a> Parser<'a> {
    /// The next one.
    pub fn next(&mut self) -> u8 {
        fn inner() {}
        1
    }
    fn one() {} fn two() {}
}

impl fmt::Display for Parser<'_> {
    fn fmt(&self) {}
}

impl Iterator for Parser<'_> {
    fn next(&mut self) -> Option<u8> {
        None
    }
}

mod tests {
    fn near() {}
}
";

async fn read(path: &str, text: &str, symbol: &str) -> String {
    let house = house(&[(path, text.as_bytes())]).await;
    let data = house.data("file.read", json!({ "path": path, "symbol": symbol })).await;
    data["content"].as_str().unwrap().to_owned()
}

/// A symbol, and the lines that are shown of it.
async fn check(path: &str, text: &str, cases: &[(&str, &str)]) {
    for (symbol, expected) in cases {
        assert_eq!(read(path, text, symbol).await, *expected, "{path} {symbol}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_read_by_its_name_with_what_belongs_to_it() {
    let next = "    /// The next one.\n    pub fn next(&mut self) -> u8 {\n        fn inner() {}\n        1\n    }\n";
    let iterator = "    fn next(&mut self) -> Option<u8> {\n        None\n    }\n";
    let display = "impl fmt::Display for Parser<'_> {\n    fn fmt(&self) {}\n}\n";
    check(
        "a.rs",
        RUST,
        &[
            ("Parser", "/// Reads.\n#[derive(Debug)]\npub struct Parser<'a> {\n    text: &'a str,\n}\n"),
            ("impl Parser::next", next),
            ("Parser::next:12", next),
            ("Iterator::next", iterator),
            ("next:24", iterator),
            ("impl Display for Parser", display),
            ("impl fmt::Display for Parser<'_>", display),
            ("fmt", "    fn fmt(&self) {}\n"),
            ("tests.near", "    fn near() {}\n"),
            ("one", "    fn one() {} fn two() {}\n"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_language_has_its_names() {
    let python = "@cached\ndef f(a):\n    return 1\n\nclass A(B):\n    # Runs.\n    @property\n    def run(self):\n        return 2\n";
    let run = "    # Runs.\n    @property\n    def run(self):\n        return 2\n";
    check("a.py", python, &[("f", "@cached\ndef f(a):\n    return 1\n"), ("A.run", run), ("A/run", run)]).await;
    let script = "/** Adds. */\nexport const add = (a) => a + 1;\nexport class A {\n  m() {\n  }\n}\n";
    check("a.ts", script, &[("add", "/** Adds. */\nexport const add = (a) => a + 1;\n"), ("A#m", "  m() {\n  }\n")])
        .await;
    let go = "package a\n\ntype (\n\tA int\n\tB int\n)\n\n// Get gets.\nfunc (a *A) Get() int {\n\treturn 1\n}\n";
    let types = "type (\n\tA int\n\tB int\n)\n";
    check("a.go", go, &[("B", types), ("A.Get", "// Get gets.\nfunc (a *A) Get() int {\n\treturn 1\n}\n")]).await;
    check("A.java", "class A {\n  @Override\n  void m() {}\n}\n", &[("A.m", "  @Override\n  void m() {}\n")]).await;
    let c = "struct x {\n  int a;\n};\nstatic int *get(int a)\n{\n  return 0;\n}\n";
    check("a.c", c, &[("get", "static int *get(int a)\n{\n  return 0;\n}\n"), ("x", "struct x {\n  int a;\n};\n")])
        .await;
    let cpp =
        "namespace n {\ntemplate <class T>\nclass A {\n  void m() {}\n};\n}\nint A::next(int a) {\n  return 1;\n}\n";
    check(
        "a.cpp",
        cpp,
        &[
            ("n::A", "template <class T>\nclass A {\n  void m() {}\n};\n"),
            ("n::A::m", "  void m() {}\n"),
            ("A::next", "int A::next(int a) {\n  return 1;\n}\n"),
            ("next", "int A::next(int a) {\n  return 1;\n}\n"),
        ],
    )
    .await;
    let book = "# Book\n\nText.\n\n## Install it: now\n\nOne.\n\n### Linux\n\n## Use v1.2\n\nTwo.\n";
    check(
        "a.md",
        book,
        &[("Install it: now", "## Install it: now\n\nOne.\n\n### Linux\n\n"), ("Use v1.2", "## Use v1.2\n\nTwo.\n")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_not_there_or_not_alone_is_told_what_is() {
    let house = house(&[("a.rs", RUST.as_bytes()), ("a.txt", b"one\n"), ("a.py", b"def f(:\n    pass\n")]).await;
    let told = async |path: &str, symbol: &str| {
        let error =
            refused(&house, "file.read", json!({ "path": path, "symbol": symbol }), ErrorKind::Validation).await;
        format!("{} {}", error.message, error.hint.unwrap_or_default())
    };
    let text = told("a.rs", "Parser::next").await;
    for part in [
        "defines `Parser::next` 2 times",
        "`Parser::next:12`: pub fn next(&mut self) -> u8 {",
        "`Parser::next:24`: fn next(&mut self) -> Option<u8> {",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let text = told("a.rs", "Parser::next:13").await;
    assert!(text.contains("on line 13") && text.contains("`Parser::next:24`"), "{text}");
    let text = told("a.rs", "Parser::nxt").await;
    assert!(text.contains("defines no `Parser::nxt`") && text.contains("`Parser::next`"), "{text}");
    let text = told("a.txt", "one").await;
    assert!(text.contains("no symbols") && text.contains("no outline for this kind of file"), "{text}");
    let text = told("a.rs", &"a::".repeat(1000)).await;
    assert!(text.contains("500 is the most"), "{text}");
    let both = json!({ "path": "a.rs", "symbol": "fmt", "offset": 2 });
    refused(&house, "file.read", both, ErrorKind::Validation).await;
}

fn edits(path: &str, edit: Value) -> Value {
    json!({ "path": path, "edits": [edit] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_replaced_by_its_name() {
    let text = "/// Old.\nfn a() {\n    1\n}\n\nfn b() { 2 } fn c() { 3 }\n";
    let house = house(&[("a.rs", text.as_bytes()), ("dos.py", b"def f():\r\n    pass\r\nx = 1\r\n")]).await;
    house.data("file.edit", edits("a.rs", json!({ "symbol": "a", "replace": "fn a() {}" }))).await;
    house.data("file.edit", edits("a.rs", json!({ "symbol": "c", "replace": "fn d() {}" }))).await;
    assert_eq!(house.workspace.read("a.rs"), "fn a() {}\n\nfn b() { 2 } fn d() {}\n");
    house.data("file.edit", edits("dos.py", json!({ "symbol": "f", "replace": "def f():\n    return 1" }))).await;
    assert_eq!(house.workspace.read("dos.py"), "def f():\r\n    return 1\r\nx = 1\r\n");
    house.data("file.edit", edits("a.rs", json!({ "symbol": "a", "replace": "" }))).await;
    assert_eq!(house.workspace.read("a.rs"), "\nfn b() { 2 } fn d() {}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_looked_for_in_one_definition() {
    let house = house(&[("a.py", b"def f():\n    x = 1\n\ndef g():\n    x = 1\n    x = 1\n")]).await;
    house.data("file.edit", edits("a.py", json!({ "symbol": "f", "search": "x = 1", "replace": "x = 2" }))).await;
    assert_eq!(house.workspace.read("a.py"), "def f():\n    x = 2\n\ndef g():\n    x = 1\n    x = 1\n");
    let twice = edits("a.py", json!({ "symbol": "g", "search": "x = 1", "replace": "y" }));
    let error = refused(&house, "file.edit", twice, ErrorKind::Validation).await;
    assert!(error.message.contains("2 times") && error.message.contains("lines 5, 6"), "{error:?}");
    let elsewhere = edits("a.py", json!({ "symbol": "g", "search": "x = 2", "replace": "y" }));
    let error = refused(&house, "file.edit", elsewhere, ErrorKind::Validation).await;
    assert!(error.message.contains("5:     x = 1"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_whose_end_is_uncertain_is_not_replaced() {
    let house = house(&[("a.rs", b"fn a() {\n    let = ;\n}\n\nfn b() {}\n")]).await;
    let error =
        refused(&house, "file.edit", edits("a.rs", json!({ "symbol": "a", "replace": "" })), ErrorKind::Validation)
            .await;
    assert!(error.message.contains("parsed"), "{error:?}");
    let neither = edits("a.rs", json!({ "replace": "x" }));
    let error = refused(&house, "file.edit", neither, ErrorKind::Validation).await;
    assert!(error.message.contains("/edits/0/search"), "{error:?}");
}

/// A file may nest as deep as its length lets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_deep_file_has_symbols_too() {
    let depth = 20_000;
    let text = format!("{}fn last() {{}}{}", "mod a {\n".repeat(depth), "}".repeat(depth));
    let house = house(&[("deep.rs", text.as_bytes())]).await;
    let symbol = format!("{}last", "a::".repeat(100));
    let found = house.data("file.read", json!({ "path": "deep.rs", "symbol": symbol })).await;
    assert_eq!(found["firstLine"], depth + 1, "{found}");
    let several = json!({ "path": "deep.rs", "symbol": "a::a" });
    let error = refused(&house, "file.read", several, ErrorKind::Validation).await;
    assert!(error.message.contains("and 19989 more") && error.message.len() < 4096, "{}", error.message.len());
    let none = json!({ "path": "deep.rs", "symbol": "a::lost" });
    refused(&house, "file.read", none, ErrorKind::Validation).await;
}
