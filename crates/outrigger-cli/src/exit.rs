//! Exit codes, as documented in `docs/cli/exit-codes.md`.

/// The turn or the request failed.
pub(crate) const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
pub(crate) const USAGE: u8 = 2;
/// A plugin did not load, and `--strict-plugins` makes that an error.
pub(crate) const PLUGINS: u8 = 3;
/// The user cancelled.
pub(crate) const CANCELLED: u8 = 130;
/// Terminated by SIGTERM.
pub(crate) const TERMINATED: u8 = 143;
