//! Files that make something run later ([`outrigger_permissions::access::startup`]) and that a tool would change.

use outrigger_permissions::access::startup::RunsLater;
use outrigger_permissions::approval::ApprovalReason;
use outrigger_stdx::sync::lock;
use outrigger_tools::PermissionAsk;
use serde_json::json;

use super::Asker;
use crate::state::AgentState;

impl AgentState {
    /// Returns that the user must approve a change of these files, if one of them makes something run later, no user rule
    /// names it, and the user did not allow it before.
    pub(super) async fn runs_later(
        &self,
        asker: &Asker<'_>,
        ask: &PermissionAsk,
        patterns: &[String],
    ) -> Option<ApprovalReason> {
        if ask.permission != "edit" || ask.by_command {
            return None;
        }
        let written = self.permissions.user_rules.written(asker.rules);
        let let_before = lock(&self.permissions.questions.startup).clone();
        let asked = patterns.iter().filter(|it| !let_before.contains(*it));
        let asked: Vec<String> = asked.cloned().collect();
        let (access, worktree) = (
            self.permissions.access.clone(),
            self.project.location.worktree.clone(),
        );
        let all = asked.clone();
        let look = move || access.runs_later(&worktree, &all, &written);
        let found = tokio::task::spawn_blocking(look).await;
        // If the files cannot be checked, all of them are treated as such files.
        let found = found.unwrap_or_else(|_| RunsLater::unknown(asked));
        (!found.is_empty()).then_some(ApprovalReason::RunsLater(found))
    }
}

/// Returns a rule that names the first of these files.
pub(super) fn rule(files: &[String]) -> String {
    let first = files.first().map(String::as_str).unwrap_or_default();
    format!("{}", json!({ "edit": { first: "allow" } }))
}
