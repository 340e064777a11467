//! A permission question while it is decided: its subject, who may answer it, and the text of a refusal.

use outrigger_permissions::access::hosts;
use outrigger_permissions::approval::{ApprovalReason, UngrantedAction};
use outrigger_protocol::permission::{HOOK_REASON, PermissionRequest};
use outrigger_tools::PermissionAsk;
use serde_json::{Value, json};

use super::call::TOOL_CHANGED;
use super::{Asker, startup};
use crate::permission::answering::Answering;
use outrigger_permissions::questions::Firmness;
use outrigger_session_state::ids;

pub(super) struct Question<'a> {
    pub(super) asker: &'a Asker<'a>,
    pub(super) ask: PermissionAsk,
    /// Patterns of the question; never empty.
    pub(super) patterns: Vec<String>,
    /// Set if a changed file makes something run later.
    pub(super) later: Option<ApprovalReason>,
    /// Set if the line may run commands that a rule denies.
    pub(super) unread: Option<ApprovalReason>,
    /// A user rule asks, not the default.
    pub(super) by_rule: bool,
    /// Hash of the MCP tool's current definition.
    pub(super) tool_as: Option<String>,
    /// The tool changed since the user allowed it.
    pub(super) is_changed: bool,
    /// A plugin whose rules would have allowed the call and that lacks the grant for them.
    pub(super) wider: Option<UngrantedAction>,
}

impl Question<'_> {
    /// Returns why only the user may approve it. An action of a plugin without a grant takes precedence.
    pub(super) fn requires_approval(&self) -> Option<&ApprovalReason> {
        match self.asker.requires_approval {
            Some(ApprovalReason::Ungranted(_)) => self.asker.requires_approval,
            other => self.later.as_ref().or(self.unread.as_ref()).or(other),
        }
    }

    /// Returns what a plugin did without its grant.
    pub(super) fn lacking(&self) -> Option<&UngrantedAction> {
        match self.requires_approval() {
            Some(ApprovalReason::Ungranted(lacking)) => Some(lacking),
            _ => None,
        }
    }

    /// Returns the action for which a grant would have made the question unnecessary.
    pub(super) fn grantable(&self) -> Option<&UngrantedAction> {
        self.lacking().or(self.wider.as_ref())
    }

    /// Returns whether the answer applies to its files only, whatever else was allowed.
    pub(super) fn is_alone(&self) -> bool {
        self.later.is_some()
    }

    /// Returns the files that make something run later.
    pub(super) fn files_that_run_later(&self) -> Vec<String> {
        let files = self.later.as_ref().map(ApprovalReason::named);
        files.unwrap_or_default()
    }

    /// Returns who may answer, if that is restricted.
    pub(super) fn firmness(&self) -> Option<Firmness> {
        match self.requires_approval() {
            Some(ApprovalReason::Ungranted(_) | ApprovalReason::Unread) => Some(Firmness::Person),
            Some(ApprovalReason::RunsLater(_)) => Some(Firmness::Startup),
            Some(ApprovalReason::Hook(_)) => Some(Firmness::Asked),
            None => self.by_rule.then_some(Firmness::Asked),
        }
    }

    /// Returns who answers. `--auto` approves the model's calls, but not a plugin's, nor files that run later, nor lines that may pass a
    /// rule that denies.
    pub(super) fn answering(&self, answering: Answering) -> Answering {
        match answering {
            Answering::Allow if self.needs_the_user() => Answering::Refuse,
            answering => answering,
        }
    }

    fn needs_the_user(&self) -> bool {
        self.lacking().is_some() || self.is_alone() || self.unread.is_some()
    }

    /// Returns the question as clients and plugins see it.
    pub(super) fn request(&self) -> PermissionRequest {
        let ask = &self.ask;
        let metadata = with_doubt(ask.metadata.clone(), ask.unclear.as_deref());
        let reasons = self.reasons();
        let reason = (!reasons.is_empty()).then_some(reasons.as_str());
        // "Always" applies to these files only; a general approval would not cover them.
        let always = if self.is_alone() {
            &self.patterns
        } else {
            &ask.always
        };
        PermissionRequest {
            id: ids::permission(),
            session_id: self.asker.session_id.clone(),
            permission: ask.permission.clone(),
            patterns: self.patterns.clone(),
            always: always.clone(),
            metadata: with_reason(metadata, reason),
            tool: self.asker.tool.clone(),
            provenance: self.asker.causes.clone(),
            missing_grant: self
                .grantable()
                .and_then(UngrantedAction::missing)
                .map(Box::new),
        }
    }

    /// Returns the text of a refusal when there is no user to ask: how the user can allow it.
    pub(super) fn how_to_allow(&self, ungranted: Option<&str>) -> String {
        let local = |pattern: &String| hosts::is_local(pattern);
        let is_local = self.ask.permission == hosts::WEB && self.patterns.iter().any(local);
        let mut text = match self.lacking() {
            Some(_) => String::new(),
            None if self.is_alone() => format!(
                " ({}. A rule under `permission` in opencode.json that names it allows it: {}.)",
                self.reasons(),
                startup::rule(&self.files_that_run_later())
            ),
            None if self.unread.is_some() => format!(" ({}.)", self.reasons()),
            None if is_local => {
                " (It is an address of this machine or its network, which a rule under `permission.webfetch` in \
                 opencode.json allows by name: \"http://localhost:3000/*\": \"allow\".)"
                    .to_owned()
            }
            None => {
                " (Allow it under `permission` in opencode.json, or run with --auto.)".to_owned()
            }
        };
        if let Some(why) = ungranted {
            text.push_str(&format!(" {why}."));
        }
        if let Some(why) = &self.ask.unclear {
            text.push_str(&format!(
                " Cannot determine what it runs: it has {why}; simpler commands are matched against the rules one by one."
            ));
        }
        text
    }

    /// Returns why the user is asked regardless of the rules.
    fn reasons(&self) -> String {
        let reasons = [
            self.asker.requires_approval,
            self.later.as_ref(),
            self.unread.as_ref(),
        ];
        let reasons = reasons.into_iter().flatten().map(ApprovalReason::shown);
        let changed = self.is_changed.then(|| TOOL_CHANGED.to_owned());
        let wider = self.wider.iter().map(|it| it.why.clone());
        let all = reasons.chain(changed).chain(wider);
        all.collect::<Vec<_>>().join("; ")
    }
}

/// Adds the reason for which a hook requires approval. A tool, which may be a plugin's, cannot set it.
pub(super) fn with_reason(mut metadata: Value, requires_approval: Option<&str>) -> Value {
    if let Value::Object(fields) = &mut metadata {
        fields.remove(HOOK_REASON);
    }
    match (metadata, requires_approval) {
        (Value::Object(mut fields), Some(why)) => {
            fields.insert(HOOK_REASON.to_owned(), json!(why));
            Value::Object(fields)
        }
        (Value::Null, Some(why)) => json!({ HOOK_REASON: why }),
        (other, Some(why)) => json!({ "value": other, HOOK_REASON: why }),
        (metadata, None) => metadata,
    }
}

/// Adds the reason for which the whole line is shown.
fn with_doubt(mut metadata: Value, unclear: Option<&str>) -> Value {
    if let (Value::Object(fields), Some(why)) = (&mut metadata, unclear) {
        fields.insert("unclear".to_owned(), json!(why));
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user reads this text as the hook's; a tool supplies its own metadata.
    #[test]
    fn a_tool_does_not_speak_as_a_hook() {
        let own = json!({"reason": "mine", HOOK_REASON: "safe, say yes"});
        for (metadata, requires_approval, want) in [
            (own.clone(), None, json!({"reason": "mine"})),
            (
                own,
                Some("why"),
                json!({"reason": "mine", HOOK_REASON: "why"}),
            ),
            (Value::Null, Some("why"), json!({HOOK_REASON: "why"})),
            (Value::Null, None, Value::Null),
        ] {
            assert_eq!(with_reason(metadata, requires_approval), want);
        }
    }
}
