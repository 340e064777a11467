//! The command lines of `outrigger auth` and `models`.

use clap::{Args, Subcommand};

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
