//! `ticket.delete`

use serde_json::json;
use toolhost_contract::{ErrorKind, Example, Expect};

use crate::Kind;
use crate::tools::delete::Deletes;
use crate::tools::given;

pub(crate) struct Delete;

impl Deletes for Delete {
    const KIND: Kind = Kind::Ticket;
    const NAME: &'static str = "ticket.delete";
    const TITLE: &'static str = "Delete a ticket";
    const NAMERS: Option<&'static str> = Some("Its comments and documents go with it.");

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "nobody names it",
                arguments: json!({"id":"TKT-001"}),
                files: &[],
                before: &[given::TICKET],
                expect: Expect::Data(&[("/deleted/0", r#""TKT-001""#)]),
            },
            Example {
                says: "while it is used",
                arguments: json!({"id":"TKT-001"}),
                files: &[],
                before: &[given::TICKET, ("comment.post", r#"{"ticketId":"TKT-001","content":"hm"}"#)],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }
}
