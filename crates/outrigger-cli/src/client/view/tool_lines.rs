//! Selects the printed messages about tools. Printed lines cannot be changed, so each message is printed once, when it is
//! complete.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_protocol::merged::{Change, ConversationMessage, EntryState, Placed};

use crate::terminal::transcript::is_tool;

/// Messages about tools, by their keys.
#[derive(Default)]
pub(super) struct ToolLines {
    printed: BTreeSet<String>,
    running: BTreeMap<String, ConversationMessage>,
}

impl ToolLines {
    /// Returns what to print now. `starts`: a start is printed when its tool runs.
    pub(super) fn on(&mut self, changes: Vec<Change>, starts: bool) -> Vec<ConversationMessage> {
        let tools = changes.into_iter().filter_map(|change| match change {
            Change::Put(placed) if is_tool(&placed.message) => Some(placed),
            _ => None,
        });
        tools
            .filter_map(
                |Placed {
                     key,
                     state,
                     message,
                 }| {
                    self.running.remove(&key);
                    // The arguments of a call that is still being written are empty.
                    let has_input = message
                        .metadata
                        .get("input")
                        .is_some_and(|it| *it != serde_json::json!({}));
                    if state == EntryState::Running && !(starts && has_input) {
                        self.running.insert(key, message);
                        return None;
                    }
                    self.printed.insert(key).then_some(message)
                },
            )
            .collect()
    }

    /// Returns the messages that have no end when the turn is over.
    pub(super) fn finish(&mut self) -> Vec<ConversationMessage> {
        std::mem::take(&mut self.running)
            .into_iter()
            .filter(|(key, _)| !self.printed.contains(key))
            .map(|(_, message)| message)
            .collect()
    }
}
