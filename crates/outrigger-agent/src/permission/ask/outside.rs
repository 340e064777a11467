//! Actions that only the user can allow: rerunning a command outside its sandbox after it failed there, and answering an MCP
//! server with the model.

use std::sync::Arc;

use outrigger_protocol::permission::{Action, PermissionRequest};
use outrigger_protocol::provenance::Deed;
use outrigger_tools::{PermissionAsk, SampleRequest};
use serde_json::{Value, json};

use super::Asker;
use crate::permission::answering::Answering;
use crate::permission::audit::Decided;
use crate::state::AgentState;
use outrigger_permissions::line_files;
use outrigger_permissions::questions::Firmness;
use outrigger_sandbox::{ProcessFreeze, SandboxError};
use outrigger_session_state::ids;

/// Maximum number of times that a question about one command is repeated because its files keep changing.
const MAX_QUESTIONS: usize = 3;
/// Permission for a command that runs outside its sandbox.
const OUTSIDE: &str = "sandbox";
/// Permission for an answer of the model to an MCP server.
const SAMPLING: &str = "mcp_sampling";

/// The other processes, once an answer froze them or could not.
pub(super) type Frozen = Option<Result<ProcessFreeze, SandboxError>>;

impl AgentState {
    /// Asks whether a command that failed in its sandbox may run once more outside it. The approval applies to the project files
    /// that the command names as they are while the question is open: another command or a plugin may replace them before the
    /// answer. If a file changes, the question is asked again and says so. From the answer on, before plugins are notified, every
    /// other process is frozen until the result is dropped. It is not asked where the line names more files than are looked at.
    ///
    /// # Errors
    /// Those of [`outrigger_sandbox::Spawner::freeze`].
    pub(crate) async fn ask_person_outside(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        command: &str,
        why: &str,
        printed: &str,
    ) -> Result<Option<ProcessFreeze>, SandboxError> {
        let (project, home) = (&self.project.location.directory, &self.project.folders.home);
        let Some(mut shown) = line_files::of(command, project, home).await else {
            return Ok(None);
        };
        let mut again = String::new();
        for _ in 0..MAX_QUESTIONS {
            let metadata = json!({
                "command": command,
                "reason": format!(
                    "{again}it failed in the command sandbox ({why}) and may have changed what it starts; run it \
                     again outside the sandbox? Plugins and other commands are frozen meanwhile"
                ),
                "output": printed,
            });
            let mut freeze = None;
            let asked = self.ask_person(asker, OUTSIDE, command, metadata, Some(&mut freeze));
            if !asked.await {
                return Ok(None);
            }
            let Some(now) = line_files::of(command, project, home).await else {
                return Ok(None);
            };
            if now == shown {
                return freeze.transpose();
            }
            let file = line_files::first_changed(&shown, &now);
            again = format!("{file} was changed by something else while you were asked; ");
            shown = now;
        }
        Ok(None)
    }

    /// Asks whether the session's model may answer an MCP server.
    pub(crate) async fn ask_person_to_sample(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        request: &SampleRequest,
    ) -> bool {
        let metadata = json!({
            "server": request.server,
            "reason": "an MCP server wants your model to answer this, at your cost, and gets the answer",
            "system": request.system,
            "messages": request.messages,
        });
        self.ask_person(asker, SAMPLING, &request.server, metadata, None)
            .await
    }

    /// Asks the user once for an action that only the user can allow: no rule, plugin or `--auto` allows it, but a rule of that
    /// name can deny it.
    async fn ask_person(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        permission: &str,
        pattern: &str,
        metadata: Value,
        freeze: Option<&mut Frozen>,
    ) -> bool {
        let access = &self.permissions.access;
        let action = access.evaluate(permission, pattern, asker.rules);
        if action == Action::Deny || self.permissions.answering != Answering::Ask {
            return false;
        }
        let request = PermissionRequest {
            id: ids::permission(),
            session_id: asker.session_id.clone(),
            permission: permission.to_owned(),
            patterns: vec![pattern.to_owned()],
            always: Vec::new(),
            metadata: self.permissions.with_call(metadata, permission, asker),
            tool: asker.tool.clone(),
            provenance: asker.causes.clone(),
            missing_grant: None,
        };
        let questions = &self.permissions.questions;
        let _firm = questions.hold_firm(&request.id, Firmness::Person);
        let asked = PermissionAsk {
            permission: permission.to_owned(),
            patterns: vec![pattern.to_owned()],
            ..PermissionAsk::default()
        };
        asker.reported().await;
        let answer = self.ask_user(request, asked, true, asker.rules, Answering::Ask, freeze);
        let answer = answer.await;
        let by = if answer.is_ok() { "allow" } else { "deny" };
        let mut causes = asker.causes.clone();
        for actor in answer.iter().flat_map(|it| &it.by) {
            causes = causes.with(actor.clone(), Deed::Answered, None);
        }
        self.audit_decision(Decided {
            session: asker.session_id,
            call: asker.tool.as_ref().map(|tool| tool.call_id.as_str()),
            permission,
            patterns: &[pattern.to_owned()],
            decision: by,
            by: "the user",
            causes,
        });
        answer.is_ok()
    }
}
