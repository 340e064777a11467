//! `outrigger serve`: the HTTP API on a port.

mod changed_settings;
mod memory;
mod network;
mod telegram;
pub(crate) mod web;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_agent::{Answering, Boot, Folders, ProjectLocation};
use outrigger_server::{Guard, Hub, Login, MakeBoot, PageSession};
use tokio::task::JoinHandle;

use self::network::Network;
use self::web::Page;
use crate::args::{Global, ServeArgs};
use crate::failure::Failure;
use crate::signals::{Signals, Turn};
use crate::terminal::{err, out};
use outrigger_client::USERNAME;

/// Runs the command. No agent is started before the first request for its folder, unless plugins must load
/// (`--strict-plugins`).
pub(crate) async fn serve(
    global: &Global,
    args: ServeArgs,
    signals: Signals,
) -> Result<u8, Failure> {
    serve_with(global, args, signals, None).await
}

/// Listens and serves; a page is shown once the server listens.
pub(crate) async fn serve_with(
    global: &Global,
    args: ServeArgs,
    signals: Signals,
    page: Option<Page>,
) -> Result<u8, Failure> {
    let directory = crate::boot::directory(global)?;
    let env = crate::boot::trusting(global, crate::boot::environment());
    let folders = Folders::from_env(&env);
    changed_settings::settle(global).await?;
    let network = network(&args, &directory, &env);
    let listening = outrigger_server::listen(&network.hostname, network.port)
        .await
        .map_err(|error| cannot_listen(&network, &error))?;
    let (login, made) = match args.no_auth {
        true if !listening.address.ip().is_loopback() => return Err(lets_all_in(&network)),
        true => (None, false),
        false => login(&env, &folders).map(|(login, made)| (Some(login), made))?,
    };
    let announced = login
        .is_some()
        .then(|| announce(&folders, listening.address.port()));
    let hub = Hub::new(
        folders.clone(),
        directory.clone(),
        make_boot(global, env.clone(), directory.clone()),
    );
    let boot = hub.boot(directory);
    if is_strict(&boot) {
        started(&hub).await?;
    }
    let telegram = telegram::start(&hub, &boot, &env);
    let session = page_session(login.as_ref(), listening.address, &folders)?;
    let guard = guard(login.clone(), network, args, session.clone());
    let router = guard.around(outrigger_server::serve_router(hub.clone()));
    let url = format!("http://{}", listening.address);
    out(&format!("{} server listening on {url}\n", name()));
    if let Some(login) = login.as_ref().filter(|_| made) {
        say_login(&url, login);
    }
    // The port is open: the browser's requests wait until they are answered.
    let opened = match page {
        Some(page) => (page.show(listening.address, session.as_deref(), &folders)).await,
        None => None,
    };
    // A running turn does not delay a signal here: the shutdown cancels it.
    let stop = stopped(&signals, signals.turn(), telegram);
    let giving_back = tokio::spawn(memory::give_back());
    listening
        .serve(router, &hub, stop)
        .await
        .map_err(|error| Failure::new("serve.port", error.to_string(), None))?;
    giving_back.abort();
    drop((announced, opened));
    Ok(0)
}

fn lets_all_in(network: &Network) -> Failure {
    Failure::usage(
        format!("--no-auth on {} would let everyone in", network.hostname),
        Some("leave it out, or listen on 127.0.0.1".into()),
    )
}

/// Returns how pages sign in to a server with a password.
fn page_session(
    login: Option<&Login>,
    address: SocketAddr,
    folders: &Folders,
) -> Result<Option<Arc<PageSession>>, Failure> {
    web::remove_leftovers(&folders.data);
    let Some(login) = login else { return Ok(None) };
    let session = PageSession::new(&folders.data, login.clone(), address).map_err(|error| {
        let message = format!("cannot keep a key in {}: {error}", folders.data.display());
        let hint = "make that folder writable for you, or set XDG_DATA_HOME";
        Failure::new("serve.page_key", message, Some(hint.into()))
    })?;
    Ok(Some(Arc::new(session)))
}

/// Returns the access checks.
fn guard(
    login: Option<Login>,
    network: Network,
    args: ServeArgs,
    page: Option<Arc<PageSession>>,
) -> Guard {
    Guard {
        login,
        hostname: network.hostname,
        hosts: args.allow_host,
        cors: network.cors,
        has_pages: true,
        page,
    }
}

/// Returns when the server must end.
async fn stopped(signals: &Signals, turn: Turn<'_>, telegram: Option<JoinHandle<()>>) {
    signals.cancelled().await;
    // The connector accepts no more prompts.
    if let Some(connector) = telegram {
        connector.abort();
    }
    drop(turn);
}

/// Prints how to attach. A reader of this output could read the password file, too: both belong to the user.
pub(super) fn say_login(url: &str, login: &Login) {
    err(&format!(
        "attach with: outrigger attach {url}\n         or: OPENCODE_SERVER_PASSWORD={} opencode attach {url}\n",
        login.password
    ));
}

/// Returns how the agent of a folder is started by a server that was started in the folder `own`.
fn make_boot(global: &Global, env: BTreeMap<String, String>, own: PathBuf) -> MakeBoot {
    let (pure, strict) = (global.pure, global.strict_plugins.then_some(true));
    Arc::new(move |directory: PathBuf| {
        let mut variables = env.clone();
        // `--trust` refers to the server's own folder; one that a client names is different.
        if directory != own {
            variables.remove(outrigger_agent::TRUST_PROJECT);
        }
        let mut boot = Boot::new(directory, variables);
        boot.pure = pure;
        boot.strict = strict;
        boot.answering = Answering::Ask;
        boot
    })
}

/// Returns whether plugins that do not load are an error. An unreadable configuration is reported to clients.
fn is_strict(boot: &Boot) -> bool {
    let setting = || {
        let loaded = boot.load(&ProjectLocation::find(&boot.directory));
        loaded.is_ok_and(|config| config.settings.strict_plugins)
    };
    boot.strict.unwrap_or_else(setting)
}

/// Starts the agent of the server's own folder now, so that plugins that do not load end the command.
async fn started(hub: &Hub) -> Result<(), Failure> {
    if let Err(error) = hub.start_own().await {
        hub.close().await;
        return Err(error.into());
    }
    Ok(())
}

/// Registers the port, so that this user's `attach` may send the kept password. Otherwise it must be given.
fn announce(folders: &Folders, port: u16) -> Option<outrigger_server::Announced> {
    outrigger_server::announce(&folders.data, port)
        .inspect_err(|error| {
            tracing::warn!("[server] `attach` will need the password: {error}");
        })
        .ok()
}

/// Returns the password of the environment, or the kept one; `true` if it is the kept one.
pub(super) fn login(
    env: &BTreeMap<String, String>,
    folders: &Folders,
) -> Result<(Login, bool), Failure> {
    let of = |name: &str| env.get(name).filter(|value| !value.is_empty()).cloned();
    let username = of("OPENCODE_SERVER_USERNAME").unwrap_or_else(|| USERNAME.to_owned());
    let (password, made) = match of("OPENCODE_SERVER_PASSWORD") {
        Some(password) => (password, false),
        None => {
            let kept = outrigger_server::keep_password(&folders.data).map_err(|error| {
                let file = outrigger_server::password_file(&folders.data);
                let message = format!("cannot keep a password in {}: {error}", file.display());
                let hint = "set OPENCODE_SERVER_PASSWORD";
                Failure::new("serve.password", message, Some(hint.into()))
            })?;
            (kept, true)
        }
    };
    Ok((Login { username, password }, made))
}

/// Returns the network settings. If the configuration is unreadable, `server` is ignored; requests report the error.
fn network(args: &ServeArgs, directory: &Path, env: &BTreeMap<String, String>) -> Network {
    let global = Boot::new(directory.to_path_buf(), env.clone())
        .load_global()
        .unwrap_or_else(|error| {
            tracing::warn!("[server] {error}; `server` of the configuration has no effect");
            serde_json::Value::Null
        });
    Network::of(args, &global)
}

fn cannot_listen(network: &Network, error: &std::io::Error) -> Failure {
    let port = network
        .port
        .map_or_else(String::new, |port| format!(" port {port}"));
    Failure::new(
        "serve.port",
        format!("cannot listen on {}{port}: {error}", network.hostname),
        Some("choose another with --port, or leave it out for any that is free".into()),
    )
}

/// Returns the name by which this program was called if that is OpenCode's: its SDK starts `opencode serve` and waits
/// for a line that starts with it.
fn name() -> &'static str {
    let called = std::env::args_os().next().map(PathBuf::from);
    let called = called.as_deref().and_then(Path::file_name);
    if called.is_some_and(|name| name == "opencode") {
        "opencode"
    } else {
        "outrigger"
    }
}
