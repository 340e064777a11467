//! Creates the browser and its tools from the user's settings.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_browser_core::field::FieldKind;
use outrigger_config::settings::Browser as Settings;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_sandbox::Spawner;
use outrigger_stdx::clock::now_ms;
use outrigger_store::Store;
use outrigger_tools::ToolRuntime;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::cdp::extension::Relay;
use crate::chromium::Source;
use crate::desk::{Browser, Options};
use crate::record::RecordFn;
use crate::secrets::Secrets;
use crate::sites::Sites;
use crate::{cdp, tools};

/// Registers the browser tools if the user has enabled them and there is a Chromium. Leases and tabs of sessions are released when the
/// agent's events report the end of their turns. `temporary` creates the folder for temporary files, `data` is
/// the user's data folder.
pub fn offer(
    settings: &Settings,
    temporary: impl Fn() -> io::Result<PathBuf>,
    data: &Path,
    spawner: &Spawner,
    store: &Store,
    runtime: &ToolRuntime,
    events: Receiver<Arc<BusEvent>>,
) {
    if !settings.enabled {
        return;
    }
    let folder = match temporary() {
        Ok(folder) => folder.join("browser"),
        Err(error) => return tracing::warn!("[browser] cannot create its folder: {error}"),
    };
    let store = store.clone();
    let around = Around {
        settings,
        spawner: spawner.clone(),
        folder,
        servers: data.join("servers"),
        token: data.join("browser/extension-token"),
        record: Arc::new(move |record| store.audit_lazily(now_ms(), vec![record])),
    };
    if let Some(browser) = attach(around, runtime) {
        tokio::spawn(follow(browser, events));
    }
}

/// What an agent needs for its browser.
struct Around<'a> {
    settings: &'a Settings,
    spawner: Spawner,
    folder: PathBuf,
    /// Folder with the ports of this program's servers.
    servers: PathBuf,
    /// File with the token of the extension.
    token: PathBuf,
    record: RecordFn,
}

fn attach(around: Around<'_>, runtime: &ToolRuntime) -> Option<Arc<Browser>> {
    let Around {
        settings,
        spawner,
        folder,
        servers,
        token,
        record,
    } = around;
    let source = source_of(settings, &token)?;
    let kinds = [FieldKind::Password, FieldKind::Card, FieldKind::Code];
    let browser = Browser::new(Options {
        source,
        folder,
        spawner,
        sites: Arc::new(Sites::new(Some(servers))),
        secrets: Secrets::of(&settings.secrets, |name| std::env::var(name).ok()),
        fields: kinds
            .into_iter()
            .filter(|it| settings.fields.iter().any(|name| name == it.name()))
            .collect(),
        ask: settings.ask.clone(),
        eval: settings.eval,
        record,
    });
    if let Err(error) = tools::register(runtime, &browser) {
        tracing::error!("[browser] {error}");
        return None;
    }
    Some(browser)
}

/// Returns the browser of the settings. Warns if there is none.
fn source_of(settings: &Settings, token: &Path) -> Option<Source> {
    if let Some(origin) = &settings.extension {
        let relay = Relay::kept(origin, settings.extension_port, token);
        return relay
            .inspect_err(|error| {
                tracing::warn!("[browser] cannot keep {}: {error}", token.display());
            })
            .map(Source::Extension)
            .ok();
    }
    if let Some(url) = &settings.url {
        return Some(Source::Running(url.clone()));
    }
    let Some(program) = settings.program.clone().or_else(cdp::launch::find) else {
        tracing::warn!(
            "[browser] there is no Chromium: install one, or name it as `browser.program` in outrigger.toml"
        );
        return None;
    };
    Some(Source::Start {
        program,
        headless: settings.headless,
        arguments: settings.arguments.clone(),
    })
}

/// Releases leases when turns end, closes tabs with their session, and the browser with the agent.
async fn follow(browser: Arc<Browser>, mut events: Receiver<Arc<BusEvent>>) {
    loop {
        match events.recv().await {
            Ok(event) => match &event.event {
                Event::SessionIdle { session_id } => browser.end_turn(session_id.as_str()),
                Event::SessionDeleted { session_id, .. } => {
                    browser.end_session(session_id.as_str())
                }
                _ => {}
            },
            // Leases also expire.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return browser.close().await,
        }
    }
}
