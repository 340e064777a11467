//! The command line.

mod audit;
mod auth;
pub(crate) mod checks;
mod config;
mod continued;
mod mcp;
mod open;
mod plugin;
mod run;
mod server;
mod session;
mod tool;
mod transfer;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use self::audit::{AuditCommand, AuditFilter, ExportForm};
pub(crate) use self::auth::{AuthCommand, ModelsArgs};
pub(crate) use self::config::ConfigCommand;
pub(crate) use self::mcp::{McpAdd, McpCommand, McpServe};
pub(crate) use self::open::OpenArgs;
pub(crate) use self::plugin::{
    BisectArgs, GrantArgs, LifeArgs, PluginCommand, ReviewArgs, SnapshotArgs,
};
pub(crate) use self::run::{DemoArgs, Format, RunArgs};
pub(crate) use self::server::{AttachArgs, BridgeArgs, ServeArgs, ServerArgs, WebArgs};
pub(crate) use self::session::{SessionCommand, StatsArgs};
pub(crate) use self::tool::ToolCommand;
pub(crate) use self::transfer::{ExportArgs, FileForm, ImportArgs};

/// A coding agent that runs OpenCode's plugins beside itself.
#[derive(Debug, Parser)]
#[command(
    name = "outrigger",
    version,
    about = "A coding agent that runs OpenCode's plugins in sandboxed processes",
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// Without one, a conversation in the terminal
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Returns an error if a command is required because no user is at a terminal.
    pub(crate) fn needs_command(&self, arguments: Vec<OsString>) -> Option<clap::Error> {
        if self.command.is_some() || crate::terminal::is_interactive() {
            return None;
        }
        let command = Self::command()
            .subcommand_required(true)
            .arg_required_else_help(true);
        command.try_get_matches_from(arguments).err()
    }
}

/// Rewrites `outrigger -p PROMPT`, as users of Claude Code type it, to `outrigger run PROMPT`.
pub(crate) fn command_line(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let mut takes_value = false;
    let first = arguments.iter_mut().skip(1).find(|word| {
        let is_value = std::mem::take(&mut takes_value);
        takes_value = *word == "--dir" || *word == "--log-level";
        let is_global = word.to_str().is_some_and(|word| {
            matches!(
                word,
                "--print-logs" | "--pure" | "--strict-plugins" | "--trust"
            ) || word.starts_with("--dir=")
                || word.starts_with("--log-level=")
        });
        !is_value && !takes_value && !is_global
    });
    if let Some(print) = first.filter(|word| *word == "-p" || *word == "--print") {
        *print = "run".into();
    }
    arguments
}

/// Options of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print the log to standard error
    #[arg(long, global = true)]
    pub(crate) print_logs: bool,
    /// Log level
    #[arg(long, global = true, value_enum, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// Run without external plugins
    #[arg(long, global = true)]
    pub(crate) pure: bool,
    /// Fail if a plugin does not load
    #[arg(long, global = true)]
    pub(crate) strict_plugins: bool,
    /// Trust the settings of this folder for this run
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Run as if started in this folder
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
    #[command(visible_alias = "exec")]
    Run(RunArgs),
    /// Show a whole turn with plugins, without a key, network or npm
    Demo(DemoArgs),
    /// Start the HTTP server
    Serve(ServeArgs),
    /// Start the HTTP server and open its page in a browser
    Web(WebArgs),
    /// Run tools for a remote controller, over a WebSocket
    Bridge(BridgeArgs),
    /// Be the agent of an editor, over standard input and output (Agent Client Protocol)
    Acp {
        /// Log in to a provider, and do nothing else (editors add it to open a login in a terminal)
        #[arg(long)]
        login: bool,
    },
    /// Connect to a running server
    Attach(AttachArgs),
    /// List, show, export and delete sessions
    #[command(subcommand)]
    Session(SessionCommand),
    /// Write a conversation to a file: JSON, Markdown, HTML, OpenCode's form
    Export(ExportArgs),
    /// Import sessions of OpenCode, Claude Code or Codex, or exported ones
    Import(ImportArgs),
    /// List the tools and show what each declares
    #[command(subcommand)]
    Tool(ToolCommand),
    /// Run a command in the sandbox
    Sandbox {
        /// Command and its arguments
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            required = true,
            value_name = "COMMAND"
        )]
        command: Vec<OsString>,
    },
    /// Manage credentials of model providers
    #[command(subcommand, visible_alias = "providers")]
    Auth(AuthCommand),
    /// List models
    Models(ModelsArgs),
    /// Show tokens and cost, by day and by model
    Stats(StatsArgs),
    /// Install, inspect and control plugins
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Manage MCP servers
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Show and verify the audit log
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Trust the settings of a folder
    Trust {
        /// Folder (default: the current one)
        path: Option<PathBuf>,
        /// Revoke the trust
        #[arg(long)]
        revoke: bool,
    },
    /// Check the installation and the machine
    Doctor,
    /// Show how to upgrade this installation
    Upgrade,
    /// Generate a completion script for a shell
    Completions {
        /// Shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the man page of a command
    Man {
        /// Command, as in `outrigger man session show` (default: outrigger itself)
        command: Vec<String>,
        /// Write the pages of all commands into this folder
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        out: Option<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Returns words of a help text that look like type names.
    fn type_names(command: &mut clap::Command) -> Vec<String> {
        const NAMES: [&str; 4] = ["OpenCode", "OpenTelemetry", "TypeScript", "WebSocket"];
        let help = command.render_long_help().to_string();
        let words = help.split(|c: char| !c.is_alphanumeric() && c != ':');
        let is_type = |word: &&str| {
            let mut camel = word
                .as_bytes()
                .windows(2)
                .filter(|it| it[0].is_ascii_lowercase() && it[1].is_ascii_uppercase());
            (word.contains("::") || camel.next().is_some())
                && !NAMES.iter().any(|name| word.starts_with(name))
        };
        let found = words.filter(is_type).map(str::to_owned);
        let mut found: Vec<String> = found.collect();
        for below in command.get_subcommands_mut() {
            found.extend(type_names(below));
        }
        found
    }

    #[test]
    fn the_help_has_the_words_of_the_field() {
        let mut root = Cli::command().term_width(100);
        root.build();
        assert_eq!(type_names(&mut root), Vec::<String>::new());
        insta::assert_snapshot!(root.render_help(), @"
        A coding agent that runs OpenCode's plugins in sandboxed processes

        Usage: outrigger [OPTIONS] [COMMAND]

        Commands:
          run          Run a prompt and print the answer [alias: exec]
          demo         Show a whole turn with plugins, without a key, network or npm
          serve        Start the HTTP server
          web          Start the HTTP server and open its page in a browser
          bridge       Run tools for a remote controller, over a WebSocket
          acp          Be the agent of an editor, over standard input and output (Agent Client Protocol)
          attach       Connect to a running server
          session      List, show, export and delete sessions
          export       Write a conversation to a file: JSON, Markdown, HTML, OpenCode's form
          import       Import sessions of OpenCode, Claude Code or Codex, or exported ones
          tool         List the tools and show what each declares
          sandbox      Run a command in the sandbox
          auth         Manage credentials of model providers [alias: providers]
          models       List models
          stats        Show tokens and cost, by day and by model
          plugin       Install, inspect and control plugins
          mcp          Manage MCP servers
          config       Show the configuration
          audit        Show and verify the audit log
          trust        Trust the settings of a folder
          doctor       Check the installation and the machine
          upgrade      Show how to upgrade this installation
          completions  Generate a completion script for a shell
          man          Print the man page of a command
          help         Print this message or the help of the given subcommand(s)

        Options:
          -h, --help     Print help
          -V, --version  Print version

        Global options:
              --print-logs         Print the log to standard error
              --log-level <LEVEL>  Log level [possible values: DEBUG, INFO, WARN, ERROR]
              --pure               Run without external plugins
              --strict-plugins     Fail if a plugin does not load
              --trust              Trust the settings of this folder for this run
              --dir <PATH>         Run as if started in this folder

        Options without a command:
          -c, --continue                Continue the last session of this folder
          -s, --session <ID>            Continue this session
              --fork                    Fork the session first (with -c or -s)
          -m, --model <PROVIDER/MODEL>  Model to use, as provider/model
              --agent <NAME>            Agent to use
              --prompt <TEXT>           Prompt to begin with
              --attach <URL>            Connect to this server instead of starting an agent
          -p, --password <PASSWORD>     Password of the server (default: OPENCODE_SERVER_PASSWORD, else the one stored on this machine)
          -u, --username <NAME>         User of the server (default: OPENCODE_SERVER_USERNAME, else `opencode`)
        ");
    }

    /// Returns the parts of a command and its subcommands that `page` does not name.
    fn unnamed(command: &clap::Command, page: &str) -> Vec<String> {
        let options = command
            .get_arguments()
            .filter(|it| !it.is_hide_set())
            .filter_map(|it| it.get_long())
            .map(|it| format!("--{it}"));
        let mut missing: Vec<String> = options
            .filter(|option| option != "--help" && option != "--version" && !page.contains(option))
            .map(|option| format!("{} {option}", command.get_name()))
            .collect();
        for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            let name = below.get_name();
            if !["outrigger ", "`"]
                .iter()
                .any(|before| page.contains(&format!("{before}{name}")))
            {
                missing.push(name.to_owned());
            }
            missing.extend(unnamed(below, page));
        }
        missing
    }

    #[test]
    fn the_page_names_every_command_and_option() {
        let page = include_str!("../../../../docs/cli.md");
        assert_eq!(unnamed(&Cli::command(), page), Vec::<String>::new());
    }

    /// Returns the lines of a page that call this program, without surrounding text.
    fn calls(page: &str) -> Vec<&str> {
        let quoted = page.split('`').skip(1).step_by(2);
        let indented = page.lines().filter_map(|line| line.strip_prefix("    "));
        quoted
            .chain(indented)
            .filter(|it| it.starts_with("outrigger "))
            .filter_map(|it| it.split("  ").next()?.split(" -- ").next())
            .filter(|it| !it.contains('\n'))
            .collect()
    }

    /// Returns the first word of a call that is not a command or option.
    fn unknown(root: &clap::Command, call: &str) -> Option<String> {
        let mut command = root;
        for word in call.split_whitespace().skip(1) {
            if let Some(option) = word.strip_prefix("--") {
                let name = option
                    .split(['=', ']', '.', ','])
                    .next()
                    .unwrap_or_default();
                let is_known = command
                    .get_arguments()
                    .any(|it| it.get_long() == Some(name));
                if !is_known && name != "help" {
                    return Some(word.to_owned());
                }
            } else if !word.starts_with('-') && command.has_subcommands() {
                match command.find_subcommand(word) {
                    Some(below) => command = below,
                    None if word.chars().all(|it| it.is_ascii_lowercase() || it == '-') => {
                        return Some(word.to_owned());
                    }
                    None => break,
                }
            }
        }
        None
    }

    #[test]
    fn what_the_pages_call_is_there() {
        let mut root = Cli::command();
        root.build();
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let folders = ["", "plugins", "configuration"].map(|name| docs.join(name));
        let files = folders
            .iter()
            .flat_map(|it| std::fs::read_dir(it).unwrap().flatten());
        let mut count = 0;
        for path in files.map(|it| it.path()) {
            if path.extension().is_none_or(|it| it != "md") {
                continue;
            }
            let page = std::fs::read_to_string(&path).unwrap();
            for call in calls(&page) {
                assert_eq!(unknown(&root, call), None, "{}: {call}", path.display());
                count += 1;
            }
        }
        assert!(count > 100, "{count}");
        let unknown = |call: &str| unknown(&root, call);
        assert_eq!(unknown("outrigger plugin lst").as_deref(), Some("lst"));
        assert_eq!(
            unknown("outrigger run --nonsense x").as_deref(),
            Some("--nonsense")
        );
        assert_eq!(unknown("outrigger run --pure fly").as_deref(), None);
    }

    #[test]
    fn print_is_run_where_a_command_would_stand() {
        for (typed, meant) in [
            ("o -p hi", "o run hi"),
            ("o --print hi -c", "o run hi -c"),
            ("o --dir -p --pure -p hi", "o --dir -p --pure run hi"),
            ("o --log-level=DEBUG -p hi", "o --log-level=DEBUG run hi"),
            ("o run --attach u -p secret", "o run --attach u -p secret"),
            ("o", "o"),
        ] {
            let words = command_line(typed.split(' ').map(OsString::from));
            let words: Vec<&str> = words.iter().filter_map(|it| it.to_str()).collect();
            assert_eq!(words.join(" "), meant);
        }
    }
}
