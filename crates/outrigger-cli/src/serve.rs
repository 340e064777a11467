//! `outrigger serve`: the HTTP API on a port.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_agent::{Answering, Boot, Folders};
use outrigger_server::Hub;

use crate::args::{Global, ServeArgs};
use crate::interrupt::Signals;
use crate::report::Failure;
use crate::view::out;

/// Runs the command. No agent is started before the first request for its folder.
pub(crate) async fn serve(
    global: &Global,
    args: ServeArgs,
    signals: Signals,
) -> Result<u8, Failure> {
    let directory = crate::run::directory(global)?;
    let env = crate::run::environment();
    let folders = Folders::from_env(&env);
    let listening = outrigger_server::listen(&args.hostname, args.port)
        .await
        .map_err(|error| cannot_listen(&args, &error))?;
    let pure = global.pure;
    let make = move |directory: PathBuf| {
        let mut boot = Boot::new(directory, env.clone());
        boot.pure = pure;
        boot.answering = Answering::Ask;
        boot
    };
    let hub = Hub::new(folders, directory, Arc::new(make));
    let router = outrigger_server::serve_router(hub.clone());
    out(&format!(
        "{} server listening on http://{}\n",
        name(),
        listening.address
    ));
    // A turn is not in the way of a signal here: ending is what cancels it.
    let turn = signals.turn();
    let stop = async {
        signals.cancelled().await;
        drop(turn);
    };
    listening
        .serve(router, &hub, stop)
        .await
        .map_err(|error| Failure::new("serve.port", error.to_string(), None))?;
    Ok(0)
}

fn cannot_listen(args: &ServeArgs, error: &std::io::Error) -> Failure {
    let port = args
        .port
        .map_or_else(String::new, |port| format!(" port {port}"));
    Failure::new(
        "serve.port",
        format!("cannot listen on {}{port}: {error}", args.hostname),
        Some("choose another with --port, or leave it out for any that is free".into()),
    )
}

/// The name that this program was called by, when that is the reference's: its SDK starts `opencode serve` and waits for a
/// line that begins so.
fn name() -> &'static str {
    let called = std::env::args_os().next().map(PathBuf::from);
    let called = called.as_deref().and_then(Path::file_name);
    if called.is_some_and(|name| name == "opencode") {
        "opencode"
    } else {
        "outrigger"
    }
}
