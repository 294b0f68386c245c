//! What a person's yes costs besides the person, and a deploy beside `rsync`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::client::{Client, Server};
use crate::bench::playground::write_tree;
use crate::bench::rows::{Stage, median_ms, spawn, take_turns};
use crate::bench::table::Measured;
use crate::shell;

const APPROVALS: usize = 200;
/// Calls before the first that counts.
const WARM_UP: usize = 20;
const DEPLOYED_FILES: usize = 50_000;
const DEPLOYS: usize = 3;

/// One rule of difference between the two servers: a person is asked, and this client answers at once.
const ASKS: &str = "[approvals]\nclient = true\n[[profiles.developer.rules]]\ntool = 'file.write'\ndecide = 'ask'\n";

/// A call that is asked about and allowed, beside the same call that policy allows.
pub(crate) fn approval(stage: &Stage) -> Result<Measured> {
    let folder = stage.playground.state("approvals");
    fs::create_dir_all(&folder)?;
    let mut asked = Client::start_allowing(&server(stage, &folder, "asked", ASKS)?)?;
    let mut plain = Client::start(&server(stage, &folder, "plain", "")?)?;
    let mut count = 0;
    let mut call = |client: &mut Client| -> Result<Duration> {
        count += 1;
        let arguments = json!({ "path": "approved.txt", "content": format!("the {count}. content\n") });
        Ok(client.call("file_write", &arguments)?.1)
    };
    for _ in 0..WARM_UP {
        call(&mut asked)?;
        call(&mut plain)?;
    }
    let (mut ours, mut without) = (Vec::new(), Vec::new());
    for _ in 0..APPROVALS {
        ours.push(call(&mut asked)?);
        without.push(call(&mut plain)?);
    }
    Ok(Measured { ours: median_ms(ours)?, peer: Some(("allowed by policy", median_ms(without)?)) })
}

fn server(stage: &Stage, folder: &Path, name: &str, config: &str) -> Result<Server> {
    let (root, file) = (folder.join(name), folder.join(format!("{name}.toml")));
    fs::create_dir_all(&root)?;
    fs::write(&file, config)?;
    let server = Server::new("toolhost", &stage.program).arg("mcp").arg("--root").arg(root);
    let server = server.arg("--state").arg(folder.join(format!("{name}-state")));
    Ok(server.arg("--config").arg(file).arg("--profile").arg("developer"))
}

/// The whole command into an empty folder, its plan and its journal included.
pub(crate) fn deploy(stage: &Stage) -> Result<Measured> {
    let folder = stage.playground.state("deploys");
    let source = folder.join("source");
    write_tree(&source, DEPLOYED_FILES)?;
    let empty = |name: &str| -> Result<_> {
        let target = folder.join(name);
        if target.exists() {
            #[expect(clippy::disallowed_methods, reason = "what this bench has deployed, one level deep")]
            fs::remove_dir_all(&target)?;
        }
        fs::create_dir(&target)?;
        Ok(target)
    };
    let config = folder.join("deploy.toml");
    fs::write(&config, "[deploy]\nship_also = ['.txt']\n")?;
    let mut state = 0;
    let ours = || -> Result<Duration> {
        let target = empty("ours")?;
        state += 1;
        let began = Instant::now();
        let output = Command::new(&stage.program)
            .args(["deploy", "run", "--yes", "--json", "--root"])
            .arg(&source)
            .arg("--state")
            .arg(folder.join(format!("state-{state}")))
            .arg("--config")
            .arg(&config)
            .arg("--deploy-to")
            .arg(target)
            .output()?;
        let took = began.elapsed();
        ensure!(output.status.success(), "the deploy failed: {}", String::from_utf8_lossy(&output.stderr));
        let deployed: Value = serde_json::from_slice(&output.stdout).context("what the deploy did")?;
        ensure!(deployed["new"] == DEPLOYED_FILES, "the deploy brought {} files", deployed["new"]);
        Ok(took)
    };
    let peer = shell::has_program("rsync").then_some(("rsync -a", || {
        let target = empty("peer")?;
        spawn(Command::new("rsync").arg("-a").arg(format!("{}/", source.display())).arg(target))
    }));
    take_turns(DEPLOYS, ours, peer)
}
