//! `session.before_fork`.

use outrigger_protocol::id::{MessageId, SessionId};
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
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

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// The message before which the copy ends.
    #[serde(rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<&'a MessageId>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::SessionBeforeFork;
    type Output = Empty;
}
