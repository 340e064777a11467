//! Calls that another vendor's agent makes itself: they go through hooks, rules, the user and the audit like ours, but run in that
//! agent.

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::tool::before_call;
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use outrigger_protocol::tool::ToolCall;
use serde_json::json;

use super::ToolRuntime;
use super::foreign::Named;
use super::registry::Entry;
use super::stages::{blocked, check, granted, questions, rewrite};
use crate::error::ToolError;
use crate::files::{Kind, locate};
use crate::host::{PermissionAsk, ToolContext};
use crate::routes::Routes;

/// Kinds of foreign calls that change a file, and our own tools that do.
const CHANGES: [&str; 6] = ["change", "delete", "move", "edit", "write", "apply_patch"];
/// Kinds that read, and our own tools that do.
const READS: [&str; 5] = ["read", "search", "grep", "glob", "list"];
/// Foreign tools that change only the other agent's state; what they start needs its own approval. `switch_mode` is not one of them: a mode can
/// be the one in which the agent asks no more.
const HARMLESS: [&str; 19] = [
    "think",
    "task",
    "todowrite",
    "todoread",
    "question",
    "Agent",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "BashOutput",
    "KillShell",
    "ToolSearch",
    "EnterPlanMode",
    "ExitPlanMode",
];

impl ToolRuntime {
    /// Passes a call through everything that precedes the run of its tool. It is judged as a call of our bundled tool of that name:
    /// a plugin's or a server's tool does not run here, whatever it is called. A call that matches no tool of ours is asked about
    /// under its own name.
    ///
    /// # Errors
    /// Why it must not be made.
    pub async fn authorize(&self, call: ToolCall, ctx: ToolContext) -> Result<(), ToolError> {
        let ctx = ctx.for_call(call);
        let (tool, input) = (ctx.call.tool.clone(), ctx.call.input.clone());
        let entry = self.find_bundled(&tool);
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
        // The other agent owns the call: it can only be refused, and made again as it should be.
        if rewrite(verdict, &mut changed).map_err(|block| blocked(*block, None).error)? {
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
            None => about(self.find_bundled("bash").as_ref(), &ctx)?,
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

/// Returns the questions about a call of a foreign tool, or one with arguments that our tool lacks. Rules about commands, files and
/// URLs apply to all tools, whatever another vendor calls them: each that the call names is asked about as our own tool would. A
/// call that names none could do anything: only a rule that names the tool allows it.
fn about(bash: Option<&Entry>, ctx: &ToolContext) -> Result<Vec<PermissionAsk>, ToolError> {
    let (tool, input) = (ctx.call.tool.as_str(), &ctx.call.input);
    let named = Named::of(input);
    if named.is_too_much {
        let why = format!("the call of {tool} names more than can be asked about");
        return Err(ToolError::Blocked(why));
    }
    let question = |permission: &str, patterns: Vec<String>| PermissionAsk {
        permission: permission.to_owned(),
        always: patterns.clone(),
        patterns,
        metadata: json!({ "tool": tool, "input": input }),
        ..PermissionAsk::default()
    };
    let everything = || vec!["*".to_owned()];
    let mut questions = Vec::new();
    for command in &named.commands {
        match bash {
            Some(bash) => {
                let line = json!({ "command": command, "description": tool });
                questions.extend(bash.tool.permissions(&line, ctx)?);
            }
            None => questions.push(question("bash", vec![command.clone()])),
        }
    }
    for file in &named.files {
        let file = file.strip_prefix("file://").unwrap_or(file);
        let permission = if READS.contains(&tool) {
            "read"
        } else {
            "edit"
        };
        // Only the other agent knows its home folder.
        if file.starts_with('~') {
            questions.push(question(EXTERNAL_DIRECTORY, vec![file.to_owned()]));
            continue;
        }
        let located = locate(ctx, file)?;
        let kind = if located.real.is_dir() {
            Kind::Folder
        } else {
            Kind::File
        };
        questions.extend(located.ask_outside(kind));
        questions.push(question(permission, located.patterns(ctx)));
    }
    let addresses = named.addresses.iter();
    questions.extend(addresses.map(|it| question("webfetch", vec![it.clone()])));
    if CHANGES.contains(&tool) && named.files.is_empty() {
        questions.push(question("edit", everything()));
    }
    if tool == "bash" && named.commands.is_empty() {
        questions.push(question("bash", everything()));
    }
    questions.push(PermissionAsk {
        only_named: named.is_empty() && !HARMLESS.contains(&tool),
        ..question(tool, everything())
    });
    Ok(questions)
}
