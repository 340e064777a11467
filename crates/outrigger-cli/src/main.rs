//! The `outrigger` command.

mod args;
mod boot;
mod client;
mod commands;
mod consent;
mod exit;
mod failure;
mod logging;
mod signals;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command, Format};
use crate::failure::Failure;

fn main() -> ExitCode {
    outrigger_sandbox::memory::give_back_large_blocks();
    outrigger_sandbox::open_files::raise_limit();
    let arguments = args::command_line(std::env::args_os());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    if let Some(error) = cli.needs_command(arguments) {
        return refuse(&error);
    }
    logging::init(&cli.global);
    outrigger_sandbox::hide_host();
    let format = match &cli.command {
        Some(Command::Run(args)) => args.format(),
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
            return failure::fail(
                &Failure::new(
                    "cli.runtime",
                    format!("cannot start the async runtime: {error}"),
                    None,
                ),
                format,
            );
        }
    };
    let outcome = runtime.block_on(commands::dispatch(cli));
    // Background tasks must not keep the process alive.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    // Forbidden changes of processes are undone after they have ended.
    outrigger_sandbox::wait_for_dropped(std::time::Duration::from_secs(2));
    match outcome {
        Ok(code) => terminal::exit_code(code),
        Err(failure) => failure::fail(&failure, format),
    }
}

/// Prints an error of the command line, or the requested help.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if error.use_stderr() {
        terminal::err(&text)
    } else {
        terminal::out(&text)
    }
    terminal::exit_code(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE))
}
