//! Failure messages: those of calls, with what hooks add to them (C4), and those of commands, which hooks may add to but not
//! remove.

use outrigger_kernel::hooks::points::tool::on_error;
use outrigger_kernel::hooks::{Context, HookInput};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::tool::ToolOutput;
use serde_json::Value;

use super::result::SLACK_BYTES;
use crate::error::ToolError;
use crate::host::ToolContext;

/// Returns the message of a failed call, followed by what the hooks of `tool.on_error` add: they can add text, and remove none.
pub(super) async fn explained(
    error: &ToolError,
    input: &Value,
    began: bool,
    ctx: &ToolContext,
) -> String {
    let message = error.to_string();
    let about = on_error::Input {
        tool: &ctx.call.tool,
        session_id: &ctx.call.session_id,
        call_id: &ctx.call.call_id,
        args: input,
        code: error.code(),
        message: &message,
        began,
    };
    let (point, payload) = about.call(&Context::default());
    let verdict = ctx.host.hooks(point, payload).await;
    with_context(message, &verdict.output)
}

/// Returns the message of an error, followed by the texts that hooks put in `context` of their output, up to [`SLACK_BYTES`]
/// (C4).
#[must_use]
pub fn with_context(message: String, output: &Value) -> String {
    let added: String = Context::read(output)
        .map(|text| format!("\n\n{text}"))
        .collect();
    let end = outrigger_stdx::text::floor_char_boundary(&added, SLACK_BYTES.min(added.len()));
    message + added.get(..end).unwrap_or_default()
}

/// The start of a bundled tool's note about a command, and its end.
const NOTE: &str = "\n\n<shell_metadata>";
const END: &str = "</shell_metadata>";
/// Maximum length that is kept.
const MAX_NOTE: usize = 1024;

/// The word with which a tool reports that its action did not have the expected effect (C9, 7).
const FAILED_VERIFY: &str = "failed_verify";

/// Returns the line about a failed command or verification; `None` on success, and for other tools.
pub(super) fn note(output: &ToolOutput) -> Option<String> {
    if output.metadata.get("status").and_then(Value::as_str) == Some(FAILED_VERIFY) {
        let mut said = output.output.lines();
        let line = said.rfind(|line| line.trim_start().starts_with(FAILED_VERIFY));
        let line = line.unwrap_or("failed_verify: what was expected did not happen");
        return Some(format!("\n\n{}", line.trim()));
    }
    let exit = output.metadata.get("exit")?;
    if exit.as_f64() == Some(0.0) {
        return None;
    }
    let line = |said: &str| format!("{NOTE}\n{said}\n{END}");
    Some(match exit {
        // The tool adds nothing to the output of such a command, so a note in it is the command's.
        Value::Number(code) => line(&format!("The command failed: exit code {code}.")),
        _ => last(&output.output)
            .map_or_else(|| line("The command did not end by itself."), str::to_owned),
    })
}

/// Returns what the tool added after the output of a stopped command: the last thing in it.
fn last(output: &str) -> Option<&str> {
    let note = output.get(output.rfind(NOTE)?..)?;
    (note.len() <= MAX_NOTE && note.ends_with(END)).then_some(note)
}

/// Restores the line after the rewritten output, if hooks have removed it.
pub(super) fn keep(note: Option<String>, before: &str, mut output: ToolOutput) -> ToolOutput {
    if let Some(note) = note
        && output.output != before
        && !output.output.contains(note.trim())
    {
        output.output.push_str(&note);
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_by_table() {
        let made = |output: &str, exit: &Value| ToolOutput {
            title: String::new(),
            output: output.to_owned(),
            metadata: json!({ "exit": exit }),
            attachments: None,
        };
        let timeout = "x\n\n<shell_metadata>\ntoo late\n</shell_metadata>";
        for (before, exit, after, want) in [
            ("FAILED", json!(0), "fine", "fine"),
            ("FAILED", json!(3), "FAILED", "FAILED"),
            (
                "FAILED",
                json!(3),
                "fine",
                "fine\n\n<shell_metadata>\nThe command failed: exit code 3.\n</shell_metadata>",
            ),
            (
                timeout,
                Value::Null,
                "fine",
                "fine\n\n<shell_metadata>\ntoo late\n</shell_metadata>",
            ),
            (timeout, Value::Null, timeout, timeout),
            // Output of a command is not a note of the tool.
            (
                "x\n\n<shell_metadata>\nkey=1\n</shell_metadata>",
                json!(3),
                "fine",
                "fine\n\n<shell_metadata>\nThe command failed: exit code 3.\n</shell_metadata>",
            ),
            (
                "x\n\n<shell_metadata>\nkey=1\n",
                Value::Null,
                "fine",
                "fine\n\n<shell_metadata>\nThe command did not end by itself.\n</shell_metadata>",
            ),
        ] {
            let noted = note(&made(before, &exit));
            let kept = keep(noted, before, made(after, &exit));
            assert_eq!(kept.output, want, "{before} {exit}");
        }
        let mut unverified = made("a\nfailed_verify: expected x, but saw: y\nb", &Value::Null);
        unverified.metadata = json!({ "status": "failed_verify" });
        let noted = note(&unverified);
        let kept = keep(noted, &unverified.output, made("all is well", &json!(0)));
        assert_eq!(
            kept.output,
            "all is well\n\nfailed_verify: expected x, but saw: y"
        );
        let mut plain = made("x", &json!(1));
        plain.metadata = json!({});
        assert_eq!(note(&plain), None);
    }
}
