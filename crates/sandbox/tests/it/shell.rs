//! What the reader of commands says is run, held against what bash runs: texts that are made up, each given to bash,
//! where every program that is looked for is written down with its words.

use std::fmt::Write;
use std::time::Duration;

use toolhost_contract::shell::{Analyzed, SimpleCommand, Word};
use toolhost_contract::workspace::Access;
use toolhost_host::analyze;

use crate::room::Room;

/// Texts of one run where nothing else is said; `cargo xtask soak` says more.
const TEXTS_DEFAULT: usize = 2_000;
const TEXTS_VARIABLE: &str = "TOOLHOST_SHELL_TEXTS";
const SEED_VARIABLE: &str = "TOOLHOST_SHELL_SEED";
const SEED_DEFAULT: u64 = 0x5eed_0f5e_1150;
/// Texts of one fenced command.
const BATCH: usize = 1_000;

/// Gives each text of `texts` to a bash of its own. There are no programs, so that bash asks its handler for each, which
/// writes one line in one write. A text that has run many is ended with all its processes, for which it has a group.
const DRIVER: &str = r#"
mkdir -p log cwd; cd cwd; : > a1; : > b2; ulimit -t 1; set -m
export LOG PATH=/nowhere X='-x y' Y='*' E= N=1
command_not_found_handle() {
  local IFS=$'\x1f' lines
  local words=$*
  printf '%s\n' "${words//$'\n'/$'\x1e'}" >> "$LOG"
  mapfile -t lines < "$LOG"
  (( ${#lines[@]} > 25 )) && kill -9 0
  [ "${1: -1}" != 1 ]
}
export -f command_not_found_handle
n=0
while IFS= read -r -d '' text; do
  LOG=$PWD/../log/$n; n=$((n+1))
  /bin/bash -c "$text" < /dev/null > /dev/null 2>&1
done < ../texts
echo "$n texts"
"#;

/// xorshift64*: the same texts from the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % sides
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.roll(of.len())]
    }
}

/// What the shell runs itself: nothing of it is written down, but what it may evaluate is.
const BUILTINS: &[&str] = &[
    ":",
    ".",
    "alias",
    "bind",
    "break",
    "builtin",
    "cd",
    "command",
    "compgen",
    "continue",
    "declare",
    "dirs",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "read -r",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "test",
    "[",
    "[ -n",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];
const VARIABLES: &[&str] =
    &["V", "V", "V", "V", "V", "X", "HOME", "RANDOM", "OPTIND", "SECONDS", "PS4", "IFS", "PATH", "LANG"];

const PROGRAMS: &[&str] = &["p0", "p1", "p2", "p3", "q-1", "q.2", "'p0'", "p\"1\"", "\\p2", "zz", "touch", "git"];

fn word(dice: &mut Dice, depth: usize) -> String {
    match dice.roll(40) {
        0 => "'a b'".to_owned(),
        1 => "\"a  b\"".to_owned(),
        2 => "$X".to_owned(),
        3 => "\"$X\"".to_owned(),
        4 => "${Y}".to_owned(),
        5 => "a\\ b".to_owned(),
        6 => "\"a\\\"b\\$c\\d\\\\\"".to_owned(),
        7 => "*".to_owned(),
        8 => "[a]1".to_owned(),
        9 => "{a,b}".to_owned(),
        10 => "x=~".to_owned(),
        11 => "a#b".to_owned(),
        12 => "''".to_owned(),
        13 => "a$".to_owned(),
        14 => "\"a$\"".to_owned(),
        15 => "'#'".to_owned(),
        16 => "ü".to_owned(),
        17 => "HEAD~1".to_owned(),
        18 => "s@{0}".to_owned(),
        19 => "\"a\nb\"".to_owned(),
        20 => "if".to_owned(),
        21 => "1".to_owned(),
        22 => "a=b".to_owned(),
        23 => "$1$?\"$@\"".to_owned(),
        24 if depth > 0 => format!("$({})", list(dice, depth - 1)),
        25 if depth > 0 => format!("\"a$({})b\"", list(dice, depth - 1)),
        26 => dice
            .one(&["`zz`", "$((1))", "${X:-zz}", "$'a'", "$\"a\"", "<(zz)", "${X@P}", "{a,$(zz)}", "$[1]"])
            .to_owned(),
        // An index is evaluated, wherever the shell takes a text for one.
        27 | 28 => dice.one(&["'a[$(zz)]'", "\"a[\\$(zz)]\"", "'RANDOM=a[$(zz)]'", "'x=$(zz)'", "'$(zz)'"]).to_owned(),
        29 => dice.one(&["-v", "-n", "-eq", "=", "-o", "]", "RANDOM", "-p", "-a"]).to_owned(),
        _ => dice.one(&["a", "b", "-x", "./c", "d/e", "--f=g", "%", "^", "!", "]", "}", "+", "@", ":"]).to_owned(),
    }
}

/// What follows a group.
const AFTER: &[&str] = &["", "", "", "", " >&'$(zz)'", " >&\"$V\"", " >& f"];
const TWICE: &[&str] = &[
    "'$(zz)'",
    "'`zz`'",
    "\\$\\(zz\\)",
    "\"\\$(zz)\"",
    "'$((a[$(zz)]))'",
    "'${V:-$(zz)}'",
    "$V",
    "\"$V\"",
    "~",
    "~/a",
];

fn redirect(dice: &mut Dice, depth: usize) -> String {
    let target = match dice.roll(8) {
        0 | 1 => word(dice, depth),
        // Harmless, unless it is expanded once more.
        2 => dice.one(TWICE).to_owned(),
        _ => "f".to_owned(),
    };
    match dice.roll(12) {
        0 => format!(" > {target}"),
        1 => " 2>&1".to_owned(),
        2 => " >&2".to_owned(),
        3 => format!(" 2>>{target}"),
        4 => format!(" &>{target}"),
        5 => " < /dev/null".to_owned(),
        6 => format!(" <<< {target}"),
        7 => dice.one(&[" >&-", " >&3-", " 2>&3-", " <&0-"]).to_owned(),
        8 => format!(" >&{target}"),
        9 => format!(" {}>&{}{target}", dice.one(&["", "1", "01", "2", "5"]), dice.one(&["", " ", "2", "-", "3-"])),
        10 => format!(" {}<&{target}", dice.one(&["", "0", "1", "5"])),
        _ => " > /dev/null".to_owned(),
    }
}

fn simple(dice: &mut Dice, depth: usize) -> String {
    let mut text = String::new();
    if dice.roll(6) == 0 {
        let value = word(dice, depth);
        write!(text, "{}={value}{}", dice.one(VARIABLES), dice.one(&[" ", " ", "; ", "\n"])).unwrap();
    }
    let program = if dice.roll(6) == 0 { BUILTINS } else { PROGRAMS };
    text.push_str(dice.one(program));
    for _ in 0..dice.roll(4) {
        let word = word(dice, depth);
        write!(text, "{}{word}", dice.one(&[" ", "  ", "\t", " \\\n "])).unwrap();
    }
    if dice.roll(5) == 0 {
        text.push_str(&redirect(dice, depth));
    }
    text
}

fn command(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return simple(dice, depth);
    }
    let inner = |dice: &mut Dice| list(dice, depth - 1);
    match dice.roll(24) {
        0 => format!("( {} )", inner(dice)),
        1 => format!("({}){}", inner(dice), dice.one(AFTER)),
        2 => format!("{{ {}; }}{}", inner(dice), dice.one(AFTER)),
        3 => format!("if {}; then {}; fi", inner(dice), inner(dice)),
        4 => format!("if {}; then {}; else {}; fi", inner(dice), inner(dice), inner(dice)),
        5 => format!("for {} in {}; do {}; done", dice.one(VARIABLES), word(dice, 0), inner(dice)),
        6 => format!("while p1; do {}; done", inner(dice)),
        7 => format!("until {}\ndo {}\ndone", simple(dice, 0), inner(dice)),
        8 => format!("! {}", simple(dice, depth)),
        9 => format!("{} <<'E'\nbody $(zz)\nE\n", simple(dice, depth)),
        10 => format!("{} <<E\n{}\nE\n", simple(dice, depth), word(dice, depth)),
        11 => dice
            .one(&["f() { zz; }", "case a in *) zz;; esac", "[[ -v a ]]", "((x=1))", "a[1]=2", "time zz"])
            .to_owned(),
        _ => simple(dice, depth),
    }
}

fn list(dice: &mut Dice, depth: usize) -> String {
    let mut text = command(dice, depth);
    for _ in 0..dice.roll(3) {
        let between =
            dice.one(&[" | ", "|", " && ", "&&", " || ", "; ", ";", "\n", " & ", "&", " |& ", " # c\n", ";#c\n"]);
        write!(text, "{between}{}", command(dice, depth)).unwrap();
    }
    text
}

/// What is put into, and taken out of, a text that was made.
const NASTY: &[&str] = &[
    "\u{b}",
    "\u{c}",
    "\r",
    "\\",
    "\\\n",
    " \\\n",
    "\n",
    "#",
    " #",
    "`",
    "$",
    "$(",
    "((",
    "(",
    ")",
    "'",
    "\"",
    "{",
    ",",
    "}",
    "[",
    "]",
    "!",
    "~",
    "\u{a0}",
    "<<E\n",
    "<<",
    "<(",
    ";",
    "&",
    "|",
    " ",
    "\t",
    "=",
    "+=",
    "*",
    "; zz",
    " zz ",
    "\n# zz\n",
    "\\#",
    "\\ #",
    "<",
    ">",
    "1>",
    "12345678901234567890>f",
    "if ",
    " then ",
    " do ",
    "done",
    "fi",
    "\u{1}",
    "\u{7f}",
    "\\'",
    "\\\"",
    "$'",
    "${",
    "?",
    "..",
    "@(",
    "\u{2028}",
    "é",
    "\\\t",
    "\\\u{b}",
    "\nE\n",
    ":",
    "%",
    "-",
];

fn text(dice: &mut Dice) -> String {
    let mut text = list(dice, 2);
    for _ in 0..[0, 0, 1, 1, 2, 3][dice.roll(6)] {
        let mut at = dice.roll(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        if dice.roll(4) == 0 {
            // One character less.
            if at < text.len() {
                text.remove(at);
            }
        } else {
            text.insert_str(at, dice.one(NASTY));
        }
    }
    text
}

/// Whether these words may be what such a command was run with.
fn fits(words: &[Word], ran: &[String]) -> bool {
    let Some((word, rest)) = words.split_first() else { return ran.is_empty() };
    if word.known {
        return ran.split_first().is_some_and(|(first, others)| *first == word.text && fits(rest, others));
    }
    (0..=ran.len()).any(|taken| fits(rest, &ran[taken..]))
}

/// The commands of one log.
fn ran(log: &str) -> Vec<Vec<String>> {
    let words = |line: &str| line.split('\u{1f}').map(|word| word.replace('\u{1e}', "\n")).collect();
    log.lines().map(words).collect()
}

fn of_environment<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var_os(name).and_then(|text| text.to_str()?.parse().ok()).unwrap_or(default)
}

fn difference(commands: &[SimpleCommand], ran: &[Vec<String>]) -> Option<Vec<String>> {
    ran.iter().find(|ran| !commands.iter().any(|command| fits(&command.words, ran))).cloned()
}

#[expect(clippy::print_stdout, reason = "how much a soak has tried is worth knowing")]
#[tokio::test(flavor = "multi_thread")]
async fn whatever_bash_runs_of_an_analyzable_text_is_named() {
    let room = Room::new();
    let mut dice = Dice(of_environment(SEED_VARIABLE, SEED_DEFAULT));
    let wanted = of_environment(TEXTS_VARIABLE, TEXTS_DEFAULT);
    let (mut made, mut clear, mut runs) = (0, 0, 0);
    let mut differences = String::new();
    while clear < wanted {
        // What is not analyzable claims nothing: bash need not be asked.
        let mut texts = Vec::new();
        while texts.len() < BATCH.min(wanted - clear) {
            let text = text(&mut dice);
            made += 1;
            if let Analyzed::Commands(commands) = analyze(&text) {
                texts.push((text, commands));
            }
        }
        clear += texts.len();
        let file: String = texts.iter().flat_map(|(text, _)| [text.as_str(), "\0"]).collect();
        std::fs::write(room.ws().join("texts"), file).unwrap();
        let ended = room.try_bash(DRIVER, Access::Write, Duration::from_secs(300)).await.unwrap();
        assert_eq!(ended.stdout.text, format!("{} texts\n", texts.len()), "{ended:?}");
        for (number, (text, commands)) in texts.iter().enumerate() {
            // No log: it ran no program.
            let log = std::fs::read_to_string(room.ws().join("log").join(number.to_string())).unwrap_or_default();
            let ran = ran(&log);
            runs += ran.len();
            if let Some(words) = difference(commands, &ran) {
                let named: Vec<String> = commands.iter().map(SimpleCommand::shown).collect();
                writeln!(differences, "{text:?}\n  runs {words:?}\n  named are {named:?}").unwrap();
            }
        }
        for made in ["log", "cwd"] {
            toolhost_sandbox::remove_folder(&room.ws().join(made)).unwrap();
        }
    }
    println!("{made} texts were made, {clear} of them are analyzable, and bash ran {runs} programs of these");
    assert!(differences.is_empty(), "{differences}");
    assert!(clear * 10 > made, "only {clear} of {made} are analyzable");
    assert!(runs > clear, "bash ran only {runs} programs in {clear} texts");
}
