//! The command lines of `outrigger serve`, `attach` and `bridge`, and how clients log in to a server.

use std::path::PathBuf;

use clap::Args;

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

/// `outrigger bridge`.
#[derive(Args, Debug)]
pub(crate) struct BridgeArgs {
    /// Port on 127.0.0.1; any that is free without it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// Origin of pages that may connect, as https://app.example; can be given more than once
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,
    /// Let programs connect that send no Origin (our own agent is one; a browser always sends it)
    #[arg(long)]
    pub(crate) no_origin: bool,
    /// Command line that is executed, as "git log **"; can be given more than once, without any none is
    #[arg(long, value_name = "RULE", conflicts_with = "shell")]
    pub(crate) command: Vec<String>,
    /// Execute any command line, by a shell, in the sandbox
    #[arg(long)]
    pub(crate) shell: bool,
    /// Folder that listed commands read as well; can be given more than once
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    pub(crate) read: Vec<PathBuf>,
    /// Most calls at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) concurrent: u16,
    /// Longest call, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) deadline: u64,
}
