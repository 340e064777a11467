//! The command lines of `outrigger auth` and `models`.

use clap::{Args, Subcommand};

/// `outrigger auth`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Log in to a provider, or store its key
    Login {
        /// Provider, by ID or name (default: choose from a list)
        #[arg(short, long, value_name = "ID")]
        provider: Option<String>,
        /// Login method, by its label
        #[arg(short, long, value_name = "LABEL")]
        method: Option<String>,
    },
    /// List credentials and where each comes from
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON, without the secrets
        #[arg(long)]
        json: bool,
    },
    /// Remove a credential
    Logout {
        /// Provider, by ID or name (default: choose from a list)
        provider: Option<String>,
    },
}

/// `outrigger models`.
#[derive(Args, Debug)]
pub(crate) struct ModelsArgs {
    /// Only this provider
    pub(crate) provider: Option<String>,
    /// Print limits, prices and capabilities as JSON
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Fetch the published catalog of models first
    #[arg(long)]
    pub(crate) refresh: bool,
}
