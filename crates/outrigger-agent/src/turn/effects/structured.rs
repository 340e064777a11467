//! Prompts that want their answer in the form of a JSON Schema: what the model is offered for it, and who takes the answer.

use outrigger_kernel::turn::Turn;
use outrigger_protocol::model::ToolOffer;
use outrigger_protocol::session::OutputFormat;
use outrigger_protocol::turn::KnownTool;
use serde_json::Value;

/// The schema that the answer of this turn shall have, if it shall have one.
pub(crate) fn wanted(state: &Turn) -> Option<Value> {
    if state.compaction().is_some() {
        return None;
    }
    state.user().format.as_ref()?.schema()
}

/// Puts the tool for the answer among the others, where their order is kept. It stands in for one of that name.
pub(crate) fn add(schema: Value, offers: &mut Vec<ToolOffer>, known: &mut Vec<KnownTool>) {
    let name = OutputFormat::TOOL;
    offers.retain(|offer| offer.name != name);
    known.retain(|tool| tool.name != name);
    let follows = |offer: &ToolOffer| offer.name.to_lowercase().as_str() > "structuredoutput";
    let place = offers.iter().position(follows).unwrap_or(offers.len());
    offers.insert(place, outrigger_tools::answer::offer(schema));
    known.push(KnownTool {
        name: name.to_owned(),
        // Nothing is done, so nothing is done twice.
        read_only: true,
    });
}
