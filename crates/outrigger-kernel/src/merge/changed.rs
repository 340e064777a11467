//! Attribution of results: a result that plugins changed for display names them.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::hook::{Decision, HookRecord};
use outrigger_protocol::merged::{CHANGED_BY, ConversationMessage};
use serde_json::{Value, json};

/// Adds to a call's output the names of the plugins that changed how it is displayed. `before` is the tool's own
/// output.
pub fn name_changes(before: &Value, output: &mut Value, records: &[HookRecord]) {
    let shown = |of: &Value| {
        let printed = of.pointer("/metadata/output").or(of.get("output"));
        (printed.cloned(), of.get("attachments").cloned())
    };
    let changed = records.iter().filter(|it| it.decision == Decision::Patch);
    let plugins: Vec<&str> = changed.map(|it| it.plugin.as_str()).collect();
    let is_changed = !plugins.is_empty() && shown(before) != shown(output);
    let Some(Value::Object(metadata)) = output.get_mut("metadata") else {
        return;
    };
    if is_changed {
        metadata.insert(CHANGED_BY.to_owned(), json!(plugins));
    } else {
        // A plugin's own statement is ignored.
        metadata.shift_remove(CHANGED_BY);
    }
}

/// Returns the attribution of a result message, for the merged message.
pub(super) fn changed_by(result: &ConversationMessage) -> Option<(String, Value)> {
    let changed = result.metadata.get("metadata")?.get(CHANGED_BY)?;
    Some((CHANGED_BY.to_owned(), changed.clone()))
}
