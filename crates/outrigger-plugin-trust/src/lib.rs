//! Trust by content (issue 5, item 4): what a plugin's files hold is written down when it is first used, and a plugin that
//! holds something else later is not started before a person has looked at it.
//!
//! Files are looked at when the plugins of a project are found, again right before each process is started, and once more
//! when it has loaded them. Between the second look and the third lies what the runtime reads, a fraction of a second; a
//! file that was touched meanwhile, even one that was put back, costs the process ([`still`], [`untouched`]).

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod changes;
pub mod code_places;
mod content;
mod error;
mod gate;
pub mod kept_code;
mod resolution;
mod review;
pub mod signature;
mod store;
mod tree;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_protocol::Millis;
use serde::Serialize;

pub use changes::{Changes, FileChange};
pub use content::{Before, Content, FileRecord, Stamp};
pub use error::TrustError;
pub use gate::{
    Candidate, Gate, LetCount, Verified, project_of, still, trust_no_newcomers, untouched,
};
pub use review::{Review, ReviewOptions, Reviewed, Verification, accept, review, verify};
pub use signature::{SIGNATURE_FILE, Signed};
pub use store::{ProjectLock, Store, TRUST_FILE, Trusted, TrustedBy};
pub use tree::TreeError;

/// Asks a person whether a plugin is to be trusted.
pub type TrustFn = Arc<dyn Fn(TrustQuestion) -> BoxFuture<'static, bool> + Send + Sync>;

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustQuestion {
    /// The plugin.
    pub plugin: String,
    /// As declared.
    pub spec: String,
    /// The question in one line: that it is new here, or that it changed.
    pub reason: String,
    /// The changes or the files, in lines, safe to print.
    pub details: String,
}

/// How a plugin that runs came to be trusted, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustShown {
    /// Hash over its files.
    pub hash: String,
    /// How many files.
    pub files: usize,
    /// How it came to be trusted.
    pub by: TrustedBy,
    /// When, in milliseconds since the Unix epoch.
    pub at: Millis,
}

impl From<&Trusted> for TrustShown {
    fn from(trusted: &Trusted) -> Self {
        Self {
            hash: trusted.hash.clone(),
            files: trusted.files,
            by: trusted.by,
            at: trusted.at,
        }
    }
}
