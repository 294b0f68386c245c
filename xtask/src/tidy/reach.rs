//! Who may open a file, start a process, connect, read the environment or ask the time: the sandbox, those that wire a program, and a
//! deploy below folders that the sandbox has opened. Everybody else is handed what they need.
//!
//! `clippy.toml` bans functions and types; a list of functions misses what is new or comes by another name. Here whole paths
//! are closed, but for types that are only data. `forbidden.txt` has lines of which each must be found.

use crate::finding::Finding;
use crate::tidy::source::{paths, split, words};

/// Crates that are handed files, processes, connections, variables and the time.
const FENCED: [&str; 12] = [
    "contract", "records", "builder", "deploy", "host", "tools", "agent", "adk", "outbound", "traces", "server",
    "toolhost",
];
/// Modules and crates of which they name nothing.
const CLOSED: [&str; 13] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::os",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "cap_std",
    "rustix",
    "libc",
    "nix",
    "std::time::SystemTime::now",
];
/// But for these, which are data: a file that was opened elsewhere, an address, how a program ended.
const DATA: [&str; 6] = [
    "std::fs::File",
    "std::net::IpAddr",
    "std::net::Ipv4Addr",
    "std::net::Ipv6Addr",
    "std::net::SocketAddr",
    "std::process::ExitCode",
];
/// What a deploy names besides: it acts in folders that the sandbox has opened, by their handles, and compares the times of
/// files with the time.
const DEPLOY: &str = "crates/deploy/src/";
const BELOW_HANDLES: [&str; 4] = ["cap_std", "rustix", "std::os::fd", "std::time"];
/// Methods that folders which are open have, too.
const OF_HANDLES: [&str; 2] = ["read_dir", "symlink_metadata"];
/// Methods of paths and files that ask the disk.
const ASKING: [&str; 9] = [
    "exists",
    "try_exists",
    "read_dir",
    "metadata",
    "symlink_metadata",
    "read_link",
    "canonicalize",
    "open_ambient_dir",
    "create_new",
];
/// The executor of this machine, and what it is opened with: only where a program is wired.
const WIRED: [&str; 2] = ["LocalExecutor", "LocalConfig"];
/// Files that hand out the time and ids, and the facade, which finds the root of a workspace before there is an executor.
const CLOCKS: [&str; 2] = ["crates/contract/src/clock.rs", "crates/contract/src/ids.rs"];
const FACADE: &str = "crates/toolhost/src/";

/// Checks one file.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let is_fenced = FENCED.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
    // Tests may do as they like.
    if !is_fenced || path.ends_with("tests.rs") {
        return Vec::new();
    }
    let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = split(shipped).code;
    let mut found = Vec::new();
    let mut push = |offset: usize, what: String| {
        let line = text[..offset].matches('\n').count() + 1;
        found.push(Finding::in_line(path, line, what));
    };
    for (offset, named) in paths(&code) {
        let is_in =
            |module: &str| named == module || named.strip_prefix(module).is_some_and(|rest| rest.starts_with("::"));
        let is_free = path.starts_with(DEPLOY)
            && BELOW_HANDLES.into_iter().any(is_in)
            && !named.contains("ambient")
            && !named.contains("CWD");
        let closed = CLOSED.into_iter().find(|closed| !is_free && is_in(closed));
        if closed.is_some() && !DATA.contains(&named.as_str()) && !CLOCKS.contains(&path) {
            push(offset, format!("`{named}` belongs to the sandbox: what it gives is handed in"));
        }
        let ends = |end: &str| named == end || named.ends_with(&format!("::{end}"));
        let is_clock = named == "std::time::Instant" || named == "std::time::Instant::now";
        if is_clock && !is_free && !CLOCKS.contains(&path) {
            push(offset, format!("`{named}`: time is handed in, as `contract::Clock`"));
        }
        if ["File::open", "File::create", "File::options", "File::create_new"].into_iter().any(ends) {
            push(offset, format!("`{named}` belongs to the sandbox: files are opened there"));
        }
        if named.split("::").any(|part| WIRED.contains(&part)) && !path.starts_with(FACADE) {
            push(offset, format!("`{named}`: the executor of this machine is named only where a program is wired"));
        }
    }
    for (offset, word) in words(&code).filter(|(_, word)| ASKING.contains(word)) {
        let is_method = code[..offset].trim_end().ends_with('.') && code[offset + word.len()..].starts_with('(');
        let is_free = path.starts_with(FACADE) || (path.starts_with(DEPLOY) && OF_HANDLES.contains(&word));
        if is_method && !is_free {
            push(offset, format!("`.{word}()` asks the disk, which belongs to the sandbox"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::check;

    fn check_line(path: &str, line: &str) -> Vec<String> {
        check(path, &format!("//! Doc.\nfn f() {{\n{line}\n}}\n")).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_forbidden_line_is_found_in_each_crate_that_is_fenced() {
        for line in include_str!("forbidden.txt").lines() {
            for name in
                ["contract", "records", "builder", "host", "tools", "agent", "adk", "outbound", "traces", "server"]
            {
                let found = check_line(&format!("crates/{name}/src/x.rs"), line);
                assert!(!found.is_empty(), "{name}: {line}");
            }
            // Of these the line does not say whether it acts in a folder that is open.
            let is_free = ["rustix::", "std::time", "path.read_dir()"].iter().any(|free| line.contains(free));
            assert_eq!(check_line("crates/deploy/src/x.rs", line).is_empty(), is_free, "deploy: {line}");
        }
    }

    #[test]
    fn data_and_those_who_wire_a_program_are_free() {
        for line in [
            "fn f(file: std::fs::File, code: std::process::ExitCode) {}",
            "use std::net::{IpAddr, SocketAddr};",
            "use std::time::Duration;",
            "let late = tokio::time::Instant::now() + PAUSE;",
            "let a = environment(); // std::env",
            "let a = \"std::fs::read\";",
        ] {
            assert_eq!(check_line("crates/tools/src/x.rs", line), Vec::<String>::new(), "{line}");
        }
        for path in ["crates/sandbox/src/x.rs", "crates/cli/src/x.rs", "crates/host/tests/it/x.rs"] {
            assert_eq!(check_line(path, "let text = std::fs::read(path)?;"), Vec::<String>::new(), "{path}");
        }
    }
}
