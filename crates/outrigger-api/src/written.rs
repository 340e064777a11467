//! The schemas as files: JSON Schema and TypeScript.

use outrigger_schema::json::Writer;
use outrigger_schema::{Schema, ts};
use serde_json::{Map, json};

use crate::forms;

/// Returns `docs/api.schema.json`.
#[must_use]
pub fn schema() -> String {
    let writer = Writer {
        closed: false,
        named: Some("#/$defs/"),
    };
    let forms = forms::ALL.iter().map(|(name, form)| {
        let inner = match form {
            Schema::Named(_, inner) => inner,
            other => other,
        };
        ((*name).to_owned(), writer.value(inner))
    });
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "/outrigger/v1",
        "$defs": forms.collect::<Map<_, _>>(),
    });
    let text = serde_json::to_string_pretty(&document).unwrap_or_default();
    format!("{text}\n")
}

/// Returns `web/src/api.ts`.
#[must_use]
pub fn typescript() -> String {
    let mut text =
        String::from("// Made by `cargo xtask generate` from crates/outrigger-api/src/forms.rs.\n");
    for (name, form) in forms::ALL {
        text.push('\n');
        text.push_str(&ts::declaration(name, form));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channel, Entry, Shortened, StreamItem};
    use outrigger_protocol::merged::{ConversationMessage, Details, EntryState};

    fn fits(form: &str, value: &serde_json::Value) -> bool {
        let mut whole: serde_json::Value = serde_json::from_str(&schema()).unwrap();
        whole["$ref"] = json!(format!("#/$defs/{form}"));
        jsonschema::validator_for(&whole).unwrap().is_valid(value)
    }

    /// Serialized values match their schema.
    #[test]
    fn types_and_forms_agree() {
        let details = [
            Details::Diff {
                old_content: "a".into(),
                new_content: "b".into(),
                path: None,
            },
            Details::FileList {
                files: vec!["a".into()],
            },
            Details::CommandOutput {
                stdout: "o".into(),
                stderr: "e".into(),
                exit_code: Some(1),
            },
        ];
        for one in &details {
            assert!(fits("Details", &json!(one)), "{one:?}");
        }
        let entry = Entry {
            key: "msg_1/prt_1".into(),
            state: EntryState::Running,
            channel: Channel {
                conversation: "ses_1".into(),
                task: "ses_1".into(),
                attempt: "msg_0".into(),
            },
            message: ConversationMessage {
                id: "prt_1".into(),
                role: "assistant".into(),
                message_type: "text".into(),
                content: "hi".into(),
                timestamp: 1,
                metadata: Map::new().into_iter().collect(),
            },
            shortened: vec![Shortened {
                at: "/content".into(),
                bytes: 100,
                reference: "x".into(),
            }],
        };
        assert!(!fits("Details", &json!({ "type": "page", "data": {} })));
        let entry = Box::new(entry);
        for item in [
            StreamItem::Connected { event: 1 },
            StreamItem::Entry {
                entry: entry.clone(),
            },
            StreamItem::Progress { entry },
            StreamItem::Delta {
                conversation: "ses_1".into(),
                key: "k".into(),
                text: "t".into(),
                start: true,
            },
        ] {
            assert!(fits("StreamItem", &json!(item)), "{item:?}");
            let again: StreamItem = serde_json::from_value(json!(item)).unwrap();
            assert_eq!(again, item);
        }
    }
}
