//! A small service. It opens a host without a folder, imports a workflow package, lets a model change it, shows the change, and
//! applies it and takes it back as the person would: `service DATABASE PACKAGE.zip`, where DATABASE is a folder or the URL of
//! a PostgreSQL database.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program prints and reads files")]

use toolhost::agent::session::{Answer, Event};
use toolhost::package_format::change::render;
use toolhost::package_format::envelope::{Mode, TargetType};
use toolhost::package_format::from_zip;
use toolhost::{ApplyOptions, Host, Models, SessionRequest};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(database), Some(zip)) = (arguments.next(), arguments.next()) else {
        return Err("usage: service DATABASE PACKAGE.zip".into());
    };
    let builder = Host::builder().project("acme").user("ada");
    let is_server = database.starts_with("postgres");
    let host = if is_server { builder.database(database) } else { builder.state(database) }.open().await?;

    let files = from_zip(&std::fs::read(zip)?).map_err(|findings| format!("{findings:?}"))?;
    let imported = host.packages().import(files, false).await?;
    println!("imported {} files", imported.files);

    // A provider: Models::new().key("ANTHROPIC_API_KEY", Secret::new(&key)).open("anthropic:claude-sonnet-4-5")?
    let model = Models::new().script("demo", include_str!("service.json")).open("script:demo")?;
    let goal = "Say it in one sentence.";
    let request = SessionRequest::builder(goal, Mode::Optimize, TargetType::Asset, "assets/style-guide.md");
    let session = host.start(request, &model).await?;
    let mut run = session.run();
    while let Some(event) = run.next().await {
        match event {
            Event::CallEnded { tool, ok, .. } => println!("called {tool}, ok: {ok}"),
            Event::Ended { result } => println!("the session ended: {:?}", result.status),
            _ => {}
        }
    }
    let Some(Answer::Change { change_set_id, .. }) = run.result().await?.answer else {
        return Err("the session has staged nothing".into());
    };

    let preview = host.changes().preview(&change_set_id).await?;
    println!("{}", render(&preview.diff));
    let applied = host.changes().apply(&change_set_id, &ApplyOptions::default()).await?;
    println!("{}", applied.text);
    let moment = applied.data["moment"].as_i64().ok_or("nothing is different")?;
    println!("{}", host.changes().undo(moment).await?.text);
    Ok(host.close().await?)
}
