//! The command line of `outrigger mcp`.

use clap::{Args, Subcommand};

/// `outrigger mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start the MCP servers and say how each is
    #[command(visible_alias = "ls")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a server into the project's opencode.json
    Add(McpAdd),
    /// Log in at a remote server; without a name, say where one is logged in
    Auth {
        /// Which
        name: Option<String>,
    },
    /// Forget the login at a server
    Logout {
        /// Which
        name: String,
    },
    /// Let servers of the project's .mcp.json and of skills be started; without a name, say which there are
    Allow {
        /// Which
        name: Option<String>,
        /// Take it back
        #[arg(long, requires = "name")]
        revoke: bool,
    },
    /// Say all that is known of a server, and where one would log in
    Debug {
        /// Which
        name: String,
    },
}

/// `outrigger mcp add`.
#[derive(Args, Debug)]
pub(crate) struct McpAdd {
    /// Its name
    pub(crate) name: String,
    /// Address of a remote server
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Header for a remote server; can be given more than once
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// Variable for a local server; can be given more than once
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Into the user's opencode.json instead
    #[arg(long)]
    pub(crate) global: bool,
    /// Replace a server of that name
    #[arg(long)]
    pub(crate) force: bool,
    /// Command of a local server, behind `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
