//! Structured output: prompts whose answer must match a JSON Schema, and the tool through which the model gives it.

use outrigger_kernel::turn::Turn;
use outrigger_protocol::model::ToolOffer;
use outrigger_protocol::session::OutputFormat;
use outrigger_protocol::turn::KnownTool;
use serde_json::Value;

/// Returns the schema of the answer, if the turn has one.
pub(crate) fn wanted(state: &Turn) -> Option<Value> {
    if state.compaction().is_some() {
        return None;
    }
    state.user().format.as_ref()?.schema()
}

/// Inserts the answer tool among the others in sorted order. It replaces a tool of the same name.
pub(crate) fn add(schema: Value, offers: &mut Vec<ToolOffer>, known: &mut Vec<KnownTool>) {
    let name = OutputFormat::TOOL;
    offers.retain(|offer| offer.name != name);
    known.retain(|tool| tool.name != name);
    let follows = |offer: &ToolOffer| offer.name.to_lowercase().as_str() > "structuredoutput";
    let place = offers.iter().position(follows).unwrap_or(offers.len());
    offers.insert(place, outrigger_tools::answer::offer(schema));
    known.push(KnownTool {
        name: name.to_owned(),
        // The call does nothing, so repeating it is harmless.
        read_only: true,
    });
}
