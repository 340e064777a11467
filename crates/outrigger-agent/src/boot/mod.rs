//! Starting and shutting down an agent.

pub(crate) mod crash_cleanup;
pub(crate) mod flags;
pub(crate) mod notices;
pub(crate) mod options;
pub(crate) mod reviews;
pub(crate) mod setup;
pub(crate) mod shutdown;
pub(crate) mod start;
pub(crate) mod strict;
