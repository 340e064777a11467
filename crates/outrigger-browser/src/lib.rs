//! A browser for the model (C12): a Chromium over the DevTools protocol ([`Chromium`], the provider `cdp`), and the tools that use it
//! ([`tools`]).
//!
//! What is decided, is decided in `outrigger-browser-core`; what a browser does stands behind [`provider::Provider`], so that others can
//! take its place.
//!
//! What this crate is not for: which sessions there are, who answers permission questions.

mod address;
mod attach;
mod cdp;
mod chromium;
mod desk;
mod dialog;
mod error;
mod frames;
mod network;
mod perform;
pub mod provider;
mod record;
mod secrets;
mod sites;
pub mod tools;

pub use attach::offer;
pub use cdp::extension::Relay;
pub use cdp::launch::find;
pub use chromium::{Chromium, Source};
pub use desk::{Browser, Options};
pub use error::BrowserError;
pub use record::RecordFn;
pub use secrets::Secrets;
pub use sites::Sites;
