//! A package that was just begun: a name, and no workflow, agent or asset yet.

use serde_json::{Value, json};

use crate::files::Files;
use crate::package::{MANIFEST, Package};

/// Where a package that begins here keeps its agents.
const AGENTS: &str = "agents.json";
/// The version of the format, and the first of a package.
const SCHEMA_VERSION: &str = "1.1";
const FIRST_VERSION: &str = "0.1.0";

/// A package without anything in it. [`crate::validate`] warns that it has no workflow, the first of which becomes its entry, and no
/// agent.
///
/// `created_at` is RFC 3339.
#[must_use]
pub fn begun(name: &str, description: Option<&str>, created_at: &str) -> Package {
    let mut manifest = json!({
        "schemaVersion": SCHEMA_VERSION,
        "name": name,
        "version": FIRST_VERSION,
        "createdAt": created_at,
        "entry": { "agents": AGENTS, "assetsDir": "assets" },
        "workflows": [],
    });
    if let Some(description) = description {
        manifest["description"] = json!(description);
    }
    let agents = json!({ "schemaVersion": SCHEMA_VERSION, "agents": [] });
    let written = |value: &Value| format!("{value:#}\n").into_bytes();
    let files = [(MANIFEST.to_owned(), written(&manifest)), (AGENTS.to_owned(), written(&agents))];
    Package::read(Files::from_iter(files))
}
