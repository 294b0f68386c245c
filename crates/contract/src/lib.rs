//! The words all crates share: what a tool is, what a call is, what it ends in.
//!
//! It refuses to know how a call is made, stored or shown. Start with [`Tool`], which people write, and [`AnyTool`],
//! which the host holds; then [`Call`] and [`Outcome`], the two ends of a call's life.

mod background;
mod call;
mod canonical;
mod clock;
mod ctx;
pub mod cursor;
mod deploys;
mod durability;
mod error;
mod example;
mod facts;
mod hmac;
mod ids;
mod journal;
mod json_length;
mod near;
mod other_names;
mod outcome;
mod people;
mod redact;
mod schema;
mod session;
pub mod shell;
mod told;
mod tool;
mod visible;
pub mod workspace;

use std::future::Future;
use std::pin::Pin;

pub use background::{Background, Begun, Heard, Listener, Listening, NoBackground, no_session};
pub use call::{AGENT_DOOR, CONFIRM_SOURCE, Call, Caller, CallerKind, Scope, WORKBENCH_DOOR};
pub use canonical::{canonical_json, canonical_value};
pub use clock::{Clock, SystemClock};
pub use ctx::{
    Catalog, Ctx, Grants, OUTPUT_SEEN_BYTES, OUTPUT_TAIL_BYTES, Progress, ProgressSink, Silent, ToolSummary,
};
pub use deploys::{Deploys, Made, RECOVERY};
pub use durability::Durability;
pub use error::{BYTES_MAX, ErrorCode, ErrorKind, RETRY_AFTER_SECONDS, ToolError};
pub use example::{Example, Expect};
pub use facts::{Approval, Callers, CommandArgument, Effect, Facts, Help, Trace, Waits};
pub use hmac::hmac_sha256;
pub use ids::{CallId, IdSource, RandomIds};
pub use journal::{Fate, Journal, JournalError, Signal};
pub use json_length::json_bytes_at_most;
pub use near::{
    NAME_COMPARED_MAX, SIMILARITY_MIN, SUGGESTIONS_MAX, did_you_mean, is_slip_of, nearest, nearest_names, or_list,
};
pub use other_names::{Meaning, OtherName};
pub use outcome::{
    Attachment, AttachmentContent, Meta, Outcome, OutcomeError, REDACTED, Revision, Success, ToolResult, WorkflowRef,
};
pub use people::{Answer, Asked, Pending, People, Preview, Question, Waited, Wanted};
pub use redact::{Redactor, is_of_secret, masks_secret};
pub use schema::{description_of, schema_of};
pub use session::{SESSION_MARK, Session};
pub use told::told_arguments;
pub use tool::{Alias, AnyTool, Packed, Tool, ToolInfo};
pub use visible::{
    QUOTE_CONTINUED, QUOTE_MARK, is_blank, is_deceptive, named, quoted, visible, visible_json, visible_line,
};

/// A future on the heap, for traits that are used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
