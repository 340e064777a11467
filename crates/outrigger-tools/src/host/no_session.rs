//! The host of a context in which nothing runs.

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::event::Event;
use outrigger_protocol::session::Todo;
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use super::{
    AgentEntry, HookVerdict, PermissionAsk, SkillEntry, SubagentAnswer, SubagentRequest, ToolHost,
};
use crate::error::ToolError;

/// For a context that only says what a call would ask ([`crate::ToolRuntime::line_questions`]): it refuses everything else.
#[derive(Clone, Copy, Debug)]
pub struct NoSession;

fn refused<T>() -> Result<T, ToolError> {
    Err(ToolError::failed("nothing runs in this context"))
}

impl ToolHost for NoSession {
    fn hooks<'a>(&'a self, _point: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict> {
        let output = payload.output;
        Box::pin(async {
            HookVerdict {
                output,
                ..HookVerdict::default()
            }
        })
    }
    fn ask<'a>(&'a self, _ask: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { refused() })
    }
    fn record_intent<'a>(&'a self, _input: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { refused().map_err(|error| error.to_string()) })
    }
    fn confine<'a>(
        &'a self,
    ) -> BoxFuture<'a, Result<Option<outrigger_sandbox::Policy>, ToolError>> {
        Box::pin(async { refused() })
    }
    fn started(&self, _input: &Value) {}
    fn progress(&self, _title: Option<String>, _metadata: Value) {}
    fn publish(&self, _event: Event) {}
    fn subagent<'a>(
        &'a self,
        _request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>> {
        Box::pin(async { refused() })
    }
    fn skills(&self) -> Vec<SkillEntry> {
        Vec::new()
    }
    fn agents(&self) -> Vec<AgentEntry> {
        Vec::new()
    }
    fn set_todos<'a>(&'a self, _todos: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async { refused() })
    }
}
