//! Whose tools an agent gets, with what to type where its persona does not fit.

use toolhost::{Error, Host, PersonaRole};

use crate::Usage;

/// The profile of a persona, as [`Host::persona_role`] tells it.
pub(crate) async fn role(host: &Host, persona: &str, asked: Option<&str>, usual: &str) -> anyhow::Result<PersonaRole> {
    host.persona_role(persona, asked, usual).await.map_err(told)
}

/// The errors of personas, with the commands and options that help.
pub(crate) fn told(error: Error) -> anyhow::Error {
    let next = match &error {
        Error::PersonaRole { .. } => ": `toolhost profiles` lists them, `toolhost persona update` changes the role",
        Error::PersonaNarrower { .. } => ": leave --profile out, or name a narrower one",
        _ => return error.into(),
    };
    Usage::error(format!("{error}{next}"))
}
