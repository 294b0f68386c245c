//! The fence around git while it talks to a remote that the operator grants: it reaches the network, and of the workspace
//! only the objects of its repository.

use std::path::{Path, PathBuf};

use super::bwrap::{Method, Plan, limits, orders, system_readable};
use super::identity::Identity;
use super::policy::{NetworkMode, Policy, ResourceLimits};
use crate::local::LocalConfig;
use crate::remote::Stage;
use toolhost_contract::workspace::{Command, Error, Remote, Result, Tier};

/// What looking up a name takes, besides what every command may read.
const NAMES: [&str; 3] = ["/etc/resolv.conf", "/etc/host.conf", "/etc/gai.conf"];

/// Git with the host's own network, in the folder of `stage` alone. The same in each tier: what runs here is the host's, and
/// Landlock holds it.
pub(crate) fn plan_remote(
    method: &Method,
    config: &LocalConfig,
    command: &Command,
    stage: &Stage,
    (remote, objects): (&Remote, &Path),
) -> Result<Plan> {
    // A user of the fence's own has no entry among the machine's users, without which ssh does not start. Root without its
    // capabilities has one, and reads what root owns.
    let become_user = match method.identity {
        Identity::Owner { uid, gid } => Some((uid, gid)),
        Identity::Host | Identity::Mapped { .. } | Identity::BareRoot => None,
    };
    if let Some((uid, gid)) = become_user {
        stage.give(uid, gid).map_err(|source| Error::Io { path: "a private temporary folder".to_owned(), source })?;
    }
    let mut readable = system_readable(config);
    readable.extend(NAMES.iter().chain(&["/dev/random", "/dev/urandom"]).map(PathBuf::from));
    let policy = Policy {
        become_user,
        drop_capabilities: matches!(method.identity, Identity::Mapped { .. } | Identity::BareRoot),
        enforce: method.tier != Tier::Off,
        ends_in_order: command.ends_in_order,
        cwd: Some(stage.repository()),
        readable,
        writable: vec![stage.path(), PathBuf::from("/dev/null")],
        readable_plain: vec![objects.to_owned()],
        mounted: Vec::new(),
        opened: Vec::new(),
        network: NetworkMode::Direct,
        private_ipc: false,
        // The processes of root are many.
        limits: ResourceLimits { processes: None, ..limits(method, config, command) },
    };
    Ok(Plan {
        program: config.helper.clone(),
        args: orders(&policy, command)?,
        env: stage.environment(&config.path, remote),
        cwd: PathBuf::from("/"),
        id_map: None,
        ends_in_order: command.ends_in_order,
        lock: None,
        cgroup: None,
        stdin: None,
        streams_of: None,
        in_memory: Vec::new(),
        mark: None,
        temp: None,
        session: None,
    })
}
