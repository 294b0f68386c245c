//! The tools for records: one file each, one list.

mod artifact;
mod check;
mod comment;
mod component;
mod design;
mod desk;
mod feature;
mod given;
mod iteration;
mod memory;
mod milestone;
mod persona;
mod plan;
mod record;
mod requirement;
mod sheet;
mod task;
mod ticket;

use toolhost_contract::AnyTool;

use crate::Records;

/// Every tool for records, in the order lists show them.
pub fn all(records: &Records) -> Vec<Box<dyn AnyTool>> {
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
