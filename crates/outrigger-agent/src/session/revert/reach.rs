//! Which files a plugin's request may restore: those that the plugin may change itself. It never overwrites the work of others.

use outrigger_permissions::access::Operation;
use outrigger_protocol::permission::Action;
use outrigger_protocol::provenance::{Actor, Provenance};
use outrigger_tools::PermissionAsk;

use crate::error::AgentError;
use crate::state::Agent;

/// Checks that no plugin overwrites what others changed since.
pub(super) fn may_force(by: &Actor, force: bool) -> Result<(), AgentError> {
    match by.plugin_id() {
        Some(plugin) if force => Err(AgentError::NotGranted(format!(
            "the plugin {} may not overwrite what others changed since (`force`): only the user can",
            plugin.0
        ))),
        _ => Ok(()),
    }
}

impl Agent {
    /// Checks that a plugin restores no file that makes something run later, that the rules of the configuration keep from it, or
    /// that it could not change itself without the grant `prompt`. Files are relative to the root of the repository.
    pub(super) async fn may_put_back(
        &self,
        by: &Actor,
        files: Vec<&String>,
    ) -> Result<(), AgentError> {
        if by.plugin_id().is_none() {
            return Ok(());
        }
        let files: Vec<String> = files.into_iter().cloned().collect();
        let (agent, by) = (self.clone(), by.clone());
        // Reads the disk.
        let check = tokio::task::spawn_blocking(move || agent.plugin_may_put_back(&by, files));
        check
            .await
            .unwrap_or_else(|lost| Err(AgentError::Lost(lost.to_string())))
    }

    fn plugin_may_put_back(&self, by: &Actor, files: Vec<String>) -> Result<(), AgentError> {
        let state = &self.state;
        let found = self.runs_later(by, files.iter().map(String::as_str));
        if let Some(found) = found.into_iter().next() {
            return Err(AgentError::RunsLater {
                file: found.pattern,
                runs: found.runs,
            });
        }
        let rules = &state.config.config.permission;
        let rules = state.permissions.access.rules(&[rules]);
        for file in &files {
            let path = state.project.location.worktree.join(file);
            for operation in [Operation::Read, Operation::Write] {
                let decided = rules.decide_by_file(operation, &path);
                if decided.map_or(true, |it| it.action == Action::Deny) {
                    return Err(AgentError::NotGranted(format!(
                        "a rule under `permission` denies plugins {file}: only you can restore it"
                    )));
                }
            }
        }
        let ask = PermissionAsk {
            permission: "edit".to_owned(),
            patterns: files,
            ..PermissionAsk::default()
        };
        let what = "asked to restore files";
        let causes = Provenance::prompted(by.clone());
        match state.asked_without_grant(&causes, what, &ask) {
            Some(lacking) if !ask.patterns.is_empty() => Err(AgentError::NotGranted(lacking.why)),
            _ => Ok(()),
        }
    }
}
