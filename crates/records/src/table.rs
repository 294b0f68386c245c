//! The table of kinds, a row each: whoever adds a kind writes a file with its content and a row here.
//!
//! It is a macro, so that `kind.rs` can make [`Kind`](crate::Kind) of it and `facts.rs` can match each kind to the type of its content.

/// Hands the rows to another macro.
macro_rules! kinds {
    ($take:ident) => {
        $take! {
            // kind     word          ids     content                        machine                                group
            Persona     "persona"     "PERS"  crate::persona::Persona,       None,                                  Group::None;
            Iteration   "iteration"   "ITER"  crate::iteration::Iteration,   Some(&crate::machine::ITERATION),      Group::None;
            Requirement "requirement" "REQ"   crate::planning::Requirement,  None,                                  Group::Plan(1);
            Feature     "feature"     "FEAT"  crate::planning::Feature,      Some(&crate::machine::FEATURE),        Group::Plan(2);
            Component   "component"   "COMP"  crate::planning::Component,    None,                                  Group::Plan(3);
            Design      "design"      "DSGN"  crate::planning::Design,       None,                                  Group::Plan(4);
            Milestone   "milestone"   "MILE"  crate::planning::Milestone,    None,                                  Group::Plan(6);
            Task        "task"        "TASK"  crate::planning::Task,         Some(&crate::machine::TASK),           Group::Plan(5);
            Artifact    "artifact"    "ART"   crate::artifact::Artifact,     None,                                  Group::None;
            Ticket      "ticket"      "TKT"   crate::ticket::Ticket,         Some(&crate::machine::TICKET),         Group::None;
            Comment     "comment"     "CMT"   crate::ticket::Comment,        None,                                  Group::None;
            Document    "document"    "DOC"   crate::ticket::Document,       None,                                  Group::None;
            Insight     "insight"     "INS"   crate::memory::Insight,        None,                                  Group::Memory;
            Issue       "issue"       "ISS"   crate::memory::Issue,          None,                                  Group::Memory;
            Learning    "learning"    "LRN"   crate::memory::Learning,       None,                                  Group::Memory;
            Decision    "decision"    "DEC"   crate::memory::Decision,       None,                                  Group::Memory;
            Pattern     "pattern"     "PAT"   crate::memory::Pattern,        None,                                  Group::Memory;
        }
    };
}
