//! Applies guards to the shell lines and files that expanding a prompt runs and reads. They have the same effect as tool
//! calls, so the same guards decide about them.

use std::path::Path;

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::tool::before_call;
use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::approval::ApprovalReason;
use outrigger_protocol::id::{CallId, MessageId, SessionId};
use outrigger_protocol::provenance::{Actor, Cause, Provenance};
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::CommandCall;
use serde_json::{Value, json};

use crate::state::Agent;
use outrigger_session_state::ids;

/// Context of the shell line or file that guards decide about.
#[derive(Clone, Copy)]
pub(crate) struct GuardedBy<'a> {
    pub(crate) session_id: &'a SessionId,
    pub(crate) agent: &'a AgentInfo,
    /// Who sent the prompt.
    pub(crate) causes: &'a Provenance,
    /// The command whose text requests it.
    pub(crate) command: Option<&'a str>,
}

/// A call that the guards allowed, with their changes.
pub(crate) struct Passed {
    pub(crate) args: Value,
    /// Reason to ask the user regardless of the rules.
    pub(crate) requires_approval: Option<ApprovalReason>,
}

impl Agent {
    /// Asks guards (`fail_closed`) and command hooks as for a call of `tool`. Other plugins are notified of real calls only.
    ///
    /// # Errors
    /// The reason of a guard that refuses.
    pub(crate) async fn pass_guards(
        &self,
        by: GuardedBy<'_>,
        tool: &str,
        args: Value,
    ) -> Result<Passed, String> {
        let call = ToolCall {
            call_id: CallId(ids::part().0.replacen("prt", "call", 1)),
            session_id: by.session_id.clone(),
            message_id: MessageId::default(),
            agent: by.agent.name.clone(),
            tool: tool.to_owned(),
            input: args,
            provenance: self.causes_of(by),
        };
        let asked = before_call::Input {
            tool,
            session_id: &call.session_id,
            call_id: &call.call_id,
        };
        let (point, mut payload) = asked.call(&before_call::Output { args: &call.input });
        let before = payload.output.clone();
        // This is the contributor of the command running or reading something.
        let is_usual = |cause: &Cause| {
            let actor = &cause.actor;
            matches!(actor, Actor::User | Actor::Client | Actor::Model)
        };
        let is_plain = call.provenance.causes().iter().all(is_usual);
        if let (false, Value::Object(fields)) = (is_plain, &mut payload.input) {
            fields.insert("provenance".to_owned(), json!(call.provenance));
        }
        let result = self.state.run_guards(point, payload, by.session_id).await;
        if let Some(block) = result.block {
            return Err(block.message);
        }
        let after = result.outputs.into_iter().next();
        let after = after.unwrap_or_else(|| before.clone());
        let records = &result.records;
        let requires_approval = self
            .state
            .approval_reason(&call, None, records, &before, &after);
        Ok(Passed {
            args: after.get("args").cloned().unwrap_or(call.input),
            requires_approval,
        })
    }

    /// Asks the guards about a file that a prompt attaches, under each of its names. Returns a reason to ask the user
    /// regardless of the rules.
    ///
    /// # Errors
    /// The reason of a guard that refuses.
    pub(crate) async fn guards_let_read(
        &self,
        by: GuardedBy<'_>,
        names: &[&Path],
    ) -> Result<Option<ApprovalReason>, String> {
        let mut names = names.to_vec();
        names.dedup();
        let mut requires_approval = None;
        for name in names {
            let args = json!({ "filePath": name });
            let passed = self.pass_guards(by, "read", args.clone()).await?;
            requires_approval = requires_approval.or(passed.requires_approval);
            if passed.args != args {
                return Err("a guard changed which file is read".to_owned());
            }
        }
        Ok(requires_approval)
    }

    /// Returns who sent the prompt and who contributed the command whose text it is.
    fn causes_of(&self, by: GuardedBy<'_>) -> Provenance {
        let mut causes = by.causes.clone();
        let command = by.command.map(|name| CommandCall {
            name: name.to_owned(),
            arguments: String::new(),
        });
        let contributed = self.state.contributions(&by.agent.name, command.as_ref());
        for cause in contributed.causes() {
            causes.push(cause.clone());
        }
        causes
    }
}
