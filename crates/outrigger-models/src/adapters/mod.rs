//! The wire formats of model APIs, each with its request body and its events.

pub(crate) mod anthropic;
pub(crate) mod bedrock;
pub(crate) mod body;
pub(crate) mod gemini;
pub(crate) mod json_scan;
pub(crate) mod openai;
pub(crate) mod plugin;
pub(crate) mod responses;
pub(crate) mod wire;
