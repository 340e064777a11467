//! What only a person allows: that a command which failed in its sandbox runs once more outside of it, that the model answers an MCP
//! server.

use std::sync::Arc;

use outrigger_protocol::permission::{Action, PermissionRequest};
use outrigger_protocol::provenance::Deed;
use outrigger_tools::{PermissionAsk, SampleRequest};
use serde_json::{Value, json};

use super::Asker;
use crate::permission::answering::Answering;
use crate::permission::audit::Decided;
use crate::state::AgentState;
use outrigger_permissions::questions::Firmness;
use outrigger_session_state::ids;

/// How often the question about one command comes where its files keep being changed.
const MAX_QUESTIONS: usize = 3;
/// What is said of a line whose files cannot be kept an eye on.
const UNSEEN: &str = "it names more files than are looked at, and something else may change them while you are asked; ";
/// The permission of a command that runs outside of its sandbox.
const OUTSIDE: &str = "sandbox";
/// That of an answer of the model for an MCP server.
const SAMPLING: &str = "mcp_sampling";

/// A file that is another one now, or is there in one of the lists only.
fn first_changed(before: &[String], now: &[String]) -> String {
    let of_now = now.iter().filter(|it| !before.contains(it));
    let of_before = before.iter().filter(|it| !now.contains(it));
    let first = of_now.chain(of_before).next();
    let file = first.and_then(|it| it.rsplit_once(' ')).map(|it| it.0);
    file.unwrap_or("a file that it runs").to_owned()
}

impl AgentState {
    /// Asks whether a command that failed in its sandbox runs once more outside of it, with the files of the project that it names as they
    /// are while the question stands: another command, or a plugin, may exchange them until there is an answer. Where one did, the
    /// question comes again, and says so.
    pub(crate) async fn ask_person_outside(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        command: &str,
        why: &str,
        printed: &str,
    ) -> bool {
        let mut shown = self.files_of_line(command).await;
        let mut changed: Option<String> = None;
        for _ in 0..MAX_QUESTIONS {
            let again = match (changed.take(), &shown) {
                (Some(file), _) => {
                    format!("{file} was changed by something else while you were asked; ")
                }
                (None, None) => UNSEEN.to_owned(),
                (None, Some(_)) => String::new(),
            };
            let metadata = json!({
                "command": command,
                "reason": format!(
                    "{again}it failed in the sandbox of commands ({why}); what it starts may have been changed by that; \
                     run it once more, outside of the sandbox?"
                ),
                "output": printed,
            });
            if !self.ask_person(asker, (OUTSIDE, command), metadata).await {
                return false;
            }
            let now = self.files_of_line(command).await;
            if now == shown {
                return true;
            }
            let (before, after) = (shown.as_deref(), now.as_deref());
            changed = Some(first_changed(
                before.unwrap_or_default(),
                after.unwrap_or_default(),
            ));
            shown = now;
        }
        false
    }

    /// The files of the project that a command line names, with digests of what they hold. Each is a name, a blank and a digest.
    /// `None`: more than are looked at.
    async fn files_of_line(&self, command: &str) -> Option<Vec<String>> {
        let entry = json!({ "command": ["sh", "-c", command] });
        let (project, home) = (self.place.directory.clone(), self.folders.home.clone());
        let look = move || outrigger_config::files_run_by(&entry, &project, &home);
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }

    /// Asks whether the session's model answers an MCP server.
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
        self.ask_person(asker, (SAMPLING, &request.server), metadata)
            .await
    }

    /// Asks what only a person allows, once: no rule, no plugin and no `--auto` does; a rule of that name says no.
    async fn ask_person(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        (permission, pattern): (&str, &str),
        metadata: Value,
    ) -> bool {
        let denied = self.access.evaluate(permission, pattern, asker.rules) == Action::Deny;
        if denied || self.answering != Answering::Ask {
            return false;
        }
        let request = PermissionRequest {
            id: ids::permission(),
            session_id: asker.session_id.clone(),
            permission: permission.to_owned(),
            patterns: vec![pattern.to_owned()],
            always: Vec::new(),
            metadata: self.with_call(metadata, permission, asker),
            tool: asker.tool.clone(),
            provenance: asker.causes.clone(),
            missing_grant: None,
        };
        let _firm = self.questions.hold_firm(&request.id, Firmness::Person);
        let asked = PermissionAsk {
            permission: permission.to_owned(),
            patterns: vec![pattern.to_owned()],
            ..PermissionAsk::default()
        };
        asker.reported().await;
        let answer = self.ask_user(request, (asked, true), asker.rules, Answering::Ask);
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
