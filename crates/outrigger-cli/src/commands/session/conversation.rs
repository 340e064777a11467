//! A session's conversation as text.

use outrigger_kernel::merge::{Author, Converter, Form};
use outrigger_protocol::merged::ConversationMessage;
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::session::Session;
use outrigger_store::Store;

use super::causes::Causes;
use crate::failure::Failure;
use crate::terminal::Paint;
use crate::terminal::transcript::{is_tool, tool_text};
use outrigger_terminal::{set_off, set_off_below};

/// Formats a session's stored conversation.
pub(crate) fn conversation(
    store: &Store,
    session: &Session,
    paint: Paint,
) -> Result<String, Failure> {
    let mut text = String::new();
    let stored = store.messages(&session.id)?;
    let causes = Causes::of(store, &session.id, &stored)?;
    let merged = stored.iter().flat_map(messages);
    let columns = crate::terminal::out_size().columns;
    // A text and the call that it announces belong together, and so do calls with a single line.
    let mut together = true;
    for message in merged {
        let is_tool = is_tool(&message);
        let line = match message.role.as_str() {
            _ if is_tool => tool_text(&message, paint, &session.directory),
            "user" => format!("{} {}\n", paint.bold(">"), message.content),
            _ if message.content.trim().is_empty() => continue,
            _ => format!("{}\n", message.content),
        };
        // Each line starts with our own text, so that no message can imitate an entry.
        let line = if is_tool || message.role == "user" {
            set_off_below(&line, columns)
        } else {
            set_off(&line, columns)
        };
        let line = line + &causes.line(&message, paint);
        let close = text.is_empty() || is_tool && together;
        if !close {
            text.push('\n');
        }
        together = message.role != "user" && (!is_tool || line.lines().count() == 1);
        text.push_str(&line);
    }
    Ok(text)
}

/// Returns the texts and tools of a message.
fn messages(stored: &MessageWithParts) -> Vec<ConversationMessage> {
    let converter = Converter::default();
    let author = Author::from(&stored.info);
    let parts = stored.parts.iter();
    let placed = parts.flat_map(|part| converter.part(&author, part, Form::Merged));
    placed
        .map(|placed| placed.message)
        .filter(|message| is_tool(message) || message.message_type == "text")
        .collect()
}
