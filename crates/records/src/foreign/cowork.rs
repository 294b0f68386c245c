//! Cowork Forge's project folder, `.cowork-v2`: one JSON file per iteration, its data, documents and memory.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Bundle, Files, text, text_or, texts, time_ms, word};
use crate::{
    ArtifactKind, Category, ComponentType, Draft, Importance, Inheritance, IterationStatus, Kind, Priority,
    RecordError, Result, Status,
};

/// The documents of an iteration, by file.
const ARTIFACTS: [(&str, ArtifactKind); 6] = [
    ("idea.md", ArtifactKind::Idea),
    ("prd.md", ArtifactKind::Prd),
    ("design.md", ArtifactKind::Design),
    ("plan.md", ArtifactKind::Plan),
    ("check_report.md", ArtifactKind::CheckReport),
    ("delivery_report.md", ArtifactKind::DeliveryReport),
];

/// Reads the files below `.cowork-v2`.
pub fn cowork(files: &Files) -> Result<Bundle> {
    let mut reader = Reader { files, bundle: Bundle::default(), iteration: String::new(), keys: BTreeSet::new() };
    let mut iterations: Vec<(i64, String, Value)> = Vec::new();
    for path in files.keys() {
        let Some(name) = path.strip_prefix("iterations/").and_then(|rest| rest.strip_suffix(".json")) else { continue };
        if !name.contains('/') {
            let value = reader.object(path)?.unwrap_or_default();
            iterations.push((value["number"].as_i64().unwrap_or(i64::MAX), name.to_owned(), value));
        }
    }
    iterations.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let known: BTreeSet<String> = iterations.iter().map(|(_, name, _)| name.clone()).collect();
    for (_, name, value) in &iterations {
        reader.iteration(name, value, &known);
        reader.data()?;
        reader.documents();
        reader.feedback()?;
        reader.iteration_memory(name)?;
    }
    reader.iteration.clear();
    // A memory outlives the iteration that it was of.
    for path in files.keys() {
        let name = path.strip_prefix("memory/iterations/").and_then(|rest| rest.strip_suffix(".json"));
        if let Some(name) = name.filter(|name| !known.contains(*name)) {
            reader.iteration_memory(name)?;
        }
    }
    reader.project_memory(&known)?;
    if let Some(project) = reader.json("project.json")? {
        reader.bundle.current = project["current_iteration_id"].as_str().map(str::to_owned);
        let (name, metadata) = (text(&project, "name"), &project["metadata"]);
        reader.bundle.note(format!("the project's name there is `{name}`; this project keeps its own"));
        if metadata.as_object().is_some_and(|fields| !fields.is_empty()) {
            reader.bundle.note(format!("the project's metadata were left: {metadata}"));
        }
    }
    for path in files.keys().filter(|path| path.ends_with("code_metadata.json") || path.ends_with("session/meta.json"))
    {
        reader.bundle.note(format!("{path} was left: there is no place for it"));
    }
    if reader.bundle.drafts.is_empty() {
        return Err(RecordError::Field { field: "files".to_owned(), problem: "there is nothing to import".to_owned() });
    }
    Ok(reader.bundle)
}

struct Reader<'a> {
    files: &'a Files,
    bundle: Bundle,
    /// The one being read.
    iteration: String,
    keys: BTreeSet<String>,
}

impl Reader<'_> {
    fn json(&self, path: &str) -> Result<Option<Value>> {
        let Some(content) = self.files.get(path) else { return Ok(None) };
        let parsed = serde_json::from_str(content);
        parsed.map(Some).map_err(|error| RecordError::Field { field: path.to_owned(), problem: error.to_string() })
    }

    /// A file that holds one object.
    fn object(&self, path: &str) -> Result<Option<Value>> {
        match self.json(path)? {
            Some(value) if !value.is_object() => Err(misshapen(path, "an object")),
            value => Ok(value),
        }
    }

    /// A list in a file: by itself, or as the named field of an object.
    fn list(&self, path: &str, field: &str) -> Result<Vec<Value>> {
        let Some(value) = self.json(path)? else { return Ok(Vec::new()) };
        if value.is_array() { items(path, "the list", &value) } else { items(path, field, &value[field]) }
    }

    /// The key of a record of this iteration. Each iteration counts from 001 there.
    fn key(&self, id: &str) -> String {
        format!("{}/{id}", self.iteration)
    }

    fn add(&mut self, kind: Kind, id: &str, content: Value, created_at_ms: Option<i64>) {
        let mut key = self.key(id);
        if !self.keys.insert(key.clone()) {
            self.bundle.note(format!("{key} is there twice: both are kept, and references mean the first"));
            let copy = (2..).map(|n| format!("{key}#{n}")).find(|copy| !self.keys.contains(copy));
            key = copy.unwrap_or_default();
            self.keys.insert(key.clone());
        }
        let iteration = Some(self.iteration.clone()).filter(|name| !name.is_empty());
        self.bundle.drafts.push(Draft { key, kind, iteration, content, created_at_ms });
    }

    /// The word, or the other one if it is none of these.
    fn pick<T: Copy>(&mut self, of: &str, found: &Value, parse: fn(&str) -> Option<T>, other: T) -> T {
        let text = found.as_str().map(word).unwrap_or_default();
        parse(&text).unwrap_or_else(|| {
            if !text.is_empty() {
                let at = if self.iteration.is_empty() { String::new() } else { format!("{}: ", self.iteration) };
                self.bundle.note(format!("{at}`{text}` of {of} is not known here and was changed"));
            }
            other
        })
    }

    fn iteration(&mut self, name: &str, value: &Value, known: &BTreeSet<String>) {
        self.iteration.clear();
        let status = self.pick(name, &value["status"], IterationStatus::parse, IterationStatus::Draft);
        let inheritance = self.pick(name, &value["inheritance"], Inheritance::parse, Inheritance::Full);
        let base = value["base_iteration_id"].as_str().filter(|base| known.contains(*base));
        let mut content = json!({
            "title": text_or(value, "title", name),
            "description": text(value, "description"),
            "status": status,
            "inheritance": inheritance,
            "startedAtMs": time_ms(value, "started_at"),
            "completedAtMs": time_ms(value, "completed_at"),
        });
        if let Some(base) = base {
            content["baseIterationId"] = json!(base);
        }
        let created = time_ms(value, "created_at").or_else(|| time_ms(value, "started_at"));
        let draft =
            Draft { key: name.to_owned(), kind: Kind::Iteration, iteration: None, content, created_at_ms: created };
        self.bundle.drafts.push(draft);
        name.clone_into(&mut self.iteration);
    }

    fn data(&mut self) -> Result<()> {
        let data = format!("iterations/{}/data", self.iteration);
        let requirements = self.list(&format!("{data}/requirements.json"), "requirements")?;
        let features = self.list(&format!("{data}/feature_list.json"), "features")?;
        let design_path = format!("{data}/design_spec.json");
        let design = self.object(&design_path)?.unwrap_or_default();
        let components = items(&design_path, "components", &design["architecture"]["components"])?;
        let plan_path = format!("{data}/implementation_plan.json");
        let plan = self.object(&plan_path)?.unwrap_or_default();
        let tasks = items(&plan_path, "tasks", &plan["tasks"])?;
        let ids = |list: &[Value]| -> BTreeSet<String> { list.iter().map(|one| text(one, "id")).collect() };
        let names = Names {
            requirements: ids(&requirements),
            features: ids(&features),
            components: ids(&components),
            tasks: ids(&tasks),
        };
        for one in &requirements {
            self.requirement(one);
        }
        for one in &features {
            self.feature(one, &names);
        }
        for one in &components {
            self.component(one, &names);
        }
        self.design(&design);
        for one in &tasks {
            self.task(one, &names);
        }
        for one in &items(&plan_path, "milestones", &plan["milestones"])? {
            let features = self.known(one, "features", &names.features, &text(one, "id"));
            let mut content = json!({ "name": text_or(one, "name", "milestone"), "features": features });
            if let Some(deadline) = one["deadline"].as_str() {
                content["deadline"] = json!(deadline);
            }
            self.add(Kind::Milestone, &text(one, "id"), content, None);
        }
        Ok(())
    }

    /// Those of a field's ids that are there, as keys.
    fn known(&mut self, one: &Value, field: &str, there: &BTreeSet<String>, of: &str) -> Vec<String> {
        let (known, unknown): (Vec<String>, Vec<String>) =
            texts(one, field).into_iter().partition(|id| there.contains(id));
        for id in unknown {
            self.bundle.note(format!("{}: {of} names `{id}` in {field}, which is not there; left out", self.iteration));
        }
        known.iter().map(|id| self.key(id)).collect()
    }

    fn requirement(&mut self, one: &Value) {
        let id = text(one, "id");
        let priority = self.pick(&id, &one["priority"], Priority::parse, Priority::Medium);
        let category = self.pick(&id, &one["category"], Category::parse, Category::Functional);
        let content = json!({
            "title": text_or(one, "title", &id),
            "description": text(one, "description"),
            "priority": priority,
            "category": category,
            "acceptanceCriteria": texts(one, "acceptance_criteria"),
        });
        self.add(Kind::Requirement, &id, content, time_ms(one, "created_at"));
    }

    fn feature(&mut self, one: &Value, names: &Names) {
        let id = text(one, "id");
        let status = self.pick(&id, &one["status"], Status::parse, Status::Pending);
        let mut content = json!({
            "name": text_or(one, "name", &id),
            "description": text(one, "description"),
            "status": status,
            "requirementIds": self.known(one, "requirement_ids", &names.requirements, &id),
            "completionCriteria": texts(one, "completion_criteria"),
            "dependencies": self.known(&one["metadata"], "dependencies", &names.features, &id),
            "completedAtMs": time_ms(one, "completed_at"),
        });
        if let Some(effort) = one["metadata"]["estimated_effort"].as_str() {
            content["estimatedEffort"] = json!(effort);
        }
        self.add(Kind::Feature, &id, content, time_ms(one, "created_at"));
    }

    fn component(&mut self, one: &Value, names: &Names) {
        let id = text(one, "id");
        // `other` carries a text of its own.
        let named = if one["component_type"].is_null() { &one["type"] } else { &one["component_type"] };
        let (component_type, other) = match named {
            Value::Object(fields) => (ComponentType::Other, fields.values().find_map(Value::as_str).map(str::to_owned)),
            Value::String(text) => match ComponentType::parse(&word(text)) {
                Some(known) => (known, None),
                None => (ComponentType::Other, Some(text.clone())),
            },
            _ => (ComponentType::Other, None),
        };
        let interfaces: Vec<Value> = one["interfaces"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|face| json!({ "name": text(face, "name"), "inputs": texts(face, "inputs"), "outputs": texts(face, "outputs") }))
            .collect();
        let mut content = json!({
            "name": text_or(one, "name", &id),
            "componentType": component_type,
            "responsibilities": texts(one, "responsibilities"),
            "technology": text(one, "technology"),
            "interfaces": interfaces,
            "relatedFeatures": self.known(one, "related_features", &names.features, &id),
        });
        if let Some(other) = other {
            content["otherType"] = json!(other);
        }
        self.add(Kind::Component, &id, content, None);
    }

    fn design(&mut self, design: &Value) {
        let architecture = &design["architecture"];
        let models: Vec<Value> = architecture["data_models"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|model| json!({ "name": text(model, "name"), "fields": fields_of(&model["fields"]) }))
            .collect();
        let stack = &design["technology_stack"];
        let style = text(architecture, "style");
        let deployment = text(&design["deployment"], "architecture");
        if style.is_empty() && models.is_empty() && deployment.is_empty() && stack.is_null() {
            return;
        }
        let mut technology = json!({});
        for name in ["backend", "frontend", "database"] {
            if let Some(text) = stack[name].as_str() {
                technology[name] = json!(text);
            }
        }
        let content = json!({
            "architectureStyle": style, "dataModels": models, "technologyStack": technology, "deployment": deployment,
        });
        self.add(Kind::Design, "design", content, None);
    }

    fn task(&mut self, one: &Value, names: &Names) {
        let id = text(one, "id");
        let status = self.pick(&id, &one["status"], Status::parse, Status::Pending);
        let (dependencies, unknown): (Vec<String>, Vec<String>) =
            texts(one, "dependencies").into_iter().partition(|other| names.tasks.contains(other));
        let dependencies: Vec<String> = dependencies.iter().map(|other| self.key(other)).collect();
        let mut content = json!({
            "title": text_or(one, "title", &id),
            "description": text(one, "description"),
            "status": status,
            "dependencies": dependencies,
            "unknownDependencies": unknown,
            "filesToCreate": texts(one, "files_to_create"),
            "acceptanceCriteria": texts(one, "acceptance_criteria"),
            "externalId": id,
            "startedAtMs": time_ms(one, "started_at"),
            "completedAtMs": time_ms(one, "completed_at"),
        });
        for (field, ours, there) in
            [("feature_id", "featureId", &names.features), ("component_id", "componentId", &names.components)]
        {
            match one[field].as_str() {
                Some(other) if there.contains(other) => content[ours] = json!(self.key(other)),
                Some(other) if !other.is_empty() => {
                    self.bundle
                        .note(format!("{}: {id} names `{other}` as its {field}, which is not there", self.iteration));
                }
                _ => {}
            }
        }
        if let Some(effort) = one["estimated_effort"].as_str() {
            content["estimatedEffort"] = json!(effort);
        }
        self.add(Kind::Task, &id, content, time_ms(one, "created_at"));
    }

    fn documents(&mut self) {
        let folder = format!("iterations/{}", self.iteration);
        for (file, kind) in ARTIFACTS {
            if let Some(content) = self.files.get(&format!("{folder}/artifacts/{file}")) {
                self.add(Kind::Artifact, file, json!({ "kind": kind, "content": content }), None);
            }
        }
        for stage in ["idea", "prd", "design", "plan"] {
            if let Some(summary) = self.files.get(&format!("{folder}/summaries/{stage}.md")) {
                let content = json!({ "content": format!("Summary of the {stage}: {summary}") });
                self.add(Kind::Learning, &format!("summary of {stage}"), content, None);
            }
        }
    }

    /// Feedback is something that was wrong.
    fn feedback(&mut self) -> Result<()> {
        let list = self.list(&format!("iterations/{}/session/feedback.json", self.iteration), "feedbacks")?;
        for (n, one) in list.iter().enumerate() {
            let fix = one["suggested_fix"].as_str().map(|fix| format!(" Suggested: {fix}")).unwrap_or_default();
            let details = text_or(one, "details", "feedback without details");
            let content = json!({
                "stage": text_or(one, "stage", "unknown"),
                "content": format!("{} ({}): {details}{fix}", text(one, "feedback_type"), text(one, "severity")),
                "resolved": false,
            });
            self.add(Kind::Issue, &format!("feedback {n}"), content, time_ms(one, "timestamp"));
        }
        Ok(())
    }

    fn iteration_memory(&mut self, name: &str) -> Result<()> {
        let path = format!("memory/iterations/{name}.json");
        // Those of no iteration would have the same keys.
        let of = if self.iteration.is_empty() { format!("{name} ") } else { String::new() };
        let Some(memory) = self.object(&path)? else { return Ok(()) };
        let each = |field: &str| Ok::<_, RecordError>(items(&path, field, &memory[field])?.into_iter().enumerate());
        for (n, one) in each("insights")? {
            let importance = self.pick("an insight", &one["importance"], Importance::parse, Importance::Normal);
            let content = json!({
                "stage": text_or(&one, "stage", "unknown"), "content": text(&one, "content"), "importance": importance,
            });
            self.add(Kind::Insight, &format!("{of}insight {n}"), content, time_ms(&one, "created_at"));
        }
        for (n, one) in each("issues")? {
            let content = json!({
                "stage": text_or(&one, "stage", "unknown"),
                "content": text(&one, "content"),
                "resolved": one["resolved"].as_bool().unwrap_or(false),
                "resolvedAtMs": time_ms(&one, "resolved_at"),
            });
            self.add(Kind::Issue, &format!("{of}issue {n}"), content, time_ms(&one, "created_at"));
        }
        for (n, one) in each("learnings")? {
            let content = json!({ "content": text(&one, "content") });
            self.add(Kind::Learning, &format!("{of}learning {n}"), content, time_ms(&one, "created_at"));
        }
        Ok(())
    }

    fn project_memory(&mut self, known: &BTreeSet<String>) -> Result<()> {
        let path = "memory/project/memory.json";
        let Some(memory) = self.object(path)? else { return Ok(()) };
        let each = |field: &str| Ok::<_, RecordError>(items(path, field, &memory[field])?.into_iter().enumerate());
        for (n, one) in each("decisions")? {
            self.iteration = Some(text(&one, "iteration_id")).filter(|name| known.contains(name)).unwrap_or_default();
            let content = json!({
                "title": text_or(&one, "title", "decision"),
                "context": text(&one, "context"),
                "decision": text(&one, "decision"),
                "consequences": texts(&one, "consequences"),
            });
            self.add(
                Kind::Decision,
                &text_or(&one, "id", &format!("decision {n}")),
                content,
                time_ms(&one, "created_at"),
            );
        }
        for (n, one) in each("patterns")? {
            self.iteration = Some(text(&one, "iteration_id")).filter(|name| known.contains(name)).unwrap_or_default();
            let mut content = json!({
                "name": text_or(&one, "name", "pattern"),
                "description": text(&one, "description"),
                "usage": texts(&one, "usage"),
                "tags": texts(&one, "tags"),
            });
            if let Some(code) = one["code_example"].as_str() {
                content["codeExample"] = json!(code);
            }
            self.add(
                Kind::Pattern,
                &text_or(&one, "id", &format!("pattern {n}")),
                content,
                time_ms(&one, "created_at"),
            );
        }
        let knowledge: BTreeMap<String, Value> =
            serde_json::from_value(memory["iteration_knowledge"].clone()).unwrap_or_default();
        for (name, one) in knowledge {
            self.iteration = Some(name).filter(|name| known.contains(name)).unwrap_or_default();
            let mut lines = Vec::new();
            for field in ["idea_summary", "prd_summary", "design_summary", "plan_summary", "code_structure"] {
                if let Some(text) = one[field].as_str().filter(|text| !text.is_empty()) {
                    lines.push(format!("{}: {text}", field.replace('_', " ")));
                }
            }
            for field in ["tech_stack", "key_decisions", "key_patterns", "known_issues"] {
                let items = texts(&one, field);
                if !items.is_empty() {
                    lines.push(format!("{}: {}", field.replace('_', " "), items.join("; ")));
                }
            }
            if !lines.is_empty() {
                let content = json!({ "content": lines.join("\n") });
                self.add(Kind::Learning, "knowledge", content, time_ms(&one, "created_at"));
            }
        }
        self.iteration.clear();
        Ok(())
    }
}

fn misshapen(path: &str, expected: &str) -> RecordError {
    RecordError::Field { field: path.to_owned(), problem: format!("it does not hold {expected}") }
}

/// The objects of a list; nothing where there is none.
fn items(path: &str, field: &str, list: &Value) -> Result<Vec<Value>> {
    match list {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) if items.iter().all(Value::is_object) => Ok(items.clone()),
        _ => Err(misshapen(path, &format!("a list of objects as `{field}`"))),
    }
}

/// The ids of one iteration's data.
struct Names {
    requirements: BTreeSet<String>,
    features: BTreeSet<String>,
    components: BTreeSet<String>,
    tasks: BTreeSet<String>,
}

/// Fields as `name: type`, whether they were texts or objects.
fn fields_of(fields: &Value) -> Vec<String> {
    let one = |field: &Value| match field {
        Value::String(text) => text.clone(),
        Value::Object(_) => {
            let kind = if field["field_type"].is_null() { text(field, "type") } else { text(field, "field_type") };
            if kind.is_empty() { text(field, "name") } else { format!("{}: {kind}", text(field, "name")) }
        }
        other => other.to_string(),
    };
    fields.as_array().into_iter().flatten().map(one).collect()
}
