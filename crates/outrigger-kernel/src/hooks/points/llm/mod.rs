//! Points of `llm`.

pub mod after_response;
pub mod after_text;
pub mod before_headers;
pub mod before_messages;
pub mod before_params;
pub mod before_request;
pub mod before_system;
pub mod on_error;
pub mod tool_definition;
