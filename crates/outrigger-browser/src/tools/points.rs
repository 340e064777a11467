//! Hook points of the browser: `cdp.before_action`, `cdp.after_action`, `cdp.after_verify`, `cdp.on_error`.

use outrigger_kernel::hooks::points::cdp::{
    self, Action, after_action, after_verify, before_action, on_error,
};
use outrigger_kernel::hooks::{Context, Empty, HookInput as _};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_tools::{ToolContext, ToolError, with_context};

use crate::perform::Planned;

/// An action, for plugins.
pub(super) struct Points<'a> {
    ctx: &'a ToolContext,
    action: Action<'a>,
}

impl<'a> Points<'a> {
    /// Creates it for an action on a tab.
    pub(super) fn of(planned: &'a Planned, ctx: &'a ToolContext) -> Self {
        Self {
            ctx,
            action: Action {
                session_id: &ctx.call.session_id,
                call_id: &ctx.call.call_id,
                action: planned.step.kind.name(),
                risk: planned.risk.name(),
                tab: &planned.tab.tab,
                url: &planned.tab.url,
                target: &planned.target,
                field: planned.field,
                to: planned.step.url.as_deref(),
            },
        }
    }

    /// Creates it for a call without a target: `open`, `verify`, `eval`.
    pub(super) fn plain(
        action: &'a str,
        risk: &'a str,
        tab: &'a str,
        url: &'a str,
        to: Option<&'a str>,
        ctx: &'a ToolContext,
    ) -> Self {
        let action = Action {
            session_id: &ctx.call.session_id,
            call_id: &ctx.call.call_id,
            action,
            risk,
            tab,
            url,
            target: "",
            field: None,
            to,
        };
        Self { ctx, action }
    }

    /// Calls the hooks before an action.
    ///
    /// # Errors
    /// [`ToolError::Blocked`] with the plugin's text.
    pub(super) async fn before(&self) -> Result<(), ToolError> {
        let (point, payload) = before_action::Input(self.action).call(&Empty {});
        match self.ctx.host.hooks(point, payload).await.block {
            Some(block) => Err(ToolError::Blocked(block.message)),
            None => Ok(()),
        }
    }

    /// Calls the hooks after an action was sent; returns their context for the model.
    pub(super) async fn after(&self) -> String {
        let (point, payload) = after_action::Input(self.action).call(&Context::default());
        let verdict = self.ctx.host.hooks(point, payload).await;
        with_context(String::new(), &verdict.output)
    }

    /// Calls the hooks after verification, which cannot change the verdict; returns their context for the model.
    pub(super) async fn verified(&self, status: &'static str, unmet: &str) -> String {
        let input = after_verify::Input {
            action: self.action,
            unmet,
        };
        let (point, payload) = input.call(&cdp::Verdict {
            status,
            context: [],
        });
        let verdict = self.ctx.host.hooks(point, payload).await;
        with_context(String::new(), &verdict.output)
    }

    /// Calls the hooks after a failure; returns the error with their context.
    pub(super) async fn failed(&self, error: ToolError) -> ToolError {
        let message = error.to_string();
        let input = on_error::Input {
            action: self.action,
            code: error.code(),
            message: &message,
        };
        let (point, payload) = input.call(&Context::default());
        let verdict = self.ctx.host.hooks(point, payload).await;
        let said = with_context(message.clone(), &verdict.output);
        match error {
            ToolError::Failed(_) if said != message => ToolError::Failed(said),
            other => other,
        }
    }
}
