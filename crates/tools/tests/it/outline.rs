//! The outline of a file in each language that has one, and what is shown of the others.

use serde_json::json;

use crate::room::house;

/// The lines of the outline of `text`, without their numbers.
async fn check(path: &str, text: &str, expected: &[&str]) {
    let house = house(&[(path, text.as_bytes())]).await;
    let cut = json!({ "path": path, "view": "fit", "maxBytes": text.len() - 1 });
    for arguments in [json!({ "path": path, "view": "outline" }), cut] {
        let data = house.data("file.read", arguments).await;
        let content = data["content"].as_str().unwrap();
        assert_eq!(data["view"], "outline", "{path}: {data}");
        for line in content.lines() {
            let (number, shown) = line.split_once(": ").unwrap();
            let real = text.lines().nth(number.parse::<usize>().unwrap() - 1).unwrap();
            assert!(real.starts_with(shown), "{path}: line {number} is {real:?}, not {shown:?}");
        }
        let shown: Vec<&str> = content.lines().map(|line| line.split_once(": ").unwrap().1).collect();
        assert_eq!(shown, expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rust() {
    let text = "use std::fmt;\nconst N: u8 = 1;\npub struct A {\n    x: u8,\n}\nimpl A {\n    pub fn new() -> Self {\n        fn inner() {}\n        A { x: 1 }\n    }\n}\ntrait T {\n    fn t(&self);\n}\nmod m {}\n";
    let expected = [
        "const N: u8 = 1;",
        "pub struct A",
        "impl A",
        "    pub fn new() -> Self",
        "trait T",
        "    fn t(&self);",
        "mod m {}",
    ];
    check("a.rs", text, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python() {
    let text = "import os\n\n@cached\ndef f(a, b):\n    def g():\n        pass\n    return 1\n\nclass A(B):\n    async def m(self):\n        pass\n";
    check("a.py", text, &["def f(a, b):", "class A(B):", "    async def m(self):"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn javascript() {
    let text = "import x from 'x';\nexport const limit = 3;\nexport function f(a) {\n  const inner = 1;\n}\nclass A extends B {\n  m() {}\n}\n";
    check("a.js", text, &["export const limit = 3;", "export function f(a)", "class A extends B", "  m() {}"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript() {
    let text = "interface I {\n  a: string;\n}\ntype T = string;\nenum E { A }\nexport class C implements I {\n  m(): void {}\n}\n";
    let expected = ["interface I", "type T = string;", "enum E { A }", "export class C implements I", "  m(): void {}"];
    check("a.ts", text, &expected).await;
    check("a.tsx", "export function App() {\n  return <p>hi</p>;\n}\n", &["export function App()"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn go() {
    let text = "package main\n\nconst N = 1\n\ntype S struct {\n\ta int\n}\n\nfunc (s *S) M() int {\n\treturn 1\n}\n\nfunc main() {}\n";
    check("a.go", text, &["const N = 1", "type S struct", "func (s *S) M() int", "func main() {}"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn java() {
    let text = "package p;\n\npublic class A {\n    A() {}\n    int m(int x) {\n        return x;\n    }\n    interface I {}\n    record R(int a) {}\n}\n";
    let expected = ["public class A", "    A() {}", "    int m(int x)", "    interface I {}", "    record R(int a) {}"];
    check("A.java", text, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c() {
    let text = "#include <stdio.h>\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\nstruct s { int a; };\nenum e { A };\nint main(void) {\n    struct s x;\n    return 0;\n}\n";
    let expected =
        ["#define MAX(a, b) ((a) > (b) ? (a) : (b))", "struct s { int a; };", "enum e { A };", "int main(void)"];
    check("a.c", text, &expected).await;
    let text = "static struct s *\nfind(int id)\n{\n    return 0;\n}\nint\nmain(void)\n{\n}\ntypedef struct {\n    int a;\n} t;\n";
    check("b.c", text, &["find(int id)", "main(void)", "typedef struct"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cpp() {
    let text = "namespace n {\nclass A {\n  void m() {}\n};\n}\ntemplate <typename T>\nT f(T x) {\n  return x;\n}\n";
    check("a.cpp", text, &["namespace n", "class A", "  void m() {}", "T f(T x)"]).await;
    let text = "template <typename T>\nclass B {\n  B &\n  operator=(B x) {}\n};\ntemplate <typename T> T *\ng() {}\ntemplate <typename T>\nusing C = B<T>;\nB &\nref() {}\n";
    check("b.cpp", text, &["class B", "  operator=(B x) {}", "g() {}", "using C = B<T>;", "ref() {}"]).await;
}

/// Not every line that looks like a heading is one.
#[tokio::test(flavor = "multi_thread")]
async fn markdown() {
    let text = "---\ntitle: no heading\n---\n# One\n\ntext\n\n```sh\n# no heading\n```\n\n## Two `b`\n\nThree\n-----\n\n    # no heading\n\n####### seven\n";
    check("a.md", text, &["# One", "## Two `b`", "Three"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_files_show_their_ends_and_say_why() {
    let text = (1..=500).map(|n| format!("line {n}\n")).collect::<String>();
    let house = house(&[("notes.txt", text.as_bytes()), ("empty.rs", b"// nothing\n")]).await;
    let notes = house.data("file.read", json!({ "path": "notes.txt", "view": "outline" })).await;
    assert_eq!(notes["view"], "headTail");
    assert!(notes["note"].as_str().unwrap().contains("no outline for this kind of file"), "{notes}");
    assert!(notes["content"].as_str().unwrap().starts_with("line 1\n"), "{notes}");
    let empty = house.data("file.read", json!({ "path": "empty.rs", "view": "outline" })).await;
    assert!(empty["note"].as_str().unwrap().contains("defines nothing"), "{empty}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_endless_nesting_does_not_end_the_host() {
    let deep = format!("fn f() {{ {}1{} }}\n", "(".repeat(100_000), ")".repeat(100_000));
    let blocks = format!("{}{}\n", "mod a { ".repeat(20_000), "}".repeat(20_000));
    let quotes = format!("{}\n", ">".repeat(100_000)).repeat(10);
    let brackets = format!("# {}\n", "[".repeat(500_000));
    let files = [("deep.rs", deep), ("blocks.rs", blocks), ("quotes.md", quotes), ("brackets.md", brackets)];
    let house = house(&files.each_ref().map(|(path, text)| (*path, text.as_bytes()))).await;
    for (path, _) in &files {
        assert!(house.call("file.read", json!({ "path": path, "view": "outline" })).await.ok, "{path}");
    }
}

/// Rules: 002.10.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_cut_only_where_it_is_longer_than_asked_for() {
    let code: String = (0..300).map(|n| format!("fn f{n}() {{\n    work({n});\n}}\n")).collect();
    let text: String = (0..300).map(|n| format!("line {n}\n")).collect();
    let files = [("a.rs", &*code), ("a.txt", &*text), ("small.rs", "fn one() {}\n// why\n"), ("small.txt", "a\nb\n")];
    let house = house(&files.map(|(path, text)| (path, text.as_bytes()))).await;
    let read = async |path: &str, limit: Option<usize>| {
        let mut arguments = json!({ "path": path });
        if let Some(limit) = limit {
            arguments["limit"] = json!(limit);
        }
        house.data("read_file_truncated", arguments).await
    };
    for (path, whole) in &files[2..] {
        for limit in [None, Some(2)] {
            let data = read(path, limit).await;
            assert_eq!((&data["content"], &data["truncated"]), (&json!(whole), &json!(false)), "{path} {limit:?}");
        }
    }
    let whole = read("a.txt", Some(300)).await;
    assert_eq!((&whole["content"], &whole["truncated"]), (&json!(text), &json!(false)));
    // Large ones are cut by their structure, and what has none to its two ends: `limit` lines and one that says so.
    for (path, limit, first, last) in [
        ("a.rs", None, "1: fn f0()", "[... 100 more left out ...]"),
        ("a.rs", Some(3), "1: fn f0()", "[... 297 more left out ...]"),
        ("a.txt", None, "line 0", "line 299"),
        ("a.txt", Some(5), "line 0", "line 299"),
    ] {
        let data = read(path, limit).await;
        let lines: Vec<&str> = data["content"].as_str().unwrap().lines().collect();
        assert_eq!((lines.len(), lines[0], lines[lines.len() - 1]), (limit.unwrap_or(200) + 1, first, last), "{path}");
        assert_eq!(
            (&data["truncated"], &data["totalLines"]),
            (&json!(true), &json!(if path == "a.rs" { 900 } else { 300 }))
        );
    }
    let cut = read("a.txt", Some(5)).await["content"].clone();
    assert_eq!(cut, "line 0\nline 1\nline 2\n[... 295 lines left out ...]\nline 298\nline 299\n");
    // And a line that is asked for is the first one shown.
    let from = house.data("read_file_truncated", json!({ "path": "a.txt", "offset": 300, "limit": 9 })).await;
    assert_eq!(from["content"], "line 299\n");
}
