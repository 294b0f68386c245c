//! Houses with every built-in tool on both engines, and what many tests read and write there. [`crate::database`] has the same
//! without a house: for tests of the store and of what stands on it.

use std::fmt;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use toolhost_contract::Outcome;
use toolhost_records::RecordError;
use toolhost_store::{Store, Who};

use crate::{House, HouseBuilder, Postgres, Program};

/// What the secret of a login is long.
const SECRET_CHARS: usize = 64;

/// An empty database. It says which engine it is when a test fails.
pub struct Engine {
    /// `None`: SQLite, a file in the workspace's state folder.
    pub url: Option<String>,
}

/// SQLite, then PostgreSQL where there is a server.
pub fn engines() -> impl Iterator<Item = Engine> {
    [|| Some(None), || Some(Some(Postgres::shared()?.fresh_database()))]
        .into_iter()
        .filter_map(|url: fn() -> Option<Option<String>>| Some(Engine { url: url()? }))
}

impl Engine {
    /// A house with every built-in tool on this database, yet to be built.
    pub fn builder(&self) -> HouseBuilder {
        HouseBuilder::of(toolhost::tools).database(self.url.clone())
    }

    pub async fn house(&self) -> House {
        self.builder().build().await
    }

    /// The program, told to keep everything in this database.
    pub fn under(&self, program: Program) -> Program {
        match &self.url {
            Some(url) => {
                // Programs with homes of their own are one terminal, as long as it is one database.
                let name: String = url.chars().filter(char::is_ascii_alphanumeric).collect();
                let login = Path::new("/var/tmp").join(format!("toolhost-test-login-{name}"));
                program.variable("TOOLHOST_DATABASE", url).variable("TOOLHOST_LOGIN_FILE", login)
            }
            None => program,
        }
    }
}

impl Engine {
    /// The program, used by this person: in a shared database they have signed in, and the login is in a file of this folder. The
    /// database has been opened before.
    pub fn used_by(&self, program: &Program, name: &str, folder: &Path) -> Program {
        let program = program.clone().argument("--user").argument(name);
        let (Some(url), Some(server)) = (&self.url, Postgres::shared()) else { return program };
        let mut secret: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        secret.extend(std::iter::repeat_n('0', SECRET_CHARS - secret.len()));
        let file = folder.join(format!("login-{name}"));
        std::fs::write(&file, &secret).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let insert = format!(
            "INSERT INTO terminal_login (hash, user_name, terminal, created_at_ms, used_at_ms, expires_at_ms)
             VALUES (encode(sha256('{secret}'), 'hex'), '{name}', 'test', 1, 1, 9000000000000) ON CONFLICT DO NOTHING"
        );
        server.psql(url, &insert);
        program.variable("TOOLHOST_LOGIN_FILE", file)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.url.is_some() { "PostgreSQL" } else { "SQLite" })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Which engine it was on; nobody is left to hear that this failed, too.
            let _ = writeln!(std::io::stderr(), "the test failed on {self}");
        }
    }
}

/// All lines of a project's export.
pub async fn exported(store: &Store, project: i64) -> Vec<String> {
    let who = Who { project_id: project, user_id: 1, name: "reader".to_owned(), call_id: "none".to_owned() };
    let mut lines = Vec::new();
    let mut sink = |line: String| -> Result<(), RecordError> {
        lines.push(line);
        Ok(())
    };
    toolhost_records::Records::new(store.database()).desk(who).unwrap().export(&mut sink).await.unwrap();
    lines
}

/// The project of another workspace in the same database.
pub async fn next_door(house: &House, owner: &str) -> i64 {
    house.store.project(Path::new("/nowhere/next-door"), "next door", owner).await.unwrap().id
}

/// Code, kind and message of a refusal.
#[track_caller]
pub fn refusal(outcome: &Outcome) -> (&'static str, &'static str, String) {
    assert!(!outcome.ok, "it was not refused: {outcome:?}");
    let error = outcome.error.as_ref().unwrap();
    (error.code.as_str(), error.kind.as_str(), error.message.clone())
}

/// One of everything that tools keep, all of it with `word` in its texts: an iteration, whose number is told, and two
/// tasks, of which the second waits for the first.
pub async fn furnish(house: &House, user: i64, project: i64, word: &str) -> i64 {
    let run = async |tool: &str, arguments: Value| {
        let mut call = house.request(tool, arguments);
        (call.scope.user_id, call.scope.project_id) = (user, project);
        let outcome = house.run(call).await;
        assert!(outcome.ok, "{tool}: {outcome:?}");
        outcome.data["id"].as_str().unwrap_or_default().to_owned()
    };
    let iteration = run("iteration.create", json!({ "title": word })).await;
    let about = json!({ "title": word, "description": word, "name": word });
    let with = |more: Value| {
        let mut all = about.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        all
    };
    let requirement = run(
        "requirement.create",
        with(json!({ "name": null, "priority": "high", "category": "functional", "acceptanceCriteria": [word] })),
    );
    let requirement = requirement.await;
    let feature = run(
        "feature.add",
        with(json!({ "title": null, "requirementIds": [requirement], "completionCriteria": [word] })),
    );
    let feature = feature.await;
    let component = with(json!({
        "title": null, "description": null, "componentType": "database", "responsibilities": [word], "technology": word,
        "relatedFeatures": [feature],
    }));
    let component = run("component.add", component).await;
    run("design.update", json!({ "deployment": word })).await;
    run("milestone.add", json!({ "name": word, "features": [feature] })).await;
    let task = |dependencies: Value| {
        with(json!({
            "name": null, "featureId": feature, "componentId": component, "acceptanceCriteria": [word],
            "dependencies": dependencies,
        }))
    };
    let first = run("task.create", task(json!([]))).await;
    run("task.create", task(json!([first]))).await;
    run("artifact.save", json!({ "kind": "prd", "content": word })).await;
    let ticket = run("ticket.create", with(json!({ "name": null, "acceptanceCriteria": [word] }))).await;
    run("comment.post", json!({ "ticketId": ticket, "content": word })).await;
    run("ticket.save_document", json!({ "ticketId": ticket, "type": "research", "content": word })).await;
    run("persona.add", json!({ "name": format!("{word} {iteration}"), "role": "developer", "personality": word }))
        .await;
    let text = |what: &str| format!("{word} {what} {iteration}");
    let insight = run("memory.save_insight", json!({ "stage": "plan", "content": text("insight") })).await;
    run("memory.save_issue", json!({ "stage": "plan", "content": text("issue") })).await;
    let learning = run("memory.save_learning", json!({ "content": text("learning") })).await;
    let decision = json!({ "title": word, "context": word, "decision": text("decision"), "sourceId": insight });
    run("memory.promote_to_decision", decision).await;
    run("memory.promote_to_pattern", json!({ "name": word, "description": text("pattern"), "sourceId": learning }))
        .await;
    iteration.trim_start_matches("ITER-").parse().unwrap()
}
