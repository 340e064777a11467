//! The interface of a tool.

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
    /// Returns name, description, schema.
    fn spec(&self) -> &ToolSpec;

    /// Checks for calls that are refused before any hook runs, as OpenCode does for some.
    ///
    /// # Errors
    /// Why the call is refused.
    fn precheck(&self, input: &Value) -> Result<(), ToolError> {
        let _ = input;
        Ok(())
    }

    /// Returns the permission questions before the call runs, in order.
    ///
    /// # Errors
    /// The arguments cannot work, so the user should not be asked about them.
    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let _ = (input, ctx);
        Ok(Vec::new())
    }

    /// Like [`Tool::permissions`], for a call that another machine executes: the content of its files is unknown here.
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

    /// Returns its deadline; that of [`crate::Limits`] if `None`. Time spent waiting for an answer to a permission question does
    /// not count.
    fn deadline(&self, input: &Value) -> Option<Duration> {
        let _ = input;
        None
    }

    /// Returns its declaration in addition to its [`ToolSpec`] (D6). Called once, at registration.
    fn declares(&self) -> Declared {
        Declared::default()
    }

    /// Returns the grant of its owner, if that is a plugin; `None`: everything.
    fn grant(&self) -> Option<&Grant> {
        None
    }

    /// Returns the one file or folder, relative to the session's folder, that a call of a tool without a contract accesses;
    /// `None`: it may be any.
    fn place<'a>(&self, input: &'a Value) -> Option<&'a str> {
        let _ = input;
        None
    }

    /// Returns whether its needs are undeclared: it may do whatever its process may do on this machine.
    fn is_undeclared(&self) -> bool {
        false
    }

    /// Makes its own decision about a call, before the permission rules (D6): what it never does, no matter who allows it.
    ///
    /// # Errors
    /// [`ToolError::Denied`] with the reason.
    fn policy(&self, input: &Value, ctx: &ToolContext) -> Result<(), ToolError> {
        let _ = (input, ctx);
        Ok(())
    }

    /// Returns the schema that arguments are validated against, if it differs from what the model reads in
    /// [`ToolSpec::input_schema`].
    fn argument_schema(&self) -> &Value {
        &self.spec().input_schema
    }

    /// Converts an answer in the tool's own form to its output. Called after hooks have changed what the run passed to
    /// [`ToolContext::answered`]; `None` if the result cannot be read, and the output stays unchanged.
    fn read(&self, answer: &Value) -> Option<ToolOutput> {
        let _ = answer;
        None
    }

    /// Executes the call. Dropped when the deadline passes or the turn is cancelled, so whatever it started must end with it.
    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

type Policy = dyn Fn(&Value) -> Result<(), String> + Send + Sync;
type Run =
    dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool made from a closure, as registered by plugins, MCP servers and tests.
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
    /// Creates a tool that calls `run`.
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

    /// Sets its own deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets a question that is asked before every run (MCP tools: the tool's name and `*`).
    #[must_use]
    pub fn asks(mut self, ask: PermissionAsk) -> Self {
        self.ask = Some(ask);
        self
    }

    /// Sets its declaration.
    #[must_use]
    pub fn declaring(mut self, declared: Declared) -> Self {
        self.declared = declared;
        self
    }

    /// Sets whether its needs are undeclared ([`Tool::is_undeclared`]).
    #[must_use]
    pub fn undeclared(mut self, undeclared: bool) -> Self {
        self.undeclared = undeclared;
        self
    }

    /// Sets the grant of the plugin that contributes it.
    #[must_use]
    pub fn owned(mut self, grant: Option<Grant>) -> Self {
        self.grant = grant;
        self
    }

    /// Sets its own decision about each call: `Err` is the reason for a refusal.
    #[must_use]
    pub fn deciding(
        mut self,
        policy: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Validates arguments against this JSON Schema instead of the one that the model reads.
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
