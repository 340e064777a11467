//! What a point is reached with. Each point's file has an `Input`, which says what its handlers read, and an `Output`, which
//! says what they find there to change; a `read` function reads what they left.
//!
//! Between the two everything is JSON (decision 13): the chain and the handlers see keys that nobody here knows, an absent key
//! is not null, and the order of keys is that of the fields.

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
    /// What its handlers may change.
    type Output: Serialize;

    /// What the point is reached with, before the first handler.
    fn payload(&self, output: &Self::Output) -> HookPayload {
        HookPayload::new(json(self), json(output))
    }

    /// The same, with the point.
    fn call(&self, output: &Self::Output) -> (HookPoint, HookPayload) {
        (Self::POINT, self.payload(output))
    }
}

/// The output of a point where nothing may be changed, or where all of it is optional: `{}`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Empty {}

/// The output of a point of errors: texts that are read after the message (C4). It begins without any.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Context {
    context: [&'static str; 0],
}

impl Context {
    /// The texts that handlers left.
    pub fn read(output: &Value) -> impl Iterator<Item = &str> {
        let context = output.get("context").and_then(Value::as_array);
        context.into_iter().flatten().filter_map(Value::as_str)
    }
}

// Plain data with string keys: writing it cannot fail.
fn json(value: &(impl Serialize + ?Sized)) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
