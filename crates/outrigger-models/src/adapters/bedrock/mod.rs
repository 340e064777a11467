//! Amazon Bedrock's Converse API, the protocol of `@ai-sdk/amazon-bedrock` in OpenCode. URLs and signatures are in
//! [`crate::cloud`].

mod body;
mod events;

pub(crate) use body::body;
pub(crate) use events::Decoder;
