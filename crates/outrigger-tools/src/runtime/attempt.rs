//! Runs a call: by which provider, with which retries and deadline.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use outrigger_protocol::canonical::CanonicalCall;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::tool::ToolOutput;
use outrigger_sandbox::process_time::{self, Instant};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{CallProgress, Entry, Stage};
use crate::error::ToolError;
use crate::host::{ToolContext, lock};
use crate::routes::{Bound, Invocation};

/// Pause before a retry, if the tool declares none.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Maximum pause after doubling.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Maximum number of sessions whose last step is remembered.
const MAX_SESSIONS: usize = 256;

/// The result of a call, shared with equal calls: the result, and the answer in the tool's own form.
type Came = (Result<ToolOutput, ToolError>, Option<Value>);

/// The calls of each session's current step whose tools are deterministic (D7).
#[derive(Default)]
pub(super) struct Same(Mutex<HashMap<SessionId, Step>>);

struct Step {
    message: MessageId,
    // Keyed by the whole form: collisions of a 64-bit fingerprint can be constructed.
    calls: HashMap<String, Arc<OnceCell<Came>>>,
}

impl Same {
    fn cell(&self, ctx: &ToolContext, call: &CanonicalCall) -> (Arc<OnceCell<Came>>, bool) {
        let (session, message) = (&ctx.call.session_id, &ctx.call.message_id);
        let mut steps = lock(&self.0);
        if steps.len() > MAX_SESSIONS {
            steps.retain(|id, _| id == session);
        }
        let step = steps.entry(session.clone()).or_insert_with(|| Step {
            message: message.clone(),
            calls: HashMap::new(),
        });
        if step.message != *message {
            step.message = message.clone();
            step.calls.clear();
        }
        let known = step.calls.contains_key(&call.text);
        let cell = step.calls.entry(call.text.clone()).or_default();
        (Arc::clone(cell), known)
    }
}

/// Runs a call that has been approved.
pub(super) async fn run(
    entry: &Entry,
    input: &Value,
    canonical: &CanonicalCall,
    bound: &Bound,
    same: &Same,
    progress: &CallProgress<'_>,
    ctx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let limits = &entry.descriptor.declared.constraints;
    let own = entry.tool.deadline(input).unwrap_or(ctx.limits.deadline);
    let most = limits.timeout_ms.map(Duration::from_millis);
    let deadline = most.map_or(own, |most| most.min(own));
    let name = &entry.descriptor.spec.name;
    let work = async {
        if !limits.deterministic_hooks {
            return attempts(entry, input, canonical, bound, progress, ctx).await;
        }
        let (cell, known) = same.cell(ctx, canonical);
        if known {
            progress.reached(&Stage::Joined);
        }
        let run = || async {
            let result = attempts(entry, input, canonical, bound, progress, ctx).await;
            (result, ctx.answer())
        };
        let (result, answer) = cell.get_or_init(run).await.clone();
        if let Some(answer) = answer {
            ctx.answered(answer);
        }
        result
    };
    tokio::select! {
        // A tool that panics fails its call, not the host.
        result = AssertUnwindSafe(work).catch_unwind() => result.unwrap_or_else(|_| {
            Err(ToolError::Failed(format!("The {name} tool failed inside; this is a bug in it.")))
        }),
        () = overdue(ctx, deadline) => Err(ToolError::Timeout {
            tool: name.clone(),
            ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        }),
        () = ctx.cancel.cancelled() => Err(ToolError::Cancelled),
    }
}

/// Makes the call and retries it as long as that may help: only for tools that are safe to repeat (D7).
async fn attempts(
    entry: &Entry,
    input: &Value,
    canonical: &CanonicalCall,
    bound: &Bound,
    progress: &CallProgress<'_>,
    ctx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let limits = &entry.descriptor.declared.constraints;
    let most = if entry.descriptor.is_repeatable() {
        limits.max_retries.saturating_add(1)
    } else {
        1
    };
    let mut pause = match limits.retry_backoff_ms {
        0 => RETRY_PAUSE,
        ms => Duration::from_millis(ms),
    };
    let mut attempt = 1;
    loop {
        progress.reached(&Stage::Started { attempt });
        let result = match bound.remote() {
            None => entry.tool.run(input.clone(), ctx).await,
            Some((provider, contract)) => {
                let call = Invocation {
                    contract,
                    tool: &entry.descriptor,
                    input,
                    canonical,
                };
                let answer = provider.invoke(call, ctx).await;
                answer.map(|output| from_elsewhere(output, bound.name()))
            }
        };
        match result {
            Err(ToolError::Unavailable(reason)) if attempt < most && !ctx.is_refused() => {
                progress.reached(&Stage::Again {
                    attempt,
                    reason: &reason,
                });
                process_time::sleep(pause).await;
                pause = (pause * 2).min(MAX_RETRY_PAUSE);
                attempt += 1;
            }
            other => return other,
        }
    }
}

/// Records the provider. Changes on another machine are not changes of local files, so they are not added to the
/// session's.
fn from_elsewhere(mut output: ToolOutput, provider: &str) -> ToolOutput {
    if let Value::Object(metadata) = &mut output.metadata {
        metadata.shift_remove("filediff");
        metadata.insert("provider".to_owned(), provider.into());
    }
    output
}

// Ends once the tool has run for its deadline, excluding the time in which it waited for the user.
async fn overdue(ctx: &ToolContext, deadline: Duration) {
    let begun = Instant::now();
    loop {
        let (asking, waited) = ctx.waited();
        let left = (deadline + waited).saturating_sub(begun.elapsed());
        match (left.is_zero(), asking) {
            (true, false) => return,
            (true, true) => process_time::sleep(Duration::from_millis(50)).await,
            (false, _) => process_time::sleep(left).await,
        }
    }
}
