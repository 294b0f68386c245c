//! `deploy.copy`

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{
    Alias, Approval, Ctx, Effect, ErrorKind, Example, Expect, Facts, Preview, Progress, Tool, ToolError, Trace,
    visible_line,
};

use super::{DeployMark, DeployPlan, Deployed, Deployment, Reason};

/// Paths of one list in an answer; the others are counted. A person who has to allow the deploy is shown all of them.
const SHOWN_MAX: usize = 200;

pub(crate) struct Copy(pub(crate) Option<Deployment>);

/// Copies the finished workspace into the user's project folder. A person sees the plan and agrees each time; a dry run
/// only tells the plan. It happens whole or not at all, and the person can undo it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Only tell what would happen.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// False for a dry run.
    deployed: bool,
    /// The deploy's number, for undoing it; null where nothing had to be done.
    deploy_id: Option<String>,
    new: Paths,
    changed: Paths,
    unchanged: usize,
    /// What an earlier deploy brought and the workspace no longer has: deleted.
    orphans: Paths,
    /// What would be deleted, but stays, and why.
    protected: Reasons,
    /// What does not ship, and why.
    refused: Reasons,
    /// Of the protected and refused, those that no rule keeps back: they could not be written, deleted or read.
    held_back: usize,
    bytes: u64,
    /// SHA-256 of the plan, hex: what a person agrees to.
    digest: String,
}

#[derive(Serialize, JsonSchema)]
struct Paths {
    total: usize,
    /// At most 200 of them.
    paths: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reasons {
    total: usize,
    /// At most 200 of them.
    files: Vec<Why>,
}

#[derive(Serialize, JsonSchema)]
struct Why {
    path: String,
    why: String,
}

impl Tool for Copy {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "deploy.copy";
    const TITLE: &'static str = "Deploy the workspace";
    const FACTS: Facts = Facts {
        effect: Effect::Writes,
        approval: Approval::Always,
        trace: Trace::Deploy,
        dry_run: Some("dryRun"),
        ..Facts::READS
    };

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("copy_workspace_to_project")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "the operator has to say where to",
            arguments: json!({"dryRun": true}),
            files: &[("index.html", "<p>hello</p>\n")],
            before: &[],
            expect: Expect::Fails(ErrorKind::NotFound),
        }]
    }

    fn render(&self, output: &Output) -> String {
        let did = if output.deployed { "deployed" } else { "would deploy" };
        let mut text = format!(
            "{did} {} new, {} changed and {} deleted files; {} are as they were ({} bytes)",
            output.new.total, output.changed.total, output.orphans.total, output.unchanged, output.bytes
        );
        if output.held_back > 0 {
            text.push_str(&format!("; {} stay back because they cannot be written, deleted or read", output.held_back));
        }
        for (what, list) in [("new", &output.new), ("changed", &output.changed), ("deleted", &output.orphans)] {
            for path in &list.paths {
                text.push_str(&format!("\n{what}: {}", visible_line(path)));
            }
        }
        for (what, list) in [("stays", &output.protected), ("not shipped", &output.refused)] {
            for one in &list.files {
                text.push_str(&format!("\n{what}: {} ({})", visible_line(&one.path), visible_line(&one.why)));
            }
        }
        text
    }

    async fn preview(&self, ctx: &Ctx<'_>, _: Input) -> Result<Option<Preview>, ToolError> {
        let deployment = self.deployment()?;
        let plan = deployment.plan(&ctx.cancel).await?;
        let summary = format!(
            "deploy to {}: {} new, {} changed, {} deleted files",
            deployment.name(),
            plan.new.len(),
            plan.changed.len(),
            plan.orphans.len()
        );
        let rests_on = json!({ "digest": plan.digest() });
        let detail = self.render(&output(&plan, None, usize::MAX));
        Ok(Some(Preview { summary, detail, left_out: 0, rests_on }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let deployment = self.deployment()?;
        let plan = deployment.plan(&ctx.cancel).await?;
        if input.dry_run {
            return Ok(output(&plan, None, SHOWN_MAX));
        }
        // What runs is the plan that a person has seen, and no other.
        let approved = ctx.approved.as_ref().and_then(|rests_on| rests_on.get("digest")).and_then(Value::as_str);
        if approved != Some(plan.digest().as_str()) {
            return Err(ToolError::new(ErrorKind::Conflict, "the files have changed since a person saw the plan")
                .hint("ask again: the plan will be made anew"));
        }
        let mark = DeployMark {
            id: ctx.call.id.to_string(),
            at_ms: ctx.clock.unix_ms(),
            who: ctx.call.caller.persona.clone(),
        };
        let sink = Arc::clone(&ctx.progress);
        let tell = move |done: usize, total: usize, doing: &'static str| {
            sink.report(Progress {
                done: done as f64,
                total: Some(total as f64),
                message: doing.to_owned(),
                output: None,
            });
        };
        let deployed = deployment.run(plan.clone(), mark, Arc::new(tell), &ctx.cancel).await?;
        Ok(output(&plan, Some(deployed), SHOWN_MAX))
    }
}

impl Copy {
    fn deployment(&self) -> Result<&Deployment, ToolError> {
        self.0.as_ref().ok_or_else(|| {
            ToolError::new(ErrorKind::NotFound, "no deploy target is set").hint(
                "ask the person to name the folder with `--deploy-to DIR`, or with `to` below [deploy] in config.toml",
            )
        })
    }
}

fn output(plan: &DeployPlan, deployed: Option<Deployed>, shown_max: usize) -> Output {
    let paths = |all: &mut dyn Iterator<Item = &String>| {
        let all: Vec<&String> = all.collect();
        Paths { total: all.len(), paths: all.into_iter().take(shown_max).cloned().collect() }
    };
    let reasons = |all: &[Reason]| Reasons {
        total: all.len(),
        files: all.iter().take(shown_max).map(|one| Why { path: one.path.clone(), why: one.why.clone() }).collect(),
    };
    Output {
        new: paths(&mut plan.new.iter().map(|file| &file.path)),
        changed: paths(&mut plan.changed.iter().map(|file| &file.path)),
        unchanged: plan.unchanged,
        orphans: paths(&mut plan.orphans.iter().map(|file| &file.path)),
        protected: reasons(&plan.protected),
        refused: reasons(&plan.refused),
        held_back: plan.held_back().count(),
        bytes: plan.bytes,
        digest: plan.digest(),
        deployed: deployed.is_some(),
        deploy_id: deployed.and_then(|deployed| deployed.id),
    }
}
