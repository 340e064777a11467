//! The command line of `outrigger mcp`.

use clap::{Args, Subcommand};

/// `outrigger mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start the MCP servers and show their state
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a server to the opencode.json of the project
    Add(McpAdd),
    /// Remove a server from the opencode.json that has it
    #[command(visible_alias = "rm")]
    Remove {
        /// Server
        name: String,
    },
    /// Log in to a remote server; without a name, show the logins
    Auth {
        /// Server
        name: Option<String>,
    },
    /// Log out of a server
    Logout {
        /// Server
        name: String,
    },
    /// Allow a server of .mcp.json or of a skill; without a name, list them
    Allow {
        /// Server
        name: Option<String>,
        /// Revoke it
        #[arg(long, requires = "name")]
        revoke: bool,
    },
    /// Offer sessions and tools to other agents, over standard input and output
    Serve(McpServe),
    /// Show everything known about a server
    Debug {
        /// Server
        name: String,
    },
}

/// `outrigger mcp serve`.
#[derive(Args, Debug)]
pub(crate) struct McpServe {
    /// Serve streamable HTTP on this port of the loopback interface instead
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Agent that a client may name; can be repeated. Without it, the default agent alone
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Vec<String>,
    /// Require no password (with --port)
    #[arg(long, requires = "port")]
    pub(crate) no_auth: bool,
}

/// `outrigger mcp add`.
#[derive(Args, Debug)]
pub(crate) struct McpAdd {
    /// Name of the server
    pub(crate) name: String,
    /// Address of a remote server
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Header for a remote server; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// Environment variable for a local server; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Add it to your own opencode.json instead
    #[arg(short = 'g', long)]
    pub(crate) global: bool,
    /// Replace an existing server
    #[arg(long)]
    pub(crate) force: bool,
    /// Command of a local server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
