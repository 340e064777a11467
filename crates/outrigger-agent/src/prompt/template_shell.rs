//! Shell lines in templates of commands: `` !`git status` ``. Each is asked for as the `bash` tool would be, and runs in the
//! same sandbox; one that a plugin brought, in the plugin's.

use std::time::Duration;

use outrigger_contributions::command_label;
use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::approval::ApprovalReason;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::provenance::Provenance;
use outrigger_sandbox::{Policy, Spec};

use crate::permission::ask::Asker;
use crate::state::Agent;

/// Longest run of one line.
const DEADLINE: Duration = Duration::from_secs(30);
/// Most bytes of its output.
const MAX_OUTPUT: usize = 256 * 1024;

impl Agent {
    /// The output of a line of the command `name`, or why it was not run.
    pub(crate) async fn shell_output(
        &self,
        session_id: &SessionId,
        agent: &AgentInfo,
        causes: &Provenance,
        (name, line): (&str, &str),
    ) -> String {
        let own = self
            .session(session_id)
            .ok()
            .and_then(|session| session.permission)
            .unwrap_or_default();
        let ask = outrigger_tools::ask_for_line(line);
        let label = command_label(name);
        let requires_approval = self.inner.prompted_without_grant(causes, None, &ask);
        // A line that the plugin brought itself runs in its own sandbox.
        let owner = self.inner.plugins.configured_by("command", name);
        let owner = owner.filter(|_| self.inner.boxes.of(&label).is_some());
        let requires_approval =
            requires_approval.filter(|it| !owner.is_some_and(|owner| it.may_be(&owner)));
        let requires_approval = requires_approval.map(ApprovalReason::Ungranted);
        let asker = Asker {
            session_id,
            tool: None,
            rules: &[&agent.permission, &own],
            requires_approval: requires_approval.as_ref(),
            causes,
        };
        // Such as `cd` alone, which needs no approval.
        let decided = match ask.patterns.is_empty() && requires_approval.is_none() {
            true => Ok(()),
            false => self.inner.decide(&asker, ask).await.map(drop),
        };
        if let Err(refusal) = decided {
            return format!("(not run: {})", refusal.text());
        }
        let mut spec = Spec::new("/bin/sh")
            .args(["-c", line])
            .cwd(&self.inner.place.directory)
            .vars(outrigger_sandbox::env::allow_list(&[]))
            .label(label.clone());
        let rules = [agent.permission.clone(), own].concat();
        let confined = self.inner.confine(rules).await;
        spec.policy = match (confined, self.inner.boxes.of(&label)) {
            (Err(error), _) => return format!("(not run: {error}; {})", error.hint()),
            (Ok(policy), None) => policy,
            (Ok(_), Some(own)) => {
                // The plugin's home is its own here.
                let kept = match self.inner.kept_from_helpers().await {
                    Ok(kept) => kept.unwrap_or_default(),
                    Err(error) => return format!("(not run: {error}; {})", error.hint()),
                };
                spec.env.extend(own.variables);
                spec.proxy_redirect = own.proxy_redirect;
                Some(Policy { kept, ..own.policy })
            }
        };
        match outrigger_sandbox::run(&self.inner.commands_spawner, spec, DEADLINE, MAX_OUTPUT).await
        {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(error) => format!("(not run: {error})"),
        }
    }
}
