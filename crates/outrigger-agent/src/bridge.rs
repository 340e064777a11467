//! What plugin processes ask back.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use outrigger_plugins::{HostHandler, ToolCallHost};
use outrigger_protocol::rpc::{Log, SdkRequest, SdkResponse, Stage, ToolAsk, ToolMetadata};
use outrigger_tools::{PermissionAsk, ToolContext};

use crate::inner::Inner;

/// Passes requests of plugins on to the agent, which does not exist yet when the plugins are loaded.
#[derive(Default)]
pub(crate) struct Bridge {
    agent: OnceLock<Weak<Inner>>,
}

impl Bridge {
    pub(crate) fn connect(&self, inner: &Arc<Inner>) {
        let _ = self.agent.set(Arc::downgrade(inner));
    }
}

impl HostHandler for Bridge {
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkResponse> {
        Box::pin(async move {
            let service = self.agent.get().and_then(Weak::upgrade).and_then(|inner| inner.sdk.get().cloned());
            match service {
                Some(service) => service.call(request).await,
                None => SdkResponse {
                    status: 503,
                    headers: vec![("content-type".into(), "application/json".into())],
                    body: r#"{"name":"UnknownError","data":{"message":"the agent is not ready yet: plugins can use the client once all of them are loaded"}}"#.into(),
                },
            }
        })
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

/// What one call of a plugin's tool may ask: the same questions, through the same door, as a bundled tool.
pub(crate) struct PluginCall {
    ctx: ToolContext,
}

impl PluginCall {
    pub(crate) fn new(ctx: ToolContext) -> Self {
        Self { ctx }
    }
}

impl ToolCallHost for PluginCall {
    fn ask(&self, ask: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let question = PermissionAsk {
                permission: ask.permission,
                patterns: ask.patterns,
                always: ask.always,
                metadata: ask.metadata,
            };
            self.ctx.ask(question).await.map_err(|error| error.to_string())
        })
    }

    fn metadata(&self, metadata: ToolMetadata) {
        self.ctx.progress(metadata.title, metadata.metadata);
    }
}
