//! The built-in tools: one file each, one list.
//!
//! A tool knows what it does and refuses to know policy, audit and who may call. [`all`] answers the question "what
//! can this host do?".

mod approval;
mod artifact;
mod bash;
mod builder;
mod check;
mod comment;
mod component;
mod deploy;
mod design;
mod desk;
mod facts;
mod feature;
mod file;
mod git;
mod git_hint;
mod given;
mod human;
mod interactive;
mod iteration;
mod memory;
mod milestone;
mod page;
mod persona;
mod plan;
mod record;
mod requirement;
mod review;
mod session;
mod sheet;
mod task;
mod ticket;
mod tool;

use toolhost_contract::AnyTool;
use toolhost_sandbox::Deployment;
use toolhost_store::{Packages, Records};

/// Every built-in tool, in the order lists show them. Those for records keep them in `records`, those of the builder their
/// package beside them; `deployment` says where the workspace is deployed to.
pub fn all(records: &Records, deployment: Option<&Deployment>) -> Vec<Box<dyn AnyTool>> {
    let packages = of_packages(&records.packages());
    let families = [of_the_workspace(), of_records(records), packages, of_people(deployment), of_the_host(records)];
    families.into_iter().flatten().collect()
}

fn of_the_workspace() -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(file::list::List),
        Box::new(file::read::Read),
        Box::new(file::search::Search),
        Box::new(file::write::Write),
        Box::new(file::edit::Edit),
        Box::new(file::move_file::Move),
        Box::new(file::delete::Delete),
        Box::new(bash::Bash),
        Box::new(git::status::Status),
        Box::new(git::diff::Diff),
        Box::new(git::log::Log),
        Box::new(git::commit::Commit),
        Box::new(git::push::Push),
        Box::new(git::fetch::Fetch),
        Box::new(git::pull::Pull),
        Box::new(git::show::Show),
        Box::new(git::init::Init),
        Box::new(git::branch::Branch),
        Box::new(git::switch::Switch),
        Box::new(git::restore::Restore),
        Box::new(git::stash::Stash),
    ]
}

fn of_records(records: &Records) -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(iteration::create::Create(records.clone())),
        Box::new(iteration::list::List(records.clone())),
        Box::new(iteration::update_status::UpdateStatus(records.clone())),
        Box::new(persona::add::Add(records.clone())),
        Box::new(persona::update::Update(records.clone())),
        Box::new(persona::list::List(records.clone())),
        Box::new(persona::delete::Delete(records.clone())),
        Box::new(requirement::create::Create(records.clone())),
        Box::new(requirement::update::Update(records.clone())),
        Box::new(requirement::list::List(records.clone())),
        Box::new(requirement::delete::Delete(records.clone())),
        Box::new(feature::add::Add(records.clone())),
        Box::new(feature::update::Update(records.clone())),
        Box::new(feature::update_status::UpdateStatus(records.clone())),
        Box::new(feature::list::List(records.clone())),
        Box::new(feature::delete::Delete(records.clone())),
        Box::new(component::add::Add(records.clone())),
        Box::new(component::update::Update(records.clone())),
        Box::new(component::delete::Delete(records.clone())),
        Box::new(design::get::Get(records.clone())),
        Box::new(design::update::Update(records.clone())),
        Box::new(milestone::add::Add(records.clone())),
        Box::new(milestone::update::Update(records.clone())),
        Box::new(milestone::list::List(records.clone())),
        Box::new(milestone::delete::Delete(records.clone())),
        Box::new(task::create::Create(records.clone())),
        Box::new(task::update::Update(records.clone())),
        Box::new(task::update_status::UpdateStatus(records.clone())),
        Box::new(task::list::List(records.clone())),
        Box::new(task::ready::Ready(records.clone())),
        Box::new(task::claim::Claim(records.clone())),
        Box::new(task::delete::Delete(records.clone())),
        Box::new(plan::get::Get(records.clone())),
        Box::new(artifact::save::Save(records.clone())),
        Box::new(artifact::load::Load(records.clone())),
        Box::new(artifact::list::List(records.clone())),
        Box::new(ticket::create::Create(records.clone())),
        Box::new(ticket::read::Read(records.clone())),
        Box::new(ticket::list::List(records.clone())),
        Box::new(ticket::update::Update(records.clone())),
        Box::new(ticket::update_state::UpdateState(records.clone())),
        Box::new(ticket::check_criterion::CheckCriterion(records.clone())),
        Box::new(ticket::save_document::SaveDocument(records.clone())),
        Box::new(ticket::read_document::ReadDocument(records.clone())),
        Box::new(ticket::delete::Delete(records.clone())),
        Box::new(comment::post::Post(records.clone())),
        Box::new(comment::list::List(records.clone())),
        Box::new(memory::query::Query(records.clone())),
        Box::new(memory::save_insight::SaveInsight(records.clone())),
        Box::new(memory::save_issue::SaveIssue(records.clone())),
        Box::new(memory::save_learning::SaveLearning(records.clone())),
        Box::new(memory::resolve_issue::ResolveIssue(records.clone())),
        Box::new(memory::promote_to_decision::PromoteToDecision(records.clone())),
        Box::new(memory::promote_to_pattern::PromoteToPattern(records.clone())),
        Box::new(record::history::History(records.clone())),
        Box::new(record::restore::Restore(records.clone())),
        Box::new(check::data_format::DataFormat(records.clone())),
        Box::new(check::feature_coverage::FeatureCoverage(records.clone())),
        Box::new(check::task_dependencies::TaskDependencies(records.clone())),
    ]
}

fn of_packages(packages: &Packages) -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(builder::context_get::ContextGet(packages.clone())),
        Box::new(builder::workflow_read::WorkflowRead(packages.clone())),
        Box::new(builder::step_read::StepRead(packages.clone())),
        Box::new(builder::agent_read::AgentRead(packages.clone())),
        Box::new(builder::asset_read::AssetRead(packages.clone())),
        Box::new(builder::refs_find::RefsFind(packages.clone())),
        Box::new(builder::schema_read::SchemaRead),
        Box::new(builder::change_stage::ChangeStage(packages.clone())),
        Box::new(builder::change_validate::ChangeValidate(packages.clone())),
        Box::new(builder::change_discard::ChangeDiscard(packages.clone())),
        Box::new(builder::change_apply::ChangeApply(packages.clone())),
        Box::new(builder::change_undo::ChangeUndo(packages.clone())),
        Box::new(builder::package_import::PackageImport(packages.clone())),
    ]
}

/// What takes a person.
fn of_people(deployment: Option<&Deployment>) -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(review::file::File),
        Box::new(review::content::Content),
        Box::new(human::ask::Ask),
        Box::new(approval::wait::Wait),
        Box::new(deploy::copy::Copy(deployment.cloned())),
    ]
}

fn of_the_host(records: &Records) -> Vec<Box<dyn AnyTool>> {
    vec![
        Box::new(tool::list::List),
        Box::new(tool::describe::Describe),
        Box::new(session::result::SessionResult(records.steps())),
    ]
}
