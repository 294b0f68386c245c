//! `requirement.delete`

use serde_json::json;
use toolhost_contract::{Alias, ErrorKind, Example, Expect};

use crate::Kind;
use crate::tools::delete::Deletes;
use crate::tools::given;

pub(crate) struct Delete;

impl Deletes for Delete {
    const KIND: Kind = Kind::Requirement;
    const NAME: &'static str = "requirement.delete";
    const TITLE: &'static str = "Delete a requirement";
    const NAMERS: Option<&'static str> = Some("Features that name it lose it.");

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("delete_requirement")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "nobody names it",
                arguments: json!({"id":"REQ-001"}),
                files: &[],
                before: &[given::REQUIREMENT],
                expect: Expect::Data(&[("/deleted/0", r#""REQ-001""#)]),
            },
            Example {
                says: "while it is used",
                arguments: json!({"id":"REQ-001"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }
}
