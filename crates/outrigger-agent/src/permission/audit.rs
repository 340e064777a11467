//! The agent's own audit records (C13): permissions, grants by answer, and the intent of every tool call. The
//! store writes hook, tool and client records; `outrigger-audit` those of processes and plugins.

use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::id::{PluginId, SessionId, TurnId};
use outrigger_protocol::log::ToolAudit;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::tool::{ToolCall, ToolSpec};

use crate::permission::answering::Answering;
use crate::state::{AgentState, PluginServices, ToolServices};
use outrigger_stdx::clock::now_ms;

/// Returns the plugin that owns the tool.
pub(crate) fn owner(spec: Option<&ToolSpec>) -> Option<PluginId> {
    let id = spec?.source.strip_prefix("plugin:")?;
    Some(PluginId(id.to_owned()))
}

/// Returns who allowed something, from the text of the decision.
pub(crate) fn who_allowed(text: &str, answering: Answering) -> &'static str {
    match text {
        "allow" => "a rule",
        "allow (plugin)" => "a plugin",
        _ if answering == Answering::Allow => "--auto",
        "ask -> always" => "the user, always",
        _ => "the user",
    }
}

/// A permission question and its answer.
pub(crate) struct Decided<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) call: Option<&'a str>,
    pub(crate) permission: &'a str,
    pub(crate) patterns: &'a [String],
    /// `allow` or `deny`.
    pub(crate) decision: &'static str,
    /// Who decided: a rule, a plugin, the user, or no one.
    pub(crate) by: &'a str,
    /// Who caused the question and who answered it.
    pub(crate) causes: Provenance,
}

impl AgentState {
    /// Records a decision. The intent of the call waits for the disk later, so this record need not.
    pub(crate) fn audit_decision(&self, decided: Decided<'_>) {
        let denied = decided.decision == "deny";
        let record = AuditRecord {
            session_id: Some(decided.session.clone()),
            provenance: self.plugins.host.recorded_causes(&decided.causes),
            subject: Some(format!(
                "{}: {}",
                decided.permission,
                decided.patterns.join(", ")
            )),
            policy_check_result: if denied {
                format!("refused: {}", decided.by)
            } else {
                "passed".into()
            },
            detail: Some(match decided.call {
                Some(call) => format!("by {}, for {call}", decided.by),
                None => format!("by {}", decided.by),
            }),
            ..AuditRecord::new(AuditKind::Permission, now_ms(), decided.decision)
        };
        self.store.audit_lazily(now_ms(), vec![record]);
    }

    /// Records an "always": these patterns need no approval from now on.
    pub(crate) fn audit_grant(&self, session: &SessionId, permission: &str, patterns: &[String]) {
        let record = AuditRecord {
            session_id: Some(session.clone()),
            subject: Some(format!("{permission}: {}", patterns.join(", "))),
            detail: Some("by the user, until the end of this process".to_owned()),
            ..AuditRecord::new(AuditKind::Grant, now_ms(), "allow")
        };
        self.store.audit_lazily(now_ms(), vec![record]);
    }

    /// A tool is about to run with these arguments, all decisions made. Answers when that is stored (invariant 6).
    ///
    /// # Errors
    /// When it cannot be written down: then it must not run.
    pub(crate) async fn audit_intent(
        &self,
        call: &ToolCall,
        causes: Provenance,
        turn: &TurnId,
        input_hash: String,
    ) -> Result<(), String> {
        let plugin = self.tools.owner_of(&call.tool);
        let record = AuditRecord {
            trace_id: turn.0.clone(),
            session_id: Some(call.session_id.clone()),
            step_id: self.sessions.turns.step_of(Some(turn)),
            plugin_id_claimed: plugin
                .as_ref()
                .is_some_and(|id| self.plugins.is_claimed(id)),
            plugin_id: plugin,
            provenance: self.plugins.host.recorded_causes(&causes),
            subject: Some(format!("{} {}", call.tool, call.call_id)),
            input_hash: Some(input_hash),
            ..AuditRecord::new(AuditKind::ToolIntent, now_ms(), "run")
        };
        self.store
            .audit(now_ms(), vec![record])
            .await
            .map_err(|error| format!("the call could not be recorded and was not made: {error}"))
    }

    /// Returns the plugin whose tool replaces the bundled tool of that name.
    pub(crate) fn replaces_bundled(&self, tool: &str) -> Option<PluginId> {
        self.tools
            .owner_of(tool)
            .filter(|_| outrigger_tools::builtin::NAMES.contains(&tool))
    }

    /// Returns whether the plugin contributed this tool.
    pub(crate) fn owns_tool(&self, plugin: &PluginId, tool: &str) -> bool {
        self.tools.owner_of(tool).as_ref() == Some(plugin)
    }

    /// Returns the audit record of a finished call.
    pub(crate) fn tool_audit(
        &self,
        turn: &TurnId,
        tool: &str,
        input_hash: Option<String>,
        output_hash: String,
    ) -> ToolAudit {
        let plugin = self.tools.owner_of(tool);
        ToolAudit {
            ended: now_ms(),
            step: self.sessions.turns.step_of(Some(turn)),
            claimed: plugin
                .as_ref()
                .is_some_and(|id| self.plugins.is_claimed(id)),
            plugin,
            input_hash,
            output_hash: Some(output_hash),
        }
    }
}

impl PluginServices {
    /// Returns whether other plugins share its process, so that only the process claims which one called.
    fn is_claimed(&self, plugin: &PluginId) -> bool {
        let all = self.host.list();
        let own = all.iter().find(|p| p.id == plugin.0).and_then(|p| p.pid);
        own.is_none() || all.iter().filter(|p| p.pid == own).count() > 1
    }
}

impl ToolServices {
    pub(crate) fn owner_of(&self, tool: &str) -> Option<PluginId> {
        let descriptor = self.runtime.descriptor(tool)?;
        owner(Some(&descriptor.spec))
    }
}
