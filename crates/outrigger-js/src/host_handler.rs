//! Requests of a plugin process to the host, and refusals.

use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_protocol::custom_points::{EventEmit, PointCall, PointCalled};
use outrigger_protocol::hook::{Block, HookRecord};
use outrigger_protocol::login::AuthGet;
use outrigger_protocol::rpc::{
    HookFailed, Log, RanCalls, SdkRequest, Stage, ToolAsk, ToolMetadata,
};
use serde_json::Value;

use crate::sdk::SdkAnswer;

/// Routes by which a plugin waits for a turn of a model, which has separate limits.
const TURNS: [&str; 5] = ["message", "command", "shell", "summarize", "init"];
/// Deadline of these routes.
const TURN_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Deadline of all other routes; the user may be asked something meanwhile.
const SDK_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Returns the deadline for the head of an answer to a plugin's client.
fn sdk_deadline(method: &str, path: &str) -> Duration {
    let route = path.split('?').next().unwrap_or(path);
    let last = route.rsplit('/').next().unwrap_or_default();
    if method == "POST" && TURNS.contains(&last) {
        TURN_TIMEOUT
    } else {
        SDK_TIMEOUT
    }
}

/// Handles requests of a plugin process. Each request runs in a separate task; the other methods are called on the task that
/// reads the channel and must not block.
pub trait HostHandler: Send + Sync + 'static {
    /// Answers a request of the SDK client, or of `fetch` to the host's origin.
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer>;
    /// Returns the deadline for the head of such an answer (A11). If it is late, the request is answered with 504, and the
    /// handler is dropped.
    fn sdk_deadline(&self, request: &SdkRequest) -> Duration {
        sdk_deadline(&request.method, &request.path)
    }
    /// Answers a tool that asks for a permission; the error text is what the tool sees if it is refused.
    fn ask(&self, ask: ToolAsk) -> BoxFuture<'_, Result<(), String>>;
    /// A tool reports while it runs.
    fn metadata(&self, metadata: ToolMetadata);
    /// Returns the credential of a provider, for the plugin that provides its authentication and for no other; null if there is
    /// none. The error text is what the plugin sees.
    fn credential(&self, get: AuthGet) -> BoxFuture<'_, Result<Value, String>> {
        let AuthGet { plugin, provider } = get;
        Box::pin(async move {
            Err(format!(
                "{plugin} does not own the authentication of {provider}"
            ))
        })
    }
    /// Runs a custom hook point of a plugin.
    fn call_point(&self, call: PointCall) -> BoxFuture<'_, Result<PointCalled, Refused>> {
        let refused = Refused::new(
            "custom_point.unknown",
            format!("no point {} is declared", call.point),
        );
        Box::pin(async move { Err(refused) })
    }
    /// Publishes a custom event of a plugin.
    fn emit(&self, emit: EventEmit) -> BoxFuture<'_, Result<(), Refused>> {
        let refused = Refused::new(
            "custom_point.unknown",
            format!("no event {} is declared", emit.event),
        );
        Box::pin(async move { Err(refused) })
    }
    /// Records chains that a plugin's process started.
    fn ran(&self, records: Vec<HookRecord>) {
        let _ = records;
    }
    /// Records runs of background hooks.
    fn observed(&self, calls: Vec<RanCalls>) {
        let _ = calls;
    }
    /// Records a failure of a background hook.
    fn failed(&self, failed: HookFailed) {
        let _ = failed;
    }
    /// Reports progress of a plugin's loading.
    fn stage(&self, stage: Stage);
    /// Logs a message of the host script of the process called `process`.
    fn log(&self, process: &str, log: Log);
}

/// Why the host refuses a plugin's request.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Stable code, which the plugin gets as `error.code`.
    pub code: &'static str,
    /// Message.
    pub message: String,
    /// The refusal of a handler, which the plugin gets as `error.refusal`.
    pub block: Option<Box<Block>>,
}

impl Refused {
    /// Creates a refusal.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            block: None,
        }
    }

    /// Creates the refusal by a handler of the point.
    #[must_use]
    pub fn by_handler(code: &'static str, block: Block) -> Self {
        Self {
            code,
            message: block.message.clone(),
            block: Some(Box::new(block)),
        }
    }
}
