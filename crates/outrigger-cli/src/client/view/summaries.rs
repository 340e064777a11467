//! Summaries that nobody asked for: a conversation that becomes too long is put together, and that is no answer.

use std::collections::HashMap;

use outrigger_protocol::Object;
use outrigger_protocol::id::MessageId;
use serde_json::Value;

/// Summaries that nobody asked for, by their message. One that nothing follows is the answer after all.
#[derive(Default)]
pub(super) struct Summaries {
    /// The compaction under way was not asked for.
    is_automatic: bool,
    texts: HashMap<MessageId, String>,
}

impl Summaries {
    /// A compaction begins, with this part.
    pub(super) fn begin(&mut self, compaction: &Object) {
        self.is_automatic = compaction.get("auto") == Some(&Value::Bool(true));
    }

    /// Whether a message that is a summary was not asked for.
    pub(super) fn are_automatic(&self) -> bool {
        self.is_automatic
    }

    /// True for the first sight of a summary's message.
    pub(super) fn is_new(&mut self, id: &MessageId) -> bool {
        if self.texts.contains_key(id) {
            return false;
        }
        self.texts.insert(id.clone(), String::new());
        true
    }

    /// Keeps the text of such a summary; false when the message is none.
    pub(super) fn keep(&mut self, id: &MessageId, text: &str) -> bool {
        let Some(kept) = self.texts.get_mut(id) else {
            return false;
        };
        text.trim().clone_into(kept);
        true
    }

    /// The text of the summary that is this message.
    pub(super) fn take(&mut self, id: &MessageId) -> Option<String> {
        self.texts.remove(id)
    }
}
