//! Reasons to ask the user about a tool call regardless of the rules: a command hook requires it, or a plugin changed the call
//! without the grant for it.

use outrigger_permissions::approval::{ApprovalReason, UngrantedAction};
use outrigger_plugins::Grant;
use outrigger_protocol::hook::{Decision, HookRecord};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::provenance::UNKNOWN_PLUGIN;
use outrigger_protocol::tool::ToolCall;
use outrigger_session_state::revisions::argument_changes::changes;
use outrigger_stdx::sync::lock;
use serde_json::Value;

use crate::state::AgentState;

impl AgentState {
    /// Returns whether the user must approve the call regardless of the rules. `before` and `after` are the input and the
    /// result of the hooks before the call, `records` lists what each of them did, and `provider` is the provider whose model
    /// made the call. A plugin may do as it likes with its own tools: they run in its sandbox.
    pub(crate) fn approval_reason(
        &self,
        call: &ToolCall,
        provider: Option<&str>,
        records: &[HookRecord],
        before: &Value,
        after: &Value,
    ) -> Option<ApprovalReason> {
        let hook = self
            .plugins
            .host
            .requires_approval(&call.session_id.0, &call.call_id.0);
        let hook = hook.map(ApprovalReason::Hook);
        let (before, after) = (before.get("args"), after.get("args"));
        let foreign = |plugin: &PluginId| !self.owns_tool(plugin, &call.tool);
        let rewritten = (before != after).then(|| {
            let what = format!("changed the call: {}", changes(before, after));
            let changed = records.iter().filter(|it| it.decision == Decision::Patch);
            changed
                .filter(|it| foreign(&it.plugin))
                .find_map(|it| self.lacks(&it.plugin, Grant::Rewrite, &what))
        });
        let asked = || {
            let speaker = self.caller(provider?).plugin_id()?;
            let what = "speaks for the model that made the call";
            foreign(&speaker)
                .then(|| self.lacks(&speaker, Grant::Model, what))
                .flatten()
        };
        let ungranted = rewritten.flatten().or_else(asked);
        ungranted.map(ApprovalReason::Ungranted).or(hook)
    }

    /// Grants it to `plugin` until the program ends, or says why that counts for this call alone.
    pub(crate) fn grant_for_now(&self, plugin: PluginId, grant: Grant) {
        if plugin.0 == UNKNOWN_PLUGIN || self.plugins.host.shares_process(&plugin) {
            tracing::warn!(
                "[permission] the answer applies to this call only: {} shares a process with other plugins, \
                 which could act in its name; a grant in your own outrigger.toml gives it its own process from \
                 the next start",
                plugin.0
            );
        }
        lock(&self.permissions.questions.granted).insert((plugin, grant));
    }

    /// Returns what `plugin` did without the grant, and which grant allows it; `None` if it has the grant.
    pub(crate) fn lacks(
        &self,
        plugin: &PluginId,
        grant: Grant,
        what: &str,
    ) -> Option<UngrantedAction> {
        let key = self.plugins.host.grant_missing(plugin, grant)?;
        // In a process of several, each can speak as any other: what the user answered about one would count for all.
        let is_known = plugin.0 != UNKNOWN_PLUGIN && !self.plugins.host.shares_process(plugin);
        if self.permissions.questions.is_granted(plugin, grant) && is_known {
            return None;
        }
        Some(UngrantedAction::of_plugin(plugin, grant, key, what))
    }
}
