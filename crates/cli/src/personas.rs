//! Personas of the project: a record's role is the profile of the agent that works under its name.

use toolhost_store::records::Persona;

use crate::Usage;
use crate::print::visible;
use crate::wire::{self, Host};

/// Whose tools an agent gets, and how it works.
pub(crate) struct Role {
    pub(crate) profile: String,
    /// The record's; `None` for a name without a record.
    pub(crate) personality: Option<String>,
}

/// The profile of a persona. One that is asked for must be the persona's or narrower; a name without a record has whichever
/// is asked for, or `usual`.
pub(crate) async fn role(host: &Host, persona: &str, asked: Option<&str>, usual: &str) -> anyhow::Result<Role> {
    let desk = host.store.records().desk(wire::who(&host.project, &host.user))?;
    let mut found = desk.all::<Persona>(None).await?;
    let Some(at) = found.iter().position(|saved| saved.content.name == persona) else {
        // A name with a small mistake would come without the role's limits.
        let same = |name: &str| name.trim().to_lowercase() == persona.trim().to_lowercase();
        if let Some(near) = found.iter().find(|saved| same(&saved.content.name) || same(&saved.id)) {
            let (asked, name) = (visible(persona), visible(&near.content.name));
            return Err(Usage::error(format!("the project has no persona `{asked}`; did you mean `{name}`?")));
        }
        return Ok(Role { profile: asked.unwrap_or(usual).to_owned(), personality: None });
    };
    let record = found.swap_remove(at).content;
    let own = host.gate.profile(&record.role).map_err(|_| {
        Usage::error(format!(
            "the persona {} has the role `{}`, which is not a profile: `toolhost profiles` lists them, `toolhost persona update` \
             changes the role",
            visible(persona),
            visible(&record.role)
        ))
    })?;
    let profile = match asked {
        Some(asked) if !host.gate.profile(asked)?.is_within(own) => {
            return Err(Usage::error(format!(
                "the profile `{asked}` allows more than `{}`, the role of the persona {}: leave --profile out, or name a \
                 narrower one",
                own.name,
                visible(persona)
            )));
        }
        Some(asked) => asked.to_owned(),
        None => own.name.clone(),
    };
    Ok(Role { profile, personality: Some(record.personality) })
}
