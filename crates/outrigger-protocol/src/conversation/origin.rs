//! The origin of an imported session.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::conversation::session::Session;

/// The key of the [`Origin`] in a session's `metadata`.
pub const ORIGIN: &str = "outriggerOrigin";

/// The key of an answer that another program stored: its usage was paid there, and is excluded from budgets and statistics here.
pub const IMPORTED: &str = "imported";

/// The program, and its own data about the session. For display: no decision depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `OpenCode`, `Claude Code`, `Codex`.
    pub program: String,
    /// Its version, if known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The session's identifier there.
    pub session: String,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
}

impl Origin {
    /// Returns the origin of a session, if it was imported.
    #[must_use]
    pub fn of(session: &Session) -> Option<Self> {
        let value = session.metadata.as_ref()?.get(ORIGIN)?;
        serde_json::from_value(value.clone()).ok()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = [
            self.program.as_str(),
            self.version.as_str(),
            self.session.as_str(),
        ]
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect();
        f.write_str(&words.join(" "))
    }
}
