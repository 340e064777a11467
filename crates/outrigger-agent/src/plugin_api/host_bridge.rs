//! Requests from plugin processes to the agent.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use outrigger_contributions::tool_names;
use outrigger_js::{HostHandler, Refused, SdkAnswer};
use outrigger_protocol::custom_points::EventEmit;
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::log::{ClientRecord, LogRecord};
use outrigger_protocol::login::AuthGet;
use outrigger_protocol::rpc::{Log, RanCalls, SdkRequest, Stage, ToolAsk, ToolMetadata};
use outrigger_sandbox::process_time::Instant;
use outrigger_stdx::sync::lock;
use outrigger_tools::PermissionAsk;
use serde_json::{Value, json};

use crate::plugin_api::sdk_service::SdkService;
use crate::state::AgentState;
use outrigger_session_state::plugin_calls::PluginCalls;
use outrigger_stdx::clock::now_ms;

/// Passes requests of plugins on to the agent, which does not exist yet when plugins are loaded, and questions of their tools to
/// the calls that they belong to.
#[derive(Default)]
pub(crate) struct Bridge {
    agent: OnceLock<Weak<AgentState>>,
    calls: Arc<PluginCalls>,
}

impl Bridge {
    pub(crate) fn connect(&self, state: &Arc<AgentState>) {
        let _ = self.agent.set(Arc::downgrade(state));
    }

    /// Returns the tool calls in progress.
    pub(crate) fn calls(&self) -> Arc<PluginCalls> {
        Arc::clone(&self.calls)
    }

    /// Returns the agent once it exists.
    pub(crate) fn state(&self) -> Option<Arc<AgentState>> {
        self.agent.get().and_then(Weak::upgrade)
    }

    /// Answers a request and records who asked for what (C13), without the content.
    async fn recorded(&self, request: SdkRequest, service: &Arc<dyn SdkService>) -> SdkAnswer {
        let (at, began) = (now_ms(), Instant::now());
        let path = request.path.split('?').next().unwrap_or_default();
        let mut record = ClientRecord {
            plugin: request.plugin.clone().map(PluginId),
            method: request.method.clone(),
            session: path
                .strip_prefix("/session/")
                .and_then(|rest| rest.split('/').next())
                .filter(|id| id.starts_with("ses_"))
                .map(|id| SessionId(id.to_owned())),
            path: path.to_owned(),
            status: 0,
            duration_ms: 0.0,
            at,
        };
        let answer = service.call(request).await;
        record.status = answer.response.status;
        record.duration_ms = began.elapsed().as_secs_f64() * 1000.0;
        if let Some(state) = self.agent.get().and_then(Weak::upgrade) {
            state.note(vec![LogRecord::Client(Box::new(record))]);
        }
        answer
    }
}

impl HostHandler for Bridge {
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
        Box::pin(async move {
            let service = self
                .agent
                .get()
                .and_then(Weak::upgrade)
                .and_then(|state| lock(&state.plugins.sdk).clone());
            match service {
                Some(service) => match service.admit(&request).await {
                    Ok(()) => self.recorded(request, &service).await,
                    Err(refused) => refused,
                },
                None => outrigger_contributions::startup_api::answer(&request).into(),
            }
        })
    }

    /// Asks the same questions in the same way as a bundled tool.
    fn ask(&self, ask: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let Some(ctx) = self.calls.get(ask.call) else {
                return Err("this tool call is over".to_owned());
            };
            let tool = &ctx.call.tool;
            let always = if ask.permission == *tool && tool_names::is_foreign(tool) {
                ask.always
            } else {
                tool_names::lasting(&ask.permission, &ask.patterns)
            };
            let owner = self.state().and_then(|state| state.tools.owner_of(tool));
            let asked_by = format!("{} {tool}", owner.map_or_else(String::new, |it| it.0));
            let question = PermissionAsk {
                permission: ask.permission,
                patterns: ask.patterns,
                always,
                metadata: ask.metadata,
                asked_by: Some(asked_by),
                ..PermissionAsk::default()
            }
            .with_lines_read();
            ctx.ask(question).await.map_err(|error| error.to_string())
        })
    }

    /// Returns a secret only to the plugin that owns the provider's authentication (invariant 10).
    fn credential(&self, get: AuthGet) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let AuthGet { plugin, provider } = get;
            let state = self.agent.get().and_then(Weak::upgrade);
            let state = state.ok_or_else(|| "the agent is not ready yet".to_owned())?;
            if !state.owns_auth(&plugin, &provider) {
                return Err(format!(
                    "{plugin} does not own the authentication of {provider}"
                ));
            }
            Ok(json!(state.credential_for(&plugin, &provider)))
        })
    }

    /// Publishes and stores an event that a plugin declared. The plugins crate has validated it.
    fn emit(&self, emit: EventEmit) -> BoxFuture<'_, Result<(), Refused>> {
        Box::pin(async move {
            let early = || Refused::new("custom_point.not_ready", "the agent is not ready yet");
            let state = self.state().ok_or_else(early)?;
            let event = Event::Custom(CustomEvent {
                depth: emit.depth,
                kind: emit.event,
                properties: match emit.properties {
                    Value::Object(properties) => properties,
                    _ => outrigger_protocol::Object::new(),
                },
            });
            let stored = state.commit(Vec::new(), vec![event]).await;
            stored.map_err(|error| Refused::new("custom_point.lost", error.to_string()))
        })
    }

    fn ran(&self, records: Vec<HookRecord>) {
        if let Some(state) = self.state().filter(|_| !records.is_empty()) {
            state.plugins.host.failed_beside(&records);
            state.hooks_ran(records);
        }
    }

    fn observed(&self, calls: Vec<RanCalls>) {
        if let Some(state) = self.state() {
            state.plugins.host.observed(&calls);
            let calls = calls.into_iter().map(Box::new);
            state.note(calls.map(LogRecord::Observed).collect());
        }
    }

    fn metadata(&self, metadata: ToolMetadata) {
        let ToolMetadata {
            call,
            title,
            metadata,
        } = metadata;
        self.calls.progress(call, title, metadata);
    }

    fn stage(&self, stage: Stage) {
        tracing::debug!("[plugin:{}] {}", stage.plugin, stage.stage);
    }

    fn log(&self, process: &str, log: Log) {
        match log.level.as_str() {
            "error" => tracing::error!("[plugin:{process}] {}", log.message),
            "warn" => tracing::warn!("[plugin:{process}] {}", log.message),
            "info" => tracing::info!("[plugin:{process}] {}", log.message),
            _ => tracing::debug!("[plugin:{process}] {}", log.message),
        }
    }
}
