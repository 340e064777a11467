//! Trust by content: the content of a plugin's files is recorded at first use, and a plugin with different content is not
//! started before the user has reviewed it.
//!
//! Files are checked when the plugins of a project are found, again right before each process is started, and once more
//! when it has loaded them. Between the second check and the third the runtime reads them, in a fraction of a second; if a
//! file was touched meanwhile, even one that was restored, the process is killed ([`still`], [`untouched`]).

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

/// Asks the user whether to trust a plugin.
pub type TrustFn = Arc<dyn Fn(TrustQuestion) -> BoxFuture<'static, bool> + Send + Sync>;

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustQuestion {
    /// Id of the plugin.
    pub plugin: String,
    /// Spec as declared.
    pub spec: String,
    /// The question in one line: that it is new here, or that it changed.
    pub reason: String,
    /// The changes or the files, in lines, safe to print.
    pub details: String,
}

/// Trust record of a running plugin, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustShown {
    /// Hash over its files.
    pub hash: String,
    /// Number of files.
    pub files: usize,
    /// How it came to be trusted.
    pub by: TrustedBy,
    /// Time in milliseconds since the Unix epoch.
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
