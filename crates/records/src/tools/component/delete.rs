//! `component.delete`

use serde_json::json;
use toolhost_contract::{ErrorKind, Example, Expect};

use crate::Kind;
use crate::tools::delete::Deletes;
use crate::tools::given;

pub(crate) struct Delete;

impl Deletes for Delete {
    const KIND: Kind = Kind::Component;
    const NAME: &'static str = "component.delete";
    const TITLE: &'static str = "Delete a component";
    const NAMERS: Option<&'static str> = Some("Its tasks go with it.");

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "nobody names it",
                arguments: json!({"id":"COMP-001"}),
                files: &[],
                before: &[given::COMPONENT],
                expect: Expect::Data(&[("/deleted/0", r#""COMP-001""#)]),
            },
            Example {
                says: "while it is used",
                arguments: json!({"id":"COMP-001"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }
}
