//! The rules for one source file by itself.

use crate::finding::Finding;
use crate::tidy::source::{Source, split, words};

/// Past this, a file is asked what it should have refused.
const LINES_MAX: usize = 800;

/// Types whose value changes behind a shared reference: in a `static`, they are a global.
const CELLS: [&str; 9] =
    ["OnceLock", "LazyLock", "OnceCell", "LazyCell", "Lazy", "Mutex", "RwLock", "RefCell", "UnsafeCell"];

/// Checks one file.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let source = split(text);
    let mut found = Found { path, text, findings: Vec::new() };
    check_opening(&mut found);
    check_length(&mut found);
    check_globals(&mut found, &source, path.starts_with("crates/testkit/src/"));
    check_words(&mut found, &source, path.starts_with("crates/sandbox/"));
    check_attributes(&mut found, &source);
    check_promises(&mut found, &source);
    found.findings
}

/// The findings in one file, as they come.
struct Found<'a> {
    path: &'a str,
    text: &'a str,
    findings: Vec<Finding>,
}

impl Found<'_> {
    fn push(&mut self, offset: usize, what: impl Into<String>) {
        let line = self.text[..offset].matches('\n').count() + 1;
        self.findings.push(Finding::in_line(self.path, line, what));
    }
}

fn check_opening(found: &mut Found<'_>) {
    if !found.text.starts_with("//!") {
        found.push(0, "begins without a `//!` line that says what the file is for");
    }
}

fn check_length(found: &mut Found<'_>) {
    let lines = found.text.lines().count();
    if lines > LINES_MAX {
        found.push(0, format!("has {lines} lines, {LINES_MAX} are the limit"));
    }
}

/// A `static` is a constant table, or it is state that two projects in one process would share.
///
/// Testkit alone may keep what is set once: a server that all tests of a process share takes a second to start, tests
/// cannot hand it to each other, and no project ever runs with it.
fn check_globals(found: &mut Found<'_>, source: &Source, may_set_once: bool) {
    for (offset, word) in words(&source.code) {
        let rest = &source.code[offset + word.len()..];
        match word {
            "thread_local" | "lazy_static" if rest.starts_with('!') => {
                found.push(offset, format!("`{word}!` is process-wide state: hand the value in"));
            }
            "static" if may_set_once && is_set_once(rest) => {}
            // A program has one, and no project is in it.
            "static" if source.code[..offset].trim_end().ends_with("#[global_allocator]") => {}
            "static" if !is_constant_table(rest) && !is_computed_table(rest) => {
                found.push(offset, "a `static` may only be a constant table (`&...`, `[...]`): hand state in");
            }
            _ => {}
        }
    }
}

/// `rest` is what follows the keyword: `NAME: Type = value;`.
fn is_constant_table(rest: &str) -> bool {
    let declared = rest.split('=').next().unwrap_or_default();
    let Some((name, kind)) = declared.split_once(':') else { return false };
    let is_mutable = words(name).any(|(_, word)| word == "mut");
    !is_mutable && !has_cell(kind) && kind.trim_start().starts_with(['&', '['])
}

/// `rest` is what follows the keyword: `NAME: OnceLock<Type> = value;`.
/// A table that is too large to be written out: a function without arguments computes it, and nothing changes it.
fn is_computed_table(rest: &str) -> bool {
    let Some((declared, value)) = rest.split_once('=') else { return false };
    let inside = declared.split_once(':').and_then(|(_, kind)| kind.trim_start().strip_prefix("LazyLock<"));
    let value = value.split(';').next().unwrap_or_default().trim();
    let function = value.strip_prefix("LazyLock::new(").and_then(|rest| rest.strip_suffix(')'));
    let is_path = |path: &str| path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'));
    inside.is_some_and(|inside| !has_cell(inside)) && function.is_some_and(is_path)
}

fn is_set_once(rest: &str) -> bool {
    let declared = rest.split('=').next().unwrap_or_default();
    let Some((name, kind)) = declared.split_once(':') else { return false };
    let is_mutable = words(name).any(|(_, word)| word == "mut");
    let inside = kind.trim_start().strip_prefix("OnceLock<");
    !is_mutable && inside.is_some_and(|inside| !has_cell(inside))
}

fn has_cell(kind: &str) -> bool {
    words(kind).any(|(_, word)| CELLS.contains(&word) || word.starts_with("Atomic") || word == "Cell")
}

fn check_words(found: &mut Found<'_>, source: &Source, may_be_unsafe: bool) {
    for (offset, word) in words(&source.code) {
        let rest = source.code[offset + word.len()..].trim_start();
        match word {
            "unsafe" if !may_be_unsafe => found.push(offset, "only crates/sandbox may write `unsafe`"),
            "pub" if is_glob_export(rest) => {
                found.push(offset, "re-exports by name, never by `*`: where does a name live?")
            }
            "fn" if rest.starts_with("test_") => found.push(offset, "a test is named as a promise, without `test_`"),
            _ => {}
        }
    }
}

/// `rest` is what follows `pub`: `use a::*;`, also with `(crate)` before it and over several lines.
fn is_glob_export(rest: &str) -> bool {
    let item = match rest.strip_prefix('(').and_then(|scope| scope.split_once(')')) {
        Some((_, item)) => item.trim_start(),
        None => rest,
    };
    let Some(path) = item.strip_prefix("use").filter(|path| path.starts_with(char::is_whitespace)) else {
        return false;
    };
    path.split(';').next().is_some_and(|path| path.contains('*'))
}

fn check_attributes(found: &mut Found<'_>, source: &Source) {
    for (attribute, what) in [
        ("#[ignore", "an ignored test tests nothing: assert the bug as it is, with a comment"),
        ("#[should_panic", "what panics where? assert on the result instead"),
    ] {
        for (offset, _) in source.code.match_indices(attribute) {
            found.push(offset, what);
        }
    }
}

/// A promise to do something later says who, or where it is followed up.
fn check_promises(found: &mut Found<'_>, source: &Source) {
    for (offset, word) in words(&source.comments).filter(|(_, word)| matches!(*word, "TODO" | "FIXME")) {
        let rest = source.comments[offset + word.len()..].lines().next().unwrap_or_default();
        let named = rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .is_some_and(|(name, _)| !name.trim().is_empty());
        if !named && !rest.contains("://") {
            found.push(offset, format!("`{word}` without a name in parentheses or a link"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, check};

    /// The findings for code below a proper opening line, each as `line: beginning`.
    fn check_code(code: &str, expected: &[&str]) {
        let findings = check("crates/host/src/x.rs", &format!("//! Doc.\n{code}"));
        let said = findings.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(said.len(), expected.len(), "{code}\n{said:?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.starts_with(&format!("crates/host/src/x.rs:{expected}")), "{code}\n{said}");
        }
    }

    #[test]
    fn process_wide_state_is_found() {
        check_code("static mut A: &str = \"\";", &["2: a `static`"]);
        check_code("#[global_allocator]\nstatic A: MiMalloc = MiMalloc;", &[]);
        check_code("static A: OnceLock<u8> = OnceLock::new();", &["2: a `static`"]);
        check_code("static A: LazyLock<Table> = LazyLock::new(Table::whole);", &[]);
        check_code("static A: LazyLock<Mutex<u8>> = LazyLock::new(first);", &["2: a `static`"]);
        check_code("static A: LazyLock<u8> = LazyLock::new(|| read());", &["2: a `static`"]);
        check_code("fn f() {\n    static A: AtomicU8 = AtomicU8::new(0);\n}", &["3: a `static`"]);
        check_code("pub static A: std::sync::LazyLock<u8> = x;", &["2: a `static`"]);
        check_code("static A: &Mutex<u8> = &Mutex::new(0);", &["2: a `static`"]);
        check_code("static A: [AtomicU8; 2] = x;", &["2: a `static`"]);
        check_code("thread_local! { static A: [u8; 1] = [0]; }", &["2: `thread_local!`"]);
        check_code("lazy_static! {}", &["2: `lazy_static!`"]);
    }

    #[test]
    fn constant_tables_are_welcome() {
        check_code(
            "static A: &[&str] = &[\"a\"];\npub(crate) static B: [u8; 2] = [1, 2];\nstatic C: &'static str = \"\";",
            &[],
        );
        check_code("const A: Mutex<u8> = x;\nstruct B { cell: OnceLock<u8> }\nfn f(x: &'static str) {}", &[]);
    }

    #[test]
    fn testkit_alone_may_share_what_is_set_once() {
        let findings = |path, code: &str| check(path, &format!("//! Doc.\n{code}")).len();
        let once = "fn f() {\n    static A: OnceLock<Result<B, String>> = OnceLock::new();\n}";
        assert_eq!(findings("crates/testkit/src/x.rs", once), 0);
        assert_eq!(findings("crates/store/tests/it/x.rs", once), 1);
        for still in
            ["static A: OnceLock<Mutex<u8>> = x;", "static A: Mutex<u8> = x;", "static mut A: OnceLock<u8> = x;"]
        {
            assert_eq!(findings("crates/testkit/src/x.rs", still), 1, "{still}");
        }
    }

    #[test]
    fn exports_by_star_are_found() {
        check_code("pub use a::*;", &["2: re-exports"]);
        check_code("pub(crate) use a::{\n    b,\n    c::*,\n};", &["2: re-exports"]);
        check_code("use super::*;\npub use a::{b, c};\npub fn f() -> u8 { 1 * 2 }", &[]);
    }

    #[test]
    fn unsafe_stays_in_the_sandbox() {
        check_code("fn f() { unsafe { g() } }", &["2: only crates/sandbox"]);
        check_code("#![forbid(unsafe_code)]\n// unsafe\nconst A: &str = \"unsafe\";", &[]);
        assert!(check("crates/sandbox/src/x.rs", "//! Doc.\nunsafe fn f() {}\n").is_empty());
    }

    #[test]
    fn tests_that_prove_nothing_are_found() {
        check_code("#[test]\n#[ignore = \"slow\"]\nfn f() {}", &["3: an ignored test"]);
        check_code("#[test]\n#[should_panic(expected = \"x\")]\nfn f() {}", &["3: what panics"]);
        check_code("#[test]\nfn test_reading() {}", &["3: a test is named"]);
        check_code("#[test]\nfn tests_are_read() {}", &[]);
    }

    #[test]
    fn promises_have_an_owner() {
        check_code("// TODO: later", &["2: `TODO`"]);
        check_code("/* FIXME() */", &["2: `FIXME`"]);
        check_code("// TODO(ada): later\n// FIXME https://example.org/7\nconst A: &str = \"TODO\";\n// TODOS", &[]);
    }

    #[test]
    fn a_file_says_what_it_is_for_and_stays_in_bounds() {
        let said = check("crates/host/src/x.rs", "use a::b;\n");
        assert!(said[0].to_string().contains("`//!`"));
        check_code(&"\n".repeat(LINES_MAX - 1), &[]);
        check_code(&"\n".repeat(LINES_MAX), &["1: has 801 lines"]);
    }
}
