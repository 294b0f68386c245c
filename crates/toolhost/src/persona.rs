//! Personas of the project: a record's role is the profile of the agent that works under its name.

use toolhost_contract::{is_deceptive, visible};
use toolhost_records::Persona;
use toolhost_records::Records;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::limits::PERSONA_CHARS_MAX;

/// Names under which people would take an agent's words for those of this program or of the person at it.
const RESERVED: [&str; 8] = ["host", "the host", "toolhost", "system", "the system", "user", "you", "the person"];

/// Whose tools an agent gets, and how it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonaRole {
    pub profile: String,
    /// The record's; `None` for a name without a record.
    pub personality: Option<String>,
}

impl Host {
    /// The profile of a persona. One that is asked for must be the persona's or narrower; a name without a record has whichever
    /// is asked for, or `usual`.
    ///
    /// # Errors
    /// If the name is one for no agent, or nearly that of a record, the record's role is no profile, or `asked` allows more than the role.
    pub async fn persona_role(&self, persona: &str, asked: Option<&str>, usual: &str) -> Result<PersonaRole> {
        if RESERVED.contains(&persona.trim().to_lowercase().as_str()) {
            return Err(Error::PersonaReserved { name: visible(persona) });
        }
        let desk = Records::new(self.store().database()).desk(self.connection().who())?;
        let mut found = desk.all::<Persona>(None).await?;
        let Some(at) = found.iter().position(|saved| saved.content.name == persona) else {
            // A name with a small mistake would come without the role's limits.
            let same = |name: &str| name.trim().to_lowercase() == persona.trim().to_lowercase();
            if let Some(near) = found.iter().find(|saved| same(&saved.content.name) || same(&saved.id)) {
                let near = visible(&near.content.name);
                return Err(Error::NoPersona { asked: visible(persona), near });
            }
            if persona.chars().count() > PERSONA_CHARS_MAX || persona.contains(is_deceptive) {
                return Err(Error::PersonaName);
            }
            let members = self.store().people().members(self.connection().project().id).await?;
            if members.iter().any(|member| same(&member.name)) {
                return Err(Error::PersonaOfMember { name: visible(persona) });
            }
            return Ok(PersonaRole { profile: asked.unwrap_or(usual).to_owned(), personality: None });
        };
        let record = found.swap_remove(at).content;
        let persona = || visible(persona);
        let own = self
            .gate()
            .profile(&record.role)
            .map_err(|_| Error::PersonaRole { persona: persona(), role: visible(&record.role) })?;
        let profile = match asked {
            Some(asked) if !self.gate().profile(asked)?.is_within(own) => {
                let (own, asked) = (own.name.clone(), asked.to_owned());
                return Err(Error::PersonaNarrower { persona: persona(), own, asked });
            }
            Some(asked) => asked.to_owned(),
            None => own.name.clone(),
        };
        Ok(PersonaRole { profile, personality: Some(record.personality) })
    }
}
