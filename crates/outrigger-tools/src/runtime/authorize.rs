//! Calls that another vendor's agent makes itself: they go through hooks, rules, the user and the audit as ours do, and run there.

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::tool::before_call;
use outrigger_protocol::tool::ToolCall;
use serde_json::{Value, json};

use super::ToolRuntime;
use super::stages::{blocked, check, granted, questions, rewrite};
use crate::error::ToolError;
use crate::host::{PermissionAsk, ToolContext};
use crate::routes::Routes;

/// Kinds of calls of others that change a file.
const CHANGES: [&str; 3] = ["change", "delete", "move"];

impl ToolRuntime {
    /// Puts a call to all that comes before a call of its tool runs. One that is no call of a tool of ours is asked about under its
    /// own name.
    ///
    /// # Errors
    /// Why it must not be made.
    pub async fn authorize(&self, call: ToolCall, ctx: ToolContext) -> Result<(), ToolError> {
        let ctx = ctx.for_call(call);
        let (tool, input) = (ctx.call.tool.clone(), ctx.call.input.clone());
        let entry = self.find(&tool);
        let entry = entry.filter(|entry| check(entry, &input, &tool, false).is_ok());
        let asked = before_call::Input {
            tool: &tool,
            session_id: &ctx.call.session_id,
            call_id: &ctx.call.call_id,
        };
        let (point, payload) = asked.call(&before_call::Output { args: &input });
        let verdict = ctx.host.hooks(point, payload).await;
        let requires_approval = verdict.requires_approval;
        let mut changed = input.clone();
        // Its maker holds the call: it can be refused, and made again as it should be.
        if rewrite(verdict, &mut changed).map_err(|block| blocked(block, None).error)? {
            return Err(ToolError::Blocked(format!(
                "A hook changes this call. Make this one instead: {changed}"
            )));
        }
        let questions = match &entry {
            Some(entry) => {
                granted(entry, &ctx)?;
                entry.tool.policy(&input, &ctx)?;
                let bound = Routes::default().bind(None, &input, &ctx);
                questions(entry, &input, &bound, requires_approval, &ctx)?
            }
            None => vec![about(&tool, &input)],
        };
        ctx.host.started(&input);
        for question in questions {
            tokio::select! {
                decision = ctx.decision(question) => drop(decision?),
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            }
        }
        let recorded = ctx.host.record_intent(&input).await;
        recorded.map_err(ToolError::failed)
    }
}

/// The question about a call of a tool that is not ours.
fn about(tool: &str, input: &Value) -> PermissionAsk {
    let named = ["filePath", "url", "command"].into_iter();
    let named = named.filter_map(|key| input.get(key)?.as_str());
    let patterns: Vec<String> = named.take(1).map(str::to_owned).collect();
    let patterns = match patterns.is_empty() {
        true => vec!["*".to_owned()],
        false => patterns,
    };
    let permission = match CHANGES.contains(&tool) {
        true => "edit",
        false => tool,
    };
    PermissionAsk {
        permission: permission.to_owned(),
        always: patterns.clone(),
        patterns,
        metadata: json!({ "tool": tool, "input": input }),
        ..PermissionAsk::default()
    }
}
