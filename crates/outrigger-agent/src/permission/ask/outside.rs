//! What only a person allows: that a command which failed in its sandbox runs once more outside of it, that the model answers an MCP
//! server.

use std::sync::Arc;

use outrigger_protocol::permission::{Action, PermissionRequest};
use outrigger_protocol::provenance::Deed;
use outrigger_tools::{PermissionAsk, SampleRequest};
use serde_json::{Value, json};

use super::Asker;
use crate::ids;
use crate::permission::answering::Answering;
use crate::permission::audit::Decided;
use crate::state::Inner;
use crate::state::questions::Firmness;

/// The permission of a command that runs outside of its sandbox.
const OUTSIDE: &str = "sandbox";
/// That of an answer of the model for an MCP server.
const SAMPLING: &str = "mcp_sampling";

impl Inner {
    /// Asks whether a command that failed in its sandbox runs once more outside of it.
    pub(crate) async fn ask_person_outside(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        command: &str,
        why: &str,
        printed: &str,
    ) -> bool {
        let metadata = json!({
            "command": command,
            "reason": format!(
                "it failed in the sandbox of commands ({why}); what it starts may have been changed by that; \
                 run it once more, outside of the sandbox?"
            ),
            "output": printed,
        });
        self.ask_person(asker, (OUTSIDE, command), metadata).await
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
        let answer = self.ask_user(request, (asked, true), Answering::Ask).await;
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
