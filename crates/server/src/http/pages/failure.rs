//! What went wrong, as people read it.

use toolhost_contract::ToolError;

use super::marks::without_marks;

/// A failure in a sentence, with what a person does about it.
pub(super) fn sentence(error: &ToolError) -> String {
    let step =
        next_step(error).map(|step| format!(" {}.", begun_large(step.trim_end_matches('.')))).unwrap_or_default();
    let message = format!("{}.{step}", error.message.trim_end_matches(['.', '?']));
    begun_large(&without_marks(&message))
}

/// The text as a sentence begins, if it begins with a word. Names of tools and ids stay as they are.
pub(super) fn begun_large(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let is_word = !first.is_empty() && first.len() < text.len() && first.bytes().all(|byte| byte.is_ascii_lowercase());
    match is_word {
        true => text[..1].to_ascii_uppercase() + &text[1..],
        false => text.to_owned(),
    }
}

/// The next step after a failure, for people.
pub(super) fn next_step(error: &ToolError) -> Option<String> {
    for_people(error.hint.as_deref()?)
}

/// What of a hint is for people. A part of it that names a tool or an argument, or begins with what only an agent does, is for agents.
/// What stands in brackets beside a part is the command that does the same at a terminal: here there is a page for it.
pub(super) fn for_people(hint: &str) -> Option<String> {
    let mut hint = hint.to_owned();
    while let Some(begins) = hint.find(COMMAND_ASIDE) {
        let Some(ends) = hint[begins..].find(')') else { break };
        hint.replace_range(begins..=begins + ends, "");
    }
    let is_for_agents = |part: &&str| {
        let names_tool = part.split('`').skip(1).step_by(2).any(|name| !name.starts_with("toolhost "));
        let part = part.trim_start_matches("or ");
        // What a command shows, a page shows, too.
        names_tool || part.starts_with("`toolhost ") || OF_AGENTS.iter().any(|begin| part.starts_with(begin))
    };
    let parts: Vec<&str> = hint.split("; ").filter(|part| !is_for_agents(part)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

const COMMAND_ASIDE: &str = " (`toolhost ";
/// How parts of hints begin that tell an agent what to do.
const OF_AGENTS: &[&str] =
    &["read ", "stage ", "send ", "discard ", "somebody else has deleted or renamed it", "a person "];

#[cfg(test)]
mod tests {
    use toolhost_contract::ErrorKind;

    use super::*;

    #[test]
    fn a_person_on_a_page_is_told_no_command_and_no_tool() {
        let step = |hint: &str| next_step(&ToolError::new(ErrorKind::Conflict, "no").hint(hint));
        for (hint, told) in [
            ("take it back first (`toolhost change undo N`), or go on", Some("take it back first, or go on")),
            ("run `toolhost login`", Some("run `toolhost login`")),
            ("`toolhost review list` shows what waits", None),
            ("call `builder.change.validate`", None),
            ("call `builder.change.validate` (`toolhost change validate`)", None),
            ("open (`toolhost never ends", Some("open (`toolhost never ends")),
            ("discard cs-1, and stage the merged text; or stage it at once, with `extensions`", None),
            ("stage another set; a person can take it back with `toolhost change undo`", None),
            (
                "take that back first; stage it anew; nothing was changed",
                Some("take that back first; nothing was changed"),
            ),
        ] {
            assert_eq!(step(hint).as_deref(), told, "{hint}");
        }
        assert_eq!(next_step(&ToolError::new(ErrorKind::Conflict, "no")), None);
    }
}
