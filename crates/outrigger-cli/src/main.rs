//! The `outrigger` command.

mod allow_hooks;
mod args;
mod ask;
mod attach;
mod audit;
mod audit_args;
mod audit_otlp;
mod auth;
mod bisect;
mod bridge;
mod causes;
mod completions;
mod config;
mod demo;
mod doctor;
mod fetching;
mod follow;
mod input;
mod inquiry;
mod interrupt;
mod mcp;
mod memory;
mod models;
mod network;
mod paint;
mod plugin;
mod plugin_grant;
mod plugin_perf;
mod plugin_points;
mod plugin_review;
mod plugin_snapshot;
mod plugin_switch;
mod plugin_types;
mod plugin_verify;
mod progress;
mod question;
mod remote;
mod report;
mod run;
mod run_attached;
mod sandbox;
mod serve;
mod session;
mod telegram;
mod terminal;
mod told;
mod tool;
mod tool_args;
mod view;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command, Format};
use crate::report::Failure;

/// Exit codes, as documented in `docs/cli.md`.
pub(crate) mod exit {
    /// Something failed: the turn, or what was asked for.
    pub(crate) const FAILED: u8 = 1;
    /// The command line or the configuration is wrong.
    pub(crate) const USAGE: u8 = 2;
    /// A plugin did not load, and `--strict-plugins` makes that an error.
    pub(crate) const PLUGINS: u8 = 3;
    /// The user cancelled.
    pub(crate) const CANCELLED: u8 = 130;
    /// Ended by SIGTERM.
    pub(crate) const TERMINATED: u8 = 143;
}

fn main() -> ExitCode {
    outrigger_sandbox::memory::give_back_large_blocks();
    outrigger_sandbox::files::raise_limit();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    report::logging(&cli.global);
    outrigger_sandbox::hide_host();
    let format = match &cli.command {
        Command::Run(args) => args.format,
        _ => Format::Default,
    };
    // A turn waits for the network, processes and the disk: two threads are plenty, and each costs memory.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            return report::fail(
                &Failure::new(
                    "cli.runtime",
                    format!("cannot start the async runtime: {error}"),
                    None,
                ),
                format,
            );
        }
    };
    let outcome = runtime.block_on(dispatch(cli));
    // Whatever still runs in the background must not hold the process.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    match outcome {
        Ok(code) => terminal::exit_code(code),
        Err(failure) => report::fail(&failure, format),
    }
}

/// What is wrong with the command line, or the help that it asks for.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    match error.use_stderr() {
        true => terminal::err(&text),
        false => terminal::out(&text),
    }
    terminal::exit_code(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE))
}

async fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let global = cli.global;
    match cli.command {
        Command::Run(args) => interrupt::guarded(|signals| run::run(&global, args, signals)).await,
        Command::Demo(args) => {
            interrupt::guarded(|signals| demo::demo(&global, args, signals)).await
        }
        Command::Serve(args) => {
            interrupt::guarded(|signals| serve::serve(&global, args, signals)).await
        }
        Command::Bridge(args) => {
            interrupt::guarded(|signals| bridge::bridge(&global, args, signals)).await
        }
        Command::Attach(args) => {
            interrupt::guarded(|signals| attach::attach(&global, args, signals)).await
        }
        Command::Session(command) => session::session(&global, command).await,
        Command::Auth(command) => auth::auth(&global, command).await,
        Command::Models(args) => models::models(&global, args).await,
        Command::Tool(command) => tool::tool(&global, command).await,
        Command::Sandbox { command } => sandbox::sandbox(global, &command).await,
        Command::Plugin(command) => plugin::plugin(&global, command).await,
        Command::Mcp(command) => mcp::mcp(&global, command).await,
        Command::Config(command) => config::config(&global, command),
        Command::Audit(command) => audit::audit(&global, command),
        Command::Trust { path, revoke } => config::trust(global, path, revoke),
        Command::Doctor => doctor::doctor(&global).await,
        Command::Completions { shell } => {
            completions::print(shell);
            Ok(0)
        }
    }
}
