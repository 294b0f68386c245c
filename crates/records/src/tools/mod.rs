//! The tools for records: one file each, one list.

mod arguments;
mod artifact;
mod check;
mod comment;
mod component;
mod delete;
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
mod tool;

use toolhost_contract::AnyTool;

use crate::Records;
use crate::tools::delete::Delete;
use crate::tools::tool::on;

/// Every tool for records, in the order lists show them.
pub fn all(records: &Records) -> Vec<Box<dyn AnyTool>> {
    vec![
        on(records, iteration::create::Create),
        on(records, iteration::list::List),
        on(records, iteration::update_status::UpdateStatus),
        on(records, persona::add::Add),
        on(records, persona::update::Update),
        on(records, persona::list::List),
        on(records, Delete(persona::delete::Delete)),
        on(records, requirement::create::Create),
        on(records, requirement::update::Update),
        on(records, requirement::list::List),
        on(records, Delete(requirement::delete::Delete)),
        on(records, feature::add::Add),
        on(records, feature::update::Update),
        on(records, feature::update_status::UpdateStatus),
        on(records, feature::list::List),
        on(records, Delete(feature::delete::Delete)),
        on(records, component::add::Add),
        on(records, component::update::Update),
        on(records, Delete(component::delete::Delete)),
        on(records, design::get::Get),
        on(records, design::update::Update),
        on(records, milestone::add::Add),
        on(records, milestone::update::Update),
        on(records, milestone::list::List),
        on(records, Delete(milestone::delete::Delete)),
        on(records, task::create::Create),
        on(records, task::update::Update),
        on(records, task::update_status::UpdateStatus),
        on(records, task::list::List),
        on(records, task::ready::Ready),
        on(records, task::claim::Claim),
        on(records, Delete(task::delete::Delete)),
        on(records, plan::get::Get),
        on(records, artifact::save::Save),
        on(records, artifact::load::Load),
        on(records, artifact::list::List),
        on(records, ticket::create::Create),
        on(records, ticket::read::Read),
        on(records, ticket::list::List),
        on(records, ticket::update::Update),
        on(records, ticket::update_state::UpdateState),
        on(records, ticket::check_criterion::CheckCriterion),
        on(records, ticket::save_document::SaveDocument),
        on(records, ticket::read_document::ReadDocument),
        on(records, Delete(ticket::delete::Delete)),
        on(records, comment::post::Post),
        on(records, comment::list::List),
        on(records, memory::query::Query),
        on(records, memory::save_insight::SaveInsight),
        on(records, memory::save_issue::SaveIssue),
        on(records, memory::save_learning::SaveLearning),
        on(records, memory::resolve_issue::ResolveIssue),
        on(records, memory::promote_to_decision::PromoteToDecision),
        on(records, memory::promote_to_pattern::PromoteToPattern),
        on(records, record::get::Get),
        on(records, record::history::History),
        on(records, record::restore::Restore),
        on(records, check::data_format::DataFormat),
        on(records, check::feature_coverage::FeatureCoverage),
        on(records, check::task_dependencies::TaskDependencies),
    ]
}
