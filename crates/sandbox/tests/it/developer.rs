//! What developers run in a fresh project, in both tiers: what works, and what the Landlock tier lacks.

use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Executor, Fence, Watch};
use toolhost_sandbox::FenceChoice;

use crate::room::Room;

const TIME: Duration = Duration::from_secs(100);

/// Needs a network of the command's own, or System V's and POSIX shared memory, which the Landlock tier refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Both,
    FullOnly,
}
use Where::{Both, FullOnly};

/// A program that must be there for the line to be tried, the line, and where it works.
const LINES: [(&str, &str, Where); 22] = [
    ("python3", "python3 -m venv --without-pip v && v/bin/python -c 'print(1)'", Both),
    ("python3", "python3 -m pip --version", Both),
    ("python3", "python3 -m unittest -v 2>&1 | grep -q 'NO TESTS RAN\\|Ran 0'", Both),
    ("python3", SERVER_IN_PYTHON, FullOnly),
    ("python3", "python3 -c 'from multiprocessing import Pool; print(Pool(2).map(abs, [-1, 2]))'", FullOnly),
    (
        "python3",
        "python3 -c 'from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=64); m.unlink()'",
        FullOnly,
    ),
    (
        "python3",
        "python3 -c 'import sqlite3; sqlite3.connect(\"a.db\").execute(\"create table t (x)\")' && test -s a.db || test -e a.db",
        Both,
    ),
    ("bash", "echo hi > /dev/stderr", Both),
    ("bash", "echo hi > /dev/stdout", Both),
    ("bash", "echo in | cat /dev/stdin", Both),
    ("bash", "diff <(echo a) <(echo a)", Both),
    ("bash", "f=$(mktemp) && echo x > $f && cat $f", Both),
    ("bash", "mkdir -p a/b && touch a/b/c && tar czf a.tgz a && tar tzf a.tgz | grep -q a/b/c", Both),
    ("bash", "seq 20 | xargs -P 4 -n 1 echo | wc -l | grep -q 20", Both),
    ("gcc", "printf 'int main(void){return 0;}' > a.c && gcc -o a a.c && ./a", Both),
    ("make", "printf 'all:\\n\\techo made\\n' > Makefile && make", Both),
    ("git", "d=$(mktemp -d) && git init -q $d && git -C $d status --short", Both),
    ("node", "node -e 'console.log(require(\"os\").tmpdir())'", Both),
    ("node", "printf 'require(\"node:test\")(\"t\", () => {})' > a.test.js && node --test", Both),
    ("node", SERVER_IN_NODE, FullOnly),
    ("npm", "npm init -y >/dev/null && npm pack >/dev/null 2>&1 && ls *.tgz", Both),
    ("cargo", "cargo init -q --name a --vcs none . && cargo test -q", Both),
];

const SERVER_IN_PYTHON: &str = "python3 -m http.server 8765 >/dev/null 2>&1 & for n in $(seq 50); do sleep 0.1; python3 -c 'import urllib.request as u; u.urlopen(\"http://localhost:8765/\")' 2>/dev/null && exit 0; done; exit 1";
const SERVER_IN_NODE: &str = "node -e 'const s = require(\"http\").createServer((q, a) => a.end(\"ok\")).listen(0, () => require(\"http\").get({ port: s.address().port }, r => { s.close(); r.resume(); }))'";

#[tokio::test(flavor = "multi_thread")]
async fn what_developers_run_works_in_a_fresh_project() {
    let mut wrong = Vec::new();
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        for (program, line, works) in LINES {
            let room = Room::fenced(choice);
            let fence = Fence { loopback: true, ..Fence::closed(Access::Write) };
            let run = async |line: &str| {
                let command = Command::new(["bash", "-c", line], TIME);
                room.executor.run(command, &fence, Watch::unattended()).await.unwrap()
            };
            if run(&format!("command -v {program}")).await.exit_code != 0 {
                continue;
            }
            let result = run(line).await;
            let expected = works == Both || choice == FenceChoice::Full;
            if (result.exit_code == 0) != expected {
                wrong.push(format!("{choice:?}: {line}\n  {result:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
