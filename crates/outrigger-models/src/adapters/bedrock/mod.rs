//! Amazon Bedrock's Converse API: what `@ai-sdk/amazon-bedrock` speaks in OpenCode. Addresses and signatures are in
//! [`crate::cloud`].

mod body;
mod events;

pub(crate) use body::body;
pub(crate) use events::Decoder;
