//! Model providers at wire level, the catalog of limits and prices, and cassettes.
//!
//! This crate turns a provider-neutral request into HTTP and the answer's bytes into events. It is not for sessions,
//! tools or hooks: what goes into a request and what is done with an answer is decided elsewhere.
//!
//! - [`Models`] joins `provider` entries of `opencode.json`, built-in providers, keys from the environment, stored
//!   credentials ([`Credentials`]), what plugins add ([`Overlay`]) and the catalog, and finds a model in them
//!   ([`Models::resolve`]).
//! - [`Resolved::stream`] asks a model. Deadlines, retries and decoding happen inside the stream.
//! - `npm: "cassette"` replays a recorded conversation (`options.file`); `options.record` records one.
//!
//! Keys are in no error, no `Debug` output and no recording.

mod answer;
mod anthropic;
mod cassette;
mod catalog;
mod client;
mod content;
mod credentials;
mod error;
mod fetch;
mod gemini;
mod json_scan;
mod models;
mod near;
mod openai;
mod plugin;
mod presets;
mod provider;
mod refusal;
mod resolved;
mod responses;
mod retry;
mod secret;
mod stream;
#[cfg(test)]
mod testing;
mod transform;
mod wire;
mod withheld;

pub use client::http_client;
pub use credentials::{CredentialError, Credentials, Origin, Stored};
pub use error::ModelError;
pub use fetch::{FILES, FetchRequest, FetchResponse, Overlay, OwnProvider, ProviderFetch, Route};
pub use models::{Models, ModelsOptions, cost, max_output_tokens};
pub use refusal::Refusal;
pub use resolved::{Resolved, StreamOptions};
pub use retry::{Deadlines, RetryPolicy};
pub use stream::{ModelStream, RetryNotice, StreamItem};
pub use transform::{temperature, top_k, top_p};
pub use withheld::Speaker;
