//! A browser for the model (C12): a Chromium over the DevTools protocol ([`Chromium`], the provider `cdp`), and the tools that use it
//! ([`tools`]).
//!
//! Decisions are made in `outrigger-browser-core`. The operations of a browser are a trait, [`provider::Provider`], so that other browsers can
//! be used.
//!
//! This crate does not know sessions, or who answers permission questions.

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
