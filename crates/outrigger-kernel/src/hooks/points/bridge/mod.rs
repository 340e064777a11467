//! Points of `bridge`.

pub mod after_invoke;
pub mod before_invoke;
pub mod on_error;

use serde::Serialize;

/// Where a point of the bridge is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Where a connector asks (C1).
    Asks,
    /// Where the bridge executes.
    Executes,
}

/// What handlers read of a call over the bridge.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Call<'a> {
    /// Number that the remote controller gave it.
    #[serde(rename = "callID")]
    pub call_id: &'a str,
    /// Where the point is reached.
    pub side: Side,
    /// The connector that asks, by its name in `[connectors]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<&'a str>,
    /// Number of its connection, on the side that executes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// Session that it says it is of.
    #[serde(rename = "sessionID")]
    pub session_id: Option<&'a str>,
    /// Tool, by the name of its contract where it has one.
    pub tool: &'a str,
    /// Path that it is about.
    pub path: Option<&'a str>,
}
