//! The command line of `outrigger plugin`.

use clap::{Args, Subcommand};

use super::server::ServerArgs;

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
#[derive(Debug, Args)]
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
#[derive(Debug, Args)]
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
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Everything about the candidates of one id
    #[arg(long, value_name = "ID", conflicts_with = "json")]
    pub(crate) explain: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outrigger plugin review`.
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Which; all if none is given
    pub(crate) name: Option<String>,
    /// Show changes to their end
    #[arg(long)]
    pub(crate) all: bool,
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
