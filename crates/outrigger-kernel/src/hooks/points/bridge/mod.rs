//! Points of `bridge`.

pub mod after_invoke;
pub mod before_invoke;
pub mod on_error;

use serde::Serialize;

/// What handlers read of a call over the bridge.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Call<'a> {
    /// Number that the remote controller gave it.
    #[serde(rename = "callID")]
    pub call_id: &'a str,
    /// Number of its connection.
    pub connection: u64,
    /// Session that it says it is of.
    #[serde(rename = "sessionID")]
    pub session_id: Option<&'a str>,
    /// Tool, by the name of its contract where it has one.
    pub tool: &'a str,
    /// Path that it is about.
    pub path: Option<&'a str>,
}
