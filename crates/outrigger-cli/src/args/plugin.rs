//! The command line of `outrigger plugin`.

use clap::{Args, Subcommand};

use super::server::ServerArgs;

/// `outrigger plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Show which plugin uses which hook, tool, event and client method
    Matrix {
        /// Print CSV
        #[arg(long, conflicts_with = "json")]
        csv: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Only what plugins declare, not what they did
        #[arg(long)]
        declared: bool,
    },
    /// Load the plugins and show the state of each
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the hook points, what handlers may do there, and who handles them
    Points {
        /// Print JSON, with the schemas
        #[arg(long)]
        json: bool,
        /// Print TypeScript types of what plugins declare
        #[arg(long, value_name = "PLUGIN", num_args = 0..=1, conflicts_with = "json")]
        types: Option<Option<String>>,
    },
    /// Load a plugin, or all, and try the examples of what it declares
    Test {
        /// Plugin
        plugin: Option<String>,
    },
    /// List all plugins, and why each runs or does not
    Snapshot(SnapshotArgs),
    /// Add a plugin to the opencode.json of the project, and load it
    #[command(visible_alias = "add")]
    Install {
        /// npm package, such as NAME or NAME@1.2, or path of a file or folder
        spec: String,
        /// Add it to your own opencode.json instead
        #[arg(short = 'g', long)]
        global: bool,
    },
    /// Install newer versions of the npm plugins of the project
    #[command(visible_alias = "upgrade")]
    Update {
        /// npm package (default: all that are listed without an exact version)
        name: Option<String>,
    },
    /// Remove a plugin from the opencode.json that lists it
    #[command(visible_alias = "rm")]
    Remove {
        /// npm package, with or without a version, or path, as it is listed
        spec: String,
    },
    /// Enable a plugin in your own outrigger.toml
    Enable {
        /// Plugin, by the ID that `snapshot` shows
        id: String,
    },
    /// Disable a plugin in your own outrigger.toml
    Disable {
        /// Plugin, by the ID that `snapshot` shows
        id: String,
    },
    /// Grant a plugin a right in your own outrigger.toml; without one, show its grants
    Grant(GrantArgs),
    /// Install the SDK that plugins need from npm
    Setup,
    /// Show the cost of hooks: calls, p50, p95, p99
    Perf {
        /// Only this session
        #[arg(short = 's', long, value_name = "ID")]
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show every hook call of a session, with what it changed
    Trace {
        /// Session, or the start of its ID (default: the last one)
        id: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the manifest, requests, grants and trust of a plugin
    Show {
        /// Plugin
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Review and trust changes of plugins
    Review(ReviewArgs),
    /// Verify the signatures of plugins
    Verify {
        /// Plugin (default: all)
        name: Option<String>,
        /// Print only the text to sign
        #[arg(long, requires = "name", conflicts_with = "json")]
        digest: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find the plugin that breaks a command
    Bisect(BisectArgs),
    /// Allow the command hooks of the project, after showing them
    AllowHooks {
        /// Only list them
        #[arg(long, conflicts_with = "revoke")]
        list: bool,
        /// Revoke it
        #[arg(long)]
        revoke: bool,
    },
    /// Suspend a plugin of a running server
    Suspend(LifeArgs),
    /// Resume a suspended plugin of a running server
    Resume(LifeArgs),
    /// Reload a plugin of a running server; the old one runs on if the new one fails
    Reload(LifeArgs),
    /// Watch the resource use of plugins of a running server
    Top {
        /// URL of the server
        url: String,
        /// Print once and exit
        #[arg(long)]
        once: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// `outrigger plugin grant`.
#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// Plugin, by ID, npm package or file
    pub(crate) name: String,
    /// approve (answer permission questions), rewrite (change tool calls), model (be a model that calls tools) or prompt (start turns)
    #[arg(value_name = "GRANT")]
    pub(crate) grants: Vec<String>,
    /// Revoke it
    #[arg(long, requires = "grants")]
    pub(crate) revoke: bool,
}

/// `outrigger plugin suspend`, `resume` and `reload`.
#[derive(Debug, Args)]
pub(crate) struct LifeArgs {
    /// Plugin
    pub(crate) id: String,
    /// URL of the server
    #[arg(long, default_value = "http://127.0.0.1:4096")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// `outrigger plugin snapshot`.
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Explain the decision about one ID
    #[arg(long, value_name = "ID", conflicts_with = "json")]
    pub(crate) explain: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outrigger plugin review`.
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Plugin (default: all)
    pub(crate) name: Option<String>,
    /// Show changes in full
    #[arg(long)]
    pub(crate) all: bool,
    /// Trust them as they are
    #[arg(long)]
    pub(crate) accept: bool,
    /// Trust them and pin them in the outrigger.lock of the project
    #[arg(long)]
    pub(crate) pin: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outrigger plugin bisect`.
#[derive(Args, Debug)]
pub(crate) struct BisectArgs {
    /// Timeout of the command, in seconds; a timeout counts as bad
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Show the output of every run, not only of the first
    #[arg(long)]
    pub(crate) show: bool,
    /// Command, after `--`; exit code 0 is good, 125 undecided, others bad
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(crate) command: Vec<String>,
}
