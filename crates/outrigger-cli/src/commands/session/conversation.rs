//! A session's conversation as text.

use outrigger_kernel::merge::{Conversation, merge_all};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::session::Session;
use outrigger_store::{RecordQuery, Scope, Store};

use super::causes::Causes;
use crate::failure::Failure;
use crate::terminal::Paint;
use crate::terminal::transcript::{is_tool, tool_text};
use outrigger_terminal::{set_off, set_off_below};

/// A session's conversation, made again from its stored events.
pub(crate) fn conversation(
    store: &Store,
    session: &Session,
    paint: Paint,
) -> Result<String, Failure> {
    let mut text = String::new();
    let mut conversation = Conversation::default();
    let events = events(store, &session.id)?;
    let causes = Causes::of(store, &session.id, &events)?;
    let messages: Vec<_> = events
        .iter()
        .flat_map(|event| conversation.on(event))
        .collect();
    let mut merged = merge_all(messages);
    // The log has what became final first; identifiers are in the order in which the model said it.
    merged.sort_by(|a, b| a.id.cmp(&b.id));
    let columns = crate::terminal::out_size().columns;
    // A text and the call that it announces belong together, and so do calls that have no more than a line to tell.
    let mut together = true;
    for message in merged {
        let is_tool = is_tool(&message);
        let line = match message.role.as_str() {
            _ if is_tool => tool_text(&message, paint, &session.directory),
            "user" => format!("{} {}\n", paint.bold(">"), message.content),
            _ if message.content.trim().is_empty() => continue,
            _ => format!("{}\n", message.content),
        };
        // What begins a line is ours, so that no text looks like an entry of its own.
        let line = match is_tool || message.role == "user" {
            true => set_off_below(&line, columns),
            false => set_off(&line, columns),
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

/// The stored events of a session, in the order of the log.
fn events(store: &Store, id: &SessionId) -> Result<Vec<Event>, Failure> {
    let query = RecordQuery {
        scope: Some(Scope::Session(id)),
        kind: Some("event"),
        ..RecordQuery::default()
    };
    let records = store.records(&query)?;
    Ok(records
        .into_iter()
        .filter_map(|stored| match stored.record {
            LogRecord::Event(event) => Some(event.event),
            _ => None,
        })
        .collect())
}
