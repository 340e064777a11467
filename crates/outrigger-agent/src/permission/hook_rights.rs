//! Limits of command hooks that are not the user's own. They have no grants: what they allow, and the calls that they
//! change, may do what the hook can do itself in its sandbox, that of commands. The user decides about the rest.

use outrigger_permissions::approval::UngrantedAction;
use outrigger_plugins::Grant;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::permission::PermissionRequest;
use outrigger_protocol::provenance::{Deed, Provenance};
use outrigger_tools::PermissionAsk;

use crate::state::AgentState;

impl AgentState {
    /// Returns the first of these hooks that may not answer a question.
    pub(crate) fn approved_beyond(
        &self,
        hooks: &[PluginId],
        request: &PermissionRequest,
    ) -> Option<UngrantedAction> {
        let ask = PermissionAsk {
            permission: request.permission.clone(),
            patterns: request.patterns.clone(),
            ..PermissionAsk::default()
        };
        let beyond = |hook| self.hook_beyond(hook, Grant::Approve, "may not approve it", &ask);
        hooks.iter().find_map(beyond)
    }

    /// Returns the first hook that changed the call and could not do itself what the question is about.
    pub(crate) fn changed_beyond(
        &self,
        causes: &Provenance,
        ask: &PermissionAsk,
    ) -> Option<UngrantedAction> {
        let changed = causes.plugins_that(Deed::Changed);
        let beyond = |hook| self.hook_beyond(hook, Grant::Rewrite, "changed the call", ask);
        changed.iter().find_map(beyond)
    }

    fn hook_beyond(
        &self,
        hook: &PluginId,
        grant: Grant,
        what: &str,
        ask: &PermissionAsk,
    ) -> Option<UngrantedAction> {
        let is_beyond = || match ask.permission.as_str() {
            // They run in the sandbox of the hook.
            "bash" | "python" => false,
            // By default these questions are about secrets.
            "read" if grant == Grant::Approve => true,
            _ => self.is_beyond_in(self.project_root(), hook, ask),
        };
        let is_foreign = self.plugins.host.is_foreign_hook(hook)
            && !self.permissions.questions.is_granted(hook, grant);
        (is_foreign && is_beyond()).then(|| UngrantedAction::of_hook(hook, grant, what))
    }
}
