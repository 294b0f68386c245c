//! `task.delete`

use serde_json::json;
use toolhost_contract::{ErrorKind, Example, Expect};

use crate::Kind;
use crate::tools::delete::Deletes;
use crate::tools::given;

pub(crate) struct Delete;

impl Deletes for Delete {
    const KIND: Kind = Kind::Task;
    const NAME: &'static str = "task.delete";
    const TITLE: &'static str = "Delete a task";
    const NAMERS: Option<&'static str> = Some("Tasks that wait for it lose it.");

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "nobody names it",
                arguments: json!({"id":"TASK-001"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK],
                expect: Expect::Data(&[("/deleted/0", r#""TASK-001""#)]),
            },
            Example {
                says: "while it is used",
                arguments: json!({"id":"TASK-001"}),
                files: &[],
                before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT, given::TASK, given::WAITING_TASK],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }
}
