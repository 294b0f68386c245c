//! What a person is asked: what a call would do, with what they may be shown of it.

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolhost_contract::workspace::Workspace;
use toolhost_contract::{
    Approval, Asked, BoxFuture, Call, ErrorKind, NoBackground, People, Preview, Question, ToolError, Waited,
    canonical_json,
};
use toolhost_store::{AskKind, NewAsk};

use std::sync::Arc;

use crate::arguments::Arguments;
use crate::gate_state::{GateState, ProfileCatalog};
use crate::hooks::Hooks;
use crate::kinds::ArgumentKinds;
use crate::policy::{Verdict, suggest};
use crate::profile::Profile;
use crate::record::{Record, json_bytes};
use crate::registry::Registered;
use crate::shown::Shown;

/// Longest preview that is kept for a person to look at. A call whose effect is longer can only be denied.
const DETAIL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A call that policy asks about.
#[derive(Clone, Copy)]
pub(crate) struct Case<'c> {
    pub(crate) call: &'c Call,
    pub(crate) tool: &'c Registered,
    pub(crate) profile: &'c Profile,
    pub(crate) verdict: &'c Verdict,
    pub(crate) hooks: &'c Hooks,
}

/// [`People`] for previews: a preview must not ask anybody.
struct Nobody;

impl People for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Result<Asked, ToolError>> {
        Box::pin(async { Err(ToolError::internal("a preview asks nobody")) })
    }

    fn wait<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Waited, ToolError>> {
        Box::pin(async { Err(ToolError::internal("a preview waits for nobody")) })
    }
}

impl GateState {
    /// What a person is shown: what the tool says the call would do, or else its arguments.
    pub(crate) async fn preview(&self, case: Case<'_>, arguments: &Arguments) -> Result<Preview, ToolError> {
        let Case { call, tool, profile, hooks, .. } = case;
        let workspace = Workspace::new(Arc::clone(&self.config.executor), profile.fence.clone());
        let catalog =
            ProfileCatalog { state: self, profile, names: hooks.names, kind: call.caller.kind, only: hooks.only };
        let mut ctx =
            self.ctx(call, &workspace, &catalog, &Nobody, &NoBackground, profile, hooks, hooks.cancel.child_token());
        ctx.command = arguments.command();
        let made = tool.tool.preview(&ctx, arguments.json.clone()).await?;
        Ok(made.unwrap_or_else(|| Preview {
            summary: format!("{}: {}", tool.info.name, tool.info.title),
            // Not the audit's copy, which is shortened.
            detail: serde_json::to_string_pretty(&self.without_secrets(&arguments.json)).unwrap_or_default(),
            left_out: 0,
            rests_on: Value::Null,
        }))
    }

    fn without_secrets(&self, arguments: &Value) -> Value {
        let mut shown = arguments.clone();
        self.config.redactor.redact_json(&mut shown);
        shown
    }

    /// Refuses a call of which a command, its input, its folder or a path contains what looks like a secret: it would be masked, and a
    /// person cannot approve what is hidden.
    fn refuse_hidden(&self, kinds: &ArgumentKinds, arguments: &Arguments) -> Result<(), ToolError> {
        let has_secret = |name: &str| {
            let value = arguments.json.get(name).into_iter();
            let texts = value.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
            let mut texts = texts.filter_map(Value::as_str);
            texts.any(|text| !self.config.redactor.spans(text).is_empty())
        };
        let Some(name) = kinds.telling().find(|name| has_secret(name)) else { return Ok(()) };
        let message = format!(
            "`{name}` contains what looks like a secret: it would be hidden from the person, so they cannot be asked"
        );
        Err(ToolError::new(ErrorKind::Validation, message)
            .hint("name secrets by a variable of the environment or a file, and give files other names"))
    }

    pub(super) fn new_approval(
        &self,
        Case { call, tool, verdict, .. }: Case<'_>,
        arguments: &Arguments,
        (preview, effect): (&Preview, String),
        record: &Record,
    ) -> Result<NewAsk, ToolError> {
        self.refuse_hidden(&tool.kinds, arguments)?;
        let mut detail = preview.detail.clone();
        self.config.redactor.redact(&mut detail);
        let mut unmasked = format!("{}\n\n{}", preview.summary, preview.detail);
        let mut masked = self.config.redactor.spans(&unmasked).len();
        let mut left_out = preview.left_out;
        for text in [&mut detail, &mut unmasked] {
            if text.len() > DETAIL_BYTES_MAX {
                let kept = text.floor_char_boundary(DETAIL_BYTES_MAX);
                left_out = left_out.max(preview.left_out.saturating_add((text.len() - kept) as u64));
                text.truncate(kept);
            }
        }
        let mut shown_arguments = self.without_secrets(&arguments.json);
        // Editing is offered only if all arguments are shown.
        let whole = json_bytes(&shown_arguments) <= DETAIL_BYTES_MAX && shown_arguments == arguments.json;
        if !whole {
            shown_arguments.clone_from(&record.arguments);
        }
        let mut summary = preview.summary.clone();
        self.config.redactor.redact(&mut summary);
        if masked == 0 && summary == preview.summary && detail == preview.detail {
            unmasked.clear();
        } else {
            masked = masked.max(1);
        }
        let shown = Shown {
            kind: AskKind::Approval,
            second_person: self.config.asking.second_person,
            summary,
            detail,
            left_out,
            masked,
            unmasked,
            why: match self.config.asking.second_person {
                true => format!("{}; somebody else than its user has to allow it", verdict.why),
                false => verdict.why.clone(),
            },
            arguments: shown_arguments,
            // Whoever edits a call is its author as well as who allows it.
            editable: whole && tool.info.facts.approval != Approval::Always && !self.config.asking.second_person,
            // A rule is shown and kept as it is: one over a secret is not offered.
            rule: suggest(&tool.info, &arguments.looked(tool)).filter(|rule| {
                left_out == 0
                    && rule.values().all(|pattern| {
                        let mut shown = pattern.clone();
                        self.config.redactor.redact(&mut shown);
                        shown == *pattern
                    })
            }),
            ..blank(call, tool)
        };
        let mut stored = call.clone();
        stored.arguments = arguments.json.clone();
        self.new_ask(&stored, record.digest.clone().unwrap_or_default(), effect, None, 1, &shown)
    }

    pub(crate) fn new_ask(
        &self,
        call: &Call,
        digest: String,
        effect_digest: String,
        subject: Option<String>,
        round: i64,
        shown: &Shown,
    ) -> Result<NewAsk, ToolError> {
        Ok(NewAsk {
            project_id: call.scope.project_id,
            kind: shown.kind,
            digest,
            effect_digest,
            subject,
            round,
            user_id: call.scope.user_id,
            session_id: call.scope.session_id.clone(),
            tool: shown.tool.clone(),
            call: serde_json::to_value(call).map_err(ToolError::internal)?,
            shown: serde_json::to_value(shown).map_err(ToolError::internal)?,
            lives_ms: self.config.asking.lives_ms,
            limits: self.config.asking.limits,
        })
    }
}

/// What a yes is bound to: what would happen, and in which fence.
pub(super) fn effect_digest(preview: &Preview, tier: &str) -> String {
    let canonical = canonical_json(preview).unwrap_or_default();
    hex::encode(Sha256::new().chain_update(canonical).chain_update(tier).finalize())
}

pub(crate) fn blank(call: &Call, tool: &Registered) -> Shown {
    Shown {
        kind: AskKind::Question,
        title: tool.info.title.to_string(),
        tool: tool.info.name.to_string(),
        effect: tool.info.facts.effect,
        why: String::new(),
        persona: call.caller.persona.clone(),
        profile: call.caller.profile.clone(),
        summary: String::new(),
        detail: String::new(),
        left_out: 0,
        masked: 0,
        unmasked: String::new(),
        arguments: Value::Null,
        rule: None,
        kinds: tool.kinds.clone(),
        editable: tool.info.facts.approval != Approval::Always,
        wanted: None,
        round: 1,
        choices: Vec::new(),
        second_person: false,
    }
}
