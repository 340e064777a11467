//! Hook points of browser actions. The lease decides whether an action may run at all and is checked after the hooks (C9, 6); the
//! verification itself determines its result (C9, 7).

pub mod after_action;
pub mod after_verify;
pub mod before_action;
pub mod on_error;

use outrigger_protocol::id::{CallId, SessionId};
use serde::Serialize;

/// An action as handlers read it, without the typed text.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Action<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Id of the tool call.
    #[serde(rename = "callID")]
    pub call_id: &'a CallId,
    /// Kind: `click`, `fill`, `navigate` …
    pub action: &'a str,
    /// Its risk: `look`, `navigate`, `input`, `submit`, `file`.
    pub risk: &'a str,
    /// Id of the tab.
    pub tab: &'a str,
    /// URL of the tab.
    pub url: &'a str,
    /// Target of the action: role and name.
    pub target: &'a str,
    /// Kind of user data in the target: `password`, `card`, `code`.
    pub field: Option<&'a str>,
    /// Destination, if the target states one.
    pub to: Option<&'a str>,
}

/// Result of a verification.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Verdict<'a> {
    /// `verified`, `failed_verify`, `unchanged`, `done`.
    pub status: &'a str,
    /// Text added for the model.
    pub context: [&'a str; 0],
}
