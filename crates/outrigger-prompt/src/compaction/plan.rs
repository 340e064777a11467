//! Plan of a compaction: what it summarises, and the prompt for the model.

use outrigger_kernel::turn::compact::Compaction;
use outrigger_protocol::compaction::{CompactionPlan, Replay};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, Part, PartKind, TextPart};
use outrigger_protocol::model::{ChatMessage, Content};
use outrigger_protocol::session::PartInput;
use serde_json::Value;

use super::text;
use crate::history::active::is_compaction;

/// Plan of a compaction with its messages.
#[derive(Debug)]
pub struct Planned {
    /// The plan for the kernel.
    pub plan: CompactionPlan,
    /// Messages to summarise.
    pub head: Vec<MessageWithParts>,
    /// Summary of the messages before them.
    pub previous: Option<String>,
}

/// Returns the single message of a summary request, from the messages as the hooks left them.
#[must_use]
pub fn question<'a>(
    compaction: &Compaction,
    head: impl IntoIterator<Item = &'a MessageWithParts>,
    previous: Option<&str>,
) -> ChatMessage {
    let text = text::prompt(
        &text::transcript(head),
        previous,
        compaction.context(),
        compaction.prompt(),
    );
    ChatMessage::User {
        content: vec![Content::Text { text }],
    }
}

/// Returns whether it is a user message other than a compaction.
#[must_use]
pub fn is_prompt(message: &MessageWithParts) -> bool {
    matches!(message.info, MessageInfo::User(_)) && !is_compaction(message)
}

/// Returns whether there is something to summarise.
#[must_use]
pub fn has_text(messages: &[MessageWithParts]) -> bool {
    !text::transcript(messages).is_empty()
}

/// Removes the last prompt from a history that did not fit, to be repeated after the summary; its results so far stay
/// and are summarised. The first prompt is never removed, since nothing would be left.
pub fn take_replay(head: &mut Vec<MessageWithParts>) -> Option<Replay> {
    let at = head.iter().rposition(is_prompt)?;
    if !head.iter().take(at).any(is_prompt) {
        return None;
    }
    let taken = head.remove(at);
    let MessageInfo::User(message) = taken.info else {
        return None;
    };
    Some(Replay {
        message,
        parts: taken.parts.into_iter().map(without_media).collect(),
    })
}

fn without_media(part: Part) -> PartInput {
    let kind = match part.kind {
        PartKind::File(file) if is_media(&file) => PartKind::Text(TextPart {
            text: text::attached(&file),
            ..TextPart::default()
        }),
        kind => kind,
    };
    PartInput { id: None, kind }
}

/// Returns whether a file is an image or a PDF, which make requests large.
fn is_media(file: &outrigger_protocol::Object) -> bool {
    let mime = file.get("mime").and_then(Value::as_str).unwrap_or_default();
    mime.starts_with("image/") || mime == "application/pdf"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::*;

    #[test]
    fn the_last_prompt_is_asked_again_without_its_images() {
        let image = json!({ "type": "file", "mime": "image/png", "filename": "a.png", "url": "data:image/png;base64,AAAA" });
        let mut head = vec![
            user("u1", "first"),
            answered("a1", "u1", "one"),
            user_parts("u2", json!([{ "type": "text", "text": "look" }, image])),
            answered("a2", "u2", "half"),
        ];
        let replay = take_replay(&mut head).unwrap();
        let ids: Vec<&str> = head.iter().map(|m| m.info.id().as_str()).collect();
        assert_eq!(
            ids,
            ["u1", "a1", "a2"],
            "what was done for it is summarised"
        );
        let parts = serde_json::to_value(&replay.parts).unwrap();
        assert_eq!(
            parts,
            json!([{ "type": "text", "text": "look" }, { "type": "text", "text": "[Attached image/png: a.png]" }])
        );

        let mut first = vec![user("u1", "first"), answered("a1", "u1", "one")];
        assert_eq!(take_replay(&mut first), None);
        assert_eq!(first.len(), 2);
    }
}
