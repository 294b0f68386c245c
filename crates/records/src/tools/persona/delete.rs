//! `persona.delete`

use serde_json::json;
use toolhost_contract::{Example, Expect};

use crate::Kind;
use crate::tools::delete::Deletes;
use crate::tools::given;

pub(crate) struct Delete;

impl Deletes for Delete {
    const KIND: Kind = Kind::Persona;
    const NAME: &'static str = "persona.delete";
    const TITLE: &'static str = "Delete a persona";
    const NAMERS: Option<&'static str> = None;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "nobody names it",
            arguments: json!({"id":"PERS-001"}),
            files: &[],
            before: &[given::PERSONA],
            expect: Expect::Data(&[("/deleted/0", r#""PERS-001""#)]),
        }]
    }
}
