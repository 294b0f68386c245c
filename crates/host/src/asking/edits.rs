//! What a person writes in place of a call's arguments, looked at while they can still correct it.

use std::sync::Arc;

use serde_json::Value;
use toolhost_contract::workspace::Executor;
use toolhost_contract::{Answer, ToolError, visible_line};

use crate::profile::Profiles;
use crate::registry::Registry;
use crate::shown::Shown;

/// What edited arguments are held against while they can still be corrected. The gate holds them against the same again.
pub struct EditRules {
    pub registry: Arc<Registry>,
    pub profiles: Arc<Profiles>,
    /// Where paths lead; none without a workspace.
    pub workspace: Option<Arc<dyn Executor>>,
}

impl EditRules {
    /// Whether the tool takes what an answer writes, and no rule denies it. Other answers write nothing.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub async fn check(&self, shown: &Shown, answer: &Answer) -> Result<(), ToolError> {
        match answer {
            Answer::AllowEdited { arguments } => self.check_arguments(shown, arguments).await,
            _ => Ok(()),
        }
    }

    async fn check_arguments(&self, shown: &Shown, arguments: &Value) -> Result<(), ToolError> {
        let Some(tool) = self.registry.get(&shown.tool) else { return Ok(()) };
        // A profile that another host has is that host's to apply.
        let Ok(profile) = self.profiles.get(&shown.profile) else { return tool.check(arguments) };
        profile.check_denied(tool, arguments.clone(), self.workspace.as_deref()).await
    }
}

/// Characters of one argument that the caller is told a person has changed.
const CHANGED_CHARS_MAX: usize = 200;

/// What a person made of a call's arguments: each that is another now, and the names of those that are gone. `kept`: what they are now as
/// the audit keeps it, without secrets.
pub(super) fn changed(before: &Value, now: &Value, kept: &Value) -> String {
    let empty = serde_json::Map::new();
    let (before, now) = (before.as_object().unwrap_or(&empty), now.as_object().unwrap_or(&empty));
    let other = now.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(name, _)| {
        let value = match &kept[name] {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let mut shown: String = value.chars().take(CHANGED_CHARS_MAX).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        format!("`{name}` is `{}`", visible_line(&shown))
    });
    let gone = before.keys().filter(|name| !now.contains_key(*name)).map(|name| format!("`{name}` is left out"));
    let all: Vec<String> = other.chain(gone).collect();
    if all.is_empty() { "nothing of them is another".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Value, changed};

    #[test]
    fn what_is_another_is_named_and_what_stayed_is_not() {
        let before = json!({ "command": "rm -rf build", "cwd": "a", "timeoutMs": 5 });
        let changed = |now: &Value| changed(&before, now, now);
        assert_eq!(
            changed(&json!({ "command": "make\nclean", "cwd": "a" })),
            "`command` is `make\\u{a}clean`, `timeoutMs` is left out"
        );
        assert_eq!(changed(&before), "nothing of them is another");
        assert!(changed(&json!({ "command": "x".repeat(300) })).contains(&format!("{}…`", "x".repeat(200))));
        let kept = json!({ "command": "[redacted]" });
        assert_eq!(
            super::changed(&before, &json!({ "command": "key", "cwd": "a", "timeoutMs": 5 }), &kept),
            "`command` is `[redacted]`"
        );
    }
}
