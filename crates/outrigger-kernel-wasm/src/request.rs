//! Requests of a host: one enum per area, by the operation's name.

use outrigger_protocol::buffer::Buffer;
use serde::Deserialize;

use crate::browser::BrowserOp;
use crate::chains::ChainOp;
use crate::conversations::ConversationOp;
use crate::log::LogOp;
use crate::rules::{BreakerOp, RuleOp};
use crate::turns::TurnOp;

/// A request, by area.
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
    /// Everything is parsed through [`Buffer`], so that the code for each type exists only once: the module is loaded each time
    /// that the extension's worker starts.
    ///
    /// # Errors
    /// The text is not JSON, names no operation, or lacks its arguments.
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
        // The form of an externally tagged enum, which needs the least code to parse.
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
