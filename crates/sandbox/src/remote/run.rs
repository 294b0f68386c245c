//! One conversation of git with a remote that the operator grants.

use std::path::PathBuf;

use super::Stage;
use crate::fence::{self, Method};
use crate::local::Room;
use crate::running::run_plan;
use crate::spawner::Spawner;
use toolhost_contract::workspace::{Command, Error, Remote, RemoteCommand, RemoteResult, Result, Watch};

pub(crate) async fn run(
    spawner: &Spawner,
    room: &Room,
    method: &Method,
    remote: &Remote,
    order: RemoteCommand,
    watch: Watch,
) -> Result<RemoteResult> {
    let unusable = |why: String| Error::Remote { name: remote.name.clone(), why };
    let Some(objects) = objects(room) else {
        return Err(unusable("the workspace's repository is not in its own `.git` folder".to_owned()));
    };
    let argv = ["bash", "-c", &order.script, "git", remote.url.as_str()].map(str::to_owned);
    let mut command = Command::new(argv.into_iter().chain(order.arguments.iter().cloned()), order.timeout);
    command.capture_bytes = order.capture_bytes;
    let (temp, granted, borrowed) = (room.config.temp.clone(), remote.clone(), objects.clone());
    // A token may come from a program of the operator's, which takes its time.
    let making = tokio::task::spawn_blocking(move || Stage::new(&temp, &borrowed, &granted, &order)).await;
    let stage = making.map_err(std::io::Error::other).flatten().map_err(|error| unusable(error.to_string()))?;
    let plan = fence::plan_remote(method, &room.config, &command, &stage, (remote, &objects))?;
    let mut result = run_plan(spawner, room, method, command.into(), plan, watch).await?;
    for stream in [&mut result.stdout, &mut result.stderr] {
        stage.hide(&mut stream.text);
    }
    let pack = stage.pack().map_err(|error| unusable(error.to_string()))?;
    Ok(RemoteResult { result, pack })
}

/// The folder of the repository's objects, which is where git usually has it and nowhere a link leads.
fn objects(room: &Room) -> Option<PathBuf> {
    let own = room.root.join(".git");
    let git = match room.outer_git() {
        Some(outer) => outer.to_owned(),
        None => own.symlink_metadata().ok().filter(std::fs::Metadata::is_dir).map(|_| own)?,
    };
    let objects = git.join("objects");
    let plain = !git.join("commondir").exists() && objects.symlink_metadata().is_ok_and(|found| found.is_dir());
    plain.then_some(objects)
}
