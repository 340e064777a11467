//! `outrigger` without a command: a full-screen conversation, with an agent of this process or of a server.

mod asks;
mod history;
mod outside;
mod state;

use std::sync::Arc;

use outrigger_agent::{Agent, AgentError, Answering, Boot, Folders, ProjectLocation};
use outrigger_client::{ClientError, Connection};
use outrigger_config::LoadOptions;
use outrigger_config::settings::{Editing, Tui, TuiColors};
use outrigger_plugins::Stage;
use outrigger_tui::{Depth, Host, Options, Services, Start, Theme};
use tokio::sync::Mutex;

use crate::args::checks::named_model;
use crate::args::{Global, OpenArgs};
use crate::exit;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal;

/// The agent of this process, once it has started.
type Slot = Arc<Mutex<Option<Agent>>>;

/// Runs the interface.
pub(crate) async fn open(global: &Global, args: OpenArgs, signals: Signals) -> Result<u8, Failure> {
    let wanted = args.continued.wanted()?;
    let history = history::History::of(global);
    let settings = settings(global, args.attach.is_some())?;
    let state = state::State::of(global);
    let options = options(global, &args, &settings, &state, history.read())?;
    let start = Start {
        session: wanted.id.map(str::to_owned),
        resume: wanted.latest,
        fork: wanted.fork,
        prompt: args.prompt.clone(),
    };
    let slot = Slot::default();
    let connecting = match &args.attach {
        Some(url) => Connecting::Server(crate::boot::remote(url, &args.server, global)?),
        None => Connecting::Here(Box::new(boot(global)?), slot.clone()),
    };
    // Only the interface writes to its screen; the log is printed after it.
    terminal::hold(true);
    let turn = signals.turn();
    let stopped = std::sync::atomic::AtomicBool::new(false);
    let stop = async {
        signals.cancelled().await;
        stopped.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let editor = outside::Editor::of(global);
    let exporter = outside::Exporter::of(global);
    let services = Services {
        export: Box::new(move |session, file| exporter.write(session, file)),
        keep_theme: Box::new(move |name| state.keep_theme(name)),
        remember: Box::new(move |prompt| history.add(prompt)),
        edit: Box::new(move |text| editor.edit(text)),
        read: Box::new(outside::image),
    };
    let connect = |host| connecting.connect(host);
    let result = outrigger_tui::run(options, start, settings.mouse, services, connect, stop).await;
    terminal::hold(false);
    drop(turn);
    if let Some(agent) = slot.lock().await.take() {
        agent.shutdown().await;
    }
    result.map_err(|error| {
        Failure::new(
            "cli.terminal",
            format!("the terminal cannot be used: {error}"),
            None,
        )
    })?;
    Ok(if stopped.into_inner() {
        exit::CANCELLED
    } else {
        0
    })
}

/// Returns `[tui]`, with key bindings.
fn settings(global: &Global, is_elsewhere: bool) -> Result<Tui, Failure> {
    // The folder of a remote agent need not exist here, and only the user's own settings are read.
    let folder = if is_elsewhere {
        std::env::current_dir().unwrap_or_else(|_| "/".into())
    } else {
        crate::boot::directory(global)?
    };
    let env = crate::boot::trusting(global, crate::boot::environment());
    let (folders, location) = (Folders::from_env(&env), ProjectLocation::find(&folder));
    let mut options = LoadOptions::new(location.directory, location.worktree, folders.home, env);
    options.xdg_config = folders.config;
    let settings = outrigger_config::load_settings(&options).map_err(AgentError::from)?;
    let settings = settings.tui;
    match outrigger_tui::key_problems(&settings.keys).as_slice() {
        [] => Ok(settings),
        problems => Err(Failure::of_agent(
            "config.setting",
            format!("`[tui.keys]` of outrigger.toml: {}", problems.join("; ")),
            Some("docs/terminal.md lists the names; keys are such as `ctrl+n`, `<leader>n`, `f5`, `alt+return` or `none`".into()),
        )),
    }
}

fn options(
    global: &Global,
    args: &OpenArgs,
    settings: &Tui,
    state: &state::State,
    history: Vec<String>,
) -> Result<Options, Failure> {
    let model = named_model(args.model.as_deref())?;
    let depth = match settings.colors {
        TuiColors::Auto => Depth::of(|name| std::env::var(name).ok()),
        TuiColors::None => Depth::None,
        TuiColors::Sixteen => Depth::Sixteen,
        TuiColors::Palette => Depth::Palette,
        TuiColors::True => Depth::True,
    };
    let folder = match &args.attach {
        Some(url) => url.clone(),
        None => shortened(&crate::boot::directory(global)?.display().to_string()),
    };
    Ok(Options {
        theme: match settings.theme {
            Some(theme) => Theme::new(theme.name(), depth),
            None => Theme::new(&state.theme(), depth),
        },
        keys: settings.keys.clone(),
        vi: settings.editing == Editing::Vi,
        folder,
        is_local: args.attach.is_none(),
        agent: args.agent.clone(),
        model,
        history,
        clock: outrigger_stdx::clock::now_ms,
    })
}

/// Abbreviates the home folder to `~`.
fn shortened(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    match path.strip_prefix(&home).filter(|_| home.len() > 1) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

/// Returns the start parameters of an agent of this folder, which asks the user in the interface.
fn boot(global: &Global) -> Result<Boot, Failure> {
    let mut boot = crate::boot::boot(global, &terminal::progress::Line::new())?;
    boot.answering = Answering::Ask;
    Ok(boot)
}

/// Where the agent runs.
enum Connecting {
    Here(Box<Boot>, Slot),
    Server(outrigger_client::Remote),
}

impl Connecting {
    async fn connect(self, host: Host) -> Result<Connection, ClientError> {
        let (mut boot, slot) = match self {
            Self::Server(remote) => return Ok(Connection::Remote(remote)),
            Self::Here(boot, slot) => (*boot, slot),
        };
        asks::of(&mut boot, &host);
        let agent = Agent::boot(boot).await?;
        let connection = Connection::Local(outrigger_server::serve_plugins(&agent));
        for plugin in agent.plugins() {
            for warning in plugin
                .warnings
                .iter()
                .filter(|_| plugin.stage == Stage::Active)
            {
                host.notice(format!("plugin {}: {warning}", plugin.id));
            }
        }
        *slot.lock().await = Some(agent);
        Ok(connection)
    }
}
