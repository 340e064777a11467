//! One message per tool execution (E1–E5).
//!
//! [`Conversation`] turns bus events into conversation messages; [`Merger`] joins a tool's start and result into one
//! `tool_execution` message. Both work on the stored events, in their order, so a conversation rebuilt from the store is the
//! one that was live.

mod convert;
mod patched;
mod processors;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use outrigger_protocol::merged::{ConversationMessage, Details};
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

pub use convert::{Conversation, from_agent};
pub use processors::{ToolProcessor, bundled};

/// The key of a plugin whose tool has the name of a bundled one.
pub(crate) const PLUGIN: &str = "plugin";

/// Limits of a [`Merger`]; with them its memory is bounded (E4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A start that waits longer than this for its result is dropped, in milliseconds.
    pub max_wait_ms: u64,
    /// With more starts waiting than this, the oldest is dropped.
    pub max_waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_wait_ms: 10 * 60 * 1000,
            max_waiting: 256,
        }
    }
}

/// Joins starts and results. Nothing is lost and nothing comes twice: every message that goes in comes out as it is, or as
/// half of a merged one.
pub struct Merger {
    processors: Vec<Box<dyn ToolProcessor>>,
    limits: Limits,
    waiting: BTreeMap<String, ConversationMessage>,
    /// Identifiers of waiting starts, oldest first.
    order: Vec<String>,
}

impl Merger {
    /// A merger with these processors; the first that knows a tool describes it.
    #[must_use]
    pub fn new(processors: Vec<Box<dyn ToolProcessor>>, limits: Limits) -> Self {
        Self {
            processors,
            limits,
            waiting: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    /// Puts a message in and takes out what is ready, in order.
    #[must_use]
    pub fn push(&mut self, message: ConversationMessage) -> Vec<ConversationMessage> {
        let id = message
            .metadata
            .get("tool_use_id")
            .and_then(Value::as_str)
            .map(ToString::to_string);
        // A result that has come is not late: its own start is kept from the clearing.
        let own = id
            .as_deref()
            .filter(|_| message.message_type == "tool_result")
            .and_then(|id| self.release(id));
        let mut out = self.expire(message.timestamp);
        match (message.message_type.as_str(), id) {
            ("tool_use", Some(id)) => {
                // A second start under the same identifier: the first will not get a result of its own any more.
                if let Some(earlier) = self.release(&id) {
                    out.push(earlier);
                }
                self.order.push(id.clone());
                self.waiting.insert(id, message);
                while self.waiting.len() > self.limits.max_waiting {
                    let oldest = self.order.first().cloned().unwrap_or_default();
                    out.extend(self.release(&oldest));
                }
            }
            (_, id) => match own.zip(id) {
                Some((start, id)) => out.push(self.merge(&id, &start, &message)),
                None => out.push(message),
            },
        }
        out
    }

    /// Releases the starts that have waited too long.
    #[must_use]
    pub fn expire(&mut self, now: Millis) -> Vec<ConversationMessage> {
        let late: Vec<String> = self
            .order
            .iter()
            .filter(|id| {
                self.waiting
                    .get(*id)
                    .is_some_and(|m| now.saturating_sub(m.timestamp) > self.limits.max_wait_ms)
            })
            .cloned()
            .collect();
        late.iter().filter_map(|id| self.release(id)).collect()
    }

    /// The session is over: whatever still waits comes out as it is.
    #[must_use]
    pub fn finish(&mut self) -> Vec<ConversationMessage> {
        let ids = core::mem::take(&mut self.order);
        ids.iter()
            .filter_map(|id| self.waiting.remove(id))
            .collect()
    }

    /// How many starts wait for their result.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn release(&mut self, id: &str) -> Option<ConversationMessage> {
        let message = self.waiting.remove(id)?;
        self.order.retain(|other| other != id);
        Some(message)
    }

    fn merge(
        &self,
        id: &str,
        start: &ConversationMessage,
        result: &ConversationMessage,
    ) -> ConversationMessage {
        let name = text(&start.metadata, "tool_name")
            .or_else(|| text(&result.metadata, "tool_name"))
            .unwrap_or_default();
        let input = start.metadata.get("input").cloned().unwrap_or(Value::Null);
        let plugin = [&start.metadata, &result.metadata].into_iter();
        let plugin = plugin.filter_map(|it| it.get(PLUGIN)).next();
        let known = self.processors.iter().filter(|_| plugin.is_none());
        let mut known = known.filter(|p| p.tools().contains(&name.as_str()));
        let processor = known.next();
        let details = processor.and_then(|p| p.details(start, result));
        let summary = processor
            .and_then(|p| p.summary(start, result, details.as_ref()))
            .unwrap_or_else(|| format!("{name} completed"));
        let output = result.metadata.get("output").cloned();
        let is_error = result.metadata.get("is_error").and_then(Value::as_bool);
        // Later than the call where a person was asked about it first.
        let started = result.metadata.get("started").and_then(Value::as_u64);
        let started = started.unwrap_or(start.timestamp);
        let mut metadata = Object::new();
        for (key, value) in [
            ("tool_name", json!(name)),
            ("tool_use_id", json!(id)),
            ("input", input),
            ("output", output.unwrap_or_else(|| json!(result.content))),
            ("is_error", json!(is_error.unwrap_or(false))),
            (
                "duration_ms",
                json!(result.timestamp.saturating_sub(started)),
            ),
            ("summary", json!(summary)),
        ] {
            metadata.insert(key.to_string(), value);
        }
        if let Some(plugin) = plugin {
            metadata.insert(PLUGIN.to_string(), plugin.clone());
        }
        if let Some(details) = details {
            metadata.insert("details".to_string(), json!(details));
        }
        ConversationMessage {
            id: format!("{}-merged", start.id),
            role: "assistant".to_string(),
            message_type: "tool_execution".to_string(),
            content: summary,
            timestamp: start.timestamp,
            metadata,
        }
    }
}

fn text(fields: &Object, key: &str) -> Option<String> {
    fields
        .get(key)
        .and_then(Value::as_str)
        .map(ToString::to_string)
}

/// The details of a merged message, if it has any that can be read.
#[must_use]
pub fn details(message: &ConversationMessage) -> Option<Details> {
    serde_json::from_value(message.metadata.get("details")?.clone()).ok()
}

/// A merger with the bundled processors and the default limits.
#[must_use]
pub fn merger() -> Merger {
    Merger::new(bundled(), Limits::default())
}

/// Merges a whole stored conversation.
#[must_use]
pub fn merge_all(
    messages: impl IntoIterator<Item = ConversationMessage>,
) -> Vec<ConversationMessage> {
    let mut merger = merger();
    let mut out = vec![];
    for message in messages {
        out.extend(merger.push(message));
    }
    out.extend(merger.finish());
    out
}
