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

mod adapters;
mod cassette;
mod catalog;
mod cloud;
mod content;
mod credentials;
mod error;
mod example;
mod logins;
mod models;
mod provider;
mod resolved;
mod secret;
#[cfg(test)]
mod testing;
mod transform;
mod transport;

pub use catalog::{CatalogError, CatalogOptions, models_url};
pub use credentials::{CredentialError, Credentials, Origin, Stored};
pub use error::ModelError;
pub use logins::{LoginServers, WaitingLogin, login_methods, wrong_login_answer};
pub use models::{IsActive, Models, ModelsOptions, max_output_tokens};
pub use provider::put_back;
pub use provider::withheld::Speaker;
pub use resolved::{Resolved, StreamOptions};
pub use transform::{temperature, top_k, top_p};
pub use transport::client::http_client;
pub use transport::error_response::ErrorResponse;
pub use transport::fetch::{
    ContributedProvider, FILES, FetchRequest, FetchResponse, Overlay, ProviderFetch, Route,
    names_place,
};
pub use transport::retry::{Deadlines, RetryPolicy};
pub use transport::stream::{ModelStream, RetryNotice, StreamItem};
