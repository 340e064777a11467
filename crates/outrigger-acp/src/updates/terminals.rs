//! Commands in terminals of the editor.
//!
//! An editor that offers it (`_meta.terminal_output` of its capabilities, as Zed does) shows what a command prints in a terminal, with
//! its colours. It runs nothing: the output is sent to it, as metadata of the call's updates.

use std::path::Path;

use outrigger_protocol::message::{ToolPart, ToolState};
use serde_json::{Value, json};

use crate::updates::calls;

/// Removes everything that the terminal shows.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// Returns whether a call is one of a command.
pub(crate) fn is_command(call: &ToolPart) -> bool {
    calls::kind(&call.tool) == "execute"
}

/// Returns the block below the title that contains the terminal.
pub(crate) fn block(call: &ToolPart) -> Value {
    json!({ "type": "terminal", "terminalId": call.call_id })
}

/// Returns the metadata that creates the terminal: of the first update of a call, since Zed reads it in no other.
pub(crate) fn created(call: &ToolPart, folder: &Path) -> Value {
    json!({ "terminal_info": { "terminal_id": call.call_id, "cwd": folder } })
}

/// What was sent to a terminal.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    text: String,
}

impl Sent {
    /// Returns the metadata with what is new; `None` if nothing is.
    pub(crate) fn news(&mut self, call: &ToolPart) -> Option<Value> {
        let id = &call.call_id;
        let mut meta = json!({});
        if let Some(data) = self.output(&call.state) {
            meta["terminal_output"] = json!({ "terminal_id": id, "data": data });
        }
        if let Some(code) = exit(&call.state) {
            meta["terminal_exit"] = json!({ "terminal_id": id, "exit_code": code, "signal": null });
        }
        (meta != json!({})).then_some(meta)
    }

    fn output(&mut self, state: &ToolState) -> Option<String> {
        let now = match state {
            ToolState::Running { metadata, .. } => {
                let printed = metadata.as_ref().and_then(|it| it["output"].as_str())?;
                // Up to the last whole line: a sequence of colours may be cut in two behind it.
                let (lines, _) = printed.rsplit_once('\n')?;
                format!("{lines}\n")
            }
            ToolState::Completed { output, .. } => calls::cut(output, false),
            _ => return None,
        };
        let data = match now.strip_prefix(self.text.as_str()) {
            Some("") => return None,
            Some(more) => outrigger_terminal::safe(more, true),
            // Of a long output only the end is known.
            None => format!("{CLEAR}{}", outrigger_terminal::safe(&now, true)),
        };
        self.text = now;
        Some(data)
    }
}

/// Returns the exit code of a call that ended; null if it has none.
fn exit(state: &ToolState) -> Option<Value> {
    match state {
        ToolState::Completed { metadata, .. } => {
            Some(json!(metadata.get("exit").and_then(Value::as_u64)))
        }
        ToolState::Error { .. } => Some(Value::Null),
        _ => None,
    }
}
