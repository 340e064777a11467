//! Tools contributed by plugins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outrigger_js::JsError;
use outrigger_protocol::Object;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::rpc::{Enter, ToolRun};
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::Value;
use tokio::sync::watch;

use crate::plugin_host::PluginHost;
use outrigger_plugin_hooks::custom_points::links::{Link, Opened};
use outrigger_plugin_hooks::pipeline::cancelled;
use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_supervisor::blame::{Late, late};
use outrigger_plugin_supervisor::group::{Counts, Fault, Group, Live};
use outrigger_plugin_supervisor::host_proxy::host_call;

/// A plugin's tool: its description and its runner.
#[derive(Clone, Debug)]
pub struct PluginToolEntry {
    /// For the model; `source` is `plugin:ID`.
    pub spec: ToolSpec,
    /// The plugin is from a project.
    pub is_local: bool,
    /// Further declarations, unparsed.
    pub declares: Option<Value>,
    /// Runs the tool.
    pub runner: ToolRunner,
}

/// Runs one tool of one plugin. Remains valid when the plugin's process restarts.
#[derive(Clone)]
pub struct ToolRunner {
    pub(crate) inner: Arc<PluginHost>,
    pub(crate) plugin: usize,
    pub(crate) tool: String,
}

impl std::fmt::Debug for ToolRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolRunner")
            .field("plugin", &self.plugin)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

impl ToolRunner {
    /// Runs the tool. `context` holds the plain keys of the tool context (`sessionID`, `messageID`, `callID`, `agent`,
    /// `directory`, `worktree`, `extra`, `messages`). `on_call` is called with the number that questions and reports of this
    /// call carry to the host's handler ([`outrigger_protocol::rpc::ToolAsk::call`]), before any can come.
    ///
    /// # Errors
    /// [`PluginError::Tool`] with `plugin.tool` and the tool's own text; `plugin.tool_cancelled`; `plugin.tool_timeout`;
    /// `plugin.tool_lost` when its process ended or could not be had. Nothing is run twice.
    pub async fn run(
        &self,
        args: Value,
        context: Object,
        cancel: Option<watch::Receiver<bool>>,
        on_call: impl FnOnce(u64) + Send,
    ) -> Result<ToolOutput, PluginError> {
        let (group, live) = self.process(cancel.clone()).await?;
        // Looked up at each call: after a restart the plugin may have other tools.
        let Some(handler) = self.inner.registry.tool(self.plugin, &self.tool) else {
            let message = format!("the plugin no longer brings the tool {}", self.tool);
            return Err(self.failed("plugin.tool_lost", message));
        };
        let deadline = self.inner.settings.deadlines.tool;
        let link = self.link(&context);
        let run = ToolRun {
            chain: link.as_ref().map(|link| link.number),
            handler,
            tool: self.tool.clone(),
            args,
            context,
        };
        let serial = live.serial;
        // If dropped early (a cancelled turn, the deadline of the tool runtime), the call must still complete in the plugin.
        let number = AtomicU64::new(0);
        let mut open = Unfinished {
            group: &group,
            generation: live.generation,
            plugin: &run.handler.plugin,
            tool: &self.tool,
            call: &number,
            over: false,
        };
        let call = live
            .process
            .tool_run_as(&run, deadline, cancelled(cancel), |call| {
                number.store(call, Ordering::Relaxed);
                on_call(host_call(serial, call));
            });
        let ended = live.until_gone(call).await;
        open.over = !matches!(ended, Ok(Err(JsError::Cancelled { .. })));
        match ended {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) => {
                if group.is_unusable_after(&error) {
                    let fault = self.fault(&group, &live, &run, &error).await;
                    group.give_up(live.generation, fault);
                }
                Err(self.failed(code(&error), text(&error, deadline)))
            }
            Err(fault) => Err(self.failed(
                "plugin.tool_lost",
                format!("its plugin process was ended: {}", fault.cause),
            )),
        }
    }

    /// Returns the process of its plugin. A restart in progress continues when the caller stops waiting.
    async fn process(
        &self,
        cancel: Option<watch::Receiver<bool>>,
    ) -> Result<(Arc<Group>, Arc<Live>), PluginError> {
        let live = tokio::select! {
            biased;
            () = cancelled(cancel) => {
                let why = "cancelled while its process was being started".to_owned();
                return Err(self.failed("plugin.tool_cancelled", why));
            }
            live = self.inner.live(self.plugin) => live,
        };
        live.map_err(|why| self.failed("plugin.tool_lost", why))
    }

    /// Opens a link for a tool whose plugin may reach its custom points: what it reaches is known to come from this call.
    fn link(&self, context: &Object) -> Option<Opened> {
        if !self.inner.registry.declares_any(self.plugin) {
            return None;
        }
        let session = context.get("sessionID").and_then(Value::as_str);
        Some(self.inner.hooks.links.open(Link {
            plugin: self.plugin,
            session: session.map(|id| SessionId(id.to_owned())),
            ..Link::default()
        }))
    }

    async fn fault(&self, group: &Group, live: &Live, run: &ToolRun, error: &JsError) -> Fault {
        let (plugin, what) = (run.handler.plugin.as_str(), format!("tool:{}", self.tool));
        if !matches!(error, JsError::CallTimeout { .. }) {
            return Fault {
                cause: format!("tool {} of {plugin}: {error}", self.tool),
                culprit: group.sole_suspect(&live.process.suspects()),
                counts: Counts::Crash,
            };
        }
        // The cancellation is in transit, so the handler may have returned meanwhile; it was entered nevertheless.
        let Late { culprit, who } = late(group, live, self.plugin, plugin, &what, true).await;
        Fault {
            cause: format!("{who}: {error}"),
            culprit,
            counts: if culprit == Some(self.plugin) {
                Counts::Nothing
            } else {
                Counts::Crash
            },
        }
    }

    fn failed(&self, code: &'static str, message: String) -> PluginError {
        let plugin = self
            .inner
            .registry
            .with(self.plugin, |plugin| plugin.id.clone())
            .unwrap_or_default();
        PluginError::Tool {
            plugin,
            tool: self.tool.clone(),
            code,
            message,
        }
    }
}

/// A tool call that may be dropped before it ends.
struct Unfinished<'c> {
    group: &'c Arc<Group>,
    generation: u64,
    plugin: &'c str,
    tool: &'c str,
    call: &'c AtomicU64,
    over: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let enter = Enter {
            plugin: self.plugin.to_owned(),
            what: format!("tool:{}", self.tool),
            call: Some(self.call.load(Ordering::Relaxed)),
        };
        self.group.kill_unless_returned(self.generation, enter);
    }
}

fn code(error: &JsError) -> &'static str {
    match error {
        JsError::Plugin { .. } | JsError::FrameTooLarge { .. } | JsError::BadAnswer { .. } => {
            "plugin.tool"
        }
        JsError::Cancelled { .. } => "plugin.tool_cancelled",
        JsError::CallTimeout { .. } => "plugin.tool_timeout",
        _ => "plugin.tool_lost",
    }
}

fn text(error: &JsError, deadline: Duration) -> String {
    match error {
        JsError::CallTimeout { .. } => format!("no answer within {} s", deadline.as_secs()),
        error => error.to_string(),
    }
}
