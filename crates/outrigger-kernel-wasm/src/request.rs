//! What a host may ask: one enum for each room, by the operation's name.

use outrigger_protocol::buffer::Buffer;
use serde::Deserialize;

use crate::browser::BrowserOp;
use crate::chains::ChainOp;
use crate::conversations::ConversationOp;
use crate::log::LogOp;
use crate::rules::{BreakerOp, RuleOp};
use crate::turns::TurnOp;

/// A request, by the room that answers it.
pub(crate) enum Request {
    Turn(TurnOp),
    Chain(ChainOp),
    Conversation(ConversationOp),
    Breaker(BreakerOp),
    Rule(RuleOp),
    Log(LogOp),
    Browser(BrowserOp),
}

impl Request {
    /// Everything is read by way of [`Buffer`], so that the code that reads each type is there once: the module is loaded each time
    /// that the extension's worker wakes.
    ///
    /// # Errors
    /// What is not JSON, names no operation, or does not bring what the operation takes.
    pub(crate) fn read(request: &[u8]) -> Result<Self, serde_json::Error> {
        use serde::de::Error as _;
        let mut request: Buffer<'_> = serde_json::from_slice(request)?;
        let op = request
            .take("op")
            .as_ref()
            .and_then(Buffer::as_str)
            .unwrap_or_default()
            .to_owned();
        let with = request.take("with").unwrap_or(Buffer::Null);
        // As serde writes an enum without a tag, which takes the least code to read.
        let request = Buffer::Fields(vec![(op.clone().into(), with)]);
        match op.split('.').next().unwrap_or_default() {
            "turn" => TurnOp::deserialize(request).map(Self::Turn),
            "chain" => ChainOp::deserialize(request).map(Self::Chain),
            "conversation" => ConversationOp::deserialize(request).map(Self::Conversation),
            "breaker" => BreakerOp::deserialize(request).map(Self::Breaker),
            "rule" => RuleOp::deserialize(request).map(Self::Rule),
            "log" => LogOp::deserialize(request).map(Self::Log),
            "browser" => BrowserOp::deserialize(request).map(Self::Browser),
            _ => Err(serde_json::Error::custom(format_args!(
                "there is no operation `{op}`"
            ))),
        }
    }
}
