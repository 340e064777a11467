//! What a host may ask: one enum for each room, by the operation's name.

use serde_json::{Value, json};

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
    /// Everything is read by way of [`Value`], so that the code that reads each type is there once: the module is loaded each time
    /// that the extension's worker wakes.
    ///
    /// # Errors
    /// What is not JSON, names no operation, or does not bring what the operation takes.
    pub(crate) fn read(request: &[u8]) -> Result<Self, serde_json::Error> {
        use serde::de::Error as _;
        let mut request: Value = serde_json::from_slice(request)?;
        let op = request.get("op").and_then(Value::as_str);
        let op = op.unwrap_or_default().to_owned();
        let with = request.get_mut("with").map(Value::take);
        // As serde writes an enum without a tag, which takes the least code to read.
        let request = json!({ op.as_str(): with });
        match op.split('.').next().unwrap_or_default() {
            "turn" => serde_json::from_value(request).map(Self::Turn),
            "chain" => serde_json::from_value(request).map(Self::Chain),
            "conversation" => serde_json::from_value(request).map(Self::Conversation),
            "breaker" => serde_json::from_value(request).map(Self::Breaker),
            "rule" => serde_json::from_value(request).map(Self::Rule),
            "log" => serde_json::from_value(request).map(Self::Log),
            "browser" => serde_json::from_value(request).map(Self::Browser),
            _ => Err(serde_json::Error::custom(format_args!(
                "there is no operation `{op}`"
            ))),
        }
    }
}
