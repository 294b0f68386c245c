//! What any executor must hold, said against the trait alone: whoever adds a container or a remote machine calls
//! [`holds`] for it. What it cannot say (who owns a file, where a link leads) is in the other modules.

use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use toolhost_contract::workspace::{
    Access, Command, Entry, EntryKind, Error, ErrorKind, Executor, Fence, ListQuery, ReadSpan, Result, SearchQuery,
    Watch, WriteGuard,
};

use crate::room::{Room, WHOLE, everything, look_for, path};

/// Rules: 004.12.
#[tokio::test(flavor = "multi_thread")]
async fn this_machine_holds_what_any_executor_must() {
    let room = Room::new();
    holds(&room.executor, &room.ws()).await;
}

/// `root` is where the executor's workspace can be seen from here, for what the trait has no word for.
async fn holds(executor: &dyn Executor, root: &Path) {
    reads_and_writes(executor).await;
    guards_decide_whether_a_write_happens(executor).await;
    modes_are_kept(executor, root).await;
    moves_and_removals_never_replace_or_take_more(executor).await;
    listings_are_sorted_and_page_without_gaps(executor).await;
    globs_and_ignore_files_choose(executor).await;
    searches_find_lines(executor).await;
    searches_page_without_gaps(executor).await;
    a_page_ends_where_it_is_large(executor).await;
    commands_get_what_they_were_given(executor).await;
}

async fn put(executor: &dyn Executor, file: &str, text: &str) {
    executor.write(&path(file), text.into(), WriteGuard::default()).await.unwrap();
}

async fn get(executor: &dyn Executor, file: &str) -> Result<String> {
    let content = executor.read(&path(file), WHOLE).await?;
    Ok(String::from_utf8_lossy(&content.bytes).into_owned())
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

async fn reads_and_writes(executor: &dyn Executor) {
    let file = path("rw/deep/er/file.txt");
    let first = executor.write(&file, b"0123456789".to_vec(), WriteGuard::default()).await.unwrap();
    assert_eq!((first.created, first.bytes), (true, 10));
    assert_eq!(first.sha256, hex::encode(Sha256::digest(b"0123456789")));
    let second = executor.write(&file, b"abcdef".to_vec(), WriteGuard::default()).await.unwrap();
    assert_eq!((second.created, second.bytes), (false, 6));
    for (start, bytes_max, expected) in [(0, 100, "abcdef"), (2, 3, "cde"), (6, 1, ""), (1000, 1, ""), (0, 0, "")] {
        let content = executor.read(&file, ReadSpan { start, bytes_max }).await.unwrap();
        assert_eq!((content.bytes.as_slice(), content.size), (expected.as_bytes(), 6), "{start}+{bytes_max}");
    }
    put(executor, "rw/empty", "").await;
    assert_eq!(get(executor, "rw/empty").await.unwrap(), "");
    assert_eq!(kind(get(executor, "rw/no-such-file").await), ErrorKind::NotFound);
    assert_eq!(kind(get(executor, "rw/empty/below-a-file").await), ErrorKind::NotFound);
    for folder in ["rw", "."] {
        assert_eq!(kind(get(executor, folder).await), ErrorKind::Validation, "{folder}");
        let written = executor.write(&path(folder), b"x".to_vec(), WriteGuard::default()).await;
        assert_eq!(kind(written), ErrorKind::Validation, "{folder}");
    }
}

async fn guards_decide_whether_a_write_happens(executor: &dyn Executor) {
    let digest = |text: &str| hex::encode(Sha256::digest(text.as_bytes()));
    let expecting =
        |text: &str| WriteGuard { expected_sha256: Some(digest(text)), create_only: false, ..WriteGuard::default() };
    let creating = WriteGuard { expected_sha256: None, create_only: true, ..WriteGuard::default() };
    let file = path("guard/file");
    executor.write(&file, b"one".to_vec(), creating.clone()).await.unwrap();
    assert_eq!(kind(executor.write(&file, b"two".to_vec(), creating).await), ErrorKind::Conflict);
    assert_eq!(get(executor, "guard/file").await.unwrap(), "one");
    match executor.write(&file, b"two".to_vec(), expecting("other")).await {
        Err(Error::Changed { expected, actual, .. }) => {
            assert_eq!((expected, actual), (digest("other"), digest("one")));
        }
        other => unreachable!("not a refusal of a changed file: {other:?}"),
    }
    assert_eq!(get(executor, "guard/file").await.unwrap(), "one");
    executor.write(&file, b"two".to_vec(), expecting("one")).await.unwrap();
    assert_eq!(get(executor, "guard/file").await.unwrap(), "two");
    let missing = executor.write(&path("guard/none"), b"x".to_vec(), expecting("one")).await;
    assert_eq!(kind(missing), ErrorKind::NotFound);
    assert_eq!(kind(get(executor, "guard/none").await), ErrorKind::NotFound);
}

async fn modes_are_kept(executor: &dyn Executor, root: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for mode in [0o600, 0o640, 0o755, 0o4755, 0o2755, 0o444] {
        put(executor, "mode", "before").await;
        std::fs::set_permissions(root.join("mode"), PermissionsExt::from_mode(mode)).unwrap();
        put(executor, "mode", "after").await;
        let kept = std::fs::metadata(root.join("mode")).unwrap().permissions().mode() & 0o7777;
        // But for the bits by which it would run as its owner or group.
        assert_eq!(kept, mode & 0o777, "{kept:o} of {mode:o}");
        assert_eq!(get(executor, "mode").await.unwrap(), "after");
    }
    executor.remove(&path("mode"), None).await.unwrap();
}

async fn moves_and_removals_never_replace_or_take_more(executor: &dyn Executor) {
    put(executor, "mv/a", "a").await;
    put(executor, "mv/b", "b").await;
    put(executor, "mv/full/inside", "x").await;
    assert_eq!(kind(executor.rename(&path("mv/a"), &path("mv/b")).await), ErrorKind::Conflict);
    assert_eq!(kind(executor.rename(&path("mv/none"), &path("mv/c")).await), ErrorKind::NotFound);
    assert!(executor.rename(&path("mv"), &path("mv/full/mv")).await.is_err(), "a folder into itself");
    assert!(executor.rename(&path("."), &path("elsewhere")).await.is_err(), "the root");
    assert_eq!(
        (get(executor, "mv/a").await.unwrap(), get(executor, "mv/b").await.unwrap()),
        ("a".to_owned(), "b".to_owned())
    );
    executor.rename(&path("mv/a"), &path("mv/new/place/a")).await.unwrap();
    assert_eq!(get(executor, "mv/new/place/a").await.unwrap(), "a");
    assert_eq!(kind(get(executor, "mv/a").await), ErrorKind::NotFound);
    executor.rename(&path("mv/full"), &path("mv/moved")).await.unwrap();
    assert_eq!(get(executor, "mv/moved/inside").await.unwrap(), "x");

    assert!(executor.remove(&path("mv/moved"), None).await.is_err(), "a folder that is not empty");
    assert!(executor.remove(&path("."), None).await.is_err(), "the root");
    assert_eq!(kind(executor.remove(&path("mv/none"), None).await), ErrorKind::NotFound);
    executor.remove(&path("mv/moved/inside"), None).await.unwrap();
    executor.remove(&path("mv/moved"), None).await.unwrap();
    assert_eq!(kind(executor.list(everything("mv/moved")).await), ErrorKind::NotFound);
}

fn paths(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.path.as_str()).collect()
}

async fn listings_are_sorted_and_page_without_gaps(executor: &dyn Executor) {
    for n in 0..40 {
        put(executor, &format!("list/{}/{n}", n % 3), "12345").await;
    }
    put(executor, "list/.hidden", "").await;
    let whole = executor.list(everything("list")).await.unwrap();
    assert_eq!((whole.total, whole.more, whole.cut), (44, false, false));
    assert!(whole.entries.is_sorted_by(|a, b| a.path < b.path), "{:?}", paths(&whole.entries));
    let find = |name: &str| whole.entries.iter().find(|e| e.path == name).map(|e| (e.kind, e.size));
    assert_eq!(find("list/1"), Some((EntryKind::Folder, None)));
    assert_eq!(find("list/1/4"), Some((EntryKind::File, Some(5))));
    for limit in [1, 7, 43, 44, 45] {
        let (mut got, mut after) = (Vec::new(), None);
        loop {
            let query = ListQuery { limit, after: after.take(), ..everything("list") };
            let page = executor.list(query).await.unwrap();
            assert!(page.entries.len() <= limit && page.total == 44, "pages of {limit}");
            after = page.entries.last().map(|entry| entry.path.clone());
            got.extend(page.entries);
            if !page.more {
                break;
            }
        }
        assert_eq!(got, whole.entries, "pages of {limit}");
    }
    let flat = ListQuery { depth_max: Some(1), include_hidden: false, ..everything("list") };
    assert_eq!(paths(&executor.list(flat).await.unwrap().entries), ["list/0", "list/1", "list/2"]);
    assert_eq!(kind(executor.list(everything("list/.hidden")).await), ErrorKind::Validation);
}

async fn globs_and_ignore_files_choose(executor: &dyn Executor) {
    for file in ["a.rs", "b.txt", "sub/c.rs", "sub/deep/d.rs", "sub/deep/target/e.rs", "ignored.log", "sub/x.log"] {
        put(executor, &format!("glob/{file}"), "").await;
    }
    put(executor, "glob/.gitignore", "*.log\ntarget/\n!sub/x.log\n").await;
    for (pattern, ignored, expected) in [
        ("*.rs", false, vec!["a.rs", "sub/c.rs", "sub/deep/d.rs"]),
        ("**/*.rs", false, vec!["a.rs", "sub/c.rs", "sub/deep/d.rs"]),
        ("**/*.rs", true, vec!["a.rs", "sub/c.rs", "sub/deep/d.rs", "sub/deep/target/e.rs"]),
        ("sub/*.rs", false, vec!["sub/c.rs"]),
        ("./sub/*", false, vec!["sub/c.rs", "sub/deep", "sub/x.log"]),
        ("sub/**", false, vec!["sub/c.rs", "sub/deep", "sub/deep/d.rs", "sub/x.log"]),
        ("*.{rs,txt}", false, vec!["a.rs", "b.txt", "sub/c.rs", "sub/deep/d.rs"]),
        ("[ab].*", false, vec!["a.rs", "b.txt"]),
        ("*.log", false, vec!["sub/x.log"]),
        ("*.log", true, vec!["ignored.log", "sub/x.log"]),
        ("*.py", true, vec![]),
    ] {
        let query = ListQuery {
            pattern: Some(pattern.to_owned()),
            include_hidden: false,
            include_ignored: ignored,
            ..everything("glob")
        };
        let found = executor.list(query).await.unwrap();
        let found: Vec<_> = found.entries.iter().map(|e| e.path.strip_prefix("glob/").unwrap()).collect();
        assert_eq!(found, expected, "{pattern}");
    }
    let query = ListQuery { pattern: Some("[".to_owned()), ..everything("glob") };
    assert_eq!(kind(executor.list(query).await), ErrorKind::Validation);
}

async fn searches_find_lines(executor: &dyn Executor) {
    put(executor, "find/one.txt", "alpha\nBeta (x)\ngamma\r\nbeta\nlast").await;
    put(executor, "find/two.rs", "fn beta() {}\n").await;
    put(executor, "find/skipped.log", "beta\n").await;
    put(executor, "find/.gitignore", "*.log\n").await;
    put(executor, "find/binary", "beta\n\0\n").await;
    let ask =
        |pattern: &str| SearchQuery { include_ignored: false, include_hidden: false, ..look_for(pattern, "find") };
    let regex = |pattern: &str| SearchQuery { literal: false, ..ask(pattern) };
    for (query, expected) in [
        (ask("beta"), vec!["one.txt:4:beta", "two.rs:1:fn beta() {}"]),
        (
            SearchQuery { ignore_case: true, ..ask("beta") },
            vec!["one.txt:2:Beta (x)", "one.txt:4:beta", "two.rs:1:fn beta() {}"],
        ),
        (ask("(x)"), vec!["one.txt:2:Beta (x)"]),
        (ask("."), vec![]),
        (regex("^(be|gam)"), vec!["one.txt:3:gamma", "one.txt:4:beta"]),
        (regex(r"\(x\)$"), vec!["one.txt:2:Beta (x)"]),
        (regex("st$"), vec!["one.txt:5:last"]),
        (SearchQuery { glob: Some("*.rs".to_owned()), ..ask("beta") }, vec!["two.rs:1:fn beta() {}"]),
        (SearchQuery { path: path("find/one.txt"), ..ask("beta") }, vec!["one.txt:4:beta"]),
        (
            SearchQuery { include_ignored: true, ..ask("beta") },
            vec!["one.txt:4:beta", "skipped.log:1:beta", "two.rs:1:fn beta() {}"],
        ),
    ] {
        let page = executor.search(query.clone()).await.unwrap();
        let shown =
            |m: &toolhost_contract::workspace::MatchLine| format!("{}:{}:{}", &m.path["find/".len()..], m.line, m.text);
        // Whether a line before the first NUL of a binary file is found is each executor's own.
        let found: Vec<_> = page.matches.iter().filter(|m| m.path != "find/binary").map(shown).collect();
        assert_eq!(found, expected, "{query:?}");
        assert!(!page.more && !page.cut && !page.unseen);
    }
    let page = executor.search(SearchQuery { context: 1, ..ask("gamma") }).await.unwrap();
    assert_eq!(
        (&page.matches[0].before[..], &page.matches[0].later[..]),
        (&["Beta (x)".into()][..], &["beta".into()][..])
    );
    assert_eq!(kind(executor.search(regex("(")).await), ErrorKind::Validation);
    assert_eq!(kind(executor.search(look_for("x", "find/none")).await), ErrorKind::NotFound);
}

async fn searches_page_without_gaps(executor: &dyn Executor) {
    for n in 0..5 {
        put(executor, &format!("pages/{n}"), "hit\nmiss\nhit\nhit\n").await;
    }
    let whole = executor.search(look_for("hit", "pages")).await.unwrap();
    assert_eq!((whole.total, whole.files_with_matches, whole.matches.len()), (15, 5, 15));
    assert!(whole.matches.is_sorted_by(|a, b| (&a.path, a.line) < (&b.path, b.line)));
    for limit in [1, 2, 4, 14, 15, 16] {
        let (mut got, mut after) = (Vec::new(), None);
        loop {
            let query = SearchQuery { limit, after: after.take(), ..look_for("hit", "pages") };
            let page = executor.search(query).await.unwrap();
            assert!(page.matches.len() <= limit && page.total == 15, "pages of {limit}");
            after = page.matches.last().map(|m| (m.path.clone(), m.line));
            got.extend(page.matches);
            if !page.more {
                break;
            }
        }
        assert_eq!(got, whole.matches, "pages of {limit}");
    }
}

async fn a_page_ends_where_it_is_large(executor: &dyn Executor) {
    let context = format!("{}\n", "c".repeat(900)).repeat(40);
    put(executor, "wide/a", &format!("hit\n{context}").repeat(60)).await;
    put(executor, "wide/b", &"hit\n".repeat(60)).await;
    let (mut got, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let query = SearchQuery { limit: 1000, context: 20, after: after.take(), ..look_for("hit", "wide") };
        let page = executor.search(query).await.unwrap();
        assert_eq!((page.total, page.files_with_matches), (120, 2));
        let texts = page.matches.iter().flat_map(|m| m.before.iter().chain(&m.later));
        assert!(texts.map(String::len).sum::<usize>() <= 1 << 20);
        after = page.matches.last().map(|m| (m.path.clone(), m.line));
        got.extend(page.matches.into_iter().map(|m| (m.path, m.line)));
        pages += 1;
        if !page.more {
            break;
        }
    }
    let a = (0..60).map(|n| ("wide/a".to_owned(), 41 * n + 1));
    let b = (1..=60).map(|n| ("wide/b".to_owned(), n));
    assert!(pages > 1 && got == a.chain(b).collect::<Vec<_>>(), "{pages} pages: {got:?}");
}

async fn commands_get_what_they_were_given(executor: &dyn Executor) {
    put(executor, "run/here/file", "in the folder").await;
    let fence = Fence::closed(Access::Read);
    let run = async |argv: &[&str], adjust: &dyn Fn(&mut Command)| {
        let mut command = Command::new(argv.iter().copied(), Duration::from_secs(20));
        adjust(&mut command);
        executor.run(command, &fence, Watch::unattended()).await
    };
    let out = async |argv: &[&str], adjust: &dyn Fn(&mut Command)| {
        let result = run(argv, adjust).await.unwrap();
        assert_eq!((result.exit_code, result.signal, result.timed_out), (0, None, false), "{argv:?}: {result:?}");
        result.stdout.text
    };
    assert_eq!(out(&["printf", "%s|", "a b", "*", "$HOME", "", "é"], &|_| {}).await, "a b|*|$HOME||é|");
    assert_eq!(out(&["cat", "file"], &|c| c.cwd = path("run/here")).await, "in the folder");
    assert_eq!(out(&["cat"], &|c| c.stdin = b"typed\n".to_vec()).await, "typed\n");
    assert_eq!(out(&["cat"], &|_| {}).await, "", "an empty input ends at once");
    let large = vec![b'x'; 300_000];
    assert_eq!(out(&["wc", "-c"], &|c| c.stdin.clone_from(&large)).await.trim(), "300000");
    let env = |c: &mut Command| c.env = vec![("GIVEN".into(), "a=b c".into())];
    assert_eq!(out(&["sh", "-c", "echo \"$GIVEN\""], &env).await, "a=b c\n");
    assert_eq!(kind(run(&["true"], &|c| c.cwd = path("run/none")).await), ErrorKind::NotFound);
    assert_eq!(kind(run(&["true"], &|c| c.cwd = path("run/here/file")).await), ErrorKind::Validation);
    assert_eq!(run(&["false"], &|_| {}).await.unwrap().exit_code, 1);
    assert_eq!(run(&["no-such-program-here"], &|_| {}).await.unwrap().exit_code, 127);
}
