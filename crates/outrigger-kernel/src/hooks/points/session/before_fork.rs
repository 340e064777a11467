//! `session.before_fork`.

use outrigger_protocol::id::{MessageId, SessionId};
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "session.before_fork",
    hook: "session.before_fork",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, messageID?",
    about: "A session is about to be copied.",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// The message that the copy ends before.
    #[serde(rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<&'a MessageId>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::SessionBeforeFork;
    type Output = Empty;
}
