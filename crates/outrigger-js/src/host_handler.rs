//! What a plugin process may ask of the host, and how the host refuses it.

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

/// Routes by which a plugin waits for a turn of a model, which has limits of its own.
const TURNS: [&str; 5] = ["message", "command", "shell", "summarize", "init"];
/// For those.
const TURN_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// For everything else; a person may be asked something meanwhile.
const SDK_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long the head of an answer to a plugin's client may take.
fn sdk_deadline(method: &str, path: &str) -> Duration {
    let route = path.split('?').next().unwrap_or(path);
    let last = route.rsplit('/').next().unwrap_or_default();
    match method == "POST" && TURNS.contains(&last) {
        true => TURN_TIMEOUT,
        false => SDK_TIMEOUT,
    }
}

/// What a plugin process asks of the host. Each request runs in a task of its own; the other methods are called on the
/// task that reads the channel and must not block.
pub trait HostHandler: Send + Sync + 'static {
    /// Answers a request of the SDK client, or of `fetch` to the host's origin.
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer>;
    /// How long the head of such an answer may take (A11). One that is not there by then is answered with 504, and what made it
    /// is dropped.
    fn sdk_deadline(&self, request: &SdkRequest) -> Duration {
        sdk_deadline(&request.method, &request.path)
    }
    /// Answers a tool that asks for a permission; the error text is what the tool sees when it is refused.
    fn ask(&self, ask: ToolAsk) -> BoxFuture<'_, Result<(), String>>;
    /// A tool reports while it runs.
    fn metadata(&self, metadata: ToolMetadata);
    /// The credential of a provider, for the plugin that brings its authentication and for no other; null when there is
    /// none. The error text is what the plugin sees.
    fn credential(&self, get: AuthGet) -> BoxFuture<'_, Result<Value, String>> {
        let AuthGet { plugin, provider } = get;
        Box::pin(async move {
            Err(format!(
                "{plugin} does not own the authentication of {provider}"
            ))
        })
    }
    /// A plugin reaches a hook point of its own.
    fn call_point(&self, call: PointCall) -> BoxFuture<'_, Result<PointCalled, Refused>> {
        let refused = Refused::new(
            "own.unknown",
            format!("no point {} is declared", call.point),
        );
        Box::pin(async move { Err(refused) })
    }
    /// A plugin publishes an event of its own.
    fn emit(&self, emit: EventEmit) -> BoxFuture<'_, Result<(), Refused>> {
        let refused = Refused::new(
            "own.unknown",
            format!("no event {} is declared", emit.event),
        );
        Box::pin(async move { Err(refused) })
    }
    /// Chains that a plugin's process began have run; they are to be written down.
    fn ran(&self, records: Vec<HookRecord>) {
        let _ = records;
    }
    /// Hooks that nobody waits for have run.
    fn observed(&self, calls: Vec<RanCalls>) {
        let _ = calls;
    }
    /// A hook that nobody waits for has thrown.
    fn failed(&self, failed: HookFailed) {
        let _ = failed;
    }
    /// A plugin's loading went on.
    fn stage(&self, stage: Stage);
    /// The host script of the process called `process` has something for the log.
    fn log(&self, process: &str, log: Log);
}

/// Why the host does not do what a plugin asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Stable code, which the plugin gets as `error.code`.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// The refusal of a handler, which the plugin gets as `error.refusal`.
    pub block: Option<Box<Block>>,
}

impl Refused {
    /// A refusal.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            block: None,
        }
    }

    /// What a handler of the point said.
    #[must_use]
    pub fn by_handler(code: &'static str, block: Block) -> Self {
        Self {
            code,
            message: block.message.clone(),
            block: Some(Box::new(block)),
        }
    }
}
