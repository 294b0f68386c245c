//! `check.task_dependencies`

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use super::graph::{Findings, examine};
use crate::tools::arguments::InIteration;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Graph, Kind, ProjectRecords, RecordId, chain_text};

/// Tasks of one circle that are named.
const CHAIN_MAX: usize = 1000;

pub(crate) struct TaskDependencies;

/// Checks what tasks depend on: circles, named as a chain, tasks that depend on themselves, and names that are no
/// task. Says in which order the open tasks can be done, and which chain of them takes longest.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    within: InIteration,
    /// Most tasks of the order, and of each other list.
    #[schemars(range(min = 1, max = 10_000))]
    #[serde(default = "order_default")]
    limit: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// Nothing is wrong.
    valid: bool,
    tasks: usize,
    dependencies: usize,
    /// Each a chain such as `TASK-001 → TASK-002 → TASK-001`.
    cycles: Vec<String>,
    /// Tasks that depend on themselves.
    self_references: Vec<String>,
    unknown_references: Vec<Unknown>,
    /// Open tasks, each after those it depends on.
    order: Vec<String>,
    /// Open tasks beyond `limit`.
    order_left_out: usize,
    /// The chain of open tasks that takes longest; a task without an effort counts as an hour.
    critical_path: Vec<String>,
    critical_path_hours: f64,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        let mut lines = vec![format!("{} tasks, {} dependencies", self.tasks, self.dependencies)];
        lines.extend(self.cycles.iter().map(|chain| format!("circle: {chain}")));
        lines.extend(self.self_references.iter().map(|task| format!("{task} depends on itself")));
        lines.extend(self.unknown_references.iter().map(|one| format!("{} names `{}`: no task", one.task, one.names)));
        if self.valid {
            lines.push("nothing is wrong".to_owned());
        }
        if !self.order.is_empty() {
            let more =
                if self.order_left_out > 0 { format!(" and {} more", self.order_left_out) } else { String::new() };
            lines.push(format!("order of work: {}{more}", self.order.join(", ")));
            let path = self.critical_path.join(" → ");
            lines.push(format!("takes longest ({} h): {path}", self.critical_path_hours));
        }
        lines.join("\n")
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Unknown {
    task: String,
    names: String,
}

fn order_default() -> usize {
    1000
}

impl RecordTool for TaskDependencies {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "check.task_dependencies";
    const TITLE: &'static str = "Check what tasks depend on";
    const FACTS: Facts = Facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("check_task_dependencies")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "two tasks, one after the other",
            arguments: json!({}),
            files: &[],
            before: super::feature_coverage::SMALL_PLAN,
            expect: Expect::Data(&[
                ("/valid", "true"),
                ("/order", r#"["TASK-001","TASK-002"]"#),
                ("/criticalPath", r#"["TASK-001","TASK-002"]"#),
            ]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let graph = desk.graph().await?;
        // Hundreds of thousands of edges take a while, which other calls must not wait for.
        let examined = tokio::task::spawn_blocking(move || (examine(&graph, iteration), graph)).await;
        let (findings, graph) = examined.map_err(ToolError::internal)?;
        Ok(output(findings, &graph, iteration, input.limit))
    }
}

fn output(findings: Findings, graph: &Graph, iteration: i64, limit: usize) -> Output {
    let here: HashSet<i64> =
        graph.nodes.iter().filter(|node| node.iteration == iteration).map(|node| node.number).collect();
    let id = |number: &i64| RecordId { kind: Kind::Task, number: *number };
    let text = |number: &i64| id(number).to_string();
    let chain = |numbers: &Vec<i64>| chain_text(&numbers.iter().take(CHAIN_MAX).map(id).collect::<Vec<_>>());
    let unknown = graph.unknown.iter().filter(|(task, _)| here.contains(task));
    let unknown: Vec<Unknown> =
        unknown.map(|(task, names)| Unknown { task: text(task), names: names.clone() }).collect();
    Output {
        valid: findings.circles.is_empty() && findings.own.is_empty() && unknown.is_empty(),
        tasks: here.len(),
        dependencies: graph.edges.iter().filter(|(from, _)| here.contains(from)).count(),
        cycles: findings.circles.iter().map(chain).collect(),
        self_references: findings.own.iter().take(limit).map(text).collect(),
        unknown_references: unknown.into_iter().take(limit).collect(),
        order: findings.order.iter().take(limit).map(text).collect(),
        order_left_out: findings.order.len().saturating_sub(limit),
        critical_path: findings.critical.iter().take(limit).map(text).collect(),
        critical_path_hours: (findings.critical_minutes as f64 / 6.0).round() / 10.0,
    }
}
