//! The one way to run a tool (invariant 2): bundled, plugin, MCP and subagent tools all go through [`ToolRuntime::execute`],
//! so hooks, permission questions, limits and the record cannot be missed.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use outrigger_protocol::Millis;
use outrigger_protocol::audit::ToolAudit;
use outrigger_protocol::hook::Block;
use outrigger_protocol::id::IdMaker;
use outrigger_protocol::log::ToolRecord;
use outrigger_protocol::tool::{ToolCall, ToolOutcome, ToolOutput, ToolSpec};
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

use crate::error::{Stop, ToolError};
use crate::host::{HookVerdict, ToolContext};
use crate::output::limit;
use crate::schema::Schema;
use crate::tool::Tool;

// What a hook may add to an output that already fills the limits (a reminder, a note), before it is cut again.
const SLACK_LINES: usize = 200;
const SLACK_BYTES: usize = 16 * 1024;
const RETRY_PAUSE: Duration = Duration::from_millis(250);

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    schema: Arc<Schema>,
}

/// The tools that there are, in registry order, and the way to run them.
#[derive(Default)]
pub struct ToolRuntime {
    entries: RwLock<Vec<Entry>>,
}

/// Proof that a call went through the runtime. It cannot be built elsewhere.
#[derive(Clone, Debug)]
pub struct Executed {
    /// How it ended.
    pub outcome: ToolOutcome,
    /// How it went.
    pub record: ToolRecord,
    _seal: Seal,
}

#[derive(Clone, Debug)]
struct Seal;

impl ToolRuntime {
    /// A runtime without tools; see [`crate::builtin::register_all`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. One of the same name takes the place of the earlier one (the reference's rule: a plugin's `bash` replaces ours
    /// and keeps its place in the order).
    ///
    /// # Errors
    /// [`ToolError::BadSchema`] when the parameters are not a JSON Schema that can be checked here.
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<(), ToolError> {
        let spec = tool.spec();
        let schema =
            Schema::compile(tool.argument_schema()).map_err(|reason| ToolError::BadSchema {
                tool: spec.name.clone(),
                reason,
            })?;
        let entry = Entry {
            schema: Arc::new(schema),
            tool: tool.clone(),
        };
        let mut entries = self.write();
        match entries.iter_mut().find(|e| e.tool.spec().name == spec.name) {
            Some(old) => *old = entry,
            None => entries.push(entry),
        }
        Ok(())
    }

    /// Removes every tool of a source (`plugin:ID`, `mcp:NAME`).
    pub fn remove_source(&self, source: &str) {
        self.write().retain(|e| e.tool.spec().source != source);
    }

    /// Keeps the tools of which this holds; calls that run already go on.
    pub fn retain(&self, keep: impl Fn(&ToolSpec) -> bool) {
        self.write().retain(|entry| keep(entry.tool.spec()));
    }

    /// Takes from another runtime the tools of names that are not here.
    pub fn fill(&self, other: &Self) {
        let mut entries = self.write();
        for entry in other.read().iter() {
            let name = &entry.tool.spec().name;
            if !entries.iter().any(|it| it.tool.spec().name == *name) {
                entries.push(entry.clone());
            }
        }
    }

    /// What the tools say of themselves, in registry order, hidden ones included.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.read().iter().map(|e| e.tool.spec().clone()).collect()
    }

    /// What there is of that name.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<ToolSpec> {
        self.find(name).map(|e| e.tool.spec().clone())
    }

    /// Runs a call: look up, validate, hooks `tool.before_call`, validate again, started, permission questions, run under deadline
    /// and cancellation, output limits, hooks `tool.after_result`. The context is that of this call; its `call` is replaced.
    pub async fn execute(&self, call: ToolCall, ctx: ToolContext) -> Executed {
        let ctx = ctx.for_call(call);
        let (at, begun) = (now(), Instant::now());
        let mut input = ctx.call.input.clone();
        let outcome = match self.stages(&ctx, &mut input).await {
            Ok(output) => ToolOutcome::Completed { input, output },
            Err(stop) => ToolOutcome::Failed {
                input,
                code: stop.error.code().to_owned(),
                message: stop.error.to_string(),
                metadata: stop.metadata,
            },
        };
        let label = match &outcome {
            ToolOutcome::Completed { .. } => "completed".to_owned(),
            ToolOutcome::Failed { code, .. } => code.clone(),
        };
        let record = ToolRecord {
            permissions: ctx.decisions(),
            call: ctx.call,
            turn: None,
            outcome: label,
            duration_ms: begun.elapsed().as_secs_f64() * 1000.0,
            at,
            audit: ToolAudit::default(),
        };
        Executed {
            outcome,
            record,
            _seal: Seal,
        }
    }

    async fn stages(&self, ctx: &ToolContext, input: &mut Value) -> Result<ToolOutput, Stop> {
        let name = ctx.call.tool.as_str();
        let entry = self.find(name).ok_or_else(|| ToolError::NotFound {
            tool: name.to_owned(),
            available: self.specs().into_iter().map(|s| s.name).collect(),
        })?;
        check(&entry, input, name, false)?;
        entry.tool.precheck(input)?;
        alive(ctx)?;

        let verdict = ctx
            .host
            .hooks(
                "tool.before_call",
                HookPayload {
                    input: identity(ctx),
                    output: json!({"args": &*input}),
                },
            )
            .await;
        let rewritten = rewrite(verdict, input)?;
        // Checked even when nothing changed the arguments visibly: cheap, and no path around it (invariant 7).
        check(&entry, input, name, rewritten)?;
        alive(ctx)?;

        // What is asked about is what runs: from here on nobody can change it.
        let input = &*input;
        let questions = entry.tool.permissions(input, ctx)?;
        // Before the questions, as in the reference: clients show what is asked about from the call's arguments.
        ctx.host.started(input);
        for ask in questions {
            tokio::select! {
                answer = ctx.ask(ask) => answer?,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled.into()),
            }
        }
        ctx.host.intend(input).await.map_err(ToolError::failed)?;
        let output = run(&entry.tool, input, ctx).await.map_err(|error| Stop {
            error,
            metadata: ctx.reported(),
        })?;
        let output = limited(finish(output, ctx), ctx);
        after(&entry.tool, ctx, input, output).await
    }

    fn find(&self, name: &str) -> Option<Entry> {
        self.read()
            .iter()
            .find(|e| e.tool.spec().name == name)
            .cloned()
    }
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Entry>> {
        self.entries
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Vec<Entry>> {
        self.entries
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn check(entry: &Entry, input: &Value, name: &str, rewritten: bool) -> Result<(), ToolError> {
    let tool = name.to_owned();
    entry.schema.check(input).map_err(|reason| {
        if rewritten {
            ToolError::InvalidRewrite { tool, reason }
        } else {
            ToolError::InvalidInput { tool, reason }
        }
    })
}

fn alive(ctx: &ToolContext) -> Result<(), ToolError> {
    if ctx.cancel.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    Ok(())
}

fn identity(ctx: &ToolContext) -> Value {
    json!({"tool": ctx.call.tool, "sessionID": ctx.call.session_id, "callID": ctx.call.call_id})
}

fn blocked(block: Block) -> ToolError {
    ToolError::Blocked(block.message)
}

// Takes over what the hooks left as arguments; tells whether they differ. An output without `args` leaves them as they were.
fn rewrite(verdict: HookVerdict, input: &mut Value) -> Result<bool, ToolError> {
    if let Some(block) = verdict.block {
        return Err(blocked(block));
    }
    let mut output = verdict.output;
    match output.get_mut("args").map(Value::take) {
        Some(args) if args != *input => {
            *input = args;
            Ok(true)
        }
        _ => Ok(false),
    }
}

async fn run(
    tool: &Arc<dyn Tool>,
    input: &Value,
    ctx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let spec = tool.spec();
    let attempts = if spec.read_only {
        tool.attempts().max(1)
    } else {
        1
    };
    let deadline = tool.deadline(input).unwrap_or(ctx.limits.deadline);
    let work = async {
        let mut attempt = 1;
        loop {
            match tool.run(input.clone(), ctx).await {
                Err(ToolError::Unavailable(reason)) if attempt < attempts => {
                    tracing::debug!(tool = %spec.name, attempt, %reason, "tool call is made again");
                    attempt += 1;
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                other => return other,
            }
        }
    };
    tokio::select! {
        // A tool that panics costs its call, not the host.
        result = AssertUnwindSafe(work).catch_unwind() => result.unwrap_or_else(|_| {
            Err(ToolError::Failed(format!("The {} tool failed inside; this is a bug in it.", spec.name)))
        }),
        () = overdue(ctx, deadline) => Err(ToolError::Timeout {
            tool: spec.name.clone(),
            ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        }),
        () = ctx.cancel.cancelled() => Err(ToolError::Cancelled),
    }
}

// Ends when the tool has run for its deadline, not counting the time in which it waited for a person's answer.
async fn overdue(ctx: &ToolContext, deadline: Duration) {
    let begun = Instant::now();
    loop {
        let (asking, waited) = ctx.waited();
        let left = (deadline + waited).saturating_sub(begun.elapsed());
        match (left.is_zero(), asking) {
            (true, false) => return,
            (true, true) => tokio::time::sleep(Duration::from_millis(50)).await,
            (false, _) => tokio::time::sleep(left).await,
        }
    }
}

// Metadata is always an object, and attachments get the identifiers that the reference gives them before hooks see them.
fn finish(mut output: ToolOutput, ctx: &ToolContext) -> ToolOutput {
    if !output.metadata.is_object() {
        output.metadata = json!({});
    }
    // Unique enough: within the process by the counter, between processes by time and process number.
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let count = CALLS.fetch_add(1, Ordering::Relaxed);
    let mut ids = IdMaker::new(now() ^ (u64::from(std::process::id()) << 40) ^ (count << 20));
    for attachment in output.attachments.iter_mut().flatten() {
        if let Value::Object(fields) = attachment {
            for (key, value) in [
                ("id", json!(ids.part(now()))),
                ("sessionID", json!(ctx.call.session_id)),
                ("messageID", json!(ctx.call.message_id)),
            ] {
                fields.entry(key).or_insert(value);
            }
        }
    }
    output
}

// A tool that says whether it was cut has seen to it itself (the reference's rule); it is still held to the limits with slack.
fn limited(mut output: ToolOutput, ctx: &ToolContext) -> ToolOutput {
    if output.metadata.get("truncated").is_some() {
        return capped(output, ctx);
    }
    let cut = limit(
        std::mem::take(&mut output.output),
        &ctx.limits,
        &ctx.artifacts,
        ctx.call.call_id.as_str(),
    );
    output.output = cut.text;
    if let Value::Object(metadata) = &mut output.metadata {
        metadata.insert("truncated".to_owned(), json!(cut.truncated));
        if let Some(path) = cut.path {
            metadata.insert("outputPath".to_owned(), json!(path));
        }
    }
    output
}

fn capped(mut output: ToolOutput, ctx: &ToolContext) -> ToolOutput {
    let mut limits = ctx.limits.clone();
    limits.max_lines += SLACK_LINES;
    limits.max_bytes += SLACK_BYTES;
    let cut = limit(
        std::mem::take(&mut output.output),
        &limits,
        &ctx.artifacts,
        ctx.call.call_id.as_str(),
    );
    output.output = cut.text;
    if cut.truncated
        && let Value::Object(metadata) = &mut output.metadata
    {
        metadata.insert("truncated".to_owned(), json!(true));
        if let Some(path) = cut.path {
            metadata.insert("outputPath".to_owned(), json!(path));
        }
    }
    output
}

async fn after(
    tool: &Arc<dyn Tool>,
    ctx: &ToolContext,
    input: &Value,
    output: ToolOutput,
) -> Result<ToolOutput, Stop> {
    let mut identity = identity(ctx);
    if let Value::Object(fields) = &mut identity {
        fields.insert("args".to_owned(), input.clone());
    }
    let own = ctx.answer();
    let own_form = own.is_some();
    let before = own.unwrap_or_else(|| serde_json::to_value(&output).unwrap_or_default());
    let verdict = ctx
        .host
        .hooks(
            "tool.after_result",
            HookPayload {
                input: identity,
                output: before.clone(),
            },
        )
        .await;
    if let Some(block) = verdict.block {
        return Err(Stop {
            error: blocked(block),
            metadata: Some(output.metadata),
        });
    }
    if verdict.output == before {
        return Ok(output);
    }
    if own_form {
        let read = tool.read(&verdict.output);
        return Ok(read.map_or(output, |read| limited(finish(read, ctx), ctx)));
    }
    Ok(capped(taken(verdict.output, output), ctx))
}

// Reads what hooks left, tolerantly: a key of the wrong kind keeps its value from before, a text that became a number is that
// number as text.
fn taken(left: Value, before: ToolOutput) -> ToolOutput {
    let Value::Object(mut left) = left else {
        return before;
    };
    let mut text = |key: &str, old: String| match left.remove(key) {
        Some(Value::String(text)) => text,
        Some(Value::Null) | None => old,
        Some(other) => other.to_string(),
    };
    let title = text("title", before.title);
    let output = text("output", before.output);
    let metadata = match left.remove("metadata") {
        Some(metadata @ Value::Object(_)) => metadata,
        _ => before.metadata,
    };
    let attachments = match left.remove("attachments") {
        Some(Value::Array(list)) => Some(list),
        Some(_) => before.attachments,
        None => None,
    };
    ToolOutput {
        title,
        output,
        metadata,
        attachments,
    }
}

fn now() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
