//! Where an imported session comes from.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::conversation::session::Session;

/// The key in a session's `metadata` under which its [`Origin`] stands.
pub const ORIGIN: &str = "outriggerOrigin";

/// The key of an answer that another program stored: what it used was paid for there, and counts in no budget and no statistics here.
pub const IMPORTED: &str = "imported";

/// The program, and what it says of the session. For people: nothing is decided by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `OpenCode`, `Claude Code`, `Codex`.
    pub program: String,
    /// Its version, where it says one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The session's identifier there.
    pub session: String,
    /// The folder that it worked in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
}

impl Origin {
    /// That of a session, if it was imported.
    #[must_use]
    pub fn of(session: &Session) -> Option<Self> {
        let value = session.metadata.as_ref()?.get(ORIGIN)?;
        serde_json::from_value(value.clone()).ok()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.program.as_str(),
            self.version.as_str(),
            self.session.as_str(),
        ];
        let words: Vec<&str> = words.into_iter().filter(|it| !it.is_empty()).collect();
        f.write_str(&words.join(" "))
    }
}
