//! What rules say of commands.

use super::*;

use toolhost_contract::{CommandArgument, Facts};

const BASH: Facts = Facts {
    effect: Effect::Executes,
    paths: &["cwd"],
    command: Some(CommandArgument { name: "command", input: "stdin" }),
    ..toolhost_testkit::facts::READS
};

/// Just enough of `bash` for rules about it.
struct FakeBash;

impl toolhost_contract::AnyTool for FakeBash {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "bash".into(),
            title: "Run".into(),
            description: "runs".to_owned(),
            facts: BASH,
            version: 1,
            aliases: Vec::new(),
            other_names: &[],
            called_elsewhere: &[],
            input_schema: serde_json::json!({"type": "object", "properties": {"command": {"type": "string"}}}),
            output_schema: toolhost_contract::Packed::new(&serde_json::json!({})),
            examples: Vec::new(),
        }
    }

    fn run<'a>(
        &'a self,
        _: &'a toolhost_contract::Ctx<'a>,
        _: Value,
    ) -> toolhost_contract::BoxFuture<'a, Result<toolhost_contract::Success, toolhost_contract::ToolError>> {
        Box::pin(std::future::ready(Err(toolhost_contract::ToolError::internal("never run"))))
    }
}

#[test]
fn a_rule_about_what_is_not_there_is_refused() {
    let none = rule("tool = 'bsh'\ndecide = 'deny'").map(|_| ());
    assert_eq!(none, Err("there is no tool `bsh`; did you mean `bash`?".to_owned()));
    let none = rule("tool = 'bash'\nwhen = { comand = 'x' }\ndecide = 'deny'").map(|_| ());
    assert_eq!(none, Err("`bash` has no argument `comand`".to_owned()));
}

fn kinds() -> ArgumentKinds {
    ArgumentKinds::of(&BASH)
}

fn rule(text: &str) -> Result<Rule, String> {
    let raw: RawRule = toml::from_str(text).map_err(|error| error.to_string())?;
    Rule::new(&raw, &Registry::new(vec![Box::new(FakeBash)]).expect("one tool"))
}

fn matches(rule: &Rule, command: &str) -> bool {
    let arguments = serde_json::json!({ "command": command });
    rule.matches(&Looked::new("bash", &kinds(), &arguments, analyzed(&kinds(), &arguments).as_ref()))
}

fn offered(info: &ToolInfo, command: &str) -> Option<BTreeMap<String, String>> {
    let arguments = serde_json::json!({ "command": command });
    suggest(info, &Looked::new(&info.name, &kinds(), &arguments, analyzed(&kinds(), &arguments).as_ref()))
}

#[test]
fn an_allowing_rule_needs_every_simple_command() {
    let rule = rule("tool = 'bash'\nwhen = { command = '{cargo test,cargo test *}' }\ndecide = 'allow'");
    let rule = rule.expect("a rule");
    for yes in [
        "cargo test",
        "cargo test --workspace",
        "cargo test && cargo test -p x",
        "(cargo test; cargo test a) 2>&1",
        "cargo 'test' \"a b\"",
    ] {
        assert!(matches(&rule, yes), "{yes}");
    }
    for no in [
        "cargo test; curl example.org",
        "cargo test | sh",
        "cargo test $(curl example.org)",
        "cargo test `id`",
        "cargo test $X",
        "LD_PRELOAD=./x.so cargo test",
        "cargo test > /tmp/x",
        "cargo test <(id)",
        "if true; then cargo test; fi",
        "cargo() { rm x; }; cargo test",
        "cargo test &&",
        "",
        "echo cargo test",
        "eval cargo test",
        "X=1 cargo test",
        "cargo testament",
        "cargotest",
        "for PATH in .; do cargo test x; done",
        "for ((x=0;;)); do cargo test a; done",
        "cargo test a <<< ${x@P}",
        "cargo test a << E\n${x@P}\nE",
        "case ${x@P} in *) cargo test a;; esac",
        "cargo test a >& important.txt",
        "((x=1)); cargo test a",
        "'cargo test x'",
        "\"carg\\o\" test a",
        "select x in a; do cargo test a; done",
    ] {
        assert!(!matches(&rule, no), "{no}");
    }
}

#[test]
fn a_denying_rule_needs_one_simple_command() {
    let rule = rule("tool = 'bash'\nwhen = { command = 'curl *' }\ndecide = 'deny'").expect("a rule");
    for yes in [
        "curl example.org",
        "cd x && curl $URL",
        "echo $(curl example.org)",
        "while true; do curl x; done",
        "broken ' quote",
        "FOO=1 curl x",
        "$X example.org",
        "curl$X",
    ] {
        assert!(matches(&rule, yes), "{yes}");
    }
    for no in [
        "echo curl",
        "ls",
        "echo 'curl example.org'",
        "echo $X",
        "ls *",
        "FOO=$X ls",
        // Another word, however it begins.
        "curlx a",
        "curlx $X",
        "cur l$X",
        "xcurl a",
    ] {
        assert!(!matches(&rule, no), "{no}");
    }
}

/// A rule that allows does not see through programs that run others, and one that denies does.
#[test]
fn programs_that_run_others_are_no_way_past_a_rule() {
    let rule_of = |pattern: &str, decide: &str| {
        rule(&format!("tool = 'bash'\nwhen = {{ command = '{pattern}' }}\ndecide = '{decide}'")).expect("a rule")
    };
    let (allow, deny) = (rule_of("cargo test*", "allow"), rule_of("cargo test*", "deny"));
    for inside in [
        "env cargo test",
        "env -i X=1 cargo test",
        "timeout 5 cargo test",
        "nice cargo test",
        "nohup cargo test",
        "sudo cargo test",
        "xargs cargo test",
        "find . -exec cargo test",
        "bash -c 'cargo test'",
        "/usr/bin/cargo test",
    ] {
        assert!(!matches(&allow, inside), "allowed: {inside}");
        assert!(matches(&deny, inside), "not denied: {inside}");
    }
    // What the shell runs itself is not analyzable.
    for inside in ["command cargo test", "exec cargo test", "builtin cargo test", ". ./cargo", "source cargo", "eval x"]
    {
        assert!(!matches(&allow, inside), "allowed: {inside}");
        assert!(matches(&deny, inside), "not denied: {inside}");
    }
}

#[test]
fn what_was_not_analyzed_counts_as_not_analyzable() {
    let arguments = serde_json::json!({ "command": "ls" });
    for (decide, expected) in [("allow", false), ("ask", true), ("deny", true)] {
        let rule = rule(&format!("tool = 'bash'\nwhen = {{ command = 'ls' }}\ndecide = '{decide}'"));
        assert_eq!(
            rule.expect("a rule").matches(&Looked::new("bash", &kinds(), &arguments, None)),
            expected,
            "{decide}"
        );
    }
}

/// What bash and a reader may take for different things.
const UNCLEAR: &[&str] = &[
    "echo test a\u{b}# ; touch X",
    "echo test a\u{c}# ; touch X",
    "echo test a\r# ; touch X",
    "echo test a\\\n# ; touch X",
    "echo test a\\\u{b}# ; touch X",
    "echo test a << E\n`touch X`\nE",
    "[[ -v 'a[$(touch E)]' ]]",
    "echo test `touch X`",
    "eval touch X",
    "$X a",
    "RANDOM='a[$(touch E)]'",
];

#[test]
fn what_is_not_analyzable_is_allowed_by_no_rule_and_matched_by_every_other() {
    for pattern in ["echo test *", "*", "touch *", "cargo test", "[[]*"] {
        for (decide, expected) in [("allow", false), ("ask", true), ("deny", true)] {
            let text = format!("tool = 'bash'\nwhen = {{ command = '{pattern}' }}\ndecide = '{decide}'");
            let rule = rule(&text).expect("a rule");
            for command in UNCLEAR {
                assert_eq!(matches(&rule, command), expected, "{decide} {pattern}: {command:?}");
            }
        }
    }
    let info = toolhost_contract::AnyTool::info(&FakeBash);
    for command in UNCLEAR {
        assert_eq!(offered(&info, command), None, "{command:?}");
        let permission = BTreeMap::from([("command".to_owned(), "*".to_owned())]);
        let permission = Rule::permission("bash", &permission).expect("a permission");
        assert!(!matches(&permission, command), "{command:?}");
    }
    let offered = |command: &str| offered(&info, command);
    let rule = |pattern: &str| Some(BTreeMap::from([("command".to_owned(), pattern.to_owned())]));
    assert_eq!(offered("echo test a"), rule("echo test *"));
    assert_eq!(offered("git push"), rule("git push"));
    assert_eq!(offered("echo 'a b' c"), rule("echo 'a b' c"), "a word with a blank is one word");
    assert_eq!(offered("wc -l < f"), None, "what it reads may be another");
    assert_eq!(offered("echo $X"), None);
    assert_eq!(offered("ls; ls"), None);
    assert_eq!(offered("ls > f"), None);
}

#[test]
fn a_rule_s_pattern_has_limits() {
    let deep = format!("{}b{}", "{a,".repeat(200), "}".repeat(200));
    let refused = rule(&format!("tool = 'bash'\nwhen = {{ command = '{deep}' }}\ndecide = 'deny'")).map(|_| ());
    assert_eq!(refused, Err("glob: it nests braces more than 10 deep".to_owned()));
}

#[test]
fn a_rule_that_fails_its_own_examples_is_refused() {
    let broken = rule("tool = 'bash'\nwhen = { command = 'cargo *' }\ndecide = 'allow'\nnot_match = ['cargo publish']");
    assert_eq!(broken.map(|_| ()), Err("it matches its own example \"cargo publish\"".to_owned()));
    let broken = rule("tool = 'bash'\nwhen = { command = 'cargo test*' }\ndecide = 'allow'\nmatch = ['cargo build']");
    assert_eq!(broken.map(|_| ()), Err("it does not match its own example \"cargo build\"".to_owned()));
}

#[test]
fn the_offer_for_a_command_whose_first_words_do_not_say_what_it_does_is_that_command() {
    let bash = toolhost_contract::AnyTool::info(&FakeBash);
    let pattern = |command: &str| offered(&bash, command).map(|rule| rule["command"].clone());
    assert_eq!(pattern("cargo test -p x").as_deref(), Some("cargo test *"));
    for command in [
        "sh -c 'ls a'",
        "/bin/bash -c 'ls a'",
        "python3.11 tool.py a",
        "git -c core.pager=x log",
        "env ls a",
        "timeout 5 ls a",
        "node -e 'x()'",
        "find . -delete",
        "X=1 ls a b",
        "tar tf x",
        "split a b",
        "gdb a b",
        "zip a x",
        "sqlite3 a b",
        "rsync a b",
        "go build x y",
        "cargo run x",
        "npm install x",
        "psql a b",
        "cmake . x",
        "./cargo test x",
    ] {
        let offered = pattern(command);
        assert!(offered.as_ref().is_none_or(|pattern| !pattern.ends_with(" *")), "{command}: {offered:?}");
        let Some(pattern) = offered else { continue };
        let rule = rule(&format!(
            "tool = 'bash'\nwhen = {{ command = \"\"\"{}\"\"\" }}\ndecide = 'allow'",
            pattern.replace('\\', "\\\\")
        ));
        let rule = rule.expect("a rule");
        assert!(matches(&rule, command) && !matches(&rule, &format!("{command} more")), "{command}");
    }
}

/// Each of them runs `touch x`, or something of which it is not certain what it is.
const TOUCHES: &[&str] = &[
    "/usr/bin/touch x",
    "env touch x",
    "env -i A=1 /bin/touch x",
    "timeout 5 touch x",
    "nice -n 5 nohup setsid touch x",
    "stdbuf -o0 touch x",
    "flock f touch x",
    "setpriv --nnp touch x",
    "echo x | xargs touch",
    "find . -maxdepth 0 -exec touch x ';'",
    "find . -execdir /bin/touch x +",
    "sh -c 'touch x'",
    "bash -lc 'cd /; touch x'",
    "sh -c \"$TEXT\"",
    "bash <<< 'touch x'",
    "echo touch x | bash",
    "echo touch x | sh -s",
    "git -c alias.x='!touch x' x",
    "git -C a -c core.fsmonitor='touch x' status",
    "git --config-env=core.pager=P log",
    "git --exec-path=. x",
    "sudo -u a touch x",
    "env -S'touch x'",
    "env -S 'touch x'",
    "env -S 'A=1 touch' x",
    "env -S '-u A touch' x",
    "env --split-string='touch x'",
    "env -S 't${E}ouch x'",
    "env -S 'to\"uch\" x'",
    "env -vS 'touch x'",
    "env BASH_ENV='$(touch x)' bash -c true",
    "env 'BASH_FUNC_cat%%=() { touch x; }' bash -c cat",
    "env $PROGRAM x",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!touch x' git x",
    "env GIT_CONFIG_PARAMETERS=\"'alias.x=!touch x'\" git x",
    "PAGER='touch x' git log",
    "env GIT_SSH_COMMAND='sh -c \"touch x\"' git fetch",
    "GIT_EDITOR=$E git commit",
    "ls | xargs env",
    "ls | parallel touch",
    "echo touch x | rbash",
    "echo touch x | bash /dev/stdin",
    "echo touch x | sh -",
    "script -q --command='touch x' /dev/null",
    "prlimit --nofile=5 touch x",
    "chrt 5 touch x",
    "linux64 touch x",
    "ssh-agent touch x",
    "valgrind touch x",
    "capsh -- -c 'touch x'",
    "uclampset -m 100 touch x",
    "tar tf x --checkpoint=1 --checkpoint-action=exec='touch x'",
    "tar xf x -I 'touch x'",
    "tar cIf 'touch x' a b",
    "split x --filter='touch x'",
    "git ls-remote --upload-pack='touch x' .",
    "make --eval='x:;touch x'",
    "git rebase -x 'touch x' HEAD~1",
    "git -C a bisect run touch x",
    "git submodule foreach 'touch x'",
    "git grep -O'touch x' a",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch x",
    "ld.so /usr/bin/touch x",
    "/lib/ld-musl-x86_64.so.1 /usr/bin/touch x",
    "logsave /dev/null touch x",
    "rustup run stable touch x",
    "printf 'x:' | make -f -",
    "cargo --config 'build.rustc-wrapper=\"./touch\"' build",
    "tar xf x.tar --to-com='touch x'",
    "tar -cf y.tar a --use-comp='touch x;cat'",
    "tar --checkpoint=1 --checkpoint-act=exec='touch x' -cf y a",
    "git ls-remote --up='touch x' .",
    "git clone -u 'touch x' . c",
    "git grep --open-files='touch x' hi",
    "git rebase --ex='touch x' HEAD",
    "git archive --remote=. --ex='touch x' HEAD",
    "git clone 'ext::touch x' y",
    "git merge-index touch -a",
    "git for-each-repo --config=x st",
    "git st",
    "git config --global alias.st '!touch x' && git -C a st",
    "HOME=. git log",
    "XDG_CONFIG_HOME=. git log",
    "export PATH=.; ls",
    "PATH=.:$PATH ls",
    "PATH=.; ls",
    "LD_PRELOAD=./x.so ls",
    "env LD_PRELOAD=./x.so ls",
    "echo x | xargs -I{} touch {}",
    "echo touch | xargs -I{} {} x",
    "echo touch | xargs -I% /bin/% x",
    "echo touch | xargs --replace=T T x",
    "parallel {} x ::: touch",
    "find touch -exec {} x ';'",
    "find . -name t -okdir {}ouch x +",
    "env --split='touch x'",
    "sort --compress-prog='touch x' f",
    "split --filt='touch x' f",
    "rsync --rs='touch x' a b",
    "ssh -o ProxyCommand='touch x' y",
    "man -P 'touch x' ls",
    "gcc -wrapper touch,x x.c",
    "sqlite3 :memory: '.shell touch x'",
    "socat - EXEC:'touch x'",
    "start-stop-daemon -S -x /usr/bin/touch -- x",
    "run-parts .",
    "sg root -c 'touch x'",
    "systemd-inhibit touch x",
    "echo touch | xargs -iZ env Z x",
    "echo touch | xargs -rI Z env Z x",
    "echo touch | xargs --repl=Z env Z x",
    "echo x | xargs --max-a 1 touch",
    "git grep -nO'touch x;:' hi",
    "git clone -qu 'touch x;false' . c",
    "ssh -vo ProxyCommand='touch x' y",
    "make -BsE 'x:;touch x'",
    "make -E 'x:;touch x'",
    "rsync -ae 'touch x' a h:b",
    "script -c'touch x' /dev/null",
    "script -qc'touch x' /dev/null",
    "script -q -c'touch x' /dev/null",
    "MAKEFLAGS=--eval='all:;touch\\ x' make",
    "GNUMAKEFLAGS=--eval='all:;touch\\ x' make",
    "TAR_OPTIONS='--to-command=touch\\ x' tar xf t.tar",
    "CC='touch x' make",
    "RUSTC_WRAPPER=/bin/touch cargo build",
    "RSYNC_RSH='touch x' rsync a h:b",
    "gcc @options x.c",
    "gcc -Wl,-plugin,./x x.c",
    "gdb --args touch x",
    "gdb -batch -ex '!touch x'",
    "gdb -q -ex='shell touch x'",
    "gdb -x commands",
    "lldb -o 'platform shell touch x'",
    "vim -es '+!touch x' +q",
    "ex a",
    "ed a",
    "emacs --batch --eval '(shell-command \"touch x\")'",
    "ip netns exec a touch x",
    "screen -dm touch x",
    "tmux new -d 'touch x'",
    "echo touch x | parallel",
    "parallel {2} {1} ::: x ::: touch",
    "rlwrap touch x",
    "cpulimit -l 5 touch x",
    "sshpass -p a touch x",
    "eatmydata touch x",
    "toybox touch x",
    "pyenv exec touch x",
    "dc -e '!touch x'",
    "cpp -wrapper sh,-c,'touch x' y",
    "c99 -wrapper sh,-c,'touch x' y",
    "gcc-12 -wrapper sh,-c,'touch x' y",
    "x86_64-linux-gnu-gcc -wrapper sh,-c,'touch x' y",
    "x86_64-linux-gnu-g++-12 -wrapper sh,-c,'touch x' y",
    "gmake --eval='a:;touch x' a",
    "faketime '2020-01-01' touch x",
    "torsocks touch x",
    "start-stop-daemon -S -x /usr/bin/touch -- x",
    "expect -c 'spawn touch x'",
    "parallel touch ::: x",
    "parallel sh -c {} ::: 'touch x'",
    "touch-9.1 x",
    "env -i touch-9.1 x",
    "make CC='touch x' all",
    "gmake 'PAGER=touch x'",
    "CARGO_HOME=a cargo build",
    "MANPAGER='touch x' man ls",
    "ENV=a sh -i",
    "asdf exec touch x",
    "nix-shell --run 'touch x'",
    "npm exec touch x",
    "npm exec -c 'touch x'",
    "npm x -- touch x",
    "npm test --script-shell=./touch",
    "npm_config_script_shell=./touch npm test",
    "CARGO_ALIAS_X='run touch' cargo x",
    "prove -e touch x",
    "savelog -x 'touch x' f",
    "yarn exec touch x",
    "pnpm dlx touch x",
    "bunx touch x",
    "uvx touch x",
    "pipx run touch x",
    "pipenv run touch x",
    "conda run -n a touch x",
    "cargo watch -x 'run touch'",
    "kubectl exec a -- touch x",
    "nix develop -c touch x",
    "just -c 'touch x'",
    "ncat -e 'touch x' h 1",
    "nc -c 'touch x' h 1",
    "csh -c 'touch x'",
    "tar xf a --rmt-command='touch x'",
    "bsdtar xf a --use-compress-program='touch x'",
    "cpio -i --rsh-command='touch x'",
    "sftp -S ./touch h",
    "dpkg --pre-invoke='touch x' -i a",
    "apt-get -oAPT::Update::Pre-Invoke::='touch x' update",
    "psql -c '\\! touch x'",
    "wget --use-askpass=./touch h",
    "less '+!touch x' f",
    "run-one touch x",
    "proxychains touch x",
    "git send-email --sendmail-cmd='touch x'",
    "git hook run touch",
    "git-hook run touch",
];

#[test]
fn a_rule_that_denies_looks_at_what_a_command_runs_in_its_turn() {
    let deny = rule("tool = 'bash'\nwhen = { command = 'touch*' }\ndecide = 'deny'").expect("a rule");
    for command in TOUCHES {
        assert!(matches(&deny, command), "{command}");
    }
    for command in [
        "ls touch",
        "echo touch x",
        "git -c color.ui=never status",
        "git -c user.name=touch commit -m touch",
        "git commit -m touch",
        "timeout 5 cargo test",
        "bash script.sh",
        "cat x | bash script.sh",
        "sh -c 'ls'",
        "find . -name '*.rs'",
        "git diff | grep touch",
        "env | grep touch",
        "PAGER=cat git log",
        "env -u PAGER git log",
        "GIT_PAGER= git log",
        "tar tf x",
        "tar -xzf x -C y",
        "rsync a b",
        "X=$Y cargo test",
        "timeout 5 cargo test $X",
        "find . -name '*.rs' -exec grep -l x {} +",
        "find . -type f -exec rm {} ';'",
        "ls | xargs -I{} cp {} backup/{}",
        "ls | xargs --max-procs 2 -i cp {} backup/{}",
        "ls | xargs -rn1 wc -l",
        "git grep -n hi",
        "git clone --quiet . c",
        "make -Bs all",
        "script -q log",
        "git log --oneline --stat",
        "git branch --unset-upstream",
        "git push -u origin main",
        "tar --extract --file x.tar",
        "export RUST_LOG=debug; cargo test",
        "gcc -O2 -Wall -o x x.c",
    ] {
        assert!(!matches(&deny, command), "{command}");
    }
    let allow = rule("tool = 'bash'\nwhen = { command = 'touch*' }\ndecide = 'allow'").expect("a rule");
    assert!(!matches(&allow, "env touch x") && !matches(&allow, "/usr/bin/touch x"));
    // A rule that a person has widened does not allow what only an option says; the very command may be allowed.
    for (command, wide) in [
        ("tar xf x.tar --to-com='touch x'", "tar *"),
        ("tar xf x.tar --to-command='touch x'", "tar *"),
        ("git clone -u 'touch x' . c", "git *"),
        ("git st", "git *"),
        ("find . -exec touch x ';'", "find *"),
        ("script -c 'touch x' /dev/null", "script *"),
        ("script -c'touch x' /dev/null", "script *"),
        ("ssh -vo ProxyCommand='touch x' y", "ssh *"),
        ("make -E 'x:;touch x'", "make *"),
        ("rsync -ae 'touch x' a h:b", "rsync *"),
        ("gcc @options x.c", "gcc *"),
        ("find . -delete", "find . *"),
    ] {
        let allow =
            |pattern: &str| Rule::permission("bash", &BTreeMap::from([("command".to_owned(), pattern.to_owned())]));
        // What it deletes it says itself.
        let runs_others = command != "find . -delete";
        assert_eq!(matches(&allow(wide).expect("a rule"), command), !runs_others, "{command}");
        let Some(Analyzed::Commands(commands)) = analyzed(&kinds(), &serde_json::json!({ "command": command })) else {
            unreachable!("`{command}` is analyzable")
        };
        let whole = globset::escape(&commands[0].told_apart());
        assert!(matches(&allow(&whole).expect("a rule"), command), "{whole}");
    }
}

#[test]
fn options_before_a_subcommand_hide_it_from_no_rule_that_denies() {
    let deny =
        rule("tool = 'bash'\nwhen = { command = '{cargo publish*,git push*}' }\ndecide = 'deny'").expect("a rule");
    for command in [
        "cargo +nightly publish",
        "cargo -q publish --dry-run",
        "cargo --color never publish",
        "cargo -C . --offline publish",
        "cargo --color=never --offline --locked publish",
        "/usr/bin/cargo -q publish",
        "git -C a push",
        "git --no-pager -C a push origin",
        "git-push",
        "/usr/lib/git-core/git-push origin",
        "git send-pack . main",
        "git-send-pack . main",
    ] {
        assert!(matches(&deny, command), "{command}");
    }
    for command in [
        "cargo -q test",
        "cargo --color never build",
        "cargo test publish",
        "git -C a status",
        "git log push",
        "git-status",
        "npm rm push",
    ] {
        assert!(!matches(&deny, command), "{command}");
    }
}

#[test]
fn a_rule_that_denies_looks_at_what_a_command_reads() {
    let deny = rule("tool = 'bash'\nwhen = { command = 'touch*' }\ndecide = 'deny'").expect("a rule");
    for (command, input, expected) in [
        ("sh", "touch x", true),
        ("bash -s", "touch x", true),
        ("env bash", "touch x", true),
        ("cd a && sh", "touch x", true),
        ("cat", "touch x", false),
        ("bash script.sh", "touch x", false),
        ("sh", "", false),
    ] {
        let arguments = serde_json::json!({ "command": command, "stdin": input });
        let command_of = analyzed(&kinds(), &arguments);
        assert_eq!(
            deny.matches(&Looked::new("bash", &kinds(), &arguments, command_of.as_ref())),
            expected,
            "{command} < {input}"
        );
    }
    let rm = rule("tool = 'bash'\nwhen = { command = '{rm *,git push *}' }\ndecide = 'deny'").expect("a rule");
    for command in [
        "ls | xargs rm",
        "ls | xargs -n1 git push",
        "ls | xargs -d '\\n' -P 2 rm",
        "ls | xargs --max-args 1 rm",
        "ls | xargs --delim , --max-p 2 rm",
        "ls | xargs --arg-file f --process-slot-var V rm",
        "ls | xargs -rn 1 rm",
        "ls | parallel -j 2 rm",
        "EDITOR=rm git commit",
    ] {
        assert!(matches(&rm, command), "{command}");
    }
}

#[test]
fn white_space_around_an_id_hides_it_from_no_rule() {
    let deny = rule("tool = 'bash'\nwhen = { command = 'x' }\ndecide = 'deny'").expect("a rule");
    let glob = glob("TKT-001").expect("a glob");
    for text in ["TKT-001", " TKT-001", "TKT-001\t", "\ntkt-1", "TKT-1\u{a0}", "\u{3000}TKT-001"] {
        assert!(deny.matches_text(&glob, text), "{text:?}");
    }
    assert!(!deny.matches_text(&glob, "TKT-002 "));
}

#[test]
fn a_rule_about_a_path_is_about_each_of_several() {
    let facts = Facts { paths: &["path", "paths"], ..toolhost_testkit::facts::READS };
    let kinds = ArgumentKinds::of(&facts);
    let rule = |decide| {
        let allow = Rule::permission("file.read", &BTreeMap::from([("path".to_owned(), "docs/*".to_owned())]));
        Rule { decide, ..allow.expect("a rule") }
    };
    let (allow, deny) = (rule(Decide::Allow), rule(Decide::Deny));
    for (arguments, allowed, denied) in [
        (serde_json::json!({ "path": "docs/a" }), true, true),
        (serde_json::json!({ "path": "src/a" }), false, false),
        (serde_json::json!({ "paths": ["docs/a", "./docs//b"] }), true, true),
        (serde_json::json!({ "paths": ["src/a", "docs/a"] }), false, true),
        (serde_json::json!({ "paths": ["src/a"] }), false, false),
        (serde_json::json!({ "path": "docs/a", "paths": ["src/a"] }), false, true),
        (serde_json::json!({ "path": null, "paths": ["src/a"] }), false, false),
        (serde_json::json!({}), false, true),
    ] {
        let call = Looked::new("file.read", &kinds, &arguments, None);
        assert_eq!((allow.matches(&call), deny.matches(&call)), (allowed, denied), "{arguments}");
    }
}
