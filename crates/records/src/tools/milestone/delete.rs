//! `milestone.delete`

use serde_json::json;
use toolhost_contract::{Example, Expect};

use crate::Kind;
use crate::tools::delete::Deletes;
use crate::tools::given;

pub(crate) struct Delete;

impl Deletes for Delete {
    const KIND: Kind = Kind::Milestone;
    const NAME: &'static str = "milestone.delete";
    const TITLE: &'static str = "Delete a milestone";
    const NAMERS: Option<&'static str> = None;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "nobody names it",
            arguments: json!({"id":"MILE-001"}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE, given::MILESTONE],
            expect: Expect::Data(&[("/deleted/0", r#""MILE-001""#)]),
        }]
    }
}
