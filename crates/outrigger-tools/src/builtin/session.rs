//! Tools that act on the session: `task` and `todowrite`.

use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_protocol::session::Todo;
use outrigger_protocol::task_output;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::{spec, text};
use crate::error::ToolError;
use crate::host::{PermissionAsk, SubagentRequest, ToolContext};
use crate::tool::Tool;

const TASK: &str = r"
Hands a piece of work to another agent, which does it in a session of its own and reports back once.

Use it for work that takes many steps or much reading whose details you do not need: searching a large code base, trying something out, a review. Do not use it to read one known file or to find one known definition; read, glob and grep are quicker for that.

- The agent knows nothing of this conversation. Write a prompt that says what to find out or to do, where to look, whether it may change files, and what its report must contain.
- Its report is seen by you alone. Tell the user what matters of it.
- Calls in the same answer run side by side: start independent tasks together.
- To go on with an earlier task, give the id from its result as task_id.
";

const TODO: &str = r"
Writes the todo list of this session. The list is replaced as a whole by what you send.

Keep one for work of three steps or more and when the user gives several things to do; not for a single simple step or for a question.

- status is pending, in_progress, completed or cancelled; priority is high, medium or low.
- Have one item in progress at a time. Mark it completed as soon as it really is, before you begin the next, and never while tests fail or something is missing.
- Add what you find on the way, and cancel what is no longer needed.
";

/// Work for a subagent.
pub(super) struct Task {
    spec: ToolSpec,
}

impl Task {
    pub(super) fn new() -> Self {
        let string = json!({"type": "string"});
        Self {
            spec: spec(
                "task",
                TASK,
                json!({"description": string, "prompt": string, "subagent_type": string, "task_id": string, "command": string}),
                &["description", "prompt", "subagent_type"],
            ),
        }
    }
}

impl Tool for Task {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let agent = text(input, "subagent_type");
        if !ctx.host.agents().iter().any(|entry| entry.name == agent) {
            return Err(ToolError::failed(format!(
                "Unknown agent type: {agent} is not a valid agent type"
            )));
        }
        Ok(vec![PermissionAsk {
            permission: "task".to_owned(),
            patterns: vec![agent.to_owned()],
            always: vec!["*".to_owned()],
            metadata: json!({"description": input.get("description"), "subagent_type": agent}),
            ..PermissionAsk::default()
        }])
    }

    // A subagent runs its own turn, with deadlines for its model and its tools.
    fn deadline(&self, _input: &Value) -> Option<Duration> {
        Some(Duration::from_secs(24 * 3600))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let optional = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
            let title = text(&input, "description").to_owned();
            let answer = ctx
                .host
                .subagent(SubagentRequest {
                    description: title.clone(),
                    prompt: text(&input, "prompt").to_owned(),
                    agent: text(&input, "subagent_type").to_owned(),
                    task_id: optional("task_id"),
                    command: optional("command"),
                })
                .await?;
            Ok(ToolOutput {
                title,
                output: task_output::format(&answer.session_id, &answer.text),
                metadata: json!({
                    "parentSessionId": ctx.call.session_id,
                    "sessionId": answer.session_id,
                    "model": {"modelID": answer.model.model_id, "providerID": answer.model.provider_id},
                }),
                attachments: None,
            })
        })
    }
}

/// The todo list.
pub(super) struct TodoWrite {
    spec: ToolSpec,
}

impl TodoWrite {
    pub(super) fn new() -> Self {
        let string = json!({"type": "string"});
        Self {
            spec: spec(
                "todowrite",
                TODO,
                json!({"todos": {"type": "array", "items": {"type": "object",
                    "properties": {"content": string, "status": string, "priority": string},
                    "required": ["content", "status", "priority"]}}}),
                &["todos"],
            ),
        }
    }
}

impl Tool for TodoWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        _input: &Value,
        _ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        Ok(vec![PermissionAsk {
            permission: "todowrite".to_owned(),
            patterns: vec!["*".to_owned()],
            always: vec!["*".to_owned()],
            metadata: json!({}),
            ..PermissionAsk::default()
        }])
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let list = input.get("todos").cloned().unwrap_or_default();
            let todos: Vec<Todo> = serde_json::from_value(list)
                .map_err(|e| ToolError::failed(format!("Invalid todo list: {e}")))?;
            ctx.host.set_todos(todos.clone()).await?;
            let open = todos.iter().filter(|t| t.status != "completed").count();
            let output = serde_json::to_string_pretty(&todos)
                .map_err(|e| ToolError::failed(e.to_string()))?;
            Ok(ToolOutput {
                title: format!("{open} todos"),
                output,
                metadata: json!({"todos": todos}),
                attachments: None,
            })
        })
    }
}
