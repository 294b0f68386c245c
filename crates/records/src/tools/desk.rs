//! What tools that keep records have in common: whose desk they work at, and small conversions.

use toolhost_contract::{CallerKind, Ctx, Preview, ToolError};

use crate::{AuthorKind, Claimant, Edit, ProjectRecords, RecordId, Records, Stored, Who};

/// The records of the caller's project, changed in the caller's name.
pub(crate) fn desk(records: &Records, ctx: &Ctx<'_>) -> Result<ProjectRecords, ToolError> {
    let call = ctx.call;
    Ok(records.desk(Who {
        project_id: call.scope.project_id,
        user_id: call.scope.user_id,
        name: call.caller.persona.clone(),
        call_id: call.id.to_string(),
    })?)
}

/// Who takes tasks: a session, or a user who has none.
pub(crate) fn claimant(ctx: &Ctx<'_>) -> Claimant {
    let scope = &ctx.call.scope;
    let key = match &scope.session_id {
        Some(session) => format!("session {session}"),
        None => format!("user {}", scope.user_id),
    };
    Claimant { key, name: ctx.call.caller.persona.clone() }
}

pub(crate) fn author_kind(ctx: &Ctx<'_>) -> AuthorKind {
    match ctx.call.caller.kind {
        CallerKind::Person => AuthorKind::Human,
        CallerKind::Model => AuthorKind::Agent,
    }
}

/// Puts a new value in its place, if there is one.
pub(crate) fn set<T>(place: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *place = new;
    }
}

/// As [`set`], where an empty text takes the value away.
pub(crate) fn set_or_clear(place: &mut Option<String>, new: Option<String>) {
    if let Some(new) = new {
        *place = Some(new).filter(|text| !text.is_empty());
    }
}

/// JSON as people read it.
pub(crate) fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// What a person decides about before a change of a record: the arguments, and the record as it is now.
pub(crate) async fn changing(
    ctx: &Ctx<'_>,
    desk: &ProjectRecords,
    id: RecordId,
    what: &str,
) -> Result<Preview, ToolError> {
    let record = desk.get_any(id).await?;
    let detail = format!(
        "{}\n\n{id} as it is now, version {}:\n{}",
        pretty(&ctx.call.arguments),
        record.version,
        pretty(&record.body)
    );
    Ok(Preview { summary: format!("{what}: {id}"), detail, left_out: 0, rests_on: serde_json::Value::Null })
}

/// What a person decides about before a delete: what goes, as it is now, and who loses a reference.
pub(crate) async fn deletion(
    desk: &ProjectRecords,
    id: RecordId,
    edit: &Edit,
    cascade: bool,
) -> Result<Preview, ToolError> {
    let (removed, gone) = desk.would_delete(id, edit, cascade).await?;
    let named = |record: &Stored| {
        let title = ["title", "name", "content"].iter().find_map(|field| record.body.get(field)?.as_str());
        title.map_or_else(|| record.id.to_string(), |title| format!("{} ({title})", record.id))
    };
    let mut detail = String::new();
    for record in &gone {
        detail.push_str(&format!("goes: {}, version {}\n{}\n", record.id, record.version, pretty(&record.body)));
    }
    if !removed.unlinked.is_empty() {
        detail.push_str(&format!("no longer name what goes: {}\n", removed.unlinked.join(", ")));
    }
    let summary = match gone.as_slice() {
        [one] => format!("delete {}", named(one)),
        [one, others @ ..] => format!("delete {}, and {} more that cannot be without it", named(one), others.len()),
        [] => format!("delete {id}"),
    };
    // What is shown is all that it rests on: the records as they are.
    Ok(Preview { summary, detail, left_out: 0, rests_on: serde_json::Value::Null })
}
