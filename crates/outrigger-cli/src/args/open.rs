//! The options of `outrigger` without a command.

use clap::Args;

use super::continued::ContinueArgs;
use super::server::ServerArgs;

/// `outrigger`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options without a command")]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    pub(crate) continued: ContinueArgs,
    /// Model to use, as provider/model
    #[arg(short = 'm', long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Agent to use
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Prompt to begin with
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Connect to this server instead of starting an agent
    #[arg(long, value_name = "URL")]
    pub(crate) attach: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl OpenArgs {
    /// Returns the first given option: none of them can be combined with a command.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.continued.resume, "--continue"),
            (self.continued.session.is_some(), "--session"),
            (self.continued.fork, "--fork"),
            (self.model.is_some(), "--model"),
            (self.agent.is_some(), "--agent"),
            (self.prompt.is_some(), "--prompt"),
            (self.attach.is_some(), "--attach"),
            (self.server.password.is_some(), "--password"),
            (self.server.username.is_some(), "--username"),
        ];
        given
            .into_iter()
            .find(|(given, _)| *given)
            .map(|(_, name)| name)
    }
}
