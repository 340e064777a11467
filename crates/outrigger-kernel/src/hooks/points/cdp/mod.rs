//! Points of actions in a browser. Whether an action may be done at all is said by its lease, which is looked at behind them (C9, 6), and
//! what a verification came to is said by it (C9, 7).

pub mod after_action;
pub mod after_verify;
pub mod before_action;
pub mod on_error;

use outrigger_protocol::id::{CallId, SessionId};
use serde::Serialize;

/// What handlers read of an action. What is typed is not among it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Action<'a> {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Call of the tool.
    #[serde(rename = "callID")]
    pub call_id: &'a CallId,
    /// Kind: `click`, `fill`, `navigate` …
    pub action: &'a str,
    /// How much it risks: `look`, `navigate`, `input`, `submit`, `file`.
    pub risk: &'a str,
    /// Tab.
    pub tab: &'a str,
    /// Address that the tab shows.
    pub url: &'a str,
    /// What it is done to: role and name.
    pub target: &'a str,
    /// What of the user's the target holds: `password`, `card`, `code`.
    pub field: Option<&'a str>,
    /// Where it leads, if it says so.
    pub to: Option<&'a str>,
}

/// What a verification came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Verdict<'a> {
    /// `verified`, `failed_verify`, `unchanged`, `done`.
    pub status: &'a str,
    /// What the model reads after it.
    pub context: [&'a str; 0],
}
