//! A person's repository, what commands plant in it, and the git commands that would run it.

use std::path::{Path, PathBuf};

use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use crate::ordinary::is_second_run;

/// A person at the workspace: no configuration but the repository's own.
pub(super) fn git(folder: &Path, args: &[&str]) -> std::process::Output {
    std::process::Command::new("git")
        .args(["-c", "user.name=p", "-c", "user.email=p@example.org", "-c", "init.defaultBranch=main"])
        // Nothing here has to outlast a failure of the machine.
        .args(["-c", "protocol.file.allow=always", "-c", "core.fsync=none"])
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_EDITOR", "true")
        .output()
        .unwrap()
}

pub(super) fn sure(folder: &Path, args: &[&str]) {
    let output = git(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(super) fn commit(folder: &Path, file: &str) {
    std::fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
    std::fs::write(folder.join(file), "one\n").unwrap();
    sure(folder, &["add", "-A"]);
    sure(folder, &["commit", "-qm", "first"]);
}

/// The repository of [`furnish`], made once for all rooms of a test.
pub(super) struct Template(TempDir);

impl Template {
    pub(super) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("room-").tempdir_in("/var/tmp").unwrap();
        std::fs::create_dir(folder.path().join("ws")).unwrap();
        furnish(&folder.path().join("ws"));
        Self(folder)
    }

    /// Fills a workspace, and the folder `outside` beside it with the origins of the submodules.
    pub(super) fn fill(&self, ws: &Path) {
        // Worktrees and submodules are told by absolute paths.
        const COPY: &str = r#"cp -a "$1"/ws/. ws && cp -a "$1"/outside/origin outside &&
            { grep -rlZF "$1" ws outside | xargs -0 sed -i "s,$1,$PWD,"; }"#;
        let mut copy = std::process::Command::new("bash");
        copy.args(["-c", COPY, "bash"]).arg(self.0.path()).current_dir(ws.parent().unwrap());
        assert!(copy.status().unwrap().success());
    }
}

/// A repository with a submodule in a submodule in a subfolder, a worktree inside, a linked hook, hooks of its own in a
/// subfolder of the workspace, and an included configuration.
fn furnish(ws: &Path) {
    let beside = ws.parent().unwrap().join("outside/origin");
    for name in ["inner", "outer"] {
        std::fs::create_dir_all(beside.join(name)).unwrap();
        sure(&beside.join(name), &["init", "-q"]);
        commit(&beside.join(name), "file");
    }
    let inner = beside.join("inner");
    sure(&beside.join("outer"), &["submodule", "--quiet", "add", inner.to_str().unwrap(), "deep/inner"]);
    sure(&beside.join("outer"), &["commit", "-qm", "inner"]);
    sure(ws, &["init", "-q"]);
    commit(ws, "file");
    let outer = beside.join("outer");
    sure(ws, &["submodule", "--quiet", "add", outer.to_str().unwrap(), "libs/outer"]);
    sure(ws, &["submodule", "--quiet", "update", "--init", "--recursive"]);
    std::fs::write(ws.join(".gitignore"), "/tree\n").unwrap();
    commit(ws, "scripts/hook");
    sure(ws, &["worktree", "add", "-q", "-b", "other", "tree"]);
    commit(ws, "tools/gitconfig");
    std::fs::write(ws.join("tools/gitconfig"), "[alias]\n\tst = status\n").unwrap();
    sure(ws, &["config", "include.path", "../tools/gitconfig"]);
    std::fs::set_permissions(ws.join("scripts/hook"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(ws.join("scripts/hook"), "#!/bin/sh\n").unwrap();
    symlink("../../scripts/hook", ws.join(".git/hooks/pre-commit")).unwrap();
    sure(ws, &["remote", "add", "origin", outer.to_str().unwrap()]);
    commit(ws, "last");
}

/// Whoever runs programs of the agent's leaves this.
pub(super) fn mark(ws: &Path) -> PathBuf {
    ws.parent().unwrap().join("outside/ran")
}

/// What starts every program that the attacks plant: git's own look at the files, and its hooks.
const QUICK: (&[&[&str]], &[&[&str]]) =
    (&[&["status", "-s"], &["add", "new"], &["commit", "-qm", "person's"]], &[&["commit", "-qm", "x"]]);
/// What a person, an editor or a prompt does with git.
const ALL: (&[&[&str]], &[&[&str]]) = (
    &[&["status"], &["diff", "HEAD"], &["add", "new"], &["commit", "-m", "person's"], &["fetch", "-q"]],
    &[&["status", "--short"], &["commit", "-qm", "x"]],
);

/// Git as a person uses it everywhere in the workspace runs nothing.
pub(super) fn use_git(ws: &Path, after: &str) {
    use_it(ws, after, QUICK);
}

/// The same with everything that a person does.
pub(super) fn use_all_of_git(ws: &Path, after: &str) {
    use_it(ws, after, ALL);
}

fn use_it(ws: &Path, after: &str, (here, elsewhere): (&[&[&str]], &[&[&str]])) {
    let folders = ["libs/outer", "libs/outer/deep/inner", "tree"].map(|name| (name, elsewhere));
    for (name, commands) in std::iter::once(("", here)).chain(folders) {
        let folder = ws.join(name);
        if !folder.is_dir() {
            continue;
        }
        // Where the command has closed the folder, git only reads.
        let _ = std::fs::write(folder.join("new"), after);
        for args in commands {
            git(&folder, args);
            assert!(!mark(ws).exists(), "{name}: `git {}` ran a program after `{after}`", args.join(" "));
        }
    }
}

/// What is planted: it leaves the mark.
pub(super) fn fill(script: &str, ws: &Path) -> String {
    let evil = "mkdir -p E/objects E/refs/heads E/hooks; echo 'ref: refs/heads/main' > E/HEAD;
        printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n fsmonitor = touch MARK; false\\n' > E/config;
        for h in pre-commit post-index-change post-checkout reference-transaction; do
            printf '#!/bin/sh\\ntouch MARK\\n' > E/hooks/$h; chmod +x E/hooks/$h; done";
    let hook = "printf '#!/bin/sh\\ntouch MARK\\n'";
    let config = "printf '[core]\\n fsmonitor = touch MARK; false\\n'";
    let script = script.replace("EVIL(", "evil() { ").replace(")EVIL", "; }; ");
    let script = format!("evil() {{ E=$1; {}; }}; {script}", evil.replace("E/", "$E/"));
    script.replace("HOOK", hook).replace("CONFIG", config).replace("MARK", mark(ws).to_str().unwrap())
}

/// The attack in one command, which says when all is planted and then does something else, such as `sleep 600`.
pub(super) fn planting(attack: &str, ws: &Path, then: &str) -> String {
    // Opened before: the attack may close the folder.
    format!("exec 8<>end-first 9>planted; ({}) 2>/dev/null; echo x >&9; {then}", fill(attack, ws).replace('|', ";"))
}

/// Whether a command has got as far as to write into this file.
pub(super) fn has_text(ws: &Path, file: &str) -> bool {
    std::fs::metadata(ws.join(file)).is_ok_and(|file| file.len() > 0)
}

/// Removes what the attacks leave in the workspace, so that each begins alike.
pub(super) const CLEAN: &str = "find . -name objects -prune -o -type d ! -perm -u=rwx -exec chmod -f u+rwx {} \\;; rm -rf planted second end-first end-second e m2 c h s2 t2 l2 t3 lib
    libs/outer/lib toolhost-planted-*; true";

/// [`CLEAN`] by the person.
pub(super) fn clean(ws: &Path) {
    let cleaned = std::process::Command::new("bash").args(["-c", CLEAN]).current_dir(ws).status();
    assert!(cleaned.unwrap().success());
}

/// Each `every`th of [`ATTACKS`]; where the tests run a second time, as an ordinary user, a third of those.
pub(super) fn attacks(every: usize) -> impl Iterator<Item = &'static &'static str> {
    ATTACKS.iter().step_by(if is_second_run() { 3 * every } else { every })
}

/// Commands one after the other, in one round. `|` parts them.
const ATTACKS: &[&str] = &[
    // By git's own words, and by writing its files.
    "git config core.fsmonitor 'touch MARK; false'",
    "CONFIG >> .git/config",
    "CONFIG > c; mv c .git/config",
    "ln -sf ../c .git/config; CONFIG > c",
    "HOOK > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change",
    "rm -rf .git/hooks; mkdir .git/hooks; HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "HOOK > h; chmod +x h; ln -sf ../../h .git/hooks/pre-commit",
    "mv .git .git2; git init -q; git config core.fsmonitor 'touch MARK; false'",
    "mv .git .git2; evil .git",
    "evil e; mv .git .git2; echo 'gitdir: e' > .git",
    // What a link of the person's leads to.
    "HOOK > scripts/hook",
    "rm scripts/hook; HOOK > scripts/hook; chmod +x scripts/hook",
    "mv scripts s2; mkdir scripts; HOOK > scripts/hook; chmod +x scripts/hook",
    "rm .git/hooks/pre-commit; HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    // What the person's configuration includes.
    "CONFIG > tools/gitconfig",
    "mv tools t2; mkdir tools; CONFIG > tools/gitconfig",
    // The repository said to be elsewhere.
    "evil e; echo ../e > .git/commondir",
    "evil e; cp -r .git/objects .git/refs e/; echo ../e > .git/commondir; chmod 555 .git",
    "evil e; echo ../e > .git/commondir; chmod 555 .git .; true",
    "CONFIG > .git/config.worktree; git config extensions.worktreeConfig true",
    "chmod 777 .git/hooks; HOOK > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; chmod 555 .git/hooks",
    "HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; chmod 000 .git/hooks .git",
    // Through links in the middle of names that are put back.
    "mkdir -p .git/modules/x/hooks; CONFIG > .git/modules/x/config; HOOK > .git/modules/x/hooks/pre-commit; chmod +x .git/modules/x/hooks/pre-commit | mv .git/modules/x .git/modules/y; ln -s .. .git/modules/x",
    "mkdir -p .git/worktrees/x; CONFIG > .git/worktrees/x/config.worktree | mv .git/worktrees/x .git/worktrees/y; ln -s .. .git/worktrees/x",
    "mv .git/modules m2; ln -s .. .git/modules",
    // Submodules, at any depth.
    "CONFIG >> .git/modules/libs/outer/config",
    "CONFIG >> .git/modules/libs/outer/modules/deep/inner/config",
    "HOOK > .git/modules/libs/outer/hooks/pre-commit; chmod +x .git/modules/libs/outer/hooks/pre-commit",
    "rm libs/outer/.git; evil libs/outer/.git",
    "rm libs/outer/deep/inner/.git; evil libs/outer/deep/inner/.git",
    "evil e; echo 'gitdir: ../../e' > libs/outer/.git",
    "mv libs/outer libs/o2; mkdir libs/outer; evil libs/outer/.git",
    "mv libs l2; mkdir -p libs/outer; evil libs/outer/.git",
    "mv libs/outer/deep libs/outer/d2; mkdir -p libs/outer/deep/inner; evil libs/outer/deep/inner/.git",
    // A repository of its own, added to one of the person's.
    "mkdir lib; git init -q lib; (cd lib; git -c user.name=a -c user.email=a commit -q --allow-empty -m x); git add lib; cd lib; git config core.fsmonitor 'touch MARK; false'",
    "cd libs/outer; mkdir lib; git init -q lib; (cd lib; git -c user.name=a -c user.email=a commit -q --allow-empty -m x); git add lib; cd lib; git config core.fsmonitor 'touch MARK; false'",
    // Worktrees.
    "rm tree/.git; evil tree/.git",
    "mv tree t3; mkdir tree; evil tree/.git",
    "evil e; echo ../../../e > .git/worktrees/tree/commondir",
    "CONFIG > .git/worktrees/tree/config.worktree; git config extensions.worktreeConfig true",
    // Trees without end, in the way of what is put back.
    "mkdir toolhost.toml; cd toolhost.toml; python3 -c 'import os\nfor i in range(3000): os.mkdir(\"d\"); os.chdir(\"d\")'",
    "rm -rf .git/commondir; mkdir .git/commondir; cd .git/commondir && python3 -c 'import os\nfor i in range(3000): os.mkdir(\"d\"); os.chdir(\"d\")'",
    // In the place of the file that is written before it takes the place of the person's.
    "CONFIG >> .git/config; mkdir -p .git/.toolhost-back.tmp/x; chmod 000 .git/.toolhost-back.tmp",
    "CONFIG >> .git/config; ln -s config .git/.toolhost-back.tmp",
];

/// How a person's repository leads git through links, what a command does with them, and whether the full fence holds it while
/// that runs.
pub(super) const LINKED: &[(&str, &str, bool)] = &[
    ("mv .git/config real; ln -s real l1; ln -s ../l1 .git/config", "rm l1; cp real l1; CONFIG >> l1", false),
    (
        "mkdir cd; mv .git/config cd/real; ln -s cd dl; ln -s ../dl/real .git/config",
        "rm dl; mkdir dl; CONFIG > dl/real",
        false,
    ),
    ("mv .git/hooks gh; ln -s gh l1; ln -s ../l1 .git/hooks", "rm l1; evil e; mv e/hooks l1", false),
    (
        "mkdir x; mv .git/hooks x/gh; ln -s x y; ln -s ../y/gh .git/hooks",
        "rm y; mkdir y; evil e; mv e/hooks y/gh",
        false,
    ),
    (
        "mkdir s; echo > s/h; chmod +x s/h; ln -s s/h l; ln -s ../../l .git/hooks/pre-commit",
        "rm l; HOOK > l; chmod +x l",
        false,
    ),
    ("mv .git real.git; ln -s real.git lg; echo 'gitdir: lg' > .git", "rm lg; evil lg", false),
    (
        "mv .git real.git; echo 'gitdir: real.git' > .git",
        "CONFIG >> real.git/config; evil e; mv e/hooks/* real.git/hooks",
        true,
    ),
    ("git config include.path ../gc/x", "mkdir -p gc; CONFIG > gc/x", true),
    ("git config include.path extra; echo > .git/extra", "CONFIG > .git/extra", true),
    ("git config include.path extra", "CONFIG > .git/extra", true),
    ("git config core.hooksPath .git/mine; mkdir .git/mine", "evil e; rm -rf .git/mine; mv e/hooks .git/mine", true),
    ("git config include.path ../inc; printf '[include]\\npath = n2\\n' > inc", "CONFIG > n2", true),
    ("git config includeIf.onbranch:main.path ../ib", "CONFIG > ib", true),
    ("rm -r .git/hooks; ln -s ../githooks .git/hooks", "evil e; mv e/hooks githooks", true),
    ("git config core.hooksPath .husky/_", "mkdir -p .husky; evil e; mv e/hooks .husky/_", true),
    ("git config core.hooksPath file; echo > file", "rm file; evil e; mv e/hooks file", true),
    // The repository is said to be where nothing is.
    ("mv .git ../outside/g; echo 'gitdir: store/x' > .git", "mkdir -p store; evil store/x", true),
    ("mv .git ../outside/g; printf 'gitdir: ./store/../x\\r\\n\\n' > .git", "mkdir -p store; evil x", true),
    ("mv .git ../outside/g; ln -s store lg; echo 'gitdir: lg/x' > .git", "mkdir -p store; evil store/x", true),
    (
        "mv .git ../outside/g; echo \"gitdir: $PWD/store\" > .git; mkdir store; cp ../outside/g/HEAD store; echo ../y > store/commondir",
        "evil y",
        true,
    ),
];

/// Settings that git does not read where a command runs, what the command does with what they name, and what the person does
/// that lets git read them.
pub(super) const LATER: &[(&str, &str, &str)] = &[
    (
        "git config includeIf.onbranch:foo.path extra; printf '[core]\nhooksPath=hk\n' > .git/extra",
        "evil e; mv e/hooks hk",
        "git checkout -q -b foo",
    ),
    (
        "git config includeIf.onbranch:foo.path extra; mkdir cf; printf '[include]\npath = ../cf/inc\n' > .git/extra",
        "CONFIG > cf/inc",
        "git checkout -q -b foo",
    ),
    (
        "git config includeIf.onbranch:foo.path ../cf/one; mkdir cf; printf '[include]\npath = two\n' > cf/one",
        "CONFIG > cf/two",
        "git checkout -q -b foo",
    ),
    ("git config includeIf.onbranch:foo.path extra", "CONFIG > .git/extra", "git checkout -q -b foo"),
    (
        "printf '[include]\npath = ../inc\n' > .git/config.worktree",
        "CONFIG > inc",
        "git config extensions.worktreeConfig true",
    ),
    // Git compares the path by which the person came, too.
    (
        "ln -s $PWD/.. ../outside/link; git config includeIf.gitdir:$PWD/../outside/link/.path ../one; printf '[core]\nhooksPath=hk\n' > one",
        "evil e; mv e/hooks hk",
        "cd ../outside/link/ws; git status; git commit -q --allow-empty -m x",
    ),
];

/// How a person's repository reaches into the workspace from around it or by another working tree: what the person has done, the folder
/// that is the workspace, what a command does there, and where the person then uses git.
pub(super) const AROUND: &[(&str, &str, &str, &[&str])] = &[
    // The workspace is a subfolder.
    ("git config core.hooksPath sub/.husky; mkdir sub", "sub", "evil e; mv e/hooks .husky", &["", "sub"]),
    ("git config include.path ../sub/inc; mkdir sub", "sub", "CONFIG > inc", &["", "sub"]),
    (
        "SUBMODULE pkg/lib; git commit -qm x; git submodule --quiet deinit -f --all; rm -rf .git/modules",
        "pkg",
        "evil lib/.git",
        &["", "pkg"],
    ),
    ("SUBMODULE pkg/lib; git commit -qm x", "pkg", "rm lib/.git; evil lib/.git", &["", "pkg/lib"]),
    ("mkdir pkg; git worktree add -q pkg/wt", "pkg", "rm wt/.git; evil wt/.git", &["", "pkg/wt"]),
    // It is a submodule itself.
    ("SUBMODULE s; git commit -qm x; cd s; git config core.hooksPath .hk", "s", "evil e; mv e/hooks .hk", &["s", ""]),
    ("SUBMODULE s; git commit -qm x; cd s; git config include.path ../../../s/inc", "s", "CONFIG > inc", &["s", ""]),
    (
        "SUBMODULE s; git commit -qm x; cd s; SUBMODULE deep; git commit -qm x; git submodule --quiet deinit -f --all;
         rm -rf ../.git/modules/s/modules",
        "s",
        "evil deep/.git",
        &["s", ""],
    ),
    // The repository of a submodule, of another working tree, or of what is around, is said to be where nothing is.
    ("SUBMODULE s/lib; git commit -qm x; echo 'gitdir: ../../store/x' > s/lib/.git", "", "mkdir -p store; evil store/x", &["", "s/lib"]),
    ("git worktree add -q wt; echo 'gitdir: ../x' > wt/.git", "", "evil x", &["", "wt"]),
    ("mkdir sub; mv .git ../outside/g; echo 'gitdir: sub/x' > .git", "sub", "evil x", &["", "sub"]),
    ("mkdir sub; mv .git sub/x; echo 'gitdir: sub/x' > .git", "sub", "CONFIG >> x/config; evil e; mv e/hooks/* x/hooks", &["", "sub"]),
    // Another working tree obeys names of its own.
    ("git config core.hooksPath .husky; git worktree add -q wt", "", "evil e; mv e/hooks wt/.husky", &["wt"]),
    ("SUBMODULE lib; git commit -qm x; git worktree add -q wt", "", "rmdir wt/lib; mkdir wt/lib; evil wt/lib/.git", &["wt"]),
    (
        "SUBMODULE lib; git commit -qm x; git worktree add -q wt; cd wt; git submodule --quiet update --init",
        "",
        "rm wt/lib/.git; evil wt/lib/.git",
        &["wt", "wt/lib"],
    ),
    (
        "SUBMODULE lib; git commit -qm x; cd lib; git worktree add -q ../libwt",
        "",
        "rm libwt/.git; evil libwt/.git",
        &["libwt"],
    ),
    (
        "git worktree add -q wt; git config extensions.worktreeConfig true; cd wt; git config --worktree core.hooksPath .hk",
        "",
        "evil e; mv e/hooks wt/.hk",
        &["wt"],
    ),
    (
        "git worktree add -q wt; git config extensions.worktreeConfig true; cd wt;
         git config --worktree include.path ../../../wt/inc",
        "",
        "CONFIG > wt/inc",
        &["wt"],
    ),
    (
        "mv .git .bare; git --git-dir .bare config core.bare true; echo 'gitdir: ./.bare' > .git; git worktree add -q feat;
         git config core.hooksPath .hk",
        "",
        "evil e; mv e/hooks feat/.hk",
        &["feat"],
    ),
    // The working tree is elsewhere.
    ("mkdir src; git config core.worktree ../src; git config core.hooksPath .hk", "", "evil e; mv e/hooks src/.hk", &["src"]),
    // Settings outside name what is inside.
    (
        "printf '[core]\\nhooksPath = th\\n' > ../outside/inc; git config include.path ../../outside/inc",
        "",
        "evil e; mv e/hooks th",
        &[""],
    ),
    (
        "printf '[include]\\npath = inc2\\n' > ../outside/inc; printf '[include]\\npath = ../ws/more\\n' > ../outside/inc2;
         git config include.path ../../outside/inc",
        "",
        "CONFIG > more",
        &[""],
    ),
];

/// The person's part of [`AROUND`], in the folder around the workspace.
pub(super) fn prepare(ws: &Path, script: &str) {
    let origin = origin(ws);
    std::fs::create_dir_all(&origin).unwrap();
    sure(&origin, &["init", "-q"]);
    commit(&origin, "file");
    sure(ws, &["init", "-q"]);
    commit(ws, "file");
    by_person(ws, script);
}

fn origin(ws: &Path) -> PathBuf {
    ws.parent().unwrap().join("outside/origin")
}

/// What a person does in a workspace of [`prepare`].
pub(super) fn by_person(ws: &Path, script: &str) {
    let submodule = format!("git submodule --quiet add {}", origin(ws).display());
    let script = script.replace("SUBMODULE", &submodule);
    let mut bash = std::process::Command::new("bash");
    bash.args(["-ec", &script]).current_dir(ws).env("GIT_CONFIG_NOSYSTEM", "1");
    bash.envs([
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "protocol.file.allow"),
        ("GIT_CONFIG_VALUE_0", "always"),
    ]);
    for (name, value) in [("AUTHOR", "p"), ("COMMITTER", "p")] {
        bash.env(format!("GIT_{name}_NAME"), value).env(format!("GIT_{name}_EMAIL"), "p@example.org");
    }
    assert!(bash.status().unwrap().success(), "{script}");
}
