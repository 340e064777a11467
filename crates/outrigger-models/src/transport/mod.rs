//! Sends requests and reads responses: clients, deadlines, retries, streams.

pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod error_response;
pub(crate) mod event_stream;
pub(crate) mod fetch;
pub(crate) mod retry;
pub(crate) mod stream;
pub(crate) mod token_endpoint;
