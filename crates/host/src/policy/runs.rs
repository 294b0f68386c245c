//! What a command may run beyond its own first word, for rules that ask or deny: a wrapper's command, a shell's text.

use toolhost_contract::shell::{SimpleCommand, Word};

use super::pattern::Pattern;
use super::permission::is_runner;

/// Programs that run what is among their arguments, beside those that a permission is not generalised over.
const ALSO_RUN: &[&str] = &[
    "asdf",
    "bundle",
    "bunx",
    "bwrap",
    "capsh",
    "catchsegv",
    "ccache",
    "cgexec",
    "chronic",
    "cmake",
    "coresched",
    "cpulimit",
    "csh",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "eatmydata",
    "entr",
    "expect",
    "faketime",
    "fd",
    "firejail",
    "gdb",
    "gpg-agent",
    "hyperfine",
    "ifne",
    "ip",
    "just",
    "lldb",
    "logsave",
    "ltrace",
    "mise",
    "nc",
    "ncat",
    "nodenv",
    "nsenter",
    "numactl",
    "pee",
    "perf",
    "pipesz",
    "pipx",
    "pkexec",
    "poetry",
    "prove",
    "proxychains",
    "proxychains4",
    "pyenv",
    "rbenv",
    "rlwrap",
    "run-one",
    "runcon",
    "runuser",
    "rustup",
    "savelog",
    "screen",
    "sem",
    "setarch",
    "setpriv",
    "sg",
    "sshpass",
    "start-stop-daemon",
    "su",
    "systemd-inhibit",
    "systemd-run",
    "tcsh",
    "tini",
    "tmux",
    "torify",
    "torsocks",
    "toybox",
    "tsocks",
    "uclampset",
    "uname26",
    "unbuffer",
    "unshare",
    "uv",
    "uvx",
    "valgrind",
    "watchexec",
    "xvfb-run",
    "yash",
];
/// Subcommands that run what is among their arguments.
const SUBCOMMANDS_RUN: &[(&str, &[&str])] = &[
    ("bun", &["x"]),
    ("conda", &["run"]),
    ("hatch", &["run"]),
    ("kubectl", &["exec"]),
    ("mamba", &["run"]),
    ("micromamba", &["run"]),
    ("nix", &["develop", "run", "shell"]),
    ("npm", &["exec", "x"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("rye", &["run"]),
    ("yarn", &["dlx", "exec"]),
];
/// Other names of programs; a version behind it and a target before it are taken off before.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("bsdtar", "tar"),
    // c89 and c99.
    ("c", "gcc"),
    ("clang++", "clang"),
    ("cpp", "gcc"),
    ("gfind", "find"),
    ("gfortran", "gcc"),
    ("gmake", "make"),
    ("gtar", "tar"),
    ("gxargs", "xargs"),
    ("remake", "make"),
    ("sftp", "scp"),
];
/// Options of programs that name a command. One of one or two characters may have it attached.
const COMMAND_OPTIONS: &[(&str, &[&str])] = &[
    (
        "tar",
        &[
            "--checkpoint-action",
            "--use-compress-program",
            "--to-command",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "-I",
            "-F",
        ],
    ),
    ("split", &["--filter"]),
    ("git", &["--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager"]),
    ("cc", COMPILER),
    ("c++", COMPILER),
    ("clang", COMPILER),
    ("g++", COMPILER),
    ("gcc", COMPILER),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("ssh", &["-o", "-F"]),
    ("make", &["--eval", "-E", "SHELL"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-D", "-S", "-o"]),
    ("apt-get", &["-o", "--option"]),
    ("apt", &["-o", "--option"]),
    ("cpio", &["--rsh-command", "--rmt-command"]),
    ("csh", &["-c"]),
    ("dpkg", &["--post-invoke", "--pre-invoke"]),
    ("expect", &["-b", "-c", "-f"]),
    ("just", &["-c", "--command", "--shell"]),
    ("less", &["+"]),
    ("nc", &["-c", "-e"]),
    ("ncat", &["-c", "-e", "--exec", "--lua-exec", "--sh-exec"]),
    ("nix", &["-c", "--command"]),
    ("nix-shell", &["--command", "--run"]),
    ("npm", &["-c", "--call", "--script-shell"]),
    ("prove", &["-e", "--exec"]),
    ("psql", &["-c", "-f", "--command", "--file"]),
    ("savelog", &["-x"]),
    ("tcsh", &["-c"]),
    ("wget", &["-e", "--config", "--execute", "--use-askpass"]),
    ("yash", &["-c"]),
    ("sort", &["--compress-program"]),
    ("go", &["-exec", "-toolexec", "-vettool"]),
    ("cargo", &["--config"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("gdb", GDB),
    ("lldb", &["-o", "-O", "-s", "-S", "-k", "-K", "--one-line", "--source", "-P", "--repl"]),
    ("emacs", &["-f", "-l", "--eval", "--execute", "--funcall", "--load", "--script", "-x"]),
    ("nvim", EDITOR),
    ("vi", EDITOR),
    ("view", EDITOR),
    ("vim", EDITOR),
];
/// What a debugger is to do, which may be a shell's command.
const GDB: &[&str] = &[
    "-ex",
    "--ex",
    "-eval-command",
    "--eval-command",
    "-iex",
    "--iex",
    "-init-eval-command",
    "--init-eval-command",
    "-x",
    "--x",
    "-command",
    "--command",
    "-ix",
    "--ix",
    "-init-command",
    "--init-command",
];
/// What an editor is to do, which may be a shell's command.
const EDITOR: &[&str] = &["-c", "--cmd", "-s", "-S", "-u", "+"];
/// Compilers, which may be called with a target before the name.
const COMPILERS: &[&str] = &["c++", "cc", "clang", "clang++", "cpp", "g++", "gcc", "gfortran"];
/// Those of compilers.
const COMPILER: &[&str] = &["-wrapper", "-B", "-specs", "--specs", "-fplugin"];
/// Programs that run what stands in a word of theirs behind one of these.
const COMMAND_WORDS: &[(&str, &[&str])] = &[
    ("git", &["ext::"]),
    ("dc", &["!"]),
    ("cc", LINKER),
    ("c++", LINKER),
    ("clang", LINKER),
    ("g++", LINKER),
    ("gcc", LINKER),
    ("socat", &["EXEC:", "exec:", "SYSTEM:", "system:", "SHELL:", "shell:"]),
    ("sqlite3", &[".shell", ".system", "edit("]),
];
/// What compilers hand to the linker, and files of further options.
const LINKER: &[&str] = &["-Wl,-plugin", "-Wl,--plugin", "-Xlinker", "@"];
/// Programs whose options of one letter stand together in a word: `ssh -vo` is `ssh -v -o`.
const CLUSTERING: &[&str] = &["make", "man", "rsync", "scp", "ssh"];
/// Programs that run files of a folder, or what their files or their input say, by a name that says nothing.
const RUN_FILES: &[&str] = &["ed", "ex", "run-parts"];
/// Settings of git that run nothing, for `git -c`; beginnings, in small letters.
const SETTINGS_PLAIN: &[&str] = &[
    "advice.",
    "color.",
    "column.",
    "commit.gpgsign",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.quotepath",
    "core.symlinks",
    "core.untrackedcache",
    "diff.algorithm",
    "diff.context",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "fetch.prune",
    "gc.auto",
    "i18n.",
    "init.defaultbranch",
    "log.date",
    "log.decorate",
    "log.showsignature",
    "maintenance.auto",
    "merge.conflictstyle",
    "merge.ff",
    "merge.renames",
    "protocol.version",
    "pull.ff",
    "pull.rebase",
    "push.default",
    "rebase.autostash",
    "safe.directory",
    "status.",
    "tag.gpgsign",
    "user.",
];

/// Whether a command, or one that it runs in its turn, may be what a rule names.
pub(super) fn may_run(command: &SimpleCommand, glob: &Pattern) -> bool {
    let mut open = vec![command];
    while let Some(command) = open.pop() {
        if command.may_match(|text| glob.is_match(text), glob.start()) || is_uncertain(command) || names(command, glob)
        {
            return true;
        }
        open.extend(&command.handed);
    }
    false
}

/// Whether it runs commands besides its own program, which a pattern of its first words says nothing of.
pub(super) fn runs_others(command: &SimpleCommand) -> bool {
    let is_find = command.words.first().is_some_and(|program| name_of(program) == "find");
    is_uncertain(command) || ((is_find || command.is_shell()) && !command.handed.is_empty())
}

fn name_of(program: &Word) -> &str {
    program.text.rsplit('/').next().unwrap_or_default()
}

/// Whether a program has its row in a table under this name: `gcc` for `x86_64-linux-gnu-gcc-12` and `c99`.
fn is_called(name: &str, row: &str) -> bool {
    let plain = plain_name(name);
    let of_target = plain.rsplit_once('-').map_or(plain, |(_, tool)| tool);
    name == row
        || plain == row
        || (COMPILERS.contains(&of_target) && of_target == row)
        || OTHER_NAMES.iter().any(|(other, known)| (*other == plain || *other == of_target) && *known == row)
}

/// Without a version: `cargo` for `cargo-1.80`.
fn plain_name(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

/// The subcommand, of a program that is one of git's own: `git-push`.
fn of_git(name: &str) -> Option<Word> {
    name.strip_prefix("git-").filter(|sub| GIT_OWN.contains(sub)).map(Word::literal)
}

/// Whether its program without the folder it is in, or what stands among a wrapper's arguments, begins what the rule names.
fn names(command: &SimpleCommand, glob: &Pattern) -> bool {
    let Some((program, arguments)) = command.words.split_first().filter(|(program, _)| program.known) else {
        return false;
    };
    let name = name_of(program);
    let text = |first: &str, rest: &[Word]| {
        let words = std::iter::once(first).chain(rest.iter().map(|word| word.text.as_str()));
        glob.is_match(&words.collect::<Vec<_>>().join(" "))
    };
    let plain = plain_name(name);
    if (name != program.text && text(name, arguments))
        || (plain != name && text(plain, arguments))
        || behind_options(arguments).any(|rest| text(name, rest))
    {
        return true;
    }
    if let Some(sub) = of_git(name)
        && text("git", &[&[sub], arguments].concat())
    {
        return true;
    }
    // What `git push` itself runs.
    let pushes = arguments.iter().position(|word| word.text == "send-pack").filter(|_| name == "git");
    let pushed = pushes.and_then(|at| arguments.get(at + 1..)).or((name == "git-send-pack").then_some(arguments));
    if pushed.is_some_and(|rest| text("git", &[&[Word::literal("push")], rest].concat())) {
        return true;
    }
    // The loader of programs, under a name for each machine.
    let is_loader = ["ld-linux", "ld.so", "ld-musl"].iter().any(|loader| name.starts_with(loader));
    let has_subcommand = |subs: &[&str]| arguments.iter().any(|word| subs.contains(&word.text.as_str()));
    let by_subcommand = SUBCOMMANDS_RUN.iter().any(|(known, subs)| is_called(name, known) && has_subcommand(subs));
    if !is_runner(program) && !ALSO_RUN.iter().any(|known| is_called(name, known)) && !is_loader && !by_subcommand {
        return false;
    }
    // Arguments that it reads come behind those that are written there.
    let read = ["xargs", "parallel"].iter().any(|known| is_called(name, known)).then(|| Word::literal("..."));
    // Where in its arguments the command begins is the wrapper's own affair.
    (0..arguments.len()).any(|at| {
        let (first, rest) = (&arguments[at], &arguments[at + 1..]);
        let with_read = [rest, read.as_slice()].concat();
        // `start-stop-daemon -x git -- push`.
        let behind_end = rest.strip_prefix([Word::literal("--")].as_slice()).unwrap_or(rest);
        let program = name_of(first);
        first.known
            && (text(&first.text, rest)
                || [rest, &with_read, behind_end]
                    .iter()
                    .any(|rest| text(program, rest) || text(plain_name(program), rest)))
    })
}

/// What stands behind the options before a subcommand, each of which may have the next word as its value: `publish` of
/// `cargo --color never publish`.
fn behind_options(arguments: &[Word]) -> impl Iterator<Item = &[Word]> {
    let is_option = |word: &Word| word.text.starts_with(['-', '+']);
    let mut ends = Vec::new();
    let mut at = 0;
    while arguments.get(at).is_some_and(is_option) {
        at += 1;
        ends.push(at);
        // Its value, and what follows that.
        if arguments.get(at).is_some_and(|word| !is_option(word)) {
            ends.push(at + 1);
            at += usize::from(arguments.get(at + 1).is_some_and(is_option));
        }
    }
    ends.into_iter().filter_map(|at| arguments.get(at..)).filter(|rest| !rest.is_empty())
}

/// Subcommands of git that run what their arguments name, with the words that say so; none: all that they do.
const GIT_RUNS: &[(&str, &[&str])] = &[
    ("archive", &["--remote"]),
    ("bisect", &["run"]),
    ("clone", &["-u", "-c", "--config", "--template"]),
    ("difftool", &[]),
    ("filter-branch", &[]),
    ("for-each-repo", &[]),
    ("grep", &["-O", "--open-files-in-pager"]),
    ("hook", &["run"]),
    ("merge-index", &[]),
    ("mergetool", &[]),
    ("rebase", &["-x", "--exec", "-i", "--interactive"]),
    ("remote-ext", &[]),
    ("send-email", &["--cc-cmd", "--header-cmd", "--sendmail-cmd", "--smtp-server", "--to-cmd"]),
    ("submodule", &["foreach"]),
];
/// Subcommands that git has. Any other may be an alias of any command.
const GIT_OWN: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "fmt-merge-msg",
    "for-each-ref",
    "for-each-repo",
    "format-patch",
    "fsck",
    "gc",
    "get-tar-commit-id",
    "grep",
    "gui",
    "hash-object",
    "help",
    "hook",
    "index-pack",
    "init",
    "interpret-trailers",
    "lfs",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-index",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-refs",
    "patch-id",
    "prune",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "remote-ext",
    "repack",
    "replace",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-email",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stage",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-objects",
    "update-index",
    "update-ref",
    "update-server-info",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];

/// Whether a subcommand of git runs what its arguments name.
fn git_runs(arguments: &[Word]) -> bool {
    let Some((subcommand, rest)) = arguments.split_first() else { return false };
    let known = GIT_RUNS.iter().find(|(name, _)| *name == subcommand.text);
    known.is_some_and(|(_, words)| {
        let says = |word: &Word| {
            words.iter().any(|known| {
                word.text.starts_with(known) || abbreviates(&word.text, known) || is_in_cluster(&word.text, known)
            })
        };
        words.is_empty() || rest.iter().any(says)
    })
}

/// Whether it surely runs commands of which its text says nothing.
fn is_uncertain(command: &SimpleCommand) -> bool {
    let Some((program, arguments)) = command.words.split_first().filter(|(program, _)| program.known) else {
        return false;
    };
    let name = name_of(program);
    if command.runs_more || command.runs_its_input() || names_command(name, arguments) {
        return true;
    }
    // A text behind `-c` that is known has been taken apart.
    if command.is_shell() && command.handed.is_empty() && command.has_text() {
        return true;
    }
    // `parallel` puts the words behind `:::` into the command, at any place.
    if is_called(name, "parallel") && arguments.iter().any(|word| word.text.starts_with(":::")) {
        return true;
    }
    // A file of `make` that comes from its input.
    if is_called(name, "make") && command.fed && arguments.iter().any(|word| word.text == "-" || word.text == "-f-") {
        return true;
    }
    let in_word = COMMAND_WORDS.iter().filter(|(program, _)| is_called(name, program)).flat_map(|(_, marks)| *marks);
    if of_git(name).is_some_and(|sub| git_runs(&[&[sub], arguments].concat())) {
        return true;
    }
    // It runs subcommands of its own, again and again.
    if name == "cargo" && arguments.iter().any(|word| word.text == "watch") {
        return true;
    }
    if RUN_FILES.contains(&name)
        || in_word.into_iter().any(|mark| arguments.iter().any(|word| word.text.contains(mark)))
    {
        return true;
    }
    if name == "git" {
        if git_runs(arguments) || behind_options(arguments).any(git_runs) {
            return true;
        }
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "-c" if words.next().is_none_or(|setting| !is_plain(setting)) => return true,
                "-c" => {}
                "-C" | "--git-dir" | "--work-tree" | "--namespace" => drop(words.next()),
                text if text == "--exec-path"
                    || text.starts_with("--exec-path=")
                    || text.starts_with("--config-env") =>
                {
                    return true;
                }
                text if text.starts_with('-') => {}
                text => return word.known && !GIT_OWN.contains(&text),
            }
        }
    }
    false
}

/// Whether an option gives the program a command to run.
fn names_command(program: &str, arguments: &[Word]) -> bool {
    let options = COMMAND_OPTIONS.iter().filter(|(name, _)| is_called(program, name)).flat_map(|(_, options)| *options);
    let mut options = options.copied();
    let is_given = |option: &str| {
        arguments.iter().any(|word| {
            let rest = word.text.strip_prefix(option);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || option.len() <= 2)
                || abbreviates(&word.text, option)
                || (CLUSTERING.iter().any(|known| is_called(program, known)) && is_in_cluster(&word.text, option))
        })
    };
    // `tar cIf`, and `tar -xIf`.
    let in_cluster = is_called(program, "tar")
        && arguments.iter().enumerate().any(|(at, word)| {
            let is_cluster = word.text.starts_with('-') && !word.text.starts_with("--");
            (at == 0 || is_cluster) && !word.text.starts_with("--") && word.text.contains(['I', 'F'])
        });
    in_cluster || options.any(is_given)
}

/// Whether an option of one letter stands in a word with others, perhaps with its value: `-nOless` has `-O`.
fn is_in_cluster(word: &str, option: &str) -> bool {
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
    let cluster = word.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
    cluster.zip(letter).is_some_and(|(cluster, letter)| cluster.contains(letter))
}

/// Whether a word is the beginning of a long option, which is enough for most programs: `--to-com=x` for `--to-command=x`.
fn abbreviates(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    name.starts_with("--") && name.len() > 2 && option.starts_with(name)
}

/// Whether a setting such as `color.ui=never` runs nothing.
fn is_plain(setting: &Word) -> bool {
    let name = setting.text.split('=').next().unwrap_or_default().to_ascii_lowercase();
    setting.known && SETTINGS_PLAIN.iter().any(|plain| name.starts_with(plain))
}
