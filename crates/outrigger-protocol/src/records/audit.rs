//! Audit records (C13): who did what, who authorised it, and the outcome. They contain no contents, only hashes.

use serde::{Deserialize, Serialize};

use crate::Millis;
use crate::id::{PluginId, SessionId};
use crate::plugin::hook::{HookAudit, HookRecord, OutcomeKind};
use crate::records::log::{ClientRecord, LogRecord, ToolRecord};
use crate::records::provenance::Provenance;

/// The subject of an audit record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// One handler's run at a hook point.
    #[default]
    Hook,
    /// A tool is about to run with these arguments. Written before it runs (invariant 6).
    ToolIntent,
    /// How a tool call ended.
    ToolOutcome,
    /// A permission question was decided.
    Permission,
    /// Something is permanently allowed.
    Grant,
    /// A plugin advanced, stopped, failed, or was restarted.
    LifeCycle,
    /// A process was started, with its sandbox.
    Process,
    /// A plugin's client made a request that changes something.
    Client,
    /// A plugin process was allowed or denied a connection to a host.
    Network,
    /// A remote controller connected to the bridge, executed something, or was refused.
    Bridge,
    /// A browser action was executed or refused.
    Browser,
    /// Older records were removed, according to the retention setting.
    Retention,
}

impl AuditKind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::Hook,
        Self::ToolIntent,
        Self::ToolOutcome,
        Self::Permission,
        Self::Grant,
        Self::LifeCycle,
        Self::Process,
        Self::Client,
        Self::Network,
        Self::Bridge,
        Self::Browser,
        Self::Retention,
    ];

    /// Returns the name in the store and in filters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::ToolIntent => "tool_intent",
            Self::ToolOutcome => "tool_outcome",
            Self::Permission => "permission",
            Self::Grant => "grant",
            Self::LifeCycle => "life_cycle",
            Self::Process => "process",
            Self::Client => "client",
            Self::Network => "network",
            Self::Bridge => "bridge",
            Self::Browser => "browser",
            Self::Retention => "retention",
        }
    }

    /// Returns the kind of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// `policyCheckResult` if no rule objected.
pub const POLICY_PASSED: &str = "passed";

/// One record of the audit. The names on the wire are those of C13.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditRecord {
    /// Its subject.
    pub kind: AuditKind,
    /// When it started, in milliseconds since the epoch; for an outcome, when it ended.
    pub at: Millis,
    /// Groups records: the turn, if there is one; otherwise the process that wrote it.
    pub trace_id: String,
    /// Session, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Step of the turn, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Hook point, by our name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_name: Option<String>,
    /// Plugin that ran, or whose tool or client it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin_id: Option<PluginId>,
    /// The plugin hosted by `plugin_id`, if that one acted (C8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_plugin_id: Option<PluginId>,
    /// Several plugins share the process: the process itself claims which of them acted.
    #[serde(skip_serializing_if = "std_is_false")]
    pub plugin_id_claimed: bool,
    /// Who caused it, if known.
    #[serde(skip_serializing_if = "Provenance::is_empty")]
    pub provenance: Provenance,
    /// The object: tool and call, permission and pattern, program, method and path. Without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// SHA-256 of the input as JSON, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<String>,
    /// SHA-256 of the output as JSON, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<String>,
    /// The decision: [`crate::hook::Decision`] for hooks, `allow`, `deny`, `start`, `completed`, the code of an error.
    pub decision: String,
    /// Its duration in milliseconds.
    pub duration_ms: f64,
    /// It missed its deadline.
    pub timeout: bool,
    /// It failed.
    pub errored: bool,
    /// The result of the guard and the rules: [`POLICY_PASSED`], or `refused` with the rule.
    pub policy_check_result: String,
    /// Message, sandbox, origin of a decision. Without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde calls"
)]
fn std_is_false(value: &bool) -> bool {
    !*value
}

impl AuditRecord {
    /// Creates a record of this kind without objections.
    #[must_use]
    pub fn new(kind: AuditKind, at: Millis, decision: impl Into<String>) -> Self {
        Self {
            kind,
            at,
            decision: decision.into(),
            policy_check_result: POLICY_PASSED.to_owned(),
            ..Self::default()
        }
    }

    /// Converts a log record; `None` if the audit does not keep it.
    #[must_use]
    pub fn of(record: &LogRecord) -> Option<Self> {
        match record {
            LogRecord::Hook(hook) => Some(Self::of_hook(hook)),
            LogRecord::Tool(tool) => Some(Self::of_tool(tool)),
            LogRecord::Client(client) => Self::of_client(client),
            LogRecord::Event(_)
            | LogRecord::TurnStep(_)
            | LogRecord::Observed(_)
            | LogRecord::Completion(_) => None,
        }
    }

    fn of_hook(hook: &HookRecord) -> Self {
        let HookAudit {
            step,
            input_hash,
            output_hash,
            claimed,
            sub_plugin,
            refused,
        } = &hook.audit;
        Self {
            trace_id: hook.turn.as_ref().map(|t| t.0.clone()).unwrap_or_default(),
            session_id: hook.session.clone(),
            step_id: step.clone(),
            hook_name: Some(hook.point.clone()),
            plugin_id: Some(hook.plugin.clone()),
            sub_plugin_id: sub_plugin.clone(),
            plugin_id_claimed: *claimed,
            input_hash: input_hash.clone(),
            output_hash: output_hash.clone(),
            duration_ms: hook.duration_ms,
            timeout: hook.outcome == OutcomeKind::Timeout,
            errored: hook.outcome.is_failure(),
            policy_check_result: match refused {
                Some(rule) => format!("refused: {rule}"),
                None => POLICY_PASSED.to_owned(),
            },
            detail: hook.message.clone(),
            ..Self::new(AuditKind::Hook, hook.at, hook.decision.name())
        }
    }

    fn of_tool(tool: &ToolRecord) -> Self {
        let denied = matches!(
            tool.outcome.as_str(),
            "tool.denied"
                | "tool.rejected"
                | "tool.blocked"
                | "tool.invalid_rewrite"
                | "tool.not_granted"
                | "tool.outside_roots"
                | "tool.elsewhere"
        );
        Self {
            trace_id: tool.turn.as_ref().map(|t| t.0.clone()).unwrap_or_default(),
            session_id: Some(tool.call.session_id.clone()),
            step_id: tool.audit.step.clone(),
            plugin_id: tool.audit.plugin.clone(),
            plugin_id_claimed: tool.audit.claimed,
            provenance: tool.provenance.clone(),
            subject: Some(format!("{} {}", tool.call.tool, tool.call.call_id)),
            input_hash: tool.audit.input_hash.clone(),
            output_hash: tool.audit.output_hash.clone(),
            duration_ms: tool.duration_ms,
            timeout: tool.outcome == "tool.timeout",
            errored: tool.outcome != "completed",
            detail: match (tool.joined, tool.retries) {
                (true, _) => Some(
                    "not made: an equal call of its step was, and this one got the same answer"
                        .to_owned(),
                ),
                (false, 0) => None,
                (false, 1) => Some("made again once".to_owned()),
                (false, retries) => Some(format!("made again {retries} times")),
            },
            policy_check_result: if denied {
                format!("refused: {}", tool.outcome)
            } else {
                POLICY_PASSED.to_owned()
            },
            ..Self::new(
                AuditKind::ToolOutcome,
                tool.at.max(tool.audit.ended),
                tool.outcome.clone(),
            )
        }
    }

    // Requests that only read are in the log, not here.
    fn of_client(client: &ClientRecord) -> Option<Self> {
        if matches!(client.method.as_str(), "GET" | "HEAD" | "OPTIONS") {
            return None;
        }
        let refused = matches!(client.status, 401 | 403);
        Some(Self {
            session_id: client.session.clone(),
            plugin_id: client.plugin.clone(),
            plugin_id_claimed: true,
            subject: Some(format!("{} {}", client.method, client.path)),
            duration_ms: client.duration_ms,
            errored: client.status >= 400,
            policy_check_result: if refused {
                format!("refused: {}", client.status)
            } else {
                POLICY_PASSED.to_owned()
            },
            ..Self::new(AuditKind::Client, client.at, client.status.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::hook::Decision;
    use serde_json::json;

    #[test]
    fn names_are_those_that_are_stored() {
        for kind in AuditKind::ALL {
            assert_eq!(json!(kind), json!(kind.name()));
            assert_eq!(AuditKind::from_name(kind.name()), Some(kind));
        }
        for decision in [
            Decision::Continue,
            Decision::Patch,
            Decision::Block,
            Decision::Refused,
            Decision::FailedOpen,
            Decision::FailedClosed,
            Decision::Skipped,
        ] {
            assert_eq!(json!(decision), json!(decision.name()));
        }
    }

    /// C13 names the fields.
    #[test]
    fn a_hook_run_has_every_field_of_the_requirement() {
        let hook = HookRecord {
            session: Some("ses_1".into()),
            turn: Some("trn_1".into()),
            decision: Decision::FailedClosed,
            payload_bytes: 10,
            duration_ms: 12.5,
            message: Some("no answer within 12 ms".into()),
            at: 7,
            audit: HookAudit {
                step: Some("2".into()),
                input_hash: Some("aa".into()),
                output_hash: Some("bb".into()),
                claimed: true,
                sub_plugin: Some("inner".into()),
                refused: Some("rights"),
            },
            ..HookRecord::new(
                "tool.before_call",
                "tool.execute.before",
                "guard".into(),
                OutcomeKind::Timeout,
            )
        };
        let record = AuditRecord::of(&LogRecord::Hook(Box::new(hook))).unwrap();
        assert_eq!(
            json!(record),
            json!({
                "kind": "hook", "at": 7, "traceId": "trn_1", "sessionId": "ses_1", "stepId": "2",
                "hookName": "tool.before_call", "pluginId": "guard", "subPluginId": "inner", "pluginIdClaimed": true,
                "inputHash": "aa", "outputHash": "bb", "decision": "failed_closed", "durationMs": 12.5, "timeout": true,
                "errored": true, "policyCheckResult": "refused: rights", "detail": "no answer within 12 ms",
            })
        );
        let again: AuditRecord = serde_json::from_value(json!(record)).unwrap();
        assert_eq!(again, record);
    }

    #[test]
    fn requests_that_only_read_are_not_kept() {
        let request = |method: &str, status| {
            AuditRecord::of(&LogRecord::Client(Box::new(ClientRecord {
                plugin: Some("a".into()),
                method: method.into(),
                path: "/session/ses_1/message".into(),
                session: Some("ses_1".into()),
                status,
                duration_ms: 1.0,
                at: 1,
            })))
        };
        assert_eq!(request("GET", 200), None);
        let written = request("POST", 200).unwrap();
        assert_eq!(
            (written.errored, written.policy_check_result.as_str()),
            (false, "passed")
        );
        let refused = request("POST", 403).unwrap();
        assert_eq!(
            (refused.errored, refused.policy_check_result.as_str()),
            (true, "refused: 403")
        );
    }
}
