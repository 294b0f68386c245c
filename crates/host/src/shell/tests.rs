//! What is read of a command, what is not, and the limits of both.

#![expect(
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests of the very function, and of the time that it takes"
)]

use std::time::{Duration, Instant};

use toolhost_contract::shell::{Analyzed, SimpleCommand};

use super::{COMMAND_BYTES_MAX, COMMANDS_MAX, DEPTH_MAX, analyze};

fn commands(text: &str) -> Vec<SimpleCommand> {
    match analyze(text) {
        Analyzed::Commands(commands) => commands,
        Analyzed::NotAnalyzable { why } => panic!("{text:?} is not analyzable: {why}"),
    }
}

fn why(text: &str) -> &'static str {
    match analyze(text) {
        Analyzed::NotAnalyzable { why } => why,
        Analyzed::Commands(commands) => panic!("{text:?} is taken for {commands:?}"),
    }
}

/// What a text runs; `?` behind a command that is not literal, `<` behind one that is fed.
fn seen(text: &str) -> Vec<String> {
    let mark = |yes: bool, mark| if yes { mark } else { "" };
    let said = |c: &SimpleCommand| format!("{}{}{}", c.shown(), mark(!c.literal, " ?"), mark(c.fed, " <"));
    commands(text).iter().map(said).collect()
}

#[test]
fn everyday_commands_are_taken_apart() {
    for (text, expected) in [
        ("cargo test --workspace", &["cargo test --workspace"] as &[&str]),
        ("git log --oneline | head -5", &["git log --oneline", "head -5 <"]),
        ("cd a && make -j2 > out.txt 2>&1", &["cd a", "make -j2", "> out.txt ?"]),
        ("FOO=1 npm test", &["FOO=1 npm test"]),
        ("FOO='a b' BAR= x", &["FOO='a b' BAR= x"]),
        ("grep -rn \"foo bar\" src", &["grep -rn 'foo bar' src"]),
        ("cargo 'test' \"a b\" c\\ d", &["cargo test 'a b' 'c d'"]),
        ("  # first\nls # then\n\n# last", &["ls"]),
        ("(cargo test; cargo test a) 2>&1", &["cargo test", "cargo test a"]),
        ("{ a; b; } > f", &["a", "b", "> f ?"]),
        ("a & b & wait", &["a", "b", "wait"]),
        ("! a || b", &["a", "b"]),
        ("a | (b | c) | { d; e; }", &["a", "b <", "c <", "d <", "e <"]),
        ("python3 < x.py; python3 <<< 1; a", &["python3 <", "python3 <", "a"]),
        ("(a; b) < f; c", &["a <", "b <", "c"]),
        ("if [ -f a ]; then b; elif c; then d; else e; fi", &["[ -f a ]", "b", "c", "d", "e"]),
        ("if [ \"$X\" = y ]; then b; fi", &["[ \"$X\" = y ] ?", "b"]),
        ("while read -r line; do echo \"$line\"; done < f", &["read -r line <", "echo \"$line\" ? <"]),
        ("while IFS= read -r line; do a; done", &["IFS= read -r line", "a"]),
        ("LC_ALL=C sort x", &["LC_ALL=C sort x"]),
        ("until a; do b; done", &["a", "b"]),
        ("for f in *.rs b; do cat $f; done", &["for f ?", "cat $f ?"]),
        ("for f\ndo\n a; done", &["for f ?", "a"]),
        ("echo $(curl x | b) \"in $(c)\"", &["echo $(curl x | b) \"in $(c)\" ?", "curl x", "b <", "c"]),
        ("x=$(y)", &["x=$(y) ?", "y"]),
        ("cat <<'E' > f; b\n`touch x` $(y) \\\nE\nc", &["cat <", "> f ? <", "b", "c"]),
        ("cat <<E\nplain text's\nE", &["cat <"]),
        ("cat <<-\"E\" <<F\n\ta\n\tE\nb\nF\n", &["cat <"]),
        ("find . -name x -exec rm {} \\;", &["find . -name x -exec rm {} ';'"]),
        ("git show HEAD~2 stash@{0} HEAD^", &["git show 'HEAD~2' 'stash@{0}' 'HEAD^'"]),
        ("mkdir -p src/{a,b}", &["mkdir -p src/{a,b} ?"]),
        ("grep 'a$' x; grep \"b$\" y; grep c$ z", &["grep 'a$' x", "grep 'b$' y", "grep 'c$' z"]),
        ("git commit -m \"say \\`x\\` \\\"y\\\" \\$z \\w\"", &["git commit -m 'say `x` \"y\" $z \\w'"]),
        ("git commit -m 'Größe – 日本'", &["git commit -m 'Größe – 日本'"]),
        ("cat größe.txt", &["cat größe.txt"]),
        ("docker run \\\n  -v x \\\n  --rm y", &["docker run -v x --rm y"]),
        ("set -euo pipefail; a", &["set -euo pipefail", "a"]),
        ("export A=1 B=\"$HOME/x\"; a", &["export A=1 B=\"$HOME/x\" ?", "a"]),
        ("printf '%s\\n' $X", &["printf '%s\\n' $X ?"]),
        ("make prefix=~/x", &["make prefix=~/x ?"]),
        ("a 2>/dev/null >&2 1>&2 2>&- >&3- >&/dev/null", &["a"]),
        ("a 4<&5-", &["a <"]),
        ("a >& b/c-1.txt 1>&d", &["a", "> b/c-1.txt ?", "> d ?"]),
        (
            "a &> f; b >> g; c >| h; d <> i; e >& j",
            &["a", "> f ?", "b", "> g ?", "c", "> h ?", "d <", "> i ? <", "e", "> j ?"],
        ),
        ("> f", &["> f ?"]),
        ("a |& b", &["a", "b <"]),
    ] {
        assert_eq!(seen(text), expected, "{text:?}");
    }
    assert_eq!(seen(""), [""; 0]);
    assert_eq!(seen("# nothing"), [""; 0]);
}

/// Texts that bash takes for something else than a reader might, or that run what is not written as a command.
const UNCLEAR: &[&str] = &[
    // Blanks that are none, and line ends that are not seen.
    "echo test a\u{b}# ; touch X",
    "echo test a\u{c}# ; touch X",
    "echo test a\r# ; touch X",
    "echo test a\\\n# ; touch X",
    "echo test a \\\n# ; touch X",
    "echo test a\\\t# ; touch X\u{7f}",
    "echo test a\\\u{b}# ; touch X",
    "echo a\u{a0}b",
    "echo 'a\u{2003}b'",
    "echo 'a\u{202e}b'",
    "echo \u{2013}",
    "echo a\u{1}",
    "touch \u{0}x",
    "echo 'a\u{9b}'",
    "ec\\\nho a",
    "echo \"a\\\nb\"",
    // Here-documents.
    "echo test a << E\n`touch X`\nE",
    "cat <<E\n$(touch X)\nE",
    "cat <<E\n$x\nE",
    "cat <<E\n\\\nE\nE",
    "cat <<E\nno end",
    "cat <<'E' \"\n\"\na\nE",
    "cat <<'E' $(a)\nE",
    "cat <<$E\n$E",
    "cat <<E'F'\nEF",
    "echo $(cat <<'E'\na\nE\n)",
    "cat <<'E' # x\nE",
    "(cat <<'E')\nE",
    // Arithmetic and arrays evaluate what is in them.
    "[[ -v 'a[$(touch E)]' ]]",
    "[[ a ]]",
    "test -v 'a[$(touch E)]'",
    "[ -v 'a[$(touch E)]' ]",
    "[ $X ]",
    "[ -n $X ]",
    "[ a = b -o -v 'a[$(touch E)]' ]",
    "[ \"$X\" 'a[$(touch E)]' ]",
    "[ \"$@\" ]",
    "[ a",
    "((x=1))",
    "( (x=1); ((y)) )",
    "echo $((1+1))",
    "echo $[1+1]",
    "let x=1",
    "a[$(touch E)]=1",
    "a+=1",
    "a=(1 2)",
    "echo ${a[0]}",
    "echo ${x@P}",
    "echo ${!x}",
    "echo ${x:-$(touch E)}",
    "echo ${#x}",
    "declare -i x",
    "local x",
    "readonly x=1",
    "typeset x",
    "printf -v 'a[$(touch E)]' x",
    "printf $X",
    "printf \"$X\" y",
    "printf",
    "read 'a[$(touch E)]' <<< x",
    "read -a x",
    "read",
    "read $X",
    "unset 'a[$(touch E)]'",
    "unset -f ls",
    "export 'a[$(touch E)]=1'",
    "export -f x",
    "export $X",
    "'export' A=$X",
    "A=1 export B=$X",
    "mapfile x",
    "readarray x",
    "getopts a b",
    "wait -p x",
    "RANDOM='a[$(touch E)]'",
    "RANDOM='a[$(touch E)]' ls",
    "OPTIND='a[$(touch E)]'",
    "for RANDOM in 'a[$(touch E)]'; do :; done",
    "read RANDOM <<< 'a[$(touch E)]'",
    "break $X",
    // What changes how the rest is read.
    "shopt -s extglob",
    "alias ls=x",
    "POSIXLY_CORRECT=1",
    "set -o posix",
    "set -x",
    "set -- a",
    "set -o",
    "PS4=x",
    "IFS=x",
    "IFS=x ls $X",
    "for LANG in x; do a; done",
    "a 12345678901234567890>f",
    "a >&-b",
    "a 2<& -b",
    "BASH_ENV=x bash",
    "LC_ALL=ja_JP.SJIS; echo x",
    "LANG=x",
    "export LC_ALL=x",
    "enable -n echo",
    "hash -p /bin/x ls",
    "unalias a",
    // What `>&` names is expanded a second time.
    "echo a >&'$(x)'",
    "echo a >& '$(x)'",
    "echo a 1>&'$(x)'",
    "echo a 01>&'$(x)'",
    "echo a >&'`x`'",
    "echo a >&\\$\\(x\\)",
    "echo a >&\"\\$(x)\"",
    "f='$(x)'; echo a >&$f",
    "f='$(x)'; echo a >&\"$f\"",
    "f='$(x)'; echo a >&${f}",
    "echo a >&\"$1\"",
    "echo a >&\"$(x)\"",
    "HOME='$(x)'; echo a >&~",
    "HOME='$(x)'; echo a >&~/b",
    "echo a >&'$((a[$(x)]))'",
    "echo a >&b*",
    "echo a >&[b]",
    "echo a >&{b,c}",
    "echo a >&3'$(x)'",
    "echo a >&3-'$(x)'",
    "echo a >&'b'",
    "echo a >&a=~",
    "{ a; } >&'$(x)'",
    "(a) >&'$(x)'",
    "if a; then b; fi >&'$(x)'",
    "while a; do b; done >&'$(x)'",
    "for a in b; do c; done >&'$(x)'",
    "a | b >&'$(x)'",
    // What runs others.
    "eval x",
    "source x",
    ". x",
    "trap x EXIT",
    "bind x",
    "coproc x",
    "command -p x",
    "builtin x",
    "exec x",
    "\\eval x",
    "'ev'al x",
    "jobs -x x",
    "fc -s",
    "compgen -C x",
    "time x",
    "f() { x; }",
    "f () x",
    "function f { x; }",
    "cargo() { rm x; }; cargo test",
    "case x in *) y;; esac",
    "select x in a; do b; done",
    "for ((;;)); do a; done",
    "`x`",
    "echo `x`",
    "echo \"`x`\"",
    "echo \"$(echo \"\\`x\\`\")\"",
    "a <(x)",
    "a >(x)",
    "a < <(x)",
    "cat < /dev/tcp/host/80",
    "a {x}>f",
    // Which program runs is not written there.
    "$X a",
    "\"$X\" a",
    "$(x) a",
    "~/x",
    "a*b",
    "{touch,x}",
    "a{,b} c",
    "'cargo test x'",
    "\"carg\\o\" test a",
    "a=b=c= 'x=y'",
    "größe a",
    "'' a",
    "X=1 if",
    "> f if a",
    // Quotes of bash's own, patterns of its own.
    "echo $'\\x41'",
    "echo $\"a\"",
    "echo !(a)",
    "echo @(a|b)",
    "echo {a,$(b)}",
    // No whole command.
    "a &&",
    "a |",
    "| a",
    "; a",
    "a ;; b",
    "a && ; b",
    "a 'b",
    "a \"b",
    "a \\",
    "(a",
    "a)",
    "()",
    "{ a",
    "{ a; } b",
    "(a) b",
    "{a; }",
    "if a; then b",
    "if a; then fi",
    "then a",
    "a; done",
    "for f in a b; b; done",
    "for 1 in a; do b; done",
    "for f in a (b); do c; done",
    "a >",
    "a > > b",
    "a > #b",
    "a > 1>b",
    "a <& b",
    "a > ",
    "a 2>& ",
    "! ",
    "echo $(",
    "echo $()",
    "echo $(#a\n)",
    "{ a; }}",
];

#[test]
fn what_bash_may_read_otherwise_is_not_analyzable() {
    let taken: Vec<_> = UNCLEAR.iter().filter(|text| matches!(analyze(text), Analyzed::Commands(_))).collect();
    assert!(taken.is_empty(), "{taken:#?}");
    assert_eq!(why("echo `x`"), "it has backticks");
    assert_eq!(why("a\u{b}"), "it has a control character");
    for text in [
        "/proc/self/exe -c 'a b'",
        "//proc//1/exe a",
        "../../../proc/self/exe -c a",
        "/dev/fd/3 a",
        "env a | /dev/./fd/9",
    ] {
        assert_eq!(why(text), "the name of a program may stand for any other", "{text}");
    }
}

#[test]
fn a_word_is_literal_only_if_it_is_known_as_it_stands() {
    for (text, literal) in [
        ("a b", true),
        ("a 'b*' \"c?\" \\[d\\] e~ ~", false),
        ("a 'b*' \"c?\" \\[d\\] e~", true),
        ("a $b", false),
        ("a \"${b}\"", false),
        ("a *", false),
        ("a b?", false),
        ("a [b]", false),
        ("a [ b", true),
        ("a ~b", false),
        ("a x:~", false),
        ("A=~ b", false),
        ("A=* b", true),
        ("A={b,c} d", true),
        ("a {b,c}", false),
        ("a {1..3}", false),
        ("a {b} }", true),
        ("a $", true),
        ("a $? $1 $@", false),
    ] {
        assert_eq!(commands(text).iter().all(|c| c.literal), literal, "{text:?}");
    }
}

/// What a person reads is one text for one list of words.
#[test]
fn words_are_told_apart_in_what_is_shown() {
    for (text, shown) in [
        ("a 'b c'", "a 'b c'"),
        ("a ''", "a ''"),
        ("a \"it's\"", "a 'it'\\''s'"),
        ("a ';' '|'", "a ';' '|'"),
        ("a '$x'", "a '$x'"),
        ("a $x", "a $x"),
        ("a [b] '[b]'", "a [b] '[b]'"),
        ("a {b,c} '{b,c}'", "a {b,c} '{b,c}'"),
        ("A='b;c' d", "A='b;c' d"),
    ] {
        assert_eq!(commands(text).iter().map(SimpleCommand::shown).collect::<Vec<_>>(), [shown], "{text:?}");
    }
}

#[test]
fn what_is_known_of_a_command_says_whether_it_may_match() {
    // The pattern is a beginning: whatever goes on from there matches.
    for (text, start, expected) in [
        ("curl x", "curl ", true),
        ("echo curl x", "curl ", false),
        ("FOO=1 curl x", "curl ", true),
        ("FOO=$x curl y", "curl ", true),
        ("FOO=1 BAR=$x wget y", "curl ", false),
        ("git push $x", "git push --force", true),
        ("git $x", "git push --force", true),
        ("git push a$x", "git push --force", false),
        ("git push \"$x\"", "git push --force", true),
        ("git log $x", "git push --force", false),
        ("git push a $x", "git push --force", false),
        ("rm *", "rm -rf", true),
        ("rm a/*", "rm -rf", false),
        ("rm {-rf,x}", "rm -rf", true),
        ("rm x{-rf,x}", "rm -rf", false),
        ("rm$x", "rm", true),
        ("echo $x", "", true),
    ] {
        let Analyzed::Commands(commands) = analyze(text) else {
            // Which program it is, is only known then.
            assert!(expected, "{text:?}");
            continue;
        };
        let may = commands.iter().any(|c| c.may_match(|whole| whole.starts_with(start), start));
        assert_eq!(may, expected, "{text:?} and {start:?}");
    }
}

#[test]
fn nothing_is_read_beyond_its_limit() {
    let nested = |depth: usize| format!("{}a{}", "( ".repeat(depth), " )".repeat(depth));
    assert_eq!(commands(&nested(DEPTH_MAX - 1)).len(), 1);
    assert_eq!(why(&nested(DEPTH_MAX)), "it is nested too deeply");
    let many = |count: usize| vec!["a"; count].join("|");
    assert_eq!(commands(&many(COMMANDS_MAX)).len(), COMMANDS_MAX);
    assert_eq!(why(&many(COMMANDS_MAX + 1)), "it has too many commands");
    let long = |length: usize| format!("echo {}", "a".repeat(length - 5));
    assert_eq!(commands(&long(COMMAND_BYTES_MAX)).len(), 1);
    assert_eq!(why(&long(COMMAND_BYTES_MAX + 1)), "it is too long");
}

/// Texts that made readers of bash slow, deep or large.
pub(super) fn hostile() -> Vec<String> {
    let mut texts = Vec::new();
    for count in [10, 100, 1_000, 5_000, 20_000] {
        texts.push(format!("echo {}a{}", "$(".repeat(count), ")".repeat(count)));
        texts.push(format!("echo {}a{}", "\"$(".repeat(count), ")\"".repeat(count)));
    }
    let pieces = [
        "if true;then ",
        "$((",
        "{ ",
        "a|",
        "a;",
        "a&",
        "`",
        "`\\",
        "\"$(",
        "[[ ( ( (",
        "case x in ",
        "<<A ",
        "<<A\n",
        "<<'A'\n",
        "&",
        ";",
        "<(",
        "(",
        "((",
        "! ",
        "!",
        "\\",
        "\\\n",
        " \\\n",
        "#",
        "\n#",
        "'",
        "\"",
        "$",
        "${",
        "{,",
        "{a,",
        "a{b..c}",
        "[",
        "*",
        "~",
        "=",
        "a=",
        "a=$(",
        ">",
        ">f ",
        "2>&1 ",
        "<<<a ",
        "while a;do ",
        "for a in b;do ",
        "for a in ",
        "x ",
        "x\n",
        "\t",
        "é",
        "'é' ",
        "$x",
        "\"$x\"",
        "[ a ]&&",
        "a||",
        "\u{b}",
        "\u{0}",
    ];
    for piece in pieces {
        for bytes in [COMMAND_BYTES_MAX, 2 * COMMAND_BYTES_MAX, 1 << 20] {
            texts.push(piece.repeat(bytes / piece.len()));
            // Up to the deepest and the most that is read, and then on.
            texts.push(format!("{}{}", piece.repeat(DEPTH_MAX - 2), "a ".repeat(bytes / 2 - 500)));
        }
    }
    texts.push(format!("{}b{}", "echo \"$(a ".repeat(DEPTH_MAX - 3), ")\"".repeat(DEPTH_MAX - 3)));
    texts
}

/// The bound holds without optimization, too.
#[test]
fn no_text_takes_long() {
    for text in hostile() {
        // The quickest of a few: other tests want the processor too.
        let took = (0..3).map(|_| {
            let began = Instant::now();
            let _ = analyze(&text);
            began.elapsed()
        });
        let took = took.min().unwrap_or_default();
        assert!(took < Duration::from_millis(50), "{took:?} for {:?}…", text.chars().take(40).collect::<String>());
    }
}
