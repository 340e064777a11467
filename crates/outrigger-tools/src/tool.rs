//! What a tool is.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_protocol::descriptor::Declared;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::Value;

use crate::error::ToolError;
use crate::host::{Grant, PermissionAsk, ToolContext};

/// A tool. It is only ever run by [`crate::ToolRuntime::execute`] (invariant 2).
pub trait Tool: Send + Sync {
    /// Name, description, schema.
    fn spec(&self) -> &ToolSpec;

    /// What is wrong with a call that no hook is asked about. OpenCode refuses some calls before its hooks run.
    ///
    /// # Errors
    /// Why it is refused.
    fn precheck(&self, input: &Value) -> Result<(), ToolError> {
        let _ = input;
        Ok(())
    }

    /// What must be allowed before it runs, in the order in which it is asked.
    ///
    /// # Errors Where the arguments cannot work and nobody should be asked about them.
    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let _ = (input, ctx);
        Ok(Vec::new())
    }

    /// The same for a call that another machine executes: what is in the files there is not known here.
    ///
    /// # Errors
    /// As for [`Tool::permissions`].
    fn permissions_elsewhere(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        self.permissions(input, ctx)
    }

    /// How long it may run; that of [`crate::Limits`] if `None`. Time spent waiting for an answer to a permission question
    /// does not count.
    fn deadline(&self, input: &Value) -> Option<Duration> {
        let _ = input;
        None
    }

    /// What it declares beside its [`ToolSpec`] (D6). Asked once, when it is registered.
    fn declares(&self) -> Declared {
        Declared::default()
    }

    /// What its owner was granted, where that is a plugin; `None`: everything.
    fn grant(&self) -> Option<&Grant> {
        None
    }

    /// The one file or folder that a call of a tool without a contract looks at, from the session's folder; `None`: it may be any.
    fn place<'a>(&self, input: &'a Value) -> Option<&'a str> {
        let _ = input;
        None
    }

    /// Nobody says what it needs: whatever its process may do on this machine, it may.
    fn is_undeclared(&self) -> bool {
        false
    }

    /// Its own decision about a call, ahead of the permission rules (D6): what it never does, no matter who allows it.
    ///
    /// # Errors
    /// [`ToolError::Denied`] with the reason.
    fn policy(&self, input: &Value, ctx: &ToolContext) -> Result<(), ToolError> {
        let _ = (input, ctx);
        Ok(())
    }

    /// What arguments are checked against, where that is not what the model reads in [`ToolSpec::input_schema`].
    fn argument_schema(&self) -> &Value {
        &self.spec().input_schema
    }

    /// The output that an answer of the tool's own form amounts to. Asked when hooks have changed what the run gave to
    /// [`ToolContext::answered`]; `None` where they left something that cannot be read, and the output stays as it was.
    fn read(&self, answer: &Value) -> Option<ToolOutput> {
        let _ = answer;
        None
    }

    /// Does it. Dropped when the deadline passes or the turn is cancelled, so whatever it started must end with it.
    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

type Policy = dyn Fn(&Value) -> Result<(), String> + Send + Sync;
type Run =
    dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool made from a closure: what plugins, MCP servers and tests register.
#[derive(Clone)]
pub struct FnTool {
    spec: ToolSpec,
    deadline: Option<Duration>,
    ask: Option<PermissionAsk>,
    checked_by: Option<Value>,
    declared: Declared,
    grant: Option<Grant>,
    undeclared: bool,
    policy: Option<Arc<Policy>>,
    run: Arc<Run>,
}

impl FnTool {
    /// A tool that does what `run` does.
    pub fn new<F, Fut>(spec: ToolSpec, run: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self {
            spec,
            deadline: None,
            ask: None,
            checked_by: None,
            declared: Declared::default(),
            grant: None,
            undeclared: false,
            policy: None,
            run: Arc::new(move |input, ctx| Box::pin(run(input, ctx))),
        }
    }

    /// With a deadline of its own.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Asked before every run (MCP tools: the tool's name and `*`).
    #[must_use]
    pub fn asks(mut self, ask: PermissionAsk) -> Self {
        self.ask = Some(ask);
        self
    }

    /// With what it declares.
    #[must_use]
    pub fn declaring(mut self, declared: Declared) -> Self {
        self.declared = declared;
        self
    }

    /// With nobody's word on what it needs ([`Tool::is_undeclared`]).
    #[must_use]
    pub fn undeclared(mut self, undeclared: bool) -> Self {
        self.undeclared = undeclared;
        self
    }

    /// With what the plugin that brings it was granted.
    #[must_use]
    pub fn owned(mut self, grant: Option<Grant>) -> Self {
        self.grant = grant;
        self
    }

    /// With a decision of its own about each call: `Err` says why it is refused.
    #[must_use]
    pub fn deciding(
        mut self,
        policy: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// With arguments checked against this JSON Schema instead of the one that the model reads.
    #[must_use]
    pub fn checked_by(mut self, schema: Value) -> Self {
        self.checked_by = Some(schema);
        self
    }
}

impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn permissions(
        &self,
        _input: &Value,
        _ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        Ok(self.ask.clone().into_iter().collect())
    }
    fn deadline(&self, _input: &Value) -> Option<Duration> {
        self.deadline
    }
    fn declares(&self) -> Declared {
        self.declared.clone()
    }
    fn grant(&self) -> Option<&Grant> {
        self.grant.as_ref()
    }
    fn is_undeclared(&self) -> bool {
        self.undeclared
    }
    fn policy(&self, input: &Value, _ctx: &ToolContext) -> Result<(), ToolError> {
        match &self.policy {
            Some(policy) => policy(input).map_err(ToolError::Denied),
            None => Ok(()),
        }
    }
    fn argument_schema(&self) -> &Value {
        self.checked_by.as_ref().unwrap_or(&self.spec.input_schema)
    }
    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.run)(input, ctx.clone())
    }
}
