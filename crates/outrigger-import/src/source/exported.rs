//! Files of `outrigger export --format json`, and of `opencode export`.

use std::path::Path;

use outrigger_export::{Document, FORMAT, VERSION};
use outrigger_protocol::message::MessageWithParts;
use serde_json::Value;

use crate::error::{ImportError, Problem};
use crate::program::StoredSession;
use crate::source::entries::messages;
use crate::source::lenient;
use crate::source::storage::of_session;
use crate::transcript::{MAX_MESSAGES, Transcript};

/// Maximum bytes of a file.
const MAX_FILE: u64 = 512 << 20;
/// Maximum number of conversations in a file.
const MAX_CONVERSATIONS: usize = 1000;

/// Reads the sessions of a file.
pub(crate) fn read(
    path: &Path,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Transcript>, ImportError> {
    let form = |message: String| ImportError::Form {
        path: path.to_owned(),
        message,
    };
    let text = outrigger_files::read_to_string(path, MAX_FILE)
        .map_err(|error| ImportError::read(path, error))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| form(error.to_string()))?;
    drop(text);
    if value.get("format").and_then(Value::as_str) == Some(FORMAT) {
        let version = value.get("version").and_then(Value::as_u64);
        if version != Some(u64::from(VERSION)) {
            let version = version.map_or("none".to_owned(), |it| it.to_string());
            let message = format!("its version is {version}, and this program reads {VERSION}");
            return Err(form(message));
        }
        let document: Document =
            serde_json::from_value(value).map_err(|it| form(it.to_string()))?;
        let all = document.conversations.into_iter().take(MAX_CONVERSATIONS);
        return Ok(all.map(messages).collect());
    }
    if value.get("info").is_some() && value.get("messages").is_some() {
        Ok(vec![of_opencode(value, path, problems)?])
    } else {
        Err(form(
            "it has neither `format` nor `info` and `messages`".to_owned(),
        ))
    }
}

fn of_opencode(
    mut value: Value,
    path: &Path,
    problems: &mut Vec<Problem>,
) -> Result<Transcript, ImportError> {
    let session =
        lenient::session(taken(&mut value, "info")).map_err(|error| ImportError::Form {
            path: path.to_owned(),
            message: format!("info: {error}"),
        })?;
    let mut transcript = of_session(session);
    let Value::Array(messages) = taken(&mut value, "messages") else {
        return Ok(transcript);
    };
    for (n, message) in messages.into_iter().take(MAX_MESSAGES).enumerate() {
        let place = format!("messages/{n}");
        if let Some(message) = of_message(message, path, &place, problems) {
            transcript.messages.push(message);
        }
    }
    Ok(transcript)
}

fn of_message(
    mut message: Value,
    path: &Path,
    place: &str,
    problems: &mut Vec<Problem>,
) -> Option<MessageWithParts> {
    let wrong = |error: &serde_json::Error| Problem::new(path, place, error);
    let info = lenient::info(taken(&mut message, "info"))
        .inspect_err(|error| problems.push(wrong(error)))
        .ok()?;
    let parts = match taken(&mut message, "parts") {
        Value::Array(parts) => parts,
        _ => Vec::new(),
    };
    let parts = parts.into_iter().filter_map(|part| {
        let part = lenient::part(part);
        part.inspect_err(|error| problems.push(wrong(error))).ok()
    });
    Some(MessageWithParts {
        parts: parts.collect(),
        info,
    })
}

/// Takes a field out of a value.
fn taken(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Returns the list entry of a session in a file.
pub(crate) fn found(transcript: &Transcript, path: &Path) -> StoredSession {
    StoredSession {
        id: transcript.id.clone(),
        title: transcript.title.clone(),
        directory: transcript.directory.clone(),
        updated: transcript.updated,
        parent: transcript.parent.clone(),
        file: path.to_owned(),
    }
}
