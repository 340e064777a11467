//! Post-processing of a tool's answer: form, limits, hooks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::tool::after_result;
use outrigger_protocol::id::IdMaker;
use outrigger_protocol::tool::ToolOutput;
use outrigger_stdx::clock::now_ms;
use serde_json::{Value, json};

use super::failure;
use super::stages::blocked;
use crate::error::Stop;
use crate::host::ToolContext;
use crate::output::limit;
use crate::tool::Tool;

// What a hook may add to an output that already fills the limits (a reminder, a note) before it is truncated again.
const SLACK_LINES: usize = 200;
pub(super) const SLACK_BYTES: usize = 16 * 1024;

// Metadata is always an object, and attachments get the identifiers that OpenCode gives them before hooks see them.
pub(super) fn finish(mut output: ToolOutput, ctx: &ToolContext) -> ToolOutput {
    if !output.metadata.is_object() {
        output.metadata = json!({});
    }
    // Unique enough: within the process by the counter, between processes by time and process id.
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let count = CALLS.fetch_add(1, Ordering::Relaxed);
    let mut ids = IdMaker::new(now_ms() ^ (u64::from(std::process::id()) << 40) ^ (count << 20));
    for attachment in output.attachments.iter_mut().flatten() {
        if let Value::Object(fields) = attachment {
            for (key, value) in [
                ("id", json!(ids.part(now_ms()))),
                ("sessionID", json!(ctx.call.session_id)),
                ("messageID", json!(ctx.call.message_id)),
            ] {
                fields.entry(key).or_insert(value);
            }
        }
    }
    output
}

// A tool that reports whether it truncated its output has done so itself (OpenCode's rule); it still must stay within the
// limits with slack.
pub(super) fn limited(mut output: ToolOutput, ctx: &ToolContext) -> ToolOutput {
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
            ctx.keeps(&path);
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
            ctx.keeps(&path);
            metadata.insert("outputPath".to_owned(), json!(path));
        }
    }
    output
}

pub(super) async fn after(
    tool: &Arc<dyn Tool>,
    ctx: &ToolContext,
    input: &Value,
    output: ToolOutput,
) -> Result<ToolOutput, Stop> {
    let about = after_result::Input {
        tool: &ctx.call.tool,
        session_id: &ctx.call.session_id,
        call_id: &ctx.call.call_id,
        args: input,
    };
    let own = ctx.answer();
    let own_form = own.is_some();
    let before = own.unwrap_or_else(|| serde_json::to_value(&output).unwrap_or_default());
    let (point, payload) = about.call(&before);
    let verdict = ctx.host.hooks(point, payload).await;
    if let Some(block) = verdict.block {
        return Err(blocked(block, Some(output.metadata)));
    }
    if verdict.output == before {
        return Ok(output);
    }
    if own_form {
        let read = tool.read(&verdict.output);
        return Ok(read.map_or(output, |read| limited(finish(read, ctx), ctx)));
    }
    let (note, said) = (failure::note(&output), output.output.clone());
    let whole = whole(&output, ctx);
    let left = failure::keep(note, &said, after_result::read(verdict.output, output));
    // A hook that replaces the text and no longer names the file with all of the output has removed it for good.
    if let Some(whole) = whole
        && left.output != said
        && left.metadata.get("outputPath").is_none()
        && let Err(error) = std::fs::remove_file(&whole)
    {
        tracing::warn!("[tools] {} could not be removed: {error}", whole.display());
    }
    Ok(capped(left, ctx))
}

/// Returns the file that we created for this call with all of its output.
fn whole(output: &ToolOutput, ctx: &ToolContext) -> Option<PathBuf> {
    let path = PathBuf::from(output.metadata.get("outputPath")?.as_str()?);
    ctx.has_kept(&path).then_some(path)
}
