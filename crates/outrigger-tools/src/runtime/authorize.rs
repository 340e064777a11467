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

/// Kinds of calls of others that change a file, and our own tools that do.
const CHANGES: [&str; 6] = ["change", "delete", "move", "edit", "write", "apply_patch"];

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

/// The question about a call of a tool that is not ours, or that has arguments which ours has not. Under its own name only where it
/// names no command, file or address: a rule about these holds for all tools, whatever another vendor calls them.
fn about(tool: &str, input: &Value) -> PermissionAsk {
    let named = |is: fn(&str) -> bool| {
        let mut fields = input.as_object().into_iter().flatten();
        fields.find_map(|(key, value)| value.as_str().filter(|_| is(&key.to_lowercase())))
    };
    let command = named(|key| ["command", "cmd", "script", "code"].contains(&key));
    let file = named(|key| key.ends_with("path") || key.ends_with("file") || key == "filename");
    let address = named(|key| ["url", "uri"].contains(&key));
    let (permission, pattern) = match (command, file, address) {
        _ if CHANGES.contains(&tool) => ("edit", file),
        (Some(command), ..) => ("bash", Some(command)),
        (None, ..) if tool == "bash" => ("bash", None),
        (_, Some(file), _) => ("edit", Some(file)),
        (_, _, Some(address)) => ("webfetch", Some(address)),
        _ => (tool, None),
    };
    let patterns = vec![pattern.unwrap_or("*").to_owned()];
    PermissionAsk {
        permission: permission.to_owned(),
        always: patterns.clone(),
        patterns,
        metadata: json!({ "tool": tool, "input": input }),
        ..PermissionAsk::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_names_decides_which_rules_are_asked() {
        for (tool, input, permission, pattern) in [
            (
                "NotebookEdit",
                json!({"notebook_path": "/p/a.ipynb"}),
                "edit",
                "/p/a.ipynb",
            ),
            ("Monitor", json!({"command": "rm -r x"}), "bash", "rm -r x"),
            ("bash", json!({"line": "rm"}), "bash", "*"),
            ("edit", json!({"file": "a"}), "edit", "a"),
            ("write", json!({}), "edit", "*"),
            ("move", json!({"path": "a"}), "edit", "a"),
            ("Fetch", json!({"url": "http://x"}), "webfetch", "http://x"),
            (
                "ExitPlanMode",
                json!({"plan": "first"}),
                "ExitPlanMode",
                "*",
            ),
        ] {
            let ask = about(tool, &input);
            assert_eq!(
                (ask.permission.as_str(), &ask.patterns[..]),
                (permission, &[pattern.to_owned()][..]),
                "{tool}"
            );
        }
    }
}
