//! The command line.

mod audit;
mod auth;
mod config;
mod mcp;
mod plugin;
mod run;
mod server;
mod session;
mod tool;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use self::audit::{AuditCommand, AuditFilter, ExportForm};
pub(crate) use self::auth::{AuthCommand, ModelsArgs};
pub(crate) use self::config::ConfigCommand;
pub(crate) use self::mcp::{McpAdd, McpCommand};
pub(crate) use self::plugin::{
    BisectArgs, GrantArgs, LifeArgs, PluginCommand, ReviewArgs, SnapshotArgs,
};
pub(crate) use self::run::{DemoArgs, Format, RunArgs};
pub(crate) use self::server::{AttachArgs, BridgeArgs, ServeArgs, ServerArgs};
pub(crate) use self::session::SessionCommand;
pub(crate) use self::tool::ToolCommand;

/// A coding agent that runs OpenCode's plugins beside itself.
#[derive(Debug, Parser)]
#[command(name = "outrigger", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Global {
    /// Print the log on standard error
    #[arg(long, global = true)]
    pub(crate) print_logs: bool,
    /// How much to log
    #[arg(long, global = true, value_enum, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// Load no external plugins
    #[arg(long, global = true)]
    pub(crate) pure: bool,
    /// End with an error when a plugin does not load
    #[arg(long, global = true)]
    pub(crate) strict_plugins: bool,
    /// Let the settings of the folder count, for this run
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Work in this folder instead of the current one
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
}

/// Log levels, in OpenCode's spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum LogLevel {
    #[value(alias = "debug")]
    Debug,
    #[value(alias = "info")]
    Info,
    #[value(alias = "warn")]
    Warn,
    #[value(alias = "error")]
    Error,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a prompt and print the answer
    Run(RunArgs),
    /// See a whole turn with plugins: no key, no network, no npm
    Demo(DemoArgs),
    /// Answer clients over HTTP
    Serve(ServeArgs),
    /// Execute for a remote controller: read, write, edit and commands, over a WebSocket
    Bridge(BridgeArgs),
    /// Talk with a running server
    Attach(AttachArgs),
    /// Look at and manage sessions
    #[command(subcommand)]
    Session(SessionCommand),
    /// See what tools there are, and what each declares
    #[command(subcommand)]
    Tool(ToolCommand),
    /// Run a command in the sandbox of the `bash` tool
    Sandbox {
        /// The command and its arguments
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            required = true,
            value_name = "COMMAND"
        )]
        command: Vec<OsString>,
    },
    /// Log in to providers, and see where keys come from
    #[command(subcommand, visible_alias = "providers")]
    Auth(AuthCommand),
    /// List the models that can be used
    Models(ModelsArgs),
    /// Look at and set up plugins
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Look at, add and log in at MCP servers
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// See who did what, authorised by whom, and check that the record of it is whole
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Let the settings of a folder count as they are now
    Trust {
        /// The folder; without it the current one
        path: Option<PathBuf>,
        /// Forget that it was trusted
        #[arg(long)]
        revoke: bool,
    },
    /// Check what is here and what is missing
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
