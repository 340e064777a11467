//! Automatic summaries: a conversation that becomes too long is compacted, and the summary is not an answer.

use std::collections::HashMap;

use outrigger_protocol::Object;
use outrigger_protocol::id::MessageId;
use serde_json::Value;

/// Automatic summaries, by their message. One that nothing follows is the answer after all.
#[derive(Default)]
pub(super) struct Summaries {
    /// The current compaction is automatic.
    is_automatic: bool,
    texts: HashMap<MessageId, String>,
}

impl Summaries {
    /// Records the start of a compaction, with this part.
    pub(super) fn begin(&mut self, compaction: &Object) {
        self.is_automatic = compaction.get("auto") == Some(&Value::Bool(true));
    }

    /// Returns whether a summary message is automatic.
    pub(super) fn are_automatic(&self) -> bool {
        self.is_automatic
    }

    /// Returns whether a summary's message is seen for the first time.
    pub(super) fn is_new(&mut self, id: &MessageId) -> bool {
        if self.texts.contains_key(id) {
            return false;
        }
        self.texts.insert(id.clone(), String::new());
        true
    }

    /// Keeps the text of such a summary; returns `false` if the message is not one.
    pub(super) fn keep(&mut self, id: &MessageId, text: &str) -> bool {
        let Some(kept) = self.texts.get_mut(id) else {
            return false;
        };
        text.trim().clone_into(kept);
        true
    }

    /// Takes the text of the summary with this message.
    pub(super) fn take(&mut self, id: &MessageId) -> Option<String> {
        self.texts.remove(id)
    }
}
