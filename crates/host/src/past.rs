//! What a rule would have allowed, asked before it is made.

use std::sync::Arc;

use serde_json::Value;
use toolhost_contract::ToolError;

use crate::arguments::{Analyzer, Arguments};
use crate::policy::{Looked, Rule};
use crate::shown::Shown;

impl Shown {
    /// Which of these calls of the same tool and profile, by their arguments as the audit has them, the rule of this ask would have allowed.
    /// An argument that the audit has shortened is another text, and matches no rule that names it.
    ///
    /// # Errors
    /// If a command cannot be analyzed, or the rule is none.
    pub async fn rule_allows(&self, calls: Vec<Value>) -> Result<Vec<bool>, ToolError> {
        let Some(conditions) = &self.rule else { return Ok(vec![false; calls.len()]) };
        let rule = Rule::permission(&self.tool, conditions).map_err(ToolError::internal)?;
        // No call is under way here: these have ended.
        #[expect(clippy::disallowed_methods, reason = "no call is under way")]
        let analyzer: Analyzer = Arc::new(crate::analyze);
        let mut allowed = Vec::with_capacity(calls.len());
        for call in calls {
            let arguments = Arguments::analyze(&analyzer, &self.kinds, call).await?;
            allowed.push(rule.matches(&Looked::new(&self.tool, &self.kinds, &arguments.json, arguments.command())));
        }
        Ok(allowed)
    }
}
