//! The form of `opencode export`, which `opencode import` accepts: `{info, messages}`, one session per
//! file.

use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::session::Session;
use serde::{Deserialize, Serialize};

use crate::select::Stored;

/// A session in OpenCode's export form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCodeSession {
    /// The session.
    pub info: Session,
    /// Its messages, in order.
    pub messages: Vec<MessageWithParts>,
}

/// Returns the content of the file.
///
/// # Errors
/// A value that is not JSON.
pub fn opencode(stored: Stored) -> Result<String, serde_json::Error> {
    let Stored { session, messages } = stored;
    let info = session;
    let text = serde_json::to_string_pretty(&OpenCodeSession { info, messages })?;
    Ok(text + "\n")
}
