//! Payloads of points. Each point's file has an `Input` with the data that handlers read, and an `Output` that they may
//! change; a `read` function reads the result.
//!
//! In between everything is JSON (decision 13): the chain and the handlers see keys that are unknown here, an absent key is
//! not null, and keys have the order of the fields.

use outrigger_protocol::buffer::to_value;
use outrigger_protocol::turn::HookPayload;
use serde::Serialize;
use serde_json::Value;

use super::points::HookPoint;

/// The input of a point. It says which point, so that it cannot be sent to another.
///
/// ```
/// use outrigger_kernel::hooks::points::llm::after_text;
/// use outrigger_kernel::hooks::{HookInput, HookPoint};
/// use outrigger_protocol::id::{MessageId, PartId, SessionId};
///
/// let input = after_text::Input {
///     session_id: &SessionId("ses_1".into()),
///     message_id: &MessageId("msg_1".into()),
///     part_id: &PartId("prt_1".into()),
/// };
/// let (point, payload) = input.call(&after_text::Output { text: "Hello" });
/// assert_eq!(point, HookPoint::LlmAfterText);
/// assert_eq!(after_text::read(&payload.output), Some("Hello"));
/// ```
pub trait HookInput: Serialize {
    /// The point.
    const POINT: HookPoint;
    /// The part that handlers may change.
    type Output: Serialize;

    /// Returns the payload for the first handler.
    fn payload(&self, output: &Self::Output) -> HookPayload {
        HookPayload::new(to_value(self), to_value(output))
    }

    /// Returns the payload with its point.
    fn call(&self, output: &Self::Output) -> (HookPoint, HookPayload) {
        (Self::POINT, self.payload(output))
    }
}

/// The output of a point where nothing can be changed, or where everything is optional: `{}`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Empty {}

/// The output of an error point: texts to append to the message (C4). Initially empty.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Context {
    context: [&'static str; 0],
}

impl Context {
    /// Returns the texts that handlers added.
    pub fn read(output: &Value) -> impl Iterator<Item = &str> {
        output
            .get("context")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }
}
