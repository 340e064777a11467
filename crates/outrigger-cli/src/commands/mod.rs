//! The commands: one module each, named after the command.

mod acp;
mod attach;
mod audit;
mod auth;
mod bridge;
mod completions;
mod config;
mod demo;
mod doctor;
mod man;
mod mcp;
mod mcp_secrets;
mod mcp_serve;
mod models;
mod open;
mod plugin;
mod run;
mod sandbox;
mod serve;
mod session;
mod settings_file;
mod stats;
mod tool;
mod upgrade;

use crate::args::{AuthCommand, Cli, Command, McpCommand};
use crate::failure::Failure;
use crate::signals::guarded;

/// Runs the requested command.
pub(crate) async fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let global = cli.global;
    let Some(command) = cli.command else {
        return guarded(|signals| open::open(&global, cli.open, signals)).await;
    };
    if let Some(option) = cli.open.given() {
        return Err(Failure::usage(
            format!("`{option}` before a command has no meaning"),
            Some("write it after the command".into()),
        ));
    }
    match command {
        Command::Run(args) => guarded(|signals| run::run(&global, args, signals)).await,
        Command::Demo(args) => guarded(|signals| demo::demo(&global, args, signals)).await,
        Command::Serve(args) => guarded(|signals| serve::serve(&global, args, signals)).await,
        Command::Web(args) => guarded(|signals| serve::web::web(&global, args, signals)).await,
        Command::Bridge(args) => guarded(|signals| bridge::bridge(&global, args, signals)).await,
        Command::Acp { login: true } => {
            let (provider, method) = (None, None);
            auth::auth(&global, AuthCommand::Login { provider, method }).await
        }
        Command::Acp { login: false } => guarded(|signals| acp::acp(&global, signals)).await,
        Command::Attach(args) => guarded(|signals| attach::attach(&global, args, signals)).await,
        Command::Session(command) => session::session(&global, command).await,
        Command::Export(args) => session::export::export(&global, args),
        Command::Import(args) => session::import::import(&global, args).await,
        Command::Auth(command) => auth::auth(&global, command).await,
        Command::Models(args) => models::models(&global, args).await,
        Command::Stats(args) => stats::stats(&global, &args),
        Command::Tool(command) => tool::tool(&global, command).await,
        Command::Sandbox { command } => sandbox::sandbox(global, &command).await,
        Command::Plugin(command) => plugin::plugin(&global, command).await,
        Command::Mcp(McpCommand::Serve(args)) => {
            guarded(|signals| mcp_serve::serve(&global, args, signals)).await
        }
        Command::Mcp(command) => mcp::mcp(&global, command).await,
        Command::Config(command) => config::config(&global, command),
        Command::Audit(command) => audit::audit(&global, command),
        Command::Trust { path, revoke } => config::trust(global, path, revoke),
        Command::Upgrade => upgrade::upgrade(),
        Command::Doctor => doctor::doctor(&global).await,
        Command::Completions { shell } => {
            completions::print(shell);
            Ok(0)
        }
        Command::Man { command, out } => man::man(&command, out.as_deref()),
    }
}
