//! Options to continue a session, shared by `outrigger`, `run` and `attach`.

use clap::Args;
use outrigger_client::session::SessionSelector;

use crate::failure::Failure;

/// The session that goes on; none of these for a new one.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ContinueArgs {
    /// Continue the last session of this folder
    #[arg(short = 'c', long = "continue")]
    pub(crate) resume: bool,
    /// Continue this session
    #[arg(short = 's', long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Fork the session first (with -c or -s)
    #[arg(long)]
    pub(crate) fork: bool,
}

impl ContinueArgs {
    /// Returns whether a session is requested.
    pub(crate) fn has_session(&self) -> bool {
        self.resume || self.session.is_some()
    }

    /// Returns the requested session, for the client.
    ///
    /// # Errors
    /// `--fork` without a requested session.
    pub(crate) fn wanted(&self) -> Result<SessionSelector<'_>, Failure> {
        if self.fork && !self.has_session() {
            return Err(Failure::usage(
                "--fork needs a session to copy",
                Some("add -c or -s ID".into()),
            ));
        }
        Ok(SessionSelector {
            id: self.session.as_deref(),
            latest: self.resume,
            fork: self.fork,
        })
    }
}
