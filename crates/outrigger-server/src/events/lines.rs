//! An event as sent to clients: serialized for the first of them, and shared with all others.

use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;
use outrigger_protocol::event::BusEvent;
use serde_json::{Map, Value, json};

/// The lines of an event, serialized on demand.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    alone: OnceLock<Bytes>,
    in_envelope: OnceLock<Bytes>,
}

impl Lines {
    /// Returns the event for clients of its folder.
    pub(crate) fn alone(&self, event: &BusEvent) -> Bytes {
        self.alone.get_or_init(|| line(event)).clone()
    }

    /// Returns the event in an envelope with its origin, for clients of all folders.
    pub(crate) fn in_envelope(
        &self,
        directory: Option<&Path>,
        project: Option<&String>,
        event: &BusEvent,
    ) -> Bytes {
        let line = || {
            let mut envelope = Map::new();
            let directory = directory.map_or("global".into(), Path::to_string_lossy);
            envelope.insert("directory".into(), json!(directory));
            if let Some(project) = project {
                envelope.insert("project".into(), json!(project));
            }
            envelope.insert("payload".into(), json!(event));
            line(&Value::Object(envelope))
        };
        self.in_envelope.get_or_init(line).clone()
    }
}

/// Serializes a value to a line; JSON contains no line breaks.
pub(crate) fn line(value: &impl serde::Serialize) -> Bytes {
    let mut line = b"data: ".to_vec();
    // The values can always be serialized, and writing to memory does not fail.
    let _ = serde_json::to_writer(&mut line, value);
    line.extend_from_slice(b"\n\n");
    Bytes::from(line)
}
