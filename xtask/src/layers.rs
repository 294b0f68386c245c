//! Who may import whom. The first table is the plan of the house; the second says which third-party crates have a room
//! of their own. Both are checked against what cargo itself says, so a plea in a document is not what holds them.
//!
//! What cargo says is turned into a [`House`] once; the rules are pure functions over it, so a test can build a house
//! that breaks each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::finding::Finding;
use crate::shell;

/// A crate, and which of ours it may import. A row without a crate is a plan; a crate without a row is a finding.
const ROWS: [Row; 17] = [
    Row { name: "contract", may_import: &[] },
    Row { name: "sandbox", may_import: &["contract"] },
    Row { name: "store", may_import: &["contract"] },
    Row { name: "records", may_import: &["contract", "store"] },
    Row { name: "builder", may_import: &["contract", "store"] },
    Row { name: "host", may_import: &["contract", "store"] },
    Row { name: "deploy", may_import: &["contract", "sandbox"] },
    Row { name: "tools", may_import: &["contract", "store"] },
    Row { name: "agent", may_import: &["contract", "builder", "host"] },
    Row { name: "adk", may_import: &["contract", "host"] },
    Row { name: "outbound", may_import: &["contract"] },
    Row { name: "traces", may_import: &["contract", "host", "agent", "outbound"] },
    Row { name: "server", may_import: &["contract", "records", "builder", "host", "agent", "store"] },
    Row {
        name: "toolhost",
        may_import: &["sandbox", "contract", "builder", "store", "records", "deploy", "host", "tools", "agent"],
    },
    // Not the tools: the facade wires them.
    Row {
        name: "cli",
        may_import: &[
            "sandbox", "contract", "builder", "store", "records", "deploy", "host", "agent", "outbound", "traces",
            "server", "toolhost",
        ],
    },
    Row {
        name: "testkit",
        may_import: &[
            "sandbox", "contract", "builder", "store", "records", "deploy", "host", "tools", "agent", "server",
            "toolhost",
        ],
    },
    Row { name: "xtask", may_import: &[] },
];

/// What only the tests of a crate may import besides: the facade with its list of tools, for a gate over all of them; what tests of
/// sessions and tools look at behind that gate; the subjects whose tables a database has; and what takes a shell command apart, which
/// is held against what bash runs in the fence.
const IN_TESTS: [(&str, &str); 13] = [
    ("tools", "toolhost"),
    ("tools", "host"),
    ("tools", "sandbox"),
    ("agent", "toolhost"),
    ("agent", "store"),
    ("agent", "records"),
    ("agent", "deploy"),
    ("builder", "toolhost"),
    ("builder", "host"),
    ("store", "records"),
    ("store", "builder"),
    ("sandbox", "host"),
    ("server", "toolhost"),
];

/// Test doubles. Any crate's tests may use them; nothing that ships may.
const TESTKIT: &str = "testkit";

/// What programs embed: its package has the name of the whole.
const FACADE: &str = "toolhost";

/// Third-party crates that only some of ours may name.
const FENCES: [Fence; 10] = [
    Fence {
        crates: &["sqlx", "sqlx-core"],
        only_in: &["store", "testkit"],
        reason: "nothing else speaks to a database; tests also look behind the store",
    },
    Fence { crates: &["axum"], only_in: &["server"], reason: "HTTP is a door" },
    // The command line speaks it as a client: in `demo`, and in the tests that start the program.
    Fence { crates: &["rmcp"], only_in: &["server", "cli"], reason: "MCP is a door" },
    Fence {
        crates: &["opentelemetry", "opentelemetry_sdk", "opentelemetry-proto", "prost"],
        only_in: &["traces", "cli"],
        reason: "spans are made and sent in one place; the tests of the command line read what was sent",
    },
    Fence { crates: &["adk-core"], only_in: &["adk"], reason: "another house's words have a door of their own" },
    Fence {
        crates: &["reqwest", "ureq", "isahc", "curl"],
        only_in: &["agent", "sandbox", "outbound"],
        reason: "outgoing requests are the sandbox's, the model providers' and the operator's own",
    },
    Fence {
        crates: &["hyper", "hyper-util"],
        only_in: &["agent", "sandbox", "server"],
        reason: "HTTP is the sandbox's and the model providers' as clients, and a door's as a server",
    },
    Fence {
        crates: &["walkdir", "grep-searcher", "libc", "nix", "landlock", "seccompiler"],
        only_in: &["sandbox"],
        reason: "the sandbox is the only way to files and processes",
    },
    Fence {
        crates: &["ignore", "cap-std", "rustix"],
        only_in: &["sandbox", "deploy"],
        reason: "files are the sandbox's, and a deploy's in folders that the sandbox has opened",
    },
    Fence {
        crates: &["clap", "anyhow"],
        only_in: &["cli", "xtask"],
        reason: "libraries have no mouth and typed errors",
    },
];

const PREFIX: &str = "toolhost-";

struct Row {
    name: &'static str,
    may_import: &'static [&'static str],
}

struct Fence {
    crates: &'static [&'static str],
    only_in: &'static [&'static str],
    reason: &'static str,
}

/// What the rules need to know of the workspace.
#[derive(Default)]
pub(crate) struct House {
    members: Vec<Member>,
    /// Every package in the dependency tree, ours left out: name to versions.
    versions: BTreeMap<String, BTreeSet<String>>,
}

/// One of our crates.
struct Member {
    /// The package's name as it stands in its manifest.
    package: String,
    /// The name of the folder that holds the manifest.
    folder: String,
    imports: Vec<Import>,
    /// The versions that its own third-party imports resolve to.
    resolved: Vec<(String, String)>,
}

struct Import {
    package: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Build,
    Dev,
}

impl Member {
    /// The name without the prefix: what the tables call it.
    fn name(&self) -> &str {
        plain(&self.package)
    }
}

/// Asks cargo. Only for this machine's platform: with all platforms, cargo would want to download packages that no
/// build here ever used, and the test would need a network.
pub(crate) fn read(root: &Path) -> Result<House> {
    let rustc = shell::stdout_of(Command::new("rustc").arg("-vV"))?;
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not say its host")?;
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .other_options(["--locked", "--filter-platform", host].map(String::from))
        .exec()
        .context("cargo metadata failed")?;
    Ok(house(&metadata))
}

/// All findings, in the order of the rules.
pub(crate) fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &house.members {
        findings.extend(check_name(member));
        findings.extend(check_imports(member));
        findings.extend(check_fences(member));
    }
    findings.extend(check_versions(&house.members));
    findings
}

/// What a person may want to know but cannot always change: the same crate twice in the tree, through others.
pub(crate) fn notes(house: &House) -> Vec<String> {
    let twice = house.versions.iter().filter(|(_, versions)| versions.len() > 1);
    twice.map(|(name, versions)| format!("{name} is in the tree as {}", joined(versions))).collect()
}

fn check_name(member: &Member) -> Vec<Finding> {
    let mut findings = Vec::new();
    let expected = match member.folder.as_str() {
        "xtask" | FACADE => member.folder.clone(),
        folder => format!("{PREFIX}{folder}"),
    };
    if member.package != expected {
        findings.push(Finding::new(&member.package, format!("its folder says it should be called `{expected}`")));
    }
    if row(member.name()).is_none() {
        findings.push(Finding::new(&member.package, "has no row in xtask/src/layers.rs that says what it may import"));
    }
    findings
}

fn check_imports(member: &Member) -> Vec<Finding> {
    let Some(row) = row(member.name()) else { return Vec::new() };
    let ours = member.imports.iter().filter(|import| is_ours(&import.package));
    let broken = ours.filter_map(|import| {
        let name = plain(&import.package);
        let what = match (name, import.kind) {
            (TESTKIT, Kind::Dev) => return None,
            (name, Kind::Dev) if IN_TESTS.contains(&(member.name(), name)) => return None,
            (TESTKIT, Kind::Normal | Kind::Build) => format!("imports `{TESTKIT}` outside its tests"),
            _ if row.may_import.contains(&name) => return None,
            _ => format!("may not import `{name}`, only {}", listed(row.may_import)),
        };
        Some(Finding::new(&member.package, what))
    });
    broken.collect()
}

fn check_fences(member: &Member) -> Vec<Finding> {
    let mut findings = Vec::new();
    for fence in FENCES.iter().filter(|fence| !fence.only_in.contains(&member.name())) {
        for import in member.imports.iter().filter(|import| fence.crates.contains(&import.package.as_str())) {
            let what =
                format!("may not use `{}`, only {} may: {}", import.package, listed(fence.only_in), fence.reason);
            findings.push(Finding::new(&member.package, what));
        }
    }
    findings
}

/// Two of ours that use two versions of one crate cannot hand each other its types.
fn check_versions(members: &[Member]) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for member in members {
        for (name, version) in &member.resolved {
            versions.entry(name).or_default().entry(version).or_default().insert(member.name());
        }
    }
    let several = versions.iter().filter(|(_, by_version)| by_version.len() > 1);
    several
        .map(|(name, by_version)| {
            let told = by_version.iter().map(|(version, users)| format!("{version} ({})", joined(users)));
            Finding::new(*name, format!("is a direct dependency in several versions: {}", joined(told)))
        })
        .collect()
}

fn house(metadata: &Metadata) -> House {
    let workspace = metadata.workspace_packages();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata.packages.iter().filter(|package| package.source.is_some()) {
        versions.entry(package.name.to_string()).or_default().insert(package.version.to_string());
    }
    House { members: workspace.into_iter().map(|package| member(metadata, package)).collect(), versions }
}

fn member(metadata: &Metadata, package: &Package) -> Member {
    let imports = package.dependencies.iter().map(|dependency| {
        let kind = match dependency.kind {
            DependencyKind::Development => Kind::Dev,
            DependencyKind::Build => Kind::Build,
            // A kind that cargo has yet to invent gets the strictest rules.
            _ => Kind::Normal,
        };
        Import { package: dependency.name.clone(), kind }
    });
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let resolved = nodes
        .filter(|node| node.id == package.id)
        .flat_map(|node| &node.dependencies)
        .map(|id| &metadata[id])
        .filter(|dependency| dependency.source.is_some())
        .map(|dependency| (dependency.name.to_string(), dependency.version.to_string()));
    let folder = package.manifest_path.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
    Member {
        package: package.name.to_string(),
        folder: folder.to_owned(),
        imports: imports.collect(),
        resolved: resolved.collect(),
    }
}

fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

fn is_ours(package: &str) -> bool {
    package.starts_with(PREFIX) || package == "xtask" || package == FACADE
}

fn plain(package: &str) -> &str {
    package.strip_prefix(PREFIX).unwrap_or(package)
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none of ours".to_owned() } else { joined(names) }
}

fn joined<T: ToString>(parts: impl IntoIterator<Item = T>) -> String {
    parts.into_iter().map(|part| part.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{FENCES, House, Import, Kind, Member, ROWS, check, notes, read};
    use crate::finding::listed;
    use crate::shell;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn this_house_keeps_its_layers() {
        let findings = check(&read(shell::root()).expect("cargo describes this workspace"));
        assert!(findings.is_empty(), "{}", listed(&findings));
    }

    #[test]
    fn the_table_names_only_its_own_rows() {
        let known = |name: &str| ROWS.iter().any(|row| row.name == name);
        assert!(ROWS.iter().flat_map(|row| row.may_import).all(|name| known(name)));
        assert!(FENCES.iter().flat_map(|fence| fence.only_in).all(|name| known(name)));
    }

    fn member(name: &str, imports: &[(&str, Kind)]) -> Member {
        let imports = imports.iter().map(|(package, kind)| Import { package: (*package).to_owned(), kind: *kind });
        Member {
            package: if name == "xtask" { name.to_owned() } else { format!("toolhost-{name}") },
            folder: name.to_owned(),
            imports: imports.collect(),
            resolved: Vec::new(),
        }
    }

    /// One crate with one import, and what is said about it.
    fn check_import(name: &str, package: &str, kind: Kind, expected: &str) {
        let house = House { members: vec![member(name, &[(package, kind)])], ..House::default() };
        let said = check(&house).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert_eq!(said, expected, "{name} imports {package}");
    }

    #[test]
    fn a_crate_imports_only_what_its_row_allows() {
        check_import("host", "toolhost-store", Kind::Normal, "");
        check_import(
            "contract",
            "toolhost-sandbox",
            Kind::Normal,
            "toolhost-contract: may not import `sandbox`, only none of ours",
        );
        check_import(
            "host",
            "toolhost-tools",
            Kind::Normal,
            "toolhost-host: may not import `tools`, only contract, store",
        );
        check_import(
            "host",
            "toolhost-tools",
            Kind::Dev,
            "toolhost-host: may not import `tools`, only contract, store",
        );
        check_import(
            "store",
            "toolhost-sandbox",
            Kind::Build,
            "toolhost-store: may not import `sandbox`, only contract",
        );
        check_import(
            "server",
            "toolhost-cli",
            Kind::Normal,
            "toolhost-server: may not import `cli`, only contract, records, builder, host, agent, store",
        );
    }

    #[test]
    fn only_the_facade_wires_tools_and_the_tests_of_tools_may_import_it() {
        check_import("tools", "toolhost", Kind::Dev, "");
        check_import("cli", "toolhost", Kind::Normal, "");
        check_import(
            "cli",
            "toolhost-tools",
            Kind::Normal,
            "toolhost-cli: may not import `tools`, only sandbox, contract, builder, store, records, deploy, host, agent, outbound, \
             traces, server, toolhost",
        );
        check_import(
            "agent",
            "toolhost",
            Kind::Normal,
            "toolhost-agent: may not import `toolhost`, only contract, builder, host",
        );
    }

    #[test]
    fn testkit_is_for_tests_only() {
        check_import("host", "toolhost-testkit", Kind::Dev, "");
        check_import("cli", "toolhost-testkit", Kind::Normal, "toolhost-cli: imports `testkit` outside its tests");
        check_import("cli", "toolhost-testkit", Kind::Build, "toolhost-cli: imports `testkit` outside its tests");
    }

    #[test]
    fn third_party_crates_stay_in_their_room() {
        check_import("store", "sqlx", Kind::Normal, "");
        check_import("cli", "rmcp", Kind::Dev, "");
        check_import("host", "globset", Kind::Normal, "");
        check_import(
            "host",
            "sqlx",
            Kind::Dev,
            "toolhost-host: may not use `sqlx`, only store, testkit may: nothing else speaks to a database; tests also look behind the store",
        );
        check_import(
            "tools",
            "ignore",
            Kind::Normal,
            "toolhost-tools: may not use `ignore`, only sandbox, deploy may: files are the sandbox's, and a deploy's in folders that the \
             sandbox has opened",
        );
        check_import(
            "store",
            "anyhow",
            Kind::Normal,
            "toolhost-store: may not use `anyhow`, only cli, xtask may: libraries have no mouth and typed errors",
        );
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let house = House { members: vec![member("utils", &[])], ..House::default() };
        let said = check(&house).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(said, ["toolhost-utils: has no row in xtask/src/layers.rs that says what it may import"]);
    }

    #[test]
    fn a_crate_is_called_as_its_folder() {
        let misnamed = Member { folder: "shop".to_owned(), ..member("store", &[]) };
        let said = check(&House { members: vec![misnamed], ..House::default() });
        assert_eq!(said.len(), 1, "{}", listed(&said));
        assert!(said[0].to_string().contains("`toolhost-shop`"));
    }

    #[test]
    fn two_versions_of_a_direct_dependency_are_found_and_indirect_ones_noted() {
        let with = |name, version: &str| Member {
            resolved: vec![("sha2".to_owned(), version.to_owned())],
            ..member(name, &[])
        };
        let both = BTreeSet::from(["1.0.0".to_owned(), "2.0.0".to_owned()]);
        let house = House {
            members: vec![with("host", "0.10.9"), with("store", "0.11.0"), with("tools", "0.11.0")],
            versions: BTreeMap::from([("syn".to_owned(), both)]),
        };
        let said = check(&house).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(said, ["sha2: is a direct dependency in several versions: 0.10.9 (host), 0.11.0 (store, tools)"]);
        assert_eq!(notes(&house), ["syn is in the tree as 1.0.0, 2.0.0"]);
    }
}
