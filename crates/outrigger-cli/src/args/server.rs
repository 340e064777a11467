//! The command lines of `outrigger serve`, `attach` and `bridge`, and how clients log in to a server.

use std::path::PathBuf;

use clap::Args;

use super::continued::ContinueArgs;

/// `outrigger serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Port (default: `server.port`, else 4096 if free, else any)
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Host name or address to listen on (default: `server.hostname`, else 127.0.0.1)
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,
    /// Require no password (loopback only)
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// Additional origin to allow; can be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,
    /// Additional host name to accept; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
}

/// `outrigger web`.
#[derive(Args, Debug)]
pub(crate) struct WebArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Print the address of the page instead of opening a browser
    #[arg(long)]
    pub(crate) no_open: bool,
}

/// How to log in to a server.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ServerArgs {
    /// Password of the server (default: OPENCODE_SERVER_PASSWORD, else the one stored on this machine)
    #[arg(short = 'p', long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// User of the server (default: OPENCODE_SERVER_USERNAME, else `opencode`)
    #[arg(short = 'u', long, value_name = "NAME")]
    pub(crate) username: Option<String>,
}

/// `outrigger attach`.
#[derive(Args, Debug)]
pub(crate) struct AttachArgs {
    /// URL of the server
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) continued: ContinueArgs,
    /// Show the reasoning of the model
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Approve everything that no rule denies
    #[arg(long)]
    pub(crate) auto: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// `outrigger bridge`.
#[derive(Args, Debug)]
pub(crate) struct BridgeArgs {
    /// Port on 127.0.0.1 (0: any free port)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// Origin that may connect, such as https://app.example; can be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,
    /// Accept programs that send no Origin (a browser always sends it)
    #[arg(long)]
    pub(crate) no_origin: bool,
    /// Command line to allow, such as "git log **"; can be repeated
    #[arg(long, value_name = "RULE", conflicts_with = "shell")]
    pub(crate) command: Vec<String>,
    /// Allow any command line, run by a shell in the sandbox
    #[arg(long)]
    pub(crate) shell: bool,
    /// Additional folder that allowed commands may read; can be repeated
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    pub(crate) read: Vec<PathBuf>,
    /// Maximum number of concurrent calls
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) concurrent: u16,
    /// Timeout of a call, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) deadline: u64,
}
