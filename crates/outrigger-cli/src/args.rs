//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use crate::audit_args::{AuditCommand, AuditFilter, ExportForm};
pub(crate) use crate::tool_args::ToolCommand;

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

/// Log levels, in the reference's spelling.
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
    /// Execute for a brain elsewhere: read, write, edit and commands, over a WebSocket
    Bridge(crate::bridge::BridgeArgs),
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
    /// See who did what on whose word, and check that the record of it is whole
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

/// `outrigger run`.
#[derive(Args, Debug, Default)]
pub(crate) struct RunArgs {
    /// What to say; more comes from standard input when that is not a terminal
    pub(crate) message: Vec<String>,
    /// Run this slash command, with the message as its arguments
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    /// Go on with the last session of this folder
    #[arg(short = 'c', long = "continue")]
    pub(crate) resume: bool,
    /// Go on with this session
    #[arg(short = 's', long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Work in a copy of the session (with -c or -s)
    #[arg(long)]
    pub(crate) fork: bool,
    /// Model, as provider/model
    #[arg(short = 'm', long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Named set of model options
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// File or folder to go with the message; can be given more than once
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Title of the session; empty: the message
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "TITLE")]
    pub(crate) title: Option<String>,
    /// Show what the model thinks
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Allow what no rule denies, without asking
    #[arg(long)]
    pub(crate) auto: bool,
    /// Show start and result of a tool apart instead of as one
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Default)]
    pub(crate) format: Format,
    /// Run it on this server instead of here
    #[arg(long, value_name = "URL")]
    pub(crate) attach: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print errors only (set by `demo`, which tells the turn when it is over)
    #[arg(skip)]
    pub(crate) quiet: bool,
}

/// Forms of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The answer on standard output, the rest on standard error
    #[default]
    Default,
    /// One JSON event per line on standard output
    Json,
}

/// `outrigger demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Keep the demo's project here instead of in a temporary folder
    #[arg(long, value_name = "PATH")]
    pub(crate) keep: Option<PathBuf>,
}

/// `outrigger serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Port; without it that of the configuration, else 4096 if that is free, else any
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Name or address to listen on; without it that of the configuration, else 127.0.0.1
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,
    /// Ask nobody for a password (on this machine only)
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// Further origin of pages that may ask; can be given more than once
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,
    /// Further name by which clients reach this server; can be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
}

/// How to log in to a server.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServerArgs {
    /// Password of the server; else that of OPENCODE_SERVER_PASSWORD, else the one kept on this machine
    #[arg(short = 'p', long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// User of the server; else that of OPENCODE_SERVER_USERNAME, else `opencode`
    #[arg(short = 'u', long, value_name = "NAME")]
    pub(crate) username: Option<String>,
}

/// `outrigger attach`.
#[derive(Args, Debug)]
pub(crate) struct AttachArgs {
    /// Address of the server
    pub(crate) url: String,
    /// Go on with the last session of the folder
    #[arg(short = 'c', long = "continue")]
    pub(crate) resume: bool,
    /// Go on with this session
    #[arg(short = 's', long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Work in a copy of the session (with -c or -s)
    #[arg(long)]
    pub(crate) fork: bool,
    /// Show what the model thinks
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Allow what no rule denies, without asking
    #[arg(long)]
    pub(crate) auto: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// `outrigger session`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of this project
    List {
        /// Of every project
        #[arg(long)]
        all: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a session's conversation, tools merged with their results
    Show {
        /// Which; without it the last one
        id: Option<String>,
    },
    /// Delete a session and its child sessions
    Delete {
        /// Which
        id: String,
    },
    /// Print a session as JSON
    Export {
        /// Which; without it the last one
        id: Option<String>,
    },
    /// Replay a session's turns through the kernel and check the log's hash chain
    Verify {
        /// Which; without it every session of this folder
        id: Option<String>,
        /// Every session of the store
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
    /// Read what can be read from a damaged store into a new one
    Salvage {
        /// The new file
        into: PathBuf,
    },
}

/// `outrigger plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Show which plugin uses which hook, tool, event and client method
    Matrix {
        /// As comma-separated values
        #[arg(long, conflicts_with = "json")]
        csv: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Only what the plugins declare and name, not what they did here
        #[arg(long)]
        declared: bool,
    },
    /// Load the plugins and say how far each came, and why not further
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the hook points, those of plugins too, what handlers may do there, and which plugins have one
    Points {
        /// As JSON, with the schemas
        #[arg(long)]
        json: bool,
        /// As TypeScript types of what plugins declare, of one plugin where it is named
        #[arg(long, value_name = "PLUGIN", num_args = 0..=1, conflicts_with = "json")]
        types: Option<Option<String>>,
    },
    /// Show every plugin that there is, bundled ones too, which of them should run, and what decided about the others
    Snapshot(SnapshotArgs),
    /// Let a plugin run, in your own outrigger.toml; a bundled one too
    Enable {
        /// Which, by the id that `snapshot` shows
        id: String,
    },
    /// Let a plugin not run, in your own outrigger.toml; a bundled one too
    Disable {
        /// Which, by the id that `snapshot` shows
        id: String,
    },
    /// Let a plugin act in your place (approve, rewrite, model, prompt), in your own outrigger.toml; without a grant, show what it has
    Grant(GrantArgs),
    /// Install what plugins need from npm (the SDK), ahead of their first use
    Setup,
    /// Show what the hooks of each plugin cost: calls, p50, p95, p99
    Perf {
        /// Only in this session; else in all that is recorded
        #[arg(short = 's', long, value_name = "ID")]
        session: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show every call of a plugin's hook in a session, in order, with what it changed
    Trace {
        /// Which; the latest one of this folder if none is given
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a plugin says of itself, what it asks for, what it is given, and what it was trusted as
    Show {
        /// Which
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what changed in plugins since they were trusted, and trust it
    Review(ReviewArgs),
    /// Show which plugins are signed, and by which key of the machine's policy
    Verify {
        /// Which; all if none is given
        name: Option<String>,
        /// Print the text that a signature of it signs, and nothing else
        #[arg(long, requires = "name", conflicts_with = "json")]
        digest: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Find the plugin that breaks a command, by running it with some of them left out
    Bisect(BisectArgs),
    /// Allow the command hooks of the project's .claude/settings.json files as they are, after showing them
    AllowHooks {
        /// Only show them, and whether they are allowed
        #[arg(long, conflicts_with = "revoke")]
        list: bool,
        /// Take it back
        #[arg(long)]
        revoke: bool,
    },
    /// Take a plugin of a running server out of the run, until it is resumed; its process stays
    Suspend(LifeArgs),
    /// Bring a suspended plugin of a running server back
    Resume(LifeArgs),
    /// Load a plugin of a running server anew: the next generation takes over when it answers, else the old one runs on
    Reload(LifeArgs),
    /// Watch what the plugins of a running server use, until interrupted
    Top {
        /// Address of the server
        url: String,
        /// Print once and end
        #[arg(long)]
        once: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// `outrigger plugin grant`.
#[derive(Debug, clap::Args)]
pub(crate) struct GrantArgs {
    /// Which plugin, by the id that `snapshot` shows, its npm package or its file
    pub(crate) name: String,
    /// What it may: approve (answer permission questions), rewrite (change tool calls), model (be the model that calls tools), prompt (start turns)
    #[arg(value_name = "GRANT")]
    pub(crate) grants: Vec<String>,
    /// Take it back
    #[arg(long, requires = "grants")]
    pub(crate) revoke: bool,
}

/// `outrigger plugin suspend`, `resume` and `reload`.
#[derive(Debug, clap::Args)]
pub(crate) struct LifeArgs {
    /// Which
    pub(crate) id: String,
    /// Address of the server
    #[arg(long, default_value = "http://127.0.0.1:4096")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// `outrigger plugin snapshot`.
#[derive(Debug, clap::Args)]
pub(crate) struct SnapshotArgs {
    /// Everything about the candidates of one id
    #[arg(long, value_name = "ID", conflicts_with = "json")]
    pub(crate) explain: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outrigger plugin review`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReviewArgs {
    /// Which; all if none is given
    pub(crate) name: Option<String>,
    /// Trust them as they are now
    #[arg(long)]
    pub(crate) accept: bool,
    /// Trust them, and write them into the project's outrigger.lock, which refuses anything else from then on
    #[arg(long)]
    pub(crate) pin: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outrigger plugin bisect`.
#[derive(Args, Debug)]
pub(crate) struct BisectArgs {
    /// Seconds that the command may take; one that takes longer counts as bad
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Show the end of what each run prints, not only of the first
    #[arg(long)]
    pub(crate) show: bool,
    /// The command, behind `--`; exit code 0: good, 125: it cannot tell, else bad
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(crate) command: Vec<String>,
}

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

/// `outrigger auth`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Store a key, or log in with what a plugin offers
    Login {
        /// Provider, by id or name; without it there is a list to choose from
        #[arg(short, long, value_name = "ID")]
        provider: Option<String>,
        /// Way to log in, by its label
        #[arg(short, long, value_name = "LABEL")]
        method: Option<String>,
    },
    /// List credentials with the place that each comes from
    #[command(visible_alias = "ls")]
    List {
        /// As JSON, without the secrets
        #[arg(long)]
        json: bool,
    },
    /// Forget a credential
    Logout {
        /// Provider, by id or name; without it there is a list to choose from
        provider: Option<String>,
    },
}

/// `outrigger models`.
#[derive(Args, Debug)]
pub(crate) struct ModelsArgs {
    /// Of this provider only
    pub(crate) provider: Option<String>,
    /// With limits, prices and the rest, as JSON
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// `outrigger config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every value with the place that it came from
    Show {
        /// The merged document as JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Let settings of the project count that changed while Outrigger ran
    Allow,
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
