//! Lines of command templates: decided about as calls of `bash`, and run by the agent.

use std::path::Path;

use futures_util::future::{BoxFuture, ready};
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::event::Event;
use outrigger_protocol::permission::Action;
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use outrigger_protocol::session::Todo;
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::Policy;
use serde_json::Value;

use super::ToolRuntime;
use super::stages::{granted, questions};
use crate::error::ToolError;
use crate::host::{
    AgentEntry, HookVerdict, PermissionAsk, ReadRules, SkillEntry, SubagentAnswer, SubagentRequest,
    ToolContext, ToolHost,
};

impl ToolRuntime {
    /// Returns what must be allowed before a line of a command's template runs. It is a call of the bundled `bash`, whatever is
    /// registered in its place. `requires_approval`: there is a question about it regardless of the rules. `here`: the line runs on
    /// this machine in a sandbox of its own, whatever the agent was granted and the routes
    /// say, and is not asked about folders outside.
    ///
    /// # Errors
    /// Why it must not run: a capability that the agent was not granted, a route to another provider, a forbidden program or file.
    pub fn questions_of_line(
        &self,
        requires_approval: bool,
        here: bool,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let entry = self.find_bundled("bash");
        let entry = entry.ok_or_else(|| ToolError::failed("there is no `bash` tool"))?;
        let input = &ctx.call.input;
        let mut bound = self
            .routes()
            .bind(entry.descriptor.declared.contract, input, ctx);
        if here {
            bound.provider = None;
        } else {
            granted(&entry, ctx)?;
        }
        if bound.remote().is_some() {
            return Err(ToolError::failed(format!(
                "`[[routes]]` in outrigger.toml send `exec` to {}, and lines of commands run on this machine only",
                bound.name()
            )));
        }
        let mut questions = questions(&entry, input, &bound, requires_approval, ctx)?;
        if here {
            questions.retain(|question| question.permission != EXTERNAL_DIRECTORY);
        }
        // `sh` runs it, which may be dash.
        let line = input.get("command").and_then(Value::as_str);
        let differs = outrigger_shell_parse::read(line.unwrap_or_default()).missed_by_sh;
        for question in &mut questions {
            question.unread |= differs && question.permission == "bash";
        }
        Ok(questions)
    }
}

/// The session's side of a line, which asks nothing itself.
pub struct LineHost {
    /// Skills that the agent may load.
    pub skills: Vec<SkillEntry>,
}

fn nothing<T>() -> Result<T, ToolError> {
    Err(ToolError::failed("a line of a command makes no requests"))
}

impl ToolHost for LineHost {
    fn hooks<'a>(&'a self, _: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict> {
        Box::pin(ready(HookVerdict {
            output: payload.output,
            ..HookVerdict::default()
        }))
    }
    fn ask<'a>(&'a self, _: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(ready(nothing()))
    }
    fn record_intent<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(ready(nothing().map_err(|error| error.to_string())))
    }
    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>> {
        Box::pin(ready(nothing()))
    }
    fn read_rules(&self) -> ReadRules {
        Box::new(|_: &Path| Action::Deny)
    }
    fn denies_address(&self, _: &str) -> bool {
        true
    }
    fn denies_page(&self, _: &str) -> bool {
        true
    }
    fn started(&self, _: &Value) {}
    fn progress(&self, _: Option<String>, _: Value) {}
    fn publish(&self, _: Event) {}
    fn subagent<'a>(
        &'a self,
        _: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>> {
        Box::pin(ready(nothing()))
    }
    fn skills(&self) -> Vec<SkillEntry> {
        self.skills.clone()
    }
    fn agents(&self) -> Vec<AgentEntry> {
        Vec::new()
    }
    fn set_todos<'a>(&'a self, _: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(ready(nothing()))
    }
}
