//! The stored messages of a session as the model reads them.

pub mod active;
pub mod decode;
pub mod grown;
pub mod order;
pub mod read;
pub mod request;
