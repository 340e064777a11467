//! Whether a command that failed in its sandbox runs once more outside of it.

use std::sync::Arc;

use outrigger_protocol::permission::{Action, PermissionRequest};
use outrigger_protocol::provenance::Deed;
use outrigger_tools::PermissionAsk;
use serde_json::json;

use super::Asker;
use crate::ids;
use crate::permission::answering::Answering;
use crate::permission::audit::Decided;
use crate::state::Inner;
use crate::state::questions::Firmness;

/// The permission of a command that runs outside of its sandbox.
const OUTSIDE: &str = "sandbox";

impl Inner {
    /// Asks whether a command that failed in its sandbox runs once more outside of it. Only a person says yes, once: no rule, no plugin
    /// and no `--auto`; a rule for `sandbox` says no.
    pub(crate) async fn ask_person_outside(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        command: &str,
        why: &str,
        printed: &str,
    ) -> bool {
        let denied = self.access.evaluate(OUTSIDE, command, asker.rules) == Action::Deny;
        if denied || self.answering != Answering::Ask {
            return false;
        }
        let metadata = json!({
            "command": command,
            "reason": format!(
                "it failed in the sandbox of commands ({why}); what it starts may have been changed by that; \
                 run it once more, outside of the sandbox?"
            ),
            "output": printed,
        });
        let request = PermissionRequest {
            id: ids::permission(),
            session_id: asker.session_id.clone(),
            permission: OUTSIDE.to_owned(),
            patterns: vec![command.to_owned()],
            always: Vec::new(),
            metadata: self.with_call(metadata, OUTSIDE, asker),
            tool: asker.tool.clone(),
            provenance: asker.causes.clone(),
            missing_grant: None,
        };
        let _firm = self.questions.hold_firm(&request.id, Firmness::Person);
        let asked = PermissionAsk {
            permission: OUTSIDE.to_owned(),
            patterns: vec![command.to_owned()],
            ..PermissionAsk::default()
        };
        let answer = self.ask_user(request, (asked, true), Answering::Ask).await;
        let by = if answer.is_ok() { "allow" } else { "deny" };
        let mut causes = asker.causes.clone();
        for actor in answer.iter().flat_map(|it| &it.by) {
            causes = causes.with(actor.clone(), Deed::Answered, None);
        }
        self.audit_decision(Decided {
            session: asker.session_id,
            call: asker.tool.as_ref().map(|tool| tool.call_id.as_str()),
            permission: OUTSIDE,
            patterns: &[command.to_owned()],
            decision: by,
            by: "the user",
            causes,
        });
        answer.is_ok()
    }
}
