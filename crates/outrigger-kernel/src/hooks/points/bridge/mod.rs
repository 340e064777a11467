//! Points of `bridge`.

pub mod after_invoke;
pub mod before_invoke;
pub mod on_error;

use serde::Serialize;

/// Side on which a point of the bridge is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The connector's side (C1).
    Asks,
    /// The executing side.
    Executes,
}

/// A call over the bridge as handlers read it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Call<'a> {
    /// Id that the remote controller gave it.
    #[serde(rename = "callID")]
    pub call_id: &'a str,
    /// Side on which the point is reached.
    pub side: Side,
    /// Name of the requesting connector in `[connectors]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<&'a str>,
    /// Number of its connection, on the executing side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// Id of the session that it claims.
    #[serde(rename = "sessionID")]
    pub session_id: Option<&'a str>,
    /// Tool, by the name of its contract if it has one.
    pub tool: &'a str,
    /// Path that it concerns.
    pub path: Option<&'a str>,
}
