//! Attribution of results: a result that plugins changed for display names them, and so does one of a call that a plugin refused.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::hook::{Decision, HookRecord};
use outrigger_protocol::merged::{CHANGED_BY, ConversationMessage, REFUSED_BY};
use outrigger_protocol::message::REFUSAL;
use serde_json::{Value, json};

use super::processors::failed;

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

/// Returns the attribution of a result message, for the merged message: who changed it, and who refused the call.
pub(super) fn attributed(result: &ConversationMessage) -> impl Iterator<Item = (String, Value)> {
    let metadata = result.metadata.get("metadata");
    let field = |key: &str| metadata?.get(key);
    let refused_by = field(REFUSAL)
        .filter(|_| failed(result))
        .and_then(|it| it.get("plugin"));
    let both = [(CHANGED_BY, field(CHANGED_BY)), (REFUSED_BY, refused_by)]
        .map(|(key, value)| Some((key.to_owned(), value?.clone())));
    both.into_iter().flatten()
}
