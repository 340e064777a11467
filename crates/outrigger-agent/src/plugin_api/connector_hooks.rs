//! `bridge.*` hooks on the requesting side (C1): what a connector is about to request, and the outcome.

use std::sync::Weak;

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::points::bridge::{Call, Side, after_invoke, before_invoke, on_error};
use outrigger_kernel::hooks::{Context, Empty, HookInput};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::tool::ToolOutput;
use outrigger_tools::routes::{Invocation, Provider};
use outrigger_tools::{ToolContext, ToolError};
use serde_json::Value;

use crate::state::AgentState;
use outrigger_session_state::notifications::About;

/// Error code of a call that was abandoned.
const CANCELLED: &str = "bridge.cancelled";

/// A connector whose calls are reported to plugins.
pub(crate) struct Notifying<P> {
    pub(crate) owner: Weak<AgentState>,
    pub(crate) name: String,
    pub(crate) provider: P,
}

/// A call in progress. Dropping it early reports it as cancelled.
struct CallInProgress<'a> {
    owner: &'a Weak<AgentState>,
    call: Call<'a>,
    about: About,
    over: bool,
}

impl CallInProgress<'_> {
    fn notify<I: HookInput>(&self, input: &I, output: &I::Output) {
        if let Some(state) = self.owner.upgrade() {
            state.notify_hook(input, output, self.about.clone());
        }
    }

    fn failed(&self, code: &str, message: &str) {
        let input = on_error::Input {
            call: self.call,
            code,
            message,
        };
        self.notify(&input, &Context::default());
    }

    fn ended(mut self, result: &Result<ToolOutput, ToolError>) {
        self.over = true;
        match result {
            Ok(output) => {
                let output = after_invoke::Output {
                    title: &output.title,
                    bytes: output.output.len(),
                };
                self.notify(&after_invoke::Input(self.call), &output);
            }
            Err(error) => self.failed(error.code(), &error.to_string()),
        }
    }
}

impl Drop for CallInProgress<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.failed(CANCELLED, "the caller no longer waits for it");
        }
    }
}

impl<P: Provider> Provider for Notifying<P> {
    fn invoke<'a>(
        &'a self,
        invocation: Invocation<'a>,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let session = &ctx.call.session_id;
            let asked = CallInProgress {
                owner: &self.owner,
                call: Call {
                    call_id: &ctx.call.call_id.0,
                    side: Side::Asks,
                    connector: Some(&self.name),
                    connection: None,
                    session_id: Some(&session.0),
                    tool: invocation.contract.name(),
                    path: invocation.input.get("filePath").and_then(Value::as_str),
                },
                about: About::Session(session.clone()),
                over: false,
            };
            asked.notify(&before_invoke::Input(asked.call), &Empty {});
            let result = self.provider.invoke(invocation, ctx).await;
            asked.ended(&result);
            result
        })
    }
}
